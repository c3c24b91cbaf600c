//! The cases in which a person acts: reviews, redelivery, replay, pause.

use domain::limits::RetryPolicy;
use local::world::{Hooks, World, WorldConfig, WorldError, completed};
use serde_json::{Value, json};

use super::cases::{Case, effects, operations, world};

/// The cases in the order in which they are shown.
pub fn all() -> Vec<Case> {
    let case = |name, expected, run| Case { name, expected, run };
    vec![
        case(
            "tries exhausted, then a person retries",
            "2 in review (attempts-exhausted); retried 200 200; 1 transition, 1 close, 0.008700 captured",
            || Box::pin(exhausted_then_retry()),
        ),
        case(
            "redelivery of an event in review",
            "2 in review (attempts-exhausted); 200 duplicate; 1 transition, 1 close, 0.008700 captured",
            || Box::pin(redelivery_after_review()),
        ),
        case(
            "replay of a finished event",
            "finished finished, nothing sent; 1 transition, 1 close, 0.008700 captured",
            || Box::pin(replay_of_finished()),
        ),
        case(
            "replay of a failed event, asked for twice",
            "from-review from-review, then the same replay; 1 transition, 1 close, 0.008700 captured",
            || Box::pin(replay_of_failed()),
        ),
        case(
            "billing paused, then resumed",
            "paused: 1 transition, 0 closes, 0.000000 captured; resumed: 1 transition, 1 close, 0.008700 captured",
            || Box::pin(pause_and_resume()),
        ),
        case(
            "charge above the hold, approved up to the hold",
            "in review (overage); 1 transition, 1 close, 5.000000 captured",
            || Box::pin(approved()),
        ),
    ]
}

/// A world in which msg_1's job was submitted only after three tries had failed.
async fn failed() -> Result<(World, String), WorldError> {
    let policy = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
    let world = World::new(WorldConfig { policy, ..WorldConfig::default() }).await?;
    world.fund("w1", "100.00").await;
    world.send("msg_1", &completed("j1")).await;
    world.minutes(15).await?;
    let seen = reviews(&world).await;
    world.submit("j1", "w1", "5.00").await;
    Ok((world, seen))
}

/// How many operations of msg_1 are in review, and why.
async fn reviews(world: &World) -> String {
    let count = operations(world, "msg_1", "state").await.iter().filter(|state| *state == "needs-review").count();
    let mut classes = operations(world, "msg_1", "class").await;
    classes.dedup();
    format!("{count} in review ({})", classes.join(" "))
}

async fn exhausted_then_retry() -> Result<String, WorldError> {
    let (world, seen) = failed().await?;
    let mut statuses = Vec::new();
    for name in ["complete-job", "settle-usage"] {
        let path = format!("/control/reviews/{name}~3Aacme~2Fmsg_1");
        let body = json!({"action": "retry", "reason": "the job is known now"});
        statuses.push(world.control("POST", &path, Some(body)).await.0.to_string());
    }
    world.minutes(4).await?;
    Ok(format!("{seen}; retried {}; {}", statuses.join(" "), effects(&world).await))
}

async fn redelivery_after_review() -> Result<String, WorldError> {
    let (world, seen) = failed().await?;
    let (status, answer) = world.send("msg_1", &completed("j1")).await;
    world.minutes(4).await?;
    Ok(format!("{seen}; {status} {answer}; {}", effects(&world).await))
}

async fn replay(world: &World) -> Value {
    let body = json!({"events": ["acme/msg_1"], "reason": "after the repair", "reference": "drill-1"});
    world.control("POST", "/control/replays", Some(body)).await.1
}

/// What became of each operation.
fn became(answer: &Value) -> String {
    let operations = answer["events"][0]["operations"].as_array().cloned().unwrap_or_default();
    operations.iter().filter_map(|o| o["became"].as_str()).collect::<Vec<_>>().join(" ")
}

async fn replay_of_finished() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    world.send("msg_1", &completed("j1")).await;
    world.minutes(4).await?;
    let answer = replay(&world).await;
    let sent = world.stack.relay().await.map_or_else(|error| error.to_string(), |report| report.sent.to_string());
    let sent = if sent == "0" { "nothing sent".to_owned() } else { format!("{sent} sent") };
    world.minutes(4).await?;
    Ok(format!("{}, {sent}; {}", became(&answer), effects(&world).await))
}

async fn replay_of_failed() -> Result<String, WorldError> {
    let (world, _) = failed().await?;
    let (first, second) = (replay(&world).await, replay(&world).await);
    let same = first["events"] == second["events"] && second["again"] == true;
    let same = if same { "the same replay" } else { "another replay" };
    world.minutes(4).await?;
    Ok(format!("{}, then {same}; {}", became(&first), effects(&world).await))
}

async fn pause_and_resume() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let switch = |paused: bool| json!({"paused": paused, "reason": "drill"});
    world.control("PUT", "/control/pauses/billing", Some(switch(true))).await;
    world.send("msg_1", &completed("j1")).await;
    world.minutes(10).await?;
    let paused = effects(&world).await;
    world.control("PUT", "/control/pauses/billing", Some(switch(false))).await;
    world.minutes(4).await?;
    Ok(format!("paused: {paused}; resumed: {}", effects(&world).await))
}

async fn approved() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let body = local::world::event_body("job.completed", "j1", json!({"usage": {"input_tokens": 2_000_000}}));
    world.send("msg_1", &body).await;
    world.drain().await?;
    let classes = operations(&world, "msg_1", "class").await;
    let body = json!({"action": "approve", "alternative": "cap", "reason": "agreed with the customer"});
    world.control("POST", "/control/reviews/settle-usage~3Aacme~2Fmsg_1", Some(body)).await;
    world.minutes(4).await?;
    let class = classes.last().map(String::as_str).unwrap_or_default();
    Ok(format!("in review ({class}); {}", effects(&world).await))
}
