//! What an SQS call can refuse, with the codes that AWS uses.
//!
//! Each error knows three names: the shape in the JSON protocol (`__type`), the older code of the query protocol
//! (header `x-amzn-query-error`; the SDKs match on THAT one), and the HTTP status.

use thiserror::Error;

/// A refused SQS call. The messages follow AWS's wording where that is known; none carries a message body.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QueueError {
    /// No queue of that name.
    #[error("The specified queue does not exist.")]
    QueueDoesNotExist,
    /// A queue of that name exists with other attributes.
    #[error("A queue already exists with the same name and a different value for attribute {0}")]
    QueueNameExists(String),
    /// A parameter is absent.
    #[error("The request must contain the parameter {0}.")]
    MissingParameter(String),
    /// A parameter's value is not allowed; the text says which and why.
    #[error("{0}")]
    InvalidParameterValue(String),
    /// An attribute name that the queue does not know.
    #[error("Unknown Attribute {0}.")]
    InvalidAttributeName(String),
    /// An attribute's value is not allowed.
    #[error("Invalid value for the parameter {0}.")]
    InvalidAttributeValue(String),
    /// A body with characters outside of what SQS allows.
    #[error(
        "Invalid binary character was found in the message body, the set of allowed characters is #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
    )]
    InvalidMessageContents,
    /// Text that is not a receipt handle of this queue.
    #[error("The input receipt handle is invalid.")]
    ReceiptHandleIsInvalid,
    /// A receipt handle whose visibility timeout is over: on FIFO queues it deletes nothing any more.
    #[error("Value {0} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.")]
    ReceiptHandleExpired(String),
    /// A visibility change of a message that is not in flight under this handle.
    #[error(
        "Value {0} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."
    )]
    NotAvailableForVisibilityChange(String),
    /// A batch without entries.
    #[error("There should be at least one {0} in the request.")]
    EmptyBatchRequest(&'static str),
    /// More than ten entries.
    #[error("Maximum number of entries per request are 10. You have sent {0}.")]
    TooManyEntries(usize),
    /// Two entries of a batch have one id.
    #[error("Id {0} repeated.")]
    BatchEntryIdsNotDistinct(String),
    /// An entry id outside of `[A-Za-z0-9_-]{1,80}`.
    #[error(
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
    )]
    InvalidBatchEntryId,
    /// All messages of a batch together are too long.
    #[error("Batch requests cannot be longer than {limit} bytes. You have sent {sent} bytes.")]
    BatchRequestTooLong {
        /// The limit in bytes.
        limit: usize,
        /// What was sent, in bytes.
        sent: usize,
    },
    /// The operation is not built here.
    #[error("The embedded SQS does not have the operation {0}.")]
    UnsupportedOperation(String),
    /// The file behind the queue refused a write; the message may or may not be kept.
    #[error("the queue file could not be written or read ({0}); check the data directory's disk and permissions")]
    Storage(String),
}

impl QueueError {
    /// (shape in the JSON protocol, code of the query protocol).
    fn codes(&self) -> (&'static str, &'static str) {
        match self {
            Self::QueueDoesNotExist => ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"),
            Self::QueueNameExists(_) => ("QueueNameExists", "QueueAlreadyExists"),
            Self::MissingParameter(_) => ("MissingRequiredParameterException", "MissingParameter"),
            Self::InvalidParameterValue(_)
            | Self::ReceiptHandleExpired(_)
            | Self::NotAvailableForVisibilityChange(_) => ("InvalidParameterValueException", "InvalidParameterValue"),
            Self::InvalidAttributeName(_) => ("InvalidAttributeName", "InvalidAttributeName"),
            Self::InvalidAttributeValue(_) => ("InvalidAttributeValue", "InvalidAttributeValue"),
            Self::InvalidMessageContents => ("InvalidMessageContents", "InvalidMessageContents"),
            Self::ReceiptHandleIsInvalid => ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid"),
            Self::EmptyBatchRequest(_) => ("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest"),
            Self::TooManyEntries(_) => {
                ("TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest")
            }
            Self::BatchEntryIdsNotDistinct(_) => {
                ("BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct")
            }
            Self::InvalidBatchEntryId => ("InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId"),
            Self::BatchRequestTooLong { .. } => ("BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong"),
            Self::UnsupportedOperation(_) => ("UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation"),
            Self::Storage(_) => ("InternalError", "InternalError"),
        }
    }

    /// The `__type` of the JSON protocol.
    #[must_use]
    pub fn json_type(&self) -> String {
        format!("com.amazonaws.sqs#{}", self.codes().0)
    }

    /// The code of the query protocol: what `x-amzn-query-error` carries before the semicolon.
    #[must_use]
    pub fn query_code(&self) -> &'static str {
        self.codes().1
    }

    /// The code in a batch answer's `Failed` entry: an expired handle is named there as an invalid one
    /// (smaskalik/sqsmover#54 shows AWS's answer).
    #[must_use]
    pub fn batch_code(&self) -> &'static str {
        match self {
            Self::ReceiptHandleExpired(_) => "ReceiptHandleIsInvalid",
            other => other.query_code(),
        }
    }

    /// False for a fault of the service, true for one of the caller.
    #[must_use]
    pub fn is_sender_fault(&self) -> bool {
        !matches!(self, Self::Storage(_))
    }

    /// HTTP status: 400 for the caller's faults, 500 for ours.
    #[must_use]
    pub fn status(&self) -> u16 {
        if self.is_sender_fault() { 400 } else { 500 }
    }
}

impl From<rusqlite::Error> for QueueError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error.to_string())
    }
}
