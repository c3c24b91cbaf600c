//! Lost answers, throttling and conflicts: an unknown outcome is read, never guessed, and only the
//! operation's own effect says "done".

use std::time::Duration;

use domain::operation::OperationName::{CompleteJob, SettleUsage};
use domain::operation::{Class, OperationState};
use local::hook::{Fault, HookDecision, Service};
use local::world::completed;
use tokio::join;

use crate::books::audit;
use crate::harness::*;

/// What a settlement's transaction looks like, and no other's.
const SETTLE: [&str; 2] = ["hookledger-ledger", "J|t1|j1"];
/// A transition's own put.
const TRANSITION: [&str; 2] = ["hookledger-jobs", "t|000001"];
/// The SDK's tries of one call.
const TRIES: usize = 3;

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_the_settlement_is_no_second_effect() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let lost = Rule::times(1, "TransactWriteItems", &SETTLE, HookDecision::lost_answer());
    world.aws.add_hook(lost.clone());
    work(&world, "msg_1", SettleUsage).await;
    assert_eq!(lost.hits(), 1);
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(operation(&world, "msg_1", SettleUsage).await, None);
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_that_was_applied_is_resolved_by_reading_the_effect() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    // Every answer of the SDK's own tries is lost; the first try was applied.
    let lost = Rule::times(TRIES, "TransactWriteItems", &SETTLE, HookDecision::lost_answer());
    world.aws.add_hook(lost.clone());
    work(&world, "msg_1", SettleUsage).await;
    assert_eq!(lost.hits(), TRIES);
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(operation(&world, "msg_1", SettleUsage).await, None, "ours was read: done, without a record");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_that_was_not_applied_begins_again_from_the_first_read() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let silent = Rule::times(TRIES, "TransactWriteItems", &SETTLE, HookDecision::FailBefore(Fault::Timeout));
    let reads = Rule::count("GetItem", &["hookledger-balances"]);
    world.aws.add_hook(silent.clone());
    world.aws.add_hook(reads.clone());
    work(&world, "msg_1", SettleUsage).await;
    assert_eq!((silent.hits(), reads.hits()), (TRIES, 2));
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_second_unknown_outcome_is_deferred_and_done_later() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    let silent = Rule::times(2 * TRIES, "TransactWriteItems", &SETTLE, HookDecision::FailBefore(Fault::Timeout));
    world.aws.add_hook(silent);
    world.drain().await.unwrap();
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.state, record.class, record.attempts), (OperationState::Wait, Class::Transient, 1));
    world.minutes(3).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.state, record.due_ms), (OperationState::Closed, None));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn ddb_01_a_lost_answer_of_the_transition_is_our_own_transition() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let lost = Rule::times(1, "PutItem", &TRANSITION, HookDecision::lost_answer());
    let puts = Rule::count("PutItem", &TRANSITION);
    world.aws.add_hook(lost.clone());
    world.aws.add_hook(puts.clone());
    work(&world, "msg_1", CompleteJob).await;
    // The SDK's own retry met our item: that is success, and nobody decides again.
    assert_eq!((lost.hits(), puts.hits()), (1, 2));
    assert_eq!(world.job("j1").await["transitions"][0]["by"], "acme/msg_1");
    assert_eq!(operation(&world, "msg_1", CompleteJob).await, None);
}

