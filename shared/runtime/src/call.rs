//! Sending to a destination over HTTP: the one door by which effects leave, passed in, with a limit on time and bytes.
//!
//! It follows no redirect and repeats nothing, and it tells what surely never left ([`CallError::NotSent`]) from what may
//! have ([`CallError::Lost`]): whoever asks decides by that. An error names neither address nor header, since both may
//! hold what opens them.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use domain::outcome::Answer;

/// One request.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: String,
    /// The full URL.
    pub url: String,
    /// Headers; values may be secrets and are never shown.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Bytes of the answer's body at most; a longer one is not given.
    pub max_bytes: usize,
    /// Time for the whole of it.
    pub timeout: Duration,
}

impl Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("method", &self.method).field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body, where it came whole and within the limit.
    pub body: Option<Vec<u8>>,
    /// How long it asks to be left alone, in seconds (RFC 9110, 10.2.3); a date there is not read.
    pub retry_after_s: Option<u32>,
}

impl Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Why there is no answer. The texts are fixed words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No byte of the request left.
    #[error("{0}")]
    NotSent(&'static str),
    /// Bytes may have left.
    #[error("{0}")]
    Lost(&'static str),
}

/// What a call gives.
pub type Called<'a> = Pin<Box<dyn Future<Output = Result<Reply, CallError>> + Send + 'a>>;

/// What a call gave, as the rules of a destination read it.
pub fn answer(called: Result<Reply, CallError>) -> Answer {
    match called {
        Ok(reply) => Answer::Status { status: reply.status, body: reply.body },
        Err(CallError::NotSent(why)) => Answer::NotSent(why.to_owned()),
        Err(CallError::Lost(why)) => Answer::Lost(why.to_owned()),
    }
}

/// Sends over HTTP.
pub trait Caller: Send + Sync + Debug {
    /// One request and its answer, whatever the status.
    fn call(&self, call: Call) -> Called<'_>;
}

/// No network: nothing leaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCaller;

impl Caller for NoCaller {
    fn call(&self, _call: Call) -> Called<'_> {
        Box::pin(async { Err(CallError::NotSent("nothing is sent over HTTP here")) })
    }
}

/// Whether requests may go to this address: https, or plain HTTP on this machine, since a secret must not travel in the
/// clear.
pub fn is_allowed(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let local = matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
    match uri.scheme_str() {
        Some("https") => uri.host().is_some(),
        Some("http") => local,
        _ => false,
    }
}

#[cfg(feature = "fetch")]
pub use https::HttpsCaller;

#[cfg(feature = "fetch")]
mod https {
    use std::time::Duration;

    use bytes::Bytes;
    use http::Request;
    use http_body_util::{BodyExt, Full, Limited};
    use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
    use hyper_util::client::legacy::Client;
    use hyper_util::client::legacy::connect::HttpConnector;
    use hyper_util::rt::TokioExecutor;

    use super::{Call, CallError, Called, Caller, Reply, is_allowed};

    /// Longest wait for a connection: its end is known, since no byte has left by then.
    const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

    /// The real one: rustls with ring, the system's roots. A connection serves one request: one that was kept and had died
    /// meanwhile, as in a frozen function, would make an unknown outcome of what a new one sends safely.
    #[derive(Debug, Clone)]
    pub struct HttpsCaller(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

    impl HttpsCaller {
        /// A client with the system's certificate roots.
        ///
        /// # Errors
        /// When the system's roots cannot be read.
        pub fn new() -> std::io::Result<Self> {
            let mut http = HttpConnector::new();
            http.enforce_http(false);
            http.set_connect_timeout(Some(CONNECT_TIMEOUT));
            let tls = HttpsConnectorBuilder::new().with_native_roots()?.https_or_http().enable_http1();
            let mut builder = Client::builder(TokioExecutor::new());
            builder.pool_max_idle_per_host(0).retry_canceled_requests(false);
            Ok(Self(builder.build(tls.wrap_connector(http))))
        }

        async fn send(&self, call: Call) -> Result<Reply, CallError> {
            if !is_allowed(&call.url) {
                return Err(CallError::NotSent("the configured address is neither https nor on this machine"));
            }
            let mut request = Request::builder().method(call.method.as_str()).uri(&call.url);
            for (name, value) in &call.headers {
                request = request.header(name, value);
            }
            let request = request.body(Full::new(Bytes::from(call.body)));
            let request =
                request.map_err(|_| CallError::NotSent("the configured address or a header cannot be sent"))?;
            let answer = self.0.request(request).await.map_err(|error| {
                if error.is_connect() {
                    CallError::NotSent("no connection")
                } else {
                    CallError::Lost("the connection broke")
                }
            })?;
            let status = answer.status().as_u16();
            let retry_after = answer.headers().get(http::header::RETRY_AFTER);
            let retry_after_s = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            // The status line is an answer, whatever becomes of the body.
            let body = Limited::new(answer.into_body(), call.max_bytes).collect().await;
            Ok(Reply { status, body: body.ok().map(|body| body.to_bytes().to_vec()), retry_after_s })
        }
    }

    impl Caller for HttpsCaller {
        fn call(&self, call: Call) -> Called<'_> {
            Box::pin(async move {
                let timeout = call.timeout;
                let sent = tokio::time::timeout(timeout, self.send(call)).await;
                sent.unwrap_or(Err(CallError::Lost("no answer in time")))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_travels_encrypted_or_on_this_machine() {
        for url in ["https://board.example/v1", "http://127.0.0.1:9/x", "http://localhost/", "http://[::1]:80/"] {
            assert!(is_allowed(url), "{url}");
        }
        for url in ["http://board.example/", "http://127.0.0.1.example/", "ftp://127.0.0.1/", "board.example", "", "/x"]
        {
            assert!(!is_allowed(url), "{url}");
        }
    }

    #[test]
    fn nothing_of_a_request_is_shown() {
        let headers = vec![("authorization".to_owned(), "canary".to_owned())];
        let (url, body) = ("https://canary.example".to_owned(), b"canary".to_vec());
        let call = Call { method: "POST".to_owned(), url, headers, body, max_bytes: 1, timeout: Duration::ZERO };
        assert!(!format!("{call:?}").contains("canary"));
    }
}
