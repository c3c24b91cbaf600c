//! Shared secrets: from text to the bytes of an HMAC key.

use super::Key;
use super::ed25519::Ed25519;
use crate::mac::HmacKey;
use crate::secret::{ConfigError, Secret};
use ::base64::Engine as _;
use ::base64::alphabet::STANDARD;
use ::base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha1::{Digest as _, Sha1};

/// Padding may be missing in what people paste; it carries no information.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const WANT_WHSEC: &str = "`whsec_...`, `v1,whsec_...`, a public key `whpk_...` or a private key `whsk_...`";

/// The text as it is. Inner blanks are allowed (GitHub's own example has them); at the ends, and control characters
/// anywhere, they come from a file or a shell and not from the provider.
pub(super) fn verbatim(secret: &Secret) -> Result<HmacKey, ConfigError> {
    let text = secret.value.as_str();
    let outer = |c: char| c.is_whitespace() || c == '\u{feff}';
    if text.starts_with(outer) || text.ends_with(outer) || text.chars().any(char::is_control) {
        return Err(ConfigError::Whitespace { id: secret.id.clone() });
    }
    non_empty(secret, text.as_bytes().to_vec())
}

/// Standard base64 of the key.
pub(super) fn base64(secret: &Secret, text: &str) -> Result<HmacKey, ConfigError> {
    non_empty(secret, base64_bytes(secret, text, "standard base64")?)
}

/// Hexadecimal of the key.
pub(super) fn hex(secret: &Secret) -> Result<HmacKey, ConfigError> {
    no_whitespace(secret)?;
    let bytes = ::hex::decode(&secret.value)
        .map_err(|_| ConfigError::Undecodable { id: secret.id.clone(), want: "hexadecimal" })?;
    non_empty(secret, bytes)
}

/// The raw SHA-1 of the text.
pub(super) fn sha1(secret: &Secret) -> Result<HmacKey, ConfigError> {
    let text = verbatim(secret)?;
    non_empty(secret, Sha1::digest(text.bytes()).to_vec())
}

/// Standard Webhooks: the kind of key is told by its prefix. Bare base64 is a `whsec_` secret, as in the reference
/// libraries; `v1,whsec_...` is how some vendors show it (standard-webhooks#235).
pub(super) fn standard_webhooks(secret: &Secret) -> Result<Key, ConfigError> {
    no_whitespace(secret)?;
    let text = secret.value.as_str();
    if let Some(rest) = text.strip_prefix("whpk_") {
        let bytes = base64_bytes(secret, rest, "the base64 of an ed25519 public key (32 bytes)")?;
        return Ed25519::from_public(secret, &bytes).map(Key::Ed25519);
    }
    if let Some(rest) = text.strip_prefix("whsk_") {
        let bytes = base64_bytes(secret, rest, "the base64 of an ed25519 private key (32 or 64 bytes)")?;
        return Ed25519::from_private(secret, &bytes).map(Key::Ed25519);
    }
    let bare = text.strip_prefix("v1,").unwrap_or(text);
    let rest = bare.strip_prefix("whsec_").unwrap_or(bare);
    // No base64 character: what precedes it is another vendor's prefix.
    if rest.contains(['_', ',']) {
        return Err(ConfigError::Prefix { id: secret.id.clone(), want: WANT_WHSEC });
    }
    base64(secret, rest).map(Key::Hmac)
}

fn base64_bytes(secret: &Secret, text: &str, want: &'static str) -> Result<Vec<u8>, ConfigError> {
    no_whitespace(secret)?;
    if text.is_empty() {
        return Err(ConfigError::Empty { id: secret.id.clone() });
    }
    BASE64.decode(text).map_err(|_| ConfigError::Undecodable { id: secret.id.clone(), want })
}

pub(super) fn no_whitespace(secret: &Secret) -> Result<(), ConfigError> {
    if secret.value.is_empty() {
        return Err(ConfigError::Empty { id: secret.id.clone() });
    }
    if secret.value.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\u{feff}') {
        return Err(ConfigError::Whitespace { id: secret.id.clone() });
    }
    Ok(())
}

fn non_empty(secret: &Secret, bytes: Vec<u8>) -> Result<HmacKey, ConfigError> {
    HmacKey::new(bytes).ok_or_else(|| ConfigError::Empty { id: secret.id.clone() })
}
