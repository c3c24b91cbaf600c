//! A charge whose call fails in every way, and a process that dies at every step of it: at most one payment, and here the
//! truth or a review.

use std::sync::Arc;

use local::hook::{Fault as AwsFault, HookDecision};
use local::stack::Function;

use super::stripe::{Fault, Stripe};
use super::{Scene, config};
use crate::harness::{HOUR_MS, Rule, hooked, items};

const CHARGE: &str = "charge|t1|j1|c";

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_sent_again_under_the_same_key_with_the_same_bytes() {
    for faults in [
        vec![Fault::AnswerLost],
        vec![Fault::NotSent, Fault::AnswerLost],
        vec![Fault::InProgress, Fault::InProgress],
        vec![Fault::AnswerLost, Fault::InProgress],
        vec![Fault::NotSent, Fault::NotSent, Fault::NotSent],
    ] {
        let scene = Scene::of("USD").await;
        scene.stripe.meets(&faults);
        scene.job("j1", "usd-1", 10_000_000).await;
        scene.world.minutes(60).await.unwrap();
        assert_eq!(scene.stripe.charged().len(), 1, "{faults:?}");
        assert!(scene.state(CHARGE).await.starts_with("done"), "{faults:?}");
        let calls = scene.stripe.calls();
        assert!(calls.len() > faults.len(), "{faults:?}");
        assert!(calls.iter().all(|call| (&call.body, &call.headers) == (&calls[0].body, &calls[0].headers)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_error_is_looked_up_and_what_was_done_is_found() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Done500]);
    scene.job("j1", "usd-1", 10_000_000).await;
    scene.world.minutes(5).await.unwrap();
    assert!(scene.state(CHARGE).await.starts_with("done"));
    assert_eq!(scene.stripe.charged().len(), 1);
    // The payment's id came from the look-up: a refund finds it.
    scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
    assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 201);
    assert_eq!(scene.stripe.refunded(), [("pi_1".to_owned(), "1000".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_stored_error_of_what_was_not_done_is_a_persons_within_the_keys_life() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Stored500]);
    scene.job("j1", "usd-1", 10_000_000).await;
    for _ in 0..6 {
        scene.world.clock.advance(HOUR_MS / 2);
        scene.world.minutes(1).await.unwrap();
    }
    assert_eq!(scene.stripe.charged().len(), 0);
    assert_eq!(scene.state(CHARGE).await, "needs-review unknown-outcome");
    scene.assert_owed("-10.000000", "0.000000").await;
}

#[tokio::test(start_paused = true)]
async fn a_key_that_others_used_stops_in_review_and_no_other_key_is_tried() {
    let scene = Scene::of("USD").await;
    scene.job("j1", "usd-1", 10_000_000).await;
    let taken = scene.stripe.kept()[0].key.clone();
    // Another world of the same names at the same account: other parameters under the same key.
    let other = Scene::with(config(&scene.stripe), scene.stripe.clone(), "USD").await;
    other.job("j1", "usd-1", 11_000_000).await;
    other.world.minutes(30).await.unwrap();
    assert_eq!(other.state(CHARGE).await, "needs-review conflict");
    assert_eq!(scene.stripe.charged().len(), 1);
    let key = |call: &runtime::call::Call| call.headers.iter().find(|(n, _)| n == "idempotency-key").unwrap().1.clone();
    assert!(scene.stripe.calls().iter().all(|call| key(call) == taken));
}

/// The process dies, or the answer is lost, at each write of the charge's life.
#[tokio::test(start_paused = true)]
async fn a_death_at_any_step_leaves_one_charge_and_one_payment() {
    let cases: [(Function, &str, &[&str]); 4] = [
        (Function::Billing, "TransactWriteItems", &["I|own|charge"]),
        (Function::Outbound, "UpdateItem", &["I|own|charge"]),
        // What Stripe answered is not written down.
        (Function::Outbound, "UpdateItem", &["I|own|charge", "settled"]),
        (Function::Billing, "SendMessage", &["charge"]),
    ];
    for (function, operation, containing) in cases {
        for decision in
            [HookDecision::FailBefore(AwsFault::ConnectionReset), HookDecision::FailAfter(AwsFault::ConnectionReset)]
        {
            let rule = Rule::times(9, operation, containing, decision.clone());
            let stripe = Arc::new(Stripe::default());
            let hooks = hooked(function, rule.clone()).hooks;
            let scene = Scene::with(local::world::WorldConfig { hooks, ..config(&stripe) }, stripe, "USD").await;
            scene.submit("j1", "usd-1").await;
            scene.ended("j1", "job.completed", "j1", "usd-1", 10_000_000).await;
            scene.world.minutes(30).await.unwrap();
            assert!(rule.hits() > 0, "{function:?} {operation}");
            assert_eq!(scene.stripe.charged(), [("1000".to_owned(), "usd".to_owned())], "{function:?} {operation}");
            assert!(scene.state(CHARGE).await.starts_with("done"), "{function:?} {operation}");
            scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
            scene.assert_owed("0.000000", "0.000000").await;
            scene.clean().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn settlement_and_charge_are_one_transaction() {
    let scene = Scene::of("USD").await;
    scene.submit("j1", "usd-1").await;
    scene.ended("j1", "job.completed", "j1", "usd-1", 10_000_000).await;
    // The billing consumer alone works; nothing has left.
    let records = vec![crate::harness::record("g", "j1", domain::operation::OperationName::SettleUsage)];
    assert_eq!(crate::harness::consume(&scene.world, records).await, [""; 0]);
    assert_eq!(scene.stripe.calls().len(), 0);
    let pk = |item: &serde_json::Value| item["pk"]["S"].as_str().unwrap().to_owned();
    let events = items(&scene.world, "events");
    let intent = events.iter().find(|item| pk(item) == "I|own|charge%7Ct1%7Cj1%7Cc|stripe|outbound|forward").unwrap();
    assert_eq!(intent["st"]["S"], "pending");
    assert!(intent["rq"]["S"].as_str().unwrap().starts_with("amount=1000&currency=usd&customer=cus_1&"));
    scene.assert_owed("-10.000000", "0.000000").await;
    crate::harness::purge(&scene.world);
    scene.world.minutes(10).await.unwrap();
    assert_eq!(scene.stripe.charged().len(), 1);
}
