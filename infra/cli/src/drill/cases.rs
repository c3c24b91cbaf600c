//! The cases: what is done, and what must be seen.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use domain::operation::Consumer;
use futures_util::future::join_all;
use local::stack::{Function, PREFIX};
use local::world::{Hooks, World, WorldConfig, WorldError, completed, event_body};
use queue::queue_name;
use runtime::sqs::{SqsAttributes, SqsEvent, SqsRecord};
use serde_json::{Value, json};

use super::faults;

type Observed = Pin<Box<dyn Future<Output = Result<String, WorldError>>>>;

/// One case.
pub struct Case {
    /// What happens.
    pub name: &'static str,
    /// The business effects that must be.
    pub expected: &'static str,
    /// Does it on a fresh stack and tells the effects that are.
    pub run: fn() -> Observed,
}

const ONCE: &str = "1 transition, 1 close, 0.008700 captured";

/// All cases in the order in which they are shown.
pub fn all() -> Vec<Case> {
    let case = |name, expected, run| Case { name, expected, run };
    vec![
        case("first valid event", "202; 1 transition, 1 close, 0.008700 captured", || Box::pin(first())),
        case("same event twice", "202 200; 1 transition, 1 close, 0.008700 captured", || Box::pin(twice())),
        case("50 concurrent copies", "1x 202, 49x 200; 1 transition, 1 close, 0.008700 captured", || Box::pin(fifty())),
        case("two workers on one message", ONCE, || Box::pin(two_workers())),
        case(
            "three event ids for the same job",
            "202 202 202; 1 transition, 1 close, 0.008700 captured; 2 no-ops",
            || Box::pin(three_ids()),
        ),
        case("reply of the settlement lost after it applied", ONCE, || Box::pin(lost_reply())),
        case(
            "temporary DynamoDB failure",
            "first: 1 transition, 0 closes, 0.000000 captured; then: 1 transition, 1 close, 0.008700 captured",
            || Box::pin(temporary_failure()),
        ),
        case("older update arrives late", "progress 5 stays 5; older one: noop", || Box::pin(older_update())),
        case("invalid signature", "401; no receipt; 0 transitions, 0 closes, 0.000000 captured", || {
            Box::pin(invalid_signature())
        }),
        case("unknown event type", "200 ignored; receipt: ignored; 0 transitions, 0 closes, 0.000000 captured", || {
            Box::pin(unknown_type())
        }),
        case(
            "same event id with other content",
            "200 quarantined; 1 conflict; 1 transition, 1 close, 0.008700 captured",
            || Box::pin(other_content()),
        ),
        case(
            "event older than the business expiry",
            "202; 2 in review (expired); 0 transitions, 0 closes, 0.000000 captured",
            || Box::pin(expired()),
        ),
    ]
    .into_iter()
    .chain(super::operator::all())
    .collect()
}

/// A world with a funded wallet and one submitted job, j1 with a hold of 5.00.
pub async fn world(hooks: Hooks) -> Result<World, WorldError> {
    let world = World::new(WorldConfig { hooks, ..WorldConfig::default() }).await?;
    world.fund("w1", "100.00").await;
    world.submit("j1", "w1", "5.00").await;
    Ok(world)
}

/// Counts the business effects on job j1.
pub async fn effects(world: &World) -> String {
    let job = world.job("j1").await;
    let empty = Vec::new();
    let transitions = job["transitions"].as_array().unwrap_or(&empty).len();
    let settlements = job["settlements"].as_array().unwrap_or(&empty);
    let captured = settlements.iter().filter_map(|s| s["captured"].as_str()).collect::<Vec<_>>().join(" + ");
    let captured = if captured.is_empty() { "0.000000".to_owned() } else { captured };
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let closes = settlements.len();
    format!("{transitions} transition{}, {closes} close{}, {captured} captured", plural(transitions), plural(closes))
}

async fn first() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let (status, _) = world.send("msg_1", &completed("j1")).await;
    world.minutes(4).await?;
    Ok(format!("{status}; {}", effects(&world).await))
}

async fn twice() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let (one, _) = world.send("msg_1", &completed("j1")).await;
    world.drain().await?;
    let (two, _) = world.send("msg_1", &completed("j1")).await;
    world.minutes(4).await?;
    Ok(format!("{one} {two}; {}", effects(&world).await))
}

async fn fifty() -> Result<String, WorldError> {
    let hooks = Hooks::default();
    hooks.add(Function::Receiver, faults::slow_network());
    let world = world(hooks).await?;
    let body = completed("j1");
    let answers = join_all((0..50).map(|_| world.send("msg_1", &body))).await;
    let mut counts = BTreeMap::new();
    for (status, _) in answers {
        *counts.entry(std::cmp::Reverse(status)).or_insert(0) += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(status, n)| format!("{n}x {}", status.0)).collect();
    world.minutes(4).await?;
    Ok(format!("{}; {}", counts.join(", "), effects(&world).await))
}

