//! The faults of the drill, injected where a network would break.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use local::hook::{Call, CallHook, Fault, FnHook, HookDecision, Service};

/// Every call takes a few milliseconds, different ones for each: so that concurrent work interleaves.
pub fn slow_network() -> Arc<dyn CallHook> {
    Arc::new(FnHook(|call: &Call| {
        let latency = Duration::from_millis(1 + call.sequence % 7);
        HookDecision::Delay(latency, Box::new(HookDecision::Pass))
    }))
}

/// The first transaction is applied and its answer lost; the SDK's own tries meet a dead connection.
pub fn transaction_answer_lost() -> Arc<dyn CallHook> {
    let seen = AtomicUsize::new(0);
    Arc::new(FnHook(move |call: &Call| {
        if call.operation != "TransactWriteItems" {
            return HookDecision::Pass;
        }
        match seen.fetch_add(1, Ordering::Relaxed) {
            0 => HookDecision::lost_answer(),
            1 | 2 => HookDecision::FailBefore(Fault::ConnectionReset),
            _ => HookDecision::Pass,
        }
    }))
}

/// DynamoDB throttles every transaction of the first invocation, all the SDK's tries included.
pub fn throttled_transactions(times: usize) -> Arc<dyn CallHook> {
    let seen = AtomicUsize::new(0);
    Arc::new(FnHook(move |call: &Call| {
        let hit = call.operation == "TransactWriteItems" && seen.fetch_add(1, Ordering::Relaxed) < times;
        if hit { HookDecision::FailBefore(Fault::throttled(Service::DynamoDb)) } else { HookDecision::Pass }
    }))
}
