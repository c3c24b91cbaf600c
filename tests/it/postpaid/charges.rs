//! Charges: whole minor units, once, in the settlement's own transaction.

use std::sync::Arc;

use domain::limits::{EXPIRY_BUCKET_MS, SHARDS};
use local::hook::CallLog;
use local::stack::Function;
use local::world::WorldConfig;
use serde_json::json;
use store::Cursor;

use super::stripe::{Fault, Stripe};
use super::{Scene, config};
use crate::harness::items;

#[tokio::test(start_paused = true)]
async fn a_completed_job_is_charged_once_and_its_payment_clears_the_receivable() {
    let scene = Scene::of("USD").await;
    scene.job("j1", "usd-1", 12_345_678).await; // 12.345678: 1,234 cents, and 0.005678 is carried
    assert_eq!(scene.stripe.charged(), [("1234".to_owned(), "usd".to_owned())]);
    scene.assert_owed("-12.340000", "0.005678").await;
    assert_eq!(scene.state("charge|t1|j1|c").await, "done");
    let payment = &scene.stripe.kept()[0];
    // printf %s 'own|charge%7Ct1%7Cj1%7Cc|stripe|outbound|forward' | sha256sum
    assert_eq!(payment.key, "abc6ccfe5e5c829f40c4c5914baa1a3c2a412c2402781b4992c9b12701ad2473");
    let hand = json!({"tenant": "t1", "wallet": "w1", "job": "j1", "charge": "charge|t1|j1|c", "key": payment.key});
    assert_eq!(payment.metadata(), hand);
    for (name, value) in
        [("customer", "cus_1"), ("payment_method", "pm_1"), ("off_session", "true"), ("confirm", "true")]
    {
        assert_eq!(payment.field(name), value, "{name}");
    }
    scene.succeeded("evt_1", payment).await;
    scene.succeeded("evt_2", payment).await;
    scene.assert_owed("0.000000", "0.005678").await;
    let hand = [
        "capture: receivable -12340000, rounding -5678, revenue 12345678",
        "fund: receivable 12340000, external-funding -12340000",
    ];
    assert_eq!(scene.entries(), hand);
    assert_eq!(scene.stripe.calls().len(), 1);
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn the_rest_is_carried_over_three_charges_by_each_currencys_minor_unit() {
    // Micros of each job; what Stripe is asked for in minor units; what is owed and carried at the end.
    for (code, jobs, minor, owed, carried) in [
        ("USD", [8_700, 8_700, 8_700], vec!["1", "1"], "-0.020000", "0.006100"),
        ("JPY", [600_000, 600_000, 900_000], vec!["1", "1"], "-2.000000", "0.100000"),
        ("KWD", [1_234_500, 1_234_500, 1_234_500], vec!["1234", "1235", "1234"], "-3.703000", "0.000500"),
    ] {
        let scene = Scene::of(code).await;
        let model = format!("{}-1", code.to_ascii_lowercase());
        for (name, tokens) in ["j1", "j2", "j3"].iter().zip(jobs) {
            scene.job(name, &model, tokens).await;
        }
        let said: Vec<String> = scene.stripe.charged().into_iter().map(|(minor, _)| minor).collect();
        assert_eq!(said, minor, "{code}");
        scene.assert_owed(owed, carried).await;
        for (number, payment) in scene.stripe.kept().iter().enumerate() {
            scene.succeeded(&format!("evt_{number}"), payment).await;
        }
        scene.assert_owed("0.000000", carried).await;
        scene.clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_below_the_minimum_is_charged() {
    let scene = Scene::of("USD").await;
    let more = json!({"minimum_charge": "0.50"});
    let body = json!({"currency": "USD", "postpaid": {"to": "stripe", "customer": "cus_2", "payment_method": "pm_2", "minimum_charge": "0.50"}});
    assert_eq!(scene.world.control("PUT", "/control/tenants/t1/wallets/w2", Some(body)).await.0, 201);
    assert_eq!(scene.create("USD", more).await.0, 409);
    for (job, tokens) in [("j1", 300_000), ("j2", 199_900), ("j3", 5_100)] {
        let body =
            json!({"provider": "acme", "provider_job_ref": format!("p-{job}"), "model": "usd-1", "wallet": "w2"});
        assert_eq!(scene.world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await.0, 201);
        scene.ended(job, "job.completed", job, "usd-1", tokens).await;
        scene.world.drain().await.unwrap();
    }
    assert_eq!(scene.stripe.charged(), [("50".to_owned(), "usd".to_owned())]); // 0.505 in all
    assert_eq!(scene.world.wallet("w2").await["carried"], "0.005000");
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_a_cancellation_and_an_expiry_charge_nothing_and_a_success_after_it_does() {
    let scene = Scene::of("USD").await;
    for job in ["j1", "j2", "j3"] {
        scene.submit(job, "usd-1").await;
    }
    scene.ended("e1", "job.failed", "j1", "usd-1", 5_000_000).await;
    scene.world.drain().await.unwrap();
    let body = json!({"reference": "c-1", "reason": "a test"});
    assert_eq!(scene.world.control("POST", "/control/tenants/t1/jobs/j2/cancel", Some(body)).await.0, 201);
    scene.world.drain().await.unwrap();
    expire(&scene, "j3").await;
    assert_eq!(scene.world.job("j3").await["settlements"][0]["kind"], "expire");
    assert_eq!(scene.stripe.calls().len(), 0);
    scene.assert_owed("0.000000", "0.000000").await;
    let events = items(&scene.world, "events");
    assert!(!events.iter().any(|item| item["pk"]["S"].as_str().unwrap().starts_with("I|")));
    // What completes all the same is a late capture, with a charge of its own.
    let now = domain::time::rfc3339(scene.world.stack.app.clock.now_ms());
    let data = json!({"tenant": "t1", "job_id": "j3", "id": "p-j3", "model": "usd-1", "usage": {"tokens": 7_000_000}});
    let body = json!({"type": "job.completed", "timestamp": now, "data": data}).to_string();
    assert_eq!(scene.world.send("e3", &body).await.0, 202);
    scene.world.drain().await.unwrap();
    assert_eq!(scene.stripe.charged(), [("700".to_owned(), "usd".to_owned())]);
    assert_eq!(scene.state("charge|t1|j3|l|000001").await, "done");
    crate::books::audit(&scene.world);
}

/// The job's hold outlives its life, and the relay closes it.
pub(super) async fn expire(scene: &Scene, job: &str) {
    let store = &scene.world.stack.app.store;
    let records = store.get_job(&"t1".parse().unwrap(), &job.parse().unwrap()).await.unwrap().unwrap();
    let now_ms = scene.world.stack.app.clock.now_ms();
    scene.world.clock.advance(records.expires_ms - now_ms + 700_000);
    for shard in 0..SHARDS {
        store.advance_cursor(Cursor::Expiry, shard, records.expires_ms / EXPIRY_BUCKET_MS - 1).await.unwrap();
    }
    crate::harness::relay_has_run(&scene.world).await;
    scene.world.stack.relay().await.unwrap();
    scene.world.drain().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn jobs_of_one_wallet_that_end_together_are_each_charged() {
    let (stripe, log) = (Arc::new(Stripe::default()), Arc::new(CallLog::default()));
    let hooks = crate::harness::hooked(Function::Billing, log.clone()).hooks;
    let scene = Scene::with(WorldConfig { hooks, ..config(&stripe) }, stripe, "USD").await;
    for job in ["j1", "j2", "j3"] {
        scene.submit(job, "usd-1").await;
    }
    for job in ["j1", "j2", "j3"] {
        scene.ended(job, "job.completed", job, "usd-1", 1_006_000).await; // 1.006 each: 3.018
    }
    scene.world.drain().await.unwrap();
    let said: Vec<String> = scene.stripe.charged().into_iter().map(|(minor, _)| minor).collect();
    let sum: i64 = said.iter().map(|minor| minor.parse::<i64>().unwrap()).sum();
    assert_eq!((said.len(), sum), (3, 301));
    assert_eq!(log.count("TransactWriteItems"), 1, "they were settled and charged in one transaction");
    scene.assert_owed("-3.010000", "0.008000").await;
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_correction_up_is_charged_under_its_own_key_and_one_down_is_a_credit() {
    let scene = Scene::of("USD").await;
    scene.job("j1", "usd-1", 2_000_000).await;
    let corrected = |id: &'static str, sequence: i64, tokens: i64| {
        let more = json!({"model": "usd-1", "correction_id": id, "sequence": sequence, "usage": {"tokens": tokens}});
        (id, local::world::event_body("usage.corrected", "j1", more))
    };
    for (id, body) in [corrected("up", 4, 2_500_000), corrected("down", 5, 2_200_000)] {
        assert_eq!(scene.world.send(id, &body).await.0, 202);
        scene.world.drain().await.unwrap();
    }
    let said: Vec<String> = scene.stripe.charged().into_iter().map(|(minor, _)| minor).collect();
    assert_eq!(said, ["200", "50"]);
    scene.assert_owed("-2.500000", "-0.300000").await;
    scene.job("j2", "usd-1", 1_000_000).await; // 1.00 less the credit
    assert_eq!(scene.stripe.charged()[2].0, "70");
    scene.assert_owed("-3.200000", "0.000000").await;
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn what_stripe_refuses_as_a_request_waits_and_is_charged_once_after_the_repair() {
    let scene = Scene::of("USD").await;
    scene.stripe.meets(&[Fault::Invalid, Fault::Invalid]);
    scene.job("j1", "usd-1", 10_000_000).await;
    assert_eq!(scene.state("charge|t1|j1|c").await, "retrying transient");
    assert_eq!(scene.stripe.charged().len(), 0);
    scene.world.minutes(60).await.unwrap();
    assert!(scene.state("charge|t1|j1|c").await.starts_with("done"));
    assert_eq!(scene.stripe.charged(), [("1000".to_owned(), "usd".to_owned())]);
    let calls = scene.stripe.calls();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| (&call.body, &call.headers) == (&calls[0].body, &calls[0].headers)));
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_a_finished_charge_or_refund_reports_it_and_sends_nothing() {
    let scene = Scene::of("USD").await;
    scene.job("j1", "usd-1", 10_000_000).await;
    scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
    assert_eq!(scene.act("j1", "reverse", "r-1", "4.00").await.0, 201);
    let ids = ["charge|t1|j1|c", "refund|t1|j1|v|r-1"];
    let body = json!({"events": ids.map(|id| format!("own/{id}")), "reason": "a test", "reference": "p-1"});
    let (status, answer) = scene.world.control("POST", "/control/replays", Some(body)).await;
    assert_eq!((status, &answer["counts"]), (200, &json!({"finished": 2})), "{answer}");
    // One that was asked for before this was refused is not sent again either.
    let sends = |item: &serde_json::Value| item["pk"]["S"] == "I|own|charge%7Ct1%7Cj1%7Cc|stripe|outbound|forward";
    assert!(items(&scene.world, "events").iter().any(sends));
    let key = domain::operation::OperationKey {
        event: "own/charge|t1|j1|c".parse().unwrap(),
        item: "stripe".parse().unwrap(),
        name: domain::operation::OperationName::Forward,
    };
    let change = domain::operation::Change {
        state: domain::operation::OperationState::Wait,
        class: domain::operation::Class::Retried,
        note: "replayed".to_owned(),
        due_ms: Some(crate::harness::now_ms(&scene.world)),
        generation: 1,
        resend: false,
        attempts: 0,
    };
    let now_ms = crate::harness::now_ms(&scene.world);
    let record = domain::operation::OperationRecord::next(key, None, change, now_ms, "t".to_owned());
    let waivers = domain::operation::Waivers { again: true, ..record.waivers };
    scene.world.stack.app.store.put_operation(&record.waiving(waivers)).await.unwrap();
    scene.world.minutes(10).await.unwrap();
    assert_eq!(scene.stripe.calls().len(), 2, "a charge and a refund");
    crate::books::audit(&scene.world);
}

#[tokio::test(start_paused = true)]
async fn what_a_wallet_carries_is_compared_with_the_rounding_account() {
    let scene = Scene::of("USD").await;
    scene.job("j1", "usd-1", 12_345_678).await;
    let mut balance = items(&scene.world, "balances").remove(0);
    assert_eq!(balance["ca"]["N"], "5678");
    balance["ca"]["N"] = json!("5679");
    crate::harness::overwrite(&scene.world, "balances", &balance);
    scene.world.clock.advance(crate::harness::HOUR_MS / 2);
    let scope = json!({"from": "2026-11-29T11:50:00Z", "kinds": ["wallets"]});
    let found = scene.world.reconcile("end", scope).await.unwrap();
    let evidence = found["cases"][0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("carries 0.005679") && evidence.contains("0.005678"), "{found}");
}

/// A review of what is told is nobody's telling; one of a step at a payment provider is a person's matter as any other.
#[tokio::test(start_paused = true)]
async fn a_review_of_a_charge_or_an_authorisation_is_told() {
    for (terms, step) in [(json!({}), "%7Ccharge%"), (json!({"authorise": true}), "%7Cauthorise%")] {
        let stripe = Arc::new(Stripe::default());
        let mut config = config(&stripe);
        config.providers +=
            "\n[subscriptions.desk]\nto = \"sqs:DESK\"\ntypes = [\"review.opened\"]\ntenants = [\"*\"]\n";
        let scene = Scene::on(config, stripe, "USD", terms.clone()).await;
        scene.stripe.meets(&[Fault::Declined]);
        if terms["authorise"] == true {
            scene.authorise("j1", "12.00").await;
        } else {
            scene.job("j1", "usd-1", 10_000_000).await;
        }
        let receipts = items(&scene.world, "events").into_iter().filter(|item| item["sk"]["S"] == "r");
        let events = receipts.map(|item| item["pk"]["S"].as_str().unwrap().to_owned());
        let told: Vec<String> = events.filter(|pk| pk.starts_with("E|own|review.opened%7Cown%7C")).collect();
        assert!(
            told.len() == 1 && told[0].contains(step) && told[0].ends_with("stripe%7Coutbound%7Cforward%7C1"),
            "{told:?}"
        );
    }
}
