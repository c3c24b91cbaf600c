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

/// Signed as one program wrote it, received as another one wrote it anew; the order and the numbers are the same.
#[test]
fn the_same_json_written_anew() {
    let compact = "{\"a\":[1,2.50,{}],\"n\":\"é/x\",\"e\":[]}";
    let received = compact.as_bytes();
    // Python's json.dumps, JSON.stringify(..., 2), PHP's json_encode of the same object.
    for signature in [
        "sha256=b575ce4be39a47de8721aeee628e82e7f8171d6ac148b02a176ef8e07b2dff31",
        "sha256=20806a29fb9b41b8bdf8520d71de698c7d63699c018b36e2cfc8da4ef451f0cc",
        "sha256=3619197904a2f3e87554aa94d7792c36611e8f266aa4197741faea95892b7b16",
    ] {
        assert_eq!(github("s3cret", signature, received), Some(Slip::BodyReserialised), "{signature}");
    }
    let python = r#"{"a": [1, 2.50, {}], "n": "\u00e9/x", "e": []}"#;
    assert_eq!(
        github("s3cret", "sha256=084f592da7b65d76420ae073aad80b006808fee586f080515f4d626c66001b2b", python.as_bytes()),
        Some(Slip::BodyReserialised)
    );
    // Another order of the members is another text that nobody can guess.
    assert_eq!(
        github(
            "s3cret",
            "sha256=42ed40f784c6069396cf619361276a03c4f1eaa55ca4a627c8bd7f388c714d2c",
            br#"{"b":1,"a":2}"#
        ),
        None
    );
}

#[test]
fn the_older_sha1_header() {
    let headers = Headers::new([("X-Hub-Signature", "sha1=79999786a1bff10cd4d7dd0b0752574af76be0b5")]);
    let req = Request { method: "POST", url: None, headers: &headers, body: b"{\"a\":1}" };
    let found = diagnose(&Recipe::named("github").unwrap(), &[Secret::new("k", "s3cret")], &req, 0);
    assert_eq!(found, Some(Slip::Sha1Header));
    assert_eq!(diagnose(&Recipe::named("github").unwrap(), &[Secret::new("k", "other")], &req, 0), None);
}
