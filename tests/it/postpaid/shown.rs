//! What a job shows of its charges and refunds, and its status until those are done at the payment provider.

use serde_json::{Value, json};

use super::Scene;
use super::refunds::change_the_intent;
use super::stripe::Fault;

const CHARGE: &str = "own/charge|t1|j1|c";

/// The job's status, and of each settlement its charge.
async fn seen(scene: &Scene) -> (Value, Vec<Value>) {
    let job = scene.world.job("j1").await;
    let charges = job["settlements"].as_array().unwrap().iter().map(|one| one["charge"].clone());
    (job["status"].clone(), charges.collect())
}

fn step(event: &str, state: &str, payment: Option<&str>) -> Value {
    json!({"event": event, "state": state, "payment": payment})
}

#[tokio::test(start_paused = true)]
async fn a_job_is_settled_when_its_charge_and_its_refund_are_known_to_be_done() {
    let scene = Scene::of("USD").await;
    scene.submit("j1", "usd-1").await;
    scene.stripe.meets(&[Fault::AnswerLost]);
    scene.ended("e-1", "job.completed", "j1", "usd-1", 10_000_000).await;
    assert_eq!(seen(&scene).await, (json!("submitted"), vec![]));
    scene.world.drain().await.unwrap();
    assert_eq!(seen(&scene).await, (json!("billing-submitted"), vec![step(CHARGE, "uncertain", None)]));
    scene.world.minutes(30).await.unwrap();
    let charged = step(CHARGE, "settled", Some("pi_1"));
    assert_eq!(seen(&scene).await, (json!("billing-settled"), vec![charged.clone()]));

    scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
    scene.stripe.meets(&[Fault::NotSent]);
    assert_eq!(scene.act("j1", "reverse", "r-1", "4.00").await.0, 201);
    let refund = "own/refund|t1|j1|v|r-1";
    let (status, charges) = seen(&scene).await;
    assert_eq!(
        (&status, &charges[1]["event"], &charges[1]["payment"]),
        (&json!("billing-submitted"), &json!(refund), &Value::Null)
    );
    scene.world.minutes(30).await.unwrap();
    let id = scene.stripe.kept()[1].id.clone();
    let (status, charges) = seen(&scene).await;
    assert_eq!((status, charges), (json!("billing-settled"), vec![charged, step(refund, "settled", Some(&id))]));
}

#[tokio::test(start_paused = true)]
async fn a_declined_charge_is_open_until_a_person_has_closed_its_review() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Declined]);
    scene.job("j1", "usd-1", 10_000_000).await;
    let declined = step(CHARGE, "failed", None);
    assert_eq!(seen(&scene).await, (json!("billing-submitted"), vec![declined.clone()]));
    // Nothing was paid, so what is taken back of it asks the payment provider for nothing.
    assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 201);
    assert_eq!(seen(&scene).await, (json!("billing-submitted"), vec![declined.clone(), Value::Null]));
    let close = json!({"action": "close", "reason": "taken back"});
    assert_eq!(scene.decide("forward:stripe@own/charge|t1|j1|c", close).await.0, 200);
    assert_eq!(seen(&scene).await, (json!("billing-settled"), vec![declined, Value::Null]));
}

#[tokio::test(start_paused = true)]
async fn a_declined_charge_that_was_done_after_all_says_so() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Declined]);
    scene.job("j1", "usd-1", 10_000_000).await;
    change_the_intent(&scene, "charge%7Ct1%7Cj1%7Cc", |item| item["lx"] = json!({"BOOL": true}));
    let mut declined = step(CHARGE, "failed", None);
    declined["contradicted"] = json!(true);
    assert_eq!(seen(&scene).await, (json!("billing-submitted"), vec![declined]));
}

#[tokio::test(start_paused = true)]
async fn a_capture_of_what_was_authorised_is_shown_and_what_moves_nothing_has_no_charge() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "5.00").await;
    scene.completes("j1", 3_000_000).await;
    let captured = step("own/capture|t1|j1|c", "settled", Some("pi_1"));
    assert_eq!(seen(&scene).await, (json!("billing-settled"), vec![captured.clone()]));
    assert_eq!(scene.world.job("j1").await["authorisation"]["void"], Value::Null);
    // Less than a cent is carried, and the payment provider is asked for nothing.
    assert_eq!(scene.act("j1", "adjust", "a-1", "0.004").await.0, 201);
    assert_eq!(seen(&scene).await, (json!("billing-settled"), vec![captured, Value::Null]));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ended_without_a_charge_is_settled_when_what_was_authorised_is_given_up() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "5.00").await;
    scene.stripe.meets(&[Fault::NotSent]);
    scene.cancel("j1").await;
    scene.world.drain().await.unwrap();
    let voided = async || {
        let job = scene.world.job("j1").await;
        assert_eq!(job["authorisation"]["void"]["event"], "own/void|t1|j1|c");
        (job["status"].clone(), job["authorisation"]["void"]["state"].clone())
    };
    let (status, state) = voided().await;
    assert_eq!(status, "billing-submitted");
    assert_ne!(state, "settled");
    scene.world.minutes(30).await.unwrap();
    assert_eq!(voided().await, (json!("billing-settled"), json!("settled")));
}

#[tokio::test(start_paused = true)]
async fn of_a_declined_authorisation_nothing_is_given_up_and_one_that_may_stand_after_all_keeps_its_job_open() {
    let scene = Scene::authorising().await;
    scene.stripe.meets(&[Fault::Declined]);
    scene.authorise("j1", "5.00").await;
    scene.cancel("j1").await;
    scene.world.drain().await.unwrap();
    let nothing = json!({"event": "own/void|t1|j1|c", "state": null, "payment": null, "done": true});
    let declined = json!({"event": "own/authorise|t1|j1", "state": "failed", "payment": null, "void": nothing});
    let job = scene.world.job("j1").await;
    assert_eq!((&job["status"], &job["authorisation"]), (&json!("billing-settled"), &declined));

    change_the_intent(&scene, "authorise%7Ct1%7Cj1", |item| item["lx"] = json!({"BOOL": true}));
    let job = scene.world.job("j1").await;
    assert_eq!((&job["status"], &job["authorisation"]["contradicted"]), (&json!("billing-submitted"), &json!(true)));
    let close = json!({"action": "close", "reason": "cancelled at Stripe"});
    assert_eq!(scene.decide("forward:stripe@own/authorise|t1|j1", close).await.0, 200);
    assert_eq!(scene.world.job("j1").await["status"], "billing-settled");
}
