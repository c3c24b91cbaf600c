//! CASES A2 (which event is this) and A3 (what counts as the same content), as a provider sees them.

use domain::limits::RetryPolicy;
use local::world::{World, WorldConfig, completed, event_body};
use serde_json::{Value, json};

use crate::sender::{LIKE_ACME, Sender, WHSEC, explain, profile, relay_begins_now, said, world_with};

/// GitHub's scheme signs the body alone, so a test may put the id where it likes.
const BODY_ONLY: &str = "github";
const KEY: &str = "tests-only-secret";

async fn world() -> World {
    World::new(WorldConfig::default()).await.unwrap()
}

async fn with_job(world: &World) {
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
}

/// A provider whose every event is taken and leads to nothing but a receipt.
fn recorder(slug: &str, event_id: &str, more: &str) -> String {
    profile(slug, BODY_ONLY, &format!("event_id = {event_id}\nevent_type = \"body:/type\"\nid_signed = false\n{more}"))
}

/// Sends `body` to the recorder `slug`; the status' name and the event's name.
async fn recorded(world: &World, slug: &str, delivery: &str, body: &str) -> (String, String) {
    let event = Sender::new(slug, BODY_ONLY, KEY).event(world, delivery, body);
    let response = world.stack.webhook(&event).await;
    assert_eq!(response.status_code, 200, "{}", response.body);
    let answer: Value = serde_json::from_str(&response.body).unwrap();
    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
    (text("status"), text("event"))
}

#[tokio::test(start_paused = true)]
async fn ded_01_a_fresh_id_per_emission_gives_four_receipts_and_one_charge() {
    let world = world().await;
    with_job(&world).await;
    for id in ["e1", "e2", "e3", "e4"] {
        assert_eq!(world.send(id, &completed("j1")).await, said(202, "accepted"));
    }
    world.drain().await.unwrap();
    for id in ["e1", "e2", "e3", "e4"] {
        assert_eq!(world.explain(id).await["status"], "completed", "each has its receipt, and nothing is left open");
    }
    let job = world.job("j1").await;
    assert_eq!(job["transitions"].as_array().unwrap().len(), 1, "{job}");
    assert_eq!(job["settlements"].as_array().unwrap().len(), 1, "{job}");
    assert_eq!(world.wallet("w1").await["available"], "99.991300");
}

