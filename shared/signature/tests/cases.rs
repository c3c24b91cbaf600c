//! The field cases of signature verification (but for the clock), each named by its id. Constants that are not in the vectors file were computed
//! with Python's `hmac` module.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Row, one, verifier};
use hookledger_signature::{ConfigError, Headers, Recipe, Rejection, Request, Secret, Verifier};

const ZEROS: &str = "v1=0000000000000000000000000000000000000000000000000000000000000000";
const GOOD_T: &str = "t=1533204620";
const GOOD_V1: &str = "v1=2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7";

fn built(scheme: &str, secret: &str) -> Result<Verifier, ConfigError> {
    Verifier::new(Recipe::named(scheme).unwrap(), vec![Secret::new("k", secret)])
}

/// Decoding is the gateway adapter's work; the verifier takes the decoded bytes and never "the other form".
#[test]
fn sig_01_only_the_decoded_bytes_verify() {
    let row = Row::of("github-1");
    assert_eq!(row.body, b"Hello, World!");
    assert!(row.verify().is_ok());
    let still_encoded = row.with_body("SGVsbG8sIFdvcmxkIQ==");
    assert_eq!(still_encoded.verify(), Err(Rejection::WrongSecretOrBody));
}

#[test]
fn sig_03_bytes_are_signed_not_text() {
    let row = Row::of("github-emoji-1");
    assert!(row.verify().is_ok());
    let not_utf8 = row
        .with_body(b"{\"tier\":\"\xff gold\"}")
        .with_header("X-Hub-Signature-256", "sha256=1a4b5dfeef903e818eb9261f903d0e23fc3bcacc63769f22d8a1b3480b8c3230");
    assert!(not_utf8.verify().is_ok());
    let replaced = not_utf8.with_body("{\"tier\":\"\u{fffd} gold\"}");
    assert_eq!(replaced.verify(), Err(Rejection::WrongSecretOrBody));
}

#[test]
fn sig_04_header_names_in_any_case() {
    let row = Row::of("github-1");
    let value = row.headers[0].1.clone();
    for name in ["X-Hub-Signature-256", "x-hub-signature-256", "X-HUB-SIGNATURE-256"] {
        assert!(one("github", &row.secret, (name, &value), &row.body, 0).is_ok(), "{name}");
    }
    assert_eq!(one("github", &row.secret, ("X-Hub-Signature", &value), &row.body, 0), Err(Rejection::NoSignature));
}

#[test]
fn sig_05_every_offered_signature_is_tried() {
    let row = Row::of("stripe-1");
    let with = |list: &[&str]| row.clone().with_header("Stripe-Signature", &list.join(",")).verify();
    assert!(with(&[GOOD_T, GOOD_V1, ZEROS]).is_ok());
    assert!(with(&[GOOD_T, ZEROS, GOOD_V1]).is_ok());
    assert!(with(&[GOOD_T, "v1=zz", "v9=00", ZEROS, GOOD_V1]).is_ok());
    assert!(with(&[GOOD_T, GOOD_V1, GOOD_T, GOOD_V1]).is_ok());
    assert_eq!(with(&[GOOD_T, GOOD_V1, "t=1533204621"]), Err(Rejection::MalformedSignature));
    let capped = |bad: usize| with(&[&[GOOD_T][..], &vec![ZEROS; bad], &[GOOD_V1]].concat());
    assert!(capped(15).is_ok());
    assert_eq!(capped(16), Err(Rejection::WrongSecretOrBody));

    let svix = Row::of("svix-1");
    let good = svix.headers.iter().find(|(name, _)| name == "svix-signature").unwrap().1.clone();
    let bad = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=";
    let v2 = bad.replace("v1", "v2");
    assert!(svix.clone().with_header("svix-signature", &format!("{bad} {good} {v2}")).verify().is_ok());
    assert!(svix.clone().with_header("svix-signature", &format!("{bad} {v2}")).verify().is_err());
}

#[test]
fn sig_05_every_secret_is_tried_and_named() {
    let row = Row::of("stripe-1");
    let named = |secrets: &[&str]| row.verify_by(&verifier("stripe", secrets)).map(|verified| verified.key_id);
    assert_eq!(named(&["webhook_secret", "other"]), Ok("k0".to_owned()));
    assert_eq!(named(&["other", "webhook_secret"]), Ok("k1".to_owned()));
    assert_eq!(named(&["other", "another"]), Err(Rejection::WrongSecretOrBody));
}

