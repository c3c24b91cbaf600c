//! Every row of the vectors file holds, and every refusal gives the reason worked out by hand from the row's own note.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use base64::Engine as _;
use hookledger_signature::{Headers, Recipe, Rejection, Request, Secret, Verifier, digest};
use serde_json::Value;

const FILE: &str = include_str!("../../../tests/fixtures/signatures.json");

/// Row id and reason. Shape errors (cut, not decodable, wrong length, no known version) are malformed; the rest is as noted in the row.
const REASONS: &[(&str, &str)] = &[
    ("stdwh-partial-1", "malformed-signature"),
    ("stdwh-partial-3", "malformed-signature"),
    ("stdwh-badts-1", "malformed-signature"),
    ("stdwh-old-1", "timestamp-too-old"),
    ("stdwh-noid-1", "missing-id"),
    ("openai-old-1", "timestamp-too-old"),
    ("stripe-old-1", "timestamp-too-old"),
    ("stripe-tamper-1", "wrong-secret-or-body"),
    ("stripe-crlf-1", "wrong-secret-or-body"),
    ("stripe-v0only-1", "malformed-signature"),
    ("stripe-malformed-1", "malformed-signature"),
    ("stripe-malformed-3", "malformed-signature"),
    ("stripe-malformed-4", "malformed-signature"),
    ("stripe-malformed-6", "malformed-signature"),
    ("stripe-badheader-1", "malformed-signature"),
    ("github-noprefix-1", "malformed-signature"),
    ("github-short-1", "malformed-signature"),
    ("slack-tamper-1", "wrong-secret-or-body"),
    ("twilio-tamper-1", "wrong-secret-or-body"),
    ("square-url-1", "wrong-secret-or-body"),
    ("square-key-1", "wrong-secret-or-body"),
    ("square-sig-1", "malformed-signature"),
    ("mailgun-bad-1", "wrong-secret-or-body"),
    ("adyen-bad-1", "malformed-signature"),
    ("sendgrid-nocrlf-1", "wrong-secret-or-body"),
    ("discord-ts-1", "wrong-secret-or-body"),
    ("fal-body-1", "wrong-secret-or-body"),
    ("gitlab-token-2", "wrong-secret-or-body"),
];

fn rows() -> Vec<Value> {
    let file: Value = serde_json::from_str(FILE).unwrap();
    file["vectors"].as_array().unwrap().clone()
}

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_else(|| panic!("{}: no {field}", row["id"]))
}

fn body(row: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text(row, "body_b64")).unwrap()
}

fn secret(row: &Value) -> Secret {
    let secret = Secret::new("k1", text(row, "secret"));
    match row["aux"]["public_key"].as_str() {
        Some(public_key) => secret.with_public_key(public_key),
        None => secret,
    }
}

fn verify(row: &Value) -> Result<(), Rejection> {
    let recipe = Recipe::named(text(row, "scheme")).unwrap();
    let mut verifier = Verifier::new(recipe, vec![secret(row)]).unwrap();
    if let Some(tolerance_s) = row["tolerance_s"].as_u64() {
        verifier.set_tolerance(Some(u32::try_from(tolerance_s).unwrap()));
    }
    let headers: Headers =
        row["headers"].as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap())).collect();
    let body = body(row);
    let req = Request { method: text(row, "method"), url: row["url"].as_str(), headers: &headers, body: &body };
    let now_ms = row["now"].as_i64().unwrap_or_default() * 1000;
    verifier.verify(&req, now_ms).map(|verified| assert_eq!(verified.key_id, "k1"))
}

#[test]
fn every_request_row_holds() {
    let rows = rows();
    let requests: Vec<_> = rows.iter().filter(|row| row["kind"] == "request").collect();
    assert_eq!(requests.len(), 62);
    for row in requests {
        let id = text(row, "id");
        let expected = match text(row, "expect") {
            "valid" => Ok(()),
            _ => Err(REASONS.iter().find(|(known, _)| *known == id).unwrap_or_else(|| panic!("{id}: no reason")).1),
        };
        assert_eq!(verify(row).map_err(Rejection::as_str), expected, "{id}");
    }
}

#[test]
fn every_digest_row_holds() {
    let rows = rows();
    let digests: Vec<_> = rows.iter().filter(|row| row["kind"] == "digest").collect();
    assert_eq!(digests.len(), 5);
    for row in digests {
        let computed = digest(text(row, "scheme"), &secret(row), &body(row)).unwrap();
        assert_eq!(computed, text(row, "expected_digest"), "{}", row["id"]);
    }
}

/// PayPal needs a certificate from the network and has no vector: it is the one scheme of the file that is not built in.
#[test]
fn every_scheme_but_paypal_is_known_by_name() {
    let file: Value = serde_json::from_str(FILE).unwrap();
    for scheme in file["schemes"].as_array().unwrap() {
        let name = text(scheme, "scheme");
        assert_eq!(Recipe::named(name).is_some(), name != "paypal", "{name}");
    }
    assert_eq!(Recipe::names().filter(|name| Recipe::named(name).is_some()).count(), 19);
}
