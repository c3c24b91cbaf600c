//! Two fetches at one moment, messages that come twice, and a process that dies at each of its calls: one frozen answer,
//! one settlement.

use domain::operation::OperationName;
use local::Function;
use local::hook::Fault as AwsFault;
use runtime::call::{Call, Called, Caller, Reply};
use tokio::sync::{Barrier, Notify};

use super::*;
use crate::harness::DiesAt;

/// Answers only once both were asked, with so many input tokens; where it has a gate, when that is opened.
#[derive(Debug, Clone)]
struct Together {
    both: Arc<Barrier>,
    gate: Option<Arc<Notify>>,
    tokens: u32,
}

impl Caller for Together {
    fn call(&self, _call: Call) -> Called<'_> {
        Box::pin(async move {
            self.both.wait().await;
            if let Some(gate) = &self.gate {
                gate.notified().await;
            }
            let body = json!({"run": {"id": "p-j1", "usage": {"input_tokens": self.tokens, "output_tokens": 340}}});
            Ok(Reply { status: 200, body: Some(body.to_string().into_bytes()), retry_after_s: None })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_fetches_with_different_answers_the_first_frozen_stands() {
    let world = submitted_with(config(USAGE, "")).await;
    taken_in(&world, "msg_1", &without_usage()).await;
    let gate = Arc::new(Notify::new());
    let first = Together { both: Arc::new(Barrier::new(2)), gate: None, tokens: 1200 };
    let second = Together { gate: Some(gate.clone()), tokens: 2400, ..first.clone() };
    let freezes = async {
        try_fetch(&world, &first, "msg_1").await;
        gate.notify_one();
    };
    tokio::join!(freezes, try_fetch(&world, &second, "msg_1"));
    let frozen: Vec<Value> = items(&world, "events").into_iter().filter(|item| item["sk"]["S"] == "f|-").collect();
    assert_eq!(frozen.len(), 1);
    assert_eq!(frozen[0]["en"]["M"]["us"]["M"]["input_tokens"]["S"], "1200");
    work(&world, "msg_1", CompleteJob).await;
    work(&world, "msg_1", SettleUsage).await;
    assert_settled(&world, "j1", "msg_1").await;
    crate::books::audit(&world);
}

#[tokio::test(start_paused = true)]
async fn messages_that_come_twice_and_in_any_order_settle_once() {
    for order in [
        [Fetch, SettleUsage, CompleteJob],
        [SettleUsage, Fetch, CompleteJob],
        [SettleUsage, CompleteJob, Fetch],
        [CompleteJob, Fetch, SettleUsage],
    ] {
        let (world, runs) = world().await;
        runs.has("/v1/runs/p-j1", says(200, &run()));
        taken_in(&world, "msg_1", &without_usage()).await;
        for name in order {
            match name {
                Fetch => drop(tokio::join!(try_fetch(&world, &runs, "msg_1"), try_fetch(&world, &runs, "msg_1"))),
                _ => drop(tokio::join!(work(&world, "msg_1", name), work(&world, "msg_1", name))),
            }
        }
        world.minutes(4).await.unwrap();
        assert_settled(&world, "j1", "msg_1").await;
        // An answer that changes afterwards changes nothing.
        runs.has("/v1/runs/p-j1", says(200, &json!({"run": {"id": "p-j1", "usage": {"input_tokens": 9}}})));
        assert_eq!(world.send("msg_1", &without_usage()).await, (200, "duplicate".to_owned()));
        try_fetch(&world, &runs, "msg_1").await;
        world.minutes(3).await.unwrap();
        assert_settled(&world, "j1", "msg_1").await;
        assert!(runs.asked().len() <= 2, "{order:?}");
    }
}

/// Made due by the fetch, not by its own next look, which is far away by then.
#[tokio::test(start_paused = true)]
async fn what_waits_is_made_due_when_the_answer_is_there() {
    let (world, runs) = world().await;
    taken_in(&world, "msg_1", &without_usage()).await;
    world.clock.advance(3 * HOUR_MS);
    work(&world, "msg_1", SettleUsage).await;
    let due = |shown: Value| shown["due_at"].as_str().unwrap().to_owned();
    let before = due(shown(&world, "msg_1", SettleUsage).await);
    let looked = operation(&world, "msg_1", SettleUsage).await.unwrap();
    runs.has("/v1/runs/p-j1", says(200, &run()));
    try_fetch(&world, &runs, "msg_1").await;
    let after = due(shown(&world, "msg_1", SettleUsage).await);
    assert_eq!(after, "2026-11-29T15:00:00Z", "before: {before}");
    assert!(before > after, "{before}");
    // A look that began before that cannot push it back: its generation is dead, and no try is counted.
    let woken = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((woken.live_from, woken.attempts), (looked.generation + 1, 0));
    world.minutes(2).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
}

/// Everything is lost between receipt and consumers: the relay finds it, the fetch too.
#[tokio::test(start_paused = true)]
async fn a_lost_message_of_the_fetch_is_found_by_the_relay() {
    let (world, runs) = world().await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    taken_in(&world, "msg_1", &without_usage()).await;
    world.minutes(6).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(runs.asked().len(), 1);
}

/// As many calls as the client makes before it gives up, and the deferral's.
const DEAD: usize = 8;

/// One event, in a world whose function dies at this call; whether it came to that.
async fn dies(function: Function, at: usize, after: bool) -> bool {
    let config = config(USAGE, "");
    let hook = DiesAt::new(at, after, DEAD, AwsFault::ConnectionReset);
    config.hooks.add(function, hook.clone());
    let (world, runs) = world_with(config).await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    runs.script([Says::Down]);
    hook.begin();
    accepted(&world, "msg_1", &without_usage()).await;
    world.minutes(2).await.unwrap();
    let died = hook.end();
    // A second fetch would find something else; what is frozen by now stands.
    let frozen = !world.explain("msg_1").await["fetched"].as_array().unwrap().is_empty();
    if frozen {
        runs.has("/v1/runs/p-j1", says(200, &json!({"run": {"id": "p-j1", "usage": {"input_tokens": 9}}})));
    }
    world.minutes(8).await.unwrap();
    let place = format!("{function:?} call {at}, after {after}");
    let job = world.job("j1").await;
    assert_eq!(job["settlements"].as_array().unwrap().len(), 1, "{place}: {job}");
    assert_eq!(job["settlements"][0]["captured"], "0.008700", "{place}");
    assert_eq!(open_reviews(&world).await, [""; 0], "{place}");
    died
}

async fn every_call(function: Function) -> usize {
    let mut deaths = 0;
    for at in 0..100 {
        let before = at % 4 == 0 && dies(function, at, false).await;
        let after = dies(function, at, true).await;
        deaths += usize::from(before) + usize::from(after);
        if !before && !after {
            return deaths;
        }
    }
    panic!("it never came to an end");
}

#[tokio::test(start_paused = true)]
async fn every_death_of_outbound_ends_in_one_settlement() {
    assert!(every_call(Function::Outbound).await >= 8);
}

#[tokio::test(start_paused = true)]
async fn every_death_of_billing_ends_in_one_settlement() {
    assert!(every_call(Function::Billing).await >= 8);
}

/// A batch of one wallet commits what was fetched for each, and leaves what still waits.
#[tokio::test(start_paused = true)]
async fn a_batch_settles_what_is_fetched_and_leaves_what_waits() {
    let (world, runs) = world().await;
    for job in ["j2", "j3"] {
        assert_eq!(world.submit(job, "w1", "5.00").await.0, 201);
    }
    let of =
        |job: &str| json!({"run": {"id": format!("p-{job}"), "usage": {"input_tokens": 1200, "output_tokens": 340}}});
    for (id, job) in [("msg_1", "j1"), ("msg_2", "j2"), ("msg_3", "j3")] {
        taken_in(&world, id, &event_body("job.completed", job, json!({}))).await;
        if job != "j2" {
            runs.has(&format!("/v1/runs/p-{job}"), says(200, &of(job)));
        }
        try_fetch(&world, &runs, id).await;
    }
    let batch = ["msg_1", "msg_2", "msg_3"].map(|id| record("w", id, OperationName::SettleUsage)).to_vec();
    assert_eq!(consume(&world, batch).await, [""; 0]);
    assert_eq!(balance(&world, "w1").await, ("94.982600".to_owned(), "5.000000".to_owned())); // 100 - 5 - 2 x 0.0087
    assert_eq!(settle_state(&world, "msg_2").await, "retrying not-yet");
    runs.has("/v1/runs/p-j2", says(200, &of("j2")));
    world.minutes(6).await.unwrap();
    assert_eq!(balance(&world, "w1").await, ("99.973900".to_owned(), "0.000000".to_owned()));
    crate::books::audit(&world);
}
