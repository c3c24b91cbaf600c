//! Approvals: a charge above the hold, settled by a person's choice. 2,000,000 input tokens are 6.00; the
//! hold is 5.00.

use domain::operation::OperationName::SettleUsage;
use local::world::event_body;
use serde_json::{Value, json};

use super::scene::*;
use crate::books::audit;
use crate::harness::*;

const SETTLE: &str = "settle-usage:acme/msg_1";

fn approve(alternative: &str) -> Value {
    json!({"action": "approve", "alternative": alternative, "reason": "agreed with the customer"})
}

#[tokio::test(start_paused = true)]
async fn cap_charges_the_hold_and_says_what_was_not_charged() {
    let world = above_the_hold().await;
    let (status, decided) = decide(&world, SETTLE, approve("cap")).await;
    assert_eq!((status, &decided["waived"], &decided["alternative"]), (200, &json!(["overage"]), &json!("cap")));
    world.drain().await.unwrap();
    let job = world.job("j1").await;
    assert_eq!(job["settlements"][0]["captured"], "5.000000");
    assert_eq!(job["settlements"][0]["uncharged"], "1.000000");
    assert_eq!(balance(&world, "w1").await, ("95.000000".to_owned(), "0.000000".to_owned()));
    audit(&world);

    // A correction of the usage does not charge what was given up: 7.00 now, still capped at 5.00.
    let more = json!({"correction_id": "c-1", "sequence": 9, "usage": {"input_tokens": 2_333_333}});
    accepted(&world, "msg_2", &event_body("usage.corrected", "j1", more)).await;
    world.drain().await.unwrap();
    assert_eq!(balance(&world, "w1").await.0, "95.000000");
    // Down to 3.00 it gives 2.00 back.
    let less = json!({"correction_id": "c-2", "sequence": 10, "usage": {"input_tokens": 1_000_000}});
    accepted(&world, "msg_3", &event_body("usage.corrected", "j1", less)).await;
    world.drain().await.unwrap();
    assert_eq!(balance(&world, "w1").await.0, "97.000000");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn available_charges_the_rest_to_the_balance() {
    let world = above_the_hold().await;
    assert_eq!(decide(&world, SETTLE, approve("available")).await.0, 200);
    world.drain().await.unwrap();
    let job = world.job("j1").await;
    assert_eq!((&job["settlements"][0]["captured"], &job["status"]), (&json!("6.000000"), &json!("billing-settled")));
    assert_eq!(balance(&world, "w1").await, ("94.000000".to_owned(), "0.000000".to_owned()));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn available_with_too_little_is_a_review_again_and_cap_ends_it() {
    let world = world_of(local::world::WorldConfig::default()).await;
    assert_eq!(world.fund("w1", "5.50").await.0, 201);
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    accepted(&world, "msg_1", &used("j1", 2_000_000)).await;
    world.drain().await.unwrap();
    assert_eq!(decide(&world, SETTLE, approve("available")).await.0, 200);
    world.drain().await.unwrap();
    // 1.00 is needed beside the hold, and 0.50 is there.
    assert_eq!(state(&world, "msg_1", SettleUsage).await, ("needs-review".to_owned(), "funds-short".to_owned()));
    assert_eq!(balance(&world, "w1").await, ("0.500000".to_owned(), "5.000000".to_owned()));
    assert_eq!(decide(&world, SETTLE, approve("cap")).await.0, 200);
    world.drain().await.unwrap();
    assert_eq!(balance(&world, "w1").await, ("0.500000".to_owned(), "0.000000".to_owned()));
    assert_eq!(world.job("j1").await["settlements"][0]["uncharged"], "1.000000");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn an_approval_also_holds_for_a_late_capture() {
    let world = submitted().await;
    // The hold is given back by the schedule; a success that was first sent in time comes after it.
    world.clock.advance(120 * HOUR_MS + 20 * MINUTE_MS);
    sweeps_have_run(&world).await;
    world.stack.relay().await.unwrap();
    assert_eq!(balance(&world, "w1").await, ("100.000000".to_owned(), "0.000000".to_owned()));
    let body = used("j1", 2_000_000).replace("2026-11-29T12:00:00Z", "2026-12-04T12:00:00Z");
    accepted(&world, "msg_1", &body).await;
    world.drain().await.unwrap();
    assert_eq!(state(&world, "msg_1", SettleUsage).await.1, "overage");
    assert_eq!(decide(&world, SETTLE, approve("cap")).await.0, 200);
    world.drain().await.unwrap();
    let job = world.job("j1").await;
    assert_eq!(job["settlements"][1]["captured"], "5.000000", "{job}");
    assert_eq!(balance(&world, "w1").await.0, "95.000000");
    audit(&world);
}
