//! LAM-01, LAM-03 and IDM-02: nothing past the answer, counted round trips, no key from a missing part.

use std::sync::Arc;
use std::time::Duration;

use domain::operation::OperationName::{CompleteJob, SettleUsage};
use local::Function;
use local::hook::{Call, CallHook, HookDecision, Service};
use local::world::{WorldConfig, answer, completed, event_body};
use runtime::lambda::PROVIDERS_TOML;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::books::{audit, text};
use crate::harness::*;

#[tokio::test(start_paused = true)]
async fn lam_01_nothing_runs_on_after_the_answer() {
    let world = submitted().await;
    let alive = || Handle::current().metrics().num_alive_tasks();
    let before = alive();
    accepted(&world, "msg_1", &completed("j1")).await;
    assert_eq!(alive(), before, "a frozen sandbox would never run it");
    // What the answer promises is there when it is given.
    assert_eq!(items(&world, "events").iter().filter(|item| text(item, "sk") == "r").count(), 1);
    for consumer in SETTLING {
        assert_eq!(messages(&world, consumer).len(), 1, "{consumer}");
    }
    let calls = Rule::count("*", &[]);
    world.aws.add_hook(calls.clone());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(calls.hits(), 0);
    // The consumers and the relay leave nothing running either.
    work(&world, "msg_1", CompleteJob).await;
    work(&world, "msg_1", SettleUsage).await;
    world.stack.relay().await.unwrap();
    assert_eq!(alive(), before);
}

/// Every call takes its time: 5 ms to DynamoDB, 8 ms to SQS.
#[derive(Debug)]
struct Distance;

const DYNAMODB_MS: u64 = 5;
const SQS_MS: u64 = 8;

impl CallHook for Distance {
    fn on_call(&self, call: &Call) -> HookDecision {
        let wait_ms = if call.service == Service::Sqs { SQS_MS } else { DYNAMODB_MS };
        HookDecision::Delay(Duration::from_millis(wait_ms), Box::new(HookDecision::Pass))
    }
}

#[tokio::test(start_paused = true)]
async fn lam_03_the_acknowledgement_is_three_round_trips_one_of_them_the_one_durable_write() {
    let writes = Rule::count("PutItem", &[]);
    let config = hooked(Function::Receiver, Arc::new(Distance));
    config.hooks.add(Function::Receiver, writes.clone());
    let world = submitted_with(config).await;
    let begin = Instant::now();
    accepted(&world, "msg_1", &completed("j1")).await;
    let trips = Duration::from_millis(2 * DYNAMODB_MS + SQS_MS);
    let took = begin.elapsed();
    // Virtual time: the timer's grain is 1 ms per wait, and a fourth trip would cost 5 ms more.
    assert!((trips..trips + Duration::from_millis(4)).contains(&took), "{took:?}");
    assert_eq!(writes.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn lam_03_a_second_delivery_three_seconds_later_is_a_duplicate_and_no_second_effect() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.clock.advance(3_000);
    let mut retry = world.acme("msg_1", &completed("j1"));
    retry.headers.insert("webhook-attempt".to_owned(), "2".to_owned());
    assert_eq!(answer(&world.stack.webhook(&retry).await), (200, "duplicate".to_owned()));
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(world.explain("msg_1").await["deliveries"], 2);
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
    audit(&world);
}

/// A world where acme's ids are derived from two body fields.
async fn deriving() -> Arc<local::world::World> {
    let ids = "event_id = [\"body:/data/order_id\", \"body:/data/kind\"]";
    let providers = PROVIDERS_TOML.replacen("event_id = \"signed-id\"", ids, 1);
    world_of(WorldConfig { providers, ..WorldConfig::default() }).await
}

#[tokio::test(start_paused = true)]
async fn idm_02_a_missing_part_of_a_key_is_an_error_and_unrelated_events_share_none() {
    let world = deriving().await;
    // The field stands one level deeper than the profile says.
    for (id, order) in [("d1", "o-1"), ("d2", "o-2")] {
        let body = event_body("job.completed", "j1", json!({"deeper": {"order_id": order}, "kind": "k"}));
        assert_eq!(world.send(id, &body).await, (200, "quarantined".to_owned()), "{id}");
    }
    let receipts: Vec<_> = items(&world, "events").into_iter().filter(|item| text(item, "sk") == "r").collect();
    assert_eq!(receipts.len(), 2, "each has a receipt of its own, under the hash of its bytes");
    for receipt in &receipts {
        assert!(text(receipt, "pk").starts_with("E|acme|raw"), "{receipt}");
        assert!(text(receipt, "nt").contains("/data/order_id"), "names the part: {receipt}");
    }
}

#[tokio::test(start_paused = true)]
async fn idm_02_parts_of_a_key_cannot_run_into_one_another() {
    let world = deriving().await;
    let parts = [
        json!(["ab", "c"]),
        json!(["a", "bc"]),
        json!(["", "abc"]),
        json!(["c", "ab"]),
        json!([1, "c"]),
        json!(["1", "c"]),
    ];
    for (n, part) in parts.iter().enumerate() {
        let body = event_body("job.completed", "j1", json!({"order_id": part[0], "kind": part[1]}));
        accepted(&world, &format!("delivery_{n}"), &body).await;
    }
    let again = event_body("job.completed", "j1", json!({"order_id": "ab", "kind": "c"}));
    assert_eq!(world.send("another_delivery", &again).await, (200, "duplicate".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn idm_02_tenants_and_jobs_whose_names_hold_the_separator_are_told_apart() {
    let world = world_of(WorldConfig::default()).await;
    let pairs = [("a%7Cb", "c"), ("a", "b%7Cc"), ("a%2525", "c"), ("a%25", "25c")];
    for (tenant, job) in pairs {
        let wallet = format!("/control/tenants/{tenant}/wallets/w");
        assert_eq!(world.control("PUT", &wallet, Some(json!({"currency": "USD"}))).await.0, 201, "{tenant}");
        let funding = json!({"amount": "10.00", "reference": "first"});
        assert_eq!(world.control("POST", &format!("{wallet}/fund"), Some(funding)).await.0, 201);
        let path = format!("/control/tenants/{tenant}/jobs/{job}");
        let body = json!({"provider": "acme", "model": "small-1", "wallet": "w", "hold": "4.00"});
        assert_eq!(world.control("PUT", &path, Some(body)).await.0, 201, "{tenant} {job}");
    }
    for (tenant, _) in pairs {
        let wallet = world.control("GET", &format!("/control/tenants/{tenant}/wallets/w"), None).await.1;
        assert_eq!((&wallet["available"], &wallet["held"]), (&json!("6.000000"), &json!("4.000000")), "{tenant}");
    }
    assert_eq!(items(&world, "jobs").iter().filter(|item| text(item, "sk") == "j").count(), pairs.len());
    audit(&world);
}
