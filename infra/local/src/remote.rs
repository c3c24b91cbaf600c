//! An event source over a real SQS endpoint: long polls with the SDK, calls the handler with Lambda's
//! event, deletes what it did not report failed. For `dev --endpoint`, where no Lambda polls.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as Name};
use serde_json::{Value, json};

use crate::lambda::{Handler, Stop, invoke, stopped};

/// Long poll, in seconds; the most SQS has.
const WAIT_S: i32 = 20;
/// Pause after an error of the endpoint.
const PAUSE: Duration = Duration::from_secs(2);

/// One queue and its consumer.
#[derive(Clone)]
pub struct RemotePoller {
    client: Client,
    queue: String,
    handler: Handler,
    timeout: Duration,
}

impl RemotePoller {
    /// A poller of a queue by its name.
    pub fn new(client: Client, queue: String, handler: Handler, timeout: Duration) -> Self {
        Self { client, queue, handler, timeout }
    }

    /// Polls until the stop is given.
    pub async fn run(self, mut stop: Stop) {
        loop {
            let polled = tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                polled = self.poll() => polled,
            };
            if let Err(problem) = polled {
                tracing::warn!(queue = %self.queue, problem, "polling failed; again in a moment");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn poll(&self) -> Result<(), &'static str> {
        let url = self.client.get_queue_url().queue_name(&self.queue).send().await.map_err(|_| "no such queue")?;
        let url = url.queue_url.ok_or("no queue URL in the answer")?;
        let receive = self
            .client
            .receive_message()
            .queue_url(&url)
            .max_number_of_messages(10)
            .wait_time_seconds(WAIT_S)
            .message_system_attribute_names(Name::All)
            .customize()
            .config_override(long_poll());
        let messages = receive.send().await.map_err(|_| "receive failed")?.messages.unwrap_or_default();
        if messages.is_empty() {
            return Ok(());
        }
        let records: Vec<Value> = messages.iter().map(record).collect();
        let answer = invoke(&self.handler, json!({ "Records": records }), self.timeout).await;
        let answer = answer.map_err(|_| "the function failed; its messages come back")?;
        let failed: Vec<&str> = answer["batchItemFailures"]
            .as_array()
            .map(|all| all.iter().filter_map(|one| one["itemIdentifier"].as_str()).collect())
            .unwrap_or_default();
        for message in messages.iter().filter(|m| !failed.contains(&m.message_id().unwrap_or_default())) {
            let delete = self
                .client
                .delete_message()
                .queue_url(&url)
                .receipt_handle(message.receipt_handle().unwrap_or_default());
            delete.send().await.map_err(|_| "a handled message could not be deleted and will come again")?;
        }
        Ok(())
    }
}

/// A long poll outlasts the usual timeout of one try.
fn long_poll() -> aws_sdk_sqs::config::Builder {
    let limit = Duration::from_secs(u64::from(WAIT_S.unsigned_abs()) + 5);
    let timeouts = aws_sdk_sqs::config::timeout::TimeoutConfig::builder()
        .operation_attempt_timeout(limit)
        .operation_timeout(limit * 2)
        .build();
    aws_sdk_sqs::Config::builder().timeout_config(timeouts)
}

fn record(message: &Message) -> Value {
    let attribute = |name: Name| message.attributes().and_then(|all| all.get(&name)).cloned().unwrap_or_default();
    json!({
        "messageId": message.message_id().unwrap_or_default(),
        "receiptHandle": message.receipt_handle().unwrap_or_default(),
        "body": message.body().unwrap_or_default(),
        "attributes": {
            "MessageGroupId": attribute(Name::MessageGroupId),
            "ApproximateReceiveCount": attribute(Name::ApproximateReceiveCount),
        },
        "eventSource": "aws:sqs",
    })
}
