//! Payments and refunds whose webhooks were lost.

use local::hook::{Fault, HookDecision};
use local::stack::Function;
use local::world::{Hooks, WorldConfig};
use serde_json::json;

use super::{applied_and_gone, applied_though_lost, found, funded_once, later, nothing, only, settle, told, world};
use crate::harness::Rule;
use crate::postpaid::Scene;

#[tokio::test(start_paused = true)]
async fn a_payment_whose_webhook_was_lost_is_accepted_from_the_list_and_a_late_one_changes_nothing() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 12_345_678).await; // 1,234 cents, and 0.005678 is carried
    later(&scene.world, 1).await;
    nothing(&scene.world, "early").await;
    later(&scene.world, 2).await;
    let case = applied_and_gone(&scene.world, "payment-untold/accept-from-authority/open").await;
    assert_eq!((&case["amount"], &case["currency"]), (&json!("12.340000"), &json!("USD")), "{case}");
    assert_eq!((&case["effect"]["id"], &case["effect"]["minor_paid"]), (&json!("pi_1"), &json!(1234)), "{case}");
    assert!(case["decisions"][0]["note"].as_str().unwrap().starts_with("accepted as stripe-billing/list#"), "{case}");
    funded_once(&scene, &desk).await;
}

#[tokio::test(start_paused = true)]
async fn a_webhook_between_the_look_and_the_decision_leaves_nothing_to_do() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 12_345_678).await;
    later(&scene.world, 3).await;
    let (_, run) = found(&scene.world, "first").await;
    scene.succeeded("evt_1", &desk.stripe.kept()[0]).await;
    let (status, case) = scene.world.decide_case("first", &only(&run), "apply").await;
    assert_eq!((status, &case["resolution"]), (200, &json!("gone")), "{case}");
    settle(&scene.world).await;
    scene.assert_owed("0.000000", "0.005678").await;
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_webhook_after_the_look_resolves_the_case_by_the_next_run() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 12_345_678).await;
    later(&scene.world, 3).await;
    let (_, run) = found(&scene.world, "first").await;
    scene.succeeded("evt_1", &desk.stripe.kept()[0]).await;
    nothing(&scene.world, "second").await;
    assert_eq!(super::resolution(&scene.world, &only(&run)).await, "gone");
}

async fn reviews(scene: &Scene, reference: &str) -> Vec<String> {
    told(&scene.world.reconcile(reference, json!({"kinds": ["reviews"]})).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_case_is_looked_at_again_by_our_own_records_where_no_list_is_read() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 12_345_678).await;
    later(&scene.world, 3).await;
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(reviews(&scene, "second").await, cases);
    scene.succeeded("evt_1", &desk.stripe.kept()[0]).await;
    assert_eq!(reviews(&scene, "third").await, [""; 0]);
    assert_eq!(super::resolution(&scene.world, &only(&run)).await, "gone");
}

#[tokio::test(start_paused = true)]
async fn a_case_that_the_list_does_not_reach_any_more_stands_until_its_fact_is_gone() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 12_345_678).await;
    later(&scene.world, 3).await;
    let (_, run) = found(&scene.world, "first").await;
    // The list from 12:10 on has nothing of 12:00.
    let range = json!({"kinds": ["intents"], "from": "2026-11-29T13:10:00Z", "to": "2026-11-29T13:20:00Z"});
    let second = scene.world.reconcile("second", range.clone()).await.unwrap();
    assert_eq!(told(&second), ["payment-untold/accept-from-authority/open"], "{second}");
    scene.succeeded("evt_1", &desk.stripe.kept()[0]).await;
    assert_eq!(told(&scene.world.reconcile("third", range).await.unwrap()), [""; 0]);
    assert_eq!(super::resolution(&scene.world, &only(&run)).await, "gone");
}

/// The control API dies, or loses an answer, at each of its writes: the payment is posted once.
#[tokio::test(start_paused = true)]
async fn whatever_is_lost_while_a_payment_is_accepted_it_is_posted_once() {
    for (operation, part) in
        [("PutItem", "destination-list"), ("PutItem", "fund-wallet"), ("TransactWriteItems", "Q|case")]
    {
        let (hooks, rule) = (Hooks::default(), Rule::times(0, operation, &[part], lost()));
        hooks.add(Function::Control, rule.clone());
        let (scene, _) = super::world_with(|config| WorldConfig { hooks, ..config }).await;
        scene.job("j1", "usd-1", 12_345_678).await;
        later(&scene.world, 3).await;
        applied_though_lost(&scene.world, &rule, &format!("{operation} {part}")).await;
        settle(&scene.world).await;
        scene.assert_owed("0.000000", "0.005678").await;
        nothing(&scene.world, "last").await;
        scene.clean().await;
    }
}

/// What was done is not answered.
fn lost() -> HookDecision {
    HookDecision::FailAfter(Fault::ConnectionReset)
}

#[tokio::test(start_paused = true)]
async fn what_is_processing_is_no_payment_yet() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 12_345_678).await;
    desk.says("pi_1", json!({"status": "processing", "amount_received": 0}));
    later(&scene.world, 3).await;
    nothing(&scene.world, "first").await;
}

#[tokio::test(start_paused = true)]
async fn a_refund_whose_webhook_was_lost_is_accepted_once() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 20_000_000).await;
    let payment = desk.stripe.kept()[0].clone();
    scene.succeeded("evt_1", &payment).await;
    later(&scene.world, 3).await;
    let now_s = local::Clock::now_ms(&scene.world.clock) / 1_000;
    let refunds = json!({"data": [{"created": now_s}, {"created": now_s - 9}]});
    desk.says("pi_1", json!({"latest_charge": {"amount_refunded": 500, "refunds": refunds}}));
    nothing(&scene.world, "early").await; // its webhook may still come
    later(&scene.world, 2).await;
    let case = applied_and_gone(&scene.world, "refund-untold/accept-from-authority/open").await;
    assert_eq!(case["amount"], "5.000000", "{case}");
    scene.assert_owed("-5.000000", "0.000000").await; // what went back is owed again
    scene.says_refunded("evt_2", &payment, 500).await;
    scene.assert_owed("-5.000000", "0.000000").await;
    crate::books::audit(&scene.world);
}
