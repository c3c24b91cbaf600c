//! The provider simulator's own API, beside the product's routes: emit an event, list what was sent,
//! replay by id or by time. Only `dev` serves it, on 127.0.0.1.

use runtime::clock::Clock;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use runtime::random::Random;
use serde::Deserialize;
use serde_json::json;

use crate::provider::{ProviderSimulator, SentEvent};
use crate::provider_list;

/// What a replay picks.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Replay {
    ids: Vec<String>,
    from: Option<String>,
    to: Option<String>,
}

/// Answers `/provider/...`; everything else is not its.
pub fn handle(
    provider: &ProviderSimulator, clock: &dyn Clock, random: &dyn Random, event: &GatewayEvent,
) -> GatewayResponse {
    let parts = event.path_parts().unwrap_or_default();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let answer = match (event.request_context.http.method.as_str(), &parts[..]) {
        ("POST", ["provider", subscription, "events"]) => emit(provider, clock, random, event, subscription),
        ("GET", ["provider", "events"]) => {
            let events: Vec<_> = provider.events().iter().map(shown).collect();
            Ok(GatewayResponse::json(200, &json!({ "events": events })))
        }
        ("POST", ["provider", "replay"]) => replay(provider, clock, event),
        ("GET", ["provider", subscription, "jobs"]) => {
            let page = provider_list::page(provider, subscription, event.query("after").as_deref());
            Ok(GatewayResponse::json(200, &page))
        }
        _ => Err(Problem::not_found(
            "POST /provider/{subscription}/events[?id=ID], GET /provider/events, POST /provider/replay, GET /provider/{subscription}/jobs",
        )),
    };
    answer.unwrap_or_else(|problem| problem.response())
}

/// An event without its body.
fn shown(event: &SentEvent) -> serde_json::Value {
    json!({
        "id": event.id, "subscription": event.subscription, "delivery": event.delivery, "attempts": event.attempts,
        "last_status": event.last_status, "first_sent_at": domain::time::rfc3339(event.first_sent_ms),
        "due_at": domain::time::rfc3339(event.due_ms),
    })
}

fn text(event: &GatewayEvent) -> Result<String, Problem> {
    let bytes = event.body_bytes().map_err(|error| Problem::bad_request(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| Problem::bad_request("the body is not UTF-8"))
}

fn emit(
    provider: &ProviderSimulator, clock: &dyn Clock, random: &dyn Random, event: &GatewayEvent, subscription: &str,
) -> Result<GatewayResponse, Problem> {
    let id = event.query("id").unwrap_or_else(|| format!("evt_{:016x}", random.next_u64()));
    let sent = provider.emit(subscription, &id, &text(event)?, clock.now_ms()).map_err(Problem::invalid)?;
    Ok(GatewayResponse::json(202, &shown(&sent)))
}

fn replay(provider: &ProviderSimulator, clock: &dyn Clock, event: &GatewayEvent) -> Result<GatewayResponse, Problem> {
    let wanted: Replay = serde_json::from_str(&text(event)?).map_err(|e| Problem::bad_request(e.to_string()))?;
    let time = |text: &Option<String>, otherwise: i64| match text {
        Some(text) => {
            domain::time::parse_rfc3339(text).ok_or_else(|| Problem::invalid(format!("{text:?} is no RFC 3339 time")))
        }
        None => Ok(otherwise),
    };
    if wanted.ids.is_empty() && wanted.from.is_none() && wanted.to.is_none() {
        return Err(Problem::invalid("name `ids`, or a window by `from` and `to`"));
    }
    let (from, to) = (time(&wanted.from, i64::MIN)?, time(&wanted.to, i64::MAX)?);
    let picks =
        |e: &SentEvent| (wanted.ids.is_empty() || wanted.ids.contains(&e.id)) && (from..=to).contains(&e.first_sent_ms);
    let count = provider.replay(clock.now_ms(), picks);
    let count =
        count.map_err(|error| Problem::new(500, "internal", "The event store cannot be written", error.to_string()))?;
    Ok(GatewayResponse::json(202, &json!({ "replayed": count })))
}
