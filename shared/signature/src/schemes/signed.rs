//! A signature in a header over a template: every recipe that is data.

use super::Bench;
use crate::clock::{Stamp, text_of};
use crate::offered::{self, Offer};
use crate::pick::Pick;
use crate::recipe::{Recipe, Signed, StampAt};
use crate::rejection::{Rejection, SignError, Verified};
use crate::request::Request;
use crate::template::{Fill, Gap, Part};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Verifies one request.
pub(crate) fn verify(
    recipe: &Recipe, signed: &Signed, bench: Bench<'_>, req: &Request<'_>,
) -> Result<Verified, Rejection> {
    let header = req.headers.first_of(&signed.signature_headers).ok_or(Rejection::NoSignature)?;
    let id = match signed.template.has(&Part::Id) {
        true => Some(req.headers.first_of(&recipe.id_headers).ok_or(Rejection::MissingId)?),
        false => None,
    };
    let offered = offered::read(signed, header)?;
    let timestamp = match &signed.timestamp {
        StampAt::None | StampAt::Body(_) => None,
        StampAt::Header(names) => Some(req.headers.first_of(names).ok_or(Rejection::MalformedSignature)?),
        StampAt::Element(_) => Some(offered.timestamp.ok_or(Rejection::MalformedSignature)?),
    };
    let outer = timestamp.map(|text| Stamp::parse(text, signed.unit)).transpose()?;
    let parts = signed.template.render(&Fill { id, timestamp, request: req }).map_err(|gap| match gap {
        Gap::Id => Rejection::MissingId,
        Gap::Url => Rejection::BadSecret,
        Gap::Timestamp | Gap::Header(_) => Rejection::MalformedSignature,
    })?;
    // Computed before the age is looked at, so that an old request takes as long as a forged one.
    let matched = try_all(signed, &bench, &parts, &offered.signatures);
    if let Some(stamp) = outer {
        stamp.check(bench.now_ms, bench.tolerance_s)?;
    }
    let mut verified = bench.plain(matched?)?;
    let stamp = match &signed.timestamp {
        StampAt::Body(member) => Some(stamp_in_body(req.body, member, signed, &bench)?),
        _ => outer,
    };
    verified.signed_id = id.map(str::to_owned);
    verified.timestamp_ms = stamp.map(Stamp::ms);
    Ok(verified)
}

/// Every key with every signature of its kind. An error where no pair could be tried at all.
fn try_all(
    signed: &Signed, bench: &Bench<'_>, parts: &[Cow<'_, [u8]>], offers: &[Offer],
) -> Result<Option<usize>, Rejection> {
    if offers.is_empty() {
        return Err(Rejection::MalformedSignature);
    }
    let mut pick = Pick::new();
    let mut tried = false;
    for (index, key) in bench.keys.iter().enumerate() {
        for offer in offers.iter().filter(|offer| offer.kind == key.key.kind()) {
            tried = true;
            pick.offer(index, key.key.matches(signed.digest, parts, &offer.bytes));
        }
    }
    if tried { Ok(pick.first()) } else { Err(Rejection::UnknownKey) }
}

/// The timestamp inside an authentic body. A body without a readable one is refused: its age cannot be told.
fn stamp_in_body(body: &[u8], member: &str, signed: &Signed, bench: &Bench<'_>) -> Result<Stamp, Rejection> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let found = Member(member).deserialize(&mut json).ok().flatten().ok_or(Rejection::MalformedSignature)?;
    json.end().map_err(|_| Rejection::MalformedSignature)?;
    let stamp = Stamp::parse(found.get(), signed.unit)?;
    stamp.check(bench.now_ms, bench.tolerance_s)?;
    Ok(stamp)
}

/// Finds one member of the top object and keeps its text; twice is an error.
struct Member<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = Option<Box<RawValue>>;
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<Box<RawValue>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            if name != self.0 {
                map.next_value::<IgnoredAny>()?;
            } else if found.replace(map.next_value()?).is_some() {
                return Err(serde::de::Error::custom("the member occurs twice"));
            }
        }
        Ok(found)
    }
}

/// The headers that the provider would add. `req` supplies the body, the URL and any other signed header.
pub(crate) fn sign(
    recipe: &Recipe, signed: &Signed, bench: Bench<'_>, id: &str, req: &Request<'_>,
) -> Result<Vec<(String, String)>, SignError> {
    let now = text_of(bench.now_ms, signed.unit).ok_or(SignError::Time)?;
    let missing = |what: &str| SignError::Missing { scheme: recipe.name.clone(), what: what.to_owned() };
    let parts =
        signed.template.render(&Fill { id: Some(id), timestamp: Some(&now), request: req }).map_err(
            |gap| match gap {
                Gap::Header(name) => missing(&name),
                Gap::Id | Gap::Timestamp | Gap::Url => missing("public URL"),
            },
        )?;
    let signature = bench.keys.iter().find_map(|key| {
        let (_, prefix) = signed.prefixes.iter().find(|(kind, _)| *kind == key.key.kind())?;
        let bytes = key.key.sign(signed.digest, &parts)?;
        Some(format!("{prefix}{}", signed.encoding.encode(&bytes)))
    });
    let mut signature = signature.ok_or_else(|| SignError::PublicKeyOnly(recipe.name.clone()))?;
    let mut headers: Vec<(String, String)> = Vec::new();
    headers.extend(recipe.id_headers.first().map(|name| (name.clone(), id.to_owned())));
    match (&signed.timestamp, signed.separator) {
        (StampAt::Header(names), _) => headers.extend(names.first().map(|name| (name.clone(), now.clone()))),
        (StampAt::Element(prefix), Some(separator)) => signature = format!("{prefix}{now}{separator}{signature}"),
        _ => {}
    }
    headers.extend(signed.signature_headers.first().map(|name| (name.clone(), signature)));
    Ok(headers)
}
