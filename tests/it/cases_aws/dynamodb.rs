//! DDB-05, 06, 08, 09 and 10: sizes, numbers, hot keys, stale indexes, partial batches.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use domain::limits::MAX_BODY_BYTES;
use domain::operation::OperationName::{CompleteJob, SettleUsage};
use local::Function;
use local::hook::{Call, CallHook, HookDecision, Service};
use local::world::{World, completed, event_body};
use serde_json::{Value, json};

use crate::books::{audit, text};
use crate::harness::*;

/// The sample event padded to exactly `bytes` bytes with a four-byte character.
fn padded(job: &str, bytes: usize) -> String {
    let empty =
        event_body("job.completed", job, json!({"usage": {"input_tokens": 1200, "output_tokens": 340}, "pad": ""}));
    let room = bytes - empty.len();
    let pad = "😀".repeat(room / 4) + &"x".repeat(room % 4);
    empty.replace("\"pad\":\"\"", &format!("\"pad\":\"{pad}\""))
}

#[tokio::test(start_paused = true)]
async fn ddb_05_a_body_above_256_kib_is_413_before_anything_is_written() {
    let world = submitted().await;
    for bytes in [MAX_BODY_BYTES + 1, 399 * 1024, 400 * 1024, 401 * 1024, 1024 * 1024] {
        let body = padded("j1", bytes);
        assert_eq!(body.len(), bytes);
        assert_eq!(world.send("big", &body).await.0, 413, "{bytes}");
    }
    let receipts = items(&world, "events").into_iter().filter(|item| text(item, "sk") == "r").count();
    assert_eq!(receipts, 0);
}

#[tokio::test(start_paused = true)]
async fn ddb_05_a_body_of_256_kib_leaves_a_small_receipt_and_is_done() {
    let world = submitted().await;
    accepted(&world, "big", &padded("j1", MAX_BODY_BYTES)).await;
    let receipt = items(&world, "events").into_iter().find(|item| text(item, "sk") == "r").unwrap();
    let size = receipt.to_string().len();
    assert!(size < 2_048, "{size} bytes, of the 400 KB that an item may have");
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "big").await;
}

