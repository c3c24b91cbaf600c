//! What the scenarios share: faults on chosen AWS calls, batches made by hand, and looks at the records.
//!
//! A [`Rule`] picks calls by operation and by what stands in the request, so that a test can lose one
//! answer of one item. Everything is read from the tables or through the control API, never from the
//! handlers' own answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::event::EventRef;
use domain::ids::ItemId;
use domain::keys::{event_pk, shard_of};
use domain::limits::{BUCKET_MS, RetryPolicy, SHARDS};
use domain::message::Message;
use domain::operation::{Consumer, OperationKey, OperationName, OperationRecord};
use local::dynamo_api;
use local::hook::{Call, CallHook, Fault, HookDecision, Service};
use local::stack::PREFIX;
use local::world::{Hooks, World, WorldConfig};
use local::{Clock, Function};
use queue::{dead_letter_name, queue_name};
use runtime::sqs::{BatchResponse, SqsAttributes, SqsEvent, SqsRecord};
use serde_json::{Value, json};
use store::{Cursor, StoreError};

/// The consumers that a completion of a job has work for.
pub const SETTLING: [Consumer; 2] = [Consumer::Job, Consumer::Billing];
pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;

/// Decides for the calls that match, at most `left` of them.
#[derive(Debug)]
pub struct Rule {
    operation: &'static str,
    containing: Vec<String>,
    decision: HookDecision,
    left: AtomicUsize,
    hits: AtomicUsize,
}

impl Rule {
    /// The next `times` calls of `operation` (`*` is any) whose request contains all of `containing`.
    pub fn times(times: usize, operation: &'static str, containing: &[&str], decision: HookDecision) -> Arc<Self> {
        let containing = containing.iter().map(|&text| text.to_owned()).collect();
        let (left, hits) = (AtomicUsize::new(times), AtomicUsize::new(0));
        Arc::new(Self { operation, containing, decision, left, hits })
    }

    /// Every such call, until [`Rule::stop`].
    pub fn always(operation: &'static str, containing: &[&str], decision: HookDecision) -> Arc<Self> {
        Self::times(usize::MAX, operation, containing, decision)
    }

    /// Counts, and lets pass.
    pub fn count(operation: &'static str, containing: &[&str]) -> Arc<Self> {
        Self::always(operation, containing, HookDecision::Pass)
    }

    /// An outage of everything, which begins with [`Rule::start`].
    pub fn outage() -> Arc<Self> {
        Self::times(0, "*", &[], HookDecision::FailBefore(Fault::ConnectionReset))
    }

    pub fn start(&self) {
        self.left.store(usize::MAX, Ordering::SeqCst);
    }

    pub fn stop(&self) {
        self.left.store(0, Ordering::SeqCst);
    }

    /// How many calls it decided for.
    pub fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }
}

impl CallHook for Rule {
    fn on_call(&self, call: &Call) -> HookDecision {
        let text = String::from_utf8_lossy(&call.body);
        let matches = (self.operation == "*" || self.operation == call.operation)
            && self.containing.iter().all(|part| text.contains(part.as_str()));
        if !matches || self.left.load(Ordering::SeqCst) == 0 {
            return HookDecision::Pass;
        }
        self.left.fetch_sub(1, Ordering::SeqCst);
        self.hits.fetch_add(1, Ordering::SeqCst);
        self.decision.clone()
    }
}

/// DynamoDB has too much to do.
pub fn throttled() -> HookDecision {
    HookDecision::FailBefore(Fault::throttled(Service::DynamoDb))
}

/// The call never arrives.
pub fn unreachable() -> HookDecision {
    HookDecision::FailBefore(Fault::ConnectionReset)
}

/// A transaction is cancelled for these reasons.
pub fn cancelled(reasons: &[&str]) -> HookDecision {
    HookDecision::FailBefore(Fault::transaction_cancelled(reasons))
}

/// A world whose relay has run up to now, so that no test pays for the first run's look back of a day.
pub async fn world_of(config: WorldConfig) -> Arc<World> {
    let world = World::new(config).await.unwrap();
    relay_has_run(&world).await;
    Arc::new(world)
}

/// The relay has examined everything up to now: what it would do minute by minute, were there receipts.
pub async fn relay_has_run(world: &World) {
    for shard in 0..SHARDS {
        world.stack.app.store.advance_cursor(Cursor::Receipts, shard, now_ms(world) / BUCKET_MS - 2).await.unwrap();
    }
}

/// The next minute that the relay examines in the shard of an event.
pub async fn cursor_of(world: &World, id: &str) -> i64 {
    let shard = shard_of(&event_pk(&event_ref(id)));
    world.stack.app.store.cursor(Cursor::Receipts, shard).await.unwrap().unwrap()
}

