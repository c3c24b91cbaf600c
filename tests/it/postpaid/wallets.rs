//! Creating postpaid wallets and submitting jobs on them: what is refused, and with which words.

use serde_json::json;

use super::Scene;
use crate::harness::{items, overwrite};

#[tokio::test(start_paused = true)]
async fn the_terms_of_a_wallet_are_part_of_its_content() {
    let scene = Scene::of("USD").await;
    let (status, shown) = scene.create("USD", json!({})).await;
    assert_eq!(status, 200, "{shown}");
    assert_eq!(shown["postpaid"]["customer"], "cus_1");
    assert_eq!(shown["credit_limit"], "10000000000.000000");
    for other in [json!({"customer": "cus_2"}), json!({"payment_method": "pm_2"}), json!({"minimum_charge": "1.00"})] {
        assert_eq!(scene.create("USD", other.clone()).await.0, 409, "{other}");
    }
    let prepaid = json!({"currency": "USD", "credit_limit": "10000000000.00"});
    assert_eq!(scene.world.control("PUT", "/control/tenants/t1/wallets/w1", Some(prepaid)).await.0, 409);
    for (bad, word) in [
        (json!({"to": "other"}), "[charges.other]"),
        (json!({"customer": ""}), "customer"),
        (json!({"payment_method": "pm 1"}), "payment_method"),
        (json!({"minimum_charge": "-1"}), "minimum_charge"),
    ] {
        let (status, problem) = scene.create("USD", bad.clone()).await;
        assert!((400..=422).contains(&status) && status != 409, "{bad}: {status}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_on_a_postpaid_wallet_has_no_hold_and_one_on_a_prepaid_wallet_needs_it() {
    let scene = Scene::of("USD").await;
    let submit = async |job: &str, wallet: &str, hold: Option<&str>| {
        let mut body = json!({"provider": "acme", "model": "usd-1", "wallet": wallet});
        if let Some(hold) = hold {
            body["hold"] = json!(hold);
        }
        scene.world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await
    };
    let (status, problem) = submit("j1", "w1", Some("1.00")).await;
    assert!(status == 400 && problem["detail"].as_str().unwrap().contains("leave `hold` out"), "{problem}");
    assert_eq!(submit("j1", "w1", None).await.0, 201);
    assert_eq!(submit("j1", "w1", Some("0.00")).await.0, 200);
    assert_eq!(scene.world.fund("w2", "5.00").await.0, 201);
    let (status, problem) = submit("j2", "w2", None).await;
    assert!(status == 400 && problem["detail"].as_str().unwrap().contains("missing field `hold`"), "{problem}");
    assert_eq!(submit("j2", "w2", Some("1.00")).await.0, 201);
}

/// A credit limit is the most that may be owed.
#[tokio::test(start_paused = true)]
async fn a_charge_above_the_credit_limit_is_a_persons() {
    let scene = Scene::of("USD").await;
    let terms = json!({"to": "stripe", "customer": "cus_1", "payment_method": "pm_1"});
    let body = json!({"currency": "USD", "credit_limit": "3.00", "postpaid": terms});
    assert_eq!(scene.world.control("PUT", "/control/tenants/t1/wallets/w3", Some(body)).await.0, 201);
    let body = json!({"provider": "acme", "provider_job_ref": "p-j1", "model": "usd-1", "wallet": "w3"});
    assert_eq!(scene.world.control("PUT", "/control/tenants/t1/jobs/j1", Some(body)).await.0, 201);
    scene.ended("e1", "job.completed", "j1", "usd-1", 3_010_000).await;
    scene.world.drain().await.unwrap();
    let operations = scene.world.explain("e1").await["operations"].clone();
    let settle = operations.as_array().unwrap().iter().find(|o| o["operation"] == "settle-usage").unwrap().clone();
    assert_eq!((settle["state"].as_str(), settle["class"].as_str()), (Some("needs-review"), Some("funds-short")));
    assert_eq!(scene.stripe.kept().len(), 0);
}

/// What is compared with the limit is what moves at the provider, not what was priced.
#[tokio::test(start_paused = true)]
async fn a_credit_limit_holds_for_what_moves_and_not_for_what_is_carried() {
    let scene = Scene::of("USD").await;
    scene.limited("w3", "10.00", "0.50").await;
    for job in ["j1", "j2", "j3", "j4"] {
        scene.submit_on("w3", job).await;
    }
    let ended = async |job: &str, tokens: i64| {
        scene.ended(job, "job.completed", job, "usd-1", tokens).await;
        scene.world.drain().await.unwrap();
        let wallet = scene.world.wallet("w3").await;
        (scene.settlement(job).await, wallet["available"].clone(), wallet["carried"].clone())
    };
    let hand = |state: &str, carried: &str| (state.to_owned(), json!("-9.600000"), json!(carried));
    assert_eq!(ended("j1", 9_600_000).await, hand("done", "0.000000"));
    // 0.45 is below the minimum, so nothing moves: that 0.40 is left to be owed does not matter.
    assert_eq!(ended("j2", 450_000).await, hand("done", "0.450000"));
    // 0.10 makes it 0.55, which is charged now: 10.15 would be owed.
    assert_eq!(ended("j3", 100_000).await, hand("needs-review funds-short", "0.450000"));
    let (status, problem) = scene.act("j1", "adjust", "a-1", "0.10").await;
    assert_eq!((status, &problem["code"]), (402, &json!("funds-short")), "{problem}");
    assert_eq!(scene.act("j1", "adjust", "a-2", "0.04").await.0, 201); // 0.49 is carried
    assert_eq!(scene.world.wallet("w3").await["carried"], "0.490000");
    // A late capture is held to the same: 0.49 and 0.01 are the minimum, and 10.10 would be owed.
    super::charges::expire(&scene, "j4").await;
    let now = domain::time::rfc3339(scene.world.stack.app.clock.now_ms());
    let late = async |id: &str, tokens: i64| {
        let usage = json!({"tokens": tokens});
        let data = json!({"tenant": "t1", "job_id": "j4", "id": "p-j4", "model": "usd-1", "usage": usage});
        let body = json!({"type": "job.completed", "timestamp": now, "data": data}).to_string();
        assert_eq!(scene.world.send(id, &body).await.0, 202);
        scene.world.drain().await.unwrap();
        scene.settlement(id).await
    };
    assert_eq!(late("e4", 10_000).await, "needs-review funds-short");
    assert_eq!(scene.stripe.charged(), [("960".to_owned(), "usd".to_owned())]);
    crate::books::audit(&scene.world);
}

#[tokio::test(start_paused = true)]
async fn what_a_postpaid_wallet_is_short_of_cannot_be_capped_away() {
    let scene = Scene::of("USD").await;
    scene.limited("w3", "3.00", "0.00").await;
    scene.submit_on("w3", "j1").await;
    scene.ended("e1", "job.completed", "j1", "usd-1", 3_010_000).await;
    scene.world.drain().await.unwrap();
    let review = "settle-usage:acme/e1";
    let cap = json!({"action": "approve", "alternative": "cap", "reason": "a test"});
    let (status, problem) = scene.decide(review, cap).await;
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("postpaid"), "{status} {problem}");
    // A waiver that stands all the same, from before, gives nothing away either.
    let settles = |item: &serde_json::Value| {
        let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
        text("pk").ends_with("|e1") && text("sk").ends_with("settle-usage")
    };
    let mut record = items(&scene.world, "events").into_iter().find(settles).unwrap();
    record["wv"] = json!({"M": {"ov": {"S": "cap"}}});
    overwrite(&scene.world, "events", &record);
    assert_eq!(scene.decide(review, json!({"action": "retry", "reason": "a test"})).await.0, 200);
    assert_eq!(scene.settlement("e1").await, "needs-review funds-short");
    assert_eq!(scene.stripe.kept().len(), 0);
    assert_eq!(scene.world.wallet("w3").await["available"], "0.000000");
    crate::books::audit(&scene.world);
}

#[test]
fn a_table_of_charges_that_leads_nowhere_is_refused_at_its_place() {
    let with = |from: &str, to: &str| super::BILLING.replace(from, to);
    let once = |from: &str, to: &str| super::BILLING.replacen(from, to, 1);
    for (text, field, word) in [
        (with("to = \"stripe\"\nrefunds", "to = \"other\"\nrefunds"), "charges.stripe.to", "[destinations.other]"),
        (with("refunds = \"stripe-refunds\"", "refunds = \"stripe\""), "charges.stripe.refunds", "look-up"),
        (with("provider = \"stripe-billing\"", "provider = \"other\""), "charges.stripe.provider", "[providers.other]"),
        (once("id = \"/id\"\n", ""), "charges.stripe.to", "[destinations.stripe] has no `id`"),
        (with("id = \"/data/0/id\"\n", ""), "charges.stripe.to", "[destinations.stripe.lookup] has no `id`"),
        (with("form = \"stripe\"", "form = \"other\""), "charges.stripe.form", "stripe"),
    ] {
        let findings = domain::profile::Profiles::check(&text);
        assert_eq!(findings.len(), 1, "{field}: {findings:?}");
        assert_eq!(findings[0].field, field);
        let said = format!("{} {}", findings[0].cause, findings[0].remedy);
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(domain::profile::Profiles::check(super::BILLING), []);
}