#[tokio::test(start_paused = true)]
async fn ddb_01_a_lost_answer_of_an_operations_record_is_our_own_record() {
    let world = funded().await;
    taken_in(&world, "msg_1", &completed("j1")).await; // its job is not known: deferred
    let lost = Rule::times(1, "PutItem", &["o|-|billing|settle-usage"], HookDecision::lost_answer());
    let puts = Rule::count("PutItem", &["o|-|billing|settle-usage"]);
    world.aws.add_hook(lost.clone());
    world.aws.add_hook(puts.clone());
    work(&world, "msg_1", SettleUsage).await;
    assert_eq!((lost.hits(), puts.hits()), (1, 2));
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.revision, record.generation, record.attempts), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn ddb_01_a_lost_answer_of_the_receipt_is_accepted_and_sent_once() {
    let world = submitted().await;
    let lost = Rule::times(1, "PutItem", &["E|acme|msg_1"], HookDecision::lost_answer());
    world.aws.add_hook(lost.clone());
    accepted(&world, "msg_1", &completed("j1")).await;
    assert_eq!(lost.hits(), 1);
    for consumer in SETTLING {
        assert_eq!(messages(&world, consumer).len(), 1, "{consumer}");
    }
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(world.explain("msg_1").await["deliveries"], 1, "our own retry is no delivery");
}

