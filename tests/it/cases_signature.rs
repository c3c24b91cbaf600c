//! CASES A1 and the published vectors, through the receiver: what the whole path does with a signature. The rules of
//! each scheme have unit tests of their own in `signature`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use local::stack::Function;
use local::world::{ACME_SECRET, BEGINS_MS, World, WorldConfig, completed};
use runtime::gateway::GatewayEvent;
use serde::Deserialize;
use serde_json::{Value, json};
use signature::{Headers, Recipe, Request, Secret, Verifier};
use std::collections::BTreeMap;

use crate::sender::{
    LIKE_ACME, Sender, WHSEC, binary, config, counting, deliver, explain, names, profile, profile_of, said,
};

const FIXTURE: &str = include_str!("../fixtures/signatures.json");
/// Secret and signature of github-1, GitHub's published example over "Hello, World!".
const GITHUB_SECRET: &str = "It's a Secret to Everybody";
const GITHUB_SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

/// A vector: one request as some provider sent it.
#[derive(Deserialize)]
struct Vector {
    id: String,
    scheme: String,
    kind: String,
    secret: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    body_b64: String,
    now: Option<i64>,
    expect: String,
}

fn vectors() -> Vec<Vector> {
    let file: Value = serde_json::from_str(FIXTURE).unwrap();
    serde_json::from_value(file["vectors"].clone()).unwrap()
}

fn vector(id: &str) -> Vector {
    vectors().into_iter().find(|v| v.id == id).unwrap()
}

impl Vector {
    fn body(&self) -> Vec<u8> {
        STANDARD.decode(&self.body_b64).unwrap()
    }

    /// Sends it with this body to the endpoint `slug` of a world that judges by the vector's clock.
    async fn sent_with(&self, slug: &str, body: &[u8]) -> (u16, String) {
        let headers = self.headers.clone().into_iter().collect();
        let world = self.world(slug).await;
        deliver(&world, &binary(&world, slug, headers, body)).await
    }

    async fn sent(&self, slug: &str) -> (u16, String) {
        self.sent_with(slug, &self.body()).await
    }

