//! The hook that counts writes: it changes no call, and repeats each on a mirror to learn its units.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use local::hook::{Call, CallHook, CallLog, HookDecision, Service};
use local::wire::WireResponse;
use local::world::BEGINS_MS;
use local::{EmbeddedAws, ManualClock, dynamo_api};
use serde_json::{Value, json};

/// What is repeated: everything that changes a table, and what makes one.
const MIRRORED: [&str; 5] = ["CreateTable", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"];

/// What was counted.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    /// `TransactWriteItems` calls, whatever their answer.
    pub transactions: u64,
    /// Their actions.
    pub actions: u64,
    /// Those that were cancelled: a failed condition or a conflict.
    pub cancelled: u64,
    /// Write units in thousandths, of every write, indexes included.
    pub write_milli_units: u64,
    /// The time that the mirror took.
    pub mirroring: Duration,
}

impl Counts {
    /// Transactions, actions, cancelled ones and write units of one settlement, with three decimals.
    pub fn per(&self, settlements: usize) -> [String; 4] {
        let settlements = u64::try_from(settlements).unwrap();
        let thousandths = |count: u64| {
            let each = (count + settlements / 2) / settlements;
            format!("{}.{:03}", each / 1_000, each % 1_000)
        };
        let whole = [self.transactions, self.actions, self.cancelled].map(|count| thousandths(count * 1_000));
        let [transactions, actions, cancelled] = whole;
        [transactions, actions, cancelled, thousandths(self.write_milli_units)]
    }
}

/// The hook.
#[derive(Debug)]
pub struct Meter {
    mirror: EmbeddedAws,
    units: CallLog,
    counts: Mutex<Counts>,
}

impl Meter {
    /// A meter with an empty mirror.
    pub fn new() -> Self {
        let mirror = EmbeddedAws::memory(Arc::new(ManualClock::new(BEGINS_MS))).unwrap();
        Self { mirror, units: CallLog::default(), counts: Mutex::default() }
    }

    /// What was counted since the last time.
    pub fn take(&self) -> Counts {
        let units = self.units.take().iter().filter_map(|record| record.capacity_milli_units).sum();
        Counts { write_milli_units: units, ..std::mem::take(&mut *self.counts.lock().unwrap()) }
    }

    /// The time that the mirror took since [`Meter::take`].
    pub fn mirroring(&self) -> Duration {
        self.counts.lock().unwrap().mirroring
    }

    /// Repeats a call on the mirror, which must answer as the store did.
    fn repeat(&self, call: &Call, answer: &WireResponse) {
        let mut request: Value = serde_json::from_slice(&call.body).unwrap();
        if call.operation != "CreateTable" {
            request["ReturnConsumedCapacity"] = json!("TOTAL");
        }
        let mirrored = dynamo_api::call(self.mirror.database(), &call.operation, request.to_string().as_bytes());
        assert_eq!(mirrored.status, answer.status, "the mirror differs at {} {}", call.operation, call.sequence);
        let _ = self.units.on_call(call);
        self.units.on_answer(call, &mirrored);
    }
}

impl CallHook for Meter {
    fn on_call(&self, _call: &Call) -> HookDecision {
        HookDecision::Pass
    }

    /// Called right after the call was applied, before anything else can run on this one thread.
    fn on_answer(&self, call: &Call, answer: &WireResponse) {
        if call.service != Service::DynamoDb || !MIRRORED.contains(&call.operation.as_str()) {
            return;
        }
        let started = Instant::now();
        self.repeat(call, answer);
        let mut counts = self.counts.lock().unwrap();
        if call.operation == "TransactWriteItems" {
            let request: Value = serde_json::from_slice(&call.body).unwrap();
            counts.transactions += 1;
            counts.actions += u64::try_from(request["TransactItems"].as_array().map_or(0, Vec::len)).unwrap();
            counts.cancelled += u64::from(answer.status != 200);
        }
        counts.mirroring += started.elapsed();
    }
}
