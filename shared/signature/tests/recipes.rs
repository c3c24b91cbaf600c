//! Recipes as data: a provider that is not built in needs a table and nothing else, and a table that protects nothing is
//! refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::Row;
use hookledger_signature::{Headers, Recipe, Request, Secret, Verifier};
use serde_json::{Value, json};

fn recipe(table: Value) -> Result<Recipe, String> {
    serde_json::from_value(table).map_err(|error| error.to_string())
}

/// GitHub's rule written out, under another header, against GitHub's own constant.
#[test]
fn a_new_hmac_provider_is_data_only() {
    let table = json!({ "scheme": "hmac", "signature_header": ["X-Acme", "X-Acme-Old"], "signed": "{body}",
                        "encoding": "hex", "prefix": "sha256=" });
    let github = Row::of("github-1");
    let verifier = Verifier::new(recipe(table).unwrap(), vec![Secret::new("k", &github.secret)]).unwrap();
    for name in ["x-acme", "x-acme-old"] {
        let headers = Headers::new([(name, &github.headers[0].1)]);
        assert!(verifier.verify(&github.request(&headers), 0).is_ok(), "{name}");
    }
}

/// Every field away from its default; the constant was computed with Python's `hmac`.
#[test]
fn every_field_takes_part() {
    let table = json!({ "scheme": "hmac", "signature_header": "X-Sig", "timestamp_prefix": "ts:", "separator": "|",
        "prefix": "s1:", "signed": "{method}\n{url}\n{timestamp}\n{body_sha256}", "digest": "sha1",
        "encoding": "base64url", "key": "base64", "timestamp_unit": "ms", "tolerance_s": 1 });
    let verifier = Verifier::new(recipe(table).unwrap(), vec![Secret::new("k", "a2V5LWtleS1rZXk=")]).unwrap();
    let headers = Headers::new([("x-sig", "ts:42 | s1:uexAbB02uaePlAsWX2x6Kyke1TE")]);
    let req = Request { method: "POST", url: Some("https://h.test/x?a=1"), headers: &headers, body: b"{}" };
    assert_eq!(verifier.verify(&req, 1042).unwrap().timestamp_ms, Some(42));
    assert_eq!(verifier.verify(&req, 1043).unwrap_err().as_str(), "timestamp-too-old");
}

#[test]
fn a_public_key_provider_is_data_too() {
    let row = Row::of("qqbot-1");
    let table = json!({ "scheme": "public-key", "key": "ed25519-hex", "signature_header": "X-Signature-Ed25519",
        "timestamp_header": "X-Signature-Timestamp", "signed": "{timestamp}{body}", "encoding": "hex" });
    let verifier = Verifier::new(recipe(table).unwrap(), vec![Secret::new("k", &row.secret)]).unwrap();
    assert!(row.verify_by(&verifier).is_ok());
}

#[test]
fn a_named_scheme_takes_a_tolerance_and_no_more() {
    let paddle = recipe(json!({ "scheme": "paddle", "tolerance_s": 5 })).unwrap();
    assert_eq!(paddle.tolerance_s(), Some(5));
    assert_eq!(recipe(json!({ "scheme": "stripe" })).unwrap(), Recipe::named("stripe").unwrap());
    assert!(recipe(json!({ "scheme": "stripe", "prefix": "v0=" })).unwrap_err().contains("tolerance_s"));
    assert!(recipe(json!({ "scheme": "strype" })).unwrap_err().contains("stripe"));
    assert!(recipe(json!({ "scheme": "stripe", "tolerance": 5 })).is_err());
    assert!(recipe(json!({})).is_err());
}

#[test]
fn a_recipe_that_protects_nothing_is_refused() {
    let good = json!({ "scheme": "hmac", "signature_header": "X-Sig", "signed": "{body}", "encoding": "hex" });
    assert!(recipe(good.clone()).is_ok());
    for (change, says) in [
        (json!({ "signed": "fixed" }), "{body}"),
        (json!({ "signed": "{body" }), "brace"),
        (json!({ "signed": "{body}}" }), "brace"),
        (json!({ "signed": "{body}{boddy}" }), "boddy"),
        (json!({ "signed": "{id}{body}" }), "id_header"),
        (json!({ "id_header": "X-Id" }), "delivery_header"),
        (json!({ "timestamp_header": "X-Time" }), "{timestamp}"),
        (json!({ "signed": "{timestamp}{body}" }), "{timestamp}"),
        (json!({ "timestamp_prefix": "t=", "signed": "{timestamp}{body}" }), "separator"),
        (json!({ "tolerance_s": 300 }), "timestamp"),
        (json!({ "timestamp_header": "X-T", "timestamp_body": "t" }), "one of"),
        (json!({ "signature_header": [] }), "signature_header"),
        (json!({ "signature_header": "X Sig" }), "header name"),
        (json!({ "encoding": null }), "encoding"),
        (json!({ "key": "ed25519-hex" }), "public-key"),
        (json!({ "scheme": "public-key" }), "ed25519-hex"),
    ] {
        let mut table = good.clone();
        table.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let error = recipe(table).unwrap_err();
        assert!(error.contains(says), "{change}: {error}");
    }
}

#[test]
fn recipes_tell_what_they_cover() {
    let of = |name| Recipe::named(name).unwrap();
    assert_eq!(of("github").id_header(), Some("X-GitHub-Delivery"));
    assert!(!of("github").signs_id() && of("github").signs_body());
    assert_eq!(of("standard-webhooks").id_header(), Some("webhook-id"));
    assert!(of("standard-webhooks").signs_id());
    assert!(!of("mailgun").signs_body() && !of("gitlab-token").signs_body() && !of("adyen").signs_body());
    assert_eq!(of("stripe").tolerance_s(), Some(300));
    assert!(!of("stripe").needs_url());
}
