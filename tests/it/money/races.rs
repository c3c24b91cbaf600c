//! Two writers at once: each test names one race, holds one writer back between its reads and its commit
//! (or invokes a consumer twice side by side), and says what must stand afterwards.

use domain::ids::ItemId;
use domain::message::Message;
use domain::operation::{OperationKey, OperationName};
use futures_util::future::join_all;
use local::stack::Function;
use local::world::Hooks;
use runtime::sqs::{SqsAttributes, SqsEvent, SqsRecord};
use serde_json::json;

use super::scene::{Scene, meanwhile, slow};

fn pair(available: &str, held: &str) -> (String, String) {
    (available.to_owned(), held.to_owned())
}

/// The batch that a consumer gets when these events' operations come at once.
fn batch(events: &[&str], name: OperationName) -> SqsEvent {
    let record = |event: &&str| {
        let key = OperationKey { event: format!("acme/{event}").parse().unwrap(), item: ItemId::only(), name };
        let attributes = SqsAttributes { message_group_id: "g".to_owned(), approximate_receive_count: "1".to_owned() };
        let body = Message::new(key, 0, "g".to_owned()).to_json();
        SqsRecord { message_id: (*event).to_owned(), body, attributes }
    };
    SqsEvent { records: events.iter().map(record).collect() }
}

/// The billing consumer at work on one event, beside whatever the event sources do.
async fn bill(scene: &Scene, event: &str, name: OperationName) {
    let answer = billing::handle(&scene.world.stack.app, batch(&[event], name)).await;
    assert!(answer.batch_item_failures.is_empty());
}

/// The job consumer at work on one event.
async fn complete(scene: &Scene, event: &str) {
    let answer = job::handle(&scene.world.stack.app, batch(&[event], OperationName::CompleteJob)).await;
    assert!(answer.batch_item_failures.is_empty());
}

const MINUTE_MS: i64 = 60_000;

