//! What a receipt costs: the relay reads each healthy one once, and the reconciler's reads per receipt do not grow with
//! how many there are. `HOOKLEDGER_SEED_RECEIPTS=100000` takes more than the 10,000 of every day.

use std::sync::Arc;

use domain::keys;
use domain::limits::SHARDS;
use local::dynamo_api;
use local::hook::{Call, CallHook, HookDecision};
use local::stack::Function;
use local::world::{BEGINS_MS, Hooks, World, WorldConfig, completed};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use store::Cursor;

use crate::harness::{HOUR_MS, MINUTE_MS, items};

/// Counts the reads of one receipt's partition, of its job, and all.
#[derive(Debug, Default)]
struct Reads {
    all: AtomicUsize,
    of_events: AtomicUsize,
}

impl CallHook for Reads {
    fn on_call(&self, call: &Call) -> HookDecision {
        if matches!(call.operation.as_str(), "Query" | "GetItem") {
            self.all.fetch_add(1, Ordering::SeqCst);
            if String::from_utf8_lossy(&call.body).contains("\"E|acme|") {
                self.of_events.fetch_add(1, Ordering::SeqCst);
            }
        }
        HookDecision::Pass
    }
}

/// Rewrites every place of an item where the job and event of the sample stand.
fn copy_of(item: &Value, n: usize) -> Value {
    let text = item.to_string().replace("msg_0", &format!("msg_{n}")).replace("j0", &format!("j{n}"));
    serde_json::from_str(&text).unwrap()
}

/// A world with `count` settled jobs and their receipts, all of one hour: the first went the real way, the others are
/// copies of its records, written by batches behind the program's back.
async fn seeded(count: usize, hooks: Hooks) -> World {
    let world = World::new(WorldConfig { hooks, ..WorldConfig::default() }).await.unwrap();
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    assert_eq!(world.submit("j0", "w1", "5.00").await.0, 201);
    assert_eq!(world.send("msg_0", &completed("j0")).await.0, 202);
    world.drain().await.unwrap();
    for table in ["events", "jobs", "ledger"] {
        let samples: Vec<Value> =
            items(&world, table).into_iter().filter(|item| item.to_string().contains("j0")).collect();
        let mut requests = Vec::new();
        for n in 1..count {
            for sample in &samples {
                let mut item = copy_of(sample, n);
                item.as_object_mut().unwrap().remove("w"); // what is counted are receipts: the wallet keeps its one job
                if item["sk"]["S"] == keys::RECEIPT && table == "events" {
                    let pk = item["pk"]["S"].as_str().unwrap().to_owned();
                    let minute = BEGINS_MS / MINUTE_MS + i64::try_from(n % 60).unwrap();
                    item["rb"] = json!({"S": keys::bucket(minute, keys::shard_of(&pk))});
                }
                requests.push(json!({"PutRequest": {"Item": item}}));
            }
        }
        for chunk in requests.chunks(25) {
            let request = json!({"RequestItems": {format!("hookledger-{table}"): chunk}}).to_string();
            let answer = dynamo_api::call(world.aws.database(), "BatchWriteItem", request.as_bytes());
            assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        }
    }
    world
}

/// How many reads the reconciler makes for so many receipts; the relay is counted on the way.
async fn reads_of(count: usize) -> usize {
    let (hooks, reads) = (Hooks::default(), Arc::new(Reads::default()));
    hooks.add(Function::Reconciler, reads.clone());
    let relay_reads = Arc::new(Reads::default());
    hooks.add(Function::Relay, relay_reads.clone());
    let world = seeded(count, hooks).await;
    world.clock.advance(3 * HOUR_MS);
    let from = BEGINS_MS / MINUTE_MS - 1;
    for shard in 0..SHARDS {
        world.stack.app.store.advance_cursor(Cursor::Receipts, shard, from).await.unwrap();
    }
    let report = world.stack.relay().await.unwrap();
    assert_eq!((report.examined, report.found), (count, 0), "the relay examines each receipt, and all are healthy");
    assert_eq!(relay_reads.of_events.load(Ordering::SeqCst), count, "the relay reads each receipt once");
    world.stack.relay().await.unwrap();
    assert_eq!(relay_reads.of_events.load(Ordering::SeqCst), count, "and never again");
    let body = json!({"kinds": ["receipts"], "from": "2026-11-29T12:00:00Z", "to": "2026-11-29T13:00:00Z"});
    let run = world.reconcile("r", body).await.unwrap();
    assert_eq!((&run["examined"], &run["classes"]), (&json!(count), &json!({})), "{run}");
    assert_eq!(reads.of_events.load(Ordering::SeqCst), count, "the reconciler reads each receipt once");
    let all = reads.all.load(Ordering::SeqCst);
    println!("{count} receipts: {all} reads of the reconciler, {} for each thousand", all * 1000 / count);
    all
}

#[tokio::test(start_paused = true)]
async fn reads_per_receipt_stay_the_same_from_1_000_to_10_000_receipts() {
    let seeded = std::env::var("HOOKLEDGER_SEED_RECEIPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let (small, large) = (reads_of(1_000).await, reads_of(seeded).await);
    // One partition, one job, one ledger for each receipt; 240 buckets and a handful of reads for the run's parts.
    let fixed = small - 3 * 1_000;
    assert!(fixed < 300, "{small} reads for 1,000 receipts");
    assert_eq!(large, 3 * seeded + fixed);
}
