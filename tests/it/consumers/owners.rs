//! Promises 2 and 7: whichever event asked first owns the effect, and the event that decided the job's
//! outcome is the event that is settled.

use domain::operation::OperationName::{CompleteJob, SettleUsage};
use futures_util::future::join_all;
use local::world::{World, WorldConfig, completed, event_body};
use runtime::lambda::PROVIDERS_TOML;
use serde_json::json;
use tokio::join;

use crate::books::audit;
use crate::harness::*;

#[tokio::test(start_paused = true)]
async fn two_workers_on_one_message_have_one_effect() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    join!(
        work(&world, "msg_1", CompleteJob),
        work(&world, "msg_1", SettleUsage),
        work(&world, "msg_1", SettleUsage),
        work(&world, "msg_1", CompleteJob),
    );
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await, ("99.991300".to_owned(), "0.000000".to_owned()));
    for name in [CompleteJob, SettleUsage] {
        assert_eq!(operation(&world, "msg_1", name).await, None, "the loser of the race wrote a record");
    }
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn ded_01_three_event_ids_of_one_job_are_one_transition_and_one_close() {
    let world = submitted().await;
    for id in ["msg_1", "msg_2", "msg_3"] {
        accepted(&world, id, &completed("j1")).await;
    }
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    for id in ["msg_2", "msg_3"] {
        for name in [CompleteJob, SettleUsage] {
            let shown = shown(&world, id, name).await;
            assert_eq!((&shown["state"], &shown["class"]), (&json!("noop"), &json!("already-done")), "{shown}");
            assert!(shown["note"].as_str().unwrap().contains("acme/msg_1"), "names the owner: {shown}");
        }
        assert_eq!(world.explain(id).await["status"], "completed");
    }
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn ded_01_many_event_ids_at_the_same_moment_are_one_charge() {
    let world = submitted().await;
    let ids: Vec<String> = (0..12).map(|n| format!("msg_{n}")).collect();
    let body = completed("j1");
    let answers = join_all(ids.iter().map(|id| world.send(id, &body))).await;
    assert!(answers.iter().all(|answer| answer.0 == 202), "{answers:?}");
    purge(&world);
    join_all(ids.iter().flat_map(|id| [work(&world, id, CompleteJob), work(&world, id, SettleUsage)])).await;
    let owner = world.job("j1").await["transitions"][0]["by"].as_str().unwrap().trim_start_matches("acme/").to_owned();
    world.minutes(10).await.unwrap(); // who lost every round waits and is final then
    assert_settled(&world, "j1", &owner).await;
    for id in &ids {
        assert_eq!(world.explain(id).await["status"], "completed", "{id}");
    }
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
    audit(&world);
}

/// Every order of four steps.
fn orders() -> Vec<[usize; 4]> {
    let all = (0..256).map(|n| [n & 3, (n >> 2) & 3, (n >> 4) & 3, n >> 6]);
    all.filter(|order| (0..4).all(|step| order.contains(&step))).collect()
}

/// A success and a failure of one job, their four operations in every order: one job per order.
/// Returns the jobs' names with the orders.
async fn competing(world: &World) -> Vec<(String, [usize; 4])> {
    let orders = orders();
    assert_eq!(orders.len(), 24);
    let mut jobs = Vec::new();
    for (n, order) in orders.into_iter().enumerate() {
        let job = format!("j{n}");
        let (success, failure) = (format!("ok_{n}"), format!("bad_{n}"));
        assert_eq!(world.submit(&job, "w1", "1.00").await.0, 201);
        taken_in(world, &success, &completed(&job)).await;
        taken_in(world, &failure, &event_body("job.failed", &job, json!({}))).await;
        let steps =
            [(&success, CompleteJob), (&success, SettleUsage), (&failure, CompleteJob), (&failure, SettleUsage)];
        for step in order {
            work(world, steps[step].0, steps[step].1).await;
        }
        jobs.push((job, order));
    }
    jobs
}

#[tokio::test(start_paused = true)]
async fn job_and_money_agree_in_every_order_of_two_competing_events_and_both_consumers() {
    let world = funded().await;
    for (n, (job, order)) in competing(&world).await.into_iter().enumerate() {
        let shown = world.job(&job).await;
        let first = if order[0] < 2 { format!("acme/ok_{n}") } else { format!("acme/bad_{n}") };
        assert_eq!(shown["transitions"].as_array().unwrap().len(), 1, "{order:?} {shown}");
        assert_eq!(shown["settlements"].as_array().unwrap().len(), 1, "{order:?} {shown}");
        assert_eq!(shown["transitions"][0]["by"], json!(first), "{order:?} {shown}");
        assert_eq!(shown["settlements"][0]["by"], json!(first), "{order:?} {shown}");
    }
    // A success that lost to the failure is a person's, once; a failure that lost is a no-op.
    let reviews = open_reviews(&world).await;
    assert_eq!(reviews.len(), 12, "{reviews:?}");
    assert!(reviews.iter().all(|r| r.starts_with("acme/ok_") && r.ends_with("settle-usage")), "{reviews:?}");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn after_a_provisional_failure_the_success_is_settled_in_every_order() {
    let world = funded_with(WorldConfig {
        providers: PROVIDERS_TOML
            .replace("[providers.acme.policies]\n", "[providers.acme.policies]\nprovisional_failure = true\n"),
        ..WorldConfig::default()
    })
    .await;
    for (n, (job, order)) in competing(&world).await.into_iter().enumerate() {
        let shown = world.job(&job).await;
        let last = shown["transitions"].as_array().unwrap().last().unwrap();
        assert_eq!(last["by"], json!(format!("acme/ok_{n}")), "{order:?} {shown}");
        let captured: Vec<_> = shown["settlements"].as_array().unwrap().iter().map(|s| &s["captured"]).collect();
        let charges: Vec<_> = captured.into_iter().filter(|amount| **amount != json!("0.000000")).collect();
        assert_eq!(charges, [&json!("0.008700")], "{order:?} {shown}");
    }
    // 24 charges of 0.008700.
    assert_eq!(balance(&world, "w1").await, ("99.791200".to_owned(), "0.000000".to_owned()));
    assert_eq!(open_reviews(&world).await, [""; 0]);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn the_transition_is_by_the_settled_event_whichever_consumer_comes_first() {
    for (job, names) in [("j1", [CompleteJob, SettleUsage]), ("j2", [SettleUsage, CompleteJob])] {
        let world = funded().await;
        assert_eq!(world.submit(job, "w1", "5.00").await.0, 201);
        taken_in(&world, "msg_1", &completed(job)).await;
        for name in names {
            work(&world, "msg_1", name).await;
            assert_eq!(world.job(job).await["transitions"][0]["by"], "acme/msg_1", "{names:?}");
        }
        assert_settled(&world, job, "msg_1").await;
        assert_eq!(operation(&world, "msg_1", CompleteJob).await, None);
        audit(&world);
    }
}
