//! A case is decided once: the same request again is the same decision, and whoever comes second is told whose stands.

use local::world::World;
use serde_json::{Value, json};

use super::plant::{only, reconcile, settled, tamper, told};
use crate::harness::{balance, items};
use crate::operations::scene::{ANN, BOB, ask, decide_as};

/// A drift of one unit, and the review that it is.
async fn drifted() -> (std::sync::Arc<World>, String) {
    let world = settled().await;
    drift(&world, "100991300");
    let run = reconcile(&world, "first").await;
    assert_eq!(told(&run), ["balance-drift/rebuild/open"], "{run}");
    (world, only(&run))
}

fn drift(world: &World, available: &str) {
    tamper(world, "balances", "W|t1|w1", "", |item| item["av"] = json!({"N": available}));
}

async fn decisions(world: &World, case: &str) -> Vec<Value> {
    let path = format!("/control/reconciliations/first/cases/{case}");
    world.control("GET", &path, None).await.1["decisions"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_second_is_told_whose_decision_stands() {
    let (world, case) = drifted().await;
    let review = format!("case:{case}");
    let close = json!({"action": "close", "reason": "agreed with finance"});
    let (status, done) = decide_as(&world, ANN, &review, close.clone()).await;
    assert_eq!((status, &done["again"], &done["actor"]), (200, &json!(false), &json!(ANN)), "{done}");
    let (status, again) = decide_as(&world, ANN, &review, close.clone()).await;
    assert_eq!((status, &again["again"], &again["at"]), (200, &json!(true), &done["at"]), "{again}");
    let retry = json!({"action": "retry", "reason": "agreed with finance"});
    let other = json!({"action": "close", "reason": "no reason of hers"});
    for (actor, body) in [(BOB, close), (ANN, retry), (ANN, other)] {
        let (status, problem) = decide_as(&world, actor, &review, body.clone()).await;
        assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "{body} {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("decided before: dismissed by {ANN} at 2026-11-29T15:")), "{problem}");
    }
    let (status, problem) = world.decide_case("first", &case, "apply").await;
    assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "it was let stand: {problem}");
    assert_eq!(world.decide_case("first", &case, "dismiss").await.0, 200);
    assert_eq!(decisions(&world, &case).await.len(), 1);
    assert_eq!(balance(&world, "w1").await.0, "100.991300");
}

#[tokio::test(start_paused = true)]
async fn a_decision_under_a_reference_is_made_once_even_when_the_case_is_open_again() {
    let (world, case) = drifted().await;
    let review = format!("case:{case}");
    let close = json!({"action": "close", "reason": "known", "reference": "k1"});
    let (status, done) = decide_as(&world, ANN, &review, close.clone()).await;
    assert_eq!((status, &done["reference"]), (200, &json!("k1")), "{done}");
    assert_eq!(decisions(&world, &case).await[0]["reference"], "k1");
    drift(&world, "101991300"); // other evidence: the case is open again
    assert_eq!(only(&reconcile(&world, "second").await), case);
    let (status, again) = decide_as(&world, ANN, &review, close.clone()).await;
    assert_eq!((status, &again["again"]), (200, &json!(true)), "{again}");
    assert_eq!(decide_as(&world, BOB, &review, close).await.0, 409);
    assert_eq!(decisions(&world, &case).await.len(), 1, "the second occurrence is not decided");
    let next = json!({"action": "retry", "reason": "known", "reference": "k2"});
    assert_eq!(decide_as(&world, ANN, &review, next).await.0, 200);
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_refuses_what_the_real_one_refuses() {
    let world = settled().await;
    tamper(&world, "ledger", "J|t1|j1", "c", |item| item["by"] = json!({"S": "acme/msg_9"}));
    let run = world.reconcile("first", json!({"kinds": ["wallets"]})).await.unwrap();
    assert_eq!(told(&run), ["chain-broken/person/open"], "{run}");
    let before = items(&world, "events");
    let body = |action: &str, dry: bool| json!({"filter": {"reason": "chain-broken"}, "action": action, "reason": "looked", "dry_run": dry});
    for dry in [true, false] {
        let (_, told) = ask(&world, "POST", "/control/reviews", Some(body("retry", dry))).await;
        assert_eq!((&told["decided"], &told["refused"]), (&json!(0), &json!(1)), "{told}");
        assert_eq!(told["results"][0]["code"], "not-possible", "{told}");
    }
    let (_, told) = ask(&world, "POST", "/control/reviews", Some(body("close", true))).await;
    assert_eq!(told["results"][0]["result"], "would-decide", "{told}");
    assert_eq!(items(&world, "events"), before);
}
