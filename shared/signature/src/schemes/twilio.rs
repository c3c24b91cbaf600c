//! Twilio: HMAC-SHA1 over the full URL, and over the sorted form parameters or a hash of the body in the URL.
//!
//! The URL is used as it stands (SIG-15). Twilio's own validators also try it without its port and with the standard one,
//! because proxies hide which was dialled; so do we.

use super::{Bench, form};
use crate::encoding::Encoding;
use crate::mac::Digest;
use crate::pick::Pick;
use crate::rejection::{Rejection, SignError, Verified};
use crate::request::Request;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use subtle::ConstantTimeEq as _;

const HEADER: &str = "X-Twilio-Signature";

pub(crate) fn verify(bench: Bench<'_>, req: &Request<'_>) -> Result<Verified, Rejection> {
    let text = req.headers.get(HEADER).filter(|text| !text.is_empty()).ok_or(Rejection::NoSignature)?;
    let offered = Encoding::Base64.decode(text).filter(|bytes| bytes.len() == Digest::Sha1.len());
    let offered = offered.ok_or(Rejection::MalformedSignature)?;
    let url = req.url.ok_or(Rejection::BadSecret)?;
    let tail = covered(url, req)?;
    let urls = candidates(url);
    let mut pick = Pick::new();
    for (index, key) in bench.keys.iter().enumerate() {
        let Some(hmac) = key.hmac() else { continue };
        for url in &urls {
            pick.offer(index, hmac.matches(Digest::Sha1, &[url.as_bytes(), &tail], &offered));
        }
    }
    bench.plain(pick.first())
}

/// What follows the URL in the signed string. A body that nothing covers is refused.
fn covered(url: &str, req: &Request<'_>) -> Result<Vec<u8>, Rejection> {
    let content_type = req.headers.get("content-type").map(str::to_ascii_lowercase);
    let is_form = content_type.as_deref().map(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    match (is_form, body_hash(url)) {
        (Some(true), _) | (None, None) => Ok(parameters(req.body)),
        (_, Some(hash)) => {
            let actual = hex::encode(Sha256::digest(req.body));
            let same = bool::from(actual.as_bytes().ct_eq(hash.to_ascii_lowercase().as_bytes()));
            if same { Ok(Vec::new()) } else { Err(Rejection::WrongSecretOrBody) }
        }
        (Some(false), None) if req.body.is_empty() => Ok(Vec::new()),
        (Some(false), None) => Err(Rejection::MalformedSignature),
    }
}

/// The parameter `bodySHA256` of the raw query.
fn body_hash(url: &str) -> Option<&str> {
    let (_, query) = url.split_once('?')?;
    query.split(['&', '#']).find_map(|pair| pair.strip_prefix("bodySHA256="))
}

/// Names in byte order, each followed by its distinct values, sorted.
fn parameters(body: &[u8]) -> Vec<u8> {
    let mut pairs = form::pairs(body);
    pairs.sort();
    pairs.dedup();
    pairs.into_iter().flat_map(|(name, value)| [name, value]).flatten().collect()
}

/// The URL as it is, without its port, and with the standard port.
fn candidates(url: &str) -> Vec<Cow<'_, str>> {
    let mut urls = vec![Cow::Borrowed(url)];
    let Some((scheme, rest)) = url.split_once("://") else {
        return urls;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => {
            urls.push(Cow::Owned(format!("{scheme}://{host}{path}")));
        }
        _ => {
            let port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
            urls.push(Cow::Owned(format!("{scheme}://{authority}:{port}{path}")));
        }
    }
    urls
}

/// The header over the URL as given. A JSON body needs its hash in the URL (`bodySHA256`) already.
pub(crate) fn sign(bench: Bench<'_>, req: &Request<'_>) -> Result<Vec<(String, String)>, SignError> {
    let missing = |what: &str| SignError::Missing { scheme: "twilio".to_owned(), what: what.to_owned() };
    let url = req.url.ok_or_else(|| missing("public URL"))?;
    let tail = covered(url, req).map_err(|_| missing("right bodySHA256 parameter in the URL"))?;
    let key = bench.keys.iter().find_map(|key| key.hmac()).ok_or(SignError::Expired)?;
    let mac = key.mac(Digest::Sha1, &[url.as_bytes(), &tail]);
    Ok(vec![(HEADER.to_owned(), Encoding::Base64.encode(&mac))])
}
