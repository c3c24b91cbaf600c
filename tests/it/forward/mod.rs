//! forward: events leave the system under a stable key, without jobs or wallets, at least once and always
//! with the same bytes.

mod bus;
mod faults;
mod http;
mod keys;

use domain::operation::OperationName::Forward;
use local::Clock;
use local::stack::Function;
use local::world::{World, WorldConfig};
use runtime::gateway::GatewayEvent;
use serde_json::{Value, json};
use signature::{Headers, Recipe, Request, Secret, Verifier};

use crate::harness::{HOUR_MS, Rule, hooked, items};
use crate::sender::{deliver, explain, said};

const SECRET: &str = "a secret of GitHub's kind, for tests only";
pub const QUEUE: &str = "forwarded.fifo";
pub const VARIABLE: &str = "HOOKLEDGER_FORWARD_QUEUE_URL";

/// GitHub alone: no acme, no prices, no wallet.
const GITHUB: &str = r#"
[providers.github]
owner = "tests"
signature = { scheme = "github" }
secrets = ["GITHUB_WEBHOOK_SECRET"]
retry_window_hours = 72
tenants = ["*"]
event_id = "header:x-github-delivery"
id_signed = false
event_type = "header:x-github-event"
forward = { to = "sqs:HOOKLEDGER_FORWARD_QUEUE_URL" }
data = { action = "body:/action", repository = "body:/repository/full_name", number = "body:/number", draft = "body:/draft" }

[providers.github.events]
"*" = { operations = ["forward"] }
"ping" = { operations = [] }
"pull_request" = { operations = ["forward"], forward = { to = "sqs:HOOKLEDGER_FORWARD_QUEUE_URL", action_key = ["body:/number", "body:/action"] } }
"#;

pub fn config() -> WorldConfig {
    let mut config = WorldConfig { providers: GITHUB.to_owned(), ..WorldConfig::default() };
    config.secrets = [("GITHUB_WEBHOOK_SECRET".to_owned(), SECRET.to_owned())].into();
    config.addresses = [(VARIABLE.to_owned(), format!("https://sqs.example/1/{QUEUE}"))].into();
    config
}

/// A world of GitHub alone whose destination exists.
pub async fn world_of(config: WorldConfig) -> World {
    let world = World::new(config).await.unwrap();
    world.aws.queues().create_queue(QUEUE, local::fifo::QueueAttributes::default()).unwrap();
    world
}

pub fn github(world: &World, id: &str, kind: &str, body: &str) -> GatewayEvent {
    let signer = Verifier::new(Recipe::named("github").unwrap(), vec![Secret::new("test", SECRET)]).unwrap();
    let headers = Headers::default();
    let request = Request { method: "POST", url: None, headers: &headers, body: body.as_bytes() };
    let mut signed = signer.sign(id, world.clock.now_ms(), &request).unwrap();
    signed.retain(|(name, _)| name.eq_ignore_ascii_case("x-hub-signature-256"));
    signed.push(("x-github-delivery".to_owned(), id.to_owned()));
    signed.push(("x-github-event".to_owned(), kind.to_owned()));
    world.event("POST", "/webhooks/github", signed, Some(body))
}

pub async fn send(world: &World, id: &str, kind: &str, body: &Value) {
    assert_eq!(deliver(world, &github(world, id, kind, &body.to_string())).await, said(202, "accepted"), "{id}");
}

/// What arrived at the destination: bodies as JSON and the attribute, oldest first.
pub fn arrived(world: &World) -> Vec<(Value, String)> {
    let stored = world.aws.queues().peek(QUEUE).unwrap();
    let key = |m: &local::fifo::message::StoredMessage| m.attributes["hookledger-key"].string_value.clone().unwrap();
    stored.iter().map(|m| (serde_json::from_str(&m.body).unwrap(), key(m))).collect()
}

pub async fn operation(world: &World, id: &str) -> Value {
    let (_, event) = explain(world, "github", id).await;
    assert_eq!(event["operations"][0]["operation"], Forward.as_str(), "{event}");
    event["operations"][0].clone()
}

