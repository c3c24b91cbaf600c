//! What every function shares at its edge: clients, settings, clock, randomness, the gateway's and
//! the queue's events, and the consumer's loop. Built once per process, passed in from outside.

pub mod app;
mod awaiting;
pub mod call;
pub mod charges;
pub mod clients;
pub mod clock;
pub mod consumer;
pub mod destinations;
pub mod dispatch;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod gate;
pub mod gateway;
pub mod lambda;
pub mod opened;
pub mod pauses;
pub mod problem;
pub mod random;
pub mod retry;
pub mod settings;
pub mod sqs;
pub mod telemetry;
mod told;

pub use app::App;
