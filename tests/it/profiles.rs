//! The profiles that ship ready to copy: deliveries as their vendors make them, and the vendors' own endpoint checks.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::profile::Profiles;
use local::world::{World, WorldConfig};
use runtime::gateway::GatewayEvent;
use runtime::lambda::PROVIDERS_TOML;
use serde_json::Value;
use signature::{Headers, Recipe, Request, Secret, Verifier};

use crate::sender::{binary, deliver, explain, said};

/// Every file of infra/profiles.
pub(crate) const FILES: [(&str, &str); 20] = [
    ("adyen", include_str!("../../infra/profiles/adyen.toml")),
    ("braintree", include_str!("../../infra/profiles/braintree.toml")),
    ("custom", include_str!("../../infra/profiles/custom.toml")),
    ("discord", include_str!("../../infra/profiles/discord.toml")),
    ("fal", include_str!("../../infra/profiles/fal.toml")),
    ("gitlab", include_str!("../../infra/profiles/gitlab-token.toml")),
    ("hookledger", include_str!("../../infra/profiles/hookledger.toml")),
    ("linear", include_str!("../../infra/profiles/linear.toml")),
    ("mailgun", include_str!("../../infra/profiles/mailgun.toml")),
    ("paddle", include_str!("../../infra/profiles/paddle.toml")),
    ("razorpay", include_str!("../../infra/profiles/razorpay.toml")),
    ("sanity", include_str!("../../infra/profiles/sanity.toml")),
    ("sendgrid", include_str!("../../infra/profiles/sendgrid.toml")),
    ("shopify", include_str!("../../infra/profiles/shopify.toml")),
    ("slack", include_str!("../../infra/profiles/slack.toml")),
    ("square", include_str!("../../infra/profiles/square.toml")),
    ("stripe-billing", include_str!("../../infra/profiles/stripe-billing.toml")),
    ("svix", include_str!("../../infra/profiles/svix.toml")),
    ("twilio", include_str!("../../infra/profiles/twilio.toml")),
    ("zoom", include_str!("../../infra/profiles/zoom.toml")),
];

fn all() -> String {
    let mut text = PROVIDERS_TOML.to_owned();
    FILES.iter().for_each(|(_, file)| text.push_str(file));
    text
}

/// A world with every profile and one secret.
async fn world(variable: &str, secret: &str, judge_at_s: Option<i64>, base_url: Option<&str>) -> World {
    let config = WorldConfig {
        providers: all(),
        secrets: BTreeMap::from([(variable.to_owned(), secret.to_owned())]),
        judge_at_ms: judge_at_s.map(|seconds| seconds * 1000),
        base_url: base_url.map(str::to_owned),
        ..WorldConfig::default()
    };
    World::new(config).await.unwrap()
}

