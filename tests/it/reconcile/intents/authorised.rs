//! What is authorised, and captured later, in the same list of payments as the charges.

use std::sync::Arc;

use local::world::WorldConfig;
use serde_json::json;

use super::desk::{At, Desk};
use super::{applied_and_gone, found, funded_once, later, nothing, settle};
use crate::postpaid::stripe::Fault;
use crate::postpaid::{Scene, config};

async fn authorising() -> (Scene, Arc<Desk>) {
    let desk = Desk::new();
    let config = WorldConfig { caller: Arc::new(At(desk.clone())), ..config(&desk.stripe) };
    let scene = Scene::on(config, desk.stripe.clone(), "USD", json!({"authorise": true})).await;
    desk.clock.set(scene.world.clock.clone()).unwrap();
    (scene, desk)
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_no_case_and_a_capture_whose_webhook_was_lost_is_accepted_from_the_list() {
    let (scene, desk) = authorising().await;
    scene.authorise("j1", "15.01").await;
    desk.says("pi_1", json!({"status": "requires_capture", "amount_received": 0}));
    later(&scene.world, 3).await;
    nothing(&scene.world, "held").await; // in neither table's list
    scene.completes("j1", 12_345_678).await; // 1,234 of 1,501 cents are captured, and 0.005678 is carried
    desk.says("pi_1", json!({"status": "succeeded", "amount_received": 1234}));
    later(&scene.world, 3).await;
    let case = applied_and_gone(&scene.world, "payment-untold/accept-from-authority/open").await;
    assert_eq!((&case["amount"], &case["effect"]["minor_paid"]), (&json!("12.340000"), &json!(1234)), "{case}");
    funded_once(&scene, &desk).await;
}

#[tokio::test(start_paused = true)]
async fn a_capture_of_just_now_is_no_lost_webhook_though_it_was_authorised_long_ago() {
    let (scene, desk) = authorising().await;
    scene.authorise("j1", "15.01").await;
    desk.says("pi_1", json!({"status": "requires_capture", "amount_received": 0}));
    later(&scene.world, 3).await;
    scene.completes("j1", 12_345_678).await;
    desk.says("pi_1", json!({"status": "succeeded", "amount_received": 1234}));
    nothing(&scene.world, "early").await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_authorised_by_itself_for_a_job_that_is_over() {
    let (scene, desk) = authorising().await;
    desk.stripe.meets(&[Fault::NotSent; 30]);
    scene.authorise("j1", "15.01").await;
    scene.cancel("j1").await;
    scene.world.minutes(300).await.unwrap();
    later(&scene.world, 30).await;
    assert_eq!(scene.state("authorise|t1|j1").await.split(' ').next(), Some("needs-review"));
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["stuck/person/open"], "{run}");
    let calls = desk.stripe.calls().len();
    settle(&scene.world).await;
    assert_eq!(desk.stripe.calls().len(), calls, "nothing is sent by itself");
}

#[tokio::test(start_paused = true)]
async fn an_authorisation_that_was_given_up_is_no_case() {
    let (scene, desk) = authorising().await;
    scene.authorise("j1", "15.01").await;
    scene.cancel("j1").await;
    scene.world.drain().await.unwrap();
    assert_eq!(scene.state("void|t1|j1|c").await, "done");
    desk.says("pi_1", json!({"status": "canceled", "amount_received": 0}));
    later(&scene.world, 3).await;
    nothing(&scene.world, "given up").await;
}
