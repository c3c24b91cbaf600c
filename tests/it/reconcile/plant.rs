//! What the scenarios share: facts planted by raw calls of DynamoDB, and what a run found.

use std::sync::Arc;

use local::dynamo_api;
use local::world::{World, WorldConfig, completed};
use serde_json::{Value, json};

use crate::harness::{HOUR_MS, accepted, relay_has_run, submitted_with};

/// A world whose job j1 was completed by msg_1 and settled, three hours ago.
pub async fn settled() -> Arc<World> {
    settled_with(brief()).await
}

pub async fn settled_with(config: WorldConfig) -> Arc<World> {
    let world = submitted_with(config).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    later(&world, 3).await;
    world
}

/// Hours pass in which the relay ran and nothing happened.
pub async fn later(world: &World, hours: i64) {
    world.clock.advance(hours * HOUR_MS);
    relay_has_run(world).await;
}

fn behind_its_back(world: &World, operation: &str, request: &Value) -> Value {
    let answer = dynamo_api::call(world.aws.database(), operation, request.to_string().as_bytes());
    let body = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 200, "{body}");
    body
}

fn table(name: &str) -> String {
    format!("hookledger-{name}")
}

fn key(pk: &str, sk: &str) -> Value {
    if sk.is_empty() { json!({"pk": {"S": pk}}) } else { json!({"pk": {"S": pk}, "sk": {"S": sk}}) }
}

/// Removes an item, as no handler ever does.
pub fn remove(world: &World, name: &str, pk: &str, sk: &str) {
    let request = json!({"TableName": table(name), "Key": key(pk, sk), "ReturnValues": "ALL_OLD"});
    let old = behind_its_back(world, "DeleteItem", &request);
    assert!(old["Attributes"].is_object(), "there was no {pk} {sk}");
}

/// Rewrites an item, as no handler ever does.
pub fn tamper(world: &World, name: &str, pk: &str, sk: &str, change: impl FnOnce(&mut Value)) {
    let request = json!({"TableName": table(name), "Key": key(pk, sk), "ConsistentRead": true});
    let mut item = behind_its_back(world, "GetItem", &request)["Item"].clone();
    let before = item.clone();
    change(&mut item);
    assert_ne!(item, before, "nothing was tampered with");
    behind_its_back(world, "PutItem", &json!({"TableName": table(name), "Item": item}));
}

/// The cases that a run found, as `class/action/state`.
pub fn told(run: &Value) -> Vec<String> {
    let text = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
    let cases = run["cases"].as_array().unwrap_or_else(|| panic!("{run}"));
    cases.iter().map(|c| format!("{}/{}/{}", text(c, "class"), text(c, "action"), text(c, "state"))).collect()
}

/// The one case of a run.
pub fn only(run: &Value) -> String {
    assert_eq!(run["cases"].as_array().map(Vec::len), Some(1), "{run}");
    run["cases"][0]["case"].as_str().unwrap().to_owned()
}

/// Everything but the provider's list is compared, of receipts the world's first hour; the run is done.
pub async fn reconcile(world: &World, reference: &str) -> Value {
    reconcile_kinds(world, reference, &["receipts", "wallets", "reviews"]).await
}

/// [`reconcile`], and the provider's list too.
pub async fn reconcile_all(world: &World, reference: &str) -> Value {
    reconcile_kinds(world, reference, &["receipts", "wallets", "reviews", "provider-list"]).await
}

async fn reconcile_kinds(world: &World, reference: &str, kinds: &[&str]) -> Value {
    let body = json!({"kinds": kinds, "from": "2026-11-29T12:00:00Z", "to": "2026-11-29T13:00:00Z"});
    let run = world.reconcile(reference, body).await.unwrap();
    assert_eq!(run["state"], "done", "{run}");
    assert_eq!((&run["parts"]["failed"], &run["skipped"]), (&json!(0), &json!([])), "{run}");
    run
}

/// [`submitted`], where a hold lives for five hours only: a list is compared with the jobs of one hold's life.
pub async fn submitted_briefly() -> Arc<World> {
    submitted_with(brief()).await
}

/// The usual world with short holds.
pub fn brief() -> WorldConfig {
    let usual = WorldConfig::default();
    let providers = usual.providers.replacen("retry_window_hours = 72", "retry_window_hours = 1\nhold_hours = 5", 1);
    WorldConfig { providers, ..usual }
}

/// A run finds exactly this; it is applied; another run finds nothing.
pub async fn found_applied_and_gone(world: &World, expected: &str) -> Value {
    let run = reconcile_all(world, "first").await;
    assert_eq!(told(&run), [expected], "{run}");
    let again = reconcile_all(world, "again").await;
    assert_eq!(again["cases"][0]["case"], run["cases"][0]["case"], "the same fact is the same case");
    assert_eq!(again["classes"][run["cases"][0]["class"].as_str().unwrap()]["new"], 0, "{again}");
    let (status, case) = world.decide_case("first", &only(&run), "apply").await;
    assert_eq!((status, &case["state"]), (200, &json!("resolved")), "{case}");
    assert_eq!(case["decisions"][0]["actor"], "local", "{case}");
    settle(world).await;
    assert_eq!(told(&reconcile_all(world, "last").await), [""; 0]);
    case
}

/// A run finds exactly this and does it at once; another run finds nothing.
pub async fn done_at_once_and_gone(world: &World, class: &str, action: &str) {
    let run = reconcile(world, "first").await;
    assert_eq!(told(&run), [format!("{class}/{action}/resolved")], "{run}");
    assert_eq!(run["classes"][class], json!({"found": 1, "new": 1, "applied": 1}), "{run}");
    settle(world).await;
    assert_eq!(told(&reconcile(world, "last").await), [""; 0]);
}

/// What was made due is done.
pub async fn settle(world: &World) {
    world.minutes(3).await.unwrap();
}
