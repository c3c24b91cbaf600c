//! What SQS refuses before it looks at a queue's messages: names, ids, bodies and attributes out of its limits.

use super::attributes::QueueAttributes;
use super::error::QueueError;
use super::message::{MessageAttribute, OutgoingMessage};

/// Group and deduplication ids, and message attributes' count: SQS quotas for messages.
const MAX_ID_CHARS: usize = 128;
const MAX_ATTRIBUTES: usize = 10;
const MAX_QUEUE_NAME_CHARS: usize = 80;

fn invalid(text: &str) -> QueueError {
    QueueError::InvalidParameterValue(text.to_owned())
}

/// `[A-Za-z0-9_-]` up to 80 characters, `.fifo` included: only FIFO queues exist here.
pub(crate) fn queue_name(name: &str) -> Result<(), QueueError> {
    let stem = name
        .strip_suffix(".fifo")
        .ok_or_else(|| invalid("The embedded SQS has FIFO queues only: the name must end in .fifo."))?;
    let good = !stem.is_empty()
        && name.len() <= MAX_QUEUE_NAME_CHARS
        && stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    good.then_some(()).ok_or_else(|| {
        invalid("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
    })
}

/// Everything about a message that its queue's settings decide.
pub(crate) fn message(message: &OutgoingMessage, attributes: &QueueAttributes) -> Result<(), QueueError> {
    if message.body.is_empty() {
        return Err(QueueError::MissingParameter("MessageBody".to_owned()));
    }
    if !message.body.chars().all(allowed) {
        return Err(QueueError::InvalidMessageContents);
    }
    let limit = attributes.maximum_message_bytes;
    if message.size_bytes() > limit {
        return Err(QueueError::InvalidParameterValue(format!(
            "One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."
        )));
    }
    if message.group_id.is_empty() {
        return Err(QueueError::MissingParameter("MessageGroupId".to_owned()));
    }
    id("MessageGroupId", &message.group_id)?;
    if let Some(deduplication_id) = &message.deduplication_id {
        id("MessageDeduplicationId", deduplication_id)?;
    }
    if message.attributes.len() > MAX_ATTRIBUTES {
        return Err(invalid("Number of message attributes exceeds the allowed maximum [10]."));
    }
    message.attributes.iter().try_for_each(|(name, value)| attribute(name, value))
}

/// XML 1.0's characters (SQS quotas, message content).
fn allowed(character: char) -> bool {
    matches!(character,
        '\u{9}' | '\u{a}' | '\u{d}' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// Up to 128 ASCII letters, digits and punctuation.
fn id(parameter: &str, value: &str) -> Result<(), QueueError> {
    let good = (1..=MAX_ID_CHARS).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_graphic());
    good.then_some(()).ok_or_else(|| {
        QueueError::InvalidParameterValue(format!(
            "Value for parameter {parameter} is invalid. Reason: {parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length."
        ))
    })
}

fn attribute(name: &str, value: &MessageAttribute) -> Result<(), QueueError> {
    let kind = value.data_type.split('.').next().unwrap_or_default();
    let fits = match kind {
        "String" | "Number" => value.string_value.as_deref().is_some_and(|v| !v.is_empty()),
        "Binary" => value.binary_value.as_deref().is_some_and(|v| !v.is_empty()),
        _ => false,
    };
    let named = !name.is_empty()
        && name.len() <= 256
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    (fits && named).then_some(()).ok_or_else(|| {
        QueueError::InvalidParameterValue(format!(
            "The message attribute '{name}' must have a name of letters, digits, underscore, hyphen and period, a type String, Number or Binary, and a value that is not empty."
        ))
    })
}
