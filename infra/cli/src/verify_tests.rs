//! Every published row through the function that the verb calls, and the verb's own misuse.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use super::*;
use crate::args::{Cli, Verb};
use clap::Parser;

const FILE: &str = include_str!("../../../tests/fixtures/signatures.json");

/// Judged at this time where a row has none: any time must do.
const SOME_TIME_S: i64 = 1_764_417_600;

fn rows() -> Vec<Value> {
    let file: Value = serde_json::from_str(FILE).unwrap();
    file["vectors"].as_array().unwrap().clone()
}

fn row(id: &str) -> Value {
    rows().into_iter().find(|row| row["id"] == id).unwrap()
}

fn judged(row: &Value) -> Value {
    judge(&parse(&row.to_string()).unwrap(), SOME_TIME_S).unwrap().json()
}

#[test]
fn every_row_gives_what_it_expects() {
    let rows = rows();
    assert_eq!(rows.len(), 67);
    for row in rows {
        let verdict = judged(&row);
        assert_eq!(verdict["result"], row["expect"], "{}", row["id"]);
        assert_eq!(verdict["reason"].is_null(), row["expect"] == "valid", "{}", row["id"]);
        if row["kind"] == "digest" {
            assert_eq!(verdict["computed"], row["expected_digest"], "{}", row["id"]);
        }
    }
}

#[test]
fn the_answer_has_a_stable_form() {
    assert_eq!(judged(&row("stdwh-v1-1")).to_string(), r#"{"reason":null,"result":"valid"}"#);
    assert_eq!(judged(&row("stdwh-old-1")).to_string(), r#"{"reason":"timestamp-too-old","result":"invalid"}"#);
}

#[test]
fn a_row_without_a_time_is_judged_at_the_callers() {
    let mut row = row("stdwh-v1-1");
    row["now"] = Value::Null;
    let parsed = parse(&row.to_string()).unwrap();
    // 300 s are accepted, 301 are not.
    assert_eq!(judge(&parsed, 1_614_265_630).unwrap(), Verdict::valid());
    assert_eq!(judge(&parsed, 1_614_265_631).unwrap().reason, Some("timestamp-too-old"));
    assert_eq!(judge(&parsed, 1_614_265_029).unwrap().reason, Some("timestamp-in-future"));
}

#[test]
fn a_slip_is_named_for_people() {
    let verdict = judge(&parse(&row("stripe-crlf-1").to_string()).unwrap(), SOME_TIME_S).unwrap();
    assert_eq!(verdict.reason, Some("wrong-secret-or-body"));
    assert_eq!(verdict.json()["slip"], "body-lf-to-crlf");
    assert!(verdict.help.unwrap().contains("body-lf-to-crlf"));
}

/// A recipe of one's own has no name but its profile's. The signature: `printf '1700000000.{}' | openssl dgst -sha256 -hmac k`.
#[test]
fn a_profile_may_stand_for_the_scheme() {
    let text = r#"{"scheme":"custom","secret":"k","now":1700000000,"body":"{}","headers":{"X-Custom-Timestamp":"1700000000",
        "X-Custom-Signature":"v1=c6ef4734033cee2367414a0939385eca0397754aa7a59716da7463a9298b5146"}}"#;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../profiles/custom.toml");
    let row = Row { providers: Some(file.into()), ..parse(text).unwrap() };
    assert_eq!(judge(&row, 0).unwrap(), Verdict::valid());
}

#[test]
fn an_unusable_secret_is_a_finding_and_not_misuse() {
    let mut empty = row("stdwh-v1-1");
    empty["secret"] = json!("whsec_");
    assert_eq!(judged(&empty)["reason"], "bad-secret");
    let mut digest = row("hmac-sha256-hex-1");
    digest["secret"] = json!("");
    assert_eq!(judged(&digest)["reason"], "bad-secret");
}

#[test]
fn a_wrong_digest_is_shown_beside_the_right_one() {
    let mut wrong = row("hmac-sha256-hex-1");
    wrong["expected_digest"] = json!("00");
    let verdict = judged(&wrong);
    assert_eq!((&verdict["result"], &verdict["expected"]), (&json!("invalid"), &json!("00")));
    assert_eq!(verdict["computed"], "f7f9bd47fb987337b5796fdc1fdb9ba221d0d5396814bfcaf9521f43fd8927fd");
}

#[test]
fn what_is_no_request_is_misuse_and_is_not_quoted() {
    let refused = |text: &str| match parse(text).and_then(|row| judge(&row, 0)) {
        Err(CliError::Misuse(message)) => message,
        other => panic!("{:?}", other.map(|verdict| verdict.json())),
    };
    assert!(!refused(r#"{"scheme":"stripe","secret":12345678,"body":""}"#).contains("12345678"));
    assert!(refused(r#"{"scheme":"paypal","secret":"s","body":""}"#).contains("standard-webhooks"));
    assert!(refused(r#"{"scheme":"stripe","secret":"s"}"#).contains("body_b64"));
    assert!(refused(r#"{"scheme":"stripe","secret":"s","body_b64":"%"}"#).contains("base64"));
    assert!(refused(r#"{"scheme":"stripe","secret":"s","body":"","kind":"x"}"#).contains("kind"));
    assert!(refused(r#"{"scheme":"stripe","secret":"s","body":"","headers":{"A":1}}"#).contains("\"A\""));
}

/// GitHub's own published example, by options.
#[test]
fn options_make_the_same_request() {
    let file = std::env::temp_dir().join(format!("hookledger-verify-{}", std::process::id()));
    std::fs::write(&file, "Hello, World!").unwrap();
    let header = "x-hub-signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let line = ["hookledger", "verify", "--scheme", "github", "--secret", "It's a Secret to Everybody"];
    let line = line.into_iter().chain(["--header", header, "--body", file.to_str().unwrap()]);
    let Verb::Verify(args) = Cli::try_parse_from(line).unwrap().verb else { panic!("another verb") };
    let row = from_args(args);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(judge(&row.unwrap(), SOME_TIME_S).unwrap(), Verdict::valid());
}
