//! Jobs that are authorised when they are submitted: what they cost is captured of that when they end, and what is not
//! captured is given up.

use std::sync::Arc;

use local::hook::CallLog;
use local::stack::Function;
use local::world::WorldConfig;
use serde_json::{Value, json};

use super::stripe::{Fault, Stripe};
use super::{Scene, config};
use crate::harness::items;

impl Scene {
    /// A world whose wallet w1 authorises.
    pub async fn authorising() -> Self {
        let stripe = Arc::new(Stripe::default());
        Self::on(config(&stripe), stripe, "USD", json!({"authorise": true})).await
    }

    /// Asks for a job that may cost this much.
    pub async fn ask(&self, job: &str, wallet: &str, hold: Option<&str>) -> (u16, Value) {
        let mut body =
            json!({"provider": "acme", "provider_job_ref": format!("p-{job}"), "model": "usd-1", "wallet": wallet});
        if let Some(hold) = hold {
            body["hold"] = json!(hold);
        }
        self.world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await
    }

    /// Submits it and lets its authorisation leave.
    pub async fn authorise(&self, job: &str, hold: &str) {
        let (status, body) = self.ask(job, "w1", Some(hold)).await;
        assert_eq!(status, 201, "{body}");
        self.world.drain().await.unwrap();
    }

    /// It completes with so many tokens, under its own name as the event's id.
    pub async fn completes(&self, job: &str, tokens: i64) {
        self.ended(job, "job.completed", job, "usd-1", tokens).await;
        self.world.drain().await.unwrap();
    }

    pub async fn cancel(&self, job: &str) {
        let body = json!({"reference": format!("c-{job}"), "reason": "a test"});
        let path = format!("/control/tenants/t1/jobs/{job}/cancel");
        assert_eq!(self.world.control("POST", &path, Some(body)).await.0, 201);
    }

    /// The note of the one operation of an event of our own.
    pub async fn note(&self, id: &str) -> String {
        self.own(id).await["operations"][0]["note"].as_str().unwrap_or_default().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_job_costs_is_captured_of_what_was_authorised_and_the_rest_is_freed() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "15.004").await; // up to whole cents, once
    assert_eq!(scene.stripe.authorised(), ["1501 requires_capture"]);
    assert_eq!(scene.state("authorise|t1|j1").await, "done");
    let payment = scene.stripe.kept()[0].clone();
    // printf %s 'own|authorise%7Ct1%7Cj1|stripe|outbound|forward' | sha256sum
    let key = "2eb8891a4eef3ebb838f948722d35f266860591293c1e7022f0f96f32909f334";
    let hand = json!({"tenant": "t1", "wallet": "w1", "job": "j1", "charge": "authorise|t1|j1", "key": key});
    assert_eq!((payment.key.as_str(), payment.metadata()), (key, hand));
    for (name, value) in
        [("capture_method", "manual"), ("confirm", "true"), ("off_session", "true"), ("customer", "cus_1")]
    {
        assert_eq!(payment.field(name), value, "{name}");
    }
    // The provider holds it, not the wallet.
    scene.assert_owed("0.000000", "0.000000").await;
    assert_eq!(scene.world.wallet("w1").await["held"], "0.000000");
    let job = scene.world.job("j1").await;
    assert_eq!((&job["authorised"], &job["hold"]), (&json!("15.010000"), &json!("0.000000")));

    scene.completes("j1", 12_345_678).await; // 12.345678: 1,234 cents, and 0.005678 is carried
    assert_eq!(scene.stripe.authorised(), ["1501 captured 1234"]);
    assert_eq!(scene.state("capture|t1|j1|c").await, "done");
    scene.assert_owed("-12.340000", "0.005678").await;
    let payment = scene.stripe.kept()[0].clone();
    for id in ["evt_1", "evt_2"] {
        scene.succeeded(id, &payment).await;
        scene.assert_owed("0.000000", "0.005678").await;
    }
    // Stripe counts what was not captured as refunded: nobody paid it, so nothing is taken back.
    scene.says_refunded("evt_3", &payment, 0).await;
    assert_eq!(scene.of_stripe("evt_3").await, "noop already-done");
    let hand = [
        "capture: receivable -12340000, rounding -5678, revenue 12345678",
        "fund: receivable 12340000, external-funding -12340000",
    ];
    assert_eq!(scene.entries(), hand);
    let keys: Vec<String> = scene.stripe.calls().iter().map(key_of).collect();
    assert!(keys.len() == 2 && keys[0] != keys[1], "a step has a key of its own: {keys:?}");
    assert_eq!(scene.stripe.calls()[1].url, "https://stripe.example/v1/payment_intents/pi_1/capture");
    scene.clean().await;
}

