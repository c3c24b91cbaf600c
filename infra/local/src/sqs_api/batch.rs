//! The batch operations: every entry has its own outcome, and the call itself is a 200 even if all failed.
//!
//! Only a batch that is wrong as a whole (empty, more than ten, repeated or bad ids, too long) is an error.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::digests;
use super::shapes::Body;
use crate::fifo::attributes::MAX_MESSAGE_BYTES;
use crate::fifo::engine::MAX_BATCH;
use crate::fifo::{QueueEngine, QueueError};

pub(crate) fn send(engine: &QueueEngine, body: &Body) -> Result<Value, QueueError> {
    let entries = entries(body, "SendMessageBatchRequestEntry")?;
    let sent: usize =
        entries.iter().filter_map(|entry| entry.outgoing_message().ok()).map(|message| message.size_bytes()).sum();
    if sent > MAX_MESSAGE_BYTES {
        let limit = MAX_MESSAGE_BYTES;
        return Err(QueueError::BatchRequestTooLong { limit, sent });
    }
    each(engine, body, &entries, |queue, entry| {
        let message = entry.outgoing_message()?;
        let mut fields = digests(&message);
        let receipt = engine.send(queue, message)?;
        fields.insert("MessageId".to_owned(), receipt.message_id.into());
        fields.insert("SequenceNumber".to_owned(), receipt.sequence_number.into());
        Ok(fields)
    })
}

pub(crate) fn delete(engine: &QueueEngine, body: &Body) -> Result<Value, QueueError> {
    let entries = entries(body, "DeleteMessageBatchRequestEntry")?;
    each(engine, body, &entries, |queue, entry| {
        engine.delete(queue, entry.text("ReceiptHandle")?)?;
        Ok(Map::new())
    })
}

pub(crate) fn change_visibility(engine: &QueueEngine, body: &Body) -> Result<Value, QueueError> {
    let entries = entries(body, "ChangeMessageVisibilityBatchRequestEntry")?;
    each(engine, body, &entries, |queue, entry| {
        let seconds = entry.required_number("VisibilityTimeout")?;
        engine.change_visibility(queue, entry.text("ReceiptHandle")?, seconds)?;
        Ok(Map::new())
    })
}

/// The entries, once they are one to ten with distinct ids of SQS's form.
fn entries(body: &Body, kind: &'static str) -> Result<Vec<Body>, QueueError> {
    let entries = body.entries()?;
    if entries.is_empty() {
        return Err(QueueError::EmptyBatchRequest(kind));
    }
    if entries.len() > MAX_BATCH {
        return Err(QueueError::TooManyEntries(entries.len()));
    }
    let mut seen = BTreeSet::new();
    for entry in &entries {
        let id = entry.text("Id")?;
        let good = (1..=80).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if !good {
            return Err(QueueError::InvalidBatchEntryId);
        }
        if !seen.insert(id) {
            return Err(QueueError::BatchEntryIdsNotDistinct(id.to_owned()));
        }
    }
    Ok(entries)
}

fn each(
    engine: &QueueEngine, body: &Body, entries: &[Body],
    act: impl Fn(&str, &Body) -> Result<Map<String, Value>, QueueError>,
) -> Result<Value, QueueError> {
    let queue = body.queue()?;
    // An absent queue fails the call, not each entry.
    engine.attributes(&queue)?;
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for entry in entries {
        let id = entry.text("Id")?;
        match act(&queue, entry) {
            Ok(mut fields) => {
                fields.insert("Id".to_owned(), id.into());
                successful.push(Value::Object(fields));
            }
            Err(error) => failed.push(json!({
                "Id": id,
                "Code": error.batch_code(),
                "Message": error.to_string(),
                "SenderFault": error.is_sender_fault(),
            })),
        }
    }
    Ok(json!({ "Successful": successful, "Failed": failed }))
}
