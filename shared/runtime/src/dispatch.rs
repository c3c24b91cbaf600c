//! Dispatching operations: the message of one generation to its consumer's queue.

use domain::message::{Message, group};
use domain::operation::OperationKey;
use domain::receipt::Receipt;
use futures_util::future::join_all;

use crate::App;

/// The message of one operation of a receipt.
pub fn message(receipt: &Receipt, key: OperationKey, generation: u32) -> Message {
    let group = group(&key.event.provider, &receipt.envelope, key.name.consumer());
    Message::new(key, generation, group).of_trace(receipt.trace.clone())
}

impl App {
    /// Sends the messages in parallel. A send that fails is logged and left to the relay: the receipt
    /// is durable, and the relay finds every operation without effect or record.
    pub async fn dispatch(&self, messages: &[Message]) -> usize {
        let sends = messages.iter().map(|message| async move {
            match self.queues.send(message).await {
                Ok(()) => true,
                Err(error) => {
                    tracing::warn!(event = %message.key.event, operation = %message.key.name, %error, "send failed; the relay will dispatch");
                    false
                }
            }
        });
        join_all(sends).await.into_iter().filter(|sent| *sent).count()
    }
}
