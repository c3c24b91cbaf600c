//! The event source mapping: what Lambda's pollers do between a FIFO queue and a function.
//!
//! A batch of at most ten is received, handed to the handler as Lambda's SQS event, and deleted but for the failures
//! that the handler names (`ReportBatchItemFailures` is on). What failed stays invisible until its visibility timeout
//! is over, and with it its group. No more is received than can be run at once (CASES SQS-08), and one group is never
//! in two batches, because the queue hands out nothing of a group in flight. Not modelled: Lambda's back-off after
//! failed invocations.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::fifo::message::{MessageAttribute, md5_of_body};
use crate::fifo::{QueueEngine, QueueError, ReceivedMessage};
use crate::lambda::{Handler, Stop, invoke, stopped};

/// The settings of one event source mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollerConfig {
    /// The queue's name.
    pub queue: String,
    /// Most messages per invocation: 1 to 10 on FIFO queues.
    pub batch_size: usize,
    /// How long one invocation may run. The queue's visibility timeout should be six times as long.
    pub function_timeout: Duration,
    /// How many invocations may run at once (the mapping's maximum concurrency).
    pub concurrency: usize,
}

/// One event source mapping.
#[derive(Clone)]
pub struct Poller {
    engine: Arc<QueueEngine>,
    config: Arc<PollerConfig>,
    handler: Handler,
}

impl Poller {
    /// A poller that does nothing until [`Poller::run`] or [`Poller::poll_once`].
    #[must_use]
    pub fn new(engine: Arc<QueueEngine>, config: PollerConfig, handler: Handler) -> Self {
        Self { engine, config: Arc::new(config), handler }
    }

    /// One receive and, if there was something, one invocation: the step of a deterministic test. Returns how many
    /// messages the handler was given.
    ///
    /// # Errors
    /// [`QueueError`] of the receive.
    pub async fn poll_once(&self) -> Result<usize, QueueError> {
        let batch = self.receive()?;
        let count = batch.len();
        if count > 0 {
            self.handle(batch).await;
        }
        Ok(count)
    }

    /// Polls until the stop is given, then waits for the invocations that run.
    ///
    /// # Errors
    /// [`QueueError`] if the queue is absent or its file fails.
    pub async fn run(&self, mut stop: Stop) -> Result<(), QueueError> {
        let permits = Arc::new(Semaphore::new(self.config.concurrency.max(1)));
        let mut running = JoinSet::new();
        let result = loop {
            while running.try_join_next().is_some() {}
            let next = tokio::select! {
                biased;
                () = stopped(&mut stop) => break Ok(()),
                next = self.next_batch(&permits) => next,
            };
            match next {
                Err(error) => break Err(error),
                Ok(None) => {}
                Ok(Some((permit, batch))) => {
                    let poller = self.clone();
                    running.spawn(async move {
                        poller.handle(batch).await;
                        drop(permit);
                    });
                }
            }
        };
        while running.join_next().await.is_some() {}
        result
    }

    /// Waits for a free place, then for a message, and receives: in that order, so that nothing is received that has to
    /// wait for its run. Nothing is received before the last await, so that dropping this loses nothing.
    async fn next_batch(
        &self, permits: &Arc<Semaphore>,
    ) -> Result<Option<(tokio::sync::OwnedSemaphorePermit, Vec<ReceivedMessage>)>, QueueError> {
        let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
            return Ok(None);
        };
        self.engine.wait_for_message(&self.config.queue).await?;
        let batch = self.receive()?;
        Ok((!batch.is_empty()).then_some((permit, batch)))
    }

    fn receive(&self) -> Result<Vec<ReceivedMessage>, QueueError> {
        self.engine.receive(&self.config.queue, self.config.batch_size, None)
    }

    async fn handle(&self, batch: Vec<ReceivedMessage>) {
        let queue = &self.config.queue;
        let event = sqs_event(queue, &batch);
        let answer = invoke(&self.handler, event, self.config.function_timeout).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(queue, messages = batch.len(), %error, "invocation failed; its messages stay hidden until their visibility timeout is over");
                return;
            }
        };
        let Some(failed) = failures(&answer, &batch) else {
            tracing::warn!(
                queue,
                messages = batch.len(),
                "the function's answer is not a valid batch response; the whole batch counts as failed"
            );
            return;
        };
        for received in &batch {
            if failed.contains(received.message.message_id.as_str()) {
                continue;
            }
            if let Err(error) = self.engine.delete(queue, &received.receipt_handle) {
                tracing::warn!(queue, message_id = received.message.message_id, %error, "a handled message could not be deleted and will be delivered again");
            }
        }
    }
}

/// The ids that failed, or nothing if the answer makes the whole batch a failure.
///
/// Lambda developer guide, "Success and failure conditions": a null or empty answer, and a null or empty list, mean
/// that all succeeded; an invalid answer, an empty, null or missing `itemIdentifier`, or one that is not in the batch
/// mean that all failed.
fn failures<'a>(answer: &'a Value, batch: &[ReceivedMessage]) -> Option<BTreeSet<&'a str>> {
    let list = match answer {
        Value::Null => return Some(BTreeSet::new()),
        Value::Object(fields) => fields.get("batchItemFailures"),
        _ => return None,
    };
    let list = match list {
        None | Some(Value::Null) => return Some(BTreeSet::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return None,
    };
    list.iter()
        .map(|entry| {
            let id = entry.get("itemIdentifier")?.as_str()?;
            let known = batch.iter().any(|m| m.message.message_id == id);
            known.then_some(id)
        })
        .collect()
}

/// Lambda's event for a batch of SQS messages.
#[must_use]
pub fn sqs_event(queue: &str, batch: &[ReceivedMessage]) -> Value {
    let records: Vec<Value> = batch
        .iter()
        .map(|received| {
            let message = &received.message;
            let attributes: Map<String, Value> =
                message.attributes.iter().map(|(name, value)| (name.clone(), attribute(value))).collect();
            json!({
                "messageId": message.message_id,
                "receiptHandle": received.receipt_handle,
                "body": &*message.body,
                "attributes": message.system_attributes(),
                "messageAttributes": attributes,
                "md5OfBody": md5_of_body(&message.body),
                "eventSource": "aws:sqs",
                "eventSourceARN": crate::queue_arn(queue),
                "awsRegion": crate::REGION,
            })
        })
        .collect();
    json!({ "Records": records })
}

/// Lambda spells attributes in camel case, and lists that are always empty.
fn attribute(value: &MessageAttribute) -> Value {
    let mut fields = Map::new();
    if let Some(text) = &value.string_value {
        fields.insert("stringValue".to_owned(), json!(text));
    }
    if let Some(base64) = &value.binary_value {
        fields.insert("binaryValue".to_owned(), json!(base64));
    }
    fields.insert("stringListValues".to_owned(), json!([]));
    fields.insert("binaryListValues".to_owned(), json!([]));
    fields.insert("dataType".to_owned(), json!(value.data_type));
    Value::Object(fields)
}

#[cfg(test)]
#[path = "poller_tests.rs"]
mod tests;
