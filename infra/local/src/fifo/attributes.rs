//! A queue's settings, read from and shown in SQS's form (a map of strings), with AWS's defaults and limits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::QueueError;

/// Longest visibility timeout: 12 hours (SQS quotas).
pub const MAX_VISIBILITY_S: i64 = 43_200;
/// SQS allows 1 MiB today; it is the most that a queue's `MaximumMessageSize` can be set to, and the most that the
/// messages of one batch may have together.
pub const MAX_MESSAGE_BYTES: usize = 1_048_576;
/// The default of `MaximumMessageSize` here: 256 KiB, the older and stricter limit. hookledger's messages carry keys
/// and no payload, so a message that needs more is a defect worth finding locally.
pub const DEFAULT_MESSAGE_BYTES: usize = 262_144;

/// Where messages go that were received too often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedrivePolicy {
    /// ARN of the dead-letter queue, which must be FIFO too.
    #[serde(rename = "deadLetterTargetArn")]
    pub dead_letter_target_arn: String,
    /// A message that was received this often is moved instead of received again: 1 to 1,000.
    #[serde(rename = "maxReceiveCount", deserialize_with = "number_or_text")]
    pub max_receive_count: u32,
}

/// AWS takes `"maxReceiveCount": 5` and `"maxReceiveCount": "5"`.
fn number_or_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    use serde::de::Error as _;
    let text = match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    text.parse().map_err(|_| D::Error::custom("maxReceiveCount is not a whole number"))
}

impl RedrivePolicy {
    /// Name of the dead-letter queue: the last part of its ARN.
    #[must_use]
    pub fn queue_name(&self) -> &str {
        let arn = &self.dead_letter_target_arn;
        arn.rsplit_once(':').map_or(arn.as_str(), |(_, name)| name)
    }
}

/// The settings of one FIFO queue. Durations in seconds, as SQS counts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueAttributes {
    /// How long a received message stays invisible: 0 to 43,200 s.
    pub visibility_timeout_s: i64,
    /// How long a message is kept: 60 s to 14 days.
    pub retention_s: i64,
    /// Longest message in bytes: 1,024 to 1,048,576.
    pub maximum_message_bytes: usize,
    /// How long a receive waits for a message: 0 to 20 s.
    pub receive_wait_s: i64,
    /// A message without deduplication id gets the SHA-256 of its body.
    pub content_based_deduplication: bool,
    /// `DeduplicationScope`: per message group instead of per queue.
    pub deduplicate_per_group: bool,
    /// The dead-letter queue, if any.
    pub redrive: Option<RedrivePolicy>,
    /// Settings that are kept and shown and have no effect here (encryption, policies, throughput limits).
    pub inert: BTreeMap<String, String>,
}

impl Default for QueueAttributes {
    fn default() -> Self {
        Self {
            visibility_timeout_s: 30,
            retention_s: 345_600,
            maximum_message_bytes: DEFAULT_MESSAGE_BYTES,
            receive_wait_s: 0,
            content_based_deduplication: false,
            deduplicate_per_group: false,
            redrive: None,
            inert: BTreeMap::new(),
        }
    }
}

/// Settings that AWS has and that change nothing in one process.
const INERT: [&str; 7] = [
    "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "Policy",
    "RedriveAllowPolicy",
    "SqsManagedSseEnabled",
    "DelaySeconds",
];

