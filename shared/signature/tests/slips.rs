//! The known slips are told apart. Every signature was computed with Python's `hmac` over the variant that it names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::Row;
use hookledger_signature::slips::{Slip, diagnose};
use hookledger_signature::{Headers, Recipe, Request, Secret};

fn github(secret: &str, signature: &str, body: &[u8]) -> Option<Slip> {
    let headers = Headers::new([("X-Hub-Signature-256", signature)]);
    let req = Request { method: "POST", url: None, headers: &headers, body };
    diagnose(&Recipe::named("github").unwrap(), &[Secret::new("k", secret)], &req, 0)
}

const PLAIN: &str = "sha256=5910e62016ef5034272c926c27071992a465c2335cecf41851bda071577f4f6d";

#[test]
fn bodies() {
    let with_newline = "sha256=015557de5463cb8cd33338a9acf30081fd629d849d401e1d1b89eb16de83586f";
    assert_eq!(github("s3cret", with_newline, b"{\"a\":1}"), Some(Slip::BodyNewlineRemoved));
    assert_eq!(github("s3cret", PLAIN, b"{\"a\":1}\n"), Some(Slip::BodyNewlineAdded));
    assert_eq!(github("s3cret", PLAIN, b"{\"a\":1}\r\n"), Some(Slip::BodyNewlineAdded));
    let crlf = "sha256=26218f750792c80a3379cd882a14a8d51c45a50960e4e9b7ad3c853884de3121";
    let lf = "sha256=4e83518d040bde957d339318f065c963d27a303d02b9268fc5473b78b216125d";
    assert_eq!(github("s3cret", crlf, b"{\n}"), Some(Slip::BodyCrlfToLf));
    assert_eq!(github("s3cret", lf, b"{\r\n}"), Some(Slip::BodyLfToCrlf));
    let stripe = Row::of("stripe-crlf-1");
    let headers = Headers::new(stripe.headers.iter().map(|(name, value)| (name, value)));
    let found = diagnose(
        &Recipe::named("stripe").unwrap(),
        &[Secret::new("k", &stripe.secret)],
        &stripe.request(&headers),
        stripe.now_ms,
    );
    assert_eq!(found, Some(Slip::BodyLfToCrlf));
}

#[test]
fn secrets() {
    let newline = "sha256=974a9a264d75de211a9cf97ee4aa763a7504442ad069cb84ac27a8af7c4523fd";
    assert_eq!(github("s3cret", newline, b"{\"a\":1}"), Some(Slip::SecretHasNewline));
    assert_eq!(github("czNjcmV0", PLAIN, b"{\"a\":1}"), Some(Slip::SecretIsBase64));
    assert_eq!(github("733363726574", PLAIN, b"{\"a\":1}"), Some(Slip::SecretIsHex));
    let stdwh = |signature: &str| {
        let headers =
            Headers::new([("webhook-id", "m"), ("webhook-timestamp", "1700000000"), ("webhook-signature", signature)]);
        let req = Request { method: "POST", url: None, headers: &headers, body: b"{\"a\":1}" };
        let secret = Secret::new("k", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        // Far outside the tolerance, which is another matter.
        diagnose(&Recipe::named("standard-webhooks").unwrap(), &[secret], &req, 0)
    };
    assert_eq!(stdwh("v1,BY50+8S6hHhPpLcQp+hux4Xf5ls4PliU0mMhl4tHc48="), Some(Slip::SecretIsVerbatim));
    assert_eq!(stdwh("v1,HRuUs0YFjXu68KYp/PVNZRkS2oBlcAacohfhF8O/GzQ="), Some(Slip::SecretIsVerbatimWithoutPrefix));
}

#[test]
fn recipes() {
    assert_eq!(
        github("s3cret", "sha256=79999786a1bff10cd4d7dd0b0752574af76be0b5", b"{\"a\":1}"),
        Some(Slip::OtherDigest)
    );
    let base64 = "sha256=WRDmIBbvUDQnLJJsJwcZkqRlwjNc7PQYUb2gcVd/T20=";
    assert_eq!(github("s3cret", base64, b"{\"a\":1}"), Some(Slip::OtherEncoding));
    assert_eq!(github("s3cret", PLAIN.strip_prefix("sha256=").unwrap(), b"{\"a\":1}"), Some(Slip::PrefixMissing));
}

#[test]
fn nothing_is_invented() {
    assert_eq!(github("s3cret", PLAIN, b"{\"a\":1}"), None);
    assert_eq!(github("s3cret", PLAIN, b"{\"a\":2}"), None);
    assert_eq!(github("s3cret\n", PLAIN, b"{\"a\":2}"), None);
}
