//! Scenarios through the whole stack: the real handlers, the real SDK, the embedded AWS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

mod path;
mod template;
