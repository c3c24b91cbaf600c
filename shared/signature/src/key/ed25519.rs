//! Ed25519: Standard Webhooks `v1a`, Discord, and fal's key set.

use super::text::no_whitespace;
use crate::secret::{ConfigError, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::Deserialize;

/// A public key, with its private half where the secret is one.
pub(crate) struct Ed25519 {
    public: [u8; 32],
    pair: Option<Ed25519KeyPair>,
}

impl Ed25519 {
    pub(super) fn from_public(secret: &Secret, bytes: &[u8]) -> Result<Self, ConfigError> {
        let public = bytes.try_into().map_err(|_| ConfigError::Undecodable {
            id: secret.id.clone(),
            want: "an ed25519 public key (32 bytes)",
        })?;
        Ok(Self { public, pair: None })
    }

    /// A seed of 32 bytes, or a seed followed by its public key.
    pub(super) fn from_private(secret: &Secret, bytes: &[u8]) -> Result<Self, ConfigError> {
        let pair = match bytes.split_at_checked(32) {
            Some((seed, [])) => Ed25519KeyPair::from_seed_unchecked(seed).ok(),
            Some((seed, public)) => Ed25519KeyPair::from_seed_and_public_key(seed, public).ok(),
            None => None,
        };
        let pair = pair.ok_or_else(|| ConfigError::Undecodable {
            id: secret.id.clone(),
            want: "an ed25519 private key (a seed of 32 bytes, or 64 bytes with its public key)",
        })?;
        let mut key = Self::from_public(secret, pair.public_key().as_ref())?;
        key.pair = Some(pair);
        Ok(key)
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.public).verify(message, signature).is_ok()
    }

    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.pair.as_ref().map(|pair| pair.sign(message).as_ref().to_vec())
    }
}

pub(super) fn from_hex(secret: &Secret) -> Result<Ed25519, ConfigError> {
    no_whitespace(secret)?;
    let bytes = hex::decode(&secret.value).map_err(|_| ConfigError::Undecodable {
        id: secret.id.clone(),
        want: "an ed25519 public key in hexadecimal (64 digits)",
    })?;
    Ed25519::from_public(secret, &bytes)
}

/// So many keys of a set are used: every one of them is tried on every request.
const MAX_KEYS: usize = 32;

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    x: Option<String>,
}

/// Every `OKP`/`Ed25519` key of a JSON Web Key Set (RFC 8037); keys of other kinds are passed over.
pub(super) fn from_jwks(secret: &Secret) -> Result<Vec<Ed25519>, ConfigError> {
    if secret.value.is_empty() {
        return Err(ConfigError::Empty { id: secret.id.clone() });
    }
    let wrong = |want| ConfigError::Undecodable { id: secret.id.clone(), want };
    let set: KeySet =
        serde_json::from_str(&secret.value).map_err(|_| wrong("a JSON Web Key Set (`{\"keys\":[...]}`)"))?;
    let mut keys = Vec::new();
    let ed25519 = |jwk: &&Jwk| jwk.kty == "OKP" && jwk.crv.as_deref() == Some("Ed25519");
    for jwk in set.keys.iter().filter(ed25519).take(MAX_KEYS) {
        let x = jwk.x.as_deref().unwrap_or_default();
        let bytes = URL_SAFE_NO_PAD.decode(x).map_err(|_| wrong("a key set whose `x` members are base64url"))?;
        keys.push(Ed25519::from_public(secret, &bytes)?);
    }
    if keys.is_empty() { Err(wrong("a key set with at least one OKP/Ed25519 key")) } else { Ok(keys) }
}
