//! What the receiver answers, what it leaves behind, and what it costs: DESIGN's path of one delivery.

use futures_util::future::join_all;
use local::hook::Service;
use local::stack::Function;
use local::world::{World, WorldConfig, completed, event_body};
use runtime::gateway::{GatewayEvent, GatewayResponse};
use serde_json::{Value, json};

use crate::sender::{
    LIKE_ACME, Sender, Trouble, WHSEC, applied_writes, config, counting, deliver, explain, names, profile, profile_of,
    relay_begins_now, said, world_with,
};

/// The stated limit of a webhook body.
const LIMIT: usize = 256 * 1024;

async fn world() -> World {
    World::new(WorldConfig::default()).await.unwrap()
}

/// A funded wallet w1 and job j1 with a hold of 5.00.
async fn with_job(world: &World) {
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
}

/// beta: as acme, with the id in the body.
fn beta(more: &str) -> String {
    profile("beta", "standard-webhooks", &format!("event_id = \"body:/id\"\n{more}\n{LIKE_ACME}"))
}

fn beta_sender() -> Sender {
    Sender::new("beta", "standard-webhooks", WHSEC)
}

/// beta's event `id`; members of `more` replace its own, and `null` removes them.
fn beta_body(kind: &str, id: &str, more: &Value) -> String {
    let mut body: Value = serde_json::from_str(&completed("j1")).unwrap();
    body["type"] = json!(kind);
    body["id"] = json!(id);
    for (place, value) in more.as_object().unwrap() {
        let (parent, name) = place.rsplit_once('/').unwrap();
        let parent = body.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => parent.remove(name),
            value => parent.insert(name.to_owned(), value.clone()),
        };
    }
    body.to_string()
}

