//! The failure matrix, each case driven through the whole stack: gateway, queues, consumers, relay. Each ends with
//! every operation final or a person's, and with clean books. The matrix's other rows have tests of their own: crash
//! between receipt and send, a purged queue, two relays, a relay down for a day and an unreadable receipt in
//! `relay_finds`; dead letters filled by an outage in `dead_letters`.

use std::sync::Arc;

use futures_util::future::join_all;
use local::Function;
use local::hook::HookDecision;
use local::world::{World, WorldConfig, completed, event_body};
use serde_json::{Value, json};

use crate::books::audit;
use crate::harness::*;

/// Everybody who sends to a queue or speaks to a table meets the rule.
fn everywhere(rule: &Arc<Rule>) -> WorldConfig {
    let config = WorldConfig::default();
    for function in [Function::Receiver, Function::Job, Function::Billing, Function::Relay, Function::DeadLetter] {
        config.hooks.add(function, rule.clone());
    }
    config
}

async fn status(world: &World, id: &str) -> Value {
    world.explain(id).await["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn duplicate_delivery() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    for _ in 0..5 {
        assert_eq!(world.send("msg_1", &completed("j1")).await, (200, "duplicate".to_owned()));
        world.minutes(1).await.unwrap();
    }
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await, ("99.991300".to_owned(), "0.000000".to_owned()));
    assert_eq!(items(&world, "ledger").len(), 2, "the funding and the close");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn job_succeeds_and_billing_fails() {
    let down = Rule::outage();
    let world = submitted_with(hooked(Function::Billing, down.clone())).await;
    down.start();
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(15).await.unwrap();
    assert_eq!(status(&world, "msg_1").await, "retrying");
    assert_eq!(items(&world, "jobs").iter().filter(|item| item["sk"]["S"] == "t|000001").count(), 1, "the job is done");
    assert_eq!(items(&world, "ledger").len(), 1, "nothing but the funding");
    assert_eq!(balance(&world, "w1").await.1, "5.000000", "the hold stands");
    down.stop();
    world.minutes(70).await.unwrap(); // the longest wait between two tries
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn billing_succeeds_and_the_local_call_times_out() {
    // The transaction is applied; its answer is lost.
    let silent = Rule::times(1, "TransactWriteItems", &[], HookDecision::lost_answer());
    let world = submitted_with(hooked(Function::Billing, silent.clone())).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(5).await.unwrap();
    assert_eq!(silent.hits(), 1);
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await, ("99.991300".to_owned(), "0.000000".to_owned()));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn out_of_order_events() {
    let world = funded().await;
    // A correction, the completion and an update, each before what it builds on; then the submission.
    let correction =
        json!({"correction_id": "c-1", "sequence": 9, "usage": {"input_tokens": 1000, "output_tokens": 0}});
    accepted(&world, "msg_3", &event_body("usage.corrected", "j1", correction)).await;
    accepted(&world, "msg_2", &completed("j1")).await;
    accepted(&world, "msg_1", &event_body("job.progress", "j1", json!({"sequence": 1}))).await;
    world.minutes(2).await.unwrap();
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    world.minutes(120).await.unwrap();
    for id in ["msg_1", "msg_2", "msg_3"] {
        assert_eq!(status(&world, id).await, "completed", "{id}");
    }
    // 1,000 input tokens at 3.00 per million, as the correction says.
    assert_eq!(balance(&world, "w1").await, ("99.997000".to_owned(), "0.000000".to_owned()));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn concurrent_duplicates() {
    let world = submitted().await;
    let body = completed("j1");
    let answers = join_all((0..20).map(|_| world.send("msg_1", &body))).await;
    assert_eq!(answers.iter().filter(|answer| answer.0 == 202).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| matches!(answer.0, 200 | 202)), "{answers:?}");
    world.minutes(5).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await, ("99.991300".to_owned(), "0.000000".to_owned()));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn sqs_down_for_an_hour() {
    let down = Rule::times(0, "SendMessage", &[], unreachable());
    let world = funded_with(everywhere(&down)).await;
    down.start();
    for n in 0..6 {
        assert_eq!(world.submit(&format!("j{n}"), "w1", "1.00").await.0, 201);
        accepted(&world, &format!("msg_{n}"), &completed(&format!("j{n}"))).await; // 202 all the while
        world.minutes(10).await.unwrap();
    }
    assert!(down.hits() > 0);
    assert_eq!(items(&world, "ledger").len(), 1, "no settlement yet");
    down.stop();
    world.minutes(10).await.unwrap();
    for n in 0..6 {
        assert_settled(&world, &format!("j{n}"), &format!("msg_{n}")).await;
    }
    // Six captures of 0.008700.
    assert_eq!(balance(&world, "w1").await, ("99.947800".to_owned(), "0.000000".to_owned()));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn dynamodb_throttled_for_ten_minutes() {
    let busy = Rule::times(0, "*", &["TableName"], throttled());
    let world = submitted_with(everywhere(&busy)).await;
    assert_eq!(world.submit("j2", "w1", "5.00").await.0, 201);
    accepted(&world, "msg_1", &completed("j1")).await;
    busy.start();
    for _ in 0..10 {
        // The provider is told to come again; what is in the queues stays there.
        assert_eq!(world.send("msg_2", &completed("j2")).await.0, 503);
        world.clock.advance(MINUTE_MS);
        let _ = world.stack.relay().await;
        let _ = world.drain().await;
    }
    assert!(busy.hits() > 20);
    busy.stop();
    accepted(&world, "msg_2", &completed("j2")).await;
    world.minutes(10).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_settled(&world, "j2", "msg_2").await;
    audit(&world);
}
