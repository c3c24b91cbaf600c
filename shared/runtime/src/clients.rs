//! The SDK's configuration, one for production and for every test: another retry policy or timeout
//! would be another system. Tests override the HTTP client, time and credentials only.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_smithy_http_client::{Builder, tls};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use domain::limits::SDK_OPERATION_TIMEOUT_MS;

/// Longest wait for one answer; the SDK then tries again.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_000);
/// Tries of one call, the first included.
const MAX_ATTEMPTS: u32 = 3;

/// The one HTTP client: rustls with ring, whose start costs a fifth of aws-lc's.
pub fn https_client() -> SharedHttpClient {
    Builder::new().tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring)).build_https()
}

/// Retries and timeouts of every call.
pub fn base_config() -> ConfigLoader {
    let operation = u64::try_from(SDK_OPERATION_TIMEOUT_MS).unwrap_or(8_000);
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(Duration::from_millis(operation));
    aws_config::defaults(BehaviorVersion::latest())
        .retry_config(RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS))
        .timeout_config(timeouts.build())
}

/// Configuration from the environment, as Lambda gives it.
pub async fn lambda_config() -> SdkConfig {
    base_config().http_client(https_client()).load().await
}

/// Configuration for the embedded stack: a fixed region and credentials, and the given HTTP client.
pub async fn local_config(http_client: SharedHttpClient, endpoint: &str) -> SdkConfig {
    base_config()
        .http_client(http_client)
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::for_tests())
        .load()
        .await
}

/// Configuration for another endpoint: the caller's own AWS identity and region if the environment
/// gives them, else what emulators accept.
pub async fn endpoint_config(http_client: SharedHttpClient, endpoint: &str) -> SdkConfig {
    let given = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    if given("AWS_ACCESS_KEY_ID") || given("AWS_PROFILE") {
        return base_config().http_client(http_client).endpoint_url(endpoint).load().await;
    }
    local_config(http_client, endpoint).await
}
