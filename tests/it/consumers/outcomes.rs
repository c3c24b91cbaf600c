//! The job and settlement rules, as events find them: each ends in one effect, a no-op or one review.

use domain::operation::OperationName::{CompleteJob, SettleUsage};
use local::Function;
use local::world::{WorldConfig, completed, event_body};
use serde_json::json;

use crate::books::audit;
use crate::harness::*;

fn pair(state: &str, class: &str) -> (String, String) {
    (state.to_owned(), class.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_second_completion_with_other_usage_is_one_review_and_no_effect() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    let other = json!({"usage": {"input_tokens": 9999, "output_tokens": 340}});
    accepted(&world, "msg_2", &event_body("job.completed", "j1", other)).await;
    world.minutes(5).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await, pair("99.991300", "0.000000"));
    assert_eq!(open_reviews(&world).await, ["acme/msg_2 settle-usage"]);
    assert_eq!(state(&world, "msg_2", SettleUsage).await, pair("needs-review", "conflict"));
    assert_eq!(state(&world, "msg_2", CompleteJob).await, pair("noop", "conflict"));
    assert_eq!(world.explain("msg_2").await["status"], "needs-review");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_failure_and_a_cancellation_release_the_whole_hold() {
    for (kind, outcome) in [("job.failed", "failure"), ("job.canceled", "canceled")] {
        let world = submitted().await;
        let usage = json!({"usage": {"input_tokens": 1200, "output_tokens": 340}}); // acme bills no partial work
        accepted(&world, "msg_1", &event_body(kind, "j1", usage)).await;
        world.drain().await.unwrap();
        let job = world.job("j1").await;
        assert_eq!(job["transitions"][0]["outcome"], outcome, "{job}");
        let settlement = &job["settlements"][0];
        assert_eq!((&settlement["captured"], &settlement["released"]), (&json!("0.000000"), &json!("5.000000")));
        assert_eq!(balance(&world, "w1").await, pair("100.000000", "0.000000"));
        // A pure release has no place in the chain.
        assert_eq!(world.wallet("w1").await["sequence"], 1);
        assert_eq!(settlement["sequence"], json!(null));
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_the_success_is_a_no_op() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    accepted(&world, "msg_2", &event_body("job.failed", "j1", json!({}))).await;
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    for name in [CompleteJob, SettleUsage] {
        assert_eq!(state(&world, "msg_2", name).await, pair("noop", "outcome-decided"), "{name}");
    }
    assert_eq!(open_reviews(&world).await, [""; 0]);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_success_after_a_final_failure_is_one_review_and_charges_nothing() {
    let world = submitted().await;
    accepted(&world, "msg_1", &event_body("job.failed", "j1", json!({}))).await;
    accepted(&world, "msg_2", &completed("j1")).await;
    world.minutes(5).await.unwrap();
    let job = world.job("j1").await;
    assert_eq!(
        (job["transitions"].as_array().unwrap().len(), &job["transitions"][0]["outcome"]),
        (1, &json!("failure"))
    );
    assert_eq!(open_reviews(&world).await, ["acme/msg_2 settle-usage"]);
    assert_eq!(state(&world, "msg_2", SettleUsage).await, pair("needs-review", "late-success"));
    assert_eq!(balance(&world, "w1").await, pair("100.000000", "0.000000"));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn zero_usage_captures_nothing_and_no_usage_is_a_review() {
    let world = submitted().await;
    let zero = json!({"usage": {"input_tokens": 0, "output_tokens": 0}});
    accepted(&world, "msg_1", &event_body("job.completed", "j1", zero)).await;
    world.submit("j2", "w1", "5.00").await;
    accepted(&world, "msg_2", &event_body("job.completed", "j2", json!({}))).await;
    world.drain().await.unwrap();
    assert_eq!(world.job("j1").await["settlements"][0]["captured"], "0.000000");
    assert_eq!(state(&world, "msg_2", SettleUsage).await, pair("needs-review", "no-usage"));
    assert_eq!(world.job("j2").await["settlements"], json!([]));
    assert_eq!(balance(&world, "w1").await, pair("95.000000", "5.000000"));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn an_older_update_that_comes_late_changes_nothing() {
    let world = submitted().await;
    for (id, sequence) in [("p_5", 5), ("p_4", 4), ("p_5_again", 5), ("p_6", 6)] {
        accepted(&world, id, &event_body("job.progress", "j1", json!({"sequence": sequence}))).await;
        world.drain().await.unwrap();
        let stands = if id == "p_6" { (6, "acme/p_6") } else { (5, "acme/p_5") };
        let progress = world.job("j1").await["progress"].clone();
        assert_eq!((&progress["sequence"], &progress["by"]), (&json!(stands.0), &json!(stands.1)), "{id}");
    }
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    accepted(&world, "p_9", &event_body("job.progress", "j1", json!({"sequence": 9}))).await;
    world.drain().await.unwrap();
    assert_eq!(world.job("j1").await["progress"]["sequence"], 6, "the job had ended");
    for id in ["p_4", "p_5_again", "p_9"] {
        let shown = world.explain(id).await;
        assert_eq!((&shown["status"], &shown["operations"][0]["class"]), (&json!("completed"), &json!("superseded")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_before_its_job_waits_and_is_done_after_the_submission() {
    let world = funded().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    for name in [CompleteJob, SettleUsage] {
        assert_eq!(state(&world, "msg_1", name).await, pair("retrying", "job-unknown"), "{name}");
    }
    world.minutes(3).await.unwrap();
    assert_eq!(world.explain("msg_1").await["status"], "retrying");
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    world.minutes(15).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(world.explain("msg_1").await["status"], "completed");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn an_event_before_its_job_that_then_contradicts_it_goes_to_review() {
    let world = funded().await;
    accepted(
        &world,
        "msg_1",
        &event_body("job.completed", "j1", json!({"id": "p-another", "usage": {"input_tokens": 1}})),
    )
    .await;
    world.drain().await.unwrap();
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    world.minutes(15).await.unwrap();
    assert_eq!(state(&world, "msg_1", SettleUsage).await, pair("needs-review", "mismatch"));
    assert_eq!(state(&world, "msg_1", CompleteJob).await, pair("needs-review", "mismatch"));
    assert_untouched(&world, "j1").await;
    assert_eq!(balance(&world, "w1").await, pair("95.000000", "5.000000"));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn the_job_completes_while_billing_is_down_and_the_money_follows() {
    let outage = Rule::outage();
    let world = submitted_with(hooked(Function::Billing, outage.clone())).await;
    outage.start();
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let job = world.job("j1").await;
    assert_eq!(
        (&job["status"], &job["transitions"][0]["by"]),
        (&json!("billing-pending"), &json!("acme/msg_1")),
        "{job}"
    );
    assert_eq!(world.explain("msg_1").await["status"], "billing-pending");
    world.minutes(20).await.unwrap();
    assert_eq!(world.job("j1").await["settlements"], json!([]));
    outage.stop();
    world.minutes(20).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(world.explain("msg_1").await["status"], "completed");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn the_money_settles_while_the_job_side_is_down_and_the_transition_stands_with_it() {
    let outage = Rule::outage();
    let world = submitted_with(hooked(Function::Job, outage.clone())).await;
    outage.start();
    accepted(&world, "msg_1", &completed("j1")).await;
    accepted(&world, "p_1", &event_body("job.progress", "j1", json!({"sequence": 1}))).await;
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(world.explain("msg_1").await["status"], "completed");
    world.minutes(10).await.unwrap();
    assert_eq!(world.explain("p_1").await["status"], "retrying");
    outage.stop();
    world.minutes(20).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(world.explain("p_1").await["status"], "completed");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn one_wallets_trouble_is_not_another_wallets() {
    let trouble = Rule::always("TransactWriteItems", &["W|t1|w1"], throttled());
    let world = submitted_with(WorldConfig::default()).await;
    assert_eq!(world.fund("w2", "10.00").await.0, 201);
    assert_eq!(world.submit("j2", "w2", "5.00").await.0, 201);
    world.aws.add_hook(trouble.clone());
    accepted(&world, "msg_1", &completed("j1")).await;
    accepted(&world, "msg_2", &completed("j2")).await;
    world.drain().await.unwrap();
    assert_settled(&world, "j2", "msg_2").await;
    assert_eq!(state(&world, "msg_1", SettleUsage).await, pair("retrying", "transient"));
    trouble.stop();
    world.minutes(5).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}
