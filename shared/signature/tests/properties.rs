//! Properties: what was signed verifies, with any one bit changed it does not, and nothing makes a verifier panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use common::{Row, verifier};
use hookledger_signature::{Headers, Recipe, Request, Verifier};
use proptest::prelude::*;
use serde_json::Value;

/// Scheme, secret, signature header, what precedes the signature in it, its encoding (h, b, u).
const SIGNING: &[(&str, &str, &str, &str, char)] = &[
    ("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "webhook-signature", "v1,", 'b'),
    ("standard-webhooks", "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=", "webhook-signature", "v1a,", 'b'),
    ("stripe", "whsec_abc", "stripe-signature", "v1=", 'h'),
    ("github", "It's a Secret to Everybody", "x-hub-signature-256", "sha256=", 'h'),
    ("slack", "8f742231b10e8888abcd99yyyzzz85a5", "x-slack-signature", "v0=", 'h'),
    ("shopify", "test-webhook-secret", "x-shopify-hmac-sha256", "", 'b'),
    ("paddle", "pdl_ntfset_01", "paddle-signature", "h1=", 'h'),
    ("square", "Ibxx_5AKakO-3qeNVR61Dw", "x-square-hmacsha256-signature", "", 'b'),
    ("zoom", "secret", "x-zm-signature", "v0=", 'h'),
    ("razorpay", "key_secret", "x-razorpay-signature", "", 'h'),
    ("sanity", "test", "sanity-webhook-signature", "v1=", 'u'),
    ("twilio", "12345", "x-twilio-signature", "", 'b'),
];

/// Every scheme stands in one of the two lists, or repeats its secret and signs nothing (GitLab's token).
#[test]
fn no_scheme_is_left_out() {
    let genuine: Vec<String> = GENUINE.iter().map(|id| Row::of(id).scheme).collect();
    for name in Recipe::names() {
        let signing = SIGNING.iter().any(|(known, ..)| *known == name);
        assert!(signing || genuine.iter().any(|known| known == name) || name == "gitlab-token", "{name}");
    }
}

/// Schemes that sign inside the body: a flipped bit of the decoded signature, and of each part that it covers.
#[test]
fn one_bit_inside_the_body() {
    let changed = |row: &Row, path: &str, value: Value| {
        let mut body: Value = serde_json::from_slice(&row.body).unwrap();
        *body.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
        row.clone().with_body(body.to_string()).verify().is_ok()
    };
    let at = |row: &Row, path: &str| -> Value {
        serde_json::from_slice::<Value>(&row.body).unwrap().pointer(path).unwrap().clone()
    };
    let adyen = Row::of("adyen-1");
    let item = "/notificationItems/0/NotificationRequestItem";
    let signature = format!("{item}/additionalData/hmacSignature");
    let bytes = STANDARD.decode(at(&adyen, &signature).as_str().unwrap()).unwrap();
    for bit in 0..bytes.len() * 8 {
        assert!(!changed(&adyen, &signature, STANDARD.encode(flip(&bytes, bit)).into()), "bit {bit}");
    }
    for field in ["pspReference", "merchantAccountCode", "merchantReference", "eventCode", "success"] {
        let path = format!("{item}/{field}");
        let text = at(&adyen, &path).as_str().unwrap().to_owned();
        assert!(
            changed(&adyen, &path, text.clone().into()) && !changed(&adyen, &path, format!("{text}x").into()),
            "{field}"
        );
    }
    assert!(!changed(&adyen, &format!("{item}/amount/value"), 1.into()));
    assert!(!changed(&adyen, &format!("{item}/amount/currency"), "XXX".into()));

    let mailgun = Row::of("mailgun-1");
    let bytes = hex::decode(at(&mailgun, "/signature/signature").as_str().unwrap()).unwrap();
    for bit in 0..bytes.len() * 8 {
        assert!(!changed(&mailgun, "/signature/signature", hex::encode(flip(&bytes, bit)).into()), "bit {bit}");
    }
    let token = at(&mailgun, "/signature/token").as_str().unwrap().to_owned();
    for bit in 0..token.len() {
        let mut other = token.clone().into_bytes();
        other[bit] ^= 1;
        assert!(!changed(&mailgun, "/signature/token", String::from_utf8(other).unwrap().into()), "character {bit}");
    }
    // What the profiles warn of: Mailgun does not sign its data.
    let mut body: Value = serde_json::from_slice(&mailgun.body).unwrap();
    body["event-data"] = Value::from("anything");
    assert!(mailgun.clone().with_body(body.to_string()).verify().is_ok());
}

/// Braintree's form: each bit of the payload's text and of the signature.
#[test]
fn one_bit_of_braintrees_form() {
    let row = Row::of("braintree-payload-1");
    let form: Vec<(usize, Vec<u8>, Vec<u8>)> = hookledger_signature::form_fields(&row.body).collect();
    let encoded = |bytes: &[u8]| bytes.iter().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let with = |signature: &[u8], payload: &[u8]| {
        let body = format!("bt_signature={}&bt_payload={}", encoded(signature), encoded(payload));
        row.clone().with_body(body).verify().is_ok()
    };
    let field = |name: &[u8]| form.iter().find(|(_, known, _)| known == name).unwrap().2.clone();
    let (signature, payload) = (field(b"bt_signature"), field(b"bt_payload"));
    assert!(with(&signature, &payload));
    for at in 0..payload.len() * 8 {
        assert!(!with(&signature, &flip(&payload, at)), "payload, bit {at}");
    }
    let text = String::from_utf8(signature).unwrap();
    let (public, hexed) = text.rsplit_once('|').unwrap();
    let bytes = hex::decode(hexed).unwrap();
    for at in 0..bytes.len() * 8 {
        let other = format!("{public}|{}", hex::encode(flip(&bytes, at)));
        assert!(!with(other.as_bytes(), &payload), "signature, bit {at}");
    }
}

/// What one verification may allocate beside the request itself: signatures are capped at 16, keys of a set at 32, and
/// nothing grows faster than the input. A hundred thousand offers in a header cost no more than sixteen.
#[test]
fn a_huge_header_is_cut_short() {
    let row = Row::of("stripe-1");
    let (_, genuine) = row.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("stripe-signature")).unwrap();
    let zeros = format!("v1={}", "00".repeat(32));
    let (time, last) = genuine.split_once(',').unwrap();
    let many = |count: usize| format!("{time},{},{last}", vec![zeros.as_str(); count].join(","));
    assert!(row.clone().with_header("Stripe-Signature", &many(15)).verify().is_ok());
    assert!(row.clone().with_header("Stripe-Signature", &many(16)).verify().is_err());
    assert!(row.clone().with_header("Stripe-Signature", &many(100_000)).verify().is_err());
}

