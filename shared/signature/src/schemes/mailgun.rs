//! Mailgun: a signature object inside the body, over its timestamp and token.
//!
//! `event-data` is NOT covered: whoever holds one genuine triple can put other data beside it. Use the token as the
//! delivery's id, so that a triple counts once. The timestamp must have ten digits (until 2286): with a free length,
//! digits could be moved between timestamp and token under the same signature, and one triple would have several tokens.

use super::Bench;
use crate::clock::{Stamp, Unit};
use crate::encoding::Encoding;
use crate::mac::Digest;
use crate::pick::Pick;
use crate::rejection::{Rejection, Verified};
use crate::request::Request;
use serde::Deserialize;

#[derive(Deserialize)]
struct Body {
    signature: Option<Triple>,
    /// Subaccounts: the same signed with the parent account's key.
    #[serde(rename = "parent-signature")]
    parent: Option<Triple>,
}

#[derive(Deserialize)]
struct Triple {
    timestamp: String,
    token: String,
    signature: String,
}

pub(crate) fn verify(bench: Bench<'_>, req: &Request<'_>) -> Result<Verified, Rejection> {
    let body: Body = serde_json::from_slice(req.body).map_err(|_| Rejection::MalformedSignature)?;
    let mut last = Rejection::NoSignature;
    for triple in [body.signature, body.parent].into_iter().flatten() {
        match check(bench, &triple) {
            Ok(verified) => return Ok(verified),
            Err(reason) => last = reason,
        }
    }
    Err(last)
}

fn check(bench: Bench<'_>, triple: &Triple) -> Result<Verified, Rejection> {
    let offered = Encoding::Hex.decode(&triple.signature).filter(|bytes| bytes.len() == Digest::Sha256.len());
    let offered = offered.ok_or(Rejection::MalformedSignature)?;
    if triple.timestamp.len() != 10 {
        return Err(Rejection::MalformedSignature);
    }
    if triple.token.is_empty() {
        return Err(Rejection::MissingId);
    }
    let stamp = Stamp::parse(&triple.timestamp, Unit::Seconds)?;
    let parts = [triple.timestamp.as_bytes(), triple.token.as_bytes()];
    let mut pick = Pick::new();
    for (index, key) in bench.keys.iter().enumerate() {
        if let Some(hmac) = key.hmac() {
            pick.offer(index, hmac.matches(Digest::Sha256, &parts, &offered));
        }
    }
    stamp.check(bench.now_ms, bench.tolerance_s)?;
    let mut verified = bench.plain(pick.first())?;
    verified.signed_id = Some(triple.token.clone());
    verified.timestamp_ms = Some(stamp.ms());
    Ok(verified)
}
