//! Running a scenario.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::operation::Consumer;
use queue::queue_name;
use runtime::App;
use runtime::lambda::PROVIDERS_TOML;
use runtime::sqs::{SqsAttributes, SqsEvent, SqsRecord};
use runtime::telemetry;
use serde_json::{Value, json};

use super::destination::{self, Answering};
use super::{Measured, Path, Scenario, Sizes};
use crate::dynamo_api;
use crate::fifo::message::StoredMessage;
use crate::item_size::item_size;
use crate::meter::{Counts, Meter};
use crate::stack::{Function, PREFIX, StackError};
use crate::world::{Hooks, World, WorldConfig, WorldError, event_body};

/// Time of one call: nothing depends on it but which calls overlap.
const LATENCY: Duration = Duration::from_millis(5);
/// Deliveries that are repeated, and events that end in review, at most: each costs the same.
const FEW: usize = 20;
/// A trace header as long as API Gateway makes them.
const TRACE: &str = "Root=1-67891233-abcdef012345678912345678;Parent=53995c3f42cd8ad8;Sampled=1";
const MINUTE_MS: i64 = 60_000;
/// The wallet whose jobs are charged at a payment provider.
const POSTPAID: &str = "owing";
/// Minutes in which the relay examines the receipts of one.
const RELAY_MINUTES: i64 = 4;

/// Counts the log.
#[derive(Debug, Clone, Default)]
struct LogBytes(Arc<[AtomicU64; 2]>);

impl LogBytes {
    fn take(&self) -> [u64; 2] {
        [self.0[0].swap(0, Ordering::Relaxed), self.0[1].swap(0, Ordering::Relaxed)]
    }
}

impl io::Write for LogBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.0[0].fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.0[1].fetch_add(lines as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A delivery: its event id and its body.
type Delivery = (String, String);

struct Bench {
    world: World,
    /// What the outbound consumer is given: it alone reaches a destination.
    outbound: App,
    scenario: Scenario,
    receiver: Arc<Meter>,
    consumers: Arc<Meter>,
    relay: Arc<Meter>,
    reconciler: Arc<Meter>,
    log: LogBytes,
}

/// Runs a scenario in a fresh world. Call it on a runtime of one thread whose time is paused.
///
/// # Errors
/// [`WorldError`] when the world cannot be made, or answers what it must not.
pub async fn measure(scenario: Scenario) -> Result<Measured, WorldError> {
    let bench = Box::pin(Bench::new(scenario)).await?;
    let log = bench.log.clone();
    let lines = telemetry::subscriber("info", Arc::new(bench.world.clock.clone()), move || log.clone());
    let guard = tracing::subscriber::set_default(lines);
    let jobs = names("b245", scenario.events.max(1));
    for (n, job) in jobs.iter().enumerate() {
        bench.submit(job, &format!("w{}", n % scenario.wallets.max(1)), "0.50").await?;
    }
    let usage = json!({"usage": {"input_tokens": 1200, "output_tokens": 340}});
    let events = deliveries("job.completed", &jobs, &usage);
    let straight = bench.path(&events, (202, "accepted")).await?;
    let sizes = bench.sizes()?;
    let relay = bench.relayed().await?;
    let few = jobs.len().min(FEW);
    let duplicate = bench.path(&events[..few], (200, "duplicate")).await?;
    let dear = names("b246", few);
    for job in &dear {
        bench.submit(job, "w0", "0.50").await?;
    }
    // 120,000 at 3.00 and 340,000 at 15.00 a million: 5.46, above the hold, and whole cents.
    let above = json!({"usage": {"input_tokens": 120_000, "output_tokens": 340_000}});
    let review = bench.path(&deliveries("job.completed", &dear, &above), (202, "accepted")).await?;
    let pass = bench.passed().await?;
    let forward = bench.path(&deliveries("asset.created", &names("b247", few), &json!({})), (202, "accepted")).await?;
    let owing = names("b248", few);
    for job in &owing {
        bench.submit(job, POSTPAID, "0.00").await?;
    }
    let charge = bench.path(&deliveries("job.completed", &owing, &above), (202, "accepted")).await?;
    drop(guard);
    Ok(Measured { batch: scenario.batch as u64, straight, relay, pass, duplicate, review, forward, charge, sizes })
}

/// Names of jobs as long as the ones of a UUID.
fn names(group: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("7d444840-9dc0-11d1-{group}-{n:012}")).collect()
}

