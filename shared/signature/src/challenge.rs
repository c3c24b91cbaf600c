//! Endpoint checks that a provider makes before it sends events, and what they want to hear.
//!
//! Zoom posts `endpoint.url_validation` (again every 72 hours), Slack `url_verification`, Discord a PING: type 1 for
//! interactions, type 0 for webhook events, whose type 1 is a real event. All are signed like any event, so verify first.
//! Braintree asks with a GET, before anything is signed.

use crate::encoding::Encoding;
use crate::key::{Key, KeyForm, NamedKey};
use crate::mac::Digest;
use crate::secret::{ConfigError, Secret};
use crate::verifier::Verifier;
use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
struct ZoomEvent {
    event: String,
    payload: ZoomPayload,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ZoomPayload {
    plain_token: String,
}

#[derive(Deserialize)]
struct SlackEvent {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
}

#[derive(Deserialize)]
struct DiscordEvent {
    #[serde(rename = "type")]
    kind: u8,
    event: Option<IgnoredAny>,
}

/// What an endpoint check wants to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChallengeReply {
    /// The HTTP status.
    pub status: u16,
    /// The body: JSON, or empty with status 204.
    pub body: String,
}

impl ChallengeReply {
    fn ok(body: impl Into<String>) -> Self {
        Self { status: 200, body: body.into() }
    }
}

impl Verifier {
    /// What to answer where an already verified request is an endpoint check of its provider (Zoom, Slack, Discord);
    /// `None` for every other request.
    #[must_use]
    pub fn challenge_reply(&self, body: &[u8], now_ms: i64) -> Option<ChallengeReply> {
        match self.recipe.name.as_str() {
            "zoom" => {
                let event: ZoomEvent = serde_json::from_slice(body).ok()?;
                (event.event == "endpoint.url_validation").then_some(())?;
                let plain = event.payload.plain_token;
                let encrypted = self.live(now_ms).iter().find_map(|key| hex_mac(&key.key, Digest::Sha256, &plain))?;
                let reply = serde_json::json!({ "plainToken": plain, "encryptedToken": encrypted });
                Some(ChallengeReply::ok(reply.to_string()))
            }
            "slack" => {
                let event: SlackEvent = serde_json::from_slice(body).ok()?;
                let reply = serde_json::json!({ "challenge": event.challenge }).to_string();
                (event.kind == "url_verification").then(|| ChallengeReply::ok(reply))
            }
            "discord" => {
                let event: DiscordEvent = serde_json::from_slice(body).ok()?;
                match (event.kind, event.event) {
                    (0, None) => Some(ChallengeReply { status: 204, body: String::new() }),
                    (1, None) => Some(ChallengeReply::ok(r#"{"type":1}"#)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Zoom's `encryptedToken`: the hexadecimal HMAC-SHA256 of `plain_token`.
///
/// # Errors
/// The secret cannot be used.
pub fn zoom_encrypted_token(secret: &Secret, plain_token: &str) -> Result<String, ConfigError> {
    first_mac(secret, KeyForm::Utf8, Digest::Sha256, plain_token)
}

/// Braintree's answer to `GET ?bt_challenge=...`, without the public key and `|` before it.
///
/// # Errors
/// The secret cannot be used.
pub fn braintree_challenge(secret: &Secret, challenge: &str) -> Result<String, ConfigError> {
    first_mac(secret, KeyForm::Sha1, Digest::Sha1, challenge)
}

fn first_mac(secret: &Secret, form: KeyForm, digest: Digest, text: &str) -> Result<String, ConfigError> {
    let keys = NamedKey::parse(secret, form)?;
    keys.iter()
        .find_map(|key| hex_mac(&key.key, digest, text))
        .ok_or_else(|| ConfigError::Empty { id: secret.id.clone() })
}

fn hex_mac(key: &Key, digest: Digest, text: &str) -> Option<String> {
    key.sign(digest, &[text]).map(|bytes| Encoding::Hex.encode(&bytes))
}
