//! Receipts, jobs, reviews: each class planted, found once, done, gone.

use domain::operation::{Change, Class, OperationName, OperationRecord, OperationState};
use local::world::{World, WorldConfig, completed, event_body};
use serde_json::json;

use super::plant::{
    brief, done_at_once_and_gone, found_applied_and_gone, later, only, reconcile, remove, settle, settled,
    submitted_briefly, tamper, told,
};
use crate::harness::{
    HOUR_MS, accepted, assert_settled, balance, operation, relay_has_run, submitted, submitted_with, taken_in, work,
};

const EVENT: &str = "E|acme|msg_1";
const SETTLE: &str = "o|-|billing|settle-usage";

/// The record of msg_1's settlement, as of so long ago, whatever became of it.
async fn plant(world: &World, state: OperationState, class: Class, ago_ms: i64) {
    let (now, key) = (crate::harness::now_ms(world), crate::harness::key("msg_1", OperationName::SettleUsage));
    let note = "planted".to_owned();
    let change = Change { state, class, note, due_ms: None, generation: 1, resend: false, attempts: 1 };
    let record = OperationRecord::next(key, None, change, now - ago_ms, "planted".to_owned());
    world.stack.app.store.put_operation(&record).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_found_where_nothing_is_wrong() {
    let world = settled().await;
    let run = reconcile(&world, "first").await;
    assert_eq!((told(&run), &run["classes"]), (vec![], &json!({})));
    assert!(run["examined"].as_u64().unwrap() >= 4, "a receipt, a wallet's two entries and its job: {run}");
}

#[tokio::test(start_paused = true)]
async fn a_receipt_that_the_relay_never_saw_is_dispatched() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await; // its messages are lost, and the relay's cursor is past it
    later(&world, 3).await;
    let run = reconcile(&world, "first").await;
    assert_eq!(told(&run), ["not-dispatched/retry/resolved", "not-dispatched/retry/resolved"], "one per operation");
    settle(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(told(&reconcile(&world, "last").await), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn rec_03_a_receipt_that_is_still_on_its_way_is_left_alone() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    world.clock.advance(14 * 60_000);
    let run = world.reconcile("first", json!({"from": "2026-11-29T11:50:00Z", "kinds": ["receipts", "wallets"]})).await;
    assert_eq!(told(&run.unwrap()), [""; 0]);
    assert_eq!(operation(&world, "msg_1", OperationName::SettleUsage).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_waits_although_its_effect_exists_is_closed() {
    let world = settled().await;
    plant(&world, OperationState::Review, Class::Transient, HOUR_MS).await;
    done_at_once_and_gone(&world, "stale-record", "close").await;
    let record = operation(&world, "msg_1", OperationName::SettleUsage).await.unwrap();
    assert_eq!(record.state, OperationState::Closed);
}

/// The job is completed and its settlement is recorded as done, although nothing was settled.
async fn unsettled() -> std::sync::Arc<local::world::World> {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", OperationName::CompleteJob).await;
    relay_has_run(&world).await;
    plant(&world, OperationState::Closed, Class::AlreadyDone, 0).await;
    later(&world, 3).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ended_without_its_settlement_is_settled() {
    let world = unsettled().await;
    done_at_once_and_gone(&world, "unsettled", "retry").await;
    assert_settled(&world, "j1", "msg_1").await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ended_by_an_event_without_a_receipt_is_a_persons() {
    let world = unsettled().await;
    remove(&world, "events", EVENT, "r");
    remove(&world, "events", EVENT, SETTLE);
    let run = reconcile(&world, "first").await;
    assert_eq!(told(&run), ["unsettled/person/open"], "{run}");
    assert_eq!((&run["cases"][0]["amount"], &run["cases"][0]["currency"]), (&json!("5.000000"), &json!("USD")));
    let (status, problem) = world.decide_case("first", &only(&run), "apply").await;
    assert_eq!((status, &problem["code"]), (409, &json!("not-possible")), "there is nothing to apply");
    assert_eq!(world.decide_case("first", &only(&run), "dismiss").await.0, 200);
    assert_eq!(told(&reconcile(&world, "last").await), [""; 0], "what a person let stand is not told again");
}

#[tokio::test(start_paused = true)]
async fn a_close_without_its_transition_is_a_persons() {
    let world = settled().await;
    remove(&world, "jobs", "J|t1|j1", "t|000001");
    let run = reconcile(&world, "first").await;
    // The receipt's own operation has lost its effect as well, and is dispatched again.
    assert_eq!(told(&run), ["close-without-transition/person/open", "not-dispatched/retry/resolved"], "{run}");
    settle(&world).await;
    // The retry wrote the transition again: the fact is gone, and a later look says so.
    assert_eq!(told(&reconcile(&world, "second").await), [""; 0]);
    let id = run["cases"][0]["case"].as_str().unwrap();
    let (_, case) = world.control("GET", &format!("/control/reconciliations/first/cases/{id}"), None).await;
    assert_eq!((&case["state"], &case["resolution"]), (&json!("resolved"), &json!("gone")), "{case}");
    assert_eq!(case["decisions"][0]["actor"], "reconciler");
}

#[tokio::test(start_paused = true)]
async fn a_charge_that_is_not_the_price_of_its_usage_is_made_up_for_under_a_named_key() {
    let world = settled().await;
    // 2200 input tokens instead of 1200: 0.003 more at 3.00 per million.
    tamper(&world, "jobs", "J|t1|j1", "t|000001", |item| item["us"]["M"]["input_tokens"] = json!({"S": "2200"}));
    let case = found_applied_and_gone(&world, "usage-mismatch/compensate/open").await;
    let job = world.job("j1").await;
    let adjust = &job["settlements"][1];
    assert_eq!((&adjust["kind"], &adjust["amount"]), (&json!("adjust"), &json!("0.003000")), "{job}");
    let reference = format!("recon.{}.1", case["case"].as_str().unwrap());
    assert_eq!(adjust["reference"], json!(reference));
    // 100 - 0.0087 - 0.003
    assert_eq!(balance(&world, "w1").await, ("99.988300".to_owned(), "0.000000".to_owned()));
    let (status, again) = world.decide_case("first", case["case"].as_str().unwrap(), "apply").await;
    assert_eq!((status, again["decisions"].as_array().map(Vec::len)), (200, Some(1)), "applying again changes nothing");
    assert_eq!(balance(&world, "w1").await.0, "99.988300");
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_the_expiry_sweep_missed_is_given_back() {
    let world = submitted().await;
    // 120 h of life, one hour of margin; the sweep's cursor is moved past it.
    later(&world, 121).await;
    let bucket = crate::harness::now_ms(&world).div_euclid(domain::limits::EXPIRY_BUCKET_MS);
    for shard in 0..domain::limits::SHARDS {
        world.stack.app.store.advance_cursor(store::Cursor::Expiry, shard, bucket).await.unwrap();
    }
    done_at_once_and_gone(&world, "hold-expired", "retry").await;
    assert_eq!(balance(&world, "w1").await, ("100.000000".to_owned(), "0.000000".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_old_review_and_an_old_conflict_are_told_once_each() {
    let world = submitted().await;
    let no_usage = event_body("job.completed", "j1", json!({}));
    accepted(&world, "msg_1", &no_usage).await;
    assert_eq!(world.send("msg_1", &completed("j1")).await, (200, "quarantined".to_owned()));
    world.drain().await.unwrap();
    later(&world, 23).await;
    let classes = |run: &serde_json::Value| {
        let mut all = told(run);
        all.retain(|case| case.starts_with("old-"));
        all
    };
    assert_eq!(classes(&reconcile(&world, "first").await), [""; 0], "not a day old yet");
    later(&world, 2).await;
    let expected = ["old-conflict/person/open", "old-review/person/open"];
    let run = reconcile(&world, "second").await;
    assert_eq!(classes(&run), expected);
    let again = reconcile(&world, "third").await;
    assert_eq!(classes(&again), expected);
    assert_eq!(
        (&again["classes"]["old-review"]["new"], &again["classes"]["old-conflict"]["new"]),
        (&json!(0), &json!(0))
    );
    // The review is resolved by the usage that comes after all: nobody is reminded any more.
    world.provider.emit("acme", "e1", &completed("j1"), crate::harness::now_ms(&world) - 3 * HOUR_MS).unwrap();
    let run = world.reconcile("fourth", json!({"provider": "acme"})).await.unwrap();
    let id = only(&run);
    assert_eq!(world.decide_case("fourth", &id, "apply").await.0, 200);
    let last = reconcile(&world, "fifth").await;
    assert_eq!(told(&last), ["old-conflict/person/open"], "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_receipt_that_cannot_be_read_is_a_persons() {
    let world = settled().await;
    tamper(&world, "events", EVENT, "r", |item| item["en"] = json!({"S": "canary-of-a-payload"}));
    let run = reconcile(&world, "first").await;
    assert_eq!(told(&run), ["unreadable/person/open"], "{run}");
    assert!(!run.to_string().contains("canary"), "{run}");
}

/// The hold expired, then the job was completed, and the record of its settlement says this.
async fn late(state: OperationState, class: Class) -> std::sync::Arc<World> {
    let world = submitted_briefly().await;
    later(&world, 6).await; // the hold lives for five hours
    settle(&world).await;
    assert_eq!(world.job("j1").await["settlements"][0]["kind"], "expire");
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", OperationName::CompleteJob).await;
    plant(&world, state, class, 0).await;
    later(&world, 3).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_success_whose_late_capture_is_missing_is_charged() {
    let world = late(OperationState::Closed, Class::AlreadyDone).await;
    done_at_once_and_gone(&world, "unsettled", "retry").await;
    let job = world.job("j1").await;
    let capture = &job["settlements"][1];
    assert_eq!((&capture["kind"], &capture["amount"]), (&json!("late-capture"), &json!("0.008700")), "{job}");
    assert_eq!(balance(&world, "w1").await, ("99.991300".to_owned(), "0.000000".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_late_capture_that_waits_or_that_a_person_gave_up_is_nobodys_finding() {
    for (state, class) in [(OperationState::Review, Class::FundsShort), (OperationState::Closed, Class::Dismissed)] {
        let world = late(state, class).await;
        assert_eq!(told(&reconcile(&world, "first").await), [""; 0], "{state:?}");
        assert_eq!(balance(&world, "w1").await.0, "100.000000", "{state:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_review_whose_effect_exists_is_a_stale_record_and_no_old_review() {
    let world = settled().await;
    plant(&world, OperationState::Review, Class::Transient, 25 * HOUR_MS).await;
    let run = world.reconcile("reviews", json!({"kinds": ["reviews"]})).await.unwrap();
    assert_eq!((told(&run), &run["examined"]), (vec![], &json!(1)), "{run}");
    done_at_once_and_gone(&world, "stale-record", "close").await;
}

#[tokio::test(start_paused = true)]
async fn a_correction_of_a_partial_run_does_not_cost_a_successs_minimum() {
    let mut config: WorldConfig = brief();
    config.providers =
        config.providers.replacen("overage = \"review\"", "overage = \"review\"\nbill_partial = true", 1);
    config.prices = config.prices.replacen("currency = \"USD\"", "currency = \"USD\"\nminimum = \"0.50\"", 1);
    let world = submitted_with(config).await;
    let used = |input: u32| json!({"input_tokens": input, "output_tokens": 340});
    accepted(&world, "msg_1", &event_body("job.failed", "j1", json!({"usage": used(1_200)}))).await;
    world.drain().await.unwrap();
    // 1200 x 3.00 and 340 x 15.00 per million.
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
    let more = json!({"usage": used(2_200), "correction_id": "c1", "sequence": 4});
    accepted(&world, "msg_2", &event_body("usage.corrected", "j1", more)).await;
    world.drain().await.unwrap();
    // 1000 x 3.00 per million on top.
    let job = world.job("j1").await;
    assert_eq!(job["settlements"][1]["amount"], "0.003000", "{job}");
    assert_eq!(balance(&world, "w1").await, ("99.988300".to_owned(), "0.000000".to_owned()));
    later(&world, 3).await;
    assert_eq!(told(&reconcile(&world, "first").await), [""; 0]);
}
