//! Benchmark of settlements: batched against one by one, on one hot wallet and over 1,000 wallets.
//!
//! ```text
//! cargo test  -p tests --bench settle    # dev profile: shares the build of the tests
//! cargo bench -p tests --bench settle    # release profile: compiles everything once more
//! HOOKLEDGER_BENCH_N=20 cargo test -p tests --bench settle    # fewer settlements and wallets: seconds
//! ```
//!
//! In the dev profile a settlement with all that leads to it takes some 20 ms of CPU; the whole load is
//! 24,000 of them, several minutes. What is counted per settlement does not depend on how many there are.
//!
//! Each settlement is a signed webhook of its own, taken in by the real receiver; its message is then
//! given to the billing handler, alone or with nine others of its group, over the embedded AWS. Where the
//! job consumer has not run, each settlement writes the transition too: the dearer of the two orders, and
//! the one in which a batch saves less, since it saves nothing but writes of the balance.
//!
//! Per settlement it counts transactions, their actions, cancelled transactions and write units. The
//! store asks for no `ReturnConsumedCapacity`; so every write is repeated, in order, on a second embedded
//! database (the mirror) with that parameter added, and what the mirror reports is counted. The time
//! that this takes is not. Speed is a ratio of medians only: the embedded store has no network.
//!
//! It exits 1 unless, on the hot wallet and in both orders, a batch needs at most 1/5 of the transactions and 4/5 of the
//! write units, and every settlement is found in its wallet.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark stops at the first surprise")]

mod meter;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::operation::Consumer;
use local::stack::{Function, PREFIX};
use local::world::{Hooks, World, WorldConfig, completed};
use meter::{Counts, Meter};
use queue::queue_name;
use runtime::sqs::{SqsAttributes, SqsEvent, SqsRecord};
use serde_json::json;

/// Records of one batch, as in the template.
const BATCH: usize = 10;
/// Settlements on the hot wallet, and wallets beside it, unless `HOOKLEDGER_BENCH_N` says otherwise.
const DEFAULT_N: usize = 1_000;

/// What is settled.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    wallets: usize,
    per_wallet: usize,
    /// Which consumer comes first, and so writes the transition.
    job_first: bool,
}

impl Load {
    fn settlements(self) -> usize {
        self.wallets * self.per_wallet
    }
}

/// One way of settling a load.
struct Run {
    counts: Counts,
    /// The median over the batches of the time for one settlement: a busy machine moves it little.
    median: Duration,
}

