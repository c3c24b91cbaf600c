//! Receipts against effects: is every planned operation final, waiting, or a person's?

use super::{Action, CaseClass, Finding, GRACE_MS, Subject};
use crate::operation::{OperationKey, OperationRecord, OperationState};
use crate::receipt::Receipt;
use crate::status::EventEffects;

/// Compares one receipt's plan with its records and effects.
pub fn compare_receipt(
    receipt: &Receipt, records: &[OperationRecord], effects: &EventEffects, now_ms: i64,
) -> Vec<Finding> {
    let operations = receipt.operations().into_iter();
    operations.filter_map(|key| compare_operation(receipt, key, records, effects, now_ms)).collect()
}

fn compare_operation(
    receipt: &Receipt, key: OperationKey, records: &[OperationRecord], effects: &EventEffects, now_ms: i64,
) -> Option<Finding> {
    let record = records.iter().find(|record| record.key.as_ref() == Some(&key));
    let effect = effects.effect(&key, record);
    match (effect, record) {
        (None, None) if now_ms - receipt.arrival_ms >= GRACE_MS => Some(not_dispatched(receipt, key)),
        (Some(effect), Some(record)) => {
            let open = matches!(record.state, OperationState::Wait | OperationState::Review);
            if !open || now_ms - record.changed_ms < GRACE_MS {
                return None;
            }
            let (name, state) = (key.name, record.state);
            let evidence =
                format!("{name} is recorded as {state:?} ({:?}), and its effect exists: {effect}", record.class);
            Some(Finding::new(CaseClass::StaleRecord, Action::Close, Subject::Operation(key), evidence))
        }
        _ => None,
    }
}

/// The finding that an operation was never dispatched, or its message was lost.
pub(super) fn not_dispatched(receipt: &Receipt, key: OperationKey) -> Finding {
    let at = crate::time::rfc3339(receipt.arrival_ms);
    let evidence = format!("{} was received at {at} and has neither effect nor record", key.name);
    Finding::new(CaseClass::NotDispatched, Action::Retry, Subject::Operation(key), evidence)
}
