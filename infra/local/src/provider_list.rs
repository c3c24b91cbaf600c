//! The provider simulator's own list of jobs, as acme would serve it: the newest of what it knows of each job, whether or
//! not its event was ever delivered. `dev` and the worlds read it in this process, at the network's edge.

use std::collections::BTreeMap;
use std::sync::Arc;

use runtime::fetch::{Fetch, FetchError, Fetched, Get};
use serde_json::{Value, json};

use crate::provider::{ProviderSimulator, SentEvent};

/// Jobs of one page.
pub const PAGE: usize = 100;
/// Where the list is for those who read it in this process; no network has this name.
pub const LIST_URL: &str = "http://provider.invalid/provider/acme/jobs";

/// What an event says of its job: the provider's name for it and its entry in the list.
fn told(event: &SentEvent) -> Option<(String, Value)> {
    let body: Value = serde_json::from_str(&event.body).ok()?;
    let status = match body["type"].as_str()? {
        "job.progress" => "running",
        "job.completed" => "succeeded",
        "job.failed" => "failed",
        "job.canceled" => "canceled",
        _ => return None,
    };
    let id = body["data"]["id"].as_str()?;
    let entry = json!({
        "id": id, "status": status, "usage": body["data"]["usage"],
        "updated_at": domain::time::rfc3339(event.first_sent_ms),
    });
    Some((id.to_owned(), entry))
}

/// A page of a subscription's jobs in order of their ids; `after` is the last id of the page before.
pub fn page(provider: &ProviderSimulator, subscription: &str, after: Option<&str>) -> Value {
    let events = provider.events();
    let ours = events.iter().filter(|event| event.subscription == subscription);
    // A later event of the same job takes the earlier one's place: an end that is told anew amends the one before, and
    // progress that comes after it does not.
    let mut jobs: BTreeMap<String, Value> = BTreeMap::new();
    for (id, entry) in ours.filter_map(told) {
        if entry["status"] != "running" || jobs.get(&id).is_none_or(|before| before["status"] == "running") {
            jobs.insert(id, entry);
        }
    }
    let mut rest = jobs.into_iter().filter(|(id, _)| after.is_none_or(|after| id.as_str() > after));
    let page: Vec<(String, Value)> = rest.by_ref().take(PAGE).collect();
    let next = page.last().map(|(id, _)| id.clone()).filter(|_| rest.next().is_some());
    json!({ "jobs": page.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(), "next": next })
}

/// Reads the simulator's list in this process; every other URL goes out by `other`, where there is one.
#[derive(Debug)]
pub struct SimulatorFetch {
    /// Whose list.
    pub provider: Arc<ProviderSimulator>,
    /// The network.
    pub other: Option<Arc<dyn Fetch>>,
}

impl Fetch for SimulatorFetch {
    fn get(&self, get: Get) -> Fetched<'_> {
        Box::pin(async move {
            let Some(rest) = get.url.strip_prefix(LIST_URL) else {
                let Some(other) = &self.other else { return Err(FetchError::Unreachable) };
                return other.get(get).await;
            };
            let after = rest
                .strip_prefix("?after=")
                .map(|text| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned());
            let body = page(&self.provider, "acme", after.as_deref()).to_string().into_bytes();
            if body.len() > get.max_bytes { Err(FetchError::TooLarge) } else { Ok(body) }
        })
    }
}
