//! The program itself, as a user runs it. Here and not in the integration test crate, because only a package's own
//! tests are given its binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

mod audit;
mod check;
mod dev;
mod harness;
mod verify;
