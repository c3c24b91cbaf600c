//! The hook that counts: which AWS calls were made, how they were answered, what they cost.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::hook::{Call, CallHook, HookDecision, Service};
use crate::wire::WireResponse;

/// One call that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Its running number.
    pub sequence: u64,
    /// The service called.
    pub service: Service,
    /// E.g. `PutItem`.
    pub operation: String,
    /// The first table or queue named.
    pub target: Option<String>,
    /// How the service answered; absent if the call never reached it.
    pub status: Option<u16>,
    /// `ConsumedCapacity` in thousandths of a unit (DynamoDB counts in halves), summed over tables; absent if the
    /// answer has none.
    pub capacity_milli_units: Option<u64>,
}

/// Records every call.
#[derive(Debug, Default)]
pub struct CallLog {
    records: Mutex<Vec<CallRecord>>,
}

impl CallLog {
    fn lock(&self) -> MutexGuard<'_, Vec<CallRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was recorded so far, in the order of the calls.
    #[must_use]
    pub fn records(&self) -> Vec<CallRecord> {
        self.lock().clone()
    }

    /// What was recorded so far; the log starts anew.
    #[must_use]
    pub fn take(&self) -> Vec<CallRecord> {
        std::mem::take(&mut *self.lock())
    }

    /// How many calls of that operation were made.
    #[must_use]
    pub fn count(&self, operation: &str) -> usize {
        let records = self.lock();
        records.iter().filter(|r| r.operation == operation).count()
    }
}

impl CallHook for CallLog {
    fn on_call(&self, call: &Call) -> HookDecision {
        self.lock().push(CallRecord {
            sequence: call.sequence,
            service: call.service,
            operation: call.operation.clone(),
            target: call.target().map(str::to_owned),
            status: None,
            capacity_milli_units: None,
        });
        HookDecision::Pass
    }

    fn on_answer(&self, call: &Call, answer: &WireResponse) {
        let mut records = self.lock();
        // From the end: the answer belongs to one of the latest calls.
        let record = records.iter_mut().rev().find(|record| record.sequence == call.sequence);
        if let Some(record) = record {
            record.status = Some(answer.status);
            record.capacity_milli_units = consumed(&answer.body);
        }
    }
}

/// The sum of `ConsumedCapacity`, which is an object or a list of them.
pub(crate) fn consumed(body: &[u8]) -> Option<u64> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    match answer.get("ConsumedCapacity")? {
        Value::Array(tables) => Some(tables.iter().filter_map(units).sum()),
        one => units(one),
    }
}

fn units(capacity: &Value) -> Option<u64> {
    let text = capacity.get("CapacityUnits")?.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // Three digits of the fraction, from its text: money and capacity never pass through a float.
    let thousandths: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 1_000 + thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_summed_over_tables_in_thousandths() {
        for (body, expected) in [
            (r#"{"ConsumedCapacity":{"TableName":"a","CapacityUnits":0.5}}"#, Some(500)),
            (r#"{"ConsumedCapacity":[{"CapacityUnits":2.0},{"CapacityUnits":1.5}]}"#, Some(3_500)),
            (r#"{"ConsumedCapacity":{"CapacityUnits":6}}"#, Some(6_000)),
            ("{}", None),
        ] {
            assert_eq!(consumed(body.as_bytes()), expected, "{body}");
        }
    }
}