/// The message in a consumer's queue, as a batch of its own; it stays in the queue.
fn batch(world: &World, consumer: Consumer) -> Result<SqsEvent, WorldError> {
    let stored = world.aws.queues().peek(&queue_name(PREFIX, consumer)).map_err(local::stack::StackError::from)?;
    let record = |body: &str, id: &str, group: &str| SqsRecord {
        message_id: id.to_owned(),
        body: body.to_owned(),
        attributes: SqsAttributes { message_group_id: group.to_owned(), approximate_receive_count: "1".to_owned() },
    };
    let records = stored.iter().map(|m| record(&m.body, &m.message_id, &m.group_id)).collect();
    Ok(SqsEvent { records })
}

async fn two_workers() -> Result<String, WorldError> {
    let hooks = Hooks::default();
    hooks.add(Function::Control, faults::slow_network());
    let world = world(hooks).await?;
    world.send("msg_1", &completed("j1")).await;
    let (jobs, bills) = (batch(&world, Consumer::Job)?, batch(&world, Consumer::Billing)?);
    let app = &world.stack.app;
    tokio::join!(
        job::handle(app, jobs.clone()),
        job::handle(app, jobs),
        billing::handle(app, bills.clone()),
        billing::handle(app, bills),
    );
    world.minutes(4).await?;
    Ok(effects(&world).await)
}

async fn three_ids() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let mut statuses = Vec::new();
    for id in ["msg_1", "msg_2", "msg_3"] {
        statuses.push(world.send(id, &completed("j1")).await.0.to_string());
    }
    world.minutes(4).await?;
    let mut noops = 0;
    for id in ["msg_1", "msg_2", "msg_3"] {
        let states = operations(&world, id, "state").await;
        noops += usize::from(states.iter().all(|state| state == "noop"));
    }
    Ok(format!("{}; {}; {noops} no-ops", statuses.join(" "), effects(&world).await))
}

/// One member of each operation of an event.
pub async fn operations(world: &World, id: &str, member: &str) -> Vec<String> {
    let shown = world.explain(id).await;
    let all = shown["operations"].as_array().cloned().unwrap_or_default();
    all.iter().map(|o| o[member].as_str().unwrap_or_default().to_owned()).collect()
}

async fn lost_reply() -> Result<String, WorldError> {
    let hooks = Hooks::default();
    hooks.add(Function::Billing, faults::transaction_answer_lost());
    let world = world(hooks).await?;
    world.send("msg_1", &completed("j1")).await;
    world.minutes(6).await?;
    Ok(effects(&world).await)
}

async fn temporary_failure() -> Result<String, WorldError> {
    let hooks = Hooks::default();
    hooks.add(Function::Billing, faults::throttled_transactions(3));
    let world = world(hooks).await?;
    world.send("msg_1", &completed("j1")).await;
    world.drain().await?;
    let before = effects(&world).await;
    world.minutes(6).await?;
    Ok(format!("first: {before}; then: {}", effects(&world).await))
}

async fn older_update() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let progress = |sequence: i64| event_body("job.progress", "j1", json!({ "sequence": sequence }));
    world.send("msg_5", &progress(5)).await;
    world.drain().await?;
    let before = world.job("j1").await["progress"]["sequence"].clone();
    world.send("msg_4", &progress(4)).await;
    world.minutes(4).await?;
    let after = world.job("j1").await["progress"]["sequence"].clone();
    let older = operations(&world, "msg_4", "state").await.join(" ");
    Ok(format!("progress {before} stays {after}; older one: {older}"))
}

async fn invalid_signature() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let mut event = world.acme("msg_1", &completed("j1"));
    event.body = event.body.map(|body| body.replace("1200", "1"));
    let status = world.stack.webhook(&event).await.status_code;
    world.minutes(4).await?;
    let receipt = world.explain("msg_1").await;
    let receipt = if receipt["code"] == "not-found" { "no receipt" } else { "a receipt" };
    Ok(format!("{status}; {receipt}; {}", effects(&world).await))
}

async fn unknown_type() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let (status, answer) = world.send("msg_1", &event_body("job.renamed", "j1", Value::Null)).await;
    world.minutes(4).await?;
    let receipt = world.explain("msg_1").await;
    let receipt = receipt["status"].as_str().unwrap_or("none");
    Ok(format!("{status} {answer}; receipt: {receipt}; {}", effects(&world).await))
}

async fn other_content() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    world.send("msg_1", &completed("j1")).await;
    let other = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 9_000_000}}));
    let (status, answer) = world.send("msg_1", &other).await;
    world.minutes(4).await?;
    let conflicts = world.explain("msg_1").await["conflicts"].as_array().map_or(0, Vec::len);
    Ok(format!("{status} {answer}; {conflicts} conflict; {}", effects(&world).await))
}

async fn expired() -> Result<String, WorldError> {
    let world = world(Hooks::default()).await?;
    let body = completed("j1").replace("2026-11-29T12:00:00Z", "2026-11-27T12:00:00Z");
    let (status, _) = world.send("msg_1", &body).await;
    world.minutes(4).await?;
    let reviews = operations(&world, "msg_1", "state").await.iter().filter(|s| *s == "needs-review").count();
    let mut classes = operations(&world, "msg_1", "class").await;
    classes.dedup();
    Ok(format!("{status}; {reviews} in review ({}); {}", classes.join(" "), effects(&world).await))
}
