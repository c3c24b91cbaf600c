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

/// Visibility timeout of the reconciler's queue in seconds: six times its function's timeout of 120 s.
pub const RECONCILE_VISIBILITY_S: u32 = 720;

/// Name of the reconciler's queue under a prefix.
pub fn reconcile_queue_name(prefix: &str) -> String {
    format!("{prefix}-reconcile.fifo")
}

/// Name of its dead-letter queue.
pub fn reconcile_dead_letter_name(prefix: &str) -> String {
    format!("{prefix}-reconcile-dlq.fifo")
}

/// Name of a consumer's queue under a prefix.
pub fn queue_name(prefix: &str, consumer: Consumer) -> String {
    format!("{prefix}-{consumer}.fifo")
}

/// Name of its dead-letter queue.
pub fn dead_letter_name(prefix: &str, consumer: Consumer) -> String {
    format!("{prefix}-{consumer}-dlq.fifo")
}

/// Attributes of every queue: FIFO, deduplication and throughput per group.
fn fifo(retention_s: u32, visibility_s: u32) -> BTreeMap<Name, String> {
    BTreeMap::from([
        (Name::FifoQueue, "true".to_owned()),
        (Name::DeduplicationScope, "messageGroup".to_owned()),
        (Name::FifoThroughputLimit, "perMessageGroupId".to_owned()),
        (Name::VisibilityTimeout, visibility_s.to_string()),
        (Name::MessageRetentionPeriod, retention_s.to_string()),
    ])
}

async fn create(client: &Client, name: &str, attributes: BTreeMap<Name, String>) -> Result<String, QueueError> {
    let output =
        client.create_queue().queue_name(name).set_attributes(Some(attributes.into_iter().collect())).send().await;
    let output = output.map_err(|error| queue_error("create queue", &error))?;
    output.queue_url.ok_or_else(|| QueueError::refusal("create queue", "no URL in the answer"))
}

async fn create_pair(client: &Client, name: &str, dead: &str, visibility_s: u32) -> Result<String, QueueError> {
    let dead = create(client, dead, fifo(DLQ_RETENTION_S, visibility_s)).await?;
    let asked = client.get_queue_attributes().queue_url(dead).attribute_names(Name::QueueArn).send().await;
    let asked = asked.map_err(|error| queue_error("get queue attributes", &error))?;
    let arn = asked.attributes.and_then(|mut all| all.remove(&Name::QueueArn)).unwrap_or_default();
    let mut attributes = fifo(RETENTION_S, visibility_s);
    let redrive = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{MAX_RECEIVE_COUNT}}}"#);
    attributes.insert(Name::RedrivePolicy, redrive);
    create(client, name, attributes).await
}

/// Creates the queues that do not exist, for local stacks. A deployment's template creates its own.
///
/// # Errors
/// [`QueueError`] when a queue cannot be created.
pub async fn create_queues(client: &Client, prefix: &str) -> Result<QueueUrls, QueueError> {
    let consumer = async |consumer| {
        create_pair(client, &queue_name(prefix, consumer), &dead_letter_name(prefix, consumer), VISIBILITY_S).await
    };
    let (job, billing) = (consumer(Consumer::Job).await?, consumer(Consumer::Billing).await?);
    let (name, dead) = (reconcile_queue_name(prefix), reconcile_dead_letter_name(prefix));
    let outbound = consumer(Consumer::Outbound).await?;
    let reconcile = create_pair(client, &name, &dead, RECONCILE_VISIBILITY_S).await?;
    Ok(QueueUrls { job, billing, outbound, reconcile })
}
