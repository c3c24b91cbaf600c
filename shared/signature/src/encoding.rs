//! How a signature's bytes are written as text. Decoding is strict: no whitespace, canonical padding.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;

/// The text form of a digest or signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    /// Hexadecimal; letters of either case are read, lower case is written.
    Hex,
    /// Standard base64 with padding.
    Base64,
    /// URL-safe base64 without padding.
    Base64url,
}

impl Encoding {
    pub(crate) const ALL: [Self; 3] = [Self::Hex, Self::Base64, Self::Base64url];

    pub(crate) fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => hex::decode(text).ok(),
            Self::Base64 => STANDARD.decode(text).ok(),
            Self::Base64url => URL_SAFE_NO_PAD.decode(text).ok(),
        }
    }

    pub(crate) fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Hex => hex::encode(bytes),
            Self::Base64 => STANDARD.encode(bytes),
            Self::Base64url => URL_SAFE_NO_PAD.encode(bytes),
        }
    }
}
