//! Scenarios through the whole stack: the real handlers, the real SDK, the embedded AWS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

mod audit;
mod bad_input;
mod board;
mod booking;
mod books;
mod cases_aws;
mod cases_identity;
mod cases_signature;
mod consumers;
mod contract;
mod costs;
mod fetch;
mod forward;
mod harness;
mod items;
mod keys;
mod money;
mod operations;
mod path;
mod postpaid;
mod privacy;
mod profiles;
mod receiver;
mod reconcile;
mod recovery;
mod rejected;
mod schema;
mod sender;
mod simulable;
mod template;
mod told;
