//! Dispatching operations: the message of one generation to its consumer's queue.

use domain::limits::SIDE_BY_SIDE;
use domain::message::{Message, group};
use domain::operation::OperationKey;
use domain::receipt::Receipt;
use futures_util::future::join_all;

use crate::App;

/// The message of one operation of a receipt.
pub fn message(receipt: &Receipt, key: OperationKey, generation: u32) -> Message {
    let group = group(&key, receipt.envelope_of(&key.item));
    Message::new(key, generation, group).of_trace(receipt.trace.clone())
}

impl App {
    /// Sends the messages, [`SIDE_BY_SIDE`] at a time. A send that fails is logged and left to the relay:
    /// the receipt is durable, and the relay finds every operation without effect or record. After one that
    /// failed no further ones are begun, so that a queue that is down costs a large delivery one wait.
    pub async fn dispatch(&self, messages: &[Message]) -> usize {
        let send = async |message: &Message| match self.queues.send(message).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(event = %message.key.event, operation = %message.key.name, %error, "send failed; the relay will dispatch");
                false
            }
        };
        let mut total = 0;
        for some in messages.chunks(SIDE_BY_SIDE) {
            let sent = join_all(some.iter().map(send)).await.into_iter().filter(|sent| *sent).count();
            total += sent;
            if sent < some.len() {
                break;
            }
        }
        total
    }
}
