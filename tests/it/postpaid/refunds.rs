//! Refunds: what a person gives back of a charge, under its own key, recorded as an entry and never as a deletion.

use serde_json::json;

use super::Scene;
use super::stripe::Fault;
use crate::harness::{items, overwrite};

#[tokio::test(start_paused = true)]
async fn a_reversal_refunds_its_charge_once_and_never_more_than_was_charged() {
    let scene = Scene::of("USD").await;
    scene.job("j1", "usd-1", 10_005_000).await; // 10.005: 10.00 charged, 0.005 carried
    scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
    scene.assert_owed("0.000000", "0.005000").await;
    for _ in 0..2 {
        assert!(scene.act("j1", "reverse", "r-1", "4.00").await.0 < 300);
    }
    // 4.00 less the 0.005 that was never charged: 3.99, and 0.005 is a credit.
    assert_eq!(scene.stripe.refunded(), [("pi_1".to_owned(), "399".to_owned())]);
    scene.assert_owed("3.990000", "-0.005000").await;
    assert_eq!(scene.state("refund|t1|j1|v|r-1").await, "done");
    scene.says_refunded("evt_2", &scene.stripe.kept()[0], 399).await;
    scene.assert_owed("0.000000", "-0.005000").await;
    assert_eq!(scene.act("j1", "reverse", "r-2", "6.006").await.0, 409); // 10.005 in all
    assert_eq!(scene.act("j1", "adjust", "a-1", "-1.00").await.0, 201);
    assert_eq!(scene.stripe.refunded()[1], ("pi_1".to_owned(), "100".to_owned())); // 1.005, and half a cent stays
    assert_eq!(scene.act("j1", "reverse", "r-3", "5.005").await.0, 201);
    // 5.01 in all: what is left of the charge is 5.01.
    assert_eq!(scene.stripe.refunded()[2], ("pi_1".to_owned(), "501".to_owned()));
    scene.says_refunded("evt_3", &scene.stripe.kept()[0], 1_000).await;
    scene.assert_owed("0.000000", "0.000000").await;
    let keys: std::collections::BTreeSet<String> = scene.stripe.kept().into_iter().map(|kept| kept.key).collect();
    assert_eq!(keys.len(), 4, "every step has a key of its own");
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_refunded_of_a_charge_that_failed_and_what_is_owed_goes_down() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Declined]);
    scene.job("j1", "usd-1", 10_000_000).await;
    assert_eq!(scene.state("charge|t1|j1|c").await, "needs-review declined");
    scene.assert_owed("-10.000000", "0.000000").await;
    assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 201);
    scene.assert_owed("0.000000", "0.000000").await;
    assert_eq!(scene.stripe.kept().len(), 0);
    crate::books::audit(&scene.world);
}

#[tokio::test(start_paused = true)]
async fn while_a_charge_is_on_its_way_nothing_can_be_refunded_of_it() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::AnswerLost]);
    scene.job("j1", "usd-1", 10_000_000).await;
    assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 409);
    scene.world.minutes(30).await.unwrap();
    scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
    assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 201);
    assert_eq!(scene.stripe.refunded(), [("pi_1".to_owned(), "1000".to_owned())]);
    crate::books::audit(&scene.world);
}

fn says(answered: &(u16, serde_json::Value), words: &str) -> bool {
    answered.0 == 409 && answered.1["detail"].as_str().is_some_and(|detail| detail.contains(words))
}

#[tokio::test(start_paused = true)]
async fn a_payment_that_is_still_processing_is_not_refunded_until_it_has_arrived() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Processing]);
    scene.job("j1", "usd-1", 10_000_000).await;
    assert_eq!(scene.state("charge|t1|j1|c").await, "done");
    let answered = scene.act("j1", "reverse", "r-1", "10.00").await;
    assert!(says(&answered, "has not arrived yet"), "{answered:?}");
    scene.assert_owed("-10.000000", "0.000000").await;
    scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
    assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 201);
    assert_eq!(scene.stripe.refunded(), [("pi_1".to_owned(), "1000".to_owned())]);
    scene.says_refunded("evt_2", &scene.stripe.kept()[0], 1_000).await;
    scene.assert_owed("0.000000", "0.000000").await;
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_charge_whose_review_was_closed_refunds_nothing_and_what_is_owed_goes_down() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Stored500]);
    scene.job("j1", "usd-1", 10_000_000).await;
    for _ in 0..6 {
        scene.world.clock.advance(crate::harness::HOUR_MS / 2);
        scene.world.minutes(1).await.unwrap();
    }
    assert_eq!(scene.state("charge|t1|j1|c").await, "needs-review unknown-outcome");
    let answered = scene.act("j1", "reverse", "r-1", "4.00").await;
    assert!(says(&answered, "is not at an end yet"), "{answered:?}");
    let close = json!({"action": "close", "reason": "not at Stripe"});
    assert_eq!(scene.decide("forward:stripe@own/charge|t1|j1|c", close).await.0, 200);
    assert_eq!(scene.act("j1", "reverse", "r-1", "4.00").await.0, 201);
    scene.assert_owed("-6.000000", "0.000000").await;
    assert_eq!(scene.act("j1", "adjust", "a-1", "-6.00").await.0, 201);
    scene.assert_owed("0.000000", "0.000000").await;
    assert_eq!(scene.stripe.kept().len(), 0);
    crate::books::audit(&scene.world);
}

/// The stored charge of job j1, with a change that no configuration of today makes.
fn change_the_charge(scene: &Scene, change: impl Fn(&mut serde_json::Value)) {
    change_the_intent(scene, "charge%7Ct1%7Cj1%7Cc", change);
}

/// The same of what any event of our own sends.
pub(super) fn change_the_intent(scene: &Scene, event: &str, change: impl Fn(&mut serde_json::Value)) {
    let pk = format!("I|own|{event}|stripe|outbound|forward");
    let is = |item: &serde_json::Value| item["pk"]["S"] == *pk;
    let mut item = items(&scene.world, "events").into_iter().find(is).unwrap();
    change(&mut item);
    overwrite(&scene.world, "events", &item);
}

#[tokio::test(start_paused = true)]
async fn a_payment_whose_id_is_not_known_is_not_taken_for_nothing_paid() {
    let scene = Scene::of("USD").await;
    scene.job("j1", "usd-1", 10_000_000).await;
    scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
    change_the_charge(&scene, |item| drop(item["ou"]["M"].as_object_mut().unwrap().remove("id").unwrap()));
    let answered = scene.act("j1", "reverse", "r-1", "10.00").await;
    assert!(says(&answered, "refund it at the payment provider"), "{answered:?}");
    scene.assert_owed("0.000000", "0.000000").await;
}

#[tokio::test(start_paused = true)]
async fn a_declined_charge_that_was_paid_after_all_is_a_persons_until_its_review_is_closed() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Declined]);
    scene.job("j1", "usd-1", 10_000_000).await;
    change_the_charge(&scene, |item| item["lx"] = json!({"BOOL": true}));
    let answered = scene.act("j1", "reverse", "r-1", "10.00").await;
    assert!(says(&answered, "close the charge's review"), "{answered:?}");
    scene.assert_owed("-10.000000", "0.000000").await;
    let close = json!({"action": "close", "reason": "refunded at Stripe"});
    assert_eq!(scene.decide("forward:stripe@own/charge|t1|j1|c", close).await.0, 200);
    assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 201);
    scene.assert_owed("0.000000", "0.000000").await;
    assert_eq!(scene.stripe.kept().len(), 0);
}
