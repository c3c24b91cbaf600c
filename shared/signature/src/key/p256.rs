//! ECDSA over P-256 with SHA-256 and DER signatures: `SendGrid`'s signed event webhook.

use super::text::no_whitespace;
use crate::secret::{ConfigError, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};

/// `SubjectPublicKeyInfo` of an uncompressed P-256 point, up to the point (RFC 5480): the two object ids
/// id-ecPublicKey and prime256v1, then a bit string of 66 bytes.
const SPKI_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The point of a public key given as the base64 of its `SubjectPublicKeyInfo`.
pub(super) fn from_spki(secret: &Secret) -> Result<Vec<u8>, ConfigError> {
    no_whitespace(secret)?;
    let wrong = || ConfigError::Undecodable {
        id: secret.id.clone(),
        want: "a P-256 public key (base64 of its SubjectPublicKeyInfo, without PEM lines)",
    };
    let der = STANDARD.decode(&secret.value).map_err(|_| wrong())?;
    match der.strip_prefix(&SPKI_HEAD) {
        Some(point) if point.len() == 65 && point.first() == Some(&4) => Ok(point.to_vec()),
        _ => Err(wrong()),
    }
}

pub(super) fn verify(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature).is_ok()
}
