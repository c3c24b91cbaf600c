//! The hook that meters: calls, capacity, and how many calls wait for each other.
//!
//! Each call is given a latency of virtual time, so that calls sent side by side overlap and calls sent one after the
//! other do not. The sequential round trips of an invocation are the longest chain of its calls in which none
//! overlaps another: what its duration is made of.
//!
//! Capacity is what the embedded DynamoDB reports ([`crate::EmbeddedAws::report_capacity`] must be on). For a condition that
//! failed it reports nothing, and DynamoDB charges all the same: the size of the item that stands, or one unit
//! (developer guide, "Capacity unit consumption for write operations"); for a cancelled transaction two for each action.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::call_log::consumed;
use crate::hook::{Call, CallHook, HookDecision, Service};
use crate::item_size::{item_size, write_units};
use crate::wire::WireResponse;

/// What was metered. Sums, so that means need no float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Invocations that they are of.
    pub invocations: u64,
    /// AWS calls.
    pub calls: u64,
    /// Of them SQS requests.
    pub sqs_requests: u64,
    /// Calls that waited for one before them, summed over invocations.
    pub round_trips: u64,
    /// Read units, in thousandths.
    pub read_milli_units: u64,
    /// Write units in thousandths, those of indexes included.
    pub write_milli_units: u64,
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.invocations += other.invocations;
        self.calls += other.calls;
        self.sqs_requests += other.sqs_requests;
        self.round_trips += other.round_trips;
        self.read_milli_units += other.read_milli_units;
        self.write_milli_units += other.write_milli_units;
    }

    /// What is left when what costs the same without any event is taken off.
    #[must_use]
    pub fn beyond(self, idle: Self) -> Self {
        Self {
            invocations: self.invocations.saturating_sub(idle.invocations),
            calls: self.calls.saturating_sub(idle.calls),
            sqs_requests: self.sqs_requests.saturating_sub(idle.sqs_requests),
            round_trips: self.round_trips.saturating_sub(idle.round_trips),
            read_milli_units: self.read_milli_units.saturating_sub(idle.read_milli_units),
            write_milli_units: self.write_milli_units.saturating_sub(idle.write_milli_units),
        }
    }
}

#[derive(Debug)]
struct Seen {
    sequence: u64,
    service: Service,
    operation: String,
    actions: u64,
    began: Instant,
    ended: Option<Instant>,
    milli_units: u64,
}

impl Seen {
    fn reads(&self) -> bool {
        matches!(self.operation.as_str(), "GetItem" | "Query" | "Scan" | "BatchGetItem" | "TransactGetItems")
    }
}

/// The hook.
#[derive(Debug)]
pub struct Meter {
    latency: Duration,
    seen: Mutex<Vec<Seen>>,
}

impl Meter {
    /// A meter that lets every call take that long, in virtual time.
    #[must_use]
    pub fn new(latency: Duration) -> Self {
        Self { latency, seen: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was metered since the last time, as that of one invocation.
    #[must_use]
    pub fn take(&self) -> Counts {
        let seen = std::mem::take(&mut *self.lock());
        let units = |reads: bool| {
            let of_kind = seen.iter().filter(|one| one.service == Service::DynamoDb && one.reads() == reads);
            of_kind.map(|one| one.milli_units).sum()
        };
        Counts {
            invocations: 1,
            calls: count(seen.len()),
            sqs_requests: count(seen.iter().filter(|one| one.service == Service::Sqs).count()),
            round_trips: longest_chain(seen.iter().map(|one| (one.began, one.ended.unwrap_or(one.began))).collect()),
            read_milli_units: units(true),
            write_milli_units: units(false),
        }
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The most intervals of which no two overlap: always the one that ends first among those that are left.
fn longest_chain<T: Copy + Ord>(mut intervals: Vec<(T, T)>) -> u64 {
    intervals.sort_unstable_by_key(|&(_, ended)| ended);
    let (mut chain, mut free_from) = (0, None);
    for (began, ended) in intervals {
        if free_from.is_none_or(|free| began >= free) {
            chain += 1;
            free_from = Some(ended);
        }
    }
    chain
}

/// What a write that was refused is charged, in thousandths of a unit.
fn refused(actions: u64, answer: &WireResponse) -> u64 {
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else { return 0 };
    let kind = body["__type"].as_str().unwrap_or_default();
    if kind.ends_with("TransactionCanceledException") {
        return 2_000 * actions;
    }
    if kind.ends_with("ConditionalCheckFailedException") {
        return 1_000 * write_units(item_size(&body["Item"]));
    }
    0
}

impl CallHook for Meter {
    fn on_call(&self, call: &Call) -> HookDecision {
        let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        self.lock().push(Seen {
            sequence: call.sequence,
            service: call.service,
            operation: call.operation.clone(),
            actions: count(request["TransactItems"].as_array().map_or(1, Vec::len)),
            began: Instant::now(),
            ended: None,
            milli_units: 0,
        });
        HookDecision::Delay(self.latency, Box::new(HookDecision::Pass))
    }

    fn on_answer(&self, call: &Call, answer: &WireResponse) {
        let mut seen = self.lock();
        if let Some(one) = seen.iter_mut().rev().find(|one| one.sequence == call.sequence) {
            one.ended = Some(Instant::now());
            one.milli_units = consumed(&answer.body).unwrap_or_else(|| refused(one.actions, answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_side_by_side_are_one_round_trip() {
        for (intervals, chain) in [
            (vec![], 0),
            (vec![(0, 5), (5, 10), (10, 15)], 3),
            (vec![(0, 5), (5, 10), (10, 15), (10, 15)], 3), // the last two side by side
            (vec![(0, 5), (0, 20), (5, 10)], 2),
            (vec![(0, 5), (3, 8), (4, 9)], 1),
        ] {
            assert_eq!(longest_chain(intervals.clone()), chain, "{intervals:?}");
        }
    }

    #[test]
    fn a_failed_condition_is_charged_by_what_stands() {
        let failed = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
        let cancelled = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
        let long = "x".repeat(1_500);
        for (body, actions, milli) in [
            (serde_json::json!({"__type": failed}), 1, 1_000),
            (serde_json::json!({"__type": failed, "Item": {"pk": {"S": "a"}}}), 1, 1_000),
            (serde_json::json!({"__type": failed, "Item": {"pk": {"S": long}}}), 1, 2_000),
            (serde_json::json!({"__type": cancelled}), 3, 6_000),
            (serde_json::json!({"__type": "x#ThrottlingException"}), 1, 0),
        ] {
            assert_eq!(refused(actions, &WireResponse::json(400, body.to_string())), milli, "{body}");
        }
    }
}
