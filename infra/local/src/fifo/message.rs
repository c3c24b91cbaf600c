//! The vocabulary of the queue engine: a message going in, a message kept, a message coming out, a receipt handle.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

/// A message attribute's value, in the JSON protocol's form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MessageAttribute {
    /// `String`, `Number` or `Binary`, with an optional custom label after a dot.
    pub data_type: String,
    /// The value of a `String` or `Number`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string_value: Option<String>,
    /// The value of a `Binary`, as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_value: Option<String>,
}

impl MessageAttribute {
    /// A `String` attribute.
    #[must_use]
    pub fn string(value: &str) -> Self {
        Self { data_type: "String".to_owned(), string_value: Some(value.to_owned()), binary_value: None }
    }

    /// Bytes that the value itself takes.
    #[must_use]
    pub fn value_bytes(&self) -> Vec<u8> {
        match (&self.string_value, &self.binary_value) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(base64)) => STANDARD.decode(base64).unwrap_or_default(),
            (None, None) => Vec::new(),
        }
    }
}

/// Named attributes, in the order that MD5 needs.
pub type MessageAttributes = BTreeMap<String, MessageAttribute>;

/// What a producer hands in.
#[derive(Debug, Clone, Default)]
pub struct OutgoingMessage {
    /// The text; 1 byte up to the queue's `MaximumMessageSize`.
    pub body: String,
    /// Messages of one group are handed out in order, and one batch at a time.
    pub group_id: String,
    /// Absent: the SHA-256 of the body, if the queue has `ContentBasedDeduplication`.
    pub deduplication_id: Option<String>,
    /// The producer's own attributes.
    pub attributes: MessageAttributes,
    /// AWS X-Ray's header: the one system attribute that a producer may set.
    pub trace_header: Option<String>,
}

impl OutgoingMessage {
    /// A message with a body, a group and a deduplication id.
    #[must_use]
    pub fn new(group_id: &str, deduplication_id: &str, body: &str) -> Self {
        Self {
            body: body.to_owned(),
            group_id: group_id.to_owned(),
            deduplication_id: Some(deduplication_id.to_owned()),
            ..Self::default()
        }
    }

    /// Bytes that count against the limit: body, and names, types and values of the attributes. The trace header does
    /// not count (SQS developer guide, message system attributes).
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let attributes: usize = self
            .attributes
            .iter()
            .map(|(name, value)| name.len() + value.data_type.len() + value.value_bytes().len())
            .sum();
        self.body.len() + attributes
    }
}

/// What SQS answers to an accepted send. A duplicate gets the answer of the first copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendReceipt {
    /// The message's id.
    pub message_id: String,
    /// Its place in the queue, in SQS's 20 digits.
    pub sequence_number: String,
    /// True if nothing was added, because a copy came within the five minutes. SQS does not tell its callers.
    pub deduplicated: bool,
}

/// A message as the engine keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The engine's own running number: order in the queue.
    pub seq: u64,
    /// The id that callers see; kept when the message moves to a dead-letter queue.
    pub message_id: String,
    /// The text.
    pub body: Arc<str>,
    /// The group.
    pub group_id: String,
    /// The producer's id; in a dead-letter queue the message's id.
    pub deduplication_id: String,
    /// The producer's attributes.
    pub attributes: MessageAttributes,
    /// AWS X-Ray's header.
    pub trace_header: Option<String>,
    /// When it came into THIS queue, in ms since the epoch: a FIFO dead-letter queue starts anew.
    pub sent_ms: i64,
    /// First receive, in ms since the epoch.
    pub first_received_ms: Option<i64>,
    /// How often it was handed out.
    pub receive_count: u32,
    /// In flight until then, in ms since the epoch; absent: visible.
    pub invisible_until_ms: Option<i64>,
    /// ARN of the queue from which it was moved here.
    pub dead_letter_source: Option<String>,
}

/// A message as a consumer gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The message with its counts as of this receive.
    pub message: StoredMessage,
    /// Names this one receive of this message.
    pub receipt_handle: String,
}

impl StoredMessage {
    /// The sequence number in SQS's form: 20 digits, growing, with gaps.
    #[must_use]
    pub fn sequence_number(&self) -> String {
        sequence_number(self.seq)
    }

