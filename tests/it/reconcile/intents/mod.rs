//! What was sent to Stripe against Stripe's own lists: each class of fact is made by what really happens, found as one case
//! with its action, applied, and not found again. Amounts were worked out by hand.

mod authorised;
mod board;
mod desk;
mod lists;
mod payments;
mod states;

use std::sync::Arc;

use local::world::{World, WorldConfig};
use serde_json::{Value, json};

use super::plant::{later, only, settle, told};
use crate::harness::Rule;
use crate::postpaid::{Scene, config};
use desk::{At, Desk};

/// A world with postpaid wallet w1 in USD, and Stripe with its lists.
async fn world() -> (Scene, Arc<Desk>) {
    world_with(|config| config).await
}

async fn world_with(change: impl FnOnce(WorldConfig) -> WorldConfig) -> (Scene, Arc<Desk>) {
    let desk = Desk::new();
    let caller = Arc::new(At(desk.clone()));
    let config = change(WorldConfig { caller, ..config(&desk.stripe) });
    let scene = Scene::with(config, desk.stripe.clone(), "USD").await;
    desk.clock.set(scene.world.clock.clone()).unwrap();
    (scene, desk)
}

/// The lists are compared with what was sent in the world's first minutes.
async fn look(world: &World, reference: &str) -> Value {
    let body = json!({"kinds": ["intents"], "from": "2026-11-29T11:58:00Z", "to": "2026-11-29T12:20:00Z"});
    let run = world.reconcile(reference, body).await.unwrap();
    assert_eq!(run["state"], "done", "{run}");
    run
}

/// The same, where everything could be compared; `class/action/state` of what it found.
async fn found(world: &World, reference: &str) -> (Vec<String>, Value) {
    let run = look(world, reference).await;
    assert_eq!((&run["parts"]["failed"], &run["skipped"]), (&json!(0), &json!([])), "{run}");
    (told(&run), run)
}

async fn nothing(world: &World, reference: &str) {
    assert_eq!(found(world, reference).await.0, [""; 0], "{reference}");
}

/// Another run finds the same case, which is applied; what follows is done, and a third finds nothing.
async fn applied_and_gone(world: &World, expected: &str) -> Value {
    let (cases, run) = found(world, "first").await;
    assert_eq!(cases, [expected], "{run}");
    let (_, again) = found(world, "again").await;
    assert_eq!(again["cases"][0]["case"], run["cases"][0]["case"], "the same fact is the same case");
    let (status, case) = world.decide_case("first", &only(&run), "apply").await;
    assert_eq!((status, &case["resolution"]), (200, &json!("applied")), "{case}");
    settle(world).await;
    nothing(world, "last").await;
    case
}

/// The one case of a run is applied while answers are lost, and once more when none is.
async fn applied_though_lost(world: &World, rule: &Rule, what: &str) {
    let (_, run) = found(world, "first").await;
    rule.start();
    let (status, answer) = world.decide_case("first", &only(&run), "apply").await;
    assert!(rule.hits() > 0 && [200, 503].contains(&status), "{what}: {answer}");
    rule.stop();
    let (status, case) = world.decide_case("first", &only(&run), "apply").await;
    assert_eq!((status, &case["state"]), (200, &json!("resolved")), "{what}: {case}");
}

/// A capture of 12.345678, of which 0.005678 is carried, is funded once, whatever its webhook says later.
async fn funded_once(scene: &Scene, desk: &Desk) {
    let hand = [
        "capture: receivable -12340000, rounding -5678, revenue 12345678",
        "fund: receivable 12340000, external-funding -12340000",
    ];
    assert_eq!(scene.entries(), hand);
    scene.succeeded("evt_1", &desk.stripe.kept()[0]).await;
    assert_eq!(scene.of_stripe("evt_1").await, "noop already-done");
    assert_eq!(scene.entries(), hand);
    scene.clean().await;
}

/// How a case stands by now.
async fn resolution(world: &World, case: &str) -> Value {
    world.control("GET", &format!("/control/reconciliations/first/cases/{case}"), None).await.1["resolution"].clone()
}
