//! Promises 3 to 5 under races: funds conditions, one funding per reference, a chain without a gap.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use local::world::{World, completed, event_body};
use serde_json::json;

use crate::books::{audit, checked, text};
use crate::harness::*;

async fn submit_all(world: &World, count: usize, hold: &str) -> BTreeMap<u16, usize> {
    let jobs: Vec<String> = (0..count).map(|n| format!("j{n}")).collect();
    let answers = join_all(jobs.iter().map(|job| world.submit(job, "w1", hold))).await;
    let mut statuses = BTreeMap::new();
    for (status, body) in answers {
        assert!(status != 402 || body["code"] == "funds-short", "{body}");
        *statuses.entry(status).or_insert(0) += 1;
    }
    statuses
}

#[tokio::test(start_paused = true)]
async fn led_03_fifty_concurrent_holds_of_3_on_a_balance_of_10_are_three() {
    let world = world_of(Default::default()).await;
    assert_eq!(world.fund("w1", "10.00").await.0, 201);
    assert_eq!(submit_all(&world, 50, "3.00").await, BTreeMap::from([(201, 3), (402, 47)]));
    assert_eq!(balance(&world, "w1").await, ("1.000000".to_owned(), "9.000000".to_owned()));
    let submitted = items(&world, "jobs").iter().filter(|item| text(item, "sk") == "j").count();
    let references = items(&world, "jobs").iter().filter(|item| text(item, "sk") == "r").count();
    assert_eq!((submitted, references), (3, 3), "what was refused left nothing behind");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn led_03_of_two_concurrent_debits_of_8_on_10_one_succeeds() {
    let world = world_of(Default::default()).await;
    assert_eq!(world.fund("w1", "10.00").await.0, 201);
    assert_eq!(submit_all(&world, 2, "8.00").await, BTreeMap::from([(201, 1), (402, 1)]));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn concurrent_copies_of_one_submission_place_one_hold() {
    let world = funded().await;
    let answers = join_all((0..20).map(|_| world.submit("j1", "w1", "5.00"))).await;
    assert_eq!(first_and_again(&answers), (1, 19), "{answers:?}");
    assert_eq!(balance(&world, "w1").await, ("95.000000".to_owned(), "5.000000".to_owned()));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn concurrent_fundings_with_one_reference_fund_once() {
    let world = funded().await;
    let path = "/control/tenants/t1/wallets/w1/fund";
    let fund = |amount: &str| world.control("POST", path, Some(json!({"amount": amount, "reference": "inv-7"})));
    let answers = join_all((0..20).map(|_| fund("25.00"))).await;
    assert!(answers.iter().all(|answer| [200, 201].contains(&answer.0)), "{answers:?}");
    assert_eq!(balance(&world, "w1").await.0, "125.000000");
    assert_eq!(world.wallet("w1").await["sequence"], 2);
    assert_eq!(fund("25.00").await.0, 200);
    assert_eq!(fund("26.00").await.0, 409, "the same reference with another amount");
    assert_eq!(balance(&world, "w1").await.0, "125.000000");
    audit(&world);
}

/// How many answers say "made now" and how many "made before".
fn first_and_again(answers: &[(u16, serde_json::Value)]) -> (usize, usize) {
    let count = |status| answers.iter().filter(|answer| answer.0 == status).count();
    (count(201), count(200))
}

#[tokio::test(start_paused = true)]
async fn of_concurrent_fundings_with_one_reference_one_is_the_first() {
    let world = funded().await;
    let body = json!({"amount": "25.00", "reference": "inv-7"});
    let fund = |_| world.control("POST", "/control/tenants/t1/wallets/w1/fund", Some(body.clone()));
    let answers = join_all((0..20).map(fund)).await;
    assert_eq!(first_and_again(&answers), (1, 19), "the first time 201, again 200");
}

/// A wallet with fundings, captures, a release and open holds, some of them at the same moment.
async fn busy_wallet() -> std::sync::Arc<World> {
    let world = funded().await;
    for n in 0..8 {
        assert_eq!(world.submit(&format!("j{n}"), "w1", "2.00").await.0, 201);
    }
    let path = "/control/tenants/t1/wallets/w1/fund";
    let fundings = (0..4).map(|n| {
        let body = json!({"amount": "1.50", "reference": format!("more-{n}")});
        world.control("POST", path, Some(body))
    });
    assert!(join_all(fundings).await.iter().all(|answer| answer.0 == 201));
    for n in 0..6 {
        accepted(&world, &format!("msg_{n}"), &completed(&format!("j{n}"))).await;
    }
    accepted(&world, "msg_6", &event_body("job.failed", "j6", json!({}))).await;
    world.drain().await.unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn the_chain_has_no_gap_every_hash_is_right_and_the_balance_is_what_the_entries_say() {
    let world = busy_wallet().await;
    // 1 + 4 fundings and 6 captures; the release is no entry of the chain.
    assert_eq!(world.wallet("w1").await["sequence"], 11);
    // 100 + 4 x 1.50 - 6 x 0.008700, of which j7's 2.00 are held.
    assert_eq!(balance(&world, "w1").await, ("103.947800".to_owned(), "2.000000".to_owned()));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn the_audit_finds_a_changed_a_missing_and_a_moved_entry() {
    let world = busy_wallet().await;
    let entry = items(&world, "ledger").into_iter().find(|item| item["kd"]["S"] == "capture").unwrap();
    let changes: [(&str, serde_json::Value); 6] = [
        ("am", json!({"N": "1"})),
        ("by", json!({"S": "acme/somebody"})),
        ("hh", json!({"S": "00"})),
        ("ph", json!({"S": "00"})),
        ("seq", json!({"N": "99"})),
        ("us", json!({"M": {"input_tokens": {"S": "1"}}})),
    ];
    for (member, value) in changes {
        let mut changed = entry.clone();
        changed[member] = value;
        overwrite(&world, "ledger", &changed);
        checked(&world).expect_err(member);
        overwrite(&world, "ledger", &entry);
        audit(&world);
    }
    let balance = items(&world, "balances").remove(0);
    for member in ["av", "he", "seq"] {
        let mut changed = balance.clone();
        changed[member] = json!({"N": "7"});
        overwrite(&world, "balances", &changed);
        checked(&world).expect_err(member);
    }
    overwrite(&world, "balances", &balance);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn settlements_of_one_wallet_at_the_same_moment_keep_the_chain_whole() {
    let world = funded().await;
    let ids: Vec<String> = (0..8).map(|n| format!("e{n}")).collect();
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(world.submit(&format!("j{n}"), "w1", "2.00").await.0, 201);
        taken_in(&world, id, &completed(&format!("j{n}"))).await;
    }
    // The queue would group them by wallet; eight workers at once is worse than that.
    let settle = domain::operation::OperationName::SettleUsage;
    join_all(ids.iter().map(|id| work(&world, id, settle))).await;
    world.minutes(10).await.unwrap();
    for (n, id) in ids.iter().enumerate() {
        assert_settled(&world, &format!("j{n}"), id).await;
    }
    assert_eq!(world.wallet("w1").await["sequence"], 9);
    audit(&world);
}
