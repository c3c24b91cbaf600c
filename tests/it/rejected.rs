//! Refused deliveries: their owner sees why, nothing of what was sent is kept, and no sender decides what
//! they cost.

use std::time::Duration;

use local::hook::{Fault, HookDecision, Service};
use local::world::{World, WorldConfig, answer, completed};
use local::{Clock, Function};
use runtime::gateway::GatewayEvent;
use serde_json::{Value, json};

use crate::harness::{Rule, hooked, items};
use crate::sender::{counting, said};

fn unsigned(world: &World) -> GatewayEvent {
    let mut event = world.acme("msg_1", &completed("j1"));
    event.headers.remove("webhook-signature");
    event.headers.insert("x-canary".to_owned(), "canary-value".to_owned());
    event.request_context.http.source_ip = "192.0.2.7".to_owned();
    event
}

async fn refuse(world: &World) {
    assert_eq!(answer(&world.stack.webhook(&unsigned(world)).await), said(401, "invalid-signature"));
}

async fn listed(world: &World, query: &str) -> (u16, Value) {
    let mut event = world.event("GET", "/control/rejected", [], None);
    query.clone_into(&mut event.raw_query_string);
    let response = world.stack.control(&event).await;
    (response.status_code, serde_json::from_str(&response.body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_owner_sees_what_was_refused_and_why_and_nothing_of_its_content() {
    let world = World::new(WorldConfig::default()).await.unwrap();
    refuse(&world).await;
    world.clock.advance(1_000);
    let mut late = world.acme("msg_2", &completed("j1"));
    late.request_context.time_epoch += 301_000;
    assert_eq!(world.stack.webhook(&late).await.status_code, 401);
    let (status, body) = listed(&world, "provider=acme").await;
    assert_eq!(status, 200);
    let shown = body["rejected"].as_array().unwrap();
    assert_eq!(shown.len(), 2, "{body}");
    // The latest first; the world begins at noon.
    assert_eq!((&shown[0]["reason"], &shown[0]["at"]), (&json!("timestamp-too-old"), &json!("2026-11-29T12:05:02Z")));
    let by_hand = json!({
        "provider": "acme", "at": "2026-11-29T12:00:00Z", "status": 401, "reason": "no-signature",
        "source": "192.0.2.7", "body_bytes": completed("j1").len(),
        "headers": ["webhook-id", "webhook-timestamp", "x-canary"],
    });
    assert_eq!(shown[1], by_hand);
    let stored = format!("{:?}", items(&world, "events"));
    assert!(!stored.contains("canary-value") && !stored.contains("input_tokens"), "{stored}");
    assert_eq!(listed(&world, "").await.1["rejected"].as_array().unwrap().len(), 2);
    assert_eq!(listed(&world, "provider=github").await.1["rejected"], json!([]));
    assert_eq!(listed(&world, "provider=nobody").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_flood_costs_a_bounded_number_of_writes_and_fills_a_bounded_number_of_items() {
    let config = WorldConfig::default();
    let calls = counting(&config, Function::Receiver);
    let world = World::new(config).await.unwrap();
    // 20 minutes, one hundred a second in bursts: 5 at once, then one in ten seconds.
    for _ in 0..120 {
        for _ in 0..20 {
            refuse(&world).await;
        }
        world.clock.advance(10_000);
    }
    assert_eq!((calls.count("PutItem"), calls.count("UpdateItem")), (5 + 119, 5 + 119));
    let kept: Vec<Value> = items(&world, "events").into_iter().filter(|item| item["pk"]["S"] == "N|acme").collect();
    assert_eq!(kept.len(), 50 + 1, "50 slots and the count");
    let body = listed(&world, "provider=acme").await.1;
    let times: Vec<&str> = body["rejected"].as_array().unwrap().iter().map(|r| r["at"].as_str().unwrap()).collect();
    // The last 50 of one in ten seconds: from 12:19:50 back to 12:11:40.
    assert_eq!((times.len(), times[0], times[49]), (50, "2026-11-29T12:19:50Z", "2026-11-29T12:11:40Z"));
    // A name that no profile has costs nothing at all.
    let before = calls.take().len();
    let elsewhere = GatewayEvent { raw_path: "/webhooks/nobody".to_owned(), ..unsigned(&world) };
    assert_eq!(world.stack.webhook(&elsewhere).await.status_code, 404);
    assert_eq!((before, calls.take().len()), (2 * 124, 0));
    // Whoever was refused a month ago is forgotten.
    world.clock.advance(31 * 86_400_000);
    assert_eq!(listed(&world, "provider=acme").await.1["rejected"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_or_hangs_changes_no_401_and_delays_it_by_a_second_at_most() {
    let hang = HookDecision::FailBefore(Fault::Timeout);
    let down = HookDecision::FailBefore(Fault::internal_server_error(Service::DynamoDb));
    for (trouble, at_most) in [(hang, Duration::from_secs(1)), (down, Duration::from_secs(1))] {
        let rule = Rule::always("UpdateItem", &["N|acme"], trouble);
        let world = World::new(hooked(Function::Receiver, rule.clone())).await.unwrap();
        let begun = tokio::time::Instant::now();
        refuse(&world).await;
        assert!(rule.hits() > 0 && begun.elapsed() <= at_most, "{:?}", begun.elapsed());
        assert_eq!(listed(&world, "provider=acme").await.1["rejected"], json!([]));
        assert_eq!(world.clock.now_ms(), local::world::BEGINS_MS);
    }
}
