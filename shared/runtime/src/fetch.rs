//! Reading from a provider over HTTPS: the one door to the outside, passed in, with a limit on time and bytes.
//!
//! It follows no redirect and repeats nothing: whoever asks decides. An error names neither URL nor header, since both
//! may hold what opens them.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// A GET.
#[derive(Clone, PartialEq, Eq)]
pub struct Get {
    /// The full URL.
    pub url: String,
    /// Headers; values may be secrets and are never shown.
    pub headers: Vec<(String, String)>,
    /// Bytes of the answer at most.
    pub max_bytes: usize,
    /// Time for the whole of it.
    pub timeout: Duration,
}

impl Debug for Get {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Get").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}

/// Why there is no answer to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL or a header is not one.
    #[error("the configured URL or header cannot be sent")]
    Unsendable,
    /// No connection, or it broke.
    #[error("the provider cannot be reached")]
    Unreachable,
    /// It took too long.
    #[error("the provider did not answer in time")]
    TimedOut,
    /// The answer is too large.
    #[error("the provider's answer is too large")]
    TooLarge,
    /// Another status than 200.
    #[error("the provider answered with status {0}")]
    Status(u16),
}

impl FetchError {
    /// True when a later try may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable | Self::TimedOut => true,
            Self::Status(status) => *status == 429 || *status >= 500,
            Self::Unsendable | Self::TooLarge => false,
        }
    }
}

/// What a GET gives.
pub type Fetched<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, FetchError>> + Send + 'a>>;

/// Reads over HTTP.
pub trait Fetch: Send + Sync + Debug {
    /// The body of a 200.
    fn get(&self, get: Get) -> Fetched<'_>;
}

/// The real one: rustls with ring, the system's roots.
#[derive(Debug, Clone)]
pub struct HttpsFetch(Client<HttpsConnector<HttpConnector>, Empty<Bytes>>);

impl HttpsFetch {
    /// A client with the system's certificate roots; plain HTTP is for a provider on this machine.
    ///
    /// # Errors
    /// When the system's roots cannot be read.
    pub fn new() -> std::io::Result<Self> {
        let connector = HttpsConnectorBuilder::new().with_native_roots()?.https_or_http().enable_http1().build();
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }

    async fn send(&self, get: Get) -> Result<Vec<u8>, FetchError> {
        let uri: Uri = get.url.parse().map_err(|_| FetchError::Unsendable)?;
        let local = matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if uri.scheme_str() != Some("https") && !local {
            return Err(FetchError::Unsendable); // a secret must not travel in the clear
        }
        let mut request = Request::get(uri).header("accept", "application/json");
        for (name, value) in &get.headers {
            request = request.header(name, value);
        }
        let request = request.body(Empty::new()).map_err(|_| FetchError::Unsendable)?;
        let answer = self.0.request(request).await.map_err(|_| FetchError::Unreachable)?;
        if answer.status().as_u16() != 200 {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        let body = Limited::new(answer.into_body(), get.max_bytes).collect().await;
        let limited = |error: Box<dyn std::error::Error + Send + Sync>| {
            let too_large = error.downcast_ref::<http_body_util::LengthLimitError>().is_some();
            if too_large { FetchError::TooLarge } else { FetchError::Unreachable }
        };
        Ok(body.map_err(limited)?.to_bytes().to_vec())
    }
}

impl Fetch for HttpsFetch {
    fn get(&self, get: Get) -> Fetched<'_> {
        Box::pin(async move {
            let timeout = get.timeout;
            tokio::time::timeout(timeout, self.send(get)).await.unwrap_or(Err(FetchError::TimedOut))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    fn get(url: &str) -> Get {
        let headers = vec![("authorization".to_owned(), "canary".to_owned())];
        Get { url: url.to_owned(), headers, max_bytes: 10, timeout: Duration::from_secs(1) }
    }

    #[tokio::test]
    async fn a_secret_is_neither_sent_in_the_clear_nor_shown() {
        let fetch = HttpsFetch::new().unwrap();
        assert_eq!(fetch.get(get("http://192.0.2.1/jobs")).await, Err(FetchError::Unsendable));
        assert_eq!(fetch.get(get("not a url")).await, Err(FetchError::Unsendable));
        assert!(!format!("{:?}", get("https://canary.example")).contains("canary"));
    }
}
