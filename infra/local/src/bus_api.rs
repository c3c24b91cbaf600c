//! EventBridge at the network's edge: takes `PutEvents` and keeps what it took. It has no rules and no
//! targets; a bus exists as soon as something is put on it.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::wire::WireResponse;

/// Events that are kept: the latest.
const KEPT: usize = 1_000;

/// The buses of one embedded AWS.
#[derive(Debug, Default)]
pub struct Buses(Mutex<Vec<Value>>);

impl Buses {
    /// What was put on a bus, oldest first: entries as they were sent.
    #[must_use]
    pub fn events(&self, bus: &str) -> Vec<Value> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|entry| entry["EventBusName"] == bus).cloned().collect()
    }

    /// Answers one EventBridge operation.
    pub(crate) fn call(&self, operation: &str, body: &Bytes) -> WireResponse {
        let refused = |name: &str| WireResponse::json(400, json!({ "__type": name, "message": "refused" }).to_string());
        if operation != "PutEvents" {
            return refused("UnknownOperationException");
        }
        let Ok(request) = serde_json::from_slice::<Value>(body) else { return refused("SerializationException") };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut results, mut failed) = (Vec::new(), 0);
        for entry in request["Entries"].as_array().into_iter().flatten() {
            let detail = entry["Detail"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            if detail.is_some_and(|detail| detail.is_object()) {
                all.push(entry.clone());
                results.push(json!({ "EventId": format!("event-{}", all.len()) }));
            } else {
                failed += 1;
                results.push(json!({ "ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed." }));
            }
        }
        let over = all.len().saturating_sub(KEPT);
        all.drain(..over);
        WireResponse::ok(json!({ "FailedEntryCount": failed, "Entries": results }).to_string())
    }
}
