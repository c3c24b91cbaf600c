//! The queue engine's promises, each by AWS's documentation or by the case it is named after.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use super::attributes::RedrivePolicy;
use super::*;
use crate::clock::ManualClock;

const Q: &str = "jobs.fifo";
const DLQ: &str = "dead.fifo";
const START_MS: i64 = 1_000_000;

fn engine_with(attributes: QueueAttributes) -> (QueueEngine, ManualClock) {
    let clock = ManualClock::new(START_MS);
    let engine = QueueEngine::memory(Arc::new(clock.clone()), 7);
    engine.create_queue(Q, attributes).unwrap();
    (engine, clock)
}

fn engine() -> (QueueEngine, ManualClock) {
    engine_with(QueueAttributes::default())
}

fn send(engine: &QueueEngine, group: &str, id: &str) -> SendReceipt {
    engine.send(Q, OutgoingMessage::new(group, id, id)).unwrap()
}

fn receive(engine: &QueueEngine, max: usize) -> Vec<ReceivedMessage> {
    engine.receive(Q, max, None).unwrap()
}

fn bodies(messages: &[ReceivedMessage]) -> Vec<&str> {
    messages.iter().map(|m| &*m.message.body).collect()
}

#[test]
fn one_batch_takes_a_group_in_order_and_then_the_next_group() {
    let (engine, _) = engine();
    for (group, id) in [("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2"), ("a", "a3")] {
        send(&engine, group, id);
    }
    // As many of one group as possible, then the next (SQS developer guide, FIFO delivery logic).
    assert_eq!(bodies(&receive(&engine, 4)), ["a1", "a2", "a3", "b1"]);
}

#[test]
fn sqs_11_a_group_in_flight_hands_out_nothing_more_until_the_last_one_is_gone() {
    let (engine, _) = engine();
    for id in ["a1", "a2", "a3"] {
        send(&engine, "a", id);
    }
    let first = receive(&engine, 2);
    send(&engine, "b", "b1");
    assert_eq!(bodies(&receive(&engine, 10)), ["b1"]);
    engine.delete(Q, &first[0].receipt_handle).unwrap();
    assert_eq!(bodies(&receive(&engine, 10)), [] as [&str; 0]);
    engine.delete(Q, &first[1].receipt_handle).unwrap();
    assert_eq!(bodies(&receive(&engine, 10)), ["a3"]);
}

#[test]
fn an_undeleted_message_comes_back_first_after_its_timeout() {
    let (engine, clock) = engine();
    send(&engine, "a", "a1");
    send(&engine, "a", "a2");
    let first = receive(&engine, 1);
    assert_eq!(first[0].message.receive_count, 1);
    clock.advance(29_999);
    assert_eq!(bodies(&receive(&engine, 10)), [] as [&str; 0]);
    clock.advance(1);
    let again = receive(&engine, 10);
    assert_eq!(bodies(&again), ["a1", "a2"]);
    assert_eq!(again[0].message.receive_count, 2);
    assert_eq!(again[0].message.first_received_ms, Some(START_MS));
    assert_eq!(again[1].message.first_received_ms, Some(START_MS + 30_000));
}

#[test]
fn sqs_07_a_duplicate_is_swallowed_for_five_minutes_even_after_the_first_was_deleted() {
    let (engine, clock) = engine();
    let first = send(&engine, "a", "E");
    let taken = receive(&engine, 1);
    engine.delete(Q, &taken[0].receipt_handle).unwrap();
    clock.advance(299_999);
    let second = send(&engine, "a", "E");
    assert!(second.deduplicated);
    assert_eq!(second.message_id, first.message_id);
    assert_eq!(second.sequence_number, first.sequence_number);
    assert_eq!(receive(&engine, 1).len(), 0);
    clock.advance(1);
    let third = send(&engine, "a", "E");
    assert_ne!(third.message_id, first.message_id);
    assert_eq!(receive(&engine, 1).len(), 1);
}

#[test]
fn deduplication_is_per_queue_unless_the_queue_says_per_group() {
    let (engine, _) = engine();
    send(&engine, "a", "E");
    assert!(send(&engine, "b", "E").deduplicated);
    let mut attributes = QueueAttributes::default();
    attributes.set("DeduplicationScope", "messageGroup").unwrap();
    let (engine, _) = engine_with(attributes);
    send(&engine, "a", "E");
    assert!(!send(&engine, "b", "E").deduplicated);
    assert!(send(&engine, "a", "E").deduplicated);
}

#[test]
fn without_an_id_the_body_is_the_id_only_where_the_queue_says_so() {
    let message = || OutgoingMessage { deduplication_id: None, ..OutgoingMessage::new("a", "", "same") };
    let (engine, _) = engine();
    assert!(matches!(engine.send(Q, message()), Err(QueueError::InvalidParameterValue(_))));
    let mut attributes = QueueAttributes::default();
    attributes.set("ContentBasedDeduplication", "true").unwrap();
    let (engine, _) = engine_with(attributes);
    assert!(!engine.send(Q, message()).unwrap().deduplicated);
    assert!(engine.send(Q, message()).unwrap().deduplicated);
}

