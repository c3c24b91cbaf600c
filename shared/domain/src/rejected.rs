//! A refused delivery as its endpoint's owner may see it: enough to find the mistake, nothing of what was
//! sent. Whoever sends is not authentic, so every part is bounded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Refused deliveries that are kept of each provider: the last ones.
pub const KEPT: u64 = 50;
/// How long one is kept, in seconds: it names an address.
pub const KEPT_S: i64 = 30 * 86_400;
/// Names of headers of one refused delivery at most, and characters of one name.
pub const MAX_NAMES: usize = 40;
/// See [`MAX_NAMES`].
pub const MAX_NAME_CHARS: usize = 64;
/// The longest text of an address: an IPv6 address has 45 characters.
const MAX_SOURCE_CHARS: usize = 45;

/// One refused delivery. No body, no signature, no header's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// When it arrived, Unix milliseconds.
    #[serde(rename = "ar")]
    pub arrival_ms: i64,
    /// The HTTP status that it was answered.
    #[serde(rename = "hs")]
    pub status: u16,
    /// Why: a fixed word.
    #[serde(rename = "re")]
    pub reason: String,
    /// The sender's address as the gateway saw it.
    #[serde(rename = "ip", default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Bytes of the body.
    #[serde(rename = "bb")]
    pub body_bytes: u64,
    /// Names of its headers, in lower case and order, the first [`MAX_NAMES`] of them.
    #[serde(rename = "hn", default, skip_serializing_if = "Vec::is_empty")]
    pub header_names: Vec<String>,
}

impl Rejected {
    /// What is kept of a refused delivery.
    pub fn new(arrival_ms: i64, status: u16, reason: &str, source: &str, body_bytes: usize) -> Self {
        Self {
            arrival_ms,
            status,
            reason: reason.to_owned(),
            source: clean(source, MAX_SOURCE_CHARS),
            body_bytes: u64::try_from(body_bytes).unwrap_or(u64::MAX),
            header_names: Vec::new(),
        }
    }

    /// With the names of its headers.
    #[must_use]
    pub fn with_headers(mut self, headers: &BTreeMap<String, String>) -> Self {
        self.header_names = headers.keys().take(MAX_NAMES).map(|name| clean(name, MAX_NAME_CHARS)).collect();
        self
    }
}

/// The first characters of a text that anybody could have sent; what is not printable ASCII becomes `?`.
fn clean(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_has_no_values() {
        let headers = (0..90).map(|n| (format!("x-{n:03}-{}", "n".repeat(500)), "canary".to_owned())).collect();
        let kept = Rejected::new(1, 401, "no-signature", &"1".repeat(999), 7).with_headers(&headers);
        assert_eq!((kept.header_names.len(), kept.source.len()), (40, 45));
        assert!(kept.header_names.iter().all(|name| name.len() == 64));
        assert!(!format!("{kept:?}").contains("canary"));
        let odd = BTreeMap::from([("a\u{1b}[2Jé".to_owned(), String::new())]);
        assert_eq!(Rejected::new(1, 401, "x", "", 0).with_headers(&odd).header_names, ["a?[2J?"]);
    }
}
