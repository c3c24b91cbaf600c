//! Identifiers as newtypes: opaque, non-empty, bounded, and escaped into keys so that no two tuples
//! of parts ever give one key.
//!
//! An id is never trimmed, case-folded or normalised: the provider's bytes are its identity.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest key part in bytes. Three escaped parts still fit DynamoDB's 2,048-byte partition key.
pub const MAX_PART_BYTES: usize = 200;

/// Why a text cannot be an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("{what} is empty: give 1 to {MAX_PART_BYTES} bytes")]
    Empty {
        /// The name of the identifier.
        what: &'static str,
    },
    /// The text is longer than [`MAX_PART_BYTES`].
    #[error("{what} has {bytes} bytes: at most {MAX_PART_BYTES} are allowed")]
    TooLong {
        /// The name of the identifier.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
    },
    /// A provider slug with a character outside `a-z`, `0-9` and `-`.
    #[error("provider {0:?} is not a slug: use a-z, 0-9 and '-'")]
    NotASlug(String),
}

pub(crate) fn check(what: &'static str, text: &str) -> Result<(), IdError> {
    match text.len() {
        0 => Err(IdError::Empty { what }),
        1..=MAX_PART_BYTES => Ok(()),
        bytes => Err(IdError::TooLong { what, bytes }),
    }
}

/// A text as one part of a path (RFC 3986, 2.3); none for one that would lead elsewhere.
pub(crate) fn segment(text: &str) -> Option<String> {
    (!matches!(text, "" | "." | "..")).then(|| percent(text, b"-._~"))
}

/// Percent-encoding (RFC 3986, 2.1) of all but ASCII letters, digits and the bytes of `plain`.
pub(crate) fn percent(text: &str, plain: &[u8]) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}"); // writing to a String cannot fail
        }
    }
    out
}

/// Escapes one part for use between `|` separators: `%` becomes `%25` and `|` becomes `%7C`.
pub fn escape(part: &str) -> String {
    part.replace('%', "%25").replace('|', "%7C")
}

/// The inverse of [`escape`].
pub fn unescape(part: &str) -> String {
    part.replace("%7C", "|").replace("%25", "%")
}

macro_rules! key_part {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Takes the text as it is.
            ///
            /// # Errors
            /// [`IdError`] when it is empty or longer than [`MAX_PART_BYTES`].
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                check($what, &text)?;
                Ok(Self(text))
            }

            /// The text, byte for byte.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
    };
}

key_part!(
    /// A tenant: the customer on whose behalf a job runs.
    TenantId, "tenant"
);
key_part!(
    /// A job, unique within its tenant.
    JobId, "job id"
);
key_part!(
    /// A wallet, unique within its tenant.
    WalletId, "wallet"
);
key_part!(
    /// The provider's own name for a job (`provider_job_ref`).
    ProviderRef, "provider job ref"
);
key_part!(
    /// A caller's or provider's reference: the key of a funding, correction or reversal.
    Reference, "reference"
);
key_part!(
    /// A booking at the provider, unique within its tenant: what a job of ours is made from.
    BookingId, "booking"
);
key_part!(
    /// A priced model.
    ModelId, "model"
);
key_part!(
    /// One item of a delivery that carries several; `-` when it carries one.
    ItemId, "item"
);

impl ItemId {
    /// The item of a delivery that carries only one.
    pub fn only() -> Self {
        Self("-".to_owned())
    }
}

/// The configured endpoint's slug: two endpoints of one vendor never share a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Provider(String);

impl Provider {
    /// A slug of `a-z`, `0-9` and `-`.
    ///
    /// # Errors
    /// [`IdError`] when it is empty, too long, or has another character.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        check("provider", &text)?;
        let slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.chars().all(slug) { Ok(Self(text)) } else { Err(IdError::NotASlug(text)) }
    }

    /// The slug.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Provider {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl From<Provider> for String {
    fn from(id: Provider) -> String {
        id.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn ids_of_0_and_5000_bytes_are_refused_and_others_kept_as_they_are() {
        assert_eq!(JobId::new(""), Err(IdError::Empty { what: "job id" }));
        assert_eq!(JobId::new("x".repeat(5000)), Err(IdError::TooLong { what: "job id", bytes: 5000 }));
        assert_eq!(JobId::new(" J1\n").unwrap().as_str(), " J1\n");
    }

    #[test]
    fn idm_02_no_two_tuples_give_one_key() {
        let join = |a: &str, b: &str| format!("{}|{}", escape(a), escape(b));
        assert_ne!(join("a|b", "c"), join("a", "b|c"));
        assert_ne!(join("a%7Cb", "c"), join("a|b", "c"));
        for text in ["a|b", "%7C", "%25", "%257C", "plain"] {
            assert_eq!(unescape(&escape(text)), text);
        }
    }
}
