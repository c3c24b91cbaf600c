//! API Gateway HTTP API events, payload format 2.0, read leniently.
//!
//! `lambda_http`'s own conversion panics on a body that claims to be base64 and is not, and refuses
//! header values outside ASCII. A webhook receiver must answer both (400 and 401), so the event is
//! read here from its JSON, field by field, and the body is decoded only if the flag is true.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The fields of a payload-2.0 event that are used.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayEvent {
    /// Path as sent, not decoded.
    pub raw_path: String,
    /// Query string, verbatim.
    pub raw_query_string: String,
    /// Lower-cased names; repeated ones comma-joined by the gateway.
    pub headers: BTreeMap<String, String>,
    /// Absent for an empty body.
    pub body: Option<String>,
    /// True when `body` is base64 of the bytes.
    pub is_base64_encoded: bool,
    /// Method, arrival and caller.
    pub request_context: RequestContext,
}

/// Part of a [`GatewayEvent`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestContext {
    /// The request line.
    pub http: HttpContext,
    /// Arrival at the gateway, Unix milliseconds; 0 when absent.
    pub time_epoch: i64,
    /// The host that was called.
    pub domain_name: String,
    /// The gateway's id of the request.
    pub request_id: String,
    /// Who called, where IAM authorises.
    pub authorizer: Authorizer,
}

/// Part of a [`GatewayEvent`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpContext {
    /// `POST`.
    pub method: String,
    /// The caller's address.
    pub source_ip: String,
}

/// Part of a [`GatewayEvent`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Authorizer {
    /// IAM authorization.
    pub iam: Option<IamIdentity>,
}

/// The caller's identity, verified by the gateway.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IamIdentity {
    /// ARN of the user or assumed role.
    pub user_arn: String,
}

/// Longer trace headers are not read.
const MAX_TRACE_HEADER_BYTES: usize = 256;

fn is_trace_part(part: &str) -> bool {
    let hex = |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match part.split_once('=') {
        Some(("Root", root)) => match root.split('-').collect::<Vec<_>>()[..] {
            [version, seconds, id] => version == "1" && hex(seconds, 8) && hex(id, 24),
            _ => false,
        },
        Some(("Parent", id)) => hex(id, 16),
        Some(("Sampled", sampled)) => matches!(sampled, "0" | "1"),
        _ => false,
    }
}

/// The body claims to be base64 and is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the gateway says the body is base64, and it is not")]
pub struct BadBase64;

impl GatewayEvent {
    /// The exact bytes of the body: decoded if, and only if, the flag is true (SIG-01).
    ///
    /// # Errors
    /// [`BadBase64`].
    pub fn body_bytes(&self) -> Result<Vec<u8>, BadBase64> {
        match &self.body {
            None => Ok(Vec::new()),
            Some(text) if self.is_base64_encoded => STANDARD.decode(text).map_err(|_| BadBase64),
            Some(text) => Ok(text.as_bytes().to_vec()),
        }
    }

    /// The path's parts. API Gateway hands `rawPath` on decoded, so an id with `/`, `?` or `%` cannot
    /// travel percent-encoded: in a path of ours a byte may be written `~XX` (and `~` itself `~7E`).
    /// `None` when an id is no UTF-8 then: two such ids must never become one.
    pub fn path_parts(&self) -> Option<Vec<String>> {
        self.raw_path.split('/').filter(|part| !part.is_empty()).map(|part| decode(part, b'~')).collect()
    }

    /// A parameter of the query string, percent-decoded; absent too when it is no UTF-8.
    pub fn query(&self, name: &str) -> Option<String> {
        let pairs = self.raw_query_string.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).and_then(|(_, value)| decode(&value.replace('+', " "), b'%'))
    }

    /// The X-Ray trace that the gateway began or went on with: `Root=…;Parent=…;Sampled=…`, and nothing else that a
    /// caller may have put into the header. Source: X-Ray developer guide, "Tracing header".
    pub fn trace(&self) -> Option<String> {
        let header = self.headers.get("x-amzn-trace-id").filter(|header| header.len() <= MAX_TRACE_HEADER_BYTES)?;
        let known: Vec<&str> = header.split(';').map(str::trim).filter(|part| is_trace_part(part)).collect();
        known.iter().any(|part| part.starts_with("Root=")).then(|| known.join(";"))
    }

    /// The caller's identity from the request context; `local` where nothing authorises.
    pub fn actor(&self) -> String {
        let arn = self.request_context.authorizer.iam.as_ref().map(|iam| iam.user_arn.clone());
        arn.filter(|arn| !arn.is_empty()).unwrap_or_else(|| "local".to_owned())
    }
}

/// Writes an id as one part of a path, so that it survives a gateway that decodes paths.
pub fn path_part(id: &str) -> String {
    let dots = id.bytes().all(|byte| byte == b'.'); // `.` and `..` would name another path
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && !dots);
    let write = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("~{byte:02X}") };
    id.bytes().map(write).collect()
}

/// Decodes a mark and two hex digits; what is not such a pair stays as it is. `None` when the result is
/// no UTF-8.
fn decode(text: &str, mark: u8) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match hex.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) if bytes[at] == mark => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

/// A Lambda proxy response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayResponse {
    /// HTTP status.
    pub status_code: u16,
    /// Response headers.
    pub headers: BTreeMap<String, String>,
    /// JSON text.
    pub body: String,
    /// Always false: bodies are text.
    pub is_base64_encoded: bool,
}

impl GatewayResponse {
    /// A JSON answer.
    pub fn json(status_code: u16, body: &impl Serialize) -> Self {
        let headers = BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]);
        let body = serde_json::to_string(body).unwrap_or_else(|_| "{}".to_owned());
        Self { status_code, headers, body, is_base64_encoded: false }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    fn event(body: &str, is_base64_encoded: bool) -> GatewayEvent {
        GatewayEvent { body: Some(body.to_owned()), is_base64_encoded, ..GatewayEvent::default() }
    }

    #[test]
    fn sig_01_the_body_is_decoded_only_if_the_flag_says_so() {
        assert_eq!(event("SGVsbG8sIFdvcmxkIQ==", true).body_bytes().unwrap(), b"Hello, World!");
        assert_eq!(event("SGVsbG8sIFdvcmxkIQ==", false).body_bytes().unwrap(), b"SGVsbG8sIFdvcmxkIQ==");
        assert_eq!(event("not base64!", true).body_bytes(), Err(BadBase64));
        assert_eq!(GatewayEvent::default().body_bytes().unwrap(), b"");
    }

    #[test]
    fn sig_11_a_header_outside_ascii_is_read_and_does_not_fail_the_event() {
        let json = r#"{"rawPath":"/webhooks/github","headers":{"x-hub-signature-256":"sha256=é"}}"#;
        let event: GatewayEvent = serde_json::from_str(json).unwrap();
        assert_eq!(event.headers["x-hub-signature-256"], "sha256=é");
    }

    #[test]
    fn an_id_survives_its_path_form_and_a_gateway_that_decodes() {
        for id in ["a/b?c%2F", "~7E", "~", "ümlaut", "num#5", "plain-1_2.3"] {
            let event = GatewayEvent { raw_path: format!("/control/x/{}", path_part(id)), ..GatewayEvent::default() };
            assert_eq!(event.path_parts().unwrap()[2], id);
        }
        assert_eq!(path_part("a/b"), "a~2Fb");
        assert_eq!(decode("~zz~4", b'~').unwrap(), "~zz~4");
        assert_eq!(decode("~FF", b'~'), None);
    }
}
