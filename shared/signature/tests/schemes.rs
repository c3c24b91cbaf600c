//! What is particular to single schemes: aliases, kinds of key, signing, endpoint checks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Row, verifier};
use hookledger_signature::{
    Headers, Recipe, Rejection, Request, Secret, SignError, Verifier, braintree_challenge, digest, zoom_encrypted_token,
};

/// Signing again gives the published header: id, time and signature.
#[test]
fn signing_gives_what_the_provider_published() {
    for (id, message_id) in [
        ("stdwh-v1-1", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("openai-1", "wh_685c059ae39c8190af8c71ed1022a24d"),
        ("paddle-1", ""),
        ("slack-1", ""),
        ("shopify-1", ""),
        ("github-1", ""),
        ("razorpay-1", ""),
        ("square-1", ""),
        ("twilio-1", ""),
        ("twilio-json-1", ""),
        ("gitlab-token-1", ""),
        ("linear-1", ""),
    ] {
        let row = Row::of(id);
        let given = Headers::new(row.headers.iter().map(|(name, value)| (name, value)));
        let signed = verifier(&row.scheme, &[&row.secret]).sign(message_id, row.now_ms, &row.request(&given)).unwrap();
        let signed = Headers::new(signed);
        for name in given.names().filter(|name| *name != "content-type") {
            assert_eq!(signed.get(name), given.get(name), "{id} {name}");
        }
    }
}

#[test]
fn stripe_and_sanity_sign_at_the_time_given() {
    for (id, now_ms) in [("stripe-1", 1_533_204_620_000), ("sanity-1", 1_633_519_811_129)] {
        let row = Row::of(id);
        let none = Headers::default();
        let signed = verifier(&row.scheme, &[&row.secret]).sign("", now_ms, &row.request(&none)).unwrap();
        // Stripe's published header also has the decoy v0.
        assert!(row.headers[0].1.starts_with(&signed.last().unwrap().1), "{id}");
    }
}

/// The seed is published beside the signature; ed25519 is deterministic.
#[test]
fn a_private_key_signs_v1a() {
    let row = Row::of("stdwh-v1a-1");
    let private = verifier("standard-webhooks", &["whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="]);
    let none = Headers::default();
    let signed = private.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", row.now_ms, &row.request(&none)).unwrap();
    let published = &row.headers.iter().find(|(name, _)| name == "webhook-signature").unwrap().1;
    assert_eq!(Headers::new(signed).get("webhook-signature"), Some(published.as_str()));
    assert!(row.verify_by(&private).is_ok());
}

#[test]
fn public_keys_and_signed_bodies_do_not_sign() {
    let none = Headers::default();
    for (id, expected) in [
        ("stdwh-v1a-1", SignError::PublicKeyOnly("standard-webhooks".to_owned())),
        ("sendgrid-1", SignError::PublicKeyOnly("sendgrid".to_owned())),
        ("qqbot-1", SignError::PublicKeyOnly("discord".to_owned())),
        ("adyen-1", SignError::InBody("adyen".to_owned())),
        ("mailgun-1", SignError::InBody("mailgun".to_owned())),
        ("braintree-payload-1", SignError::InBody("braintree".to_owned())),
    ] {
        let row = Row::of(id);
        let signed = verifier(&row.scheme, &[&row.secret]).sign("m", row.now_ms, &row.request(&none));
        assert_eq!(signed, Err(expected), "{id}");
    }
}

#[test]
fn what_the_signature_covers_is_returned() {
    let stdwh = Row::of("stdwh-v1-1").verify().unwrap();
    assert_eq!(stdwh.signed_id.as_deref(), Some("msg_p5jXN8AQM9LWM0D4loKWxJek"));
    assert_eq!(stdwh.timestamp_ms, Some(1_614_265_330_000));
    let mailgun = Row::of("mailgun-1").verify().unwrap();
    assert_eq!(mailgun.signed_id.as_deref(), Some("5egbgr1vjgqxtrnp65xfznchgdccwh5d6i09vijqi3whgowmn6"));
    let fal = Row::of("fal-1").verify().unwrap();
    assert_eq!(fal.signed_id.as_deref(), Some("024ca5b1-0000-4000-8000-000000000001"));
    // GitHub's delivery id is a header that nothing covers.
    let github = Row::of("github-1").with_header("X-GitHub-Delivery", "d-1").verify().unwrap();
    assert_eq!((github.signed_id, github.timestamp_ms), (None, None));
    assert_eq!(Row::of("linear-1").verify().unwrap().timestamp_ms, Some(1_677_611_643_000));
}

/// A v1a signature where only a shared secret is configured, and a Braintree pair that names another public key.
#[test]
fn another_kind_of_key_is_unknown() {
    let v1a = Row::of("stdwh-v1a-1");
    let shared = verifier("standard-webhooks", &["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]);
    assert_eq!(v1a.verify_by(&shared), Err(Rejection::UnknownKey));

    let braintree = Row::of("braintree-payload-1");
    let with = |public_key| {
        let secret = Secret::new("k", &braintree.secret).with_public_key(public_key);
        let verifier = Verifier::new(Recipe::named("braintree").unwrap(), vec![secret]).unwrap();
        braintree.verify_by(&verifier).map(|_| ())
    };
    assert_eq!(with("integration_public_key"), Ok(()));
    assert_eq!(with("other_public_key"), Err(Rejection::UnknownKey));
}

/// Without a fixed length, the token's first digit could move into the timestamp under the same signature.
#[test]
fn mailgun_digits_cannot_move_between_timestamp_and_token() {
    let mac = "24f3c2c9a01e15f7e3696ab554b9d03e8a010b56cf5353989e7152df98f5f645";
    let body = |timestamp: &str, token: &str| {
        let text = format!(r#"{{"signature":{{"timestamp":"{timestamp}","token":"{token}","signature":"{mac}"}}}}"#);
        Row { secret: "k".to_owned(), ..Row::of("mailgun-1") }.with_body(text).verify().map(|_| ())
    };
    assert_eq!(body("1403645220", "5abc"), Ok(()));
    assert_eq!(body("14036452205", "abc"), Err(Rejection::MalformedSignature));
    assert_eq!(body("140364522", "05abc"), Err(Rejection::MalformedSignature));
}

#[test]
fn mailgun_subaccounts_are_signed_by_the_parent() {
    let row = Row::of("mailgun-1");
    let text = String::from_utf8(row.body.clone()).unwrap();
    let renamed = text.replace("\"signature\":{", "\"parent-signature\":{");
    assert!(row.clone().with_body(renamed).verify().is_ok());
    assert_eq!(row.with_body("{}").verify(), Err(Rejection::NoSignature));
}

/// The time is read from the authentic body only, and exactly once.
#[test]
fn linear_time_is_inside_the_body() {
    let with = |body: &str, mac: &str, now_ms| {
        let row = Row::of("linear-1").with_body(body).with_header("Linear-Signature", mac);
        Row { now_ms, ..row }.verify().map(|_| ())
    };
    let now = 1_677_611_643_000;
    let (body, mac) =
        (r#"{"webhookTimestamp":1677611643000}"#, "90218de975b14474ec4ae90696abc5b1b8fcc029815347a34b443d9a9c762016");
    assert_eq!(with(body, mac, now + 60_000), Ok(()));
    assert_eq!(with(body, mac, now + 60_001), Err(Rejection::TimestampTooOld));
    assert_eq!(with(body, mac, now - 60_001), Err(Rejection::TimestampInFuture));
    for (body, mac) in [
        (r#"{"action":"create"}"#, "2fa83fa3888125c8fff963482c768f04754e4b5020f2c7de8d3d0f74e1dc4446"),
        (r#"{"webhookTimestamp":1.677611643e12}"#, "0e2675cca79ca26ce45e34a39f83f16708d9d736c33b2b30cc051a296c7dd374"),
        (
            r#"{"webhookTimestamp":1677611643000,"webhookTimestamp":1677611643000}"#,
            "24be1e4e8361e17281f232cb8bbe078640cfa59a8677836d4fd7054ffa48e1a9",
        ),
    ] {
        assert_eq!(with(body, mac, now), Err(Rejection::MalformedSignature), "{body}");
    }
}

#[test]
fn twilio_repeated_values_are_sorted_and_distinct() {
    let headers = Headers::new([
        ("X-Twilio-Signature", "Cb/QeVMnLfKTNzo/pQ+dhRXwndA="),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ]);
    let verify = |body: &[u8]| {
        let req = Request { method: "POST", url: Some("https://hooks.example.test/t"), headers: &headers, body };
        verifier("twilio", &["12345"]).verify(&req, 0).map(|_| ())
    };
    assert_eq!(verify(b"MediaUrl=b&MediaUrl=a&Body=hi+there&MediaUrl=b"), Ok(()));
    assert_eq!(verify(b"MediaUrl=b&Body=hi+there"), Err(Rejection::WrongSecretOrBody));
}

#[test]
fn twilio_json_needs_the_hash_of_its_body() {
    let row = Row::of("twilio-json-1");
    assert_eq!(row.clone().with_body("{}").verify(), Err(Rejection::WrongSecretOrBody));
    let mut bare = row;
    bare.url = Some("https://mycompany.com/myapp.php?foo=1&bar=2".to_owned());
    assert_eq!(bare.verify(), Err(Rejection::MalformedSignature));
}

#[test]
fn endpoint_checks_are_answered() {
    // HMAC-SHA256 of the plain token with the key `secret`, computed with Python.
    let encrypted = "72cef096bfd47c0b8664df30d07721641e4abd7e885ba432204260db477a9a3e";
    let plain = "qgg8vlvZRS6UYooatFL8Aw";
    assert_eq!(zoom_encrypted_token(&Secret::new("k", "secret"), plain).unwrap(), encrypted);
    let row = digest("zoom-challenge", &Secret::new("k", "secret"), plain.as_bytes());
    assert_eq!(row.unwrap(), encrypted);
    let body = format!(r#"{{"event":"endpoint.url_validation","payload":{{"plainToken":"{plain}"}}}}"#);
    let reply = verifier("zoom", &["secret"]).challenge_reply(body.as_bytes(), 0).unwrap();
    let reply: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(reply, serde_json::json!({ "plainToken": plain, "encryptedToken": encrypted }));
    assert_eq!(verifier("zoom", &["secret"]).challenge_reply(b"{\"event\":\"meeting.started\"}", 0), None);

    // docs.slack.dev, "url_verification event": the challenge's value comes back.
    let slack = verifier("slack", &["secret"])
        .challenge_reply(br#"{"type":"url_verification","token":"x","challenge":"3eZb"}"#, 0);
    assert_eq!(slack.map(|r| (r.status, r.body)), Some((200, r#"{"challenge":"3eZb"}"#.to_owned())));
    assert_eq!(
        verifier("slack", &["secret"]).challenge_reply(br#"{"type":"event_callback","challenge":"x"}"#, 0),
        None
    );

    let discord = verifier("discord", &["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]);
    // Webhook events (docs.discord.com, "Webhook Events"): type 0 is the PING and wants 204, type 1 a real event.
    assert_eq!(
        discord.challenge_reply(br#"{"version":1,"type":0}"#, 0).map(|r| (r.status, r.body)),
        Some((204, String::new()))
    );
    assert_eq!(discord.challenge_reply(br#"{"version":1,"type":1,"event":{"type":"ENTITLEMENT_CREATE"}}"#, 0), None);
    assert_eq!(
        discord.challenge_reply(b"{\"type\":1}", 0).map(|r| (r.status, r.body)),
        Some((200, "{\"type\":1}".to_owned()))
    );
    assert_eq!(discord.challenge_reply(b"{\"type\":2}", 0), None);
    assert_eq!(verifier("github", &["x"]).challenge_reply(b"{\"type\":1}", 0), None);

    let answer = braintree_challenge(&Secret::new("k", "integration_private_key"), "20f9f8ed05f77439fe955c977e4c8a53");
    assert_eq!(answer.unwrap(), "d9b899556c966b3f06945ec21311865d35df3ce4");
}

#[test]
fn nothing_secret_is_printed() {
    let secret = Secret::new("2026-11", "s3cr3t-value");
    assert!(format!("{secret:?}").contains("[redacted]"));
    let verifier = Verifier::new(Recipe::named("gitlab-token").unwrap(), vec![secret.clone()]).unwrap();
    let headers = Headers::new([("X-Gitlab-Token", "s3cr3t-value")]);
    let req = Request { method: "POST", url: None, headers: &headers, body: b"s3cr3t-value" };
    let broken = Verifier::new(Recipe::named("github").unwrap(), vec![Secret::new("k", "s3cr3t-value\n")]).unwrap_err();
    let shown = format!("{secret:?} {verifier:?} {headers:?} {req:?} {broken} {broken:?}");
    assert!(!shown.contains("s3cr3t"), "{shown}");
    assert!(shown.contains("2026-11"));
}

/// One verifier serves every request of a process, from any thread.
#[test]
fn a_verifier_can_be_shared() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    shared(&verifier("github", &["x"]));
}
