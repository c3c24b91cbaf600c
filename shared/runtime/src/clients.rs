//! The SDK's configuration, one for production and for every test: another retry policy or timeout
//! would be another system. Tests override the HTTP client, time and credentials only.
//!
//! A function on Lambda loads [`Roots::Amazon`], five certificates instead of the system's hundred and more: reading
//! and parsing those was most of what a cold start spent before its first answer.

use std::time::Duration;

use aws_config::environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider};
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{self, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use domain::limits::SDK_OPERATION_TIMEOUT_MS;

use crate::settings::{CA_BUNDLE, TLS_ROOTS};

/// Longest wait for one answer; the SDK then tries again.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_000);
/// Tries of one call, the first included.
const MAX_ATTEMPTS: u32 = 3;

/// The roots of Amazon Trust Services, which AWS endpoints chain to.
const AMAZON_ROOTS: &[u8] = include_bytes!("../../../infra/roots.pem");

/// Which certificate authorities an AWS endpoint may be vouched for by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// Amazon Trust Services, built in.
    Amazon,
    /// The system's, for an endpoint or proxy that another authority vouches for. `SSL_CERT_FILE` names their file.
    System,
    /// PEM text of one's own.
    Pem(Vec<u8>),
}

/// Roots that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRoots {
    /// Another word than the two.
    #[error("environment variable {TLS_ROOTS} must be amazon or system")]
    Word,
    /// A file that is not there, or holds no certificate.
    #[error("environment variable {CA_BUNDLE} must name a readable PEM file with at least one certificate")]
    File,
}

impl Roots {
    /// Reads `AWS_CA_BUNDLE` (a PEM file, as other AWS clients take it), else `HOOKLEDGER_TLS_ROOTS`; [`Roots::Amazon`]
    /// where neither is set.
    ///
    /// # Errors
    /// [`BadRoots`], with what to do.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadRoots> {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(file) = given(CA_BUNDLE) {
            let pem = std::fs::read(file).map_err(|_| BadRoots::File)?;
            let begins = b"-----BEGIN CERTIFICATE-----";
            let holds_one = pem.windows(begins.len()).any(|window| window == begins);
            return if holds_one { Ok(Self::Pem(pem)) } else { Err(BadRoots::File) };
        }
        match given(TLS_ROOTS).as_deref() {
            None | Some("amazon") => Ok(Self::Amazon),
            Some("system") => Ok(Self::System),
            Some(_) => Err(BadRoots::Word),
        }
    }

    fn context(self) -> Option<TlsContext> {
        let store = match self {
            Self::Amazon => TrustStore::empty().with_pem_certificate(AMAZON_ROOTS),
            Self::System => TrustStore::default(),
            Self::Pem(pem) => TrustStore::empty().with_pem_certificate(pem),
        };
        TlsContext::builder().with_trust_store(store).build().ok() // as it is today it never fails
    }
}

/// An HTTPS client: rustls with ring, whose start costs a fifth of aws-lc's.
pub fn https_client_with(roots: Roots) -> SharedHttpClient {
    let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    let client = Builder::new().tls_provider(ring);
    match roots.context() {
        Some(context) => client.tls_context(context).build_https(),
        None => client.build_https(),
    }
}

/// An HTTPS client with the system's roots: for any endpoint that the caller names.
pub fn https_client() -> SharedHttpClient {
    https_client_with(Roots::System)
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

/// Configuration of a function: identity and region from the environment alone, as Lambda gives them; no profile
/// files and no instance metadata are looked for.
///
/// # Errors
/// [`BadRoots`].
pub async fn lambda_config() -> Result<SdkConfig, BadRoots> {
    let roots = Roots::read(|name| std::env::var(name).ok())?;
    let config = base_config()
        .http_client(https_client_with(roots))
        .region(EnvironmentVariableRegionProvider::new())
        .credentials_provider(EnvironmentVariableCredentialsProvider::new());
    Ok(config.load().await)
}

/// Configuration of a program that a person runs: their identity and region, wherever the AWS tools look for them.
pub async fn caller_config() -> SdkConfig {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    fn read(name: &str, value: &str) -> Result<Roots, BadRoots> {
        Roots::read(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn the_roots_are_amazons_unless_something_else_is_asked_for() {
        assert_eq!(read("OTHER", "x"), Ok(Roots::Amazon));
        assert_eq!(read(TLS_ROOTS, ""), Ok(Roots::Amazon));
        assert_eq!(read(TLS_ROOTS, "amazon"), Ok(Roots::Amazon));
        assert_eq!(read(TLS_ROOTS, "system"), Ok(Roots::System));
        assert_eq!(read(TLS_ROOTS, "none"), Err(BadRoots::Word));
        assert_eq!(read(CA_BUNDLE, "no/such/file.pem"), Err(BadRoots::File));
        assert_eq!(read(CA_BUNDLE, concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")), Err(BadRoots::File));
    }

    #[test]
    fn the_built_in_roots_are_five_certificates_that_can_be_read() {
        let begins = "-----BEGIN CERTIFICATE-----";
        assert_eq!(std::str::from_utf8(AMAZON_ROOTS).unwrap().matches(begins).count(), 5);
        let _ = https_client_with(Roots::Amazon); // the connector that parses them is made with the first call
        let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/roots.pem");
        assert_eq!(read(CA_BUNDLE, bundle), Ok(Roots::Pem(AMAZON_ROOTS.to_vec())));
    }
}