/// Every number that is stored, with where it stands.
fn numbers(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(digits) if name == "N" => found.push((path.to_owned(), digits.clone())),
                    _ => numbers(member, &format!("{path}/{name}"), found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|member| numbers(member, path, found)),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn ddb_06_every_stored_number_is_an_i64_whatever_numbers_an_event_has() {
    let world = submitted().await;
    let huge =
        ["1E+100", "1234567895171680000000000000000000000000", "123456789012345678901234567890123456789", "1e-130"];
    for (n, number) in huge.iter().enumerate() {
        // As a foreign member it is content like any other; as usage or sequence it makes no sense.
        let job = format!("k{n}");
        assert_eq!(world.submit(&job, "w1", "1.00").await.0, 201);
        let foreign = completed(&job).replace("\"model\":", &format!("\"note\":{number},\"model\":"));
        accepted(&world, &format!("foreign_{n}"), &foreign).await;
        assert_eq!(world.submit(&format!("u{n}"), "w1", "1.00").await.0, 201);
        let usage = completed(&format!("u{n}")).replace("1200", number);
        let (status, _) = world.send(&format!("usage_{n}"), &usage).await;
        assert!([200, 202].contains(&status), "{status}");
        let sequence = completed("j1").replace("\"sequence\":3", &format!("\"sequence\":{number}"));
        let progress = sequence.replace("job.completed", "job.progress");
        assert!([200, 202].contains(&world.send(&format!("progress_{n}"), &progress).await.0));
    }
    world.drain().await.unwrap();
    for n in 0..huge.len() {
        assert_settled(&world, &format!("k{n}"), &format!("foreign_{n}")).await;
    }
    for n in 0..huge.len() {
        assert_eq!(world.job(&format!("u{n}")).await["settlements"], json!([]), "no money moves by it");
    }
    assert_untouched(&world, "j1").await;
    let mut found = Vec::new();
    for table in ["events", "jobs", "ledger", "balances"] {
        items(&world, table).iter().for_each(|item| numbers(item, table, &mut found));
    }
    assert!(found.len() > 50);
    for (path, digits) in found {
        assert!(digits.parse::<i64>().is_ok(), "{path} holds {digits}");
    }
    // Quantities, the foreign numbers that are kept, are text.
    let usage = &items(&world, "jobs")
        .into_iter()
        .find(|item| text(item, "sk") == "t|000001" && text(item, "pk") == "J|t1|k0")
        .unwrap()["us"];
    assert_eq!(usage["M"]["input_tokens"], json!({"S": "1200"}));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn ddb_08_one_providers_receipts_of_one_minute_and_its_due_operations_are_spread_over_index_keys() {
    let world = funded().await;
    for n in 0..40 {
        taken_in(&world, &format!("msg_{n}"), &completed("later")).await;
        work(&world, &format!("msg_{n}"), SettleUsage).await;
    }
    let events = items(&world, "events");
    for index in ["rb", "ds"] {
        let keys: BTreeSet<&str> = events.iter().map(|item| text(item, index)).filter(|key| !key.is_empty()).collect();
        assert_eq!(keys.len(), 4, "{index}: {keys:?}");
    }
}

/// Notes what a decision must never rest on, and what loses entries silently.
#[derive(Debug, Default)]
struct Watch {
    reads: Mutex<usize>,
    wrong: Mutex<Vec<String>>,
}

impl CallHook for Watch {
    fn on_call(&self, call: &Call) -> HookDecision {
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        let by_index = body.get("IndexName").is_some();
        let consistent = body["ConsistentRead"] == true;
        let wrong = match (call.service, call.operation.as_str()) {
            (Service::DynamoDb, "GetItem" | "Query") => {
                *self.reads.lock().unwrap() += 1;
                by_index || !consistent
            }
            // DDB-10: calls whose 200 can hide entries that were not taken.
            (_, operation) => operation.contains("Batch") || operation == "Scan",
        };
        if wrong {
            self.wrong.lock().unwrap().push(format!("{} on {:?}", call.operation, call.targets));
        }
        HookDecision::Pass
    }
}

/// Duplicates, waits, a review, a conflict and a dead letter: every path that leads to a write.
async fn many_paths(world: &World) {
    for id in ["msg_1", "msg_2", "msg_1"] {
        world.send(id, &completed("j1")).await;
    }
    world.send("msg_1", &event_body("job.failed", "j1", json!({}))).await;
    accepted(world, "early", &completed("j2")).await;
    accepted(world, "p_1", &event_body("job.progress", "j1", json!({"sequence": 1}))).await;
    world.minutes(4).await.unwrap();
    world.submit("j2", "w1", "5.00").await;
    world.minutes(10).await.unwrap();
    assert_settled(world, "j1", "msg_1").await;
    assert_settled(world, "j2", "early").await;
}

#[tokio::test(start_paused = true)]
async fn ddb_09_and_10_decisions_rest_on_consistent_reads_of_the_table_and_no_answer_can_hide_a_loss() {
    let watch = Arc::new(Watch::default());
    let config = hooked(Function::Receiver, watch.clone());
    for function in [Function::Job, Function::Billing, Function::DeadLetter] {
        config.hooks.add(function, watch.clone());
    }
    let world = submitted_with(config).await;
    many_paths(&world).await;
    assert_eq!(*watch.wrong.lock().unwrap(), [""; 0]);
    assert!(*watch.reads.lock().unwrap() > 30);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn ddb_09_the_relay_takes_keys_from_an_index_and_reads_the_table_itself() {
    // ConsistentRead on an index is refused by the API; without it on the table a decision is a guess.
    let by_index = Rule::count("Query", &["\"IndexName\""]);
    let consistent_index = Rule::count("Query", &["\"IndexName\"", "\"ConsistentRead\":true"]);
    let all = Rule::count("Query", &[]);
    let glances = Rule::count("Query", &["\"ConsistentRead\":false"]);
    let consistent = Rule::count("Query", &["\"ConsistentRead\":true"]);
    let of_event = Rule::count("Query", &["\"ConsistentRead\":true", "\"E|acme|msg_"]);
    let written = Rule::count("PutItem", &["\"o|-|"]);
    let config = hooked(Function::Relay, by_index.clone());
    for rule in [&consistent_index, &all, &glances, &consistent, &of_event, &written] {
        config.hooks.add(Function::Relay, rule.clone());
    }
    let world = submitted_with(config).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(5).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(consistent_index.hits(), 0);
    // What is whole is seen at a glance, and nothing follows from it.
    assert!(glances.hits() > 0);
    assert_eq!((of_event.hits(), written.hits()), (0, 0));
    // What is not is read again before anything is written.
    taken_in(&world, "msg_2", &completed("j1")).await;
    world.minutes(5).await.unwrap();
    assert!(written.hits() >= 2 && of_event.hits() >= 1, "{} {}", written.hits(), of_event.hits());
    let told = by_index.hits() + consistent.hits() + glances.hits();
    assert_eq!(all.hits(), told, "each query is one of the three");
}

#[tokio::test(start_paused = true)]
async fn ddb_09_a_hold_counts_at_once_though_the_index_by_wallet_may_not_know_it_yet() {
    let world = world_of(Default::default()).await;
    assert_eq!(world.fund("w1", "10.00").await.0, 201);
    let index = Rule::count("Query", &["\"IndexName\""]);
    world.aws.add_hook(index.clone());
    assert_eq!(world.submit("j1", "w1", "8.00").await.0, 201);
    assert_eq!(world.submit("j2", "w1", "8.00").await.0, 402);
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", SettleUsage).await;
    work(&world, "msg_1", CompleteJob).await;
    assert_eq!(index.hits(), 0, "no decision asked an index");
    audit(&world);
}
