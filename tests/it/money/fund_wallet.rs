//! Payments that fund a wallet, through the shipped Stripe profile: once per payment, in the currency's own
//! minor unit, and taken back by refunds, never below the credit limit.

use std::collections::BTreeMap;

use local::world::WorldConfig;
use serde_json::{Value, json};

use super::scene::Scene;

const SECRET: &str = "whsec_of_the_money_tests";

async fn scene() -> Scene {
    let secrets = BTreeMap::from([("STRIPE_WEBHOOK_SECRET".to_owned(), SECRET.to_owned())]);
    Scene::with(WorldConfig { secrets, ..WorldConfig::default() }).await
}

async fn wallet(scene: &Scene, currency: &str, credit: &str) {
    let body = json!({"currency": currency, "credit_limit": credit});
    assert_eq!(scene.world.control("PUT", "/control/tenants/t1/wallets/w1", Some(body)).await.0, 201);
}

/// Sends one of Stripe's events and lets the event sources work; what the gateway answered.
async fn stripe(scene: &Scene, id: &str, kind: &str, livemode: bool, object: Value) -> (u16, String) {
    let answered = send(scene, id, kind, livemode, object).await;
    scene.world.drain().await.unwrap();
    answered
}

/// Sends one of Stripe's events and leaves its message on its way.
async fn send(scene: &Scene, id: &str, kind: &str, livemode: bool, object: Value) -> (u16, String) {
    let created_s = scene.world.stack.app.clock.now_ms() / 1000;
    let mut object = object;
    object["metadata"] = json!({"tenant": "t1", "wallet": "w1"});
    crate::sender::stripe(&scene.world, ("stripe", SECRET), (id, kind), created_s, livemode, &object).await
}

fn intent(payment: &str, currency: &str, minor: i64) -> Value {
    json!({"id": payment, "object": "payment_intent", "currency": currency, "amount_received": minor})
}

fn refund(payment: &str, minor_in_all: i64) -> Value {
    json!({"id": "ch_1", "object": "charge", "payment_intent": payment, "currency": "usd", "amount_refunded": minor_in_all})
}

/// The state and class of an event's only operation.
async fn operation(scene: &Scene, id: &str) -> String {
    let event = scene.world.control("GET", &format!("/control/events/stripe/{id}"), None).await.1;
    let operation = &event["operations"][0];
    format!("{} {}", operation["state"].as_str().unwrap_or_default(), operation["class"].as_str().unwrap_or_default())
}

async fn available(scene: &Scene) -> String {
    scene.wallet().await.0
}

