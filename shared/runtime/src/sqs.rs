//! SQS events as Lambda delivers them, and the partial batch answer.

use serde::{Deserialize, Serialize};

/// A batch of records.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SqsEvent {
    /// In order within each group.
    #[serde(rename = "Records", default)]
    pub records: Vec<SqsRecord>,
}

/// One record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SqsRecord {
    /// Names the record in the answer.
    pub message_id: String,
    /// Our message.
    pub body: String,
    /// SQS's attributes; all are texts.
    pub attributes: SqsAttributes,
}

/// Part of a [`SqsRecord`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SqsAttributes {
    /// The FIFO group.
    pub message_group_id: String,
    /// How often it was received, as text.
    pub approximate_receive_count: String,
}

impl SqsRecord {
    /// How often it was received; 1 when SQS does not say.
    pub fn receive_count(&self) -> u32 {
        self.attributes.approximate_receive_count.parse().unwrap_or(1)
    }
}

/// `ReportBatchItemFailures`: which records stay in the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchResponse {
    /// The failed records.
    pub batch_item_failures: Vec<ItemFailure>,
}

/// One failed record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemFailure {
    /// Its message id.
    pub item_identifier: String,
}
