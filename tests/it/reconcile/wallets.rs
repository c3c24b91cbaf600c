//! Wallets: balance, split and chain against entries and open holds.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use domain::limits::{EXPIRY_BUCKET_MS, SHARDS};
use local::dynamo_api;
use local::hook::{Call, CallHook, HookDecision};
use local::stack::Function;
use local::world::{Hooks, WorldConfig};
use serde_json::json;
use store::Cursor;

use super::plant::{brief, found_applied_and_gone, later, only, reconcile, settled, settled_with, tamper, told};
use crate::harness::{balance, hooked, now_ms, submitted_with};

const WALLET: &str = "W|t1|w1";

#[tokio::test(start_paused = true)]
async fn a_balance_that_drifted_is_rebuilt_from_its_entries() {
    let world = settled().await;
    assert_eq!(world.submit("j2", "w1", "7.00").await.0, 201);
    // 99.9913 less 7.00 held; 1000.00 are added behind the program's back.
    tamper(&world, "balances", WALLET, "", |item| item["av"] = json!({"N": "1092991300"}));
    let run = reconcile(&world, "zero").await;
    assert_eq!(run["cases"][0]["amount"], json!("1000.000000"), "{run}");
    let case = found_applied_and_gone(&world, "balance-drift/rebuild/open").await;
    assert_eq!(case["decisions"][0]["note"], "available -1000000000, held +0 (micros)", "{case}");
    assert_eq!(balance(&world, "w1").await, ("92.991300".to_owned(), "7.000000".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_case_is_a_review_like_any_other_and_is_decided_there() {
    let world = settled().await;
    tamper(&world, "balances", WALLET, "", |item| item["av"] = json!({"N": "1099991300"}));
    let run = reconcile(&world, "first").await;
    let list = world.control("GET", "/control/reviews", None).await.1;
    let review = &list["reviews"][0];
    assert_eq!(review["id"], json!(format!("case:{}", only(&run))), "{list}");
    assert_eq!((&review["at_risk"]["amount"], &review["wallet"]), (&json!("1000.000000"), &json!("w1")));
    assert_eq!(review["actions"], json!(["retry", "close"]));
    let path = review["path"].as_str().unwrap();
    let (status, told) =
        world.control("POST", path, Some(json!({"action": "approve", "alternative": "cap", "reason": "x"}))).await;
    assert_eq!(status, 409, "{told}");
    let (status, told) = world.control("POST", path, Some(json!({"action": "retry", "reason": "looked at"}))).await;
    assert_eq!((status, &told["class"], &told["actor"]), (200, &json!("balance-drift"), &json!("local")), "{told}");
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
    let list = world.control("GET", "/control/reviews", None).await.1;
    assert_eq!(list["reviews"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_held_amount_that_drifted_is_split_anew() {
    let world = settled().await;
    assert_eq!(world.submit("j2", "w1", "7.00").await.0, 201);
    tamper(&world, "balances", WALLET, "", |item| {
        (item["av"], item["he"]) = (json!({"N": "91991300"}), json!({"N": "8000000"}));
    });
    found_applied_and_gone(&world, "held-drift/rebuild/open").await;
    assert_eq!(balance(&world, "w1").await, ("92.991300".to_owned(), "7.000000".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_is_decided_on_what_stands_when_it_is_applied() {
    let world = settled().await;
    tamper(&world, "balances", WALLET, "", |item| item["av"] = json!({"N": "100991300"}));
    let run = reconcile(&world, "first").await;
    assert_eq!(told(&run), ["balance-drift/rebuild/open"], "{run}");
    // Business goes on before a person looks: the delta is that of now, not that of the scan.
    assert_eq!(world.submit("j2", "w1", "7.00").await.0, 201);
    tamper(&world, "balances", WALLET, "", |item| item["av"] = json!({"N": "94991300"}));
    assert_eq!(world.decide_case("first", &only(&run), "apply").await.0, 200);
    assert_eq!(balance(&world, "w1").await, ("92.991300".to_owned(), "7.000000".to_owned()));
    assert_eq!(told(&reconcile(&world, "last").await), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_chain_is_a_persons() {
    let world = settled().await;
    tamper(&world, "ledger", "J|t1|j1", "c", |item| item["by"] = json!({"S": "acme/msg_9"}));
    let run = world.reconcile("first", json!({"kinds": ["wallets"]})).await.unwrap();
    assert_eq!(told(&run), ["chain-broken/person/open"], "{run}");
    assert!(run["cases"][0]["evidence"].as_str().unwrap().contains("entry 2"), "{run}");
    let (status, problem) = world.decide_case("first", &only(&run), "apply").await;
    assert_eq!(status, 409, "{problem}");
}

#[tokio::test(start_paused = true)]
async fn what_is_left_open_is_told_to_the_alarms() {
    let world = settled().await;
    tamper(&world, "ledger", "J|t1|j1", "c", |item| item["by"] = json!({"S": "acme/msg_9"}));
    let (lines, _listening) = crate::privacy::collect();
    world.reconcile("first", json!({"kinds": ["wallets"]})).await.unwrap();
    let text = lines.text();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let told: Vec<_> = lines.filter(|line| line["message"] == "reconciliation").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let line = &told[0];
    assert_eq!(
        (&line["class"], &line["cases"], &line["chains_broken"]),
        (&json!("chain-broken"), &json!(1), &json!(1))
    );
    assert_eq!((&line["ReconciliationCases"], &line["ChainsBroken"]), (&json!(1), &json!(1)));
    let named = line["_aws"]["CloudWatchMetrics"].as_array().unwrap();
    let totals = named.iter().filter(|set| set["Dimensions"][0] == json!([])).count();
    assert_eq!(totals, named.len(), "the alarms read totals: {named:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fact_that_comes_back_is_the_next_occurrence_of_its_case() {
    let world = settled().await;
    let drift = |world: &local::world::World| {
        tamper(world, "balances", WALLET, "", |item| item["av"] = json!({"N": "100991300"}));
    };
    drift(&world);
    let first = reconcile(&world, "first").await;
    assert_eq!(world.decide_case("first", &only(&first), "apply").await.0, 200);
    drift(&world);
    let second = reconcile(&world, "second").await;
    assert_eq!((only(&second), &second["cases"][0]["occurrence"]), (only(&first), &json!(2)));
    assert_eq!(
        world.decide_case("second", &only(&second), "apply").await.1["decisions"].as_array().map(Vec::len),
        Some(2)
    );
}

/// Somebody else writes the wallet whenever the reconciler reads it.
#[derive(Default)]
struct Busy(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Busy")
    }
}

impl CallHook for Busy {
    fn on_call(&self, call: &Call) -> HookDecision {
        let balance =
            call.operation == "GetItem" && String::from_utf8_lossy(&call.body).contains("hookledger-balances");
        if let Some(write) = self.0.get().filter(|_| balance) {
            write();
        }
        HookDecision::Pass
    }
}

#[tokio::test(start_paused = true)]
async fn a_wallet_that_is_never_at_rest_is_said_and_its_jobs_are_compared_all_the_same() {
    let busy = Arc::new(Busy::default());
    let world = submitted_with(hooked(Function::Reconciler, busy.clone())).await;
    later(&world, 121).await;
    for shard in 0..SHARDS {
        let bucket = now_ms(&world).div_euclid(EXPIRY_BUCKET_MS);
        world.stack.app.store.advance_cursor(Cursor::Expiry, shard, bucket).await.unwrap();
    }
    let database = world.aws.database().clone();
    let request = json!({
        "TableName": "hookledger-balances", "Key": {"pk": {"S": WALLET}},
        "UpdateExpression": "ADD rev :one", "ExpressionAttributeValues": {":one": {"N": "1"}},
    });
    let written = Box::new(move || {
        assert_eq!(dynamo_api::call(&database, "UpdateItem", request.to_string().as_bytes()).status, 200);
    });
    assert!(busy.0.set(written).is_ok());
    let run = world.reconcile("first", json!({"kinds": ["wallets"]})).await.unwrap();
    assert_eq!(told(&run), ["hold-expired/retry/resolved"], "{run}");
    assert_eq!(run["skipped"], json!(["W|t1|w1: written during 5 readings; the next run looks again"]));
}

/// The index of a wallet's jobs lags in one reading: the second one does not show j2.
#[derive(Default)]
struct Lagging {
    readings: AtomicUsize,
    show: OnceLock<Box<dyn Fn(bool) + Send + Sync>>,
}

impl fmt::Debug for Lagging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lagging")
    }
}

impl CallHook for Lagging {
    fn on_call(&self, call: &Call) -> HookDecision {
        let body = String::from_utf8_lossy(&call.body);
        let jobs = call.operation == "Query" && body.contains("hookledger-jobs") && body.contains("by-wallet");
        if let Some(show) = self.show.get().filter(|_| jobs) {
            show(self.readings.fetch_add(1, Ordering::SeqCst) != 1);
        }
        HookDecision::Pass
    }
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_waits_until_two_readings_agree_on_the_holds_too() {
    let (lagging, hooks) = (Arc::new(Lagging::default()), Hooks::default());
    hooks.add(Function::Control, lagging.clone());
    let world = settled_with(WorldConfig { hooks, ..brief() }).await;
    assert_eq!(world.submit("j2", "w1", "7.00").await.0, 201);
    tamper(&world, "balances", WALLET, "", |item| item["av"] = json!({"N": "1092991300"}));
    let run = reconcile(&world, "first").await;
    let database = world.aws.database().clone();
    let show = Box::new(move |shown: bool| {
        let (key, table) = (json!({"pk": {"S": "J|t1|j2"}, "sk": {"S": "j"}}), "hookledger-jobs");
        let request = if shown {
            let values = json!({":w": {"S": WALLET}});
            json!({"TableName": table, "Key": key, "UpdateExpression": "SET w = :w", "ExpressionAttributeValues": values})
        } else {
            json!({"TableName": table, "Key": key, "UpdateExpression": "REMOVE w"})
        };
        assert_eq!(dynamo_api::call(&database, "UpdateItem", request.to_string().as_bytes()).status, 200);
    });
    assert!(lagging.show.set(show).is_ok());
    assert_eq!(world.decide_case("first", &only(&run), "apply").await.0, 200);
    // Fault and entries are the same in the first two readings, the holds are not: the third and fourth count.
    assert_eq!(lagging.readings.load(Ordering::SeqCst), 4);
    assert_eq!(balance(&world, "w1").await, ("92.991300".to_owned(), "7.000000".to_owned()));
}