#[tokio::test(start_paused = true)]
async fn two_kinds_of_events_of_one_payment_fund_once() {
    let scene = scene().await;
    wallet(&scene, "USD", "0.00").await;
    let mut session = json!({
        "id": "cs_1", "payment_intent": "pi_1", "currency": "usd", "amount_total": 2_550, "payment_status": "unpaid",
    });
    // A session that is complete and not paid yet funds nothing.
    stripe(&scene, "evt_0", "checkout.session.completed", true, session.clone()).await;
    assert_eq!(available(&scene).await, "0.000000");
    session["payment_status"] = json!("paid");
    for _ in 0..2 {
        stripe(&scene, "evt_1", "payment_intent.succeeded", true, intent("pi_1", "usd", 2_550)).await;
        stripe(&scene, "evt_2", "checkout.session.completed", true, session.clone()).await;
    }
    assert_eq!(available(&scene).await, "25.500000"); // 2,550 cents
    assert_eq!(operation(&scene, "evt_2").await, "noop already-done");
    // The same payment with another amount is a conflict, not a second funding.
    stripe(&scene, "evt_3", "payment_intent.succeeded", true, intent("pi_1", "usd", 2_551)).await;
    assert_eq!(operation(&scene, "evt_3").await, "needs-review conflict");
    assert_eq!(available(&scene).await, "25.500000");
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_payment_whose_message_was_lost_is_found_and_one_that_funded_is_left_alone() {
    let scene = scene().await;
    wallet(&scene, "USD", "0.00").await;
    stripe(&scene, "evt_1", "payment_intent.succeeded", true, intent("pi_1", "usd", 2_550)).await;
    assert_eq!(send(&scene, "evt_2", "payment_intent.succeeded", true, intent("pi_2", "usd", 1_000)).await.0, 202);
    crate::harness::purge(&scene.world);
    scene.world.minutes(5).await.unwrap();
    assert_eq!(available(&scene).await, "35.500000"); // 2,550 and 1,000 cents
    assert_eq!(operation(&scene, "evt_1").await, "done ");
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn led_01_minor_units_follow_the_currency() {
    // 80 yen are 80 of the minor unit; 1,234 fils are 1.234 dinars.
    for (code, minor, major) in [("JPY", 80, "80.000000"), ("KWD", 1_234, "1.234000"), ("USD", 80, "0.800000")] {
        let scene = scene().await;
        wallet(&scene, code, "0.00").await;
        let payment = intent("pi_1", &code.to_ascii_lowercase(), minor);
        stripe(&scene, "evt_1", "payment_intent.succeeded", true, payment).await;
        assert_eq!(available(&scene).await, major, "{code}");
        scene.clean();
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_in_another_currency_is_a_persons() {
    let scene = scene().await;
    wallet(&scene, "USD", "0.00").await;
    stripe(&scene, "evt_1", "payment_intent.succeeded", true, intent("pi_1", "jpy", 80)).await;
    assert_eq!(operation(&scene, "evt_1").await, "needs-review mismatch");
    assert_eq!(available(&scene).await, "0.000000");
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn test_mode_events_on_the_live_endpoint_have_no_effect() {
    let scene = scene().await;
    wallet(&scene, "USD", "0.00").await;
    let answered = stripe(&scene, "evt_1", "payment_intent.succeeded", false, intent("pi_1", "usd", 2_550)).await;
    assert_eq!(answered, (200, "ignored".to_owned()));
    assert_eq!(available(&scene).await, "0.000000");
    // Nor does it take the payment's key from the live event.
    stripe(&scene, "evt_2", "payment_intent.succeeded", true, intent("pi_1", "usd", 2_550)).await;
    assert_eq!(available(&scene).await, "25.500000");
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_payment_for_a_wallet_that_does_not_exist_yet_waits_and_then_funds_once() {
    let scene = scene().await;
    stripe(&scene, "evt_1", "payment_intent.succeeded", true, intent("pi_1", "usd", 2_550)).await;
    assert_eq!(operation(&scene, "evt_1").await, "retrying not-yet");
    wallet(&scene, "USD", "0.00").await;
    for _ in 0..2 {
        scene.world.clock.advance(60_000);
        scene.relay_once().await;
        assert_eq!(available(&scene).await, "25.500000");
    }
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn refunds_take_the_funding_back_by_what_was_refunded_in_all() {
    let scene = scene().await;
    wallet(&scene, "USD", "0.00").await;
    // Before the funding: it waits.
    stripe(&scene, "re_1", "charge.refunded", true, refund("pi_1", 500)).await;
    assert_eq!(operation(&scene, "re_1").await, "retrying not-yet");
    stripe(&scene, "evt_1", "payment_intent.succeeded", true, intent("pi_1", "usd", 2_000)).await;
    assert_eq!(available(&scene).await, "20.000000");
    // 12.00 in all arrives before 5.00 in all is tried again, which then finds nothing left to do.
    for id in ["re_2", "re_2", "re_2b"] {
        stripe(&scene, id, "charge.refunded", true, refund("pi_1", 1_200)).await;
        assert_eq!(available(&scene).await, "8.000000", "{id}");
    }
    scene.world.clock.advance(60_000);
    scene.relay_once().await;
    assert_eq!(operation(&scene, "re_1").await, "noop already-done");
    assert_eq!(available(&scene).await, "8.000000");
    stripe(&scene, "re_3", "charge.refunded", true, refund("pi_1", 2_000)).await;
    assert_eq!(available(&scene).await, "0.000000");
    stripe(&scene, "re_4", "charge.refunded", true, refund("pi_1", 2_001)).await; // more than was paid
    assert_eq!(operation(&scene, "re_4").await, "needs-review not-possible");
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn a_refund_never_takes_available_below_the_credit_limit() {
    let scene = scene().await;
    wallet(&scene, "USD", "3.00").await;
    stripe(&scene, "evt_1", "payment_intent.succeeded", true, intent("pi_1", "usd", 1_000)).await;
    let job = json!({
        "provider": "acme", "provider_job_ref": "p-j1", "model": "small-1", "wallet": "w1", "hold": "8.00",
    });
    assert_eq!(scene.world.control("PUT", "/control/tenants/t1/jobs/j1", Some(job)).await.0, 201);
    // 2.00 is available and the credit limit 3.00: 5.00 can be taken back, 5.01 cannot.
    stripe(&scene, "re_1", "charge.refunded", true, refund("pi_1", 501)).await;
    assert_eq!(operation(&scene, "re_1").await, "needs-review funds-short");
    stripe(&scene, "re_2", "charge.refunded", true, refund("pi_1", 500)).await;
    assert_eq!(scene.wallet().await, ("-3.000000".to_owned(), "8.000000".to_owned()));
    scene.clean();
}