#[test]
fn sig_06_the_form_of_a_secret_is_checked_once() {
    let row = Row::of("stdwh-v1-1");
    for secret in [row.secret.as_str(), "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
    {
        assert!(row.verify_by(&built("standard-webhooks", secret).unwrap()).is_ok(), "{secret}");
    }
    let id = || "k".to_owned();
    let refused = |scheme, secret| built(scheme, secret).map(|_| ()).unwrap_err();
    let whitespace = Err(ConfigError::Whitespace { id: id() });
    assert_eq!(Err::<(), _>(refused("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")), whitespace);
    assert_eq!(Err::<(), _>(refused("standard-webhooks", "whsec_MfKQ 9r8G")), whitespace);
    assert_eq!(Err::<(), _>(refused("stripe", "whsec_abc\n")), whitespace);
    assert_eq!(Err::<(), _>(refused("stripe", " whsec_abc")), whitespace);
    assert_eq!(refused("standard-webhooks", "whsec_"), ConfigError::Empty { id: id() });
    assert_eq!(refused("standard-webhooks", "v1,whsec_"), ConfigError::Empty { id: id() });
    assert!(matches!(refused("standard-webhooks", "sk_live_abcd"), ConfigError::Prefix { .. }));
    assert!(matches!(refused("standard-webhooks", "whsec_ab!d"), ConfigError::Undecodable { .. }));
    assert!(matches!(refused("standard-webhooks", "whpk_AAAA"), ConfigError::Undecodable { .. }));
    assert!(matches!(refused("adyen", "44782DEF5"), ConfigError::Undecodable { .. }));
    assert!(matches!(refused("discord", "d75a98"), ConfigError::Undecodable { .. }));
    assert!(matches!(refused("fal", "{\"keys\":[]}"), ConfigError::Undecodable { .. }));
    assert_eq!(refused("stripe", "").as_str(), "bad-secret");
    // HMAC-SHA256 with the nine bytes of the text `whsec_abc`, not with what they would mean as base64.
    let header = ("Stripe-Signature", "t=1000000,v1=30ccff6a1ae1b8de63284dbd0018b27aee275320f7e4198bf1dbb48684e88dd8");
    assert_eq!(one("stripe", "whsec_abc", header, b"{}", 1_000_000), Ok(()));
}

#[test]
fn sig_08_line_ends_are_not_repaired() {
    assert!(Row::of("stripe-1").verify().is_ok());
    assert_eq!(Row::of("stripe-crlf-1").verify(), Err(Rejection::WrongSecretOrBody));
}

#[test]
fn sig_09_the_last_newline_is_signed() {
    assert!(Row::of("sendgrid-1").verify().is_ok());
    assert_eq!(Row::of("sendgrid-nocrlf-1").verify(), Err(Rejection::WrongSecretOrBody));
    let row = Row::of("stripe-1");
    let trimmed = row.body.strip_suffix(b"\n").unwrap().to_vec();
    assert_eq!(row.with_body(trimmed).verify(), Err(Rejection::WrongSecretOrBody));
}

#[test]
fn sig_11_a_non_ascii_signature_is_only_malformed() {
    let row = Row::of("github-1");
    let refused = Err(Rejection::MalformedSignature);
    for value in ["sha256=é", "sha256=é57107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "é", "sha256="]
    {
        assert_eq!(one("github", &row.secret, ("X-Hub-Signature-256", value), &row.body, 0), refused, "{value}");
    }
    let headers = Headers::new([("X-Hub-Signature-256", b"sha256=\xff\xfe".as_slice())]);
    let req = Request { method: "POST", url: None, headers: &headers, body: &row.body };
    assert_eq!(verifier("github", &[&row.secret]).verify(&req, 0).map(|_| ()), refused);
}

/// The signatures that anybody can make with an empty key: there is no verifier to show them to.
#[test]
fn sig_14_an_empty_key_cannot_be_built() {
    for scheme in Recipe::names() {
        for secret in ["", " ", "\n", "whsec_", "v1,whsec_", "whpk_", "whsk_"] {
            let verbatim = !matches!(scheme, "standard-webhooks" | "adyen" | "discord" | "fal" | "sendgrid");
            let text = verbatim && secret.starts_with(['w', 'v']);
            assert_eq!(built(scheme, secret).is_ok(), text, "{scheme} {secret:?}");
        }
        let none = Verifier::new(Recipe::named(scheme).unwrap(), Vec::new()).map(|_| ());
        assert_eq!(none, Err(ConfigError::NoSecret { scheme: scheme.to_owned() }));
    }
    // One empty secret beside a good one is refused too.
    let both = vec![Secret::new("good", "abc"), Secret::new("empty", "")];
    let refused = Verifier::new(Recipe::named("github").unwrap(), both).map(|_| ());
    assert_eq!(refused, Err(ConfigError::Empty { id: "empty".to_owned() }));
    // square-emptykey and gitlab-token-3: what a wrong default would have accepted.
    let with_key = |scheme, header, body: &[u8]| one(scheme, "k", header, body, 0);
    let empty_mac = ("X-Shopify-Hmac-Sha256", "IvjuqQlACvmK3zaBqfMZI+9rf8ukq7VT2Sgjo+nVwl4=");
    assert_eq!(with_key("shopify", empty_mac, b"{}"), Err(Rejection::WrongSecretOrBody));
    assert_eq!(with_key("gitlab-token", ("X-Gitlab-Token", ""), b"{}"), Err(Rejection::NoSignature));
}

#[test]
fn sig_15_the_url_is_used_verbatim() {
    let signed = "https://hooks.example.test/twilio?Digits=1&Retry=1&Msg=a+b&Acct=Z";
    let rebuilt = "https://hooks.example.test/twilio?Acct=Z&Digits=1&Msg=a%20b&Retry=1";
    let headers = Headers::new([
        ("X-Twilio-Signature", "aLLmXiPgSY0ieCNlaECrRSbsXUc="),
        ("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"),
    ]);
    let verify = |url| {
        let req = Request { method: "POST", url, headers: &headers, body: b"CallSid=CA1&Status=completed" };
        verifier("twilio", &["12345"]).verify(&req, 0).map(|_| ())
    };
    assert_eq!(verify(Some(signed)), Ok(()));
    assert_eq!(verify(Some(rebuilt)), Err(Rejection::WrongSecretOrBody));
    // No public URL is our own mistake: 500, not 401.
    assert_eq!(verify(None), Err(Rejection::BadSecret));
    assert!(Rejection::BadSecret.is_configuration());
    assert!(Recipe::named("twilio").unwrap().needs_url() && Recipe::named("square").unwrap().needs_url());
}

#[test]
fn sig_17_an_old_secret_serves_until_its_not_after() {
    let noon = 1_700_000_000;
    let secrets = vec![Secret::new("new", "new-secret"), Secret::new("old", "old-secret").with_not_after(noon)];
    let verifier = Verifier::new(Recipe::named("razorpay").unwrap(), secrets).unwrap();
    let by = |mac: &str, now_ms| {
        let headers = Headers::new([("X-Razorpay-Signature", mac)]);
        let req = Request { method: "POST", url: None, headers: &headers, body: b"{\"event\":\"payment.captured\"}" };
        verifier.verify(&req, now_ms).map(|verified| verified.key_id)
    };
    let old = "ba89cb6199189bd9febf10ed83e3d23cd28bbf7935fbc11410b092f9857bae5a";
    let new = "8e26e2061586c7f2b5c3c71fa3e4fb49f9047a6d1050e51e29be91e94c5ff8d9";
    assert_eq!(by(old, noon * 1000), Ok("old".to_owned()));
    assert_eq!(by(old, noon * 1000 + 1000), Err(Rejection::WrongSecretOrBody));
    assert_eq!(by(new, noon * 1000 + 1000), Ok("new".to_owned()));
    // With nothing left to try, the fault is ours.
    let expired = vec![Secret::new("old", "old-secret").with_not_after(noon)];
    let verifier = Verifier::new(Recipe::named("razorpay").unwrap(), expired).unwrap();
    let headers = Headers::new([("X-Razorpay-Signature", old)]);
    let req = Request { method: "POST", url: None, headers: &headers, body: b"{\"event\":\"payment.captured\"}" };
    assert_eq!(verifier.verify(&req, noon * 1000 + 1000), Err(Rejection::BadSecret));
}

#[test]
fn sig_18_one_forged_item_refuses_the_batch() {
    let row = Row::of("adyen-1");
    let text = String::from_utf8(row.body.clone()).unwrap();
    let batch =
        |second: &str| row.clone().with_body(text.replace("}}]}", &format!("}}}},{second}]}}"))).verify().map(|_| ());
    let item = |signature: &str| {
        format!(
            "{{\"NotificationRequestItem\":{{\"additionalData\":{{{signature}}},\"amount\":{{\"value\":500,\"currency\":\"EUR\"}},\
             \"pspReference\":\"REF2\",\"eventCode\":\"CAPTURE\",\"merchantAccountCode\":\"TestMerchant\",\
             \"merchantReference\":\"Pay2\",\"success\":\"true\"}}}}"
        )
    };
    let signed = |mac: &str| item(&format!("\"hmacSignature\":\"{mac}\""));
    assert_eq!(batch(&signed("jF7s1m6D1c5Kew40M0eCna/26PCgQl3OMEiKMMfjw/g=")), Ok(()));
    assert_eq!(batch(&item("")), Err(Rejection::NoSignature));
    let stolen = signed("coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=");
    assert_eq!(batch(&stolen), Err(Rejection::WrongSecretOrBody));
    let empty = row.clone().with_body("{\"live\":\"false\",\"notificationItems\":[]}");
    assert_eq!(empty.verify(), Err(Rejection::NoSignature));
}