    /// SQS's system attributes, by name.
    #[must_use]
    pub fn system_attributes(&self) -> BTreeMap<&'static str, String> {
        let mut all = BTreeMap::from([
            ("SenderId", crate::ACCOUNT_ID.to_owned()),
            ("SentTimestamp", self.sent_ms.to_string()),
            ("ApproximateReceiveCount", self.receive_count.to_string()),
            ("MessageGroupId", self.group_id.clone()),
            ("MessageDeduplicationId", self.deduplication_id.clone()),
            ("SequenceNumber", self.sequence_number()),
        ]);
        if let Some(first) = self.first_received_ms {
            all.insert("ApproximateFirstReceiveTimestamp", first.to_string());
        }
        if let Some(header) = &self.trace_header {
            all.insert("AWSTraceHeader", header.clone());
        }
        if let Some(source) = &self.dead_letter_source {
            all.insert("DeadLetterQueueSourceArn", source.clone());
        }
        all
    }
}

/// SQS's numbers have 20 digits and are not consecutive: nobody may count with them.
pub(crate) fn sequence_number(seq: u64) -> String {
    format!("{:020}", 18_850_000_000_000_000_000_u128 + u128::from(seq) * 256)
}

/// A receipt handle: which message, and which receive of it. Opaque to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceiptHandle {
    pub(crate) seq: u64,
    pub(crate) receive_count: u32,
}

impl ReceiptHandle {
    pub(crate) fn encode(self, queue: &str) -> String {
        STANDARD.encode(format!("{queue} {} {}", self.seq, self.receive_count))
    }

    /// Absent if the text was never a handle of that queue.
    pub(crate) fn decode(queue: &str, text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let plain = String::from_utf8(bytes).ok()?;
        let rest = plain.strip_prefix(queue)?.strip_prefix(' ')?;
        let (seq, receive_count) = rest.split_once(' ')?;
        Some(Self { seq: seq.parse().ok()?, receive_count: receive_count.parse().ok()? })
    }
}

/// `MD5OfMessageBody`.
#[must_use]
pub fn md5_of_body(body: &str) -> String {
    to_hex(&Md5::digest(body.as_bytes()))
}

/// `MD5OfMessageAttributes`, by the algorithm in the SQS developer guide: by name, each of name, type and value
/// preceded by its length in four big-endian bytes, the value also by its kind (1 string, 2 binary). Absent for none.
#[must_use]
pub fn md5_of_attributes(attributes: &MessageAttributes) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut hasher = Md5::new();
    let mut sized = |bytes: &[u8], kind: Option<u8>| {
        if let Some(kind) = kind {
            hasher.update([kind]);
        }
        hasher.update(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
        hasher.update(bytes);
    };
    for (name, value) in attributes {
        sized(name.as_bytes(), None);
        sized(value.data_type.as_bytes(), None);
        let kind = if value.string_value.is_some() { 1 } else { 2 };
        sized(&value.value_bytes(), Some(kind));
    }
    Some(to_hex(&hasher.finalize()))
}

/// Lower-case hex.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn md5_of_body_is_that_of_rfc_1321() {
        // RFC 1321, appendix A.5.
        assert_eq!(md5_of_body("abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(md5_of_body(""), "d41d8cd98f00b204e9800998ecf8427e");
    }

    #[test]
    fn no_attributes_have_no_digest() {
        assert_eq!(md5_of_attributes(&MessageAttributes::new()), None);
    }

    #[test]
    fn a_receipt_handle_belongs_to_one_queue() {
        let handle = ReceiptHandle { seq: 7, receive_count: 2 };
        let text = handle.encode("jobs.fifo");
        assert_eq!(ReceiptHandle::decode("jobs.fifo", &text), Some(handle));
        assert_eq!(ReceiptHandle::decode("billing.fifo", &text), None);
        assert_eq!(ReceiptHandle::decode("jobs.fifo", "nonsense"), None);
    }

    #[test]
    fn sequence_numbers_have_twenty_digits_and_grow_as_text() {
        let (a, b) = (sequence_number(1), sequence_number(2));
        assert_eq!(a.len(), 20);
        assert!(a < b);
    }

    #[test]
    fn the_size_counts_names_types_and_values_but_not_the_trace_header() {
        let mut message = OutgoingMessage::new("g", "d", "12345");
        message.attributes.insert("abc".to_owned(), MessageAttribute::string("xy"));
        message.trace_header = Some("Root=1-5759e988-bd862e3fe1be46a994272793".to_owned());
        // 5 (body) + 3 (name) + 6 ("String") + 2 (value)
        assert_eq!(message.size_bytes(), 16);
    }
}
