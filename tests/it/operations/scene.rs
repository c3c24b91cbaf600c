//! Short ways to ask as an operator, under an identity that the gateway would have verified.

use domain::limits::{EXPIRY_BUCKET_MS, SHARDS};
use local::world::{World, completed, event_body};
use runtime::gateway::{Authorizer, IamIdentity, path_part};
use serde_json::{Value, json};
use store::Cursor;

use crate::harness::*;

pub const ANN: &str = "arn:aws:iam::123456789012:user/ann";
pub const BOB: &str = "arn:aws:iam::123456789012:user/bob";

/// One control request of somebody; its status and body.
pub async fn ask_as(world: &World, actor: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let text = body.map(|body| body.to_string());
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut event = world.event(method, path, [], text.as_deref());
    query.clone_into(&mut event.raw_query_string);
    event.request_context.authorizer = Authorizer { iam: Some(IamIdentity { user_arn: actor.to_owned() }) };
    let response = world.stack.control(&event).await;
    (response.status_code, serde_json::from_str(&response.body).unwrap_or(Value::Null))
}

pub async fn ask(world: &World, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    ask_as(world, ANN, method, path, body).await
}

/// Decides on one review.
pub async fn decide(world: &World, id: &str, body: Value) -> (u16, Value) {
    decide_as(world, ANN, id, body).await
}

pub async fn decide_as(world: &World, actor: &str, id: &str, body: Value) -> (u16, Value) {
    ask_as(world, actor, "POST", &format!("/control/reviews/{}", path_part(id)), Some(body)).await
}

/// The open reviews that a query takes.
pub async fn reviews(world: &World, query: &str) -> Vec<Value> {
    let (status, body) = ask(world, "GET", &format!("/control/reviews?{query}"), None).await;
    assert_eq!(status, 200, "{body}");
    body["reviews"].as_array().unwrap().clone()
}

/// Ids of the open reviews that a query takes, sorted.
pub async fn ids(world: &World, query: &str) -> Vec<String> {
    let mut ids: Vec<String> =
        reviews(world, query).await.iter().map(|review| review["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

pub fn retry() -> Value {
    json!({"action": "retry", "reason": "the cause is gone"})
}

pub fn close() -> Value {
    json!({"action": "close", "reason": "nothing to charge"})
}

/// A success of a job that used this much input: 3.00 for a million tokens.
pub fn used(job: &str, input_tokens: u64) -> String {
    event_body("job.completed", job, json!({"usage": {"input_tokens": input_tokens}}))
}

/// A world in which j1's settlement is in review: 6.00 were used and 5.00 are held.
pub async fn above_the_hold() -> std::sync::Arc<World> {
    let world = submitted().await;
    accepted(&world, "msg_1", &used("j1", 2_000_000)).await;
    world.drain().await.unwrap();
    assert_eq!(ids(&world, "").await, ["settle-usage:acme/msg_1"]);
    world
}

/// A world in which both operations of msg_1 ran out of tries, since the job is not known.
pub async fn exhausted() -> std::sync::Arc<World> {
    let policy = domain::limits::RetryPolicy { max_attempts: 3, ..domain::limits::RetryPolicy::default() };
    let world = funded_with(limits(policy)).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(15).await.unwrap();
    assert_eq!(ids(&world, "").await, ["complete-job:acme/msg_1", "settle-usage:acme/msg_1"]);
    world
}

/// Runs until everything that is due is done: a relay's run and the consumers, a few times.
pub async fn settle_down(world: &World) {
    world.minutes(3).await.unwrap();
}

/// Both sweeps of the relay have run up to now, but for the last half hour of expiring holds.
pub async fn sweeps_have_run(world: &World) {
    relay_has_run(world).await;
    for shard in 0..SHARDS {
        let bucket = now_ms(world) / EXPIRY_BUCKET_MS - 3;
        world.stack.app.store.advance_cursor(Cursor::Expiry, shard, bucket).await.unwrap();
    }
}
