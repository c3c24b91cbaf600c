//! The process dies at each step of a sending, before or after the step took hold: one effect at most, and in the end the
//! truth or a review.

use std::time::Duration;

use domain::ids::ItemId;
use domain::message::Message;
use domain::operation::OperationKey;
use local::hook::Fault as AwsFault;
use runtime::App;
use runtime::sqs::{SqsAttributes, SqsEvent, SqsRecord};

use super::*;
use crate::harness::DiesAt;

/// Dies at the n-th call, before or after it took hold; the test gives up before the SDK repeats it.
fn at(call: usize, after: bool) -> Arc<DiesAt> {
    DiesAt::new(call, after, 1, AwsFault::Timeout)
}

/// Hands the forward of d-1 to the consumer of a process that dies; whether it did.
async fn die(world: &World, board: &Board) -> bool {
    let app = App::clone(&world.stack.app).calling(Arc::new(board.clone()));
    let key = OperationKey { event: "github/d-1".parse().unwrap(), item: ItemId::only(), name: Forward };
    let body = Message::new(key, 0, "g".to_owned()).to_json();
    let attributes = SqsAttributes { message_group_id: "g".to_owned(), approximate_receive_count: "1".to_owned() };
    let records = vec![SqsRecord { message_id: "m".to_owned(), body, attributes }];
    tokio::time::timeout(Duration::from_secs(1), outbound::handle(&app, SqsEvent { records })).await.is_err()
}

/// What became of d-1 after a death at this step, and the ordinary course of things afterwards.
async fn after(rules: &str, life_ms: i64, hook: Arc<DiesAt>, fault: Option<Fault>) -> Option<(String, usize)> {
    let config = board_config(rules);
    // The onlooker's client meets the control function's hooks.
    config.hooks.add(Function::Control, hook.clone());
    let (world, board) = world_with(config, life_ms).await;
    board.script("github/d-1", fault.as_slice());
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    crate::harness::purge(&world);
    hook.begin();
    let died = die(&world, &board).await;
    hook.end();
    world.minutes(12).await.unwrap();
    board.same("github/d-1");
    if !died {
        return None;
    }
    // With a record of the operation or without one: it is done.
    let end = state(&world, "d-1").await;
    let end = if end.starts_with("done ") { DONE.0.to_owned() } else { end };
    Some((end, board.effects("github/d-1")))
}

async fn every_step(rules: &str, life_ms: i64, allowed: &[(&str, usize)]) -> usize {
    let mut deaths = 0;
    for call in 0.. {
        let mut alive = 0;
        for dies_after in [false, true] {
            match after(rules, life_ms, at(call, dies_after), None).await {
                Some((end, effects)) => {
                    let known = allowed.iter().any(|(state, count)| end == *state && effects == *count);
                    assert!(known, "call {call}, after {dies_after}: {end}, {effects} effects");
                    deaths += 1;
                }
                None => alive += 1,
            }
        }
        if alive == 2 {
            return deaths;
        }
    }
    unreachable!()
}

const DONE: (&str, usize) = ("done", 1);

#[tokio::test(start_paused = true)]
async fn with_keys_every_death_ends_in_one_effect() {
    // By hand: the receipt, the switches, the intent (read, put, read), submitted, settled: seven calls, twice each.
    assert!(every_step(KEYED, 2 * HOUR_MS, &[DONE]).await >= 14);
}

#[tokio::test(start_paused = true)]
async fn with_a_look_up_every_death_ends_in_one_effect() {
    assert!(every_step(LOOKUP, 0, &[DONE]).await >= 14);
}

#[tokio::test(start_paused = true)]
async fn with_neither_a_death_after_submitting_is_a_persons() {
    let allowed = [DONE, ("needs-review unknown-outcome", 0), ("needs-review unknown-outcome", 1)];
    assert!(every_step("", 0, &allowed).await >= 14);
}

#[tokio::test(start_paused = true)]
async fn a_death_while_the_answer_is_awaited_is_an_unknown_outcome() {
    let never = || at(999_999, false);
    let silent = Some(Fault::SavesThenSilence);
    assert_eq!(after(KEYED, 2 * HOUR_MS, never(), silent).await, Some((DONE.0.to_owned(), 1)));
    assert_eq!(after(LOOKUP, 0, never(), silent).await, Some((DONE.0.to_owned(), 1)));
    assert_eq!(after("", 0, never(), silent).await, Some(("needs-review unknown-outcome".to_owned(), 1)));
}

/// Another process that finds a try without an end does not send beside it.
#[tokio::test(start_paused = true)]
async fn what_may_be_under_way_is_left_alone() {
    let (world, board) = world_with(board_config(KEYED), 2 * HOUR_MS).await;
    board.script("github/d-1", &[Fault::SavesThenSilence]);
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    assert!(die(&world, &board).await);
    world.drain().await.unwrap();
    let shown = operation(&world, "d-1").await;
    assert_eq!((board.sent("github/d-1").len(), &shown["intent"]["state"]), (1, &json!("submitted")));
    // By hand: the function's 30 s and the clocks' 30 s.
    assert_eq!((&shown["due_at"], &shown["attempts"]), (&json!("2026-11-29T12:01:00Z"), &json!(0)), "{shown}");
    world.minutes(3).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "done already-done");
    assert_eq!((board.same("github/d-1"), board.effects("github/d-1")), (2, 1));
}
