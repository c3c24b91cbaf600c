//! Secrets as they are configured, and what can be wrong with them.

use std::fmt;
use thiserror::Error;

/// One configured secret (or public key) with a public id. Its value is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    pub(crate) id: String,
    pub(crate) value: String,
    pub(crate) not_after_s: Option<i64>,
    pub(crate) public_key: Option<String>,
}

impl Secret {
    /// `id` is public (it is logged when it matches), `value` is the text that the provider shows, verbatim.
    pub fn new(id: impl Into<String>, value: impl Into<String>) -> Self {
        Self { id: id.into(), value: value.into(), not_after_s: None, public_key: None }
    }

    /// The last Unix second in which the secret is tried. Keep an old secret for at least the provider's retry horizon:
    /// late retries of older events are still signed with it (SIG-17).
    #[must_use]
    pub fn with_not_after(mut self, unix_s: i64) -> Self {
        self.not_after_s = Some(unix_s);
        self
    }

    /// The public key that names this secret in the request (Braintree). Without one, every pair offered is tried.
    #[must_use]
    pub fn with_public_key(mut self, public_key: impl Into<String>) -> Self {
        self.public_key = Some(public_key.into());
        self
    }

    /// The public id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("id", &self.id)
            .field("value", &"[redacted]")
            .field("not_after_s", &self.not_after_s)
            .finish_non_exhaustive()
    }
}

/// A secret that cannot be used: found when the [`crate::Verifier`] is built. Requests get 500 until it is repaired.
///
/// Its message never holds the value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No secret at all.
    #[error("no secret is configured for scheme `{scheme}`: set one, nothing can be verified without it")]
    NoSecret {
        /// The scheme's name.
        scheme: String,
    },
    /// Empty, or empty behind its prefix. An empty HMAC key is one that anybody can sign with (SIG-14).
    #[error("secret `{id}` is empty: paste the whole secret from the provider's page")]
    Empty {
        /// The secret's public id.
        id: String,
    },
    /// Whitespace where none belongs.
    #[error(
        "secret `{id}` contains whitespace or a control character (often a trailing newline from a file or a shell): store it without"
    )]
    Whitespace {
        /// The secret's public id.
        id: String,
    },
    /// Another kind of secret than the scheme takes.
    #[error("secret `{id}` has the wrong prefix: this scheme takes {want}")]
    Prefix {
        /// The secret's public id.
        id: String,
        /// What is wanted.
        want: &'static str,
    },
    /// Not in the encoding that the scheme prescribes.
    #[error("secret `{id}` is not {want}: paste the whole secret from the provider's page")]
    Undecodable {
        /// The secret's public id.
        id: String,
        /// What is wanted.
        want: &'static str,
    },
}

impl ConfigError {
    /// The stable code, as `hookledger verify` prints it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        "bad-secret"
    }
}