/// An event of acme for each job.
fn deliveries(kind: &str, jobs: &[String], more: &Value) -> Vec<Delivery> {
    jobs.iter().map(|job| (format!("msg_{}", job.replace('-', "")), event_body(kind, job, more.clone()))).collect()
}

fn unexpected(what: &str) -> WorldError {
    WorldError::Configuration(format!("the measured path did not go as it must: {what}"))
}

impl Bench {
    async fn new(scenario: Scenario) -> Result<Self, WorldError> {
        let meter = || Arc::new(Meter::new(LATENCY));
        let (receiver, consumers, relay, reconciler) = (meter(), meter(), meter(), meter());
        let hooks = Hooks::default();
        hooks.add(Function::Receiver, receiver.clone());
        hooks.add(Function::Control, consumers.clone()); // whose context the consumers are given here
        hooks.add(Function::Relay, relay.clone());
        hooks.add(Function::Reconciler, reconciler.clone());
        let ordinary = WorldConfig::default();
        let mut secrets = ordinary.secrets.clone();
        secrets.extend(destination::secrets());
        let providers = format!("{PROVIDERS_TOML}{}", destination::STRIPE_BILLING);
        let addresses = destination::addresses();
        let world = World::new(WorldConfig { hooks, secrets, providers, addresses, ..ordinary }).await?;
        world.aws.report_capacity();
        let outbound = world.stack.app.clone().calling(Arc::new(Answering::default()));
        let terms =
            json!({"to": "stripe", "customer": "cus_NffrFeUfNV2Hib", "payment_method": "pm_1MqLiJLkdIwHu7ixUEgbFdYF"});
        let body = json!({"currency": "USD", "postpaid": terms});
        if world.control("PUT", &format!("/control/tenants/t1/wallets/{POSTPAID}"), Some(body)).await.0 != 201 {
            return Err(unexpected("a postpaid wallet"));
        }
        for wallet in 0..scenario.wallets.max(1) {
            if world.fund(&format!("w{wallet}"), "1000000.00").await.0 != 201 {
                return Err(unexpected("funding"));
            }
        }
        Ok(Self { world, outbound, scenario, receiver, consumers, relay, reconciler, log: LogBytes::default() })
    }

    async fn submit(&self, job: &str, wallet: &str, hold: &str) -> Result<(), WorldError> {
        match self.world.submit(job, wallet, hold).await.0 {
            201 => Ok(()),
            _ => Err(unexpected("submission")),
        }
    }

    /// Sends events, a batch at a time, and lets the consumers work on what was dispatched.
    async fn path(&self, events: &[Delivery], expected: (u16, &str)) -> Result<Path, WorldError> {
        let _ = (self.receiver.take(), self.consumers.take(), self.log.take());
        let mut path = Path { events: events.len() as u64, ..Path::default() };
        for events in events.chunks(self.scenario.batch.max(1)) {
            for (id, body) in events {
                let mut event = self.world.acme(id, body);
                event.headers.insert("x-amzn-trace-id".to_owned(), TRACE.to_owned());
                let answer = crate::world::answer(&self.world.stack.webhook(&event).await);
                if (answer.0, answer.1.as_str()) != expected {
                    return Err(unexpected(&format!("answer {} {}", answer.0, answer.1)));
                }
                path.receiver.add(self.receiver.take());
            }
            let order = match self.scenario.first {
                Consumer::Billing => [Consumer::Billing, Consumer::Job, Consumer::Outbound],
                _ => [Consumer::Job, Consumer::Billing, Consumer::Outbound],
            };
            for consumer in order {
                let counts = self.consume(consumer).await?;
                match consumer {
                    Consumer::Job => path.job.add(counts),
                    Consumer::Billing => path.billing.add(counts),
                    Consumer::Outbound => path.outbound.add(counts),
                }
            }
        }
        [path.log_bytes, path.log_lines] = self.log.take();
        Ok(path)
    }

