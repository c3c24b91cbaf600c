//! Pause switches: one for each consumer and each configured provider. On, it stops effects while receipts
//! go on; off, the relay resumes what was held back, in order of arrival.

use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::operation::Consumer;
use domain::own::OWN_PROVIDER;
use domain::pause::{Pause, Switched, Switches};
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use runtime::retry::Again;
use serde::Deserialize;
use serde_json::{Value, json};
use store::Commit;

use crate::jobs::timestamp;
use crate::{body, check_reason, unavailable};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    paused: bool,
    reason: String,
}

/// `PUT /control/pauses/{consumer or provider}`.
pub(crate) async fn switch(app: &App, event: &GatewayEvent, name: &str) -> Result<GatewayResponse, Problem> {
    let known = Consumer::ALL.iter().any(|consumer| consumer.as_str() == name)
        || name == OWN_PROVIDER
        || app.profiles.get(name).is_some();
    let asked: Body = body(event)?;
    check_reason(&asked.reason)?;
    let created_ms = app.clock.now_ms();
    let change = Switched {
        name: name.to_owned(),
        paused: asked.paused,
        actor: event.actor(),
        reason: asked.reason,
        created_ms,
    };
    let mut again = Again::new(app);
    for _ in 0..DECIDE_AGAIN_LIMIT {
        let stands = app.store.get_switches().await.map_err(unavailable)?;
        if !known && !stands.paused.contains_key(name) {
            let consumers: Vec<&str> = Consumer::ALL.iter().map(|consumer| consumer.as_str()).collect();
            let consumers = consumers.join(", ");
            let detail = format!(
                "there is a switch for each consumer ({consumers}) and each configured provider, and \"{OWN_PROVIDER}\" for what is told"
            );
            return Err(Problem::not_found(detail));
        }
        let Some(next) = stands.after(&change) else {
            return Ok(GatewayResponse::json(200, &shown(name, &stands)));
        };
        match app.store.put_switches(&next, Some(&change)).await {
            Ok(Commit::Committed) => {
                tracing::warn!(switch = name, paused = change.paused, actor = %change.actor, "switched");
                return Ok(GatewayResponse::json(200, &shown(name, &next)));
            }
            Ok(Commit::ConditionFailed(_) | Commit::Conflict) => app.pause().await,
            Err(error) => again.after(error).await.map_err(unavailable)?,
        }
    }
    Err(Problem::unavailable())
}

fn shown(name: &str, switches: &Switches) -> Value {
    let mut shown = switches.paused.get(name).map_or_else(|| json!({}), pause_json);
    shown["name"] = json!(name);
    shown["paused"] = json!(switches.paused.contains_key(name));
    shown
}

fn pause_json(pause: &Pause) -> Value {
    json!({ "actor": pause.actor, "reason": pause.reason, "since": timestamp(pause.since_ms) })
}

/// The switches as an answer has them: those that are on, and those whose operations are being resumed.
pub(crate) fn all(switches: &Switches) -> Value {
    let paused: Vec<Value> = switches.paused.keys().map(|name| shown(name, switches)).collect();
    let since = |name: &str| switches.resuming.get(name).copied().map(timestamp);
    let resuming: Vec<Value> = switches.to_resume().map(|name| json!({ "name": name, "since": since(name) })).collect();
    json!({ "paused": paused, "resuming": resuming })
}

/// `GET /control/pauses`.
pub(crate) async fn list(app: &App) -> Result<GatewayResponse, Problem> {
    let switches = app.store.get_switches().await.map_err(unavailable)?;
    Ok(GatewayResponse::json(200, &all(&switches)))
}
