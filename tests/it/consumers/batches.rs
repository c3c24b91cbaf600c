//! Batches: per-record results, groups in order, other groups go on, a panic is one record's alone.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Duration;

use domain::decide::NoEffect;
use domain::operation::OperationName::{self, CompleteJob, SettleUsage};
use domain::operation::{Class, Consumer, OperationState};
use local::world::{World, completed};
use runtime::App;
use runtime::consumer::{Operate, Work, handle_batch};
use runtime::sqs::SqsEvent;
use store::StoreError;

use crate::books::audit;
use crate::harness::*;

/// Events a to d for jobs ja to jd, taken in; two wallets' jobs, as the groups of the case have it.
async fn four() -> std::sync::Arc<World> {
    let world = funded().await;
    assert_eq!(world.fund("w2", "100.00").await.0, 201);
    for (id, wallet) in [("a", "w1"), ("b", "w2"), ("c", "w1"), ("d", "w2")] {
        assert_eq!(world.submit(&format!("j{id}"), wallet, "5.00").await.0, 201);
        taken_in(&world, id, &completed(&format!("j{id}"))).await;
    }
    world
}

/// The case's batch: [g1:a, g2:b, g1:c, g2:d].
fn batch(name: OperationName) -> Vec<runtime::sqs::SqsRecord> {
    [("g1", "a"), ("g2", "b"), ("g1", "c"), ("g2", "d")].map(|(group, id)| record(group, id, name)).into()
}

/// Whether the operation's effect stands for the event's job.
async fn done(world: &World, id: &str, name: OperationName) -> bool {
    shown(world, id, name).await["state"] == "done"
}

/// What cannot be done for `a`, of either consumer.
fn failing(name: OperationName) -> std::sync::Arc<Rule> {
    match name.consumer() {
        Consumer::Job => Rule::always("PutItem", &["J|t1|ja", "t|000001"], throttled()),
        Consumer::Outbound => unreachable!("settlements have no outbound part"),
        Consumer::Billing => Rule::always("TransactWriteItems", &["J|t1|ja"], throttled()),
    }
}

