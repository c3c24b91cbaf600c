//! Keyed digests. A key can not be empty: the type has no such value.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha1::Sha1;
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq as _};

/// The hash inside the HMAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Digest {
    /// SHA-256, 32 bytes.
    #[default]
    Sha256,
    /// SHA-1, 20 bytes: still sound inside HMAC, and what Twilio and Braintree use.
    Sha1,
}

impl Digest {
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha1 => 20,
        }
    }
}

/// The bytes of an HMAC key; never empty.
#[derive(Clone)]
pub(crate) struct HmacKey(Vec<u8>);

impl HmacKey {
    pub(crate) fn new(bytes: Vec<u8>) -> Option<Self> {
        (!bytes.is_empty()).then_some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The HMAC over the parts, one after another.
    pub(crate) fn mac<P: AsRef<[u8]>>(&self, digest: Digest, parts: &[P]) -> Vec<u8> {
        match digest {
            Digest::Sha256 => {
                #[expect(clippy::expect_used, reason = "HMAC takes a key of any length (RFC 2104)")]
                let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length");
                parts.iter().for_each(|part| mac.update(part.as_ref()));
                mac.finalize().into_bytes().to_vec()
            }
            Digest::Sha1 => {
                #[expect(clippy::expect_used, reason = "HMAC takes a key of any length (RFC 2104)")]
                let mut mac = Hmac::<Sha1>::new_from_slice(&self.0).expect("any length");
                parts.iter().for_each(|part| mac.update(part.as_ref()));
                mac.finalize().into_bytes().to_vec()
            }
        }
    }

    /// Whether `offered` is the HMAC over the parts, in time that depends on lengths only.
    pub(crate) fn matches<P: AsRef<[u8]>>(&self, digest: Digest, parts: &[P], offered: &[u8]) -> Choice {
        self.mac(digest, parts).ct_eq(offered)
    }
}
