//! Adyen standard notifications: each item of the batch carries its own signature over eight of its fields.
//!
//! The whole batch is refused unless every item is genuine (SIG-18). Fields outside the eight are not covered.

use super::Bench;
use crate::encoding::Encoding;
use crate::mac::Digest;
use crate::pick::Pick;
use crate::rejection::{Rejection, Verified};
use crate::request::Request;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Batch {
    #[serde(rename = "notificationItems")]
    items: Vec<Wrapper>,
}

#[derive(Deserialize)]
struct Wrapper {
    #[serde(rename = "NotificationRequestItem")]
    item: Item,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    additional_data: Option<AdditionalData>,
    psp_reference: Option<String>,
    original_reference: Option<String>,
    merchant_account_code: Option<String>,
    merchant_reference: Option<String>,
    amount: Option<Amount>,
    event_code: Option<String>,
    success: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct AdditionalData {
    #[serde(rename = "hmacSignature")]
    signature: Option<String>,
}

#[derive(Deserialize)]
struct Amount {
    value: Option<Box<RawValue>>,
    currency: Option<String>,
}

pub(crate) fn verify(bench: Bench<'_>, req: &Request<'_>) -> Result<Verified, Rejection> {
    let batch: Batch = serde_json::from_slice(req.body).map_err(|_| Rejection::MalformedSignature)?;
    let mut first = None;
    for Wrapper { item } in &batch.items {
        let matched = check(bench, item)?;
        first = first.or(Some(matched));
    }
    // An empty batch carries no signature.
    first.map_or(Err(Rejection::NoSignature), |index| bench.plain(Some(index)))
}

/// The index of the key that signed the item.
fn check(bench: Bench<'_>, item: &Item) -> Result<usize, Rejection> {
    let text = item.additional_data.as_ref().and_then(|data| data.signature.as_deref());
    let text = text.filter(|text| !text.is_empty()).ok_or(Rejection::NoSignature)?;
    let offered = Encoding::Base64.decode(text).filter(|bytes| bytes.len() == Digest::Sha256.len());
    let offered = offered.ok_or(Rejection::MalformedSignature)?;
    let message = item.signed_string().ok_or(Rejection::MalformedSignature)?;
    let mut pick = Pick::new();
    for (index, key) in bench.keys.iter().enumerate() {
        if let Some(hmac) = key.hmac() {
            pick.offer(index, hmac.matches(Digest::Sha256, &[&message], &offered));
        }
    }
    pick.first().ok_or(Rejection::WrongSecretOrBody)
}

impl Item {
    /// The eight fields joined by colons; an absent one is empty, nothing is escaped.
    fn signed_string(&self) -> Option<String> {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let (value, currency) = match &self.amount {
            Some(amount) => (scalar(amount.value.as_deref())?, text(&amount.currency)),
            None => (String::new(), String::new()),
        };
        let fields = [
            text(&self.psp_reference),
            text(&self.original_reference),
            text(&self.merchant_account_code),
            text(&self.merchant_reference),
            value,
            currency,
            text(&self.event_code),
            scalar(self.success.as_deref())?,
        ];
        Some(fields.join(":"))
    }
}

/// A string's content, or a number's or boolean's own text (never through a float).
fn scalar(raw: Option<&RawValue>) -> Option<String> {
    let text = raw.map_or("", RawValue::get);
    match text.as_bytes().first() {
        Some(b'{' | b'[') => None,
        Some(b'"') => serde_json::from_str(text).ok(),
        _ => Some(text.to_owned()),
    }
}
