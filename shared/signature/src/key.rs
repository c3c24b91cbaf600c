//! Keys, parsed once from the text of a secret (SIG-06).
//!
//! Each scheme fixes the form of its key. What looks alike is not: Stripe's `whsec_...` is used verbatim, the `whsec_...` of
//! Standard Webhooks is base64, Square's key looks like base64url and is text.

mod ed25519;
mod p256;
mod text;

use crate::mac::{Digest, HmacKey};
use crate::secret::{ConfigError, Secret};
use serde::Deserialize;
use std::fmt;
use subtle::Choice;

pub(crate) use ed25519::Ed25519;

/// How the text of a secret becomes a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KeyForm {
    /// HMAC: the text's UTF-8 bytes, verbatim.
    #[default]
    Utf8,
    /// HMAC: standard base64.
    Base64,
    /// HMAC: hexadecimal.
    Hex,
    /// Standard Webhooks: `whsec_` + base64 (HMAC), `whpk_` (ed25519 public) or `whsk_` (ed25519 private).
    Whsec,
    /// HMAC: the raw SHA-1 of the text (Braintree).
    Sha1,
    /// An ed25519 public key, 32 bytes in hexadecimal (Discord).
    Ed25519Hex,
    /// A JSON Web Key Set; its ed25519 keys are used (fal).
    Ed25519Jwks,
    /// A P-256 public key: base64 of its `SubjectPublicKeyInfo` (`SendGrid`).
    P256Spki,
}

impl KeyForm {
    /// Whether the key is a shared secret and not a public key.
    pub(crate) const fn is_hmac(self) -> bool {
        matches!(self, Self::Utf8 | Self::Base64 | Self::Hex | Self::Whsec | Self::Sha1)
    }

    /// What kind of signature such a key checks, in the first place.
    pub(crate) const fn kind(self) -> KeyKind {
        match self {
            Self::Utf8 | Self::Base64 | Self::Hex | Self::Whsec | Self::Sha1 => KeyKind::Hmac,
            Self::Ed25519Hex | Self::Ed25519Jwks => KeyKind::Ed25519,
            Self::P256Spki => KeyKind::P256,
        }
    }

    fn parse(self, secret: &Secret) -> Result<Vec<Key>, ConfigError> {
        match self {
            Self::Utf8 => text::verbatim(secret).map(|key| vec![Key::Hmac(key)]),
            Self::Base64 => text::base64(secret, &secret.value).map(|key| vec![Key::Hmac(key)]),
            Self::Hex => text::hex(secret).map(|key| vec![Key::Hmac(key)]),
            Self::Sha1 => text::sha1(secret).map(|key| vec![Key::Hmac(key)]),
            Self::Whsec => text::standard_webhooks(secret).map(|key| vec![key]),
            Self::Ed25519Hex => ed25519::from_hex(secret).map(|key| vec![Key::Ed25519(key)]),
            Self::Ed25519Jwks => Ok(ed25519::from_jwks(secret)?.into_iter().map(Key::Ed25519).collect()),
            Self::P256Spki => p256::from_spki(secret).map(|point| vec![Key::P256(point)]),
        }
    }
}

/// Which algorithm a key or a signature belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// A shared secret.
    Hmac,
    /// Ed25519.
    Ed25519,
    /// ECDSA over P-256 with SHA-256, DER.
    P256,
}

impl KeyKind {
    /// Whether a signature of this kind can have this length: anything else was cut or is of another kind.
    pub(crate) fn takes_len(self, digest: Digest, len: usize) -> bool {
        match self {
            Self::Hmac => len == digest.len(),
            Self::Ed25519 => len == 64,
            Self::P256 => (8..=72).contains(&len),
        }
    }
}

/// A key that is ready to use.
pub(crate) enum Key {
    /// A shared secret.
    Hmac(HmacKey),
    /// Ed25519, public or private.
    Ed25519(Ed25519),
    /// A P-256 public key: the uncompressed point.
    P256(Vec<u8>),
}

impl Key {
    pub(crate) const fn kind(&self) -> KeyKind {
        match self {
            Self::Hmac(_) => KeyKind::Hmac,
            Self::Ed25519(_) => KeyKind::Ed25519,
            Self::P256(_) => KeyKind::P256,
        }
    }

    /// Whether `offered` is this key's signature over the parts.
    pub(crate) fn matches<P: AsRef<[u8]>>(&self, digest: Digest, parts: &[P], offered: &[u8]) -> Choice {
        let matched = match self {
            Self::Hmac(key) => return key.matches(digest, parts, offered),
            // Public keys and signatures are no secrets: these need not run in constant time.
            Self::Ed25519(key) => key.verify(&join(parts), offered),
            Self::P256(point) => p256::verify(point, &join(parts), offered),
        };
        Choice::from(u8::from(matched))
    }

    /// This key's signature over the parts; `None` for a public key.
    pub(crate) fn sign<P: AsRef<[u8]>>(&self, digest: Digest, parts: &[P]) -> Option<Vec<u8>> {
        match self {
            Self::Hmac(key) => Some(key.mac(digest, parts)),
            Self::Ed25519(key) => key.sign(&join(parts)),
            Self::P256(_) => None,
        }
    }
}

fn join<P: AsRef<[u8]>>(parts: &[P]) -> Vec<u8> {
    let mut message = Vec::with_capacity(parts.iter().map(|part| part.as_ref().len()).sum());
    parts.iter().for_each(|part| message.extend_from_slice(part.as_ref()));
    message
}

/// A key with what its secret says about it.
pub(crate) struct NamedKey {
    pub(crate) id: String,
    pub(crate) not_after_s: Option<i64>,
    pub(crate) public_key: Option<String>,
    pub(crate) key: Key,
}

impl NamedKey {
    /// Every key of one secret (a key set holds several).
    pub(crate) fn parse(secret: &Secret, form: KeyForm) -> Result<Vec<Self>, ConfigError> {
        let keys = form.parse(secret)?;
        Ok(keys.into_iter().map(|key| Self::new(secret, key)).collect())
    }

    pub(crate) fn new(secret: &Secret, key: Key) -> Self {
        Self { id: secret.id.clone(), not_after_s: secret.not_after_s, public_key: secret.public_key.clone(), key }
    }

    /// The shared secret, where it is one.
    pub(crate) fn hmac(&self) -> Option<&HmacKey> {
        match &self.key {
            Key::Hmac(key) => Some(key),
            Key::Ed25519(_) | Key::P256(_) => None,
        }
    }

    /// A secret past its not-after is not tried.
    pub(crate) fn is_live(&self, now_ms: i64) -> bool {
        self.not_after_s.is_none_or(|last| last >= now_ms.div_euclid(1000))
    }
}

impl fmt::Debug for NamedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedKey")
            .field("id", &self.id)
            .field("kind", &self.key.kind())
            .field("key", &"[redacted]")
            .finish_non_exhaustive()
    }
}