/// Adyen: the identity is event code and reference together, both in the body.
#[tokio::test(start_paused = true)]
async fn ded_02_the_id_is_where_the_profile_says_and_a_missing_part_is_never_an_empty_one() {
    let item = "/notificationItems/0/NotificationRequestItem";
    let parts = format!(r#"["body:{item}/eventCode", "body:{item}/pspReference"]"#);
    let world = world_with(&[recorder("psp", &parts, "")], &[("psp", KEY)]).await;
    let body =
        |members: Value| json!({"type": "n", "notificationItems": [{"NotificationRequestItem": members}]}).to_string();
    let authorisation = body(json!({"eventCode": "AUTHORISATION", "pspReference": "7914"}));
    let capture = body(json!({"eventCode": "CAPTURE", "pspReference": "7914"}));
    let (first, one) = recorded(&world, "psp", "d1", &authorisation).await;
    let (second, other) = recorded(&world, "psp", "d1", &capture).await;
    assert_eq!((first.as_str(), second.as_str()), ("ignored", "ignored"), "two events");
    assert_ne!(one, other);
    assert_eq!(recorded(&world, "psp", "d2", &capture).await, ("duplicate".to_owned(), other));
    // Moving a character from one part to the other is another event.
    let moved = body(json!({"eventCode": "CAPTURE7", "pspReference": "914"}));
    assert_eq!(recorded(&world, "psp", "d3", &moved).await.0, "ignored");
    for missing in [json!({"eventCode": "CAPTURE"}), json!({"pspReference": "7914"}), json!({})] {
        let (status, event) = recorded(&world, "psp", "d4", &body(missing.clone())).await;
        assert_eq!(status, "quarantined", "{missing}");
        assert!(event.starts_with("psp/raw#"), "kept under its bytes: {event}");
    }
}

#[tokio::test(start_paused = true)]
async fn ded_03_one_delivery_guid_at_two_endpoints_is_two_events_and_at_one_a_conflict() {
    let id = r#""header:x-github-delivery""#;
    let world =
        world_with(&[recorder("hook-a", id, ""), recorder("hook-b", id, "")], &[("hook-a", KEY), ("hook-b", KEY)])
            .await;
    let (of_a, of_b) = (r#"{"type":"push","for":"a"}"#, r#"{"type":"push","for":"b"}"#);
    assert_eq!(recorded(&world, "hook-a", "guid-1", of_a).await, ("ignored".to_owned(), "hook-a/guid-1".to_owned()));
    assert_eq!(recorded(&world, "hook-b", "guid-1", of_b).await, ("ignored".to_owned(), "hook-b/guid-1".to_owned()));
    assert_eq!(recorded(&world, "hook-a", "guid-1", of_b).await.0, "quarantined", "other content on one endpoint");
    let (_, shown) = explain(&world, "hook-a", "guid-1").await;
    assert_eq!(shown["conflicts"].as_array().unwrap().len(), 1);
    assert_eq!(shown["id_signed"], false);
}

#[tokio::test(start_paused = true)]
async fn ded_05_big_integers_are_not_rounded_and_a_number_is_not_its_text() {
    let id = r#""body:/id""#;
    let as_text = recorder("texts", id, "number_ids_as_text = true");
    let world = world_with(&[recorder("numbers", id, ""), as_text], &[("numbers", KEY), ("texts", KEY)]).await;
    let with = |id: &str| format!(r#"{{"type":"n","id":{id}}}"#);
    let mut seen = Vec::new();
    for id in ["8202522731445525542", "8202522731445525543", r#""8202522731445525542""#] {
        let (status, event) = recorded(&world, "numbers", "d", &with(id)).await;
        assert_eq!(status, "ignored", "{id} is an event of its own");
        assert!(!seen.contains(&event), "{event}");
        seen.push(event);
    }
    for malformed in ["8.202522731445525542e18", "8202522731445525542.0", "true", "null", "{}", r#""""#] {
        let (status, event) = recorded(&world, "numbers", "d", &with(malformed)).await;
        assert_eq!(status, "quarantined", "{malformed}");
        assert!(event.starts_with("numbers/raw#"), "{event}");
    }
    // Unless the profile says that they are one.
    assert_eq!(recorded(&world, "texts", "d", &with("8202522731445525542")).await.0, "ignored");
    let text = with(r#""8202522731445525542""#);
    let (status, event) = recorded(&world, "texts", "d", &text).await;
    assert_eq!(
        (status.as_str(), event.as_str()),
        ("quarantined", "texts/8202522731445525542"),
        "one id, other content"
    );
}

#[tokio::test(start_paused = true)]
async fn ded_07_equal_bodies_under_two_ids_are_two_events() {
    let world = world().await;
    let body = event_body("job.progress", "j1", json!({}));
    assert_eq!(world.send("errored-1", &body).await, said(202, "accepted"));
    world.clock.advance(3 * 3_600_000);
    assert_eq!(world.send("errored-2", &body).await, said(202, "accepted"));
    let (one, other) = (world.explain("errored-1").await, world.explain("errored-2").await);
    assert_eq!(one["payload_hash"], other["payload_hash"]);
    assert_eq!((&one["deliveries"], &other["deliveries"]), (&json!(1), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn ded_09_the_time_of_receipt_is_in_no_key() {
    let world = world_with(&[recorder("derived", r#"["body:/ref"]"#, "")], &[("derived", KEY)]).await;
    let body = r#"{"type":"n","ref":"abc-123"}"#;
    assert_eq!(world.send("abc-123", &completed("j1")).await, said(202, "accepted"));
    let first = recorded(&world, "derived", "d0", body).await;
    assert_eq!(first.0, "ignored");
    for wait_ms in [1_000, 60_000, 86_400_000, 400 * 86_400_000] {
        world.clock.advance(wait_ms);
        assert_eq!(world.send("abc-123", &completed("j1")).await, said(200, "duplicate"), "after {wait_ms} ms");
        let again = recorded(&world, "derived", &format!("d{wait_ms}"), body).await;
        assert_eq!(again, ("duplicate".to_owned(), first.1.clone()), "after {wait_ms} ms");
    }
}

/// E fails for good (its job is unknown until the limit of tries), somebody repairs it, the provider redelivers.
#[tokio::test(start_paused = true)]
async fn ded_10_a_redelivery_of_what_failed_for_good_is_tried_again() {
    let policy = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
    let world = World::new(WorldConfig { policy, ..WorldConfig::default() }).await.unwrap();
    assert_eq!(world.send("e1", &completed("j1")).await, said(202, "accepted"));
    relay_begins_now(&world).await;
    world.minutes(10).await.unwrap();
    let shown = world.explain("e1").await;
    assert_eq!(shown["status"], "needs-review", "{shown}");
    with_job(&world).await;
    world.minutes(10).await.unwrap();
    assert_eq!(world.explain("e1").await["status"], "needs-review", "nothing tries a review by itself");

    assert_eq!(world.send("e1", &completed("j1")).await, said(200, "duplicate"));
    world.minutes(2).await.unwrap();
    let shown = world.explain("e1").await;
    assert_eq!(shown["status"], "completed", "{shown}");
    assert_eq!(world.wallet("w1").await["available"], "99.991300");
    // Final now: a further redelivery is a no-op.
    assert_eq!(world.send("e1", &completed("j1")).await, said(200, "duplicate"));
    assert_eq!(world.drain().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn ded_10_a_redelivery_of_what_waits_is_dispatched_again() {
    let world = world().await;
    assert_eq!(world.send("e1", &completed("j1")).await, said(202, "accepted"));
    world.drain().await.unwrap();
    assert_eq!(world.explain("e1").await["status"], "retrying");
    with_job(&world).await;
    assert_eq!(world.send("e1", &completed("j1")).await, said(200, "duplicate"));
    world.drain().await.unwrap();
    assert_eq!(world.explain("e1").await["status"], "completed", "without waiting for the relay");
}

/// Whether two bodies of one id are the same content: a duplicate, else a conflict.
async fn same_content(one: &str, other: &str) -> bool {
    let world = world_with(&[recorder("hashes", r#""header:x-github-delivery""#, "")], &[("hashes", KEY)]).await;
    let body = |members: &str| format!(r#"{{"type":"n",{members}}}"#);
    assert_eq!(recorded(&world, "hashes", "d", &body(one)).await.0, "ignored");
    match recorded(&world, "hashes", "d", &body(other)).await.0.as_str() {
        "duplicate" => true,
        "quarantined" => false,
        status => panic!("{status}"),
    }
}

#[tokio::test(start_paused = true)]
async fn jsn_01_numbers_are_compared_by_exact_value() {
    for (one, other) in [
        (r#""n":18446744073709551615"#, r#""n":18446744073709551614"#),
        (r#""n":9007199254740993"#, r#""n":9007199254740992"#),
        (r#""n":0.1"#, r#""n":0.1000000000000000055511151231257827"#),
        (r#""n":1"#, r#""n":"1""#),
        (r#""n":1"#, r#""n":-1"#),
        (r#""n":1e999999999"#, r#""n":1e999999998"#),
        (r#""n":null"#, r#""m":null"#),
    ] {
        assert!(!same_content(one, other).await, "{one} / {other}");
    }
    for (one, other) in [
        (r#""n":1"#, r#""n":1.0"#),
        (r#""n":1"#, r#""n":1e0"#),
        (r#""n":9007199254740993"#, r#""n":9007199254740993.000"#),
        (r#""n":18446744073709551615"#, r#""n":1844674407370955161.5e1"#),
        (r#""a":1,"b":2"#, r#" "b" : 2 , "a" : 1 "#),
        (r#""s":"é""#, r#""s":"\u00e9""#),
    ] {
        assert!(same_content(one, other).await, "{one} / {other}");
    }
}

#[tokio::test(start_paused = true)]
async fn jsn_04_a_member_name_twice_at_any_depth_is_quarantined_and_moves_no_money() {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    let world = world_with(&[profile("beta", "standard-webhooks", &more)], &[("beta", WHSEC)]).await;
    with_job(&world).await;
    let good = completed("j1");
    for (index, body) in [
        r#"{"id":"evt_1","amount":100,"amount":100000}"#.to_owned(),
        r#"{"id":"evt_1","amount":100,"am\u006funt":100000}"#.to_owned(),
        good.replacen('{', r#"{"type":"job.failed","#, 1),
        good.replace(r#""input_tokens":1200"#, r#""input_tokens":1200,"input_tokens":1200"#),
        good.replace(r#""input_tokens":1200"#, r#""input_tokens":1200,"input\u005ftokens":9"#),
        good.replacen('{', r#"{"list":[{"deep":[{"a":1,"b":2,"a":1}]}],"#, 1),
        good.replacen('{', r#"{"":1,"":2,"#, 1),
    ]
    .into_iter()
    .enumerate()
    {
        assert_ne!(body, good);
        let response = world.stack.webhook(&world.acme(&format!("e{index}"), &body)).await;
        let answer: Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!((response.status_code, &answer["status"]), (200, &json!("quarantined")), "{body}");
        let id = answer["event"].as_str().unwrap().strip_prefix("acme/").unwrap();
        let (_, shown) = explain(&world, "acme", id).await;
        assert_eq!((&shown["reason"], &shown["operations"]), (&json!("ambiguous"), &json!([])), "{body}");
        assert!(!shown.to_string().contains("100000"), "no payload is shown");
    }
    assert_eq!(world.drain().await.unwrap(), 0);
    assert_eq!(world.wallet("w1").await["held"], "5.000000");
    // The same names in different objects are no duplicates.
    let apart = good.replacen('{', r#"{"list":[{"a":1},{"a":1}],"a":{"a":1},"#, 1);
    assert_eq!(world.send("e-apart", &apart).await, said(202, "accepted"));
}