#[tokio::test(start_paused = true)]
async fn an_event_that_grows_too_old_between_its_consumers_keeps_the_money_for_a_person() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    let body = scene.body("job.completed", "j1", json!({"usage": {"tokens": 2_000_000}}));
    scene.world.clock.advance(179 * MINUTE_MS); // it may act for three hours
    scene.world.send("e1", &body).await;
    complete(&scene, "e1").await;
    scene.world.clock.advance(2 * MINUTE_MS);
    bill(&scene, "e1", OperationName::SettleUsage).await;
    // Its own transition is not its own settlement: not done, and not forgotten.
    assert_eq!(scene.operations("e1").await, ["complete-job done", "settle-usage needs-review expired"]);
    assert_eq!(scene.wallet().await, pair("8.000000", "2.000000"));
    // Neither the sweep nor another event takes what is the first event's.
    scene.relay_once().await;
    scene.completed("e2", "j1", 2_000_000).await;
    assert_eq!(scene.operations("e2").await, ["complete-job noop already-done", "settle-usage noop already-done"]);
    assert_eq!(scene.wallet().await, pair("8.000000", "2.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_settlement_wrote_the_transition_is_done_however_old_it_grows() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    let body = scene.body("job.completed", "j1", json!({"usage": {"tokens": 2_000_000}}));
    scene.world.clock.advance(179 * MINUTE_MS);
    scene.world.send("e1", &body).await;
    bill(&scene, "e1", OperationName::SettleUsage).await;
    scene.world.clock.advance(2 * MINUTE_MS);
    complete(&scene, "e1").await;
    bill(&scene, "e1", OperationName::SettleUsage).await; // its message comes again
    assert_eq!(scene.operations("e1").await, ["complete-job done", "settle-usage done"]);
    assert_eq!(scene.wallet().await, pair("9.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_reserve_between_a_settlements_read_and_its_commit_loses_nothing() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Billing, "TransactWriteItems", 1);
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
    let reserve = async {
        meanwhile().await;
        assert_eq!(scene.submit("j2", "w1", "5.00", "strict").await, 201);
    };
    let (drained, ()) = tokio::join!(scene.world.drain(), reserve);
    drained.unwrap();
    // 10.00 - 1.00 captured - 5.00 reserved.
    assert_eq!(scene.wallet().await, pair("4.000000", "5.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_reserve_that_takes_the_money_of_an_overage_turns_it_into_a_review() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Billing, "TransactWriteItems", 1);
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "open").await;
    // 7.00: 2.00 of the hold and 5.00 of the 8.00 available, of which 6.00 are reserved meanwhile.
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 14_000_000}})).await;
    let reserve = async {
        meanwhile().await;
        assert_eq!(scene.submit("j2", "w1", "6.00", "open").await, 201);
    };
    let (drained, ()) = tokio::join!(scene.world.drain(), reserve);
    drained.unwrap();
    assert_eq!(scene.operations("e1").await, ["complete-job done", "settle-usage needs-review funds-short"]);
    assert_eq!(scene.wallet().await, pair("2.000000", "8.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_funding_between_read_and_commit_makes_the_settlement_decide_again() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Billing, "TransactWriteItems", 1);
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
    scene.drain_while_funded().await;
    assert_eq!(scene.wallet().await, pair("10.000000", "0.000000")); // 10.00 + 1.00 - 1.00
    assert_eq!(scene.world.wallet("w1").await["sequence"], 3);
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_correction_below_what_was_reversed_is_a_persons() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.completed("e1", "j1", 4_000_000).await; // 2.00
    assert_eq!(scene.act("j1", "reverse", "r1", "1.50").await, 201);
    scene.corrected("c1", "j1", "c1", 1, 2_000_000).await; // 1.00, and 1.50 was given back
    assert_eq!(scene.operations("c1").await, ["adjust-usage needs-review not-possible"]);
    assert_eq!(scene.wallet().await, pair("9.500000", "0.000000"));
    scene.corrected("c2", "j1", "c2", 2, 3_000_000).await; // 1.50 is just enough
    assert_eq!(scene.wallet().await, pair("10.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_reversal_between_a_corrections_read_and_its_commit_is_seen() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Billing, "TransactWriteItems", 2); // the capture's and the correction's
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.completed("e1", "j1", 4_000_000).await; // 2.00
    let more = json!({"correction_id": "c1", "sequence": 1, "usage": {"tokens": 2_000_000}});
    scene.send("c1", "usage.corrected", "j1", more).await;
    let reverse = async {
        meanwhile().await;
        assert_eq!(scene.act("j1", "reverse", "r1", "1.50").await, 201);
    };
    let (drained, ()) = tokio::join!(scene.world.drain(), reverse);
    drained.unwrap();
    assert_eq!(scene.operations("c1").await, ["adjust-usage needs-review not-possible"]);
    assert_eq!(scene.wallet().await, pair("9.500000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn an_extension_after_the_transition_is_refused_while_the_close_is_on_its_way() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Billing, "TransactWriteItems", 1);
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
    let extend = async {
        meanwhile().await;
        assert_eq!(scene.act("j1", "extend", "x1", "3.00").await, 409);
    };
    let (drained, ()) = tokio::join!(scene.world.drain(), extend);
    drained.unwrap();
    assert_eq!(scene.wallet().await, pair("9.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn an_extension_between_a_settlements_read_and_its_close_is_closed_with_it() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Control, "TransactWriteItems", 3); // two of the set-up, then the settlement's
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
    let extend = async {
        meanwhile().await;
        assert_eq!(scene.act("j1", "extend", "x1", "3.00").await, 201);
    };
    // No transition yet: the settlement will write it with the close.
    tokio::join!(bill(&scene, "e1", OperationName::SettleUsage), extend);
    assert_eq!(scene.settlements("j1").await, ["capture 1.000000 4.000000"]);
    assert_eq!(scene.wallet().await, pair("9.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn an_extension_whose_job_is_closed_meanwhile_reserves_nothing() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Control, "TransactWriteItems", 3); // two of the set-up, then the extension's
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.send("e1", "job.failed", "j1", json!({})).await;
    let close = async {
        meanwhile().await;
        scene.world.drain().await.unwrap();
    };
    let (status, ()) = tokio::join!(scene.act("j1", "extend", "x1", "3.00"), close);
    assert_eq!(status, 409);
    assert_eq!(scene.wallet().await, pair("10.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn concurrent_corrections_of_one_job_never_adjust_twice() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Control, "TransactWriteItems", 4);
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.completed("e1", "j1", 2_000_000).await; // 1.00
    for (event, reference, order, tokens) in
        [("c1", "a", 1, 3_000_000), ("c2", "a", 1, 3_000_000), ("c3", "b", 2, 3_400_000)]
    {
        let more = json!({"correction_id": reference, "sequence": order, "usage": {"tokens": tokens}});
        scene.send(event, "usage.corrected", "j1", more).await;
    }
    // Two events of one correction, each at work twice, and a later correction, all at once.
    let works = ["c1", "c2", "c3", "c1", "c2"].map(|event| bill(&scene, event, OperationName::AdjustUsage));
    join_all(works).await;
    scene.world.drain().await.unwrap();
    // Whoever was first: it costs 1.70 now, as the newest correction says.
    assert_eq!(scene.wallet().await, pair("8.300000", "0.000000"));
    let adjusts = scene.settlements("j1").await.len() - 1;
    assert!(adjusts == 1 || adjusts == 2, "{adjusts}");
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn two_late_successes_never_capture_twice() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Control, "TransactWriteItems", 4); // two of the set-up, then both captures
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.outlive().await;
    for event in ["e1", "e2"] {
        scene.send(event, "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
    }
    let works = ["e1", "e2", "e1"].map(|event| bill(&scene, event, OperationName::SettleUsage));
    join_all(works).await;
    scene.world.drain().await.unwrap();
    assert_eq!(scene.settlements("j1").await, ["expire 0.000000 2.000000", "late-capture 1.000000 0.000000"]);
    assert_eq!(scene.wallet().await, pair("9.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_success_that_commits_between_the_sweeps_read_and_its_close_is_the_one_close() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Relay, "TransactWriteItems", 1);
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.world.clock.advance(72 * MINUTE_MS);
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
    let success = async {
        meanwhile().await;
        scene.world.drain().await.unwrap()
    };
    let (report, _) = tokio::join!(scene.world.stack.relay(), success);
    assert_eq!(report.unwrap().expired, 0);
    assert_eq!(scene.settlements("j1").await, ["capture 1.000000 1.000000"]);
    assert_eq!(scene.wallet().await, pair("9.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn an_expiry_that_commits_between_a_successs_read_and_its_close_makes_it_a_late_capture() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Control, "TransactWriteItems", 3); // two of the set-up, then the settlement's
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.world.clock.advance(72 * MINUTE_MS);
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
    let sweep = async {
        meanwhile().await;
        scene.world.stack.relay().await.unwrap()
    };
    let ((), report) = tokio::join!(bill(&scene, "e1", OperationName::SettleUsage), sweep);
    assert_eq!(report.expired, 1);
    assert_eq!(scene.settlements("j1").await, ["expire 0.000000 2.000000", "late-capture 1.000000 0.000000"]);
    assert_eq!(scene.wallet().await, pair("9.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn cancel_and_completion_race_and_the_loser_is_recorded() {
    for (held_back, times, status, wallet, last) in [
        (Function::Control, 3, 409, "9.000000", "settle-usage done"),
        (Function::Billing, 1, 409, "9.000000", "settle-usage done"), // the transition is the job consumer's
    ] {
        let hooks = Hooks::default();
        slow(&hooks, held_back, "TransactWriteItems", times);
        let scene = Scene::hooked(&hooks).await;
        scene.open("10.00", &[("j1", "2.00")], "strict").await;
        scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
        let cancel = async {
            if held_back == Function::Billing {
                meanwhile().await;
            }
            scene.act("j1", "cancel", "k1", "").await
        };
        let drain = async {
            if held_back == Function::Control {
                meanwhile().await;
            }
            scene.world.drain().await
        };
        let (answered, drained) = tokio::join!(cancel, drain);
        drained.unwrap();
        assert_eq!(answered, status, "{held_back:?}");
        assert_eq!(scene.wallet().await, pair(wallet, "0.000000"), "{held_back:?}");
        assert_eq!(scene.operations("e1").await, ["complete-job done", last], "{held_back:?}");
        scene.clean();
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_between_a_settlements_read_and_its_commit_wins() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Control, "TransactWriteItems", 3); // two of the set-up, then the settlement's
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.send("e1", "job.completed", "j1", json!({"usage": {"tokens": 2_000_000}})).await;
    let cancel = async {
        meanwhile().await;
        scene.act("j1", "cancel", "k1", "").await
    };
    let ((), status) = tokio::join!(bill(&scene, "e1", OperationName::SettleUsage), cancel);
    assert_eq!(status, 201);
    scene.world.drain().await.unwrap();
    assert_eq!(scene.settlements("j1").await, ["release 0.000000 2.000000"]);
    assert_eq!(
        scene.operations("e1").await,
        ["complete-job noop late-success", "settle-usage needs-review late-success"]
    );
    assert_eq!(scene.wallet().await, pair("10.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn of_fifty_holds_of_3_at_once_a_wallet_of_10_bears_exactly_3() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Control, "TransactWriteItems", 51); // all read before any commits
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[], "").await;
    let submits = (0..50).map(|job| {
        let scene = &scene;
        async move { scene.submit(&format!("j{job}"), "w1", "3.00", "strict").await }
    });
    let statuses = join_all(submits).await;
    let count = |status: u16| statuses.iter().filter(|s| **s == status).count();
    assert_eq!((count(201), count(402)), (3, 47), "{statuses:?}");
    assert_eq!(scene.wallet().await, pair("1.000000", "9.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn led_03_of_two_debits_of_8_at_once_a_wallet_of_10_bears_one() {
    let hooks = Hooks::default();
    slow(&hooks, Function::Control, "TransactWriteItems", 5); // three of the set-up, then both debits
    let scene = Scene::hooked(&hooks).await;
    scene.open("10.00", &[("j1", "1.00"), ("j2", "1.00")], "open").await;
    scene.outlive().await;
    for (event, job) in [("e1", "j1"), ("e2", "j2")] {
        scene.send(event, "job.completed", job, json!({"usage": {"tokens": 16_000_000}})).await;
    }
    join_all(["e1", "e2"].map(|event| bill(&scene, event, OperationName::SettleUsage))).await;
    scene.world.drain().await.unwrap();
    assert_eq!(scene.wallet().await, pair("2.000000", "0.000000"));
    let mut ends = Vec::new();
    for event in ["e1", "e2"] {
        ends.push(scene.operations(event).await[1].clone());
    }
    ends.sort();
    assert_eq!(ends, ["settle-usage done", "settle-usage needs-review funds-short"]);
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn led_04_a_hold_that_the_sweep_released_is_not_released_again_by_the_settlement() {
    let scene = Scene::new().await;
    scene.open("100.00", &[("j1", "100.00")], "strict").await;
    scene.outlive().await;
    assert_eq!(scene.wallet().await, pair("100.000000", "0.000000"));
    scene.completed("e1", "j1", 60_000_000).await; // 30.00, after the sweep
    scene.outlive().await; // and the sweep again
    assert_eq!(scene.settlements("j1").await, ["expire 0.000000 100.000000", "late-capture 30.000000 0.000000"]);
    assert_eq!(scene.wallet().await, pair("70.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn led_06_after_an_end_every_other_end_is_refused_and_moves_nothing() {
    // Hold, void, capture; hold, void, void; hold, capture, void.
    let scene = Scene::new().await;
    scene.open("10.00", &[("a", "2.00"), ("b", "2.00"), ("c", "2.00")], "strict").await;
    assert_eq!(scene.act("a", "cancel", "k1", "").await, 201);
    scene.completed("e1", "a", 2_000_000).await;
    assert_eq!(scene.operations("e1").await[1], "settle-usage needs-review late-success");
    assert_eq!(scene.act("b", "cancel", "k1", "").await, 201);
    assert_eq!(scene.act("b", "cancel", "k2", "").await, 409);
    scene.event("e2", "job.canceled", "b", json!({})).await;
    assert_eq!(scene.operations("e2").await[1], "settle-usage noop already-done");
    scene.completed("e3", "c", 2_000_000).await;
    assert_eq!(scene.act("c", "cancel", "k1", "").await, 409);
    scene.event("e4", "job.canceled", "c", json!({})).await;
    assert_eq!(scene.operations("e4").await[1], "settle-usage noop outcome-decided");
    assert_eq!(scene.wallet().await, pair("9.000000", "0.000000"));
    scene.clean();
}
