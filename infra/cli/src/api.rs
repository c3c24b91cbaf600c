//! The server's HTTP API, as a client sees it.
//!
//! Every answer is given back whatever its status; only a server that does not answer is an error. A call of `/control`
//! to a server that is not on this machine is signed with the caller's AWS identity.

use std::time::{Duration, SystemTime};

use runtime::gateway::path_part;
use serde::Serialize;
use serde_json::Value;
use ureq::Agent;
use ureq::http::{Request, Uri};

use crate::error::{CliError, Problem};
use crate::sign::{self, Caller};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for an answer: as long as API Gateway itself waits for a function.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A server.
pub struct Api {
    base: String,
    host: String,
    local: bool,
    agent: Agent,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The JSON body; null where it is none.
    pub body: Value,
}

impl Answer {
    /// The server's error, for a status outside 2xx.
    pub fn problem(&self) -> Option<Problem> {
        (!(200..300).contains(&self.status)).then(|| Problem::of(self.status, &self.body))
    }
}

impl Api {
    /// A server by its base URL.
    ///
    /// # Errors
    /// Misuse: not an `http` or `https` URL, or one with a query.
    pub fn new(url: &str) -> Result<Self, CliError> {
        let misuse =
            |what: &str| CliError::Misuse(format!("--url {url:?} {what}: give http://HOST:PORT or https://HOST"));
        let uri: Uri = url.parse().map_err(|_| misuse("is no URL"))?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| misuse("names no host"))?.to_owned();
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(misuse("is neither http nor https"));
        }
        if uri.query().is_some() {
            return Err(misuse("has a query"));
        }
        let local = is_loopback(&host);
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(ANSWER_TIMEOUT))
            .user_agent(concat!("hookledger/", env!("CARGO_PKG_VERSION")));
        if local {
            config = config.proxy(None);
        }
        let base = url.trim_end_matches('/').to_owned();
        Ok(Self { base, host, local, agent: config.build().new_agent() })
    }

    /// The full URL of a path.
    pub fn url(&self, path: &[&str]) -> String {
        path.iter().fold(self.base.clone(), |url, part| format!("{url}/{}", path_part(part)))
    }

    /// Calls the control API.
    ///
    /// # Errors
    /// No answer, or no AWS identity to sign with.
    pub fn control<T: Serialize>(&self, method: &str, path: &[&str], body: Option<&T>) -> Result<Answer, CliError> {
        self.call_control(method, &self.control_url(path), body)
    }

    fn control_url(&self, path: &[&str]) -> String {
        self.url(&[&["control"], path].concat())
    }

    fn call_control<T: Serialize>(&self, method: &str, url: &str, body: Option<&T>) -> Result<Answer, CliError> {
        let body = body.map(serde_json::to_vec).transpose();
        let body = body.map_err(|error| CliError::Misuse(format!("the request cannot be written as JSON: {error}")))?;
        let mut headers = Vec::new();
        if body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if !self.local {
            self.refuse_plain_http()?;
            let caller = Caller::load(&self.host)?;
            let bytes = body.as_deref().unwrap_or_default();
            headers.extend(sign::headers(&caller, sign::API_GATEWAY, method, url, bytes, SystemTime::now())?);
        }
        self.call(method, url, &headers, body.as_deref())
    }

    /// Reads from the control API.
    ///
    /// # Errors
    /// As [`Self::control`].
    pub fn get(&self, path: &[&str]) -> Result<Answer, CliError> {
        self.control::<()>("GET", path, None)
    }

    /// Reads from the control API, with parameters.
    ///
    /// # Errors
    /// As [`Self::control`].
    pub fn get_with(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Answer, CliError> {
        self.call_control::<()>("GET", &with_query(self.control_url(path), query), None)
    }

    /// Delivers a webhook.
    ///
    /// # Errors
    /// No answer, or a header that HTTP does not allow.
    pub fn deliver(&self, url: &str, headers: &[(String, String)], body: &[u8]) -> Result<Answer, CliError> {
        self.call("POST", url, headers, Some(body))
    }

    /// An AWS session token must not travel in the clear.
    fn refuse_plain_http(&self) -> Result<(), CliError> {
        if self.base.starts_with("https:") {
            return Ok(());
        }
        let advice = "the control API of another machine is called with your AWS identity: use https";
        Err(CliError::Misuse(format!("--url {} is not encrypted, and {advice}", self.base)))
    }

    fn call(
        &self, method: &str, url: &str, headers: &[(String, String)], body: Option<&[u8]>,
    ) -> Result<Answer, CliError> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let misuse = |error| CliError::Misuse(format!("this cannot be sent by HTTP: {error}"));
        let sent = match body {
            Some(body) => self.agent.run(request.body(body).map_err(misuse)?),
            None => self.agent.run(request.body(()).map_err(misuse)?),
        };
        let unreachable =
            |error: ureq::Error| CliError::Unreachable { url: self.base.clone(), reason: error.to_string() };
        let mut response = sent.map_err(unreachable)?;
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string().map_err(unreachable)?;
        Ok(Answer { status, body: serde_json::from_str(&text).unwrap_or_default() })
    }
}

/// A URL with parameters, every byte percent-encoded that is not unreserved (RFC 3986).
fn with_query(url: String, query: &[(&str, &str)]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let write = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let encode = |text: &str| text.bytes().map(write).collect::<String>();
    let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    if pairs.is_empty() { url } else { format!("{url}?{}", pairs.join("&")) }
}

/// Whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn path_parts_cannot_leave_their_place() {
        let api = Api::new("http://127.0.0.1:9000/").unwrap();
        let url = api.url(&["control", "events", "acme", "a/b c#%é", ".."]);
        assert_eq!(url, "http://127.0.0.1:9000/control/events/acme/a~2Fb~20c~23~25~C3~A9/~2E~2E");
    }

    #[test]
    fn parameters_survive_the_way_through_a_url() {
        let url = with_query("http://a".to_owned(), &[("after", "j 1&b=c+é"), ("limit", "5")]);
        assert_eq!(url, "http://a?after=j%201%26b%3Dc%2B%C3%A9&limit=5");
        assert_eq!(with_query("http://a".to_owned(), &[]), "http://a");
    }

    #[test]
    fn loopback_is_this_machine_and_nothing_that_looks_like_it() {
        for host in ["127.0.0.1", "127.9.9.9", "[::1]", "localhost", "LOCALHOST"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["127.0.0.1.example.com", "example.com", "localhost.example.com", "10.0.0.1", "0.0.0.0"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_base_url_must_be_one() {
        for url in ["", "127.0.0.1:9000", "ftp://a", "http://", "http://a?b=c", "/control"] {
            assert!(matches!(Api::new(url), Err(CliError::Misuse(_))), "{url}");
        }
    }

    #[test]
    fn an_aws_identity_is_not_sent_in_the_clear() {
        let api = Api::new("http://192.0.2.1:9000").unwrap();
        assert!(matches!(api.get(&["events", "acme", "msg_1"]), Err(CliError::Misuse(text)) if text.contains("https")));
    }
}