fn body_of(response: &GatewayResponse) -> Value {
    serde_json::from_str(&response.body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_event_is_202_and_the_same_again_200_duplicate_and_counted() {
    let world = world().await;
    with_job(&world).await;
    let first = world.stack.webhook(&world.acme("msg_1", &completed("j1"))).await;
    assert_eq!((first.status_code, body_of(&first)), (202, json!({"status": "accepted", "event": "acme/msg_1"})));
    let again = world.stack.webhook(&world.acme("msg_1", &completed("j1"))).await;
    assert_eq!((again.status_code, body_of(&again)), (200, json!({"status": "duplicate", "event": "acme/msg_1"})));
    assert_eq!(world.explain("msg_1").await["deliveries"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_type_is_200_ignored_with_a_receipt_that_says_why() {
    let world = world().await;
    with_job(&world).await;
    let body = event_body("job.renamed", "j1", json!({}));
    assert_eq!(world.send("msg_1", &body).await, said(200, "ignored"));
    assert_eq!(world.drain().await.unwrap(), 0);
    let shown = world.explain("msg_1").await;
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("ignored"), &json!("unknown-type")));
    assert_eq!((&shown["type"], &shown["operations"]), (&json!("job.renamed"), &json!([])));
    assert_eq!(world.send("msg_1", &body).await, said(200, "duplicate"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_200_quarantined_under_the_hash_of_its_bytes() {
    let world = world().await;
    for body in ["", "not json", "{", "{} {}", r#"{"type":"\ud800"}"#, r#"{"type":01}"#, "\u{feff}{}"] {
        let response = world.stack.webhook(&world.acme("msg_1", body)).await;
        assert_eq!(response.status_code, 200, "{body:?}");
        let answer = body_of(&response);
        assert_eq!(answer["status"], "quarantined", "{body:?}");
        let id = answer["event"].as_str().unwrap().strip_prefix("acme/").unwrap().to_owned();
        assert!(id.starts_with("raw#"), "{id}");
        let (status, shown) = explain(&world, "acme", &id).await;
        assert_eq!((status, &shown["reason"]), (200, &json!("unparsable")), "{body:?}");
        assert_eq!(world.send("msg_2", body).await, said(200, "duplicate"), "the same bytes are the same event");
    }
}

#[tokio::test(start_paused = true)]
async fn a_required_field_missing_is_200_quarantined_and_the_field_is_named() {
    let world = world_with(&[beta("")], &[("beta", WHSEC)]).await;
    for (index, (kind, removed, named)) in [
        ("job.completed", json!({"/type": null}), "body:/type"),
        ("job.completed", json!({"/id": null}), "body:/id"),
        ("job.completed", json!({"/data/id": null, "/data/job_id": null}), "`ref (or tenant and job)`"),
        ("job.completed", json!({"/data/id": null, "/data/tenant": null}), "`ref (or tenant and job)`"),
        ("job.progress", json!({"/data/sequence": null}), "`sequence`"),
    ]
    .into_iter()
    .enumerate()
    {
        let body = beta_body(kind, &format!("e{index}"), &removed);
        let response = world.stack.webhook(&beta_sender().event(&world, "unused", &body)).await;
        assert_eq!((response.status_code, &body_of(&response)["status"]), (200, &json!("quarantined")), "{removed}");
        let event = body_of(&response)["event"].as_str().unwrap().to_owned();
        let (_, shown) = explain(&world, "beta", event.strip_prefix("beta/").unwrap()).await;
        assert_eq!(shown["reason"], "missing-field", "{removed}");
        assert!(shown["note"].as_str().unwrap().contains(named), "{shown}");
        assert_eq!(shown["operations"], json!([]));
    }
    assert_eq!(world.drain().await.unwrap(), 0, "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn what_no_operation_needs_may_be_absent() {
    let world = world_with(&[beta("")], &[("beta", WHSEC)]).await;
    for (index, removed) in [
        json!({"/timestamp": null}),
        json!({"/data/model": null}),
        json!({"/data/sequence": null}),
        json!({"/data/tenant": null, "/data/job_id": null}),
        json!({"/data/id": null}),
        json!({"/data/usage": null}),
    ]
    .into_iter()
    .enumerate()
    {
        let body = beta_body("job.completed", &format!("e{index}"), &removed);
        assert_eq!(beta_sender().send(&world, "unused", body).await, said(202, "accepted"), "{removed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tenant_outside_the_profiles_tenants_is_quarantined_whether_the_event_names_it_or_its_job_does() {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    let narrow = profile_of("beta", "standard-webhooks", r#"["t1"]"#, r#"["BETA_SECRET"]"#, &more);
    let world = world_with(&[narrow], &[("beta", WHSEC)]).await;
    let body = beta_body("job.completed", "e", &json!({"/data/tenant": "t2"}));
    assert_eq!(beta_sender().send(&world, "e1", body).await, said(200, "quarantined"));
    let (_, shown) = explain(&world, "beta", "e1").await;
    assert_eq!(shown["reason"], "tenant-not-allowed");
    // An allowed tenant goes through the same profile.
    assert_eq!(beta_sender().send(&world, "e2", completed("j1")).await, said(202, "accepted"));
}

#[tokio::test(start_paused = true)]
async fn a_field_that_contradicts_the_job_is_quarantined_and_named_and_has_no_effect() {
    let world = world_with(&[beta("")], &[("beta", WHSEC)]).await;
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    for (job, provider) in [("j1", "beta"), ("j2", "beta"), ("j3", "acme")] {
        let request = json!({"provider": provider, "provider_job_ref": format!("p-{job}"), "model": "small-1", "wallet": "w1", "hold": "5.00"});
        assert_eq!(world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(request)).await.0, 201);
    }
    for (index, (change, named)) in [
        (json!({"/data/tenant": "t2"}), "tenant"),
        (json!({"/data/job_id": "j2"}), "job id"),
        (json!({"/data/id": "p-j2"}), "job id"), // the reference leads to j2, the event says j1
        (json!({"/data/model": "small-2"}), "model"),
        (json!({"/data/wallet": "w2"}), "wallet"),
        (json!({"/data/currency": "EUR"}), "currency"),
        (json!({"/data/id": null, "/data/job_id": "j3"}), "provider"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("e{index}");
        let body = beta_body("job.completed", &id, &change);
        assert_eq!(beta_sender().send(&world, "unused", body).await, said(200, "quarantined"), "{change}");
        let (_, shown) = explain(&world, "beta", &id).await;
        assert_eq!(shown["reason"], "mismatch", "{change}");
        assert_eq!(shown["note"], format!("the event's {named} is not the job's"), "{change}");
    }
    assert_eq!(world.drain().await.unwrap(), 0);
    for job in ["j1", "j2", "j3"] {
        assert_eq!(world.job(job).await["status"], "submitted");
    }
    assert_eq!(world.wallet("w1").await["held"], "15.000000");
}

#[tokio::test(start_paused = true)]
async fn a_profile_may_ask_for_422_for_what_is_quarantined_and_only_for_that() {
    let world = world_with(&[beta("quarantine_status = 422")], &[("beta", WHSEC)]).await;
    let beta = beta_sender();
    assert_eq!(beta.send(&world, "unused", "not json").await, said(422, "quarantined"));
    let missing = beta_body("job.completed", "e1", &json!({"/data/id": null, "/data/job_id": null}));
    assert_eq!(beta.send(&world, "unused", missing).await, said(422, "quarantined"));
    let good = beta_body("job.completed", "e2", &json!({}));
    assert_eq!(beta.send(&world, "unused", &good).await, said(202, "accepted"));
    let other = beta_body("job.completed", "e2", &json!({"/data/sequence": 4}));
    assert_eq!(beta.send(&world, "unused", other).await, said(422, "quarantined"), "a conflict");
    assert_eq!(beta.send(&world, "unused", &good).await, said(200, "duplicate"));
    let unknown = beta_body("job.renamed", "e3", &json!({}));
    assert_eq!(beta.send(&world, "unused", unknown).await, said(200, "ignored"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_a_delivery_is_refused_before_anything_is_looked_up() {
    let config = WorldConfig::default();
    let calls = counting(&config, Function::Receiver);
    let world = World::new(config).await.unwrap();
    let good = || world.acme("msg_1", &completed("j1"));
    let at = |path: &str| GatewayEvent { raw_path: path.to_owned(), ..good() };
    let mut get = good();
    "GET".clone_into(&mut get.request_context.http.method);
    let not_base64 = GatewayEvent { body: Some("%%%".to_owned()), is_base64_encoded: true, ..good() };
    // Blanks behind JSON are JSON.
    let padded = |bytes: usize| completed("j1") + &" ".repeat(bytes - completed("j1").len());
    for (event, status, code) in [
        (not_base64, 400, "bad-request"),
        (at("/webhooks/nobody"), 404, "not-found"),
        (at("/webhooks/ACME"), 404, "not-found"),
        (at("/webhooks/acme/more"), 404, "not-found"),
        (at("/webhooks"), 404, "not-found"),
        (get, 405, "method-not-allowed"),
        (world.acme("msg_1", &padded(LIMIT + 1)), 413, "too-large"),
    ] {
        let response = world.stack.webhook(&event).await;
        assert_eq!((response.status_code, body_of(&response)["code"].clone()), (status, json!(code)));
        assert_eq!(response.headers["content-type"], "application/problem+json");
        // RFC 9110, 15.5.6: a 405 names what is allowed.
        assert_eq!(response.headers.get("allow").map(String::as_str), (status == 405).then_some("POST"));
    }
    // The refusals of a configured endpoint, 400 and 413, are kept for its owner: a count and a slot each.
    assert_eq!(names(&calls.take()), ["PutItem", "PutItem", "UpdateItem", "UpdateItem"]);
    assert_eq!(world.acme("msg_1", &padded(LIMIT)).body.unwrap().len(), 262_144);
    assert_eq!(world.send("msg_1", &padded(LIMIT)).await, said(202, "accepted"), "exactly 256 KiB is taken");
}

#[tokio::test(start_paused = true)]
async fn an_unauthentic_delivery_is_401_and_the_answer_does_not_say_why() {
    let config = WorldConfig::default();
    let calls = counting(&config, Function::Receiver);
    let world = World::new(config).await.unwrap();
    let with = |name: &str, value: Option<&str>| {
        let mut event = world.acme("msg_1", &completed("j1"));
        match value {
            Some(value) => event.headers.insert(name.to_owned(), value.to_owned()),
            None => event.headers.remove(name),
        };
        event
    };
    let aged = |seconds: i64| {
        let mut event = world.acme("msg_1", &completed("j1"));
        event.request_context.time_epoch += seconds * 1000;
        event
    };
    let changed = GatewayEvent { body: Some(completed("j2")), ..world.acme("msg_1", &completed("j1")) };
    let other = Sender::new("acme", "standard-webhooks", WHSEC).event(&world, "msg_1", completed("j1"));
    let answers = join_all(
        [
            with("webhook-signature", None),
            with("webhook-signature", Some("v1,AAAA")),
            with("webhook-signature", Some("\u{e9}")),
            with(
                "webhook-signature",
                Some("v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="),
            ),
            with("webhook-timestamp", Some("yesterday")),
            with("webhook-timestamp", None),
            with("webhook-id", None),
            with("webhook-id", Some("msg_2")),
            aged(301),
            aged(-301),
            changed,
            other,
        ]
        .iter()
        .map(|event| world.stack.webhook(event)),
    )
    .await;
    assert_eq!(answers[0].status_code, 401);
    assert_eq!(body_of(&answers[0])["code"], "invalid-signature");
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    // Nothing but the list of refused deliveries: five of the twelve, as many as one moment may cost.
    let kept = crate::harness::items(&world, "events");
    assert!(kept.iter().all(|item| item["pk"]["S"] == "N|acme" || item["pk"]["S"].as_str().unwrap().starts_with("C|")));
    assert_eq!(calls.take().len(), 10);
    for seconds in [300, -300] {
        assert_ne!(deliver(&world, &aged(seconds)).await.0, 401, "{seconds} s are within the tolerance");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_without_a_usable_secret_is_500_and_the_others_go_on() {
    for secret in [None, Some(""), Some(" "), Some("\n"), Some("whsec_"), Some("whsec_d29ybGQ=\n"), Some("whsec_%")] {
        let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
        let secrets: Vec<(&str, &str)> = secret.map(|secret| ("beta", secret)).into_iter().collect();
        let config = config(&[profile("beta", "standard-webhooks", &more)], &secrets);
        let calls = counting(&config, Function::Receiver);
        let world = World::new(config).await.unwrap();
        let event = beta_sender().event(&world, "e1", completed("j1"));
        assert_eq!(deliver(&world, &event).await, said(500, "not-configured"), "{secret:?}");
        assert_eq!(names(&calls.take()), Vec::<&str>::new());
        assert_eq!(world.send("msg_1", &completed("j1")).await, said(202, "accepted"));
    }
}

#[tokio::test(start_paused = true)]
async fn with_the_store_down_it_is_503_with_retry_after_and_nothing_is_claimed() {
    for operation in [None, Some("GetItem"), Some("PutItem")] {
        let config = WorldConfig::default();
        let trouble = Trouble::down(&config.hooks, Function::Receiver, Service::DynamoDb, operation);
        let world = World::new(config).await.unwrap();
        with_job(&world).await;
        let response = world.stack.webhook(&world.acme("msg_1", &completed("j1"))).await;
        assert_eq!((response.status_code, &body_of(&response)["code"]), (503, &json!("unavailable")), "{operation:?}");
        let wait: u32 = response.headers["retry-after"].parse().unwrap();
        assert!((1..=60).contains(&wait));
        assert_eq!(explain(&world, "acme", "msg_1").await.0, 404, "no receipt");
        assert_eq!(world.drain().await.unwrap(), 0, "no message");
        trouble.end();
        assert_eq!(world.send("msg_1", &completed("j1")).await, said(202, "accepted"), "{operation:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_the_queues_down_it_is_202_and_the_relay_dispatches() {
    let config = WorldConfig::default();
    let trouble = Trouble::down(&config.hooks, Function::Receiver, Service::Sqs, None);
    let world = World::new(config).await.unwrap();
    with_job(&world).await;
    assert_eq!(world.send("msg_1", &completed("j1")).await, said(202, "accepted"));
    assert_eq!(world.drain().await.unwrap(), 0, "nothing could be sent");
    relay_begins_now(&world).await;
    world.minutes(5).await.unwrap();
    assert_eq!(world.explain("msg_1").await["status"], "completed");
    assert_eq!(world.wallet("w1").await["available"], "99.991300");
    trouble.end();
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_dispatches_again_what_was_never_dispatched() {
    let config = WorldConfig::default();
    let trouble = Trouble::down(&config.hooks, Function::Receiver, Service::Sqs, None);
    let world = World::new(config).await.unwrap();
    with_job(&world).await;
    assert_eq!(world.send("msg_1", &completed("j1")).await, said(202, "accepted"));
    trouble.end();
    assert_eq!(world.send("msg_1", &completed("j1")).await, said(200, "duplicate"));
    assert_eq!(world.drain().await.unwrap(), 2, "one message per operation");
    assert_eq!(world.explain("msg_1").await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_receipt_whose_answer_was_lost_is_ours_and_not_a_duplicate() {
    let config = WorldConfig::default();
    let _trouble = Trouble::lost_once(&config.hooks, Function::Receiver, "PutItem");
    let calls = counting(&config, Function::Receiver);
    let world = World::new(config).await.unwrap();
    with_job(&world).await;
    assert_eq!(world.send("msg_1", &completed("j1")).await, said(202, "accepted"));
    assert_eq!((calls.count("PutItem"), calls.count("SendMessage")), (2, 2));
    assert_eq!(world.explain("msg_1").await["deliveries"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_event_of_a_known_job_is_one_get_one_put_and_one_send_per_operation() {
    let config = WorldConfig::default();
    let calls = counting(&config, Function::Receiver);
    let world = World::new(config).await.unwrap();
    with_job(&world).await;
    assert_eq!(world.send("msg_1", &completed("j1")).await, said(202, "accepted"));
    assert_eq!(names(&calls.take()), ["GetItem", "PutItem", "SendMessage", "SendMessage"]);
    assert_eq!(world.send("msg_2", &event_body("job.progress", "j1", json!({}))).await, said(202, "accepted"));
    assert_eq!(names(&calls.take()), ["GetItem", "PutItem", "SendMessage"]);
    assert_eq!(world.send("msg_3", &event_body("job.renamed", "j1", json!({}))).await, said(200, "ignored"));
    assert_eq!(names(&calls.take()), ["PutItem"]);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_finished_event_writes_its_count_and_sends_nothing() {
    let config = WorldConfig::default();
    let calls = counting(&config, Function::Receiver);
    let world = World::new(config).await.unwrap();
    with_job(&world).await;
    for _ in 0..2 {
        assert!(world.send("msg_1", &completed("j1")).await.0 < 300);
        world.drain().await.unwrap();
    }
    let _ = calls.take();
    assert_eq!(world.send("msg_1", &completed("j1")).await, said(200, "duplicate"));
    let seen = calls.take();
    assert_eq!(applied_writes(&seen), ["UpdateItem"], "{seen:?}");
    assert_eq!(world.drain().await.unwrap(), 0);
    assert_eq!(world.explain("msg_1").await["deliveries"], 3);
}

#[tokio::test(start_paused = true)]
async fn of_50_concurrent_copies_one_is_202_forty_nine_are_200_and_there_is_one_effect() {
    let world = world().await;
    with_job(&world).await;
    let copies = (0..50).map(|_| world.acme("msg_1", &completed("j1"))).collect::<Vec<_>>();
    let answers = join_all(copies.iter().map(|copy| deliver(&world, copy))).await;
    assert_eq!(answers.iter().filter(|a| **a == said(202, "accepted")).count(), 1);
    assert_eq!(answers.iter().filter(|a| **a == said(200, "duplicate")).count(), 49);
    world.drain().await.unwrap();
    assert_eq!(world.explain("msg_1").await["deliveries"], 50);
    let job = world.job("j1").await;
    assert_eq!(job["transitions"].as_array().unwrap().len(), 1, "{job}");
    assert_eq!(job["settlements"].as_array().unwrap().len(), 1, "{job}");
    assert_eq!(world.wallet("w1").await["available"], "99.991300");
}

#[tokio::test(start_paused = true)]
async fn the_same_id_with_other_content_is_quarantined_without_effect_and_shown() {
    let world = world().await;
    with_job(&world).await;
    assert_eq!(world.send("msg_1", &event_body("job.progress", "j1", json!({}))).await, said(202, "accepted"));
    world.drain().await.unwrap();
    // Twice: the second time it is the same conflict.
    for _ in 0..2 {
        assert_eq!(world.send("msg_1", &completed("j1")).await, said(200, "quarantined"));
    }
    assert_eq!(world.drain().await.unwrap(), 0);
    let shown = world.explain("msg_1").await;
    assert_eq!(shown["type"], "job.progress", "the receipt stands as it was");
    let conflicts = shown["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 1, "{shown}");
    assert_eq!(conflicts[0]["effect"], "none");
    assert_eq!(conflicts[0]["in_review_since"], "2026-11-29T12:00:00Z", "a person is asked");
    assert_ne!(conflicts[0]["payload_hash"], shown["payload_hash"]);
    assert_eq!(world.job("j1").await["status"], "submitted");
    assert_eq!(world.wallet("w1").await["held"], "5.000000");
}

#[tokio::test(start_paused = true)]
async fn members_that_the_profile_ignores_make_no_conflict_and_others_do() {
    let ignoring = beta("hash_ignore = [\"/attempt\", \"/data/sent_at\"]");
    let world = world_with(&[ignoring], &[("beta", WHSEC)]).await;
    let body = |more: Value| beta_body("job.completed", "e1", &more);
    let beta = beta_sender();
    let first = body(json!({"/attempt": 1, "/data/sent_at": 10}));
    assert_eq!(beta.send(&world, "unused", first).await, said(202, "accepted"));
    for same in [json!({"/attempt": 2, "/data/sent_at": 20}), json!({})] {
        assert_eq!(beta.send(&world, "unused", body(same)).await, said(200, "duplicate"));
    }
    assert_eq!(beta.send(&world, "unused", body(json!({"/data/attempt": 1}))).await, said(200, "quarantined"));
}
