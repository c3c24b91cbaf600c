//! GitLab's plain token: the secret itself in a header. Nothing is signed; the newer signing token is Standard Webhooks.

use super::Bench;
use crate::pick::Pick;
use crate::rejection::{Rejection, SignError, Verified};
use crate::request::Request;
use subtle::ConstantTimeEq as _;

const HEADER: &str = "X-Gitlab-Token";

pub(crate) fn verify(bench: Bench<'_>, req: &Request<'_>) -> Result<Verified, Rejection> {
    let offered = req.headers.get(HEADER).filter(|text| !text.is_empty()).ok_or(Rejection::NoSignature)?;
    let mut pick = Pick::new();
    for (index, key) in bench.keys.iter().enumerate() {
        if let Some(token) = key.hmac() {
            pick.offer(index, token.bytes().ct_eq(offered.as_bytes()));
        }
    }
    bench.plain(pick.first())
}

/// The token and the delivery's id.
pub(crate) fn sign(bench: Bench<'_>, id: &str) -> Result<Vec<(String, String)>, SignError> {
    let key = bench.keys.iter().find_map(|key| key.hmac()).ok_or(SignError::Expired)?;
    let token = String::from_utf8_lossy(key.bytes()).into_owned();
    Ok(vec![("Idempotency-Key".to_owned(), id.to_owned()), (HEADER.to_owned(), token)])
}