    /// Gives a consumer what its queue holds, in the order of arrival, batch by batch.
    async fn consume(&self, consumer: Consumer) -> Result<Counts, WorldError> {
        let (app, name) = (&self.world.stack.app, queue_name(PREFIX, consumer));
        let queues = self.world.aws.queues();
        let record = |message: StoredMessage| SqsRecord {
            message_id: message.message_id,
            body: message.body.to_string(),
            attributes: SqsAttributes { message_group_id: message.group_id, approximate_receive_count: "1".to_owned() },
        };
        let stored = queues.peek(&name).map_err(StackError::from)?;
        let records: Vec<SqsRecord> = stored.into_iter().map(record).collect();
        queues.purge(&name).map_err(StackError::from)?;
        let mut counts = Counts::default();
        let batch = if consumer == Consumer::Outbound { 1 } else { self.scenario.batch.max(1) }; // as in the template
        for records in records.chunks(batch) {
            let event = SqsEvent { records: records.to_vec() };
            let answer = match consumer {
                Consumer::Job => job::handle(app, event).await,
                Consumer::Billing => billing::handle(app, event).await,
                Consumer::Outbound => outbound::handle(&self.outbound, event).await,
            };
            if !answer.batch_item_failures.is_empty() {
                return Err(unexpected("a message that stays"));
            }
            counts.add(self.consumers.take());
        }
        Ok(counts)
    }

    /// The relay over the minute of the receipts, less the same number of idle runs.
    async fn relayed(&self) -> Result<Counts, WorldError> {
        let mut runs = [Counts::default(), Counts::default()];
        for counts in &mut runs {
            let _ = self.relay.take();
            for _ in 0..RELAY_MINUTES {
                self.world.clock.advance(MINUTE_MS);
                self.world.stack.relay().await.map_err(StackError::from)?;
            }
            *counts = self.relay.take();
        }
        Ok(runs[0].beyond(runs[1]))
    }

    /// The reconciler's first pass over the receipts, less an idle one.
    async fn passed(&self) -> Result<Counts, WorldError> {
        let mut passes = [Counts::default(), Counts::default()];
        for (counts, hours) in passes.iter_mut().zip([3, 1]) {
            self.world.clock.advance(hours * 60 * MINUTE_MS);
            let _ = self.reconciler.take();
            self.world.stack.passes().await.map_err(StackError::from)?;
            self.world.drain().await?;
            *counts = self.reconciler.take();
        }
        Ok(passes[0].beyond(passes[1]))
    }

    /// The largest receipt, transition and close.
    fn sizes(&self) -> Result<Sizes, WorldError> {
        let largest = |table: &str, kind: &str| -> Result<usize, WorldError> {
            let (mut largest, mut from) = (0, Value::Null);
            loop {
                let mut request = json!({"TableName": format!("{PREFIX}-{table}")});
                if !from.is_null() {
                    request["ExclusiveStartKey"] = from;
                }
                let answer = dynamo_api::call(self.world.aws.database(), "Scan", request.to_string().as_bytes());
                let mut answer: Value = serde_json::from_slice(&answer.body).map_err(|_| unexpected("a scan"))?;
                let items = answer["Items"].as_array().map(Vec::as_slice).unwrap_or_default();
                let of_kind =
                    items.iter().filter(|item| item["sk"]["S"].as_str().is_some_and(|sk| sk.starts_with(kind)));
                let here = of_kind.map(item_size).max().unwrap_or(0);
                largest = largest.max(here);
                from = answer["LastEvaluatedKey"].take();
                if from.is_null() {
                    return Ok(largest);
                }
            }
        };
        Ok(Sizes {
            receipt: largest("events", domain::keys::RECEIPT)?,
            transition: largest("jobs", "t|")?,
            close: largest("ledger", domain::keys::CLOSE)?,
        })
    }
}
