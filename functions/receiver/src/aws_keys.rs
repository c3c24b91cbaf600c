//! Keys from AWS Secrets Manager and from key sets over HTTPS.
//!
//! Of a secret both labelled versions are live: the current one and the one that the last rotation replaced, since late
//! retries are still signed with it (SIG-17). Everything is bounded: one answer's time and size, and no redirect is
//! followed.

use std::sync::OnceLock;
use std::time::Duration;

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_http_client::{Connector, tls};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::byte_stream::ByteStream;
use domain::profile::SecretPlace;
use serde_json::Value;

use crate::fetch::{FetchError, FetchFuture, Fetched, KeyFetch, PREVIOUS};

/// The largest key set that is read, in bytes.
const MAX_JWKS_BYTES: usize = 64 * 1024;
/// The longest wait for one key set.
const JWKS_TIMEOUT: Duration = Duration::from_millis(2_500);

/// Fetches over the network. Its clients are made when something is first fetched: most endpoints have their secrets in
/// the environment, and pay nothing for what they do not use.
#[derive(Debug)]
pub struct AwsKeys {
    config: aws_config::SdkConfig,
    secrets: OnceLock<Client>,
    https: OnceLock<SharedHttpConnector>,
}

impl AwsKeys {
    /// With the AWS identity, region, timeouts and retries of a configuration.
    pub fn from_config(config: aws_config::SdkConfig) -> Self {
        Self { config, secrets: OnceLock::new(), https: OnceLock::new() }
    }

    /// The connection to key servers, which any authority of the system's may vouch for.
    fn https(&self) -> &SharedHttpConnector {
        let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
        self.https.get_or_init(|| SharedHttpConnector::new(Connector::builder().tls_provider(ring).build()))
    }

    async fn secret(&self, name: &str, member: Option<&str>) -> Result<Vec<Fetched>, FetchError> {
        let (current, previous) = futures_util::join!(self.version(name, "AWSCURRENT"), self.version(name, PREVIOUS));
        let current = current?.ok_or(FetchError::Refused("Secrets Manager has no secret of this name"))?;
        let value = pick(current, member).ok_or(FetchError::Refused("the secret has no text member of this name"))?;
        let mut fetched = vec![Fetched { version: "AWSCURRENT", value }];
        let previous = match previous {
            Err(error @ FetchError::Refused(_)) => {
                tracing::warn!(secret = name, %error, "the version before the last rotation is left out");
                None
            }
            other => other?.and_then(|text| pick(text, member)),
        };
        fetched.extend(previous.map(|value| Fetched { version: PREVIOUS, value }));
        Ok(fetched)
    }

    /// The text of one labelled version; `None` where there is none.
    async fn version(&self, name: &str, stage: &'static str) -> Result<Option<String>, FetchError> {
        let client = self.secrets.get_or_init(|| Client::new(&self.config));
        match client.get_secret_value().secret_id(name).version_stage(stage).send().await {
            Ok(answer) => match answer.secret_string {
                Some(text) => Ok(Some(text)),
                None => Err(FetchError::Refused("the secret is binary: store it as text")),
            },
            Err(SdkError::ServiceError(error)) => match error.err().code() {
                Some("ResourceNotFoundException") => Ok(None),
                Some("AccessDeniedException") => {
                    Err(FetchError::Refused("the receiver's role may not read it: see ProviderSecret in the template"))
                }
                Some("InvalidRequestException" | "InvalidParameterException" | "DecryptionFailure") => Err(
                    FetchError::Refused("Secrets Manager refuses to give it: is it being deleted, or its key gone?"),
                ),
                _ => Err(FetchError::Unavailable("Secrets Manager answered with an error")),
            },
            Err(_) => Err(FetchError::Unavailable("Secrets Manager did not answer")),
        }
    }

    async fn key_set(&self, url: &str) -> Result<Vec<Fetched>, FetchError> {
        let request = HttpRequest::get(url).map_err(|_| FetchError::Refused("the address is no URL"))?;
        let read = async {
            let answer = self.https().call(request).await;
            let answer = answer.map_err(|_| FetchError::Unavailable("the key set's server did not answer"))?;
            if answer.status().as_u16() != 200 {
                return Err(FetchError::Unavailable("the key set's server did not answer 200"));
            }
            let mut body = ByteStream::new(answer.into_body());
            let mut bytes = Vec::new();
            while let Some(chunk) = body.next().await {
                let chunk = chunk.map_err(|_| FetchError::Unavailable("the key set's answer broke off"))?;
                if bytes.len() + chunk.len() > MAX_JWKS_BYTES {
                    return Err(FetchError::Refused("the key set is larger than 64 KiB"));
                }
                bytes.extend_from_slice(&chunk);
            }
            String::from_utf8(bytes).map_err(|_| FetchError::Refused("the key set is no text"))
        };
        let value = tokio::time::timeout(JWKS_TIMEOUT, read).await;
        let value = value.map_err(|_| FetchError::Unavailable("the key set's server took too long"))??;
        Ok(vec![Fetched { version: "", value }])
    }
}

impl KeyFetch for AwsKeys {
    fn fetch<'a>(&'a self, place: &'a SecretPlace) -> FetchFuture<'a> {
        Box::pin(async move {
            match place {
                SecretPlace::Env(_) => Err(FetchError::Refused("it is not set in the environment")),
                SecretPlace::SecretsManager { name, member } => self.secret(name, member.as_deref()).await,
                SecretPlace::Jwks(url) => self.key_set(url).await,
            }
        })
    }
}

/// The text itself, or the member of a JSON object that holds it.
fn pick(text: String, member: Option<&str>) -> Option<String> {
    let Some(member) = member else { return Some(text) };
    match serde_json::from_str(&text).ok()? {
        Value::Object(mut object) => match object.remove(member)? {
            Value::String(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
#[path = "aws_keys_tests.rs"]
mod tests;