fn main() -> ExitCode {
    let n = std::env::var("HOOKLEDGER_BENCH_N").map_or(DEFAULT_N, |text| text.parse().expect("HOOKLEDGER_BENCH_N"));
    let n = n.max(BATCH).next_multiple_of(BATCH);
    println!("Write units: as a mirror of the embedded DynamoDB reports them (ReturnConsumedCapacity).");
    let hot = Load { name: "one hot wallet, billing first", wallets: 1, per_wallet: n, job_first: false };
    let billing_first = compare(hot);
    let job_first = compare(Load { name: "one hot wallet, job consumer first", job_first: true, ..hot });
    compare(Load { name: "many wallets, billing first", wallets: n, per_wallet: BATCH, ..hot });
    if billing_first && job_first { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Settles a load both ways, prints what was counted, and tells whether both ratios are met.
fn compare(load: Load) -> bool {
    let [alone, batched] = [1, BATCH].map(|batch| {
        // Paused time: the SDK's timers cost nothing. The stopwatch is the machine's own.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(settle(load, batch))
    });
    let settlements = load.settlements();
    println!("\n{}: {settlements} settlements each way, wallets: {}", load.name, load.wallets);
    println!("  per settlement     transactions   actions   cancelled   write units");
    for (name, run) in [("one by one", &alone), ("batches of 10", &batched)] {
        let [transactions, actions, cancelled, units] = run.counts.per(settlements);
        println!("  {name:<18} {transactions:>12} {actions:>9} {cancelled:>11} {units:>13}");
    }
    let (transactions, of_them) = (batched.counts.transactions, alone.counts.transactions);
    let (units, of_all) = (batched.counts.write_milli_units, alone.counts.write_milli_units);
    let few = transactions * 5 <= of_them;
    let cheap = units * 5 <= of_all * 4;
    println!("  transactions, batched / one by one:  {}  (at most 0.200: {})", ratio(transactions, of_them), met(few));
    println!("  write units, batched / one by one:   {}  (at most 0.800: {})", ratio(units, of_all), met(cheap));
    let [fast, slow] = [&alone, &batched].map(|run| u64::try_from(run.median.as_nanos()).unwrap());
    println!("  settlements/s, batched / one by one: {}", ratio(fast, slow));
    few && cheap
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}

/// Three decimals, without a float.
fn ratio(part: u64, whole: u64) -> String {
    let thousandths = (part * 1_000 + whole / 2) / whole;
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

/// Settles a load in batches of that size in a fresh world.
async fn settle(load: Load, batch: usize) -> Run {
    let meter = Arc::new(Meter::new());
    let hooks = Hooks::default();
    let functions = [
        Function::Receiver,
        Function::Job,
        Function::Billing,
        Function::Relay,
        Function::DeadLetter,
        Function::Control,
    ];
    for function in functions {
        hooks.add(function, meter.clone());
    }
    let world = World::new(WorldConfig { hooks, ..WorldConfig::default() }).await.unwrap();
    for wallet in 0..load.wallets {
        prepare(&world, &format!("w{wallet}"), load.per_wallet).await;
    }
    if load.job_first {
        for event in batches(&world, Consumer::Job, BATCH) {
            assert!(job::handle(&world.stack.app, event).await.batch_item_failures.is_empty());
        }
    }
    let events = batches(&world, Consumer::Billing, batch);
    assert_eq!(events.iter().map(|event| event.records.len()).sum::<usize>(), load.settlements());
    let _ = meter.take();
    let mut times = Vec::with_capacity(events.len());
    for event in events {
        let (records, mirrored, started) = (event.records.len(), meter.mirroring(), Instant::now());
        let answer = billing::handle(&world.stack.app, event).await;
        let took = started.elapsed() - (meter.mirroring() - mirrored);
        times.push(took / u32::try_from(records).unwrap());
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
    }
    times.sort_unstable();
    let counts = meter.take();
    for wallet in 0..load.wallets {
        settled(&world, &format!("w{wallet}"), load.per_wallet).await;
    }
    Run { counts, median: times[times.len() / 2] }
}

/// A funded wallet with that many submitted jobs, each with its webhook taken in.
async fn prepare(world: &World, wallet: &str, jobs: usize) {
    assert_eq!(world.fund(wallet, "1000.00").await.0, 201);
    for number in 0..jobs {
        let job = format!("{wallet}-{number:032}"); // as long as the ids that are common
        assert_eq!(world.submit(&job, wallet, "0.50").await.0, 201);
        assert_eq!(world.send(&format!("msg_{job}"), &completed(&job)).await.0, 202);
    }
}

/// The messages in a consumer's queue, group by group, in batches of one group each.
fn batches(world: &World, consumer: Consumer, size: usize) -> Vec<SqsEvent> {
    let stored = world.aws.queues().peek(&queue_name(PREFIX, consumer)).unwrap();
    let mut records: Vec<SqsRecord> = stored
        .into_iter()
        .map(|message| SqsRecord {
            message_id: message.message_id,
            body: message.body.to_string(),
            attributes: SqsAttributes { message_group_id: message.group_id, approximate_receive_count: "1".to_owned() },
        })
        .collect();
    // A stable sort: within a group the order stays.
    records.sort_by(|a, b| a.attributes.message_group_id.cmp(&b.attributes.message_group_id));
    let same_group = |a: &SqsRecord, b: &SqsRecord| a.attributes.message_group_id == b.attributes.message_group_id;
    let groups = records.chunk_by(same_group);
    groups.flat_map(|group| group.chunks(size)).map(|records| SqsEvent { records: records.to_vec() }).collect()
}

/// The wallet shows every settlement: its funding and one entry for each, nothing held any more.
async fn settled(world: &World, wallet: &str, jobs: usize) {
    let shown = world.wallet(wallet).await;
    assert_eq!((&shown["sequence"], &shown["held"]), (&json!(jobs + 1), &json!("0.000000")), "{wallet}");
}
