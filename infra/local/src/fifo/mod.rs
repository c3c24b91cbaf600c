//! SQS FIFO queues in process: [`engine`] keeps AWS's documented behaviour, [`message`] is its vocabulary,
//! [`attributes`] are a queue's settings, [`persist`] keeps it all across a restart.
//!
//! What is promised, because the tests of the whole project stand on it: order and blocking per message group,
//! deduplication for five minutes even after the first copy was deleted, visibility timeouts and receive counts,
//! redrive to a FIFO dead-letter queue, and receipt handles that a redelivery makes worthless. Not there: standard
//! queues, delays, `ReceiveRequestAttemptId` (accepted and ignored), encryption, policies.

pub mod attributes;
pub mod engine;
pub mod error;
pub mod message;
pub mod persist;
mod queue;
mod validate;

pub use attributes::QueueAttributes;
pub use engine::{Depth, QueueEngine};
pub use error::QueueError;
pub use message::{MessageAttribute, OutgoingMessage, ReceivedMessage, SendReceipt};

#[cfg(test)]
mod engine_tests;
