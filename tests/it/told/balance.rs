//! A balance that falls below a threshold is told once per fall, by whatever makes it fall.

use domain::operation::OperationName::SettleUsage;
use futures_util::future::join;
use local::world::completed;
use serde_json::json;

use super::*;
use crate::harness::{consume, record, taken_in};

fn watching(threshold: &str) -> WorldConfig {
    let low = format!("low_balance = {{ USD = \"{threshold}\", EUR = \"1.00\" }}");
    subscribed(&subscription("books", ADDRESS, r#"["wallet.low-balance"]"#, &low))
}

#[tokio::test(start_paused = true)]
async fn the_hold_that_takes_it_below_is_told_and_the_next_one_is_not() {
    let world = world_of(watching("90.00")).await;
    for (job, hold) in [("j1", "10.00"), ("j2", "0.50"), ("j3", "1.00")] {
        assert_eq!(world.submit(job, "w1", hold).await.0, 201);
        world.drain().await.unwrap();
    }
    // Created, funded, one hold, and this one. Ninety itself is not below ninety.
    let by_hand = json!({
        "type": "wallet.low-balance", "id": "wallet.low-balance|t1|w1|4|90.000000", "timestamp": "2026-11-29T12:00:00Z",
        "data": {
            "tenant": "t1", "wallet": "w1", "currency": "USD", "available": "89.500000", "threshold": "90.000000",
            "revision": "4",
        },
    });
    assert_eq!(told(&world), [by_hand]);
    // Raised above it, it may fall again; by a release it rises too.
    assert_eq!(cancel(&world, "j1").await, 201);
    assert_eq!(world.submit("j4", "w1", "9.00").await.0, 201);
    world.drain().await.unwrap();
    assert_eq!(ids(&world), ["wallet.low-balance|t1|w1|4|90.000000", "wallet.low-balance|t1|w1|7|90.000000"]);
}

async fn cancel(world: &World, job: &str) -> u16 {
    let body = json!({"reference": "c-1", "reason": "asked for"});
    world.control("POST", &format!("/control/tenants/t1/jobs/{job}/cancel"), Some(body)).await.0
}

/// Each alone would stay above; whichever comes second has read a balance that is not there any more.
#[tokio::test(start_paused = true)]
async fn two_holds_at_once_are_told_of_once() {
    let world = world_of(watching("90.00")).await;
    let (one, two) = join(world.submit("j1", "w1", "6.00"), world.submit("j2", "w1", "6.00")).await;
    assert_eq!((one.0, two.0), (201, 201));
    world.drain().await.unwrap();
    assert_eq!(ids(&world), ["wallet.low-balance|t1|w1|4|90.000000"]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_takes_it_below_together_is_told_of_once() {
    let mut config = watching("99.98");
    config.providers = config.providers.replacen("overage = \"review\"", "overage = \"available\"", 1);
    let world = world_of(config).await;
    for n in 0..3 {
        assert_eq!(world.submit(&format!("j{n}"), "w1", "0.005").await.0, 201);
        taken_in(&world, &format!("e-{n}"), &completed(&format!("j{n}"))).await;
    }
    let batch = (0..3).map(|n| record("w", &format!("e-{n}"), SettleUsage)).collect();
    assert_eq!(consume(&world, batch).await, [""; 0]);
    world.drain().await.unwrap();
    // 100 less three times 0.0087: the second of them goes below.
    let told = told(&world);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["data"]["available"], "99.973900");
}

#[tokio::test(start_paused = true)]
async fn two_thresholds_are_two_events_each_to_who_watches_it() {
    let one = subscription("first", ADDRESS, r#"["wallet.low-balance"]"#, "low_balance = { USD = \"95.00\" }");
    let two = subscription("second", ADDRESS, r#"["wallet.low-balance"]"#, "low_balance = { USD = \"50.00\" }");
    let world = world_of(subscribed(&format!("{one}{two}"))).await;
    assert_eq!(world.submit("j1", "w1", "60.00").await.0, 201);
    world.drain().await.unwrap();
    assert_eq!(sorted_ids(&world), ["wallet.low-balance|t1|w1|3|50.000000", "wallet.low-balance|t1|w1|3|95.000000"]);
}
