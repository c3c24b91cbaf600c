//! Forwarding: a message to a queue that is not ours, with a key by which its reader knows a repetition.

use aws_sdk_sqs::types::MessageAttributeValue;
use domain::intent::Intent;

use crate::{QueueError, Queues, queue_error};

/// The message attribute that carries the deduplication id: hex SHA-256 of the forward's key.
pub const KEY_ATTRIBUTE: &str = "hookledger-key";

impl Queues {
    /// Sends an intent's bytes to a queue. A FIFO queue gets the key's hash as deduplication id, which SQS
    /// remembers for five minutes; every queue gets it as an attribute, for the reader to remember.
    ///
    /// # Errors
    /// [`QueueError`]; the message may or may not have arrived.
    pub async fn forward(&self, url: &str, intent: &Intent) -> Result<(), QueueError> {
        let broken = |_| QueueError::refusal("forward", "no usable attribute");
        let id = intent.deduplication_id();
        let attribute = MessageAttributeValue::builder().data_type("String").string_value(&id).build();
        let mut send = self
            .client
            .send_message()
            .queue_url(url)
            .message_body(&intent.request)
            .message_attributes(KEY_ATTRIBUTE, attribute.map_err(broken)?);
        if url.ends_with(".fifo") {
            send = send.message_group_id(&intent.group).message_deduplication_id(id);
        }
        send.send().await.map(|_| ()).map_err(|error| queue_error("forward", &error))
    }
}