#[tokio::test(start_paused = true)]
async fn a_receipt_whose_every_answer_is_lost_is_503_and_still_done_once() {
    for redelivered in [true, false] {
        let world = submitted().await;
        let lost = Rule::times(TRIES, "PutItem", &["E|acme|msg_1"], HookDecision::lost_answer());
        world.aws.add_hook(lost);
        assert_eq!(world.send("msg_1", &completed("j1")).await.0, 503);
        if redelivered {
            assert_eq!(world.send("msg_1", &completed("j1")).await, (200, "duplicate".to_owned()));
            world.drain().await.unwrap();
        } else {
            world.minutes(5).await.unwrap(); // the receipt is there, so the relay finds it
        }
        assert_settled(&world, "j1", "msg_1").await;
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_a_submission_or_a_funding_moves_money_once() {
    let world = funded().await;
    for tries in [1, TRIES] {
        let lost = Rule::times(tries, "TransactWriteItems", &["hookledger-balances"], HookDecision::lost_answer());
        world.aws.add_hook(lost.clone());
        let job = format!("j{tries}");
        let status = world.submit(&job, "w1", "5.00").await.0;
        assert!([200, 201].contains(&status), "{status}");
        assert_eq!(lost.hits(), tries);
        world.aws.clear_hooks();
        let lost = Rule::times(tries, "TransactWriteItems", &["hookledger-balances"], HookDecision::lost_answer());
        world.aws.add_hook(lost.clone());
        let funding = serde_json::json!({"amount": "1.00", "reference": format!("more-{tries}")});
        let funded = world.control("POST", "/control/tenants/t1/wallets/w1/fund", Some(funding)).await;
        assert_eq!((funded.0, lost.hits()), (201, tries), "{funded:?}");
        world.aws.clear_hooks();
    }
    assert_eq!(balance(&world, "w1").await, ("92.000000".to_owned(), "10.000000".to_owned()));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn throttling_for_a_while_defers_and_is_then_done() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    let busy =
        [Rule::always("TransactWriteItems", &SETTLE, throttled()), Rule::always("PutItem", &TRANSITION, throttled())];
    for rule in &busy {
        world.aws.add_hook(rule.clone());
    }
    world.drain().await.unwrap();
    for name in [CompleteJob, SettleUsage] {
        let record = operation(&world, "msg_1", name).await.unwrap();
        assert_eq!(
            (record.state, record.class, record.attempts),
            (OperationState::Wait, Class::Transient, 1),
            "{name}"
        );
    }
    assert_untouched(&world, "j1").await;
    world.minutes(5).await.unwrap();
    assert_untouched(&world, "j1").await;
    busy.iter().for_each(|rule| rule.stop());
    world.minutes(10).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_conflict_is_tried_again_within_the_invocation_three_times() {
    for (conflicts, deferred) in [(1, false), (3, false), (4, true)] {
        let world = submitted().await;
        taken_in(&world, "msg_1", &completed("j1")).await;
        let conflict = HookDecision::FailBefore(Fault::transaction_conflict(3, &[1]));
        let rule = Rule::times(conflicts, "TransactWriteItems", &SETTLE, conflict);
        world.aws.add_hook(rule.clone());
        work(&world, "msg_1", SettleUsage).await;
        assert_eq!(rule.hits(), conflicts);
        assert_eq!(operation(&world, "msg_1", SettleUsage).await.is_some(), deferred, "{conflicts}");
        world.minutes(5).await.unwrap();
        assert_settled(&world, "j1", "msg_1").await;
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_on_the_plain_put_of_a_transition_is_tried_again_too() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let conflict = HookDecision::FailBefore(Fault::item_in_transaction());
    let rule = Rule::times(2, "PutItem", &TRANSITION, conflict);
    world.aws.add_hook(rule.clone());
    work(&world, "msg_1", CompleteJob).await;
    assert_eq!(rule.hits(), 2);
    assert_eq!(world.job("j1").await["transitions"][0]["by"], "acme/msg_1");
    assert_eq!(operation(&world, "msg_1", CompleteJob).await, None);
}

/// The settlement's transaction is under way while the job consumer writes this very event's transition:
/// its condition fails on an item that is ours, and nothing of the settlement is written.
#[tokio::test(start_paused = true)]
async fn ours_on_one_item_is_not_done_for_another() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let slow = HookDecision::Delay(Duration::from_millis(50), Box::new(HookDecision::Pass));
    let (first, all) =
        (Rule::times(1, "TransactWriteItems", &SETTLE, slow), Rule::count("TransactWriteItems", &SETTLE));
    world.aws.add_hook(first.clone());
    world.aws.add_hook(all.clone());
    // The transition is put when the settlement has read everything and is not yet written.
    let between = HookDecision::Delay(Duration::from_millis(25), Box::new(HookDecision::Pass));
    world.aws.add_hook(Rule::times(1, "PutItem", &TRANSITION, between));
    join!(work(&world, "msg_1", SettleUsage), work(&world, "msg_1", CompleteJob));
    assert_eq!((first.hits(), all.hits()), (1, 2), "the first transaction failed, the second one committed");
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(operation(&world, "msg_1", SettleUsage).await, None);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_close_by_another_event_that_comes_between_leaves_a_no_op() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    taken_in(&world, "msg_2", &completed("j1")).await;
    let slow = HookDecision::Delay(Duration::from_millis(50), Box::new(HookDecision::Pass));
    world.aws.add_hook(Rule::times(1, "TransactWriteItems", &["acme/msg_1"], slow));
    join!(work(&world, "msg_1", SettleUsage), work(&world, "msg_2", SettleUsage));
    assert_settled(&world, "j1", "msg_2").await;
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap().state, OperationState::Noop);
    audit(&world);
}

/// A sandbox is killed with its transaction on the wire: it is applied late, after the next try.
#[tokio::test(start_paused = true)]
async fn a_settlement_that_is_applied_late_is_no_second_effect() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let late = HookDecision::Delay(Duration::from_secs(300), Box::new(HookDecision::Pass));
    world.aws.add_hook(Rule::times(1, "TransactWriteItems", &SETTLE, late));
    let killed = tokio::time::timeout(Duration::from_millis(500), work(&world, "msg_1", SettleUsage)).await;
    assert!(killed.is_err());
    work(&world, "msg_1", SettleUsage).await;
    assert_settled(&world, "j1", "msg_1").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_server_error_of_every_read_defers_blindly() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    let broken = HookDecision::FailBefore(Fault::internal_server_error(Service::DynamoDb));
    let rule = Rule::always("Query", &["E|acme|msg_1"], broken);
    world.aws.add_hook(rule.clone());
    world.drain().await.unwrap();
    rule.stop();
    for name in [CompleteJob, SettleUsage] {
        let record = operation(&world, "msg_1", name).await.unwrap();
        assert_eq!(
            (record.state, record.class, record.attempts),
            (OperationState::Wait, Class::Transient, 1),
            "{name}"
        );
    }
    world.minutes(3).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}
