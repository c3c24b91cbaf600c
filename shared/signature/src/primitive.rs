//! Bare digests, by names such as `hmac-sha256-hex` or `hmac-sha256-base64-hexkey` (and `braintree-challenge`,
//! `zoom-challenge`): the vectors check the primitive by itself, and `hookledger verify` takes such rows too.

use crate::challenge::braintree_challenge;
use crate::encoding::Encoding;
use crate::key::{KeyForm, NamedKey};
use crate::mac::Digest;
use crate::secret::{ConfigError, Secret};
use thiserror::Error;

/// Why no digest was computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PrimitiveError {
    /// Not a name of this shape.
    #[error(
        "`{0}` is no digest: write hmac-(sha256|sha1)-(hex|base64|base64url), with -hexkey or -base64key where the key is encoded"
    )]
    Unknown(String),
    /// The body of a Braintree challenge is text.
    #[error("the challenge is not UTF-8")]
    NotText,
    /// The secret cannot be used.
    #[error(transparent)]
    Secret(#[from] ConfigError),
}

/// The digest `name` of `body` as text.
///
/// # Errors
/// An unknown name, or an unusable secret.
pub fn digest(name: &str, secret: &Secret, body: &[u8]) -> Result<String, PrimitiveError> {
    if name == "braintree-challenge" {
        let text = std::str::from_utf8(body).map_err(|_| PrimitiveError::NotText)?;
        return Ok(braintree_challenge(secret, text)?);
    }
    let name = if name == "zoom-challenge" { "hmac-sha256-hex" } else { name };
    let (digest, encoding, form) = parse(name).ok_or_else(|| PrimitiveError::Unknown(name.to_owned()))?;
    let keys = NamedKey::parse(secret, form)?;
    let bytes = keys.iter().find_map(|key| key.key.sign(digest, &[body]));
    let bytes = bytes.ok_or_else(|| ConfigError::Empty { id: secret.id.clone() })?;
    Ok(encoding.encode(&bytes))
}

fn parse(name: &str) -> Option<(Digest, Encoding, KeyForm)> {
    let mut words = name.strip_prefix("hmac-")?.split('-');
    let digest = match words.next()? {
        "sha256" => Digest::Sha256,
        "sha1" => Digest::Sha1,
        _ => return None,
    };
    let encoding = match words.next()? {
        "hex" => Encoding::Hex,
        "base64" => Encoding::Base64,
        "base64url" => Encoding::Base64url,
        _ => return None,
    };
    let form = match words.next() {
        None => KeyForm::Utf8,
        Some("hexkey") => KeyForm::Hex,
        Some("base64key") => KeyForm::Base64,
        Some(_) => return None,
    };
    words.next().is_none().then_some((digest, encoding, form))
}
