//! Where `dev` forwards to when no other address is set: a queue of the embedded SQS for each destination
//! that a profile names, and a page that shows what is in it. On AWS these are queues of the reader's own.

use std::collections::BTreeSet;

use domain::profile::Profiles;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use serde_json::{Value, json};

use crate::fifo::{QueueAttributes, QueueEngine, QueueError};

/// Messages that the page shows at most: the latest.
const SHOWN: usize = 100;

/// The local queue of a destination's environment variable.
#[must_use]
pub fn queue_of(variable: &str) -> String {
    format!("{}.fifo", variable.to_ascii_lowercase())
}

/// Creates the local queue of every destination that a profile names.
///
/// # Errors
/// [`QueueError`] when a variable is too long for a queue's name.
pub fn create_queues(queues: &QueueEngine, profiles: &Profiles) -> Result<(), QueueError> {
    let rules = profiles.iter().flat_map(|profile| profile.events.values());
    let named: BTreeSet<&str> = rules.filter_map(|rule| Some(rule.forward.as_ref()?.to.variable())).collect();
    named.into_iter().try_for_each(|variable| queues.create_queue(&queue_of(variable), QueueAttributes::default()))
}

/// `GET /forwarded/VARIABLE`: what was forwarded there and not taken out, oldest first.
pub fn show(queues: &QueueEngine, event: &GatewayEvent) -> GatewayResponse {
    let variable = event.raw_path.strip_prefix("/forwarded/").unwrap_or_default();
    let Ok(stored) = queues.peek(&queue_of(variable)) else {
        return Problem::not_found("no profile forwards to this environment variable").response();
    };
    let latest = &stored[stored.len().saturating_sub(SHOWN)..];
    let messages: Vec<Value> = latest.iter().filter_map(|message| serde_json::from_str(&message.body).ok()).collect();
    GatewayResponse::json(200, &json!({ "messages": messages }))
}
