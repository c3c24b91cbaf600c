//! Stripe's webhooks about payments: out of order, several of one payment, and more than one endpoint's.

use serde_json::json;

use super::Scene;

#[tokio::test(start_paused = true)]
async fn a_payments_events_in_any_order_clear_it_once_and_take_the_refund_back_once() {
    let scene = Scene::of("USD").await;
    scene.job("j1", "usd-1", 20_000_000).await;
    let payment = scene.stripe.kept()[0].clone();
    // A refund that somebody made at Stripe is told before the payment: it waits for it.
    scene.says_refunded("evt_2", &payment, 500).await;
    scene.assert_owed("-20.000000", "0.000000").await;
    scene.succeeded("evt_1", &payment).await;
    scene.assert_owed("0.000000", "0.000000").await;
    scene.says_refunded("evt_2", &payment, 500).await;
    scene.world.minutes(3).await.unwrap();
    for id in ["evt_2", "evt_3", "evt_3"] {
        scene.says_refunded(id, &payment, 500).await;
        scene.succeeded("evt_1", &payment).await;
        scene.succeeded("evt_4", &payment).await;
        scene.assert_owed("-5.000000", "0.000000").await; // what went back is owed again
    }
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_payment_posts_nothing_and_one_person_is_asked_once() {
    let scene = Scene::of("USD").await;
    let failed = |payment: &str, job: &str| {
        let charge = format!("charge|t1|{job}|c");
        let metadata = json!({"tenant": "t1", "wallet": "w1", "job": job, "charge": charge});
        json!({"id": payment, "object": "payment_intent", "currency": "usd", "metadata": metadata})
    };
    let kind = "payment_intent.payment_failed";
    // A declined card: the charge's own answer said so.
    scene.stripe.meets(&[super::stripe::Fault::Declined]);
    scene.job("j1", "usd-1", 20_000_000).await;
    assert_eq!(scene.state("charge|t1|j1|c").await, "needs-review declined");
    scene.webhook("evt_1", kind, failed("pi_9", "j1")).await;
    assert_eq!(scene.of_stripe("evt_1").await, "noop already-done");
    // A delayed method: the charge was taken, and the payment fails later.
    scene.job("j2", "usd-1", 10_000_000).await;
    scene.webhook("evt_2", kind, failed("pi_1", "j2")).await;
    assert_eq!(scene.of_stripe("evt_2").await, "needs-review declined");
    scene.assert_owed("-30.000000", "0.000000").await;
    // One that succeeded after all, and one that names a charge which is not here.
    scene.job("j3", "usd-1", 5_000_000).await;
    scene.succeeded("evt_3", &scene.stripe.kept()[1]).await;
    scene.webhook("evt_4", kind, failed("pi_2", "j3")).await;
    assert_eq!(scene.of_stripe("evt_4").await, "noop superseded");
    scene.webhook("evt_5", kind, failed("pi_7", "j7")).await;
    assert_eq!(scene.of_stripe("evt_5").await, "needs-review declined");
    // Somebody's failed top-up names no charge: nobody is asked.
    let metadata = json!({"tenant": "t1", "wallet": "w1"});
    let top_up = json!({"id": "pi_8", "object": "payment_intent", "currency": "usd", "metadata": metadata});
    scene.webhook("evt_6", kind, top_up).await;
    assert_eq!(scene.of_stripe("evt_6").await, "noop not-possible");
    crate::books::audit(&scene.world);
}

#[tokio::test(start_paused = true)]
async fn a_payment_that_comes_before_its_own_charges_answer_is_posted_once() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[super::stripe::Fault::AnswerLost]);
    scene.job("j1", "usd-1", 20_000_000).await;
    let payment = scene.stripe.kept()[0].clone();
    scene.succeeded("evt_1", &payment).await;
    scene.assert_owed("0.000000", "0.000000").await;
    scene.world.minutes(30).await.unwrap();
    assert!(scene.state("charge|t1|j1|c").await.starts_with("done"));
    assert_eq!(scene.stripe.charged().len(), 1);
    scene.assert_owed("0.000000", "0.000000").await;
    scene.clean().await;
}
