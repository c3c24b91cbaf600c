//! Braintree: form fields `bt_signature` and `bt_payload`, HMAC-SHA1 with the raw SHA-1 of the private key.
//!
//! `bt_signature` lists `public_key|signature` pairs; only those that name our public key count. The payload is signed as
//! decoded, line feeds included; some SDKs also accept it with one more line feed, and so do we.

use super::{Bench, form};
use crate::encoding::Encoding;
use crate::mac::Digest;
use crate::offered::MAX_OFFERED;
use crate::pick::Pick;
use crate::rejection::{Rejection, Verified};
use crate::request::Request;

pub(crate) fn verify(bench: Bench<'_>, req: &Request<'_>) -> Result<Verified, Rejection> {
    let pairs = form::pairs(req.body);
    let field = |name| form::only(&pairs, name).map_err(|_| Rejection::MalformedSignature);
    let signature = field("bt_signature")?.filter(|text| !text.is_empty()).ok_or(Rejection::NoSignature)?;
    let payload = field("bt_payload")?.ok_or(Rejection::MalformedSignature)?;
    let signature = std::str::from_utf8(signature).map_err(|_| Rejection::MalformedSignature)?;
    let offers: Vec<(&str, Vec<u8>)> = signature.split('&').filter_map(offer).take(MAX_OFFERED).collect();
    if offers.is_empty() {
        return Err(Rejection::MalformedSignature);
    }
    let mut pick = Pick::new();
    let mut tried = false;
    for (index, key) in bench.keys.iter().enumerate() {
        let Some(hmac) = key.hmac() else { continue };
        let ours = |named: &str| key.public_key.as_deref().is_none_or(|own| own == named);
        for (_, offered) in offers.iter().filter(|(named, _)| ours(named)) {
            tried = true;
            pick.offer(index, hmac.matches(Digest::Sha1, &[payload], offered));
            pick.offer(index, hmac.matches(Digest::Sha1, &[payload, b"\n"], offered));
        }
    }
    if tried { bench.plain(pick.first()) } else { Err(Rejection::UnknownKey) }
}

fn offer(pair: &str) -> Option<(&str, Vec<u8>)> {
    let (named, text) = pair.split_once('|')?;
    let bytes = Encoding::Hex.decode(text)?;
    (bytes.len() == Digest::Sha1.len()).then_some((named, bytes))
}
