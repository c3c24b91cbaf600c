//! Each type, once, whoever comes first and however often the event comes.

use domain::operation::Consumer;
use domain::operation::OperationName::{CompleteJob, SettleUsage};
use local::world::{completed, event_body};
use serde_json::json;

use super::*;
use crate::harness::{accepted, consume, depths, items, record, taken_in, work};

#[tokio::test(start_paused = true)]
async fn a_completion_is_told_as_ended_and_as_settled_once_though_it_comes_twice() {
    let world = world_of(config("")).await;
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    for status in [(202, "accepted"), (200, "duplicate")] {
        assert_eq!(world.send("e-1", &completed("j1")).await, (status.0, status.1.to_owned()));
        world.drain().await.unwrap();
    }
    accepted(&world, "e-2", &completed("j1")).await; // the same under another id
    world.minutes(5).await.unwrap();
    let mut told = told(&world);
    told.sort_by_key(|body| body["type"].as_str().map(str::to_owned));
    let by_hand = [
        json!({
            "type": "job.completed", "id": "job.completed|t1|j1|1", "timestamp": "2026-11-29T12:00:00Z",
            "data": {
                "tenant": "t1", "job": "j1", "wallet": "w1", "version": 1, "outcome": "success", "by": "acme/e-1",
                "usage": {"input_tokens": 1200, "output_tokens": 340},
            },
        }),
        json!({
            "type": "job.settled", "id": "job.settled|t1|j1|c", "timestamp": "2026-11-29T12:00:00Z",
            "data": {
                "tenant": "t1", "job": "j1", "wallet": "w1", "version": 1, "by": "acme/e-1", "kind": "capture",
                "amount": "0.008700", "released": "4.991300", "currency": "USD", "sequence": 2,
                "usage": {"input_tokens": 1200, "output_tokens": 340},
            },
        }),
    ];
    assert_eq!(told, by_hand);
}

#[tokio::test(start_paused = true)]
async fn the_same_is_told_whichever_consumer_comes_first_or_both_at_once() {
    for order in [[CompleteJob, SettleUsage], [SettleUsage, CompleteJob]] {
        let world = world_of(config("")).await;
        assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
        taken_in(&world, "e-1", &completed("j1")).await;
        for name in order {
            work(&world, "e-1", name).await;
            work(&world, "e-1", name).await;
        }
        world.drain().await.unwrap();
        assert_eq!(sorted_ids(&world), ["job.completed|t1|j1|1", "job.settled|t1|j1|c"], "{order:?}");
    }
    let world = world_of(config("")).await;
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    taken_in(&world, "e-1", &completed("j1")).await;
    tokio::join!(work(&world, "e-1", CompleteJob), work(&world, "e-1", SettleUsage));
    world.minutes(5).await.unwrap();
    assert_eq!(sorted_ids(&world), ["job.completed|t1|j1|1", "job.settled|t1|j1|c"]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_one_wallet_tells_of_each_of_its_jobs() {
    let world = world_of(config("")).await;
    for n in 0..10 {
        assert_eq!(world.submit(&format!("j{n}"), "w1", "5.00").await.0, 201);
        taken_in(&world, &format!("e-{n}"), &completed(&format!("j{n}"))).await;
    }
    let batch = (0..10).map(|n| record("w", &format!("e-{n}"), SettleUsage)).collect();
    assert_eq!(consume(&world, batch).await, [""; 0]);
    assert_eq!(depths(&world, Consumer::Outbound).0, 20);
    world.drain().await.unwrap();
    assert_eq!(ids(&world).len(), 20);
}

#[tokio::test(start_paused = true)]
async fn failures_cancellations_corrections_reversals_and_expiries_are_told() {
    let world = world_of(config("")).await;
    for job in ["failed", "gone", "done"] {
        assert_eq!(world.submit(job, "w1", "5.00").await.0, 201);
    }
    accepted(&world, "e-1", &event_body("job.failed", "failed", json!({}))).await;
    accepted(&world, "e-2", &completed("done")).await;
    world.drain().await.unwrap();
    let act = async |job: &str, kind: &str, amount: Option<&str>| {
        let body = json!({"reference": format!("{kind}-1"), "amount": amount, "reason": "asked for"});
        world.control("POST", &format!("/control/tenants/t1/jobs/{job}/{kind}"), Some(body)).await.0
    };
    assert_eq!(act("gone", "cancel", None).await, 201);
    assert_eq!(act("done", "adjust", Some("-0.001")).await, 201);
    assert_eq!(act("done", "reverse", Some("0.002")).await, 201);
    let corrected = json!({"correction_id": "c-1", "sequence": 9, "usage": {"input_tokens": 1200, "output_tokens": 0}});
    accepted(&world, "e-3", &event_body("usage.corrected", "done", corrected)).await;
    world.drain().await.unwrap();
    let by_hand = [
        "job.canceled|t1|gone|1",
        "job.completed|t1|done|1",
        "job.failed|t1|failed|1",
        "job.settled|t1|done|a|adjust-1",
        "job.settled|t1|done|a|c-1",
        "job.settled|t1|done|c",
        "job.settled|t1|done|v|reverse-1",
        "job.settled|t1|failed|c",
        "job.settled|t1|gone|c",
    ];
    assert_eq!(sorted_ids(&world), by_hand);
}

/// Without a subscription, and with one that wants something else: the same items and the same transactions.
#[tokio::test(start_paused = true)]
async fn where_nobody_subscribed_nothing_is_written() {
    let mut counts = Vec::new();
    let other = |more: &str| subscribed(&subscription("other", ADDRESS, r#"["job.settled", "job.completed"]"#, more));
    for config in [WorldConfig::default(), other("tenants = [\"t2\"]"), config("")] {
        let world = world_of(config).await;
        assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
        accepted(&world, "e-1", &completed("j1")).await;
        world.drain().await.unwrap();
        let tables = ["events", "jobs", "ledger", "balances"].map(|table| items(&world, table).len());
        counts.push((tables, ids(&world).len()));
    }
    assert_eq!(counts[0], counts[1]);
    let (plain, told) = (counts[0].0, counts[2].0);
    assert_eq!(counts[0].1, 0);
    // Two receipts and two intents.
    assert_eq!((told[0], &told[1..]), (plain[0] + 4, &plain[1..]));
}