fn key_of(call: &runtime::call::Call) -> String {
    call.headers.iter().find(|(name, _)| name == "idempotency-key").unwrap().1.clone()
}

#[tokio::test(start_paused = true)]
async fn whatever_ends_a_job_without_a_charge_gives_the_authorisation_up_once() {
    let stripe = Arc::new(Stripe::default());
    let terms = json!({"authorise": true, "minimum_charge": "0.50"});
    let scene = Scene::on(config(&stripe), stripe, "USD", terms).await;
    for job in ["j1", "j2", "j3", "j4", "j5"] {
        scene.authorise(job, "5.00").await;
    }
    scene.ended("e1", "job.failed", "j1", "usd-1", 2_000_000).await;
    scene.completes("j2", 0).await;
    scene.completes("j3", 300_000).await; // 0.30, and nothing below 0.50 is charged
    scene.cancel("j4").await;
    scene.world.drain().await.unwrap();
    // Stripe tells of a cancellation as of a refund, of a payment that never funded anything.
    scene.says_refunded("evt_1", &scene.stripe.kept()[0], 0).await;
    assert_eq!(scene.of_stripe("evt_1").await, "noop already-done");
    let canceled = json!({"id": "pi_1", "object": "payment_intent", "currency": "usd", "metadata": {}});
    scene.webhook("evt_2", "payment_intent.canceled", canceled).await;
    super::charges::expire(&scene, "j5").await;
    assert_eq!(scene.stripe.authorised(), ["500 canceled"; 5]);
    for job in ["j1", "j2", "j3", "j4", "j5"] {
        assert_eq!(scene.state(&format!("void|t1|{job}|c")).await, "done", "{job}");
    }
    assert_eq!(scene.stripe.calls().len(), 10, "one authorisation and one cancellation of each");
    assert_eq!(scene.stripe.charged(), []);
    scene.assert_owed("0.000000", "0.300000").await;
    assert_eq!(scene.world.job("j5").await["settlements"][0]["kind"], "expire");
    crate::books::audit(&scene.world);
}

#[tokio::test(start_paused = true)]
async fn more_than_was_authorised_is_charged_as_a_whole_and_the_authorisation_given_up() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "10.00").await;
    scene.completes("j1", 10_009_999).await; // 10.00 moves, 0.009999 is carried
    scene.authorise("j2", "10.00").await;
    scene.completes("j2", 10_000_001).await; // 10.01 in all
    assert_eq!(scene.stripe.authorised(), ["1000 captured 1000", "1000 canceled"]);
    assert_eq!(scene.stripe.charged(), [("1001".to_owned(), "usd".to_owned())]);
    for (id, state) in
        [("void|t1|j2|c", "done"), ("charge|t1|j2|c", "done"), ("void|t1|j1|c", ""), ("charge|t1|j1|c", "")]
    {
        assert_eq!(scene.state(id).await, state, "{id}");
    }
    scene.assert_owed("-20.010000", "0.000000").await;
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_authorisation_was_declined_is_charged_as_without() {
    let scene = Scene::authorising().await;
    scene.stripe.meets(&[Fault::Declined]);
    scene.authorise("j1", "12.00").await;
    assert_eq!(scene.state("authorise|t1|j1").await, "needs-review declined");
    assert!(scene.note("authorise|t1|j1").await.contains("nothing is held for this job"));
    let failed = json!({
        "id": "pi_9", "object": "payment_intent", "currency": "usd",
        "metadata": {"tenant": "t1", "wallet": "w1", "job": "j1", "charge": "authorise|t1|j1"},
    });
    scene.webhook("evt_1", "payment_intent.payment_failed", failed).await;
    assert_eq!(scene.of_stripe("evt_1").await, "noop already-done");
    scene.completes("j1", 10_000_000).await;
    assert_eq!(scene.stripe.authorised(), [""; 0]);
    assert_eq!(scene.stripe.charged(), [("1000".to_owned(), "usd".to_owned())]);
    // One that is canceled has nothing to give up.
    scene.stripe.meets(&[Fault::Declined]);
    scene.authorise("j2", "12.00").await;
    scene.cancel("j2").await;
    scene.world.drain().await.unwrap();
    assert_eq!(scene.state("void|t1|j2|c").await, "noop not-possible");
    crate::books::audit(&scene.world);
}