    /// The shipped profiles of stripe and github with the vector's secret, and any scheme at the endpoint `any`.
    async fn world(&self, slug: &str) -> World {
        let any = profile("any", &self.scheme, "event_id = \"body:/id\"\nevent_type = \"body:/type\"");
        let secret = self.secret.clone().unwrap();
        let mut config = config(&[any], &[("any", &secret)]);
        config.secrets.insert(format!("{}_WEBHOOK_SECRET", slug.to_uppercase()), secret);
        config.judge_at_ms = self.now.map(|seconds| seconds * 1000);
        World::new(config).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_published_deliveries_of_stripe_and_github_are_taken_and_the_broken_ones_get_401() {
    let mut seen = BTreeMap::new();
    for v in vectors().iter().filter(|v| v.scheme == "stripe" || v.scheme == "github") {
        let (status, answer) = v.sent(&v.scheme).await;
        match v.expect.as_str() {
            "valid" => assert!((200..300).contains(&status), "{}: {status} {answer}", v.id),
            _ => assert_eq!((status, answer.as_str()), (401, "invalid-signature"), "{}", v.id),
        }
        *seen.entry((v.scheme.clone(), v.expect.clone())).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 4, "valid and broken ones of both: {seen:?}");
    // stripe-1 is a whole event: it is received under its own id, with the time that it was made.
    let v = vector("stripe-1");
    let world = v.world("stripe").await;
    let event = binary(&world, "stripe", v.headers.clone().into_iter().collect(), &v.body());
    assert_eq!(deliver(&world, &event).await, said(200, "ignored"));
    let (_, shown) = explain(&world, "stripe", "evt_123").await;
    assert_eq!((&shown["type"], &shown["first_sent_at"]), (&json!("customer.created"), &json!("2018-08-02T10:10:20Z")));
}

#[tokio::test(start_paused = true)]
async fn every_standard_webhooks_vector_is_judged_as_published_by_a_profile_for_it() {
    let rows: Vec<Vector> = vectors().into_iter().filter(|v| v.scheme == "standard-webhooks").collect();
    assert!(rows.len() >= 13);
    for v in rows {
        assert_eq!(v.sent("any").await.0, if v.expect == "valid" { 200 } else { 401 }, "{}", v.id);
    }
}

#[tokio::test(start_paused = true)]
async fn every_other_vector_of_a_named_scheme_is_judged_as_published() {
    let mut judged = 0;
    for v in vectors() {
        // Where the URL is signed, the path is the provider's own: `sig_15` covers them.
        if v.kind != "request" || v.url.is_some() || v.secret.is_none() || Recipe::named(&v.scheme).is_none() {
            continue;
        }
        assert_eq!(v.sent("any").await.0, if v.expect == "valid" { 200 } else { 401 }, "{}", v.id);
        judged += 1;
    }
    assert!(judged >= 45, "{judged}");
}

#[tokio::test(start_paused = true)]
async fn sig_01_a_body_is_decoded_if_the_gateway_says_so_and_never_otherwise() {
    let v = vector("github-1");
    let world = v.world("github").await;
    let event = |body: &str, flag: bool| {
        let headers = [("x-hub-signature-256".to_owned(), GITHUB_SIGNATURE.to_owned())];
        let event = world.event("POST", "/webhooks/github", headers, Some(body));
        GatewayEvent { is_base64_encoded: flag, ..event }
    };
    assert_eq!(deliver(&world, &event("SGVsbG8sIFdvcmxkIQ==", true)).await, said(200, "quarantined"));
    assert_eq!(deliver(&world, &event("Hello, World!", false)).await, said(200, "duplicate"), "the same bytes");
    assert_eq!(deliver(&world, &event("SGVsbG8sIFdvcmxkIQ==", false)).await, said(401, "invalid-signature"));
    assert_eq!(deliver(&world, &event("Hello, World!", true)).await, said(400, "bad-request"));
    assert_eq!(deliver(&world, &event("SGVsbG8sIFdvcmxkIQ", true)).await, said(400, "bad-request"), "no padding");
}

#[tokio::test(start_paused = true)]
async fn sig_03_bytes_that_are_no_utf_8_are_authentic_and_quarantined_under_their_hash() {
    assert_eq!(vector("github-emoji-1").sent("github").await, said(200, "quarantined"), "no delivery id in the vector");
    let world = vector("github-emoji-1").world("github").await;
    let github = Sender::new("github", "github", GITHUB_SECRET);
    let mut emoji = github.event(&world, "d1", "{\"tier\":\"😀 gold\"}");
    emoji.headers.insert("x-github-event".to_owned(), "sponsorship".to_owned());
    assert_eq!(deliver(&world, &emoji).await, said(200, "ignored"));
    let broken = github.event(&world, "d2", b"{\"tier\":\"\xff gold\"}");
    let response = world.stack.webhook(&broken).await;
    // SHA-256 of the 16 bytes, by sha256sum.
    let id = "raw#b6d4db769e077499e73c52496b44a4108d5478293e9bbb9711b0103ace15b226";
    let answer: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!(
        (response.status_code, answer),
        (200, json!({"status": "quarantined", "event": format!("github/{id}")}))
    );
    let (status, shown) = explain(&world, "github", id).await;
    assert_eq!((status, &shown["reason"]), (200, &json!("unparsable")));
    assert_eq!(explain(&world, "github", "d2").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn sig_04_header_names_count_in_any_case() {
    let v = vector("github-1");
    for name in ["X-Hub-Signature-256", "x-hub-signature-256", "X-HUB-SIGNATURE-256"] {
        let world = v.world("github").await;
        let mut event = binary(&world, "github", vec![], &v.body());
        event.headers.insert(name.to_owned(), GITHUB_SIGNATURE.to_owned());
        assert_eq!(deliver(&world, &event).await, said(200, "quarantined"), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn sig_05_every_offered_signature_is_tried_against_every_secret() {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    let rolling = profile_of("beta", "standard-webhooks", r#"["*"]"#, r#"["BETA_SECRET", "BETA_OLD_SECRET"]"#, &more);
    let config = config(&[rolling], &[("beta", WHSEC), ("beta-old", ACME_SECRET)]);
    let world = World::new(config).await.unwrap();
    let bad = format!("v1,{}", STANDARD.encode([0; 32]));
    for (index, secret) in [WHSEC, ACME_SECRET].into_iter().enumerate() {
        let sender = Sender::new("beta", "standard-webhooks", secret);
        for (form, expected) in
            [("{good} {bad}", 202), ("{bad} {good}", 202), ("{bad} {good} v2,{bad} v1,%", 202), ("{bad}", 401)]
        {
            let id = format!("e-{index}-{form}");
            let mut event = sender.event(&world, &id, completed("j1"));
            let good = event.headers["webhook-signature"].clone();
            let header = form.replace("{good}", &good).replace("{bad}", &bad);
            event.headers.insert("webhook-signature".to_owned(), header);
            assert_eq!(deliver(&world, &event).await.0, expected, "{form}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sig_06_a_secret_is_read_by_its_scheme_and_a_damaged_one_is_500() {
    let more = "event_id = \"body:/id\"\nevent_type = \"body:/type\"";
    for (scheme, configured, signs, expected) in [
        ("standard-webhooks", format!("v1,{WHSEC}"), WHSEC, 200),
        ("standard-webhooks", WHSEC.trim_start_matches("whsec_").to_owned(), WHSEC, 200),
        ("standard-webhooks", format!("{WHSEC}\n"), WHSEC, 500),
        ("standard-webhooks", "whsec_".to_owned(), WHSEC, 500),
        // Stripe's secret is the text itself, prefix and all.
        ("stripe", "whsec_abc".to_owned(), "whsec_abc", 200),
        ("stripe", "whsec_abc".to_owned(), "abc", 401),
        ("stripe", "whsec_abc\n".to_owned(), "whsec_abc", 500),
        ("stripe", " whsec_abc".to_owned(), "whsec_abc", 500),
    ] {
        let config = config(&[profile("beta", scheme, more)], &[("beta", &configured)]);
        let world = World::new(config).await.unwrap();
        let sender = Sender::new("beta", scheme, signs);
        let (status, _) = sender.send(&world, "e1", r#"{"id":"e1","type":"n"}"#).await;
        assert_eq!(status, expected, "{scheme} {configured:?}");
    }
}

/// Stripe signs `{timestamp}.{body}`; this signs the same over any text in the timestamp's place.
fn stripe_header(timestamp: &str, body: &str) -> String {
    let recipe: Recipe = toml::from_str(
        "scheme = \"hmac\"\nsignature_header = \"x-s\"\nsigned = \"{header:x-t}.{body}\"\nencoding = \"hex\"\nkey = \"utf8\"",
    )
    .unwrap();
    let headers = Headers::new([("x-t", timestamp)]);
    let request = Request { method: "POST", url: None, headers: &headers, body: body.as_bytes() };
    let verifier = Verifier::new(recipe, vec![Secret::new("s", "webhook_secret")]).unwrap();
    let signed = verifier.sign("", 0, &request).unwrap();
    let mac = &signed.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-s")).unwrap().1;
    format!("t={timestamp},v1={mac}")
}

#[tokio::test(start_paused = true)]
async fn sig_07_the_age_is_judged_both_ways_by_the_time_of_arrival() {
    let mut config = WorldConfig::default();
    config.secrets.insert("STRIPE_WEBHOOK_SECRET".to_owned(), "webhook_secret".to_owned());
    let world = World::new(config).await.unwrap();
    for (timestamp, expected) in [
        ("999700", 200),
        ("999699", 401),
        ("1000300", 200),
        ("1000301", 401),
        ("1e6", 401),
        ("-1", 401),
        ("99999999999999999999", 401),
        ("9223372036854775807", 401),
        ("", 401),
        ("1000000", 200),
    ] {
        let body = format!(r#"{{"id":"evt_{timestamp}","type":"ping"}}"#);
        let headers = [("stripe-signature".to_owned(), stripe_header(timestamp, &body))];
        let mut event = world.event("POST", "/webhooks/stripe", headers, Some(&body));
        // Arrival at the gateway; the function's own clock shows another time.
        event.request_context.time_epoch = 1_000_000_000;
        assert_eq!(deliver(&world, &event).await.0, expected, "{timestamp}");
    }
}

#[tokio::test(start_paused = true)]
async fn sig_08_line_ends_are_never_repaired() {
    assert_eq!(vector("stripe-1").sent("stripe").await, said(200, "ignored"));
    assert_eq!(vector("stripe-crlf-1").sent("stripe").await, said(401, "invalid-signature"));
}

#[tokio::test(start_paused = true)]
async fn sig_09_a_last_line_end_is_never_trimmed() {
    assert_eq!(vector("sendgrid-1").sent("any").await, said(200, "quarantined"));
    assert_eq!(vector("sendgrid-nocrlf-1").sent("any").await, said(401, "invalid-signature"));
    let v = vector("stripe-1");
    let body = v.body();
    let trimmed = body.strip_suffix(b"\n").unwrap();
    assert_eq!(v.sent_with("stripe", trimmed).await, said(401, "invalid-signature"));
    assert_eq!(v.sent_with("stripe", &[&body[..], b"\n"].concat()).await, said(401, "invalid-signature"));
}

#[tokio::test(start_paused = true)]
async fn sig_11_a_header_outside_ascii_is_401() {
    let v = vector("github-1");
    let world = v.world("github").await;
    for value in ["sha256=é", "é", "sha256=\u{fffd}", "sha256=\u{0}", &GITHUB_SIGNATURE.replace('7', "\u{ff17}")] {
        let headers = vec![("x-hub-signature-256".to_owned(), value.to_owned())];
        let event = binary(&world, "github", headers, &v.body());
        assert_eq!(deliver(&world, &event).await, said(401, "invalid-signature"), "{value:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn sig_14_an_empty_secret_verifies_nothing() {
    // HMAC-SHA256 of "Hello, World!" with the empty key, by Python's hmac.
    let forged = "sha256=2bbcfa9524f3218c7a34b30e6936f8b1a4516cb097f1a85a1c7d98b5977ec769";
    let mut config = WorldConfig::default();
    config.secrets.insert("GITHUB_WEBHOOK_SECRET".to_owned(), String::new());
    let calls = counting(&config, Function::Receiver);
    let world = World::new(config).await.unwrap();
    let headers = vec![("x-hub-signature-256".to_owned(), forged.to_owned())];
    let event = binary(&world, "github", headers, b"Hello, World!");
    assert_eq!(deliver(&world, &event).await, said(500, "not-configured"));
    assert_eq!(names(&calls.take()), Vec::<&str>::new());
}

/// Square signs the public URL and the body.
#[tokio::test(start_paused = true)]
async fn sig_15_the_signed_url_is_the_configured_base_and_the_raw_query() {
    let square = profile("square", "square", "event_id = \"body:/id\"\nevent_type = \"body:/type\"");
    let mut config = config(&[square], &[("square", "square-secret")]);
    config.base_url = Some("https://hooks.example.com/prod/".to_owned());
    let body = r#"{"id":"e1","type":"n"}"#;
    let sent = async |signed_url: &str, query: &str| {
        let world = World::new(config.clone()).await.unwrap();
        let recipe = Recipe::named("square").unwrap();
        let verifier = Verifier::new(recipe, vec![Secret::new("s", "square-secret")]).unwrap();
        let none = Headers::default();
        let request = Request { method: "POST", url: Some(signed_url), headers: &none, body: body.as_bytes() };
        let headers = verifier.sign("e1", BEGINS_MS, &request).unwrap();
        let event = world.event("POST", "/webhooks/square", headers, Some(body));
        deliver(&world, &GatewayEvent { raw_query_string: query.to_owned(), ..event }).await.0
    };
    let url = "https://hooks.example.com/prod/webhooks/square";
    let query = "Digits=1&Retry=1&Msg=a+b&Acct=Z";
    assert_eq!(sent(url, "").await, 200);
    assert_eq!(sent(&format!("{url}?{query}"), query).await, 200);
    assert_eq!(sent(&format!("{url}?{query}"), "Acct=Z&Digits=1&Msg=a%20b&Retry=1").await, 401);
    assert_eq!(sent(url, query).await, 401);
    assert_eq!(sent("https://internal.example.com/webhooks/square", "").await, 401);
}

/// Without a public URL nothing can be verified: our mistake, not the provider's.
#[tokio::test(start_paused = true)]
async fn sig_15_without_a_configured_base_url_it_is_500() {
    let square = profile("square", "square", "event_id = \"body:/id\"\nevent_type = \"body:/type\"");
    let world = World::new(config(&[square], &[("square", "square-secret")])).await.unwrap();
    let headers = [("x-square-hmacsha256-signature".to_owned(), STANDARD.encode([0; 32]))];
    let event = world.event("POST", "/webhooks/square", headers, Some("{}"));
    assert_eq!(deliver(&world, &event).await, said(500, "not-configured"));
}

/// The secret is changed at 12:00; at 20:00 an event of 11:50 comes again, signed with the old one.
#[tokio::test(start_paused = true)]
async fn sig_17_a_late_retry_by_the_old_secret_is_taken_and_the_receipt_names_the_key() {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    let rolled = profile_of("beta", "standard-webhooks", r#"["*"]"#, r#"["BETA_SECRET", "BETA_OLD_SECRET"]"#, &more);
    let world = World::new(config(&[rolled], &[("beta", WHSEC), ("beta-old", ACME_SECRET)])).await.unwrap();
    world.clock.advance(8 * 3_600_000);
    let old = Sender::new("beta", "standard-webhooks", ACME_SECRET);
    assert_eq!(old.send(&world, "late", completed("j1")).await, said(202, "accepted"));
    let new = Sender::new("beta", "standard-webhooks", WHSEC);
    assert_eq!(new.send(&world, "fresh", completed("j2")).await, said(202, "accepted"));
    assert_eq!(explain(&world, "beta", "late").await.1["key_id"], "BETA_OLD_SECRET");
    assert_eq!(explain(&world, "beta", "fresh").await.1["key_id"], "BETA_SECRET");
    assert_eq!(new.send(&world, "late", completed("j1")).await, said(200, "duplicate"), "one event, whichever key");
}

#[tokio::test(start_paused = true)]
async fn sig_18_one_unsigned_item_refuses_the_whole_batch() {
    let v = vector("adyen-1");
    assert_eq!(v.sent("any").await.0, 200);
    let mut batch: Value = serde_json::from_slice(&v.body()).unwrap();
    let items = batch["notificationItems"].as_array_mut().unwrap();
    let mut unsigned = items[0].clone();
    let item = unsigned["NotificationRequestItem"].as_object_mut().unwrap();
    item.remove("additionalData");
    items.push(unsigned);
    assert_eq!(v.sent_with("any", batch.to_string().as_bytes()).await, said(401, "invalid-signature"));
    let items = batch["notificationItems"].as_array_mut().unwrap();
    items.swap(0, 1);
    assert_eq!(v.sent_with("any", batch.to_string().as_bytes()).await, said(401, "invalid-signature"));
}
