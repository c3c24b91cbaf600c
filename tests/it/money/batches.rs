//! A batch for one wallet is one transaction; whatever becomes of that transaction, each settlement is made
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use local::hook::{Call, CallLog, Fault, FnHook, HookDecision};
use local::stack::Function;
use local::world::Hooks;
use serde_json::{Value, json};

use super::scene::{Scene, slow};

/// Five jobs of one wallet, whose completions come in one batch; each costs 0.50 of a hold of 1.00.
async fn five(hooks: &Hooks) -> Scene {
    let scene = Scene::hooked(hooks).await;
    let jobs = ["j1", "j2", "j3", "j4", "j5"];
    scene.open("10.00", &jobs.map(|job| (job, "1.00")), "strict").await;
    for job in jobs {
        scene.send(&format!("e-{job}"), "job.completed", job, json!({"usage": {"tokens": 1_000_000}})).await;
    }
    scene
}

async fn settled_once(scene: &Scene) {
    for job in ["j1", "j2", "j3", "j4", "j5"] {
        assert_eq!(scene.settlements(job).await, ["capture 0.500000 0.500000"], "{job}");
        assert_eq!(scene.operations(&format!("e-{job}")).await, ["complete-job done", "settle-usage done"], "{job}");
    }
    assert_eq!(scene.wallet().await, ("7.500000".to_owned(), "0.000000".to_owned()));
    assert_eq!(scene.world.wallet("w1").await["sequence"], 6); // the funding and five captures
    scene.clean();
}

/// Decides about the billing function's transactions, by how many actions each has.
fn transactions(hooks: &Hooks, decide: impl Fn(usize) -> HookDecision + Send + Sync + 'static) {
    hooks.add(
        Function::Billing,
        Arc::new(FnHook(move |call: &Call| {
            if call.operation != "TransactWriteItems" {
                return HookDecision::Pass;
            }
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            decide(body["TransactItems"].as_array().unwrap().len())
        })),
    );
}

/// A batch of five has an action for the balance, and for each an entry and a check of its extensions.
const BATCH_ACTIONS: usize = 11;

fn counted(hooks: &Hooks) -> Arc<CallLog> {
    let log = Arc::new(CallLog::default());
    hooks.add(Function::Billing, log.clone());
    log
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_one_wallet_commits_as_one_transaction() {
    let hooks = Hooks::default();
    let log = counted(&hooks);
    let scene = five(&hooks).await;
    scene.world.drain().await.unwrap();
    assert_eq!(log.count("TransactWriteItems"), 1);
    settled_once(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_canceled_batch_is_taken_one_by_one() {
    let hooks = Hooks::default();
    transactions(&hooks, |actions| match actions {
        BATCH_ACTIONS => HookDecision::FailBefore(Fault::transaction_conflict(actions, &[0])),
        _ => HookDecision::Pass,
    });
    let log = counted(&hooks);
    let scene = five(&hooks).await;
    scene.world.drain().await.unwrap();
    assert_eq!(log.count("TransactWriteItems"), 6);
    settled_once(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_answer_is_lost_is_read_again_and_found_done() {
    let hooks = Hooks::default();
    let singles = Arc::new(AtomicUsize::new(0));
    let count = singles.clone();
    // Every answer to the batch is lost, whatever the SDK itself tries again.
    transactions(&hooks, move |actions| match actions {
        BATCH_ACTIONS => HookDecision::lost_answer(),
        _ => {
            count.fetch_add(1, Ordering::SeqCst);
            HookDecision::Pass
        }
    });
    let scene = five(&hooks).await;
    scene.world.drain().await.unwrap();
    assert_eq!(singles.load(Ordering::SeqCst), 0);
    settled_once(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_funding_between_a_batchs_read_and_its_commit_loses_nothing() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Billing, "TransactWriteItems", 1);
    let scene = five(&hooks).await;
    scene.drain_while_funded().await;
    assert_eq!(scene.wallet().await, ("8.500000".to_owned(), "0.000000".to_owned())); // 10 + 1 - 5 x 0.50
    assert_eq!(scene.world.wallet("w1").await["sequence"], 7);
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_batch_commits_what_goes_straight_and_leaves_the_rest_to_its_own_rule() {
    let hooks = Hooks::default();
    let log = counted(&hooks);
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "1.00"), ("j2", "1.00"), ("j3", "1.00")], "strict").await;
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 1_000_000}})).await; // 0.50
    scene.send("e2", "job.completed", "j2", json!({"usage": {"tokens": 4_000_000}})).await; // 2.00: overage
    scene.send("e3", "job.failed", "j3", json!({})).await;
    scene.send("e4", "job.completed", "j1", json!({"usage": {"tokens": 1_000_000}})).await; // the same again
    scene.world.drain().await.unwrap();
    assert_eq!(log.count("TransactWriteItems"), 1);
    assert_eq!(scene.operations("e2").await[1], "settle-usage needs-review overage");
    assert_eq!(scene.operations("e4").await[1], "settle-usage noop already-done");
    assert_eq!(scene.wallet().await, ("8.500000".to_owned(), "1.000000".to_owned()));
    scene.clean();
}
