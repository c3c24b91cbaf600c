//! The embedded AWS through the real AWS SDK: what the SDK parses here is what it parses from AWS.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod dynamodb;
mod faults;
mod sqs;

use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_smithy_async::rt::sleep::TokioSleep;
use hookledger_local::{EmbeddedAws, ManualClock};

/// An arbitrary time, in ms since the epoch.
const START_MS: i64 = 1_700_000_000_000;

fn embedded() -> (EmbeddedAws, ManualClock) {
    let clock = ManualClock::new(START_MS);
    (EmbeddedAws::memory(Arc::new(clock.clone())).unwrap(), clock)
}

fn credentials() -> Credentials {
    Credentials::new("embedded", "embedded", None, None, "embedded")
}

fn dynamodb_client(aws: &EmbeddedAws) -> aws_sdk_dynamodb::Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .region(aws_sdk_dynamodb::config::Region::new("us-east-1"))
        .credentials_provider(credentials())
        .sleep_impl(TokioSleep::new())
        .http_client(aws.http_client());
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

fn sqs_client(aws: &EmbeddedAws) -> aws_sdk_sqs::Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
        .region(aws_sdk_sqs::config::Region::new("us-east-1"))
        .credentials_provider(credentials())
        .sleep_impl(TokioSleep::new())
        .http_client(aws.http_client());
    aws_sdk_sqs::Client::from_conf(config.build())
}
