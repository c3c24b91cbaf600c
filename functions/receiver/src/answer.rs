//! What the provider is told, and the one log line per delivery. The reason of a rejection is for
//! the operator only.

use domain::profile::Profile;
use domain::receipt::Receipt;
use runtime::gateway::GatewayResponse;
use runtime::problem::Problem;
use serde::Serialize;
use signature::ChallengeReply;

use crate::keyring::Unusable;

#[derive(Serialize)]
struct Answer<'a> {
    status: &'a str,
    event: String,
}

/// A JSON answer with the event's name.
pub(crate) fn status(code: u16, status: &str, receipt: &Receipt) -> GatewayResponse {
    let event = receipt.event.as_ref().map(ToString::to_string).unwrap_or_default();
    GatewayResponse::json(code, &Answer { status, event })
}

/// A new event: accepted, ignored or quarantined.
pub(crate) fn received(
    profile: &Profile, receipt: &Receipt, planned: usize, sent: usize, now_ms: i64,
) -> GatewayResponse {
    let (code, name) = match receipt.empty.map(|reason| reason.answer()) {
        None => (profile.accept_status, "accepted"),
        Some("ignored") => (200, "ignored"),
        Some(_) => (profile.quarantine_status, "quarantined"),
    };
    tracing::info!(
        provider = %profile.slug, event = receipt.event.as_ref().map(tracing::field::display), outcome = name,
        reason = receipt.empty.map(tracing::field::debug), key_id = %receipt.key_id, planned, sent,
        trace = receipt.trace, duration_ms = (now_ms - receipt.arrival_ms).max(0), "delivery"
    );
    status(code, name, receipt)
}

/// 401 without a reason; the log and the list of refused deliveries have it.
pub(crate) fn rejected() -> Problem {
    Problem::new(401, "invalid-signature", "The signature is not valid", "the delivery was not taken")
}

/// 500: the endpoint's own mistake, so that the provider tries again.
pub(crate) fn not_configured(profile: &Profile) -> Problem {
    tracing::error!(provider = %profile.slug, outcome = "not-configured", "delivery");
    Problem::new(
        500,
        "not-configured",
        "The endpoint is not configured",
        "the owner has been alarmed; send it again later",
    )
}

/// The endpoint has no keys now: 500 where somebody must repair it, 503 where they cannot be reached.
pub(crate) fn unusable(profile: &Profile, unusable: Unusable) -> Problem {
    match unusable {
        Unusable::NotConfigured => not_configured(profile),
        Unusable::Unavailable => {
            tracing::error!(provider = %profile.slug, outcome = "keys-unavailable", "delivery");
            Problem::unavailable()
        }
    }
}

/// The reply that a provider's endpoint check asks for.
pub(crate) fn challenge(reply: ChallengeReply) -> GatewayResponse {
    let mut response = GatewayResponse::json(reply.status, &());
    response.body = reply.body;
    response
}
