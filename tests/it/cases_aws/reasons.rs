//! DDB-02 and DDB-03: a cancelled transaction is judged per item, and a retry is the same request.

use std::sync::{Arc, Mutex};

use domain::limits::RetryPolicy;
use domain::operation::OperationName::SettleUsage;
use domain::operation::{Class, OperationState};
use local::hook::{Call, CallHook, HookDecision};
use local::world::{World, completed};

use crate::books::audit;
use crate::harness::*;

/// The settlement of j1, whose first transaction is cancelled for these reasons; how often it was sent,
/// and how often the balance was read.
async fn cancelled_once(world: &World, reasons: &[&str]) -> (usize, usize) {
    taken_in(world, "msg_1", &completed("j1")).await;
    let first = Rule::times(1, "TransactWriteItems", &["hookledger-ledger"], cancelled(reasons));
    let sent = Rule::count("TransactWriteItems", &["hookledger-ledger"]);
    let read = Rule::count("GetItem", &["hookledger-balances"]);
    for rule in [&first, &sent, &read] {
        world.aws.add_hook(rule.clone());
    }
    work(world, "msg_1", SettleUsage).await;
    assert_eq!(first.hits(), 1);
    (sent.hits(), read.hits())
}

#[tokio::test(start_paused = true)]
async fn ddb_02_a_failed_condition_and_a_conflict_are_decided_again_from_the_first_read() {
    for reasons in [
        ["None", "ConditionalCheckFailed", "None"],
        ["ConditionalCheckFailed", "None", "None"],
        ["TransactionConflict", "None", "None"],
        ["ConditionalCheckFailed", "TransactionConflict", "None"],
    ] {
        let world = submitted().await;
        assert_eq!(cancelled_once(&world, &reasons).await, (2, 2), "{reasons:?}");
        assert_settled(&world, "j1", "msg_1").await;
        assert_eq!(operation(&world, "msg_1", SettleUsage).await, None, "{reasons:?}");
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn ddb_02_a_throttled_item_is_deferred_and_done_later() {
    for reasons in [["ThrottlingError", "None", "None"], ["ConditionalCheckFailed", "ThrottlingError", "None"]] {
        let world = submitted().await;
        assert_eq!(cancelled_once(&world, &reasons).await.1, 1, "nothing is decided again at once");
        let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
        assert_eq!((record.state, record.class, record.attempts), (OperationState::Wait, Class::Transient, 1));
        assert_untouched(&world, "j1").await;
        world.minutes(4).await.unwrap();
        assert_settled(&world, "j1", "msg_1").await;
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn ddb_02_a_refused_request_has_no_effect_and_ends_with_a_person() {
    let world = submitted_with(limits(RetryPolicy { max_attempts: 3, ..RetryPolicy::default() })).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    let refused = cancelled(&["ValidationError", "None", "None"]);
    world.aws.add_hook(Rule::always("TransactWriteItems", &["hookledger-ledger"], refused));
    world.minutes(15).await.unwrap();
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!(record.state, OperationState::Review);
    assert!(record.note.contains("ValidationError"), "says why: {}", record.note);
    let job = world.job("j1").await;
    assert_eq!(job["settlements"], serde_json::json!([]));
    assert_eq!(job["transitions"][0]["by"], "acme/msg_1", "the job side went on");
    audit(&world);
}

/// Keeps the requests of the settlement's transaction.
#[derive(Debug, Default)]
struct Requests(Mutex<Vec<String>>);

impl CallHook for Requests {
    fn on_call(&self, call: &Call) -> HookDecision {
        let text = String::from_utf8_lossy(&call.body).into_owned();
        if call.operation == "TransactWriteItems" && text.contains("hookledger-ledger") {
            assert_eq!(call.targets, ["hookledger-balances", "hookledger-ledger", "hookledger-jobs"], "a fixed order");
            self.0.lock().unwrap().push(text);
        }
        HookDecision::Pass
    }
}

#[tokio::test(start_paused = true)]
async fn ddb_03_the_sdks_retry_of_a_transaction_is_the_same_request_with_the_same_token() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let requests = Arc::new(Requests::default());
    world.aws.add_hook(requests.clone());
    world.aws.add_hook(Rule::times(2, "TransactWriteItems", &["hookledger-ledger"], HookDecision::lost_answer()));
    work(&world, "msg_1", SettleUsage).await;
    let sent = requests.0.lock().unwrap().clone();
    assert_eq!(sent.len(), 3);
    assert!(sent[0].contains("ClientRequestToken"));
    assert!(sent.iter().all(|request| *request == sent[0]), "byte for byte");
    assert_settled(&world, "j1", "msg_1").await;
}

/// The token guards the SDK's retries for ten minutes; a redelivery has another, and our own condition.
#[tokio::test(start_paused = true)]
async fn ddb_03_a_redelivery_long_after_the_tokens_life_is_no_second_effect() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", SettleUsage).await;
    for minutes in [1, 11, 600] {
        world.clock.advance(minutes * MINUTE_MS);
        work(&world, "msg_1", SettleUsage).await;
    }
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
    audit(&world);
}
