//! The relay's search: every receipt is examined once, two minutes old, under a cursor that advances
//! only when every missing record is written.

use std::time::Duration;

use domain::limits::BUCKET_MS;
use domain::operation::Consumer;
use domain::operation::OperationName::{CompleteJob, SettleUsage};
use domain::operation::{Class, OperationState};
use local::Function;
use local::hook::HookDecision;
use local::world::{BEGINS_MS, World, completed};
use serde_json::json;
use tokio::join;

use crate::books::audit;
use crate::harness::*;

#[tokio::test(start_paused = true)]
async fn rec_01_a_receipt_whose_messages_were_never_sent_is_found_after_two_minutes() {
    let down = Rule::always("SendMessage", &[], unreachable());
    let world = submitted_with(hooked(Function::Receiver, down.clone())).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    assert_eq!(depths(&world, Consumer::Job).0 + depths(&world, Consumer::Billing).0, 0);
    // Its bucket is the minute from 12:00, and it is examined when that minute's end is two minutes old.
    for minute in 1..=2 {
        let report = relay_minute(&world).await.unwrap();
        assert_eq!((report.examined, report.found, report.sent), (0, 0, 0), "minute {minute}");
    }
    let report = relay_minute(&world).await.unwrap();
    assert_eq!((report.examined, report.found, report.sent), (1, 2, 2));
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.class, record.attempts), (Class::NotDispatched, 0));
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap().state, OperationState::Closed);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn rec_01_a_sandbox_killed_between_receipt_and_send_loses_nothing() {
    let stuck = HookDecision::Delay(Duration::from_secs(3_600), Box::new(unreachable()));
    let world = submitted_with(hooked(Function::Receiver, Rule::always("SendMessage", &[], stuck))).await;
    let body = completed("j1");
    let killed = tokio::time::timeout(Duration::from_secs(1), world.send("msg_1", &body)).await;
    assert!(killed.is_err(), "the provider got no answer");
    world.minutes(5).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn rec_01_the_providers_retry_dispatches_what_the_first_delivery_could_not() {
    let down = Rule::times(6, "SendMessage", &[], unreachable()); // two operations, three tries each
    let world = submitted_with(hooked(Function::Receiver, down.clone())).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    assert_eq!(down.hits(), 6);
    assert_eq!(world.send("msg_1", &completed("j1")).await, (200, "duplicate".to_owned()));
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_purged_queue_loses_nothing() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    assert_eq!((depths(&world, Consumer::Job).0, depths(&world, Consumer::Billing).0), (1, 1));
    purge(&world);
    world.minutes(5).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn the_cursor_advances_only_when_every_missing_record_is_written() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let minute = BEGINS_MS / BUCKET_MS;
    let refused = Rule::always("PutItem", &["E|acme|msg_1", "o|-|billing"], throttled());
    world.aws.add_hook(refused.clone());
    let mut failed = 0;
    for _ in 0..4 {
        failed += usize::from(relay_minute(&world).await.is_err());
    }
    assert_eq!((failed, cursor_of(&world, "msg_1").await), (2, minute), "the third and fourth run failed");
    refused.stop();
    relay_minute(&world).await.unwrap();
    assert!(cursor_of(&world, "msg_1").await > minute);
    world.minutes(2).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn one_receipt_that_cannot_be_examined_holds_up_its_own_shard_only() {
    let world = funded().await;
    let ids: Vec<String> = (0..12).map(|n| format!("msg_{n}")).collect();
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(world.submit(&format!("j{n}"), "w1", "1.00").await.0, 201);
        taken_in(&world, id, &completed(&format!("j{n}"))).await;
    }
    world.aws.add_hook(Rule::always("Query", &["\"E|acme|msg_0\""], throttled()));
    for _ in 0..4 {
        let _ = relay_minute(&world).await; // fails because of msg_0
    }
    world.drain().await.unwrap();
    let elsewhere: Vec<_> = ids.iter().filter(|id| shard(id) != shard("msg_0")).collect();
    assert!(elsewhere.len() > 4, "twelve events spread over four shards");
    world.aws.clear_hooks();
    for id in elsewhere {
        assert_eq!(world.explain(id).await["status"], "completed", "{id}");
    }
    world.minutes(10).await.unwrap();
    for id in &ids {
        assert_eq!(world.explain(id).await["status"], "completed", "{id}");
    }
    audit(&world);
}

fn shard(id: &str) -> u32 {
    domain::keys::shard_of(&domain::keys::event_pk(&event_ref(id)))
}

#[tokio::test(start_paused = true)]
async fn two_relays_at_once_are_one() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    for _ in 0..6 {
        world.clock.advance(MINUTE_MS);
        let (one, other) = join!(world.stack.relay(), world.stack.relay());
        one.unwrap();
        other.unwrap();
        for consumer in SETTLING {
            assert!(messages(&world, consumer).len() <= 1, "one message of each operation");
        }
    }
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_was_down_for_most_of_a_day_catches_up_from_its_cursor() {
    let world = submitted().await;
    taken_in(&world, "early", &completed("j1")).await;
    world.clock.advance(22 * HOUR_MS);
    world.submit("j2", "w1", "5.00").await;
    taken_in(&world, "late", &completed("j2")).await;
    world.clock.advance(HOUR_MS);
    let report = world.stack.relay().await.unwrap();
    assert_eq!((report.examined, report.found), (2, 4));
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "early").await;
    assert_settled(&world, "j2", "late").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_receipt_gets_a_review_and_is_passed() {
    let world = submitted().await;
    world.submit("j2", "w1", "5.00").await;
    taken_in(&world, "broken", &completed("j1")).await;
    taken_in(&world, "healthy", &completed("j2")).await;
    damage(&world, "broken");
    world.minutes(5).await.unwrap();
    assert_eq!(open_reviews(&world).await, ["acme/broken conflict"]);
    assert!(cursor_of(&world, "broken").await > BEGINS_MS / BUCKET_MS, "passed");
    assert_settled(&world, "j2", "healthy").await;
    assert_untouched(&world, "j1").await;
    world.minutes(5).await.unwrap();
    assert_eq!(open_reviews(&world).await.len(), 1, "one review, however often");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_an_unreadable_receipt_is_that_records_review_and_no_others() {
    let world = submitted().await;
    world.submit("j2", "w1", "5.00").await;
    taken_in(&world, "broken", &completed("j1")).await;
    taken_in(&world, "healthy", &completed("j2")).await;
    damage(&world, "broken");
    let batch = vec![record("g", "broken", SettleUsage), record("g", "healthy", SettleUsage)];
    assert_eq!(consume(&world, batch).await, [""; 0]);
    assert_eq!(open_reviews(&world).await, ["acme/broken settle-usage"]);
    assert_settled(&world, "j2", "healthy").await;
    assert_untouched(&world, "j1").await;
}

/// The receipt loses its envelope, as no handler would ever do.
fn damage(world: &World, id: &str) {
    let pk = format!("E|acme|{id}");
    let receipts = items(world, "events");
    let mut receipt = receipts.into_iter().find(|i| i["pk"]["S"] == json!(pk) && i["sk"]["S"] == "r").unwrap();
    receipt.as_object_mut().unwrap().remove("en").unwrap();
    overwrite(world, "events", &receipt);
}

#[tokio::test(start_paused = true)]
async fn each_healthy_receipt_is_read_once_by_the_relay() {
    let (reads, buckets) = (Rule::count("Query", &["\"E|acme|msg_1\""]), Rule::count("Query", &["by-bucket"]));
    let config = hooked(Function::Relay, reads.clone());
    config.hooks.add(Function::Relay, buckets.clone());
    let world = submitted_with(config).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(15).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(reads.hits(), 1);
    // Minutes -2 to 12 of four shards, each once.
    assert_eq!(buckets.hits(), 4 * 15);
    for name in [CompleteJob, SettleUsage] {
        assert_eq!(operation(&world, "msg_1", name).await, None, "nothing was written for what went straight");
    }
}

#[tokio::test(start_paused = true)]
async fn the_relay_leaves_alone_what_has_an_effect_or_a_record() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", CompleteJob).await; // done; its settlement was lost
    let mut report = relay_minute(&world).await.unwrap();
    for _ in 0..2 {
        report = relay_minute(&world).await.unwrap();
    }
    assert_eq!((report.found, report.sent), (1, 1));
    assert_eq!(operation(&world, "msg_1", CompleteJob).await, None);
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}
