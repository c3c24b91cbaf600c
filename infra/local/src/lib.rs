//! The embedded AWS of hookledger: what `hookledger dev` and the tests run on.
//!
//! DynamoDB (by `dynoxide-rs`) and SQS FIFO queues in one process, reached by the REAL AWS SDK through an HTTP client
//! without sockets ([`aws`]); the event source poller ([`poller`]), the HTTP gateway ([`gateway`]) and the scheduler
//! ([`scheduler`]) that call the real handlers as Lambda would. Time and ids are passed in, so that a run can be
//! repeated; faults are injected by hooks on every AWS call.

pub mod aws;
pub mod bus_api;
mod call_log;
pub mod clock;
pub mod costs;
pub mod dynamo_api;
pub mod fifo;
pub mod forwarded;
pub mod gateway;
pub mod hook;
pub mod item_size;
pub mod lambda;
pub mod meter;
pub mod network;
pub mod poller;
pub mod provider;
pub mod provider_api;
pub mod provider_list;
pub mod remote;
pub mod scheduler;
mod schedules;
pub mod sqs_api;
pub mod stack;
pub mod usage;
pub mod wire;
pub mod world;

pub use aws::EmbeddedAws;
pub use clock::{Clock, ManualClock, SystemClock};
pub use stack::{Function, Stack, StackConfig};

/// The account that the embedded AWS belongs to: no real one has this number.
pub const ACCOUNT_ID: &str = "000000000000";

/// The region that the embedded AWS pretends to be.
pub const REGION: &str = "us-east-1";

/// The ARN of a queue of the embedded AWS.
#[must_use]
pub fn queue_arn(name: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}")
}

/// The URL of a queue of the embedded AWS. Nothing listens there: requests never leave the process.
#[must_use]
pub fn queue_url(name: &str) -> String {
    format!("https://sqs.{REGION}.embedded.invalid/{ACCOUNT_ID}/{name}")
}