fn row(id: &str) -> Value {
    let file: Value = serde_json::from_str(include_str!("../fixtures/signatures.json")).unwrap();
    file["vectors"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone()
}

/// A published delivery at the endpoint of a shipped profile, with `more` headers that no signature covers; the answer.
async fn published(id: &str, slug: &str, variable: &str, more: &[(&str, &str)]) -> (u16, String) {
    let row = row(id);
    // A row without a time (Sanity's, in milliseconds) is judged at that of its signature.
    let stamp =
        row["headers"]["sanity-webhook-signature"].as_str().and_then(|v| v.strip_prefix("t=")?.split(',').next());
    let now = row["now"].as_i64().or_else(|| Some(stamp?.parse::<i64>().unwrap() / 1000));
    let world = world(variable, row["secret"].as_str().unwrap(), now, None).await;
    let headers = row["headers"].as_object().unwrap().iter();
    let headers = headers.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    let more = more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    let headers = headers.chain(more).collect();
    let body = STANDARD.decode(row["body_b64"].as_str().unwrap()).unwrap();
    deliver(&world, &binary(&world, slug, headers, &body)).await
}

#[test]
fn all_shipped_profiles_live_side_by_side() {
    let profiles = Profiles::parse(&all()).unwrap();
    assert_eq!(profiles.iter().count(), FILES.len() + 3);
    assert_eq!(Profiles::check(&all()), []);
    for (slug, _) in FILES {
        assert!(profiles.get(slug).is_some(), "{slug}");
    }
    // What signs less than the body says so.
    for slug in ["gitlab", "mailgun", "adyen"] {
        assert!(!profiles.get(slug).unwrap().notes.is_empty(), "{slug}");
    }
}

/// The README's profile for forwards alone goes live as it stands.
#[test]
fn the_profile_of_the_readme_passes_the_check() {
    const README: &str = include_str!("../../README.md");
    let section = README.split_once("### Only forward\n").unwrap().1;
    let lines = section.lines().skip_while(|line| !line.starts_with("    [providers."));
    let block: Vec<&str> = lines.take_while(|line| line.is_empty() || line.starts_with("    ")).collect();
    let text = block.join("\n");
    assert!(text.contains("\"pull_request\" = "), "{text}");
    assert_eq!(Profiles::check(&text), []);
}

/// Published vectors hold the signature's headers and often no real event: those that lack what their profile names
/// are authentic and quarantined, and with the headers that the vendor sends besides they are taken. None of these
/// profiles acts on a type.
#[tokio::test(start_paused = true)]
async fn published_deliveries_are_taken_by_the_profiles_for_them() {
    for (id, slug, variable, expected) in [
        ("adyen-1", "adyen", "ADYEN_HMAC_KEY", "ignored"),
        ("sendgrid-1", "sendgrid", "SENDGRID_PUBLIC_KEY", "ignored"),
        ("paddle-1", "paddle", "PADDLE_WEBHOOK_SECRET", "ignored"),
        ("linear-1", "linear", "LINEAR_WEBHOOK_SECRET", "quarantined"), // no event id
        ("mailgun-1", "mailgun", "MAILGUN_SIGNING_KEY", "ignored"),
        ("razorpay-1", "razorpay", "RAZORPAY_WEBHOOK_SECRET", "quarantined"), // no event id
        ("sanity-1", "sanity", "SANITY_WEBHOOK_SECRET", "quarantined"),       // no event id
        ("braintree-payload-1", "braintree", "BRAINTREE_PRIVATE_KEY", "ignored"),
        ("gitlab-token-1", "gitlab", "GITLAB_WEBHOOK_TOKEN", "quarantined"), // no event id
        ("shopify-1", "shopify", "SHOPIFY_CLIENT_SECRET", "quarantined"),    // no event id
        ("stdwh-v1-1", "svix", "SVIX_WEBHOOK_SECRET", "quarantined"),        // no event type
    ] {
        assert_eq!(published(id, slug, variable, &[]).await, said(200, expected), "{id}");
    }
    let headers = |more: &[(&'static str, &'static str)]| more.to_vec();
    let whole = [
        ("linear-1", "linear", "LINEAR_WEBHOOK_SECRET", headers(&[("linear-delivery", "d-1")])),
        ("razorpay-1", "razorpay", "RAZORPAY_WEBHOOK_SECRET", headers(&[("x-razorpay-event-id", "e-1")])),
        (
            "sanity-1",
            "sanity",
            "SANITY_WEBHOOK_SECRET",
            headers(&[("idempotency-key", "k"), ("sanity-operation", "update")]),
        ),
        (
            "gitlab-token-1",
            "gitlab",
            "GITLAB_WEBHOOK_TOKEN",
            headers(&[("idempotency-key", "k"), ("x-gitlab-event", "Push Hook")]),
        ),
        (
            "shopify-1",
            "shopify",
            "SHOPIFY_CLIENT_SECRET",
            headers(&[("x-shopify-webhook-id", "w-1"), ("x-shopify-topic", "orders/create")]),
        ),
    ];
    for (id, slug, variable, more) in whole {
        assert_eq!(published(id, slug, variable, &more).await, said(200, "ignored"), "{id}");
    }
}

/// Braintree's kind stands inside the payload, which is read by nobody: what is kept as the type is no part of it.
#[tokio::test(start_paused = true)]
async fn braintrees_payload_is_not_kept_as_the_type() {
    let row = row("braintree-payload-1");
    let world = world("BRAINTREE_PRIVATE_KEY", row["secret"].as_str().unwrap(), None, None).await;
    let form = [("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
    let body = STANDARD.decode(row["body_b64"].as_str().unwrap()).unwrap();
    assert_eq!(deliver(&world, &binary(&world, "braintree", form.into(), &body)).await, said(200, "ignored"));
    let stored = format!("{:?}", crate::harness::items(&world, "events"));
    assert!(stored.contains("application/x-www-form-urlencoded"), "{stored}");
    assert!(!stored.contains("PG5vdGlmaWNhdGlvbi8"), "{stored}"); // base64 of `<notification/`
}

async fn signed(world: &World, slug: &str, scheme: &str, secret: &str, url: Option<&str>, body: &str) -> GatewayEvent {
    let verifier = Verifier::new(Recipe::named(scheme).unwrap(), vec![Secret::new("s", secret)]).unwrap();
    let form = ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned());
    let more: Vec<(String, String)> = if body.starts_with('{') { vec![] } else { vec![form] };
    let known = Headers::new(more.iter().map(|(name, value)| (name, value)));
    let request = Request { method: "POST", url, headers: &known, body: body.as_bytes() };
    let headers = verifier.sign("e1", 1_764_000_000_000, &request).unwrap();
    world.event("POST", &format!("/webhooks/{slug}"), headers.into_iter().chain(more), Some(body))
}

/// Twilio signs the URL that it dials; the proxy in front may have hidden or added the port.
#[tokio::test(start_paused = true)]
async fn a_twilio_callback_is_a_form_whose_sid_and_status_are_the_event() {
    let body = "MessageSid=SM1&MessageStatus=delivered&To=%2B15551234";
    for base in ["https://hooks.example.com", "https://hooks.example.com:443"] {
        let world = world("TWILIO_AUTH_TOKEN", "12345", None, Some(base)).await;
        for dialled in ["https://hooks.example.com", "https://hooks.example.com:443"] {
            let url = format!("{dialled}/webhooks/twilio");
            let event = signed(&world, "twilio", "twilio", "12345", Some(&url), body).await;
            let expected = if dialled == "https://hooks.example.com" { "ignored" } else { "duplicate" };
            assert_eq!(deliver(&world, &event).await, said(200, expected), "{base} {dialled}");
        }
        let url = format!("{base}/webhooks/twilio");
        let sent = body.replace("delivered", "sent");
        let event = signed(&world, "twilio", "twilio", "12345", Some(&url), &sent).await;
        assert_eq!(deliver(&world, &event).await, said(200, "ignored"), "another status is another event");
        let twice = format!("{body}&MessageStatus=sent");
        let event = signed(&world, "twilio", "twilio", "12345", Some(&url), &twice).await;
        assert_eq!(deliver(&world, &event).await, said(200, "quarantined"), "two readers could read two statuses");
    }
}

/// Zoom: the published example of the token's digest (hmac of the plain token by the secret).
#[tokio::test(start_paused = true)]
async fn zoom_and_slack_get_the_reply_that_they_ask_for() {
    let zoom = world("ZOOM_SECRET_TOKEN", "zoom-secret", Some(1_764_000_000), None).await;
    let body = r#"{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"},"event_ts":1}"#;
    let event = signed(&zoom, "zoom", "zoom", "zoom-secret", None, body).await;
    let answer = zoom.stack.webhook(&event).await;
    let reply: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((answer.status_code, &reply["plainToken"]), (200, &Value::from("qgg8vlvZRS6UYooatFL8Aw")));
    // printf qgg8vlvZRS6UYooatFL8Aw | openssl dgst -sha256 -hmac zoom-secret
    assert_eq!(reply["encryptedToken"], "b17f0320a1322a509340a1a835b3d9edbc491f0b0790ed2d20d0604d39dfe922");
    let slack = world("SLACK_SIGNING_SECRET", "slack-secret", Some(1_764_000_000), None).await;
    let body = r#"{"type":"url_verification","token":"t","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7"}"#;
    let event = signed(&slack, "slack", "slack", "slack-secret", None, body).await;
    let answer = slack.stack.webhook(&event).await;
    let expected = r#"{"challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7"}"#;
    assert_eq!((answer.status_code, answer.body.as_str()), (200, expected));
    // Unsigned, nobody learns anything.
    let unsigned = slack.event("POST", "/webhooks/slack", vec![], Some(body));
    assert_eq!(deliver(&slack, &unsigned).await, said(401, "invalid-signature"));
}

/// Signed by the key of RFC 8032, section 7.1, TEST 1, with Node's crypto module.
#[tokio::test(start_paused = true)]
async fn discords_pings_are_answered_and_its_events_taken() {
    const KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    const PING: &str = r#"{"type":1}"#;
    const EVENTS_PING: &str = r#"{"version":1,"type":0}"#;
    const EVENT: &str =
        r#"{"version":1,"type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2025-11-24T16:00:00Z","data":{}}}"#;
    let world = world("DISCORD_PUBLIC_KEY", KEY, Some(1_764_000_000), None).await;
    for (body, signature, expected) in [
        (
            PING,
            "f1f77667e3dd38d25df5c8029de2accb283fc59ba86ac04f2cd6a7ebcc9a8de130c506535087a1439e0911c5bddbe9c90e4502aee248d08393f9e18817433f09",
            (200, r#"{"type":1}"#),
        ),
        (
            EVENTS_PING,
            "f71b8f218d8fb3ff90c60e9080130e2f62035c79b50936870ded7a2076fb6d186854474425af48e8c7de53fe5fda8cf6938259fcf98dafaec29dce376ba2be0b",
            (204, ""),
        ),
    ] {
        let answer = world.stack.webhook(&discord(&world, signature, body)).await;
        assert_eq!((answer.status_code, answer.body.as_str()), expected);
        // The signature of one body says nothing of another.
        assert_eq!(deliver(&world, &discord(&world, signature, EVENT)).await, said(401, "invalid-signature"));
    }
    let signature = "0bdbcdf71a4bc24dd954a36dd4751cfc75a9b3e9800a33d89b03832c9911e700c72d0cffd85aa93040fccc0701ced3cc04d5c22afe9c0c1f300944faab7e4a07";
    assert_eq!(deliver(&world, &discord(&world, signature, EVENT)).await, said(200, "ignored"));
    assert_eq!(deliver(&world, &discord(&world, signature, EVENT)).await, said(200, "duplicate"));
}

fn discord(world: &World, signature: &str, body: &str) -> GatewayEvent {
    let headers = [("x-signature-ed25519", signature), ("x-signature-timestamp", "1764000000")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    world.event("POST", "/webhooks/discord", headers, Some(body))
}

/// A vendor that takes 200 alone as success gets it for a new event too.
#[tokio::test(start_paused = true)]
async fn a_profile_names_the_status_that_its_vendor_wants() {
    let paddle = all().replace(
        "[providers.paddle]",
        "[providers.paddle.events.\"transaction.completed\"]\noutcome = \"success\"\n\
         operations = [\"complete-job\", \"settle-usage\"]\nfields = { ref = \"body:/data/id\" }\n[providers.paddle]",
    );
    let secrets = BTreeMap::from([("PADDLE_WEBHOOK_SECRET".to_owned(), "pdl_ntfset_1".to_owned())]);
    let config =
        WorldConfig { providers: paddle, secrets, judge_at_ms: Some(1_764_000_000_000), ..WorldConfig::default() };
    let world = World::new(config).await.unwrap();
    let body =
        r#"{"event_id":"evt_1","event_type":"transaction.completed","data":{"id":"txn_1"},"notification_id":"ntf_1"}"#;
    let event = signed(&world, "paddle", "paddle", "pdl_ntfset_1", None, body).await;
    assert_eq!(deliver(&world, &event).await, said(200, "accepted"));
    // The same event for another destination has another notification id, and is no conflict.
    let again = body.replace("ntf_1", "ntf_2");
    let event = signed(&world, "paddle", "paddle", "pdl_ntfset_1", None, &again).await;
    assert_eq!(deliver(&world, &event).await, said(200, "duplicate"));
    assert_eq!(explain(&world, "paddle", "evt_1").await.1["conflicts"], serde_json::json!([]));
}