/// A minute passes and the relay runs, but no consumer works.
pub async fn relay_minute(world: &World) -> Result<relay::Report, StoreError> {
    world.clock.advance(MINUTE_MS);
    world.stack.relay().await
}

/// [`world_of`] the usual limits, with wallet w1 funded with 100.00.
pub async fn funded() -> Arc<World> {
    funded_with(WorldConfig::default()).await
}

pub async fn funded_with(config: WorldConfig) -> Arc<World> {
    let world = world_of(config).await;
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    world
}

/// [`funded`], with job j1 submitted under a hold of 5.00.
pub async fn submitted() -> Arc<World> {
    submitted_with(WorldConfig::default()).await
}

pub async fn submitted_with(config: WorldConfig) -> Arc<World> {
    let world = funded_with(config).await;
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    world
}

/// A world with a hook on one function's calls.
pub fn hooked(function: Function, hook: Arc<dyn CallHook>) -> WorldConfig {
    let hooks = Hooks::default();
    hooks.add(function, hook);
    WorldConfig { hooks, ..WorldConfig::default() }
}

/// The usual world with other limits.
pub fn limits(policy: RetryPolicy) -> WorldConfig {
    WorldConfig { policy, ..WorldConfig::default() }
}

/// acme sends the event and it is accepted.
pub async fn accepted(world: &World, id: &str, body: &str) {
    assert_eq!(world.send(id, body).await, (202, "accepted".to_owned()), "{id}");
}

/// acme sends the event; its messages are then lost, so that only batches made by hand work on it.
pub async fn taken_in(world: &World, id: &str, body: &str) {
    accepted(world, id, body).await;
    purge(world);
}

/// Everything in the consumers' queues is lost.
pub fn purge(world: &World) {
    for consumer in Consumer::ALL {
        world.aws.queues().purge(&queue_name(PREFIX, consumer)).unwrap();
    }
}

/// How many messages wait in a consumer's queue and in its dead-letter queue, in flight or not.
pub fn depths(world: &World, consumer: Consumer) -> (usize, usize) {
    let depth = |name: &str| {
        let depth = world.aws.queues().depth(name).unwrap();
        depth.visible + depth.in_flight
    };
    (depth(&queue_name(PREFIX, consumer)), depth(&dead_letter_name(PREFIX, consumer)))
}

/// The messages in a consumer's queue, oldest first.
pub fn messages(world: &World, consumer: Consumer) -> Vec<Message> {
    let stored = world.aws.queues().peek(&queue_name(PREFIX, consumer)).unwrap();
    stored.iter().map(|message| Message::from_json(&message.body).unwrap()).collect()
}

pub fn event_ref(id: &str) -> EventRef {
    format!("acme/{id}").parse().unwrap()
}

pub fn key(id: &str, name: OperationName) -> OperationKey {
    OperationKey { event: event_ref(id), item: ItemId::only(), name }
}

/// A first receive of the message `{id}-message` of generation 0 in a group.
pub fn record(group: &str, id: &str, name: OperationName) -> SqsRecord {
    record_of(group, id, name, 0, 1)
}

pub fn record_of(group: &str, id: &str, name: OperationName, generation: u32, receives: u32) -> SqsRecord {
    let message = Message::new(key(id, name), generation, group.to_owned());
    SqsRecord {
        message_id: id.to_owned(),
        body: message.to_json(),
        attributes: SqsAttributes {
            message_group_id: group.to_owned(),
            approximate_receive_count: receives.to_string(),
        },
    }
}

/// Hands a batch to the operation's own consumer.
pub async fn consume(world: &World, records: Vec<SqsRecord>) -> Vec<String> {
    let name = Message::from_json(&records[0].body).unwrap().key.name;
    let (app, event) = (&world.stack.app, SqsEvent { records });
    match name.consumer() {
        Consumer::Job => failures(job::handle(app, event).await),
        Consumer::Billing => failures(billing::handle(app, event).await),
        Consumer::Outbound => failures(outbound::handle(app, event).await),
    }
}

/// Hands one message of generation 0 to its consumer; it must not be reported failed.
pub async fn work(world: &World, id: &str, name: OperationName) {
    assert_eq!(consume(world, vec![record("g", id, name)]).await, [""; 0], "{id} {name}");
}

/// The ids that a batch reports failed.
pub fn failures(response: BatchResponse) -> Vec<String> {
    response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
}