#[tokio::test(start_paused = true)]
async fn a_captured_authorisation_is_refunded_once_and_never_beyond_what_was_captured() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "12.00").await;
    scene.completes("j1", 10_000_000).await;
    let (status, problem) = scene.act("j1", "reverse", "r-0", "4.00").await;
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("has not arrived yet"), "{problem}");
    let payment = scene.stripe.kept()[0].clone();
    scene.succeeded("evt_1", &payment).await;
    for _ in 0..2 {
        assert!(scene.act("j1", "reverse", "r-1", "4.00").await.0 < 300);
    }
    assert_eq!(scene.act("j1", "reverse", "r-2", "6.01").await.0, 409);
    assert_eq!(scene.act("j1", "adjust", "a-1", "-1.00").await.0, 201);
    let refunds = [("pi_1".to_owned(), "400".to_owned()), ("pi_1".to_owned(), "100".to_owned())];
    assert_eq!(scene.stripe.refunded(), refunds);
    scene.assert_owed("5.000000", "0.000000").await;
    // amount_refunded is 2.00 that was never captured, and 5.00.
    scene.says_refunded("evt_2", &payment, 500).await;
    scene.says_refunded("evt_3", &payment, 400).await;
    scene.assert_owed("0.000000", "0.000000").await;
    let hand = [
        "capture: receivable -10000000, revenue 10000000",
        "fund: receivable 10000000, external-funding -10000000",
        "reverse: receivable 4000000, revenue -4000000",
        "adjust: receivable 1000000, revenue -1000000",
        "funding-reversal: receivable -5000000, external-funding 5000000",
    ];
    assert_eq!(scene.entries(), hand);
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn any_number_of_deliveries_captures_once_and_a_replay_sends_nothing() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "12.00").await;
    let more = json!({"model": "usd-1", "usage": {"tokens": 10_000_000}});
    let body = local::world::event_body("job.completed", "j1", more);
    let one = async |id: &str| scene.world.send(id, &body).await.0;
    let all = tokio::join!(one("e1"), one("e1"), one("e2"), one("e1"), one("e3"));
    assert!([all.0, all.1, all.2, all.3, all.4].iter().all(|status| *status < 300));
    scene.world.drain().await.unwrap();
    for id in ["e1", "e2", "e3", "e4"] {
        one(id).await;
        scene.world.drain().await.unwrap();
    }
    assert_eq!(scene.stripe.authorised(), ["1200 captured 1000"]);
    let (status, body) = scene.ask("j1", "w1", Some("12.0")).await;
    assert_eq!((status, &body["authorised"]), (200, &json!("12.000000")), "the same submission again");
    let ids = ["authorise|t1|j1", "capture|t1|j1|c"].map(|id| format!("own/{id}"));
    let body = json!({"events": ids, "reason": "a test", "reference": "p-1"});
    let (status, answer) = scene.world.control("POST", "/control/replays", Some(body)).await;
    assert_eq!((status, &answer["counts"]), (200, &json!({"finished": 2})), "{answer}");
    scene.world.minutes(10).await.unwrap();
    assert_eq!(scene.stripe.calls().len(), 2);
    scene.assert_owed("-10.000000", "0.000000").await;
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn jobs_of_one_wallet_that_end_together_are_captured_in_one_transaction() {
    let (stripe, log) = (Arc::new(Stripe::default()), Arc::new(CallLog::default()));
    let hooks = crate::harness::hooked(Function::Billing, log.clone()).hooks;
    let scene = Scene::on(WorldConfig { hooks, ..config(&stripe) }, stripe, "USD", json!({"authorise": true})).await;
    for job in ["j1", "j2", "j3"] {
        scene.authorise(job, "2.00").await;
    }
    for (job, kind) in [("j1", "job.completed"), ("j2", "job.failed"), ("j3", "job.completed")] {
        scene.ended(job, kind, job, "usd-1", 1_500_000).await;
    }
    scene.world.drain().await.unwrap();
    assert_eq!(scene.stripe.authorised(), ["200 captured 150", "200 canceled", "200 captured 150"]);
    assert_eq!(log.count("TransactWriteItems"), 1);
    scene.assert_owed("-3.000000", "0.000000").await;
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_a_booking_makes_is_authorised_with_it() {
    let scene = Scene::authorising().await;
    let data = json!({
        "tenant": "t1", "booking_id": "b1", "version": 1, "id": "p-b1", "model": "usd-1", "wallet": "w1", "hold": "5.00",
    });
    let body = json!({"type": "booking.created", "timestamp": "2026-11-29T12:00:00Z", "data": data}).to_string();
    for id in ["b_1", "b_2"] {
        assert_eq!(scene.world.send(id, &body).await.0, 202);
        scene.world.drain().await.unwrap();
    }
    assert_eq!(scene.stripe.authorised(), ["500 requires_capture"]);
    assert_eq!(scene.state("authorise|t1|booking-b1").await, "done");
    // Another amount was pinned with the first version.
    let later = body.replace("\"version\":1", "\"version\":2");
    let dearer = later.replace("5.00", "50.00");
    assert!(later != body && dearer != later);
    assert_eq!(scene.world.send("b_3", &dearer).await.0, 202);
    scene.world.drain().await.unwrap();
    assert_eq!(scene.world.explain("b_3").await["operations"][0]["class"], "not-possible");
    assert_eq!(scene.stripe.authorised(), ["500 requires_capture"]);
    crate::books::audit(&scene.world);
}

#[tokio::test(start_paused = true)]
async fn the_terms_and_the_amount_are_checked_when_they_are_asked_for() {
    let scene = Scene::authorising().await;
    let (status, shown) = scene.create("USD", json!({"authorise": true})).await;
    assert_eq!((status, &shown["postpaid"]["authorise"]), (200, &json!(true)));
    assert_eq!(scene.create("USD", json!({})).await.0, 409);
    let (status, problem) = scene.ask("j1", "w1", None).await;
    assert!(status == 400 && problem["detail"].as_str().unwrap().contains("missing field `hold`"), "{problem}");
    let (status, problem) = scene.ask("j1", "w1", Some("0.00")).await;
    assert!(status == 422 && problem["detail"].as_str().unwrap().contains("at least 0.010000"), "{problem}");
    let terms = json!({
        "to": "stripe", "customer": "cus_1", "payment_method": "pm_1", "minimum_charge": "0.495", "authorise": true,
    });
    let body = json!({"currency": "USD", "postpaid": terms});
    assert_eq!(scene.world.control("PUT", "/control/tenants/t1/wallets/w2", Some(body)).await.0, 201);
    let (status, problem) = scene.ask("j1", "w2", Some("0.49")).await;
    assert!(status == 422 && problem["detail"].as_str().unwrap().contains("at least 0.500000"), "{problem}");
    assert_eq!(scene.ask("j1", "w2", Some("0.491")).await.0, 201);
    assert_eq!(scene.ask("j1", "w2", Some("0.492")).await.0, 409);
    // A file without the tables offers no such wallet.
    let stripe = Arc::new(Stripe::default());
    let plain = config(&stripe);
    let named = |line: &&str| !line.starts_with("authorise = ");
    let providers: String = plain.providers.lines().filter(named).map(|line| format!("{line}\n")).collect();
    let other = Scene::on(WorldConfig { providers, ..plain }, stripe, "USD", json!({})).await;
    let (status, problem) = other.create("USD", json!({"authorise": true})).await;
    assert!(status == 422 && problem["detail"].as_str().unwrap().contains("[charges.stripe]"), "{problem}");
}

#[test]
fn tables_of_an_authorisation_that_lead_nowhere_are_refused_at_their_place() {
    let with = |from: &str, to: &str| super::BILLING.replace(from, to);
    for (text, field, word) in [
        (with("to = \"stripe-authorise\"", "to = \"other\""), "charges.stripe.authorise.to", "[destinations.other]"),
        (with("void = \"stripe-void\"", "void = \"stripe\""), "charges.stripe.authorise.void", "look-up"),
        (
            with("capture = \"stripe-capture\"", "capture = \"stripe-void\""),
            "charges.stripe.authorise.capture",
            "no `id`",
        ),
    ] {
        let findings = domain::profile::Profiles::check(&text);
        assert_eq!(findings.len(), 1, "{field}: {findings:?}");
        assert_eq!(findings[0].field, field);
        let said = format!("{} {}", findings[0].cause, findings[0].remedy);
        assert!(said.contains(word), "{said}");
    }
}

/// Submission and authorisation are one transaction; nothing leaves before it.
#[tokio::test(start_paused = true)]
async fn submission_and_authorisation_are_written_together_before_anything_leaves() {
    let scene = Scene::authorising().await;
    assert_eq!(scene.ask("j1", "w1", Some("12.00")).await.0, 201);
    assert_eq!(scene.stripe.calls().len(), 0);
    let is = |item: &&Value| item["pk"]["S"] == "I|own|authorise%7Ct1%7Cj1|stripe|outbound|forward";
    let events = items(&scene.world, "events");
    let intent = events.iter().find(is).unwrap();
    assert_eq!(intent["st"]["S"], "pending");
    assert!(intent["rq"]["S"].as_str().unwrap().starts_with("amount=1200&currency=usd&customer=cus_1&"));
    crate::harness::purge(&scene.world);
    scene.world.minutes(10).await.unwrap();
    assert_eq!(scene.stripe.authorised(), ["1200 requires_capture"]);
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_a_person_gives_up_gives_up_the_authorisation_with_it() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "12.00").await;
    let body = local::world::event_body("job.completed", "j1", json!({"model": "usd-1"}));
    assert_eq!(scene.world.send("j1", &body).await.0, 202);
    scene.world.drain().await.unwrap();
    assert_eq!(scene.settlement("j1").await, "needs-review no-usage");
    let close = |release: bool| json!({"action": "close", "reason": "a test", "release": release});
    assert_eq!(scene.decide("settle-usage:acme/j1", close(false)).await.0, 409);
    assert_eq!(scene.stripe.authorised(), ["1200 requires_capture"]);
    assert_eq!(scene.decide("settle-usage:acme/j1", close(true)).await.0, 200);
    assert_eq!(scene.stripe.authorised(), ["1200 canceled"]);
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_success_after_the_authorisation_was_given_up_is_a_charge_of_its_own() {
    let scene = Scene::authorising().await;
    scene.authorise("j1", "12.00").await;
    super::charges::expire(&scene, "j1").await;
    assert_eq!(scene.stripe.authorised(), ["1200 canceled"]);
    let now = domain::time::rfc3339(scene.world.stack.app.clock.now_ms());
    let data = json!({"tenant": "t1", "job_id": "j1", "id": "p-j1", "model": "usd-1", "usage": {"tokens": 7_000_000}});
    let body = json!({"type": "job.completed", "timestamp": now, "data": data}).to_string();
    assert_eq!(scene.world.send("e1", &body).await.0, 202);
    scene.world.drain().await.unwrap();
    assert_eq!(scene.stripe.charged(), [("700".to_owned(), "usd".to_owned())]);
    assert_eq!(scene.state("charge|t1|j1|l|000001").await, "done");
    assert_eq!(scene.stripe.authorised(), ["1200 canceled"]);
    crate::books::audit(&scene.world);
}