/// Vectors of schemes that do not sign here: their own genuine request is what gets changed.
const GENUINE: &[&str] =
    &["stdwh-v1a-1", "sendgrid-1", "qqbot-1", "fal-1", "linear-1", "adyen-1", "mailgun-1", "braintree-payload-1"];

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) }
}

fn flip(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let bit = at % (bytes.len() * 8);
    changed[bit / 8] ^= 1 << (bit % 8);
    changed
}

/// The signature header with one bit of the decoded signature changed.
fn flip_signature(value: &str, prefix: &str, encoding: char, at: usize) -> String {
    let start = value.rfind(prefix).unwrap() + prefix.len();
    let (head, text) = value.split_at(if prefix.is_empty() { 0 } else { start });
    let changed = match encoding {
        'h' => hex::encode(flip(&hex::decode(text).unwrap(), at)),
        'b' => STANDARD.encode(flip(&STANDARD.decode(text).unwrap(), at)),
        _ => URL_SAFE_NO_PAD.encode(flip(&URL_SAFE_NO_PAD.decode(text).unwrap(), at)),
    };
    format!("{head}{changed}")
}

fn accepts(verifier: &Verifier, headers: &[(String, String)], body: &[u8], now_ms: i64) -> bool {
    let headers = Headers::new(headers.iter().map(|(name, value)| (name, value)));
    let req = Request { method: "POST", url: Some("https://hooks.example.test/a?b=1"), headers: &headers, body };
    verifier.verify(&req, now_ms).is_ok()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_bit_changes_everything(
        scheme in 0..SIGNING.len(), id in "[!-~]{1,40}", word in "[a-z0-9]{1,60}",
        raw in proptest::collection::vec(any::<u8>(), 1..80), now_s in 0..4_000_000_000_i64, at in any::<usize>(),
    ) {
        let (name, secret, header, prefix, encoding) = SIGNING[scheme];
        let verifier = verifier(name, &[secret]);
        // A form's text can change without changing its meaning (`%2b`, `%2B`): Twilio gets a plain word.
        let form = name == "twilio";
        let body = if form { format!("Body={word}").into_bytes() } else { raw };
        let now_ms = now_s * 1000;
        let empty = Headers::new([("content-type", "application/x-www-form-urlencoded")]);
        let req = Request { method: "POST", url: Some("https://hooks.example.test/a?b=1"), headers: &empty, body: &body };
        let mut headers = verifier.sign(&id, now_ms, &req).unwrap();
        headers.push(("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        prop_assert!(accepts(&verifier, &headers, &body, now_ms));

        let changed = if form { [b"Body=", flip(&body[5..], at).as_slice()].concat() } else { flip(&body, at) };
        prop_assert!(!accepts(&verifier, &headers, &changed, now_ms), "body");

        let recipe = verifier.recipe();
        for index in 0..headers.len() {
            let (known, value) = headers[index].clone();
            let changed = if known.eq_ignore_ascii_case(header) {
                flip_signature(&value, prefix, encoding, at)
            } else if recipe.signs_id() || known.to_ascii_lowercase().contains("timestamp") {
                // Another printable character in a header that is signed (id, timestamp).
                let mut bytes = value.clone().into_bytes();
                let at = at % bytes.len();
                bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
                String::from_utf8(bytes).unwrap()
            } else {
                continue;
            };
            if known == "content-type" { continue; }
            let mut other = headers.clone();
            other[index].1 = changed;
            prop_assert!(!accepts(&verifier, &other, &body, now_ms), "{known}");
        }
    }

    #[test]
    fn one_bit_of_a_genuine_signature(row in 0..GENUINE.len(), at in any::<usize>()) {
        let row = Row::of(GENUINE[row]);
        prop_assert!(row.verify().is_ok());
        let signature = row.headers.iter().find(|(name, _)| name.to_ascii_lowercase().contains("signature")
            && !name.to_ascii_lowercase().contains("timestamp"));
        let changed = match signature {
            None => None,
            Some((name, value)) => {
                let (prefix, encoding) = match row.scheme.as_str() {
                    "standard-webhooks" => ("v1a,", 'b'),
                    "sendgrid" => ("", 'b'),
                    _ => ("", 'h'),
                };
                Some(row.clone().with_header(name, &flip_signature(value, prefix, encoding, at)))
            }
        };
        if let Some(changed) = changed {
            prop_assert!(changed.verify().is_err());
        }
        // What these three leave open, a changed bit may hit: only the others sign the whole body.
        if Recipe::named(&row.scheme).unwrap().signs_body() && row.scheme != "braintree" {
            prop_assert!(row.clone().with_body(flip(&row.body, at)).verify().is_err());
        }
    }

    #[test]
    fn nothing_panics(
        scheme in 0..19_usize, body in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,60}",
        values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 8), now_ms in any::<i64>(),
        url in proptest::option::of(".{0,60}"), shaped in any::<bool>(),
    ) {
        let name = Recipe::names().nth(scheme).unwrap();
        let row = |id| Row::of(id).secret;
        let secret = match name {
            "standard-webhooks" => row("stdwh-v1-1"),
            "adyen" => row("adyen-1"),
            "discord" => row("qqbot-1"),
            "fal" => row("fal-1"),
            "sendgrid" => row("sendgrid-1"),
            _ => "secret".to_owned(),
        };
        let verifier = verifier(name, &[&secret]);
        let interesting = ["t=1,v1=", "v1,", "sha256=", "v0=", "ts=1;h1=", "", "1700000000", "é"];
        let headers = Headers::new(HEADERS.iter().zip(values.iter().cycle()).enumerate().map(|(n, (header, value))| {
            let prefix = if shaped { interesting[n % interesting.len()].as_bytes() } else { b"" };
            (*header, [prefix, value.as_slice()].concat())
        }));
        let bodies = [body, text.clone().into_bytes(), format!("bt_signature=a|{text}&bt_payload=%{text}").into_bytes()];
        for body in &bodies {
            let req = Request { method: "POST", url: url.as_deref(), headers: &headers, body };
            prop_assert!(verifier.verify(&req, now_ms).is_err());
            let _ = verifier.challenge_reply(body, now_ms);
            let _ = verifier.sign(&text, now_ms, &req);
        }
    }
}

const HEADERS: &[&str] = &[
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "stripe-signature",
    "x-hub-signature-256",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "x-shopify-hmac-sha256",
    "paddle-signature",
    "x-twilio-signature",
    "content-type",
    "x-square-hmacsha256-signature",
    "x-zm-signature",
    "x-zm-request-timestamp",
    "linear-signature",
    "x-signature-ed25519",
    "x-signature-timestamp",
    "x-fal-webhook-request-id",
    "x-fal-webhook-user-id",
    "x-fal-webhook-timestamp",
    "x-fal-webhook-signature",
    "x-razorpay-signature",
    "x-gitlab-token",
    "x-twilio-email-event-webhook-signature",
    "x-twilio-email-event-webhook-timestamp",
    "sanity-webhook-signature",
];
