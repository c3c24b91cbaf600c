//! Events of our own: each effect is told once, in the transaction that makes it, to whoever subscribed.

mod balance;
mod effects;
mod http;
mod order;
mod people;
mod recovery;
mod sender_loop;

use local::fifo::QueueAttributes;
use local::world::{World, WorldConfig};
use runtime::lambda::PROVIDERS_TOML;
use serde_json::Value;

use crate::harness::relay_has_run;

pub const QUEUE: &str = "told.fifo";
pub const ADDRESS: &str = "HOOKLEDGER_TOLD_QUEUE_URL";

/// acme's profile with one subscription, `books`, to everything of everybody, and these lines of its own.
pub fn config(more: &str) -> WorldConfig {
    subscribed(&subscription(
        "books",
        ADDRESS,
        r#"["job.settled", "job.completed", "job.failed", "job.canceled"]"#,
        more,
    ))
}

pub fn subscription(name: &str, variable: &str, types: &str, more: &str) -> String {
    let tenants = if more.contains("tenants") { "" } else { "tenants = [\"*\"]\n" };
    format!("\n[subscriptions.{name}]\nto = \"sqs:{variable}\"\ntypes = {types}\n{tenants}{more}\n")
}

pub fn subscribed(text: &str) -> WorldConfig {
    let mut config = WorldConfig { providers: format!("{PROVIDERS_TOML}{text}"), ..WorldConfig::default() };
    config.addresses = [(ADDRESS.to_owned(), format!("https://sqs.example/1/{QUEUE}"))].into();
    config
}

/// A world whose reader's queue exists, with wallet w1 funded with 100.00.
pub async fn world_of(config: WorldConfig) -> World {
    let world = World::new(config).await.unwrap();
    world.aws.queues().create_queue(QUEUE, QueueAttributes::default()).unwrap();
    relay_has_run(&world).await;
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    world
}

/// What the reader has, oldest first.
pub fn told(world: &World) -> Vec<Value> {
    let stored = world.aws.queues().peek(QUEUE).unwrap();
    stored.iter().map(|message| serde_json::from_str(&message.body).unwrap()).collect()
}

/// The ids of what the reader has, oldest first.
pub fn ids(world: &World) -> Vec<String> {
    told(world).iter().map(|body| body["id"].as_str().unwrap().to_owned()).collect()
}

/// The same, sorted: what is told of two groups has no order of its own.
pub fn sorted_ids(world: &World) -> Vec<String> {
    let mut all = ids(world);
    all.sort();
    all
}
