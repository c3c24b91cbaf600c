//! Runs: started once, counted once, side by side, and told without a payload.

use local::world::completed;
use serde_json::{Value, json};

use super::plant::{later, only, reconcile, settled, tamper, told};
use crate::harness::{submitted, taken_in};

#[tokio::test(start_paused = true)]
async fn the_same_reference_is_the_same_run_and_other_content_a_conflict() {
    let world = settled().await;
    let ask = |body: Value| {
        let world = world.clone();
        async move { world.control("POST", "/control/reconciliations", Some(body)).await }
    };
    let body = json!({"reference": "r1", "reason": "why", "kinds": ["wallets"]});
    assert_eq!(ask(body.clone()).await.0, 201);
    assert_eq!(ask(body).await.0, 200);
    let (status, problem) = ask(json!({"reference": "r1", "reason": "other"})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("conflict")));
    for refused in [
        json!({"reference": "r2"}),
        json!({"reference": "r2", "reason": "why", "kinds": []}),
        json!({"reference": "r2", "reason": "why", "tenant": "t1"}),
        json!({"reference": "r2", "reason": "why", "provider": "github"}),
        json!({"reference": "r2", "reason": "why", "from": "yesterday"}),
        json!({"reference": "r2", "reason": "why", "from": "2026-01-01T00:00:00Z"}),
    ] {
        assert_eq!(ask(refused.clone()).await.0, 422, "{refused}");
    }
    assert_eq!(world.control("GET", "/control/reconciliations/none", None).await.0, 404);
    assert_eq!(world.decide_case("r1", "none", "apply").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn two_runs_side_by_side_find_the_same_case_once() {
    let world = settled().await;
    tamper(&world, "balances", "W|t1|w1", "", |item| item["av"] = json!({"N": "100991300"}));
    for reference in ["a", "b"] {
        let body = json!({"reference": reference, "reason": "both", "kinds": ["wallets", "reviews"]});
        assert_eq!(world.control("POST", "/control/reconciliations", Some(body)).await.0, 201);
    }
    world.drain().await.unwrap();
    let a = world.control("GET", "/control/reconciliations/a", None).await.1;
    let b = world.control("GET", "/control/reconciliations/b", None).await.1;
    assert_eq!((only(&a), told(&a)), (only(&b), told(&b)));
    let new = |run: &Value| run["classes"]["balance-drift"]["new"].as_u64().unwrap_or_default();
    assert_eq!(new(&a) + new(&b), 1, "one of the two opened it");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_twice_counts_once() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    later(&world, 3).await;
    let run = reconcile(&world, "first").await;
    // Every part once more: they are done, and stay as they are.
    let store = &world.stack.app.store;
    let reference: domain::ids::Reference = "first".parse().unwrap();
    for part in store.load_parts(&reference).await.unwrap() {
        let message = domain::reconcile::PartMessage::new(reference.clone(), &part.key);
        world.stack.app.queues.send_part(&message, 9).await.unwrap();
    }
    assert!(world.drain().await.unwrap() > 0);
    let again = world.control("GET", "/control/reconciliations/first", None).await.1;
    assert_eq!((&again["classes"], &again["parts"]), (&run["classes"], &run["parts"]));
}

#[tokio::test(start_paused = true)]
async fn one_wallet_alone_is_one_part_beside_the_plan() {
    let world = settled().await;
    assert_eq!(world.fund("w2", "1.00").await.0, 201);
    let run = world.reconcile("r", json!({"tenant": "t1", "wallet": "w2"})).await.unwrap();
    assert_eq!((&run["parts"]["total"], &run["kinds"]), (&json!(2), &json!(["wallets"])), "{run}");
    assert_eq!(run["examined"], 1, "one entry, no job: {run}");
}

#[tokio::test(start_paused = true)]
async fn many_wallets_are_found_page_by_page() {
    let world = settled().await;
    for n in 0..230 {
        let path = format!("/control/tenants/t1/wallets/x{n}");
        assert_eq!(world.control("PUT", &path, Some(json!({"currency": "USD"}))).await.0, 201);
    }
    let run = world.reconcile("r", json!({"kinds": ["wallets"]})).await.unwrap();
    // The plan, three pages of at most 100, 231 wallets.
    assert_eq!(run["parts"]["total"], 235, "{run}");
}

#[tokio::test(start_paused = true)]
async fn an_open_case_is_among_the_open_reviews_until_it_is_resolved() {
    let world = settled().await;
    tamper(&world, "balances", "W|t1|w1", "", |item| item["av"] = json!({"N": "100991300"}));
    let run = reconcile(&world, "first").await;
    let id = only(&run);
    let listed = || async {
        let mut all = Vec::new();
        for shard in 0..domain::limits::SHARDS {
            all.extend(world.stack.app.store.review_rows(shard, None, 100).await.unwrap());
        }
        all.into_iter().map(|review| review.pk).collect::<Vec<_>>()
    };
    assert_eq!(listed().await, [format!("Q|case|{id}")]);
    assert_eq!(world.decide_case("first", &id, "apply").await.0, 200);
    assert_eq!(listed().await, [""; 0]);
}
