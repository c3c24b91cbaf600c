//! Where `dev` forwards to when no other address is set: for each destination that a profile names a queue
//! of the embedded SQS, or a bus of the embedded EventBridge, and a page that shows what arrived. On AWS
//! these are the reader's own.

use std::collections::BTreeSet;

use domain::profile::{Destination, Profiles};
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use serde_json::{Value, json};

use crate::EmbeddedAws;
use crate::fifo::{QueueAttributes, QueueError};

/// Messages that the page shows at most: the latest.
const SHOWN: usize = 100;

/// Every destination that a profile or a subscription names.
fn destinations(profiles: &Profiles) -> BTreeSet<&Destination> {
    let rules = profiles.iter().flat_map(|profile| profile.events.values());
    let forwards = rules.filter_map(|rule| rule.forward.as_ref());
    forwards.chain(profiles.subscriptions().map(|one| &one.forward)).map(|forward| &forward.to).collect()
}

/// The local queue or bus of a destination's environment variable.
fn name_of(variable: &str) -> String {
    format!("{}.fifo", variable.to_ascii_lowercase())
}

/// The address of a destination's local queue or bus, by its environment variable.
#[must_use]
pub fn address_of(profiles: &Profiles, variable: &str) -> Option<String> {
    match destinations(profiles).into_iter().find(|to| to.variable() == Some(variable))? {
        Destination::Sqs(_) => Some(crate::queue_url(&name_of(variable))),
        Destination::EventBridge(_) => Some(name_of(variable)),
        Destination::Http(_) => None,
    }
}

/// Creates the local queue of every queue that a profile names.
///
/// # Errors
/// [`QueueError`] when a variable is too long for a queue's name.
pub fn create_queues(aws: &EmbeddedAws, profiles: &Profiles) -> Result<(), QueueError> {
    let mut queues = destinations(profiles).into_iter().filter_map(|to| match to {
        Destination::Sqs(variable) => Some(variable),
        Destination::EventBridge(_) | Destination::Http(_) => None,
    });
    queues.try_for_each(|variable| aws.queues().create_queue(&name_of(variable), QueueAttributes::default()))
}

/// `GET /forwarded/VARIABLE`: what was forwarded there and not taken out, oldest first.
pub fn show(aws: &EmbeddedAws, event: &GatewayEvent) -> GatewayResponse {
    let variable = event.raw_path.strip_prefix("/forwarded/").unwrap_or_default();
    let name = name_of(variable);
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    let all: Vec<Value> = match aws.queues().peek(&name) {
        Ok(stored) => stored.iter().filter_map(|message| parsed(&message.body)).collect(),
        Err(_) => aws.buses().events(&name).iter().filter_map(|entry| parsed(entry["Detail"].as_str()?)).collect(),
    };
    if all.is_empty() && aws.queues().peek(&name).is_err() {
        return Problem::not_found("nothing was forwarded to this environment variable").response();
    }
    GatewayResponse::json(200, &json!({ "messages": &all[all.len().saturating_sub(SHOWN)..] }))
}
