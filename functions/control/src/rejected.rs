//! The last refused deliveries, by provider: what was wrong, when and from where. No body, no signature.

use domain::rejected::{KEPT, Rejected};
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use serde_json::{Value, json};

use crate::jobs::timestamp;
use crate::unavailable;

/// Of one provider (`?provider=`), or of all.
pub(crate) async fn list(app: &App, event: &GatewayEvent) -> Result<GatewayResponse, Problem> {
    let asked = event.query("provider");
    if let Some(name) = asked.as_deref().filter(|name| app.profiles.get(name).is_none()) {
        let name: String = name.chars().take(40).collect();
        return Err(Problem::not_found(format!("provider {name:?} has no profile in providers.toml")));
    }
    let mut found = Vec::new();
    for profile in app.profiles.iter().filter(|p| asked.as_deref().is_none_or(|name| name == p.slug.as_str())) {
        let kept = app.store.rejected(&profile.slug, app.clock.now_ms()).await.map_err(unavailable)?;
        found.extend(kept.into_iter().map(|rejected| (profile.slug.as_str(), rejected)));
    }
    found.sort_by_key(|(_, rejected)| std::cmp::Reverse(rejected.arrival_ms));
    let rejected: Vec<Value> = found.iter().map(|(provider, rejected)| one(provider, rejected)).collect();
    Ok(GatewayResponse::json(200, &json!({ "kept_per_provider": KEPT, "rejected": rejected })))
}

fn one(provider: &str, rejected: &Rejected) -> Value {
    json!({
        "provider": provider, "at": timestamp(rejected.arrival_ms), "status": rejected.status,
        "reason": rejected.reason, "source": rejected.source, "body_bytes": rejected.body_bytes,
        "headers": rejected.header_names,
    })
}
