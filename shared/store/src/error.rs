//! What DynamoDB's answers mean to a caller.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;

/// Why a call has no answer. Never holds an item, a key or a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Throttled, or another transaction holds the item: nothing was written, try later.
    #[error("{operation}: the table is busy ({code})")]
    Busy {
        /// The call.
        operation: &'static str,
        /// DynamoDB's error code.
        code: String,
    },
    /// No answer, or a server error: it may or may not have been written. Read to find out.
    #[error("{operation}: no usable answer ({reason})")]
    Unknown {
        /// The call.
        operation: &'static str,
        /// Timeout, connection, or the HTTP status.
        reason: String,
    },
    /// The request itself is refused (validation, access, missing table): trying again changes nothing.
    #[error("{operation}: refused ({code})")]
    Permanent {
        /// The call.
        operation: &'static str,
        /// DynamoDB's error code.
        code: String,
    },
    /// A stored record cannot be read.
    #[error("a stored {what} cannot be read")]
    Corrupt {
        /// The kind of record.
        what: &'static str,
    },
}

impl StoreError {
    /// True when another transaction was at work on the item: worth another try at once.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Busy { code, .. } if code == "TransactionConflictException")
    }

    /// True when the request itself is wrong, so that no later try and no repaired role changes anything.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Permanent { code, .. } if code.starts_with("Validation"))
    }

    /// True when a later try may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unknown { .. })
    }
}

/// Error codes that mean "nothing was written, come back".
const BUSY: [&str; 7] = [
    "ThrottlingException",
    "ThrottlingError",
    "Throttling",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Classifies any SDK error.
pub(crate) fn classify<E: ProvideErrorMetadata>(
    operation: &'static str, error: &SdkError<E, HttpResponse>,
) -> StoreError {
    match error {
        SdkError::ConstructionFailure(_) => StoreError::Permanent { operation, code: "construction".to_owned() },
        SdkError::TimeoutError(_) => StoreError::Unknown { operation, reason: "timeout".to_owned() },
        SdkError::DispatchFailure(_) => StoreError::Unknown { operation, reason: "connection".to_owned() },
        SdkError::ServiceError(service) => {
            let code = service.err().code().unwrap_or("unknown").to_owned();
            let status = service.raw().status().as_u16();
            if BUSY.contains(&code.as_str()) {
                StoreError::Busy { operation, code }
            } else if status >= 500 {
                StoreError::Unknown { operation, reason: format!("status {status}") }
            } else {
                StoreError::Permanent { operation, code }
            }
        }
        _ => StoreError::Unknown { operation, reason: "unreadable answer".to_owned() },
    }
}

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commit {
    /// All of it is written.
    Committed,
    /// Nothing is written: these items' conditions failed. Read again and decide again.
    ConditionFailed(Vec<usize>),
    /// Nothing is written: another transaction was at work on an item. Read again, a little later.
    Conflict,
}

/// Judges a transaction's failure per item. A cancellation is never taken as a whole (DDB-02).
pub(crate) fn judge(
    operation: &'static str, error: &SdkError<TransactWriteItemsError, HttpResponse>,
) -> Result<Commit, StoreError> {
    let cancelled = error.as_service_error().and_then(|service| match service {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => Some(cancelled),
        _ => None,
    });
    let Some(cancelled) = cancelled else { return Err(classify(operation, error)) };
    let codes: Vec<&str> = cancelled.cancellation_reasons().iter().map(|r| r.code().unwrap_or("None")).collect();
    judge_codes(operation, &codes)
}

fn judge_codes(operation: &'static str, codes: &[&str]) -> Result<Commit, StoreError> {
    let throttle = |code: &&&str| matches!(**code, "ThrottlingError" | "ProvisionedThroughputExceeded");
    let known = |code: &&&str| matches!(**code, "None" | "ConditionalCheckFailed" | "TransactionConflict");
    if let Some(code) = codes.iter().find(throttle) {
        return Err(StoreError::Busy { operation, code: (*code).to_owned() });
    }
    if let Some(code) = codes.iter().find(|code| !known(code)) {
        return Err(StoreError::Permanent { operation, code: (*code).to_owned() });
    }
    if codes.contains(&"TransactionConflict") {
        return Ok(Commit::Conflict);
    }
    let failed: Vec<usize> = (0..codes.len()).filter(|i| codes[*i] == "ConditionalCheckFailed").collect();
    if failed.is_empty() {
        return Err(StoreError::Unknown { operation, reason: "cancelled without a reason".to_owned() });
    }
    Ok(Commit::ConditionFailed(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ddb_02_each_reason_has_its_own_meaning() {
        let judge = |codes: &[&str]| judge_codes("test", codes);
        assert_eq!(judge(&["None", "ConditionalCheckFailed"]), Ok(Commit::ConditionFailed(vec![1])));
        assert_eq!(judge(&["TransactionConflict", "None"]), Ok(Commit::Conflict));
        assert_eq!(judge(&["ConditionalCheckFailed", "TransactionConflict"]), Ok(Commit::Conflict));
        assert!(matches!(judge(&["ThrottlingError", "None"]), Err(StoreError::Busy { .. })));
        assert!(matches!(judge(&["ValidationError"]), Err(StoreError::Permanent { .. })));
        assert!(matches!(judge(&[]), Err(StoreError::Unknown { .. })));
    }
}