pub async fn state(world: &World, id: &str) -> String {
    let operation = operation(world, id).await;
    format!("{} {}", operation["state"].as_str().unwrap(), operation["class"].as_str().unwrap_or("-"))
}

#[tokio::test(start_paused = true)]
async fn a_team_with_github_alone_gets_every_event_once_and_no_raw_body() {
    let world = world_of(config()).await;
    let body = json!({
        "action": "opened", "number": 9_007_199_254_740_993_i64, "draft": false, "secret_canary": "canary",
        "repository": {"full_name": "octo/café"},
    });
    send(&world, "d-1", "issues", &body).await;
    assert_eq!(deliver(&world, &github(&world, "d-1", "issues", &body.to_string())).await, said(200, "duplicate"));
    world.drain().await.unwrap();
    let by_hand = json!({
        "form": 1, "key": "github|d-1|-|outbound|forward", "event": "github/d-1", "item": "-", "type": "issues",
        "received_at": "2026-11-29T12:00:00Z",
        "data": {"action": "opened", "number": "9007199254740993", "draft": "false", "repository": "octo/café"},
    });
    // printf %s 'github|d-1|-|outbound|forward' | sha256sum
    let hash = HASH_OF_D1;
    assert_eq!(arrived(&world), [(by_hand, hash.to_owned())]);
    let shown = operation(&world, "d-1").await;
    assert_eq!((&shown["state"], &shown["effect"]), (&json!("done"), &json!(format!("forwarded to sqs:{VARIABLE}"))));
    assert_eq!(explain(&world, "github", "d-1").await.1["status"], "completed");
    // Redelivered an hour later, when SQS has long forgotten: still once.
    world.clock.advance(HOUR_MS);
    assert_eq!(deliver(&world, &github(&world, "d-1", "issues", &body.to_string())).await, said(200, "duplicate"));
    world.minutes(5).await.unwrap();
    assert_eq!(arrived(&world).len(), 1);
    for table in ["jobs", "ledger", "balances"] {
        assert_eq!(items(&world, table), Vec::<Value>::new(), "{table}");
    }
    assert!(!format!("{:?}", items(&world, "events")).contains("canary"));
}

pub const HASH_OF_D1: &str = "a6045d6bb4d402f989bce9582eda995c460a0e9a7a3e9a537d24593985cfa629";

#[tokio::test(start_paused = true)]
async fn a_type_of_its_own_goes_before_the_rule_for_every_other_one() {
    let world = world_of(config()).await;
    let calls = Rule::count("SendMessage", &[]);
    world.aws.add_hook(calls.clone());
    assert_eq!(deliver(&world, &github(&world, "d-1", "ping", "{}")).await, said(202, "accepted"));
    world.minutes(5).await.unwrap();
    assert_eq!((calls.hits(), arrived(&world).len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_named_value_is_no_scalar_or_too_long_is_quarantined() {
    let world = world_of(config()).await;
    for (id, body) in [("d-1", json!({"action": {"a": 1}})), ("d-2", json!({"action": "x".repeat(1_001)}))] {
        let event = github(&world, id, "issues", &body.to_string());
        assert_eq!(deliver(&world, &event).await, said(200, "quarantined"));
    }
    send(&world, "d-3", "issues", &json!({"action": "x".repeat(1_000)})).await;
    let without = world_of(WorldConfig { addresses: Default::default(), ..config() }).await;
    send(&without, "d-4", "issues", &json!({})).await;
    without.drain().await.unwrap();
    let shown = operation(&without, "d-4").await;
    assert_eq!(shown["class"], "refused", "{shown}");
    assert!(shown["note"].as_str().unwrap().contains(VARIABLE), "says what to set: {shown}");
}

#[tokio::test(start_paused = true)]
async fn the_receipt_survives_a_queue_that_is_down_and_the_relay_forwards_it() {
    let down = Rule::always("SendMessage", &[], crate::harness::unreachable());
    let world = world_of(WorldConfig { hooks: hooked(Function::Receiver, down.clone()).hooks, ..config() }).await;
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    assert!(down.hits() > 0);
    world.minutes(5).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "done already-done");
    assert_eq!(arrived(&world).len(), 1);
}
