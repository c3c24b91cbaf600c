//! The scheduled passes: each minute of receipts once per pass, under durable cursors.

use domain::operation::OperationName;
use local::world::{World, completed};
use serde_json::Value;

use super::plant::{later, settle, told};
use crate::harness::{assert_settled, operation, submitted, taken_in};

async fn pass(world: &World) {
    world.stack.passes().await.unwrap();
    world.drain().await.unwrap();
}

async fn shown(world: &World, run: &str) -> (u16, Value) {
    world.control("GET", &format!("/control/reconciliations/{}", runtime::gateway::path_part(run)), None).await
}

#[tokio::test(start_paused = true)]
async fn the_two_hours_pass_finds_what_the_relays_index_showed_late() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    later(&world, 1).await;
    pass(&world).await;
    assert_eq!(operation(&world, "msg_1", OperationName::SettleUsage).await, None, "not two hours old");
    later(&world, 2).await;
    pass(&world).await;
    let run = shown(&world, "pass-2h-2026-11-29T11:55:00Z").await;
    assert_eq!(told(&run.1), ["not-dispatched/retry/resolved", "not-dispatched/retry/resolved"], "{run:?}");
    settle(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
}

#[tokio::test(start_paused = true)]
async fn the_26_hours_pass_looks_once_more() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    later(&world, 3).await;
    // The first pass meets nothing, as it would where the index was still late: its cursor is moved past.
    let minute = crate::harness::now_ms(&world) / 60_000 - 120;
    world.stack.app.store.advance_cursor(store::Cursor::Pass(2), 0, minute).await.unwrap();
    pass(&world).await;
    assert_eq!(operation(&world, "msg_1", OperationName::SettleUsage).await, None);
    later(&world, 24).await;
    let minute = crate::harness::now_ms(&world) / 60_000 - 120;
    world.stack.app.store.advance_cursor(store::Cursor::Pass(2), 0, minute).await.unwrap();
    pass(&world).await;
    assert!(operation(&world, "msg_1", OperationName::SettleUsage).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn overlapping_schedules_start_one_run_and_the_cursor_moves_on_once() {
    let world = submitted().await;
    later(&world, 3).await;
    world.stack.passes().await.unwrap();
    world.stack.passes().await.unwrap();
    world.drain().await.unwrap();
    let (status, run) = shown(&world, "pass-2h-2026-11-29T11:55:00Z").await;
    assert_eq!((status, &run["actor"]), (200, &serde_json::json!("schedule")), "{run}");
    assert_eq!(run["state"], "done");
    // Five minutes and one hour of four shards, and the plan.
    assert_eq!(run["parts"]["total"], 9, "{run}");
    world.stack.daily().await.unwrap();
    world.stack.daily().await.unwrap();
    world.drain().await.unwrap();
    let (_, daily) = shown(&world, "daily-2026-11-29").await;
    assert_eq!(daily["state"], "done", "{daily}");
}

#[tokio::test(start_paused = true)]
async fn a_pass_whose_name_another_run_has_is_not_counted_as_done() {
    let world = submitted().await;
    later(&world, 3).await;
    let store = &world.stack.app.store;
    let at = store.cursor(store::Cursor::Pass(2), 0).await.unwrap();
    let id = "pass-2h-2026-11-29T11:55:00Z";
    let other = domain::reconcile::Run {
        id: id.parse().unwrap(),
        kinds: vec![domain::reconcile::Kind::Reviews],
        window: domain::reconcile::Window { from_ms: 0, to_ms: 0 },
        wallet: None,
        provider: None,
        actor: "somebody".to_owned(),
        reason: "before such names were refused".to_owned(),
        content_hash: "other".to_owned(),
        created_ms: 0,
    };
    assert_eq!(store.put_run(&other, i64::MAX).await.unwrap(), None);
    world.stack.passes().await.unwrap();
    assert_eq!(store.cursor(store::Cursor::Pass(2), 0).await.unwrap(), at, "its minutes were not compared");
    for name in [id, "daily-2026-11-30"] {
        let body = serde_json::json!({"reference": name, "reason": "mine"});
        let (status, problem) = world.control("POST", "/control/reconciliations", Some(body)).await;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == 422 && detail.contains("choose another"), "{status} {problem}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_messages_are_lost_is_sent_again() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    later(&world, 3).await;
    world
        .control(
            "POST",
            "/control/reconciliations",
            Some(serde_json::json!({"reference": "r", "reason": "lost", "kinds": ["wallets", "reviews"]})),
        )
        .await;
    world.aws.queues().purge(&queue::reconcile_queue_name("hookledger")).unwrap();
    pass(&world).await;
    assert_eq!(shown(&world, "r").await.1["state"], "running", "not half an hour old");
    world.clock.advance(31 * 60_000);
    pass(&world).await;
    let run = shown(&world, "r").await.1;
    assert_eq!(run["state"], "done", "{run}");
    assert_eq!(run["parts"]["failed"], 0);
}
