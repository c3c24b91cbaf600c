//! The queues, defined once: local stacks create them from here, and a test compares the template.

use std::collections::BTreeMap;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName as Name;
use domain::operation::Consumer;

use crate::{QueueError, QueueUrls, queue_error};

/// Visibility timeout in seconds: six times the consumers' function timeout of 30 s, as AWS advises.
pub const VISIBILITY_S: u32 = 180;
/// Receives before a message moves to the dead-letter queue. High, because throttled invocations
/// raise it too; our own attempt counter decides (SQS-08).
pub const MAX_RECEIVE_COUNT: u32 = 100;
/// Retention of the consumers' queues in seconds: 4 days.
pub const RETENTION_S: u32 = 4 * 86_400;
/// Retention of the dead-letter queues in seconds: 14 days, the most SQS has.
pub const DLQ_RETENTION_S: u32 = 14 * 86_400;

/// Name of a consumer's queue under a prefix.
pub fn queue_name(prefix: &str, consumer: Consumer) -> String {
    format!("{prefix}-{consumer}.fifo")
}

/// Name of its dead-letter queue.
pub fn dead_letter_name(prefix: &str, consumer: Consumer) -> String {
    format!("{prefix}-{consumer}-dlq.fifo")
}

/// Attributes of every queue: FIFO, deduplication and throughput per group.
fn fifo(retention_s: u32) -> BTreeMap<Name, String> {
    BTreeMap::from([
        (Name::FifoQueue, "true".to_owned()),
        (Name::DeduplicationScope, "messageGroup".to_owned()),
        (Name::FifoThroughputLimit, "perMessageGroupId".to_owned()),
        (Name::VisibilityTimeout, VISIBILITY_S.to_string()),
        (Name::MessageRetentionPeriod, retention_s.to_string()),
    ])
}

async fn create(client: &Client, name: &str, attributes: BTreeMap<Name, String>) -> Result<String, QueueError> {
    let output =
        client.create_queue().queue_name(name).set_attributes(Some(attributes.into_iter().collect())).send().await;
    let output = output.map_err(|error| queue_error("create queue", &error))?;
    output.queue_url.ok_or_else(|| QueueError::refusal("create queue", "no URL in the answer"))
}

async fn create_pair(client: &Client, prefix: &str, consumer: Consumer) -> Result<String, QueueError> {
    let dead = create(client, &dead_letter_name(prefix, consumer), fifo(DLQ_RETENTION_S)).await?;
    let asked = client.get_queue_attributes().queue_url(dead).attribute_names(Name::QueueArn).send().await;
    let asked = asked.map_err(|error| queue_error("get queue attributes", &error))?;
    let arn = asked.attributes.and_then(|mut all| all.remove(&Name::QueueArn)).unwrap_or_default();
    let mut attributes = fifo(RETENTION_S);
    let redrive = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{MAX_RECEIVE_COUNT}}}"#);
    attributes.insert(Name::RedrivePolicy, redrive);
    create(client, &queue_name(prefix, consumer), attributes).await
}

/// Creates the queues that do not exist, for local stacks. A deployment's template creates its own.
///
/// # Errors
/// [`QueueError`] when a queue cannot be created.
pub async fn create_queues(client: &Client, prefix: &str) -> Result<QueueUrls, QueueError> {
    let job = create_pair(client, prefix, Consumer::Job).await?;
    let billing = create_pair(client, prefix, Consumer::Billing).await?;
    let outbound = create_pair(client, prefix, Consumer::Outbound).await?;
    Ok(QueueUrls { job, billing, outbound })
}
