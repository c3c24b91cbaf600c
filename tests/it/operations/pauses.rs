//! Pause switches: receipts go on, effects wait, and what waited is resumed in order.

use domain::operation::Consumer;
use domain::operation::OperationName::{CompleteJob, RecordProgress, SettleUsage};
use local::world::{World, completed, event_body};
use serde_json::{Value, json};

use super::scene::*;
use crate::books::audit;
use crate::harness::*;

async fn switch(world: &World, name: &str, paused: bool) -> (u16, Value) {
    let body = json!({"paused": paused, "reason": "maintenance"});
    ask(world, "PUT", &format!("/control/pauses/{name}"), Some(body)).await
}

#[tokio::test(start_paused = true)]
async fn a_paused_consumer_has_no_effects_and_the_other_goes_on() {
    let world = submitted().await;
    let (status, on) = switch(&world, "billing", true).await;
    assert_eq!((status, &on["paused"], &on["actor"]), (200, &json!(true), &json!(ANN)));
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(3).await.unwrap();
    let job = world.job("j1").await;
    assert_eq!((job["transitions"].as_array().unwrap().len(), &job["settlements"]), (1, &json!([])));
    let held = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((held.parked.as_deref(), held.attempts), (Some("billing"), 0));
    let shown = shown(&world, "msg_1", SettleUsage).await;
    assert_eq!((&shown["paused_by"], &shown["due_at"]), (&json!("billing"), &json!(null)));

    // Three days: neither tries nor the limit of age are spent, and the relay sends nothing.
    for _ in 0..3 {
        world.clock.advance(24 * HOUR_MS);
        relay_has_run(&world).await;
        world.stack.relay().await.unwrap();
        assert_eq!(depths(&world, Consumer::Billing), (0, 0));
    }
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap(), held);
    assert_eq!(switch(&world, "billing", false).await.1["paused"], false);
    world.stack.relay().await.unwrap();
    world.drain().await.unwrap();
    // Its own waiting begins anew; the business expiry of a day still protects.
    assert_eq!(state(&world, "msg_1", SettleUsage).await, ("needs-review".to_owned(), "expired".to_owned()));
    assert_eq!(decide(&world, "settle-usage:acme/msg_1", retry()).await.0, 200);
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_paused_provider_holds_all_its_operations_and_resumes() {
    let world = submitted().await;
    assert_eq!(switch(&world, "acme", true).await.0, 200);
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(6).await.unwrap();
    assert_untouched(&world, "j1").await;
    assert_eq!(world.send("msg_1", &completed("j1")).await, (200, "duplicate".to_owned()));
    world.drain().await.unwrap();
    assert_untouched(&world, "j1").await;
    switch(&world, "acme", false).await;
    world.minutes(1).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(world.explain("msg_1").await["status"], "completed");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn what_waited_is_sent_in_order_of_arrival() {
    let world = submitted().await;
    switch(&world, "job", true).await;
    let mut sent = Vec::new();
    for n in 0..12 {
        world.clock.advance(1_000);
        let id = format!("msg_{}", 99 - n); // the ids fall while the sequence rises
        accepted(&world, &id, &event_body("job.progress", "j1", json!({"sequence": n}))).await;
        sent.push(id);
        if n % 3 == 0 {
            world.drain().await.unwrap();
        }
    }
    world.drain().await.unwrap();
    assert_eq!(depths(&world, Consumer::Job), (0, 0));
    switch(&world, "job", false).await;
    let report = world.stack.relay().await.unwrap();
    assert_eq!(report.resumed, 12);
    let order: Vec<String> =
        messages(&world, Consumer::Job).iter().map(|m| m.key.event.id.as_str().to_owned()).collect();
    assert_eq!(order, sent);
    world.drain().await.unwrap();
    assert_eq!(world.job("j1").await["progress"]["sequence"], 11);
    for id in sent {
        assert_eq!(state(&world, &id, RecordProgress).await.1, "already-done", "none was overtaken: {id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_down_keeps_them_parked_and_in_order() {
    let world = submitted().await;
    switch(&world, "job", true).await;
    for n in 0..3 {
        world.clock.advance(1_000);
        accepted(&world, &format!("msg_{n}"), &event_body("job.progress", "j1", json!({"sequence": n}))).await;
    }
    world.drain().await.unwrap();
    switch(&world, "job", false).await;
    let down = Rule::always("SendMessage", &[], unreachable());
    world.aws.add_hook(down.clone());
    assert_eq!(world.stack.relay().await.unwrap().resumed, 0);
    assert_eq!(operation(&world, "msg_0", RecordProgress).await.unwrap().parked.as_deref(), Some("job"));
    down.stop();
    assert_eq!(world.stack.relay().await.unwrap().resumed, 3);
    world.drain().await.unwrap();
    assert_eq!(world.job("j1").await["progress"]["sequence"], 2);
}

#[tokio::test(start_paused = true)]
async fn switches_are_listed_kept_by_whom_they_were_turned_and_forgotten_when_empty() {
    let world = submitted().await;
    let (status, listed) = ask(&world, "GET", "/control/pauses", None).await;
    assert_eq!((status, listed), (200, json!({"paused": [], "resuming": []})));
    switch(&world, "billing", true).await;
    let body = json!({"paused": true, "reason": "another reason"});
    let (status, stands) = ask_as(&world, BOB, "PUT", "/control/pauses/billing", Some(body)).await;
    assert_eq!((status, &stands["actor"], &stands["reason"]), (200, &json!(ANN), &json!("maintenance")));
    switch(&world, "billing", false).await;
    let (_, listed) = ask(&world, "GET", "/control/pauses", None).await;
    assert_eq!((&listed["paused"], &listed["resuming"][0]["name"]), (&json!([]), &json!("billing")));
    world.minutes(12).await.unwrap();
    assert_eq!(ask(&world, "GET", "/control/pauses", None).await.1, json!({"paused": [], "resuming": []}));
    let history: Vec<Value> =
        items(&world, "events").into_iter().filter(|item| item["pk"]["S"] == "Q|pause|billing").collect();
    assert_eq!(history.len(), 2, "each change is kept");
    for (path, body, status) in [
        ("nobody", json!({"paused": true, "reason": "x"}), 404),
        ("job", json!({"paused": true}), 400),
        ("job", json!({"paused": true, "reason": ""}), 422),
    ] {
        assert_eq!(ask(&world, "PUT", &format!("/control/pauses/{path}"), Some(body)).await.0, status, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_reads_the_switches_once_and_does_not_act_when_it_cannot() {
    let world = submitted().await;
    for n in 0..3 {
        taken_in(&world, &format!("msg_{n}"), &event_body("job.progress", "j1", json!({"sequence": n}))).await;
    }
    let reads = Rule::count("GetItem", &["S|pauses"]);
    world.aws.add_hook(reads.clone());
    let batch = || (0..3).map(|n| record("g", &format!("msg_{n}"), RecordProgress)).collect();
    assert_eq!(consume(&world, batch()).await, [""; 0]);
    assert_eq!(reads.hits(), 1);

    taken_in(&world, "msg_9", &completed("j1")).await;
    let down = Rule::always("GetItem", &["S|pauses"], unreachable());
    world.aws.add_hook(down.clone());
    work(&world, "msg_9", CompleteJob).await;
    assert_eq!(world.job("j1").await["transitions"], json!([]));
    let deferred = operation(&world, "msg_9", CompleteJob).await.unwrap();
    assert_eq!((deferred.attempts, deferred.parked), (0, None), "no try was made");
    down.stop();
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_9").await;
}

/// Operations of `jobs` jobs, `each` of one job, are held back by `job`, which is then resumed.
async fn held_and_let_go(jobs: usize, each: usize) -> std::sync::Arc<World> {
    let world = funded().await;
    switch(&world, "job", true).await;
    for job in 0..jobs {
        for n in 0..each {
            let body = event_body("job.progress", &format!("j{job}"), json!({"sequence": n}));
            accepted(&world, &format!("msg_{job}_{n}"), &body).await;
        }
    }
    world.drain().await.unwrap();
    switch(&world, "job", false).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_down_costs_a_run_one_round_of_sends() {
    let world = held_and_let_go(100, 1).await;
    let down = Rule::always("SendMessage", &[], unreachable());
    world.aws.add_hook(down.clone());
    assert_eq!(world.stack.relay().await.unwrap().resumed, 0);
    // 25 groups side by side, each send tried three times by the SDK at most; the other 75 stay for the next run.
    assert!((25..=75).contains(&down.hits()), "{}", down.hits());
    down.stop();
    assert_eq!(world.stack.relay().await.unwrap().resumed, 100);
}

/// Every send takes ten seconds.
#[derive(Debug)]
struct Slow(local::ManualClock);

impl local::hook::CallHook for Slow {
    fn on_call(&self, call: &local::hook::Call) -> local::hook::HookDecision {
        if call.operation == "SendMessage" {
            self.0.advance(10_000);
        }
        local::hook::HookDecision::Pass
    }
}

#[tokio::test(start_paused = true)]
async fn resuming_keeps_to_the_runs_time_and_what_is_due_goes_first() {
    let world = held_and_let_go(1, 12).await;
    accepted(&world, "msg_due", &completed("j9")).await;
    work(&world, "msg_due", SettleUsage).await; // waits for its job
    purge(&world);
    world.clock.advance(5_000); // its first wait is at most five seconds
    relay_has_run(&world).await;
    sweeps_have_run(&world).await;
    world.aws.add_hook(std::sync::Arc::new(Slow(world.clock.clone())));
    let report = world.stack.relay().await.unwrap();
    // What is due is sent in the first ten seconds; then sends begin at 10, 20, 30 and 40 s.
    assert_eq!((report.sent, report.resumed), (1, 4));
    let rest = world.stack.relay().await.unwrap().resumed;
    assert_eq!(rest, 5, "the next run goes on: 0, 10, 20, 30 and 40 s");
}

#[tokio::test(start_paused = true)]
async fn a_held_record_that_is_damaged_is_a_review_and_keeps_no_other() {
    let world = held_and_let_go(2, 1).await;
    let all = items(&world, "events");
    let mut damaged = all
        .into_iter()
        .find(|item| item["pk"]["S"] == "E|acme|msg_0_0" && item["sk"]["S"] == "o|-|job|record-progress")
        .unwrap();
    damaged["st"] = json!({"BOOL": true});
    overwrite(&world, "events", &damaged);
    assert_eq!(world.stack.relay().await.unwrap().resumed, 1);
    assert_eq!(open_reviews(&world).await, ["acme/msg_0_0 conflict"]);
    // A store that is busy is no damage, and is not taken for an end either.
    let busy = Rule::always("GetItem", &["o|-|job|record-progress"], throttled());
    world.aws.add_hook(busy.clone());
    assert!(world.stack.relay().await.is_err());
}