impl QueueAttributes {
    /// Sets one attribute from SQS's text form. `FifoQueue` is fixed at creation and ignored here.
    ///
    /// # Errors
    /// [`QueueError::InvalidAttributeName`] or [`QueueError::InvalidAttributeValue`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), QueueError> {
        let number = |min: i64, max: i64| {
            value
                .parse::<i64>()
                .ok()
                .filter(|number| (min..=max).contains(number))
                .ok_or_else(|| QueueError::InvalidAttributeValue(name.to_owned()))
        };
        match name {
            "VisibilityTimeout" => self.visibility_timeout_s = number(0, MAX_VISIBILITY_S)?,
            "MessageRetentionPeriod" => self.retention_s = number(60, 1_209_600)?,
            "ReceiveMessageWaitTimeSeconds" => self.receive_wait_s = number(0, 20)?,
            "MaximumMessageSize" => {
                self.maximum_message_bytes =
                    usize::try_from(number(1_024, 1_048_576)?).unwrap_or(DEFAULT_MESSAGE_BYTES);
            }
            "ContentBasedDeduplication" => {
                self.content_based_deduplication = one_of(name, value, ["false", "true"])?;
            }
            "DeduplicationScope" => {
                self.deduplicate_per_group = one_of(name, value, ["queue", "messageGroup"])?;
            }
            "RedrivePolicy" => self.redrive = redrive(value)?,
            "FifoQueue" => {
                one_of(name, value, ["false", "true"])?;
            }
            name if INERT.contains(&name) => {
                self.inert.insert(name.to_owned(), value.to_owned());
            }
            name => return Err(QueueError::InvalidAttributeName(name.to_owned())),
        }
        Ok(())
    }

    /// The settings in SQS's text form; the counters are the engine's to add.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let scope = if self.deduplicate_per_group { "messageGroup" } else { "queue" };
        let mut map = BTreeMap::from([
            ("FifoQueue".to_owned(), "true".to_owned()),
            ("VisibilityTimeout".to_owned(), self.visibility_timeout_s.to_string()),
            ("MessageRetentionPeriod".to_owned(), self.retention_s.to_string()),
            ("MaximumMessageSize".to_owned(), self.maximum_message_bytes.to_string()),
            ("ReceiveMessageWaitTimeSeconds".to_owned(), self.receive_wait_s.to_string()),
            ("ContentBasedDeduplication".to_owned(), self.content_based_deduplication.to_string()),
            ("DeduplicationScope".to_owned(), scope.to_owned()),
            ("DelaySeconds".to_owned(), "0".to_owned()),
        ]);
        map.extend(self.inert.clone());
        if let Some(text) = self.redrive.as_ref().and_then(|redrive| serde_json::to_string(redrive).ok()) {
            map.insert("RedrivePolicy".to_owned(), text);
        }
        map
    }
}

/// Whether `value` is the second of the two allowed words.
fn one_of(name: &str, value: &str, words: [&str; 2]) -> Result<bool, QueueError> {
    match value {
        v if v == words[0] => Ok(false),
        v if v == words[1] => Ok(true),
        _ => Err(QueueError::InvalidAttributeValue(name.to_owned())),
    }
}

/// Empty text removes the policy.
fn redrive(value: &str) -> Result<Option<RedrivePolicy>, QueueError> {
    if value.is_empty() {
        return Ok(None);
    }
    serde_json::from_str::<RedrivePolicy>(value)
        .ok()
        .filter(|policy| (1..=1_000).contains(&policy.max_receive_count))
        .filter(|policy| policy.queue_name().ends_with(".fifo"))
        .map(Some)
        .ok_or_else(|| QueueError::InvalidAttributeValue("RedrivePolicy".to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_redrive_policy_takes_its_count_as_number_and_as_text() {
        for count in ["5", "\"5\""] {
            let mut attributes = QueueAttributes::default();
            let policy = format!(
                r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","maxReceiveCount":{count}}}"#
            );
            attributes.set("RedrivePolicy", &policy).unwrap();
            let redrive = attributes.redrive.unwrap();
            assert_eq!(redrive.max_receive_count, 5);
            assert_eq!(redrive.queue_name(), "dead.fifo");
        }
    }

    #[test]
    fn values_outside_of_aws_limits_are_refused() {
        let dead = "arn:aws:sqs:us-east-1:000000000000:dead.fifo";
        let standard = "arn:aws:sqs:us-east-1:000000000000:dead";
        for (name, value) in [
            ("VisibilityTimeout", "43201".to_owned()),
            ("VisibilityTimeout", "-1".to_owned()),
            ("MessageRetentionPeriod", "59".to_owned()),
            ("MaximumMessageSize", "1048577".to_owned()),
            ("ContentBasedDeduplication", "yes".to_owned()),
            ("RedrivePolicy", format!(r#"{{"deadLetterTargetArn":"{dead}","maxReceiveCount":5000}}"#)),
            ("RedrivePolicy", format!(r#"{{"deadLetterTargetArn":"{standard}","maxReceiveCount":5}}"#)),
        ] {
            let refused = QueueAttributes::default().set(name, &value);
            assert_eq!(refused, Err(QueueError::InvalidAttributeValue(name.to_owned())), "{name} = {value}");
        }
        assert_eq!(
            QueueAttributes::default().set("Visibility", "1"),
            Err(QueueError::InvalidAttributeName("Visibility".to_owned()))
        );
    }

    #[test]
    fn what_was_set_is_shown() {
        let mut attributes = QueueAttributes::default();
        attributes.set("VisibilityTimeout", "180").unwrap();
        attributes.set("DeduplicationScope", "messageGroup").unwrap();
        let shown = attributes.to_map();
        assert_eq!(shown["VisibilityTimeout"], "180");
        assert_eq!(shown["DeduplicationScope"], "messageGroup");
        assert_eq!(shown["FifoQueue"], "true");
        assert_eq!(shown["MessageRetentionPeriod"], "345600");
    }
}
