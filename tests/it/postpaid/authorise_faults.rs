//! Authorisations whose calls fail in every way, whose answers come late, and processes that die at every step: at most one
//! payment for a job, nothing left held, and here the truth or a review.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use local::hook::{Call, CallHook, Fault as AwsFault, HookDecision};
use local::stack::Function;
use local::world::WorldConfig;
use local::{EmbeddedAws, dynamo_api};
use serde_json::{Value, json};

use super::stripe::{Fault, Stripe};
use super::{Scene, config};
use crate::harness::{HOUR_MS, Rule, hooked, items, overwrite};

const AUTHORISE: &str = "authorise|t1|j1";
const CAPTURE: &str = "capture|t1|j1|c";
const VOID: &str = "void|t1|j1|c";

#[tokio::test(start_paused = true)]
async fn a_settlement_waits_for_the_end_of_the_authorisation_and_charges_nothing_beside_it() {
    for fault in [Fault::AnswerLost, Fault::NotSent, Fault::InProgress] {
        let scene = Scene::authorising().await;
        scene.stripe.meets(&[fault]);
        scene.authorise("j1", "12.00").await;
        scene.completes("j1", 10_000_000).await;
        assert_eq!(scene.settlement("j1").await, "retrying not-yet", "{fault:?}");
        assert_eq!(scene.world.job("j1").await["transitions"][0]["outcome"], "success", "the job does not wait");
        scene.world.minutes(30).await.unwrap();
        assert!(scene.state(CAPTURE).await.starts_with("done"), "{fault:?}");
        assert_eq!(scene.stripe.authorised(), ["1200 captured 1000"], "{fault:?}");
        assert_eq!(scene.stripe.charged(), [], "{fault:?}");
        scene.assert_owed("-10.000000", "0.000000").await;
        scene.clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_capture_of_unknown_outcome_is_sent_again_or_looked_up_and_done_once() {
    for fault in [Fault::AnswerLost, Fault::NotSent, Fault::InProgress, Fault::Done500, Fault::Invalid] {
        let scene = Scene::authorising().await;
        scene.authorise("j1", "12.00").await;
        scene.stripe.meets(&[fault]);
        scene.completes("j1", 10_000_000).await;
        scene.world.minutes(30).await.unwrap();
        assert!(scene.state(CAPTURE).await.starts_with("done"), "{fault:?}");
        assert_eq!(scene.stripe.authorised(), ["1200 captured 1000"], "{fault:?}");
        let calls = scene.stripe.calls();
        let captures: Vec<_> = calls.iter().filter(|call| call.url.ends_with("/capture")).collect();
        assert!(captures.iter().all(|call| (&call.body, &call.headers) == (&captures[0].body, &captures[0].headers)));
        // The payment's id is known whichever way its end was found: a refund finds it.
        scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
        assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 201, "{fault:?}");
        assert_eq!(scene.stripe.refunded(), [("pi_1".to_owned(), "1000".to_owned())]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_authorisation_that_is_on_its_way_is_given_up_when_it_arrives() {
    for fault in [None, Some(Fault::AnswerLost), Some(Fault::NotSent), Some(Fault::Done500)] {
        let scene = Scene::authorising().await;
        scene.stripe.meets(fault.as_slice());
        assert_eq!(scene.ask("j1", "w1", Some("12.00")).await.0, 201);
        if fault.is_some() {
            scene.world.drain().await.unwrap();
        }
        scene.cancel("j1").await;
        scene.world.drain().await.unwrap();
        scene.world.minutes(30).await.unwrap();
        assert!(scene.state(VOID).await.starts_with("done"), "{fault:?}");
        assert_eq!(scene.stripe.authorised(), ["1200 canceled"], "{fault:?}");
        scene.assert_owed("0.000000", "0.000000").await;
        scene.clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_void_is_repeated_until_it_is_answered_and_one_of_a_lapsed_payment_is_done() {
    for fault in [Fault::AnswerLost, Fault::InProgress, Fault::Invalid, Fault::Lapsed] {
        let scene = Scene::authorising().await;
        scene.authorise("j1", "12.00").await;
        scene.stripe.meets(&[fault]);
        scene.cancel("j1").await;
        scene.world.drain().await.unwrap();
        scene.world.minutes(30).await.unwrap();
        assert!(scene.state(VOID).await.starts_with("done"), "{fault:?}");
        assert_eq!(scene.stripe.authorised(), ["1200 canceled"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_capture_of_what_has_lapsed_is_a_persons_and_what_it_cost_stays_owed() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "12.00").await;
    scene.stripe.meets(&[Fault::Lapsed]);
    scene.completes("j1", 10_000_000).await;
    assert_eq!(scene.state(CAPTURE).await, "needs-review declined");
    let note = scene.note(CAPTURE).await;
    assert!(note.contains("has lapsed or was cancelled") && note.ends_with("then close this"), "{note}");
    scene.assert_owed("-10.000000", "0.000000").await;
    // Nothing was paid, so nothing is refunded.
    assert_eq!(scene.act("j1", "reverse", "r-1", "10.00").await.0, 201);
    scene.assert_owed("0.000000", "0.000000").await;
    assert_eq!((scene.stripe.refunded().len(), scene.stripe.charged().len()), (0, 0));
    crate::books::audit(&scene.world);
}

async fn hours(scene: &Scene, halves: u32) {
    for _ in 0..halves {
        scene.world.clock.advance(HOUR_MS / 2);
        scene.world.minutes(1).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_authorisation_whose_end_only_a_person_can_find_out_holds_the_charge_back_until_then() {
    let scene = Scene::authorising().await;
    scene.stripe.meets(&[Fault::Stored500]);
    scene.authorise("j1", "12.00").await;
    scene.completes("j1", 10_000_000).await;
    hours(&scene, 6).await;
    assert_eq!(scene.state(AUTHORISE).await, "needs-review unknown-outcome");
    assert!(scene.note(AUTHORISE).await.contains("if it exists there, then close this"));
    assert_eq!(scene.settlement("j1").await, "retrying not-yet");
    assert_eq!(scene.stripe.charged(), []);
    let close = json!({"action": "close", "reason": "not at Stripe"});
    assert_eq!(scene.decide(&format!("forward:stripe@own/{AUTHORISE}"), close).await.0, 200);
    hours(&scene, 2).await;
    assert_eq!(scene.stripe.charged(), [("1000".to_owned(), "usd".to_owned())]);
    assert_eq!(scene.stripe.authorised(), [""; 0]);
    scene.assert_owed("-10.000000", "0.000000").await;
    crate::books::audit(&scene.world);
}

/// Between two readings of the billing consumer the outbound consumer ends the authorisation, and then closes its operation.
#[derive(Debug, Default)]
struct Between {
    scene: OnceLock<(EmbeddedAws, Vec<Value>)>,
    reads: AtomicUsize,
}

impl CallHook for Between {
    fn on_call(&self, call: &Call) -> HookDecision {
        let of_authorisation = String::from_utf8_lossy(&call.body).contains("own|authorise");
        let armed = self.scene.get().filter(|_| call.operation == "GetItem" && of_authorisation);
        if let Some((aws, items)) = armed
            && self.reads.fetch_add(1, Ordering::SeqCst) == 1
        {
            for item in items {
                let request = json!({"TableName": "hookledger-events", "Item": item}).to_string();
                assert_eq!(dynamo_api::call(aws.database(), "PutItem", request.as_bytes()).status, 200);
            }
        }
        HookDecision::Pass
    }
}

#[tokio::test(start_paused = true)]
async fn an_authorisation_that_ends_between_two_readings_is_not_taken_for_one_that_a_person_closed() {
    let (between, stripe) = (Arc::new(Between::default()), Arc::new(Stripe::default()));
    let hooks = hooked(Function::Billing, between.clone()).hooks;
    let config = WorldConfig { hooks, ..config(&stripe) };
    let scene = Scene::on(config, stripe, "USD", json!({"authorise": true})).await;
    scene.stripe.meets(&[Fault::AnswerLost]);
    scene.authorise("j1", "12.00").await;
    let find = |pk: &str, sk: &str| {
        let is = |item: &Value| item["pk"]["S"] == pk && item["sk"]["S"] == sk;
        items(&scene.world, "events").into_iter().find(is).unwrap()
    };
    let mut intent = find("I|own|authorise%7Ct1%7Cj1|stripe|outbound|forward", "i");
    assert_eq!(intent["st"]["S"], "uncertain");
    intent["st"] = json!({"S": "settled"});
    intent["ou"]["M"]["td"] = json!({"S": "settled"});
    intent["ou"]["M"]["id"] = json!({"S": "pi_1"});
    let mut record = find("E|own|authorise%7Ct1%7Cj1", "o|stripe|outbound|forward");
    assert_eq!(record["st"]["S"], "wait");
    (record["st"], record["cl"]) = (json!({"S": "closed"}), json!({"S": "already-done"}));
    let armed = between.scene.set((scene.world.aws.clone(), vec![intent, record]));
    assert!(armed.is_ok());
    scene.completes("j1", 10_000_000).await;
    assert!(between.reads.load(Ordering::SeqCst) >= 2);
    assert_eq!(scene.stripe.charged(), [], "no charge beside what is held");
    assert_eq!(scene.stripe.authorised(), ["1200 captured 1000"]);
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_waits_for_the_authorisation_uses_up_no_tries() {
    let scene = Scene::authorising().await;
    scene.stripe.meets(&[Fault::Stored500]); // not known before a look-up, two hours later
    scene.authorise("j1", "12.00").await;
    scene.completes("j1", 10_000_000).await;
    scene.world.minutes(110).await.unwrap();
    let shown = scene.world.explain("j1").await;
    assert_eq!(
        (&shown["operations"][1]["state"], &shown["operations"][1]["attempts"]),
        (&json!("retrying"), &json!(0)),
        "{shown}"
    );
}

/// The stored authorisation of job j1, with a change.
fn change(scene: &Scene, change: impl Fn(&mut Value)) {
    let is = |item: &Value| item["pk"]["S"] == "I|own|authorise%7Ct1%7Cj1|stripe|outbound|forward";
    let mut item = items(&scene.world, "events").into_iter().find(is).unwrap();
    change(&mut item);
    overwrite(&scene.world, "events", &item);
}

#[tokio::test(start_paused = true)]
async fn a_declined_authorisation_that_stands_after_all_is_a_persons_before_anything_is_charged() {
    let scene = Scene::authorising().await;
    scene.stripe.meets(&[Fault::Declined]);
    scene.authorise("j1", "12.00").await;
    change(&scene, |item| item["lx"] = json!({"BOOL": true}));
    scene.completes("j1", 10_000_000).await;
    assert_eq!(scene.settlement("j1").await, "needs-review unknown-outcome");
    assert_eq!(scene.stripe.charged(), []);
    let close = json!({"action": "close", "reason": "cancelled at Stripe"});
    assert_eq!(scene.decide(&format!("forward:stripe@own/{AUTHORISE}"), close).await.0, 200);
    let retry = json!({"action": "retry", "reason": "cancelled at Stripe"});
    assert_eq!(scene.decide("settle-usage:acme/j1", retry).await.0, 200);
    assert_eq!(scene.stripe.charged(), [("1000".to_owned(), "usd".to_owned())]);
    crate::books::audit(&scene.world);
}

#[tokio::test(start_paused = true)]
async fn an_authorisation_whose_payment_is_not_known_is_not_taken_for_nothing_held() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "12.00").await;
    change(&scene, |item| drop(item["ou"]["M"].as_object_mut().unwrap().remove("id").unwrap()));
    scene.completes("j1", 10_000_000).await;
    assert_eq!(scene.settlement("j1").await, "needs-review unknown-outcome");
    assert_eq!(scene.stripe.charged(), []);
}

/// The process dies, or the answer is lost, at each write of the life of an authorisation and its capture.
#[tokio::test(start_paused = true)]
async fn a_death_at_any_step_leaves_one_authorisation_and_one_capture() {
    let cases: [(Function, &str, &[&str]); 8] = [
        (Function::Control, "TransactWriteItems", &["I|own|authorise"]),
        (Function::Control, "SendMessage", &["authorise"]),
        (Function::Outbound, "UpdateItem", &["I|own|authorise"]),
        (Function::Outbound, "UpdateItem", &["I|own|authorise", "settled"]),
        (Function::Billing, "TransactWriteItems", &["I|own|capture"]),
        (Function::Billing, "SendMessage", &["capture"]),
        (Function::Outbound, "UpdateItem", &["I|own|capture"]),
        (Function::Outbound, "UpdateItem", &["I|own|capture", "settled"]),
    ];
    for (function, operation, containing) in cases {
        for (scene, rule) in dying(function, operation, containing).await {
            while scene.ask("j1", "w1", Some("12.00")).await.0 >= 500 {}
            scene.world.drain().await.unwrap();
            scene.completes("j1", 10_000_000).await;
            scene.world.minutes(30).await.unwrap();
            assert!(rule.hits() > 0, "{function:?} {operation} {containing:?}");
            assert_eq!(scene.stripe.authorised(), ["1200 captured 1000"], "{function:?} {operation} {containing:?}");
            assert!(scene.state(CAPTURE).await.starts_with("done"), "{function:?} {operation} {containing:?}");
            scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
            scene.assert_owed("0.000000", "0.000000").await;
            scene.clean().await;
        }
    }
}

/// The same of one that is given up.
#[tokio::test(start_paused = true)]
async fn a_death_at_any_step_leaves_nothing_held_of_a_job_that_failed() {
    let cases: [(Function, &str, &[&str]); 4] = [
        (Function::Billing, "TransactWriteItems", &["E|own|void"]),
        (Function::Billing, "SendMessage", &["void"]),
        (Function::Outbound, "PutItem", &["I|own|void"]),
        (Function::Outbound, "UpdateItem", &["I|own|void", "settled"]),
    ];
    for (function, operation, containing) in cases {
        for (scene, rule) in dying(function, operation, containing).await {
            scene.authorise("j1", "12.00").await;
            scene.ended("j1", "job.failed", "j1", "usd-1", 10_000_000).await;
            scene.world.minutes(30).await.unwrap();
            assert!(rule.hits() > 0, "{function:?} {operation} {containing:?}");
            assert_eq!(scene.stripe.authorised(), ["1200 canceled"], "{function:?} {operation} {containing:?}");
            assert!(scene.state(VOID).await.starts_with("done"), "{function:?} {operation} {containing:?}");
            scene.assert_owed("0.000000", "0.000000").await;
            scene.clean().await;
        }
    }
}

/// Two worlds: in one the call is not carried out, in the other its answer is lost.
async fn dying(function: Function, operation: &'static str, containing: &[&str]) -> Vec<(Scene, Arc<Rule>)> {
    let mut scenes = Vec::new();
    for decision in
        [HookDecision::FailBefore(AwsFault::ConnectionReset), HookDecision::FailAfter(AwsFault::ConnectionReset)]
    {
        let rule = Rule::times(9, operation, containing, decision);
        let stripe = Arc::new(Stripe::default());
        let hooks = hooked(function, rule.clone()).hooks;
        let config = local::world::WorldConfig { hooks, ..config(&stripe) };
        scenes.push((Scene::on(config, stripe, "USD", json!({"authorise": true})).await, rule));
    }
    scenes
}