/// The record of an operation that did not go straight.
pub async fn operation(world: &World, id: &str, name: OperationName) -> Option<OperationRecord> {
    let records = world.stack.app.store.load_event(&event_ref(id)).await.unwrap().unwrap();
    records.operation(&key(id, name)).cloned()
}

/// One operation as `explain` shows it.
pub async fn shown(world: &World, id: &str, name: OperationName) -> Value {
    let event = world.explain(id).await;
    let operations = event["operations"].as_array().unwrap();
    operations.iter().find(|operation| operation["operation"] == name.as_str()).unwrap().clone()
}

/// State and class of one operation, as `explain` shows them.
pub async fn state(world: &World, id: &str, name: OperationName) -> (String, String) {
    let shown = shown(world, id, name).await;
    let text = |member: &str| shown[member].as_str().unwrap_or_default().to_owned();
    (text("state"), text("class"))
}

/// All open reviews: operations by name, conflicts as `conflict`.
pub async fn open_reviews(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for shard in 0..SHARDS {
        for review in world.stack.app.store.open_reviews(shard, 100).await.unwrap() {
            let what = review.operation.map_or_else(|| "conflict".to_owned(), |key| key.name.to_string());
            found.push(format!("{} {what}", review.event));
        }
    }
    found.sort();
    found
}

/// The sample event's effect on job `job` stands, by event `id`, once: one transition, one close.
pub async fn assert_settled(world: &World, job: &str, id: &str) {
    let shown = world.job(job).await;
    let by = format!("acme/{id}");
    assert_eq!(shown["transitions"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["transitions"][0]["by"], json!(by), "{shown}");
    assert_eq!(shown["settlements"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["settlements"][0]["by"], json!(by), "{shown}");
    assert_eq!(shown["settlements"][0]["captured"], "0.008700", "{shown}");
}

/// Neither a transition nor a settlement stands for the job.
pub async fn assert_untouched(world: &World, job: &str) {
    let shown = world.job(job).await;
    assert_eq!((&shown["transitions"], &shown["settlements"]), (&json!([]), &json!([])), "{shown}");
}

/// Available and held of a wallet.
pub async fn balance(world: &World, wallet: &str) -> (String, String) {
    let shown = world.wallet(wallet).await;
    let text = |member: &str| shown[member].as_str().unwrap_or_default().to_owned();
    (text("available"), text("held"))
}

/// Every item of a table, as it is stored.
pub fn items(world: &World, table: &str) -> Vec<Value> {
    let request = json!({ "TableName": format!("{PREFIX}-{table}") }).to_string();
    let answer = dynamo_api::call(world.aws.database(), "Scan", request.as_bytes());
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert!(answer.get("LastEvaluatedKey").is_none_or(Value::is_null), "more than one page");
    answer["Items"].as_array().unwrap().clone()
}

/// Overwrites an item, as no handler ever does.
pub fn overwrite(world: &World, table: &str, item: &Value) {
    let request = json!({ "TableName": format!("{PREFIX}-{table}"), "Item": item }).to_string();
    let answer = dynamo_api::call(world.aws.database(), "PutItem", request.as_bytes());
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
}

pub fn now_ms(world: &World) -> i64 {
    world.clock.now_ms()
}

/// A process that dies at its n-th call from [`DiesAt::begin`] on, before or after that call took hold; so many calls in
/// all meet the fault, as the client repeats them.
#[derive(Debug)]
pub struct DiesAt {
    at: usize,
    after: bool,
    dead: usize,
    fault: Fault,
    seen: AtomicUsize,
}

impl DiesAt {
    /// More calls than any test makes.
    const ALIVE: usize = usize::MAX / 2;

    pub fn new(at: usize, after: bool, dead: usize, fault: Fault) -> Arc<Self> {
        Arc::new(Self { at, after, dead, fault, seen: AtomicUsize::new(Self::ALIVE) })
    }

    /// Its calls count from now on.
    pub fn begin(&self) {
        self.seen.store(0, Ordering::SeqCst);
    }

    /// It lives from now on; whether it had died.
    pub fn end(&self) -> bool {
        self.seen.swap(Self::ALIVE, Ordering::SeqCst) > self.at
    }
}

impl CallHook for DiesAt {
    fn on_call(&self, _call: &Call) -> HookDecision {
        let seen = self.seen.fetch_add(1, Ordering::SeqCst);
        match () {
            () if seen < self.at || seen >= self.at.saturating_add(self.dead) => HookDecision::Pass,
            () if seen == self.at && self.after => HookDecision::FailAfter(self.fault.clone()),
            () => HookDecision::FailBefore(self.fault.clone()),
        }
    }
}