#[test]
fn an_expired_receipt_handle_deletes_nothing() {
    let (engine, clock) = engine();
    send(&engine, "a", "a1");
    let old = receive(&engine, 1).remove(0).receipt_handle;
    clock.advance(30_000);
    assert_eq!(engine.delete(Q, &old), Err(QueueError::ReceiptHandleExpired(old.clone())));
    let new = receive(&engine, 1).remove(0).receipt_handle;
    assert_eq!(engine.delete(Q, &old), Err(QueueError::ReceiptHandleExpired(old.clone())));
    assert_eq!(engine.depth(Q).unwrap().in_flight, 1);
    engine.delete(Q, &new).unwrap();
    // Gone already: no error, so that a repeated delete is harmless.
    engine.delete(Q, &new).unwrap();
    assert_eq!(engine.delete(Q, "no handle"), Err(QueueError::ReceiptHandleIsInvalid));
}

#[test]
fn the_visibility_can_be_changed_only_while_in_flight() {
    let (engine, clock) = engine();
    send(&engine, "a", "a1");
    let handle = engine.receive(Q, 1, Some(5)).unwrap()[0].receipt_handle.clone();
    engine.change_visibility(Q, &handle, 60).unwrap();
    clock.advance(59_999);
    assert_eq!(receive(&engine, 1).len(), 0);
    engine.change_visibility(Q, &handle, 0).unwrap();
    assert!(matches!(engine.change_visibility(Q, &handle, 10), Err(QueueError::NotAvailableForVisibilityChange(_))));
    assert_eq!(receive(&engine, 1).len(), 1);
    assert!(matches!(engine.change_visibility(Q, &handle, 43_201), Err(QueueError::InvalidParameterValue(_))));
}

fn with_redrive(max_receive_count: u32) -> QueueAttributes {
    QueueAttributes {
        redrive: Some(RedrivePolicy { dead_letter_target_arn: crate::queue_arn(DLQ), max_receive_count }),
        ..QueueAttributes::default()
    }
}

#[test]
fn sqs_09_a_worn_out_message_moves_with_its_group_and_its_id_as_deduplication_id() {
    let (engine, clock) = engine_with(with_redrive(2));
    engine.create_queue(DLQ, QueueAttributes::default()).unwrap();
    let sent = send(&engine, "a", "a1");
    send(&engine, "a", "a2");
    for _ in 0..2 {
        assert_eq!(bodies(&receive(&engine, 1)), ["a1"]);
        clock.advance(30_000);
    }
    // The third receive moves it and hands out who stood behind it.
    assert_eq!(bodies(&receive(&engine, 1)), ["a2"]);
    let dead = engine.receive(DLQ, 1, None).unwrap().remove(0).message;
    assert_eq!(&*dead.body, "a1");
    assert_eq!(dead.group_id, "a");
    assert_eq!(dead.message_id, sent.message_id);
    assert_eq!(dead.deduplication_id, sent.message_id);
    assert_eq!(dead.dead_letter_source, Some(crate::queue_arn(Q)));
    // SQS-10: the enqueue time of a FIFO dead-letter queue starts anew.
    assert_eq!(dead.sent_ms, START_MS + 60_000);
}

#[test]
fn without_its_dead_letter_queue_a_message_stays() {
    let (engine, clock) = engine_with(with_redrive(1));
    send(&engine, "a", "a1");
    for count in 1..=3 {
        assert_eq!(receive(&engine, 1)[0].message.receive_count, count);
        clock.advance(30_000);
    }
}

#[test]
fn a_message_is_dropped_when_its_retention_is_over() {
    let mut attributes = QueueAttributes::default();
    attributes.set("MessageRetentionPeriod", "60").unwrap();
    let (engine, clock) = engine_with(attributes);
    send(&engine, "a", "a1");
    clock.advance(59_999);
    assert_eq!(engine.depth(Q).unwrap().visible, 1);
    clock.advance(1);
    assert_eq!(engine.depth(Q).unwrap().visible, 0);
}

#[test]
fn purge_removes_what_is_visible_and_what_is_in_flight() {
    let (engine, _) = engine();
    send(&engine, "a", "a1");
    send(&engine, "b", "b1");
    receive(&engine, 1);
    assert_eq!(engine.depth(Q).unwrap(), Depth { visible: 1, in_flight: 1 });
    engine.purge(Q).unwrap();
    let empty = Depth { visible: 0, in_flight: 0 };
    assert_eq!(engine.depth(Q).unwrap(), empty);
    assert!(send(&engine, "a", "a1").deduplicated);
    send(&engine, "a", "a2");
    assert_eq!(bodies(&receive(&engine, 1)), ["a2"]);
}

