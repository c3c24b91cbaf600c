//! SIG-07: the clock. Both sides, both edges inclusive, digits only. Constants were computed with Python's `hmac` module.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Row, one, verifier};
use hookledger_signature::{Headers, Rejection, Request};

const NOW_S: i64 = 1_000_000;
const FUTURE: &str = "3d1aa474e6fef80e9993a01e108c7231b346a73fdd53b7d161382abdf9ebb3ae";

/// A genuine Stripe header for the text `t`, judged at second 1000000.
fn at(t: &str, mac: &str) -> Result<(), Rejection> {
    let value = format!("t={t},v1={mac}");
    one("stripe", "clock-secret", ("Stripe-Signature", &value), b"{}", NOW_S)
}

#[test]
fn sig_07_clock_edges() {
    let oldest = "8cb932790826f87e467b1bd7fb3cf31abe6aadef57476fde685813d0b1a43bc6";
    assert_eq!(at("999700", oldest), Ok(()));
    let too_old = "d80028cff850eb48770a2d82602d84054da8b8434c6034a5126cf29639c46583";
    assert_eq!(at("999699", too_old), Err(Rejection::TimestampTooOld));
    let newest = "7b04df13772a9af1057d6d178a57538392d8f24004ca7cee65690e898319c8b7";
    assert_eq!(at("1000300", newest), Ok(()));
    assert_eq!(at("1000301", FUTURE), Err(Rejection::TimestampInFuture));
}

/// Genuine signatures over texts that are no timestamp, the last one with full-width digits.
#[test]
fn sig_07_only_digits_are_a_timestamp() {
    let one_e_six = "bd10954aa7d2bdec808744be1e82d63fda1d394072d0bfc8de0f31b813915487";
    let minus = "9d8ff8227e0f16cdff68a1f2e03121dc38815f81f02820e22683a5d494bb5450";
    let beyond_i64 = "1f6bbf3bb989d703bbf44f71f09fc60bac4ccd1c52b9885038f4d6ee1c0ee5b4";
    let beyond_ms = "9e3cf744cce9cfd05360c8e36d5e840392e9fd436f4f05586fd0af16a8f0b294";
    let blank = "360e70c74a6a8f519b93f2c0e3bd8db027c426f2601bf2290e73a7eb6f2d55d4";
    let plus = "e1b313f893a196bf5291e0384398c655235537726a52000c089ff9df2f6f78f3";
    let empty = "5fbe0af4527a08deafd89b790805d35897ef5516df9426307d33d675f2559ecc";
    let wide = "eceff30cb9010ae53bb5b865e2928359f7406739871f2cb30bdc5b507013f152";
    for (t, mac) in [
        ("1e6", one_e_six),
        ("-1", minus),
        ("99999999999999999999", beyond_i64),
        ("9223372036854775807", beyond_ms),
        (" 1000000", blank),
        ("+1000000", plus),
        ("", empty),
        ("１００００００", wide),
    ] {
        assert_eq!(at(t, mac), Err(Rejection::MalformedSignature), "{t}");
    }
}

/// The milliseconds of our clock do not narrow a tolerance stated in seconds, and no clock overflows.
#[test]
fn sig_07_the_unit_is_the_timestamps_own() {
    let headers = Headers::new([("Stripe-Signature", format!("t=1000301,v1={FUTURE}"))]);
    let req = Request { method: "POST", url: None, headers: &headers, body: b"{}" };
    let stripe = verifier("stripe", &["clock-secret"]);
    let at_ms = |now_ms| stripe.verify(&req, now_ms).map(|_| ());
    assert_eq!(at_ms(1_000_601_999), Ok(()));
    assert_eq!(at_ms(1_000_602_000), Err(Rejection::TimestampTooOld));
    assert_eq!(at_ms(i64::MIN), Err(Rejection::TimestampInFuture));
    assert_eq!(at_ms(i64::MAX), Err(Rejection::TimestampTooOld));
}

#[test]
fn sig_07_zoom_takes_seconds_or_milliseconds() {
    let row = Row::of("zoom-1");
    assert_eq!(row.verify().unwrap().timestamp_ms, Some(1_697_204_592_920));
    let mut seconds = row
        .with_header("x-zm-request-timestamp", "1700000000")
        .with_header("x-zm-signature", "v0=84dd7b277ba946b3a34369b43499bfd9258b410b8894583f1288b1911aa6a6d6")
        .with_body("{}");
    seconds.now_ms = 1_700_000_300_000;
    assert_eq!(seconds.verify().unwrap().timestamp_ms, Some(1_700_000_000_000));
    seconds.now_ms = 1_700_000_301_000;
    assert_eq!(seconds.verify(), Err(Rejection::TimestampTooOld));
}
