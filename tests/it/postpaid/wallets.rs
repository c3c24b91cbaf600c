//! Creating postpaid wallets and submitting jobs on them: what is refused, and with which words.

use serde_json::json;

use super::Scene;

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

#[test]
fn a_table_of_charges_that_leads_nowhere_is_refused_at_its_place() {
    let with = |from: &str, to: &str| super::BILLING.replace(from, to);
    for (text, field, word) in [
        (with("to = \"stripe\"\nrefunds", "to = \"other\"\nrefunds"), "charges.stripe.to", "[destinations.other]"),
        (with("refunds = \"stripe-refunds\"", "refunds = \"stripe\""), "charges.stripe.refunds", "look-up"),
        (with("provider = \"stripe-billing\"", "provider = \"other\""), "charges.stripe.provider", "[providers.other]"),
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
