//! What a profile should not go live with although it can be loaded: `hookledger check` refuses it.

use super::{IdSource, Profile, Source};
use crate::config::Problem;
use crate::operation::OperationName;

/// What people leave where a value is still to come.
const PLACEHOLDERS: [&str; 8] = ["todo", "tbd", "fixme", "xxx", "unknown", "changeme", "change me", "fill in"];

/// The fields of an Adyen item that its signature covers (docs.adyen.com, "Verify HMAC signatures").
const ADYEN_SIGNED: [&str; 6] =
    ["pspReference", "originalReference", "merchantAccountCode", "merchantReference", "eventCode", "success"];

/// Everything that is unfilled or contradicts itself.
pub(super) fn problems(profile: &Profile) -> Vec<Problem> {
    let mut found = Vec::new();
    if unfilled(&profile.owner) {
        let cause = "the handoff field `owner` is not filled in";
        found.push(Problem::new(&["owner"], cause, "name the team that answers for this endpoint"));
    }
    if profile.tenants.iter().flatten().any(|tenant| unfilled(tenant.as_str())) {
        let cause = "the handoff field `tenants` is not filled in";
        found.push(Problem::new(&["tenants"], cause, "list the tenants, or [\"*\"] for all"));
    }
    if profile.retention_days.is_none() {
        let cause = "the handoff field `retention_days` is missing";
        let remedy = "add `retention_days = 0`: bodies are not kept, receipts are";
        found.push(Problem::new(&["retention_days"], cause, remedy));
    }
    found.extend(unsigned_id(profile));
    for (name, rule) in &profile.events {
        let has = |operation| rule.operations.contains(&operation);
        if has(OperationName::CompleteJob) && !has(OperationName::SettleUsage) && rule.unbilled.is_none() {
            let cause = "complete-job stands without settle-usage, so the hold would stay until it expires";
            let remedy = "add \"settle-usage\", or say why not: `unbilled = \"...\"`";
            found.push(Problem::new(&["events", name, "operations"], cause, remedy));
        }
    }
    found
}

fn unfilled(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let marked = PLACEHOLDERS.iter().any(|word| text == *word || text.starts_with(&format!("{word}:")));
    marked || (text.starts_with('<') && text.ends_with('>')) || text.chars().all(|c| c == '?' || c == '.' || c == '-')
}

/// An id that no signature covers, of a profile that does not say so.
fn unsigned_id(profile: &Profile) -> Option<Problem> {
    let recipe = &profile.recipe;
    let in_body = |pointer: &crate::json::Pointer| {
        let last = pointer.tokens().last().map(String::as_str).unwrap_or_default();
        recipe.signs_body() || (recipe.name() == "adyen" && ADYEN_SIGNED.contains(&last))
    };
    let signed = match &profile.event_id {
        IdSource::SignedId => recipe.signs_id(),
        IdSource::At(Source::Header(_)) => false,
        IdSource::At(Source::Body(pointer) | Source::Item(pointer)) => in_body(pointer),
        IdSource::Derived(pointers) => pointers.iter().all(in_body),
    };
    (profile.id_signed && !signed).then(|| {
        let cause = format!("scheme {} does not sign what stands there", recipe.name());
        Problem::new(&["event_id"], cause, "add `id_signed = false`, or take the id from what is signed")
    })
}
