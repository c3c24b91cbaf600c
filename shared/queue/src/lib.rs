//! The only room that speaks SQS: sends dispatches, and defines the queues for local stacks. It also sends
//! what leaves the system, to an SQS queue or an EventBridge bus.
//!
//! FIFO queues, grouped by job and by wallet. The deduplication id is the operation and its
//! generation, so that a double send within five minutes is one message and a retry never vanishes.

#[cfg(feature = "bus")]
mod bus;
mod definition;
mod forward;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{MessageSystemAttributeNameForSends, MessageSystemAttributeValue};
use domain::message::Message;
use domain::operation::Consumer;
use domain::reconcile::PartMessage;

#[cfg(feature = "bus")]
pub use bus::{DETAIL_TYPE, SOURCE};
pub use definition::{
    DLQ_RETENTION_S, MAX_RECEIVE_COUNT, RECONCILE_VISIBILITY_S, RETENTION_S, VISIBILITY_S, create_queues,
    dead_letter_name, queue_name, reconcile_dead_letter_name, reconcile_queue_name,
};
pub use forward::KEY_ATTRIBUTE;

/// Why a send is not certain. The receipt is durable, so the relay sends what is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {reason}")]
pub struct QueueError {
    /// The call.
    pub operation: &'static str,
    /// SQS's error code, or the kind of failure; never the message.
    pub reason: String,
    /// True when SQS refused the request: the queue is not there, the right is missing, or the message is
    /// not one that it takes.
    pub refused: bool,
}

impl QueueError {
    fn refusal(operation: &'static str, reason: &str) -> Self {
        Self { operation, reason: reason.to_owned(), refused: true }
    }
}

/// Codes of SQS and EventBridge that ask to come back later, though their status is 400.
const BUSY: [&str; 4] = ["ThrottlingException", "RequestThrottled", "KmsThrottled", "OverLimit"];

fn queue_error<E: ProvideErrorMetadata>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> QueueError {
    let refused = error.as_service_error().is_some_and(|e| !BUSY.contains(&e.code().unwrap_or_default()))
        && error.raw_response().is_some_and(|raw| raw.status().is_client_error());
    let reason = match error {
        SdkError::TimeoutError(_) => "timeout".to_owned(),
        SdkError::DispatchFailure(_) => "connection".to_owned(),
        SdkError::ServiceError(service) => service.err().code().unwrap_or("unknown").to_owned(),
        _ => "no usable answer".to_owned(),
    };
    QueueError { operation, reason, refused }
}

/// URLs of the consumers' queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueUrls {
    /// Job queue.
    pub job: String,
    /// Billing queue.
    pub billing: String,
    /// Outbound queue.
    pub outbound: String,
    /// The reconciler's queue.
    pub reconcile: String,
}

/// The consumers' queues behind one client.
#[derive(Debug, Clone)]
pub struct Queues {
    client: Client,
    urls: QueueUrls,
    #[cfg(feature = "bus")]
    bus: Option<aws_sdk_eventbridge::Client>,
}

impl Queues {
    /// Queues over a configured client.
    pub fn new(client: Client, urls: QueueUrls) -> Self {
        Self {
            client,
            urls,
            #[cfg(feature = "bus")]
            bus: None,
        }
    }

    /// The URL of a consumer's queue.
    pub fn url(&self, consumer: Consumer) -> &str {
        match consumer {
            Consumer::Job => &self.urls.job,
            Consumer::Billing => &self.urls.billing,
            Consumer::Outbound => &self.urls.outbound,
        }
    }

    /// Sends one dispatch to its consumer's queue.
    ///
    /// # Errors
    /// [`QueueError`]; the message may or may not have arrived.
    pub async fn send(&self, message: &Message) -> Result<(), QueueError> {
        let mut send = self
            .client
            .send_message()
            .queue_url(self.url(message.key.name.consumer()))
            .message_body(message.to_json())
            .message_group_id(&message.group)
            .message_deduplication_id(message.key.deduplication_id(message.generation));
        let trace = message.trace.as_ref().map(|trace| {
            let value = MessageSystemAttributeValue::builder().data_type("String").string_value(trace).build();
            value.map_err(|_| QueueError {
                operation: "send message",
                reason: "construction".to_owned(),
                refused: true,
            })
        });
        if let Some(value) = trace.transpose()? {
            send = send.message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, value);
        }
        send.send().await.map(|_| ()).map_err(|error| queue_error("send message", &error))
    }

    /// Sends one part of a reconciliation run; `dispatch` tells a later sending of the same part from a repeat.
    ///
    /// # Errors
    /// [`QueueError`]; the message may or may not have arrived.
    pub async fn send_part(&self, message: &PartMessage, dispatch: i64) -> Result<(), QueueError> {
        let send = self
            .client
            .send_message()
            .queue_url(&self.urls.reconcile)
            .message_body(message.to_json())
            .message_group_id(message.group())
            .message_deduplication_id(message.deduplication_id(dispatch));
        send.send().await.map(|_| ()).map_err(|error| queue_error("send part", &error))
    }
}