#[tokio::test(start_paused = true)]
async fn sqs_01_a_failing_record_is_deferred_and_nothing_else_is_touched() {
    for name in [CompleteJob, SettleUsage] {
        let world = four().await;
        world.aws.add_hook(failing(name));
        assert_eq!(consume(&world, batch(name)).await, [""; 0], "{name}");
        assert_eq!(operation(&world, "a", name).await.unwrap().state, OperationState::Wait);
        for id in ["b", "c", "d"] {
            assert!(done(&world, id, name).await, "{name} {id}");
            assert_eq!(operation(&world, id, name).await, None);
        }
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn sqs_01_without_its_deferral_the_record_and_the_rest_of_its_group_are_reported_failed() {
    for name in [CompleteJob, SettleUsage] {
        let world = four().await;
        world.aws.add_hook(failing(name));
        world.aws.add_hook(Rule::always("PutItem", &["E|acme|a", "o|-|"], throttled()));
        let touched = Rule::count("*", &["E|acme|c"]);
        world.aws.add_hook(touched.clone());
        assert_eq!(consume(&world, batch(name)).await, ["a", "c"], "{name}");
        // Billing reads what it may commit together; that it wrote nothing of c is seen below.
        assert!(name == SettleUsage || touched.hits() == 0, "c comes after a, untouched");
        world.aws.clear_hooks();
        for (id, expected) in [("a", false), ("b", true), ("c", false), ("d", true)] {
            assert_eq!(done(&world, id, name).await, expected, "{name} {id}");
            assert_eq!(operation(&world, id, name).await, None);
        }
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn sqs_04_one_record_of_ten_that_cannot_be_done_runs_none_of_the_others_again() {
    for name in [CompleteJob, SettleUsage] {
        let world = funded().await;
        let mut records = Vec::new();
        for n in 1..=10 {
            let (id, job) = (format!("e{n}"), format!("j{n}"));
            if n != 7 {
                assert_eq!(world.submit(&job, "w1", "1.00").await.0, 201);
            }
            taken_in(&world, &id, &completed(&job)).await;
            records.push(record("g", &id, name));
        }
        assert_eq!(consume(&world, records.clone()).await, [""; 0]);
        for n in 1..=10 {
            assert_eq!(done(&world, &format!("e{n}"), name).await, n != 7, "{name} {n}");
        }
        assert_eq!(operation(&world, "e7", name).await.unwrap().class, Class::JobUnknown);
        // The whole batch again, as after a crash before its answer: nothing happens twice.
        let before = (items(&world, "ledger"), balance(&world, "w1").await);
        assert_eq!(consume(&world, records).await, [""; 0]);
        assert_eq!((items(&world, "ledger"), balance(&world, "w1").await), before);
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_message_or_one_without_a_receipt_blocks_nobody() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let mut strange = record("g", "strange", SettleUsage);
    strange.body = "{\"v\":1}".to_owned();
    let batch = vec![strange, record("g", "never_received", SettleUsage), record("g", "msg_1", SettleUsage)];
    let app = &world.stack.app;
    assert_eq!(failures(billing::handle(app, SqsEvent { records: batch }).await), [""; 0]);
    assert_settled(&world, "j1", "msg_1").await;
}

/// An operation that takes a while and notes when it begins and ends.
#[derive(Default)]
struct Slow(Mutex<Vec<String>>);

impl Operate for Slow {
    async fn operate(&self, _: &App, work: &Work) -> Result<NoEffect, StoreError> {
        let id = work.key.event.id.as_str().to_owned();
        self.0.lock().unwrap().push(format!("{id} begins"));
        // The first one is the slowest: in parallel it would end last.
        let wait_ms = if id == "a" { 500 } else { 50 };
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        self.0.lock().unwrap().push(format!("{id} ends"));
        Ok(NoEffect::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn sqs_11_one_group_is_worked_on_in_order_and_groups_side_by_side() {
    let world = four().await;
    let slow = Slow::default();
    let event = SqsEvent { records: batch(SettleUsage) };
    assert_eq!(failures(handle_batch(&world.stack.app, &event, &slow).await), [""; 0]);
    let log = slow.0.into_inner().unwrap();
    let of = |ids: [&str; 2]| log.iter().filter(|line| ids.iter().any(|id| line.starts_with(id))).collect::<Vec<_>>();
    assert_eq!(of(["a", "c"]), ["a begins", "a ends", "c begins", "c ends"]);
    assert_eq!(of(["b", "d"]), ["b begins", "b ends", "d begins", "d ends"]);
    let at = |line: &str| log.iter().position(|entry| entry == line).unwrap();
    assert!(at("d ends") < at("a ends"), "the other group did not wait: {log:?}");
}

/// Panics on `a`, each time in another of the ways that a defect would.
struct Panicking(u8);

impl Operate for Panicking {
    async fn operate(&self, _: &App, work: &Work) -> Result<NoEffect, StoreError> {
        if work.key.event.id.as_str() != "a" {
            return Ok(NoEffect::Noop(Class::AlreadyDone, "worked on".to_owned()));
        }
        tokio::task::yield_now().await;
        match self.0 {
            0 => black_box(None::<u8>).map(|_| NoEffect::Done).ok_or(()).unwrap(),
            1 => panic!("index {}", black_box([0_u8; 1].as_slice())[black_box(7)]),
            _ => panic!("sum {}", black_box(255_u8) + black_box(1)),
        };
        Ok(NoEffect::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn lam_02_a_panic_defers_that_record_and_no_other() {
    for way in 0..3 {
        let world = four().await;
        let event = SqsEvent { records: batch(SettleUsage) };
        assert_eq!(failures(handle_batch(&world.stack.app, &event, &Panicking(way)).await), [""; 0]);
        let record = operation(&world, "a", SettleUsage).await.unwrap();
        assert_eq!((record.state, record.class), (OperationState::Wait, Class::Crashed));
        assert_eq!((record.generation, record.attempts), (1, 1), "a panic is a try: it ends in review one day");
        assert!(!record.note.contains("index") && !record.note.contains("sum"), "{}", record.note);
        for id in ["b", "c", "d"] {
            assert_eq!(operation(&world, id, SettleUsage).await.unwrap().state, OperationState::Noop, "{id}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lam_02_a_panic_whose_deferral_cannot_be_written_fails_its_group_only() {
    let world = four().await;
    world.aws.add_hook(Rule::always("PutItem", &["E|acme|a"], unreachable()));
    let event = SqsEvent { records: batch(SettleUsage) };
    assert_eq!(failures(handle_batch(&world.stack.app, &event, &Panicking(0)).await), ["a", "c"]);
    for id in ["b", "d"] {
        assert_eq!(operation(&world, id, SettleUsage).await.unwrap().state, OperationState::Noop, "{id}");
    }
}
