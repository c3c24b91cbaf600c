//! Each phase of a job's money once, through the whole stack, with numbers worked out by hand. A token
//! costs half a micro: 2,000,000 tokens are 1.00.

use serde_json::json;

use super::scene::Scene;

fn pair(available: &str, held: &str) -> (String, String) {
    (available.to_owned(), held.to_owned())
}

#[tokio::test(start_paused = true)]
async fn capture_takes_the_whole_hold_a_part_or_nothing() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("whole", "1.00"), ("part", "2.00"), ("none", "3.00")], "strict").await;
    assert_eq!(scene.wallet().await, pair("4.000000", "6.000000"));
    scene.completed("e1", "whole", 2_000_000).await;
    scene.completed("e2", "part", 1_000_000).await; // 0.50 of 2.00
    scene.completed("e3", "none", 0).await; // zero usage is a capture of zero
    assert_eq!(scene.settlements("whole").await, ["capture 1.000000 0.000000"]);
    assert_eq!(scene.settlements("part").await, ["capture 0.500000 1.500000"]);
    assert_eq!(scene.settlements("none").await, ["capture 0.000000 3.000000"]);
    assert_eq!(scene.wallet().await, pair("8.500000", "0.000000")); // 10.00 - 1.00 - 0.50
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn no_usage_in_a_success_is_not_zero() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.event("e1", "job.completed", "j1", json!({})).await;
    assert_eq!(scene.operations("e1").await, ["complete-job done", "settle-usage needs-review no-usage"]);
    assert_eq!(scene.wallet().await, pair("8.000000", "2.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_failure_releases_the_hold_and_bills_partial_work_only_by_policy() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    assert_eq!(scene.submit("j2", "w1", "2.00", "partial").await, 201);
    for job in ["j1", "j2"] {
        scene.event(&format!("e-{job}"), "job.failed", job, json!({"usage": {"tokens": 600_000}})).await;
    }
    assert_eq!(scene.settlements("j1").await, ["release 0.000000 2.000000"]);
    assert_eq!(scene.settlements("j2").await, ["capture 0.300000 1.700000"]);
    assert_eq!(scene.wallet().await, pair("9.700000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_success_after_expiry_is_captured_late() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.outlive().await;
    assert_eq!(scene.settlements("j1").await, ["expire 0.000000 2.000000"]);
    assert_eq!(scene.wallet().await, pair("10.000000", "0.000000"));
    scene.completed("e1", "j1", 3_000_000).await;
    assert_eq!(scene.settlements("j1").await, ["expire 0.000000 2.000000", "late-capture 1.500000 0.000000"]);
    assert_eq!(scene.wallet().await, pair("8.500000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_late_success_with_too_little_available_waits_for_a_person() {
    let scene = Scene::new().await;
    scene.open("2.00", &[("j1", "2.00")], "strict").await;
    scene.outlive().await;
    assert_eq!(scene.submit("j2", "w1", "1.00", "strict").await, 201);
    let body = scene.body("job.completed", "j1", json!({"usage": {"tokens": 3_000_000}})); // 1.50 of 1.00 available
    scene.world.send("e1", &body).await;
    scene.world.drain().await.unwrap();
    assert_eq!(scene.operations("e1").await, ["complete-job done", "settle-usage needs-review funds-short"]);
    assert_eq!(scene.wallet().await, pair("1.000000", "1.000000"));
    // The wallet is funded, and the provider's redeliver button is pressed.
    let more = json!({"amount": "0.50", "reference": "second"});
    assert_eq!(scene.world.control("POST", "/control/tenants/t1/wallets/w1/fund", Some(more)).await.0, 201);
    scene.world.send("e1", &body).await;
    scene.world.drain().await.unwrap();
    assert_eq!(scene.settlements("j1").await, ["expire 0.000000 2.000000", "late-capture 1.500000 0.000000"]);
    assert_eq!(scene.wallet().await, pair("0.000000", "1.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_charge_above_the_hold_is_capped_or_taken_from_available_or_reviewed() {
    let scene = Scene::new().await;
    scene.open("10.00", &[], "").await;
    for model in ["capped", "open", "strict"] {
        assert_eq!(scene.submit(model, "w1", "1.00", model).await, 201);
        scene.completed(&format!("e-{model}"), model, 5_000_000).await; // 2.50
    }
    assert_eq!(scene.settlements("capped").await, ["capture 1.000000 0.000000"]);
    let capped = scene.world.job("capped").await;
    assert_eq!(capped["settlements"][0]["uncharged"], "1.500000");
    assert_eq!(scene.settlements("open").await, ["capture 2.500000 0.000000"]);
    assert_eq!(scene.operations("e-strict").await, ["complete-job done", "settle-usage needs-review overage"]);
    assert_eq!(scene.wallet().await, pair("5.500000", "1.000000")); // 10 - 1.00 - 2.50 - 1.00 still held
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn the_cap_holds_for_late_captures_and_corrections_too() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("now", "1.00"), ("late", "1.00")], "capped").await;
    scene.completed("e1", "now", 5_000_000).await; // 2.50, capped at 1.00
    scene.corrected("e2", "now", "c1", 1, 4_000_000).await; // 2.00 instead of 2.50: still 1.00
    scene.corrected("e3", "now", "c2", 2, 1_000_000).await; // 0.50: 0.50 back
    scene.outlive().await;
    scene.completed("e4", "late", 5_000_000).await;
    assert_eq!(
        scene.settlements("now").await,
        ["capture 1.000000 0.000000", "adjust 0.000000 0.000000", "adjust -0.500000 0.000000"]
    );
    assert_eq!(scene.settlements("late").await, ["expire 0.000000 1.000000", "late-capture 1.000000 0.000000"]);
    assert_eq!(scene.wallet().await, pair("8.500000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_late_charge_above_the_hold_is_reviewed_where_overage_is() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "1.00")], "strict").await;
    assert_eq!(scene.submit("j2", "w1", "1.00", "open").await, 201);
    scene.outlive().await;
    scene.completed("e1", "j1", 5_000_000).await; // 2.50 of a hold of 1.00
    scene.completed("e2", "j2", 5_000_000).await;
    assert_eq!(scene.operations("e1").await, ["complete-job done", "settle-usage needs-review overage"]);
    assert_eq!(scene.settlements("j2").await, ["expire 0.000000 1.000000", "late-capture 2.500000 0.000000"]);
    assert_eq!(scene.wallet().await, pair("7.500000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_second_failure_with_other_billed_usage_is_one_review() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "partial").await;
    for (id, tokens) in [("e1", 600_000), ("e2", 600_000), ("e3", 800_000)] {
        scene.event(id, "job.failed", "j1", json!({"usage": {"tokens": tokens}})).await;
    }
    assert_eq!(scene.settlements("j1").await, ["capture 0.300000 1.700000"]);
    assert_eq!(scene.operations("e2").await, ["complete-job noop already-done", "settle-usage noop already-done"]);
    assert_eq!(scene.operations("e3").await, ["complete-job noop conflict", "settle-usage needs-review conflict"]);
    assert_eq!(scene.wallet().await, pair("9.700000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn corrections_adjust_by_the_difference_once_and_older_ones_do_nothing() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.completed("e1", "j1", 2_000_000).await; // 1.00
    scene.corrected("e2", "j1", "c1", 5, 3_000_000).await; // 1.50: up by 0.50
    scene.corrected("e3", "j1", "c1", 5, 3_000_000).await; // another event of the same correction
    scene.corrected("e4", "j1", "c0", 4, 9_000_000).await; // older
    scene.corrected("e5", "j1", "cx", 5, 9_000_000).await; // equal sequence
    scene.corrected("e6", "j1", "c2", 6, 500_000).await; // 0.25: down by 1.25
    assert_eq!(
        scene.settlements("j1").await,
        ["capture 1.000000 1.000000", "adjust 0.500000 0.000000", "adjust -1.250000 0.000000"]
    );
    assert_eq!(scene.operations("e3").await, ["adjust-usage noop already-done"]);
    assert_eq!(scene.operations("e4").await, ["adjust-usage noop superseded"]);
    assert_eq!(scene.operations("e5").await, ["adjust-usage needs-review conflict"]);
    assert_eq!(scene.wallet().await, pair("9.750000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_correction_waits_for_the_capture_and_is_a_persons_when_none_can_come() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00"), ("j2", "2.00")], "strict").await;
    scene.corrected("c1", "j1", "c1", 1, 3_000_000).await;
    assert_eq!(scene.operations("c1").await, ["adjust-usage retrying not-yet"]);
    scene.completed("e1", "j1", 2_000_000).await; // 1.00
    scene.world.clock.advance(60_000);
    scene.relay_once().await;
    assert_eq!(scene.settlements("j1").await, ["capture 1.000000 1.000000", "adjust 0.500000 0.000000"]);
    scene.event("f2", "job.failed", "j2", json!({})).await;
    scene.corrected("c2", "j2", "c2", 1, 3_000_000).await;
    assert_eq!(scene.operations("c2").await, ["adjust-usage needs-review not-possible"]);
    assert_eq!(scene.wallet().await, pair("8.500000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn reversals_are_keyed_and_never_exceed_what_was_captured() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    assert_eq!(scene.act("j1", "reverse", "r0", "0.10").await, 409); // nothing was captured
    scene.completed("e1", "j1", 2_000_000).await; // 1.00
    assert_eq!(scene.act("j1", "reverse", "r1", "0.40").await, 201);
    assert_eq!(scene.act("j1", "reverse", "r1", "0.40").await, 200);
    assert_eq!(scene.act("j1", "reverse", "r1", "0.41").await, 409); // other content under the same key
    assert_eq!(scene.act("j1", "reverse", "r2", "0.600001").await, 409); // 1.000001 of 1.00
    assert_eq!(scene.act("j1", "reverse", "r3", "0.60").await, 201);
    assert_eq!(scene.wallet().await, pair("10.000000", "0.000000"));
    assert_eq!(
        scene.settlements("j1").await,
        ["capture 1.000000 1.000000", "reverse 0.400000 0.000000", "reverse 0.600000 0.000000"]
    );
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_releases_once_and_a_success_after_it_is_one_review() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    assert_eq!(scene.act("j1", "cancel", "k1", "").await, 201);
    assert_eq!(scene.act("j1", "cancel", "k1", "").await, 200);
    assert_eq!(scene.act("j1", "cancel", "k2", "").await, 409);
    scene.completed("e1", "j1", 2_000_000).await;
    assert_eq!(
        scene.operations("e1").await,
        ["complete-job noop late-success", "settle-usage needs-review late-success"]
    );
    assert_eq!(scene.settlements("j1").await, ["release 0.000000 2.000000"]);
    assert_eq!(scene.wallet().await, pair("10.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_expiry_is_the_transition_alone() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "strict").await;
    scene.outlive().await;
    assert_eq!(scene.act("j1", "cancel", "k1", "").await, 201);
    assert_eq!(scene.world.job("j1").await["transitions"][0]["outcome"], "canceled");
    assert_eq!(scene.settlements("j1").await, ["expire 0.000000 2.000000"]);
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_provisional_failure_may_become_a_success_and_may_not_be_canceled() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "2.00")], "soft").await;
    scene.event("e1", "job.failed", "j1", json!({"usage": {"tokens": 600_000}})).await;
    assert_eq!(scene.act("j1", "cancel", "k1", "").await, 409);
    scene.completed("e2", "j1", 3_000_000).await; // 1.50 from available, as version 2
    assert_eq!(scene.settlements("j1").await, ["release 0.000000 2.000000", "late-capture 1.500000 0.000000"]);
    let job = scene.world.job("j1").await;
    let versions: Vec<_> = job["transitions"].as_array().unwrap().iter().map(|t| t["version"].clone()).collect();
    assert_eq!((versions, &job["settlements"][1]["version"]), (vec![json!(1), json!(2)], &json!(2)));
    assert_eq!(scene.wallet().await, pair("8.500000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_extended_by_control_and_by_event_where_the_profile_allows_it() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("j1", "1.00")], "strict").await;
    assert_eq!(scene.submit("j2", "w1", "1.00", "capped").await, 201);
    assert_eq!(scene.act("j2", "extend", "x", "1.00").await, 409); // not extendable
    scene.world.clock.advance(30 * 60_000);
    assert_eq!(scene.act("j1", "extend", "x1", "2.00").await, 201);
    assert_eq!(scene.act("j1", "extend", "x1", "2.00").await, 200);
    assert_eq!(scene.act("j1", "extend", "x1", "3.00").await, 409);
    assert_eq!(scene.act("j1", "extend", "x2", "9.00").await, 402);
    scene.event("e1", "job.extended", "j1", json!({"extension_id": "x3", "hold": "0.50"})).await;
    scene.event("e2", "job.extended", "j1", json!({"extension_id": "x3", "hold": "0.50"})).await;
    assert_eq!(scene.operations("e2").await, ["extend-hold noop already-done"]);
    assert_eq!(scene.wallet().await, pair("5.500000", "4.500000")); // 3.50 and 1.00
    // The first hour is over: only the hold that was not extended is given back.
    scene.world.clock.advance(42 * 60_000);
    scene.relay_once().await;
    assert_eq!(scene.wallet().await, pair("6.500000", "3.500000"));
    scene.completed("e3", "j1", 6_000_000).await; // 3.00 at the price of submission, above the first hold
    assert_eq!(scene.settlements("j1").await, ["capture 3.000000 0.500000"]);
    assert_eq!(scene.act("j1", "extend", "x4", "1.00").await, 409); // closed
    assert_eq!(scene.wallet().await, pair("7.000000", "0.000000"));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_later_price_never_changes_a_settlement() {
    let scene = Scene::new().await;
    scene.open("10.00", &[("old", "2.00")], "strict").await;
    scene.world.clock.advance(31 * 60_000); // v1: 0.75 micros a token
    assert_eq!(scene.submit("new", "w1", "2.00", "strict").await, 201);
    scene.completed("e1", "old", 2_000_000).await;
    scene.completed("e2", "new", 2_000_000).await;
    assert_eq!(scene.settlements("old").await, ["capture 1.000000 1.000000"]);
    assert_eq!(scene.settlements("new").await, ["capture 1.500000 0.500000"]);
    assert_eq!(scene.world.job("old").await["settlements"][0]["price_version"], "v0");
    assert_eq!(scene.world.job("new").await["settlements"][0]["price_version"], "v1");
    scene.clean();
}