#[test]
fn what_sqs_refuses_is_refused() {
    let (engine, _) = engine();
    let refused = |message: OutgoingMessage| engine.send(Q, message).unwrap_err();
    let ok = || OutgoingMessage::new("g", "d", "b");
    assert!(matches!(refused(OutgoingMessage { body: String::new(), ..ok() }), QueueError::MissingParameter(_)));
    assert!(matches!(
        refused(OutgoingMessage { body: "\u{0}".to_owned(), ..ok() }),
        QueueError::InvalidMessageContents
    ));
    assert!(matches!(
        refused(OutgoingMessage { group_id: "x".repeat(129), ..ok() }),
        QueueError::InvalidParameterValue(_)
    ));
    assert!(matches!(
        refused(OutgoingMessage { deduplication_id: Some("a b".to_owned()), ..ok() }),
        QueueError::InvalidParameterValue(_)
    ));
    let fits = "x".repeat(262_144);
    assert!(matches!(
        refused(OutgoingMessage { body: format!("{fits}x"), ..ok() }),
        QueueError::InvalidParameterValue(_)
    ));
    engine.send(Q, OutgoingMessage { body: fits, ..ok() }).unwrap();
    assert_eq!(engine.send("nowhere.fifo", ok()), Err(QueueError::QueueDoesNotExist));
    assert!(engine.receive(Q, 0, None).is_err());
    assert!(engine.receive(Q, 11, None).is_err());
}

#[test]
fn a_queue_survives_its_process_with_flights_counts_and_window() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sqs.sqlite");
    let clock = ManualClock::new(START_MS);
    let open = || QueueEngine::open(&path, Arc::new(clock.clone()), 7).unwrap();
    let engine = open();
    engine.create_queue(Q, with_redrive(2)).unwrap();
    engine.create_queue(DLQ, QueueAttributes::default()).unwrap();
    let first = send(&engine, "a", "a1");
    let mut second = OutgoingMessage::new("b", "b1", "b1");
    let attribute = MessageAttribute::string("00-trace");
    second.attributes.insert("traceparent".to_owned(), attribute.clone());
    second.trace_header = Some("Root=1".to_owned());
    engine.send(Q, second).unwrap();
    let taken = receive(&engine, 1);
    // Never closed, as by kill -9: what was answered has to be in the file already.
    std::mem::forget(engine);
    let engine = open();
    assert_eq!(engine.attributes(Q).unwrap(), with_redrive(2));
    assert!(send(&engine, "a", "a1").deduplicated);
    let other = receive(&engine, 10);
    assert_eq!(bodies(&other), ["b1"]);
    assert_eq!(other[0].message.attributes["traceparent"], attribute);
    assert_eq!(other[0].message.trace_header.as_deref(), Some("Root=1"));
    engine.delete(Q, &other[0].receipt_handle).unwrap();
    clock.advance(30_000);
    let again = receive(&engine, 1);
    assert_eq!(again[0].message.message_id, first.message_id);
    assert_eq!(again[0].message.receive_count, 2);
    assert!(engine.delete(Q, &taken[0].receipt_handle).is_err());
    clock.advance(30_000);
    assert_eq!(receive(&engine, 1).len(), 0);
    std::mem::forget(engine);
    let engine = open();
    let empty = Depth { visible: 0, in_flight: 0 };
    assert_eq!(engine.depth(Q).unwrap(), empty);
    assert_eq!(engine.peek(DLQ).unwrap()[0].message_id, first.message_id);
    clock.advance(300_000);
    let fresh = send(&engine, "a", "a1");
    assert!(!fresh.deduplicated);
    assert_ne!(fresh.message_id, first.message_id);
}

#[test]
fn the_same_seed_gives_the_same_ids_and_ids_do_not_repeat() {
    let ids = || {
        let (engine, _) = engine();
        let ids = (0..100).map(|i| send(&engine, "a", &i.to_string()).message_id);
        ids.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(ids(), ids());
    assert_eq!(ids().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_for_a_send_a_delete_and_a_deadline() {
    let (engine, clock) = engine();
    let engine = Arc::new(engine);
    let wait = |engine: &Arc<QueueEngine>| {
        let engine = Arc::clone(engine);
        tokio::spawn(async move { engine.wait_for_message(Q).await })
    };
    let waiter = wait(&engine);
    tokio::task::yield_now().await;
    send(&engine, "a", "a1");
    waiter.await.unwrap().unwrap();
    let taken = receive(&engine, 1);
    send(&engine, "a", "a2");
    let waiter = wait(&engine);
    tokio::task::yield_now().await;
    assert!(!waiter.is_finished());
    engine.delete(Q, &taken[0].receipt_handle).unwrap();
    waiter.await.unwrap().unwrap();
    receive(&engine, 1);
    let waiter = wait(&engine);
    tokio::task::yield_now().await;
    clock.advance(30_000);
    tokio::time::advance(Duration::from_secs(30)).await;
    waiter.await.unwrap().unwrap();
    assert_eq!(bodies(&receive(&engine, 1)), ["a2"]);
}
