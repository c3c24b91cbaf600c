//! create-job: a booking makes one job with one hold, whatever of it is said how often and in which order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::limits::RetryPolicy;
use domain::operation::OperationName::CreateJob;
use local::hook::{Call, CallHook, HookDecision};
use local::world::World;
use serde_json::{Value, json};
use tokio::join;

use crate::books::audit;
use crate::harness::*;
use crate::money::scene::meanwhile;

/// acme's booking of 5.00 on small-1, with other members in place of these.
fn booked(booking: &str, version: u32, more: Value) -> String {
    let mut data = json!({
        "tenant": "t1", "booking_id": booking, "version": version, "id": format!("p-{booking}"), "model": "small-1",
        "wallet": "w1", "hold": "5.00",
    });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"type": "booking.created", "timestamp": "2026-11-29T12:00:00Z", "data": data}).to_string()
}

fn plain(booking: &str, version: u32) -> String {
    booked(booking, version, json!({}))
}

async fn effect(world: &World, id: &str) -> String {
    let shown = shown(world, id, CreateJob).await;
    let text = |member: &str| shown[member].as_str().unwrap_or_default().to_owned();
    let why = if text("effect").is_empty() { text("class") } else { text("effect") };
    format!("{}: {why}", text("state"))
}

async fn held(world: &World) -> (String, String) {
    balance(world, "w1").await
}

fn of(available: &str, held: &str) -> (String, String) {
    (available.to_owned(), held.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_booking_makes_a_job_that_is_then_completed_and_settled() {
    let world = funded().await;
    accepted(&world, "b_1", &plain("b1", 1)).await;
    world.drain().await.unwrap();
    assert_eq!(held(&world).await, of("95.000000", "5.000000"));
    let job = world.job("booking-b1").await;
    assert_eq!(
        (&job["status"], &job["hold"], &job["provider_job_ref"]),
        (&json!("submitted"), &json!("5.000000"), &json!("p-b1"))
    );
    assert_eq!(job["metadata"], json!({"booking": "b1"}));
    assert_eq!(effect(&world, "b_1").await, "done: job booking-b1 made by version 1");
    let explained = world.explain("b_1").await;
    assert_eq!(
        (&explained["status"], &explained["booking"], &explained["version"]),
        (&json!("completed"), &json!("b1"), &json!(1))
    );
    // The run's outcome names the provider's reference, or our own job id.
    let done = json!({
        "type": "job.completed", "timestamp": "2026-11-29T12:00:00Z",
        "data": {"id": "p-b1", "model": "small-1", "usage": {"input_tokens": 1200, "output_tokens": 340}},
    });
    accepted(&world, "msg_1", &done.to_string()).await;
    world.drain().await.unwrap();
    assert_settled(&world, "booking-b1", "msg_1").await;
    assert_eq!(held(&world).await, of("99.991300", "0.000000"));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn the_same_version_is_a_noop_under_another_id_and_a_conflict_with_other_content() {
    let world = funded().await;
    for (id, body) in
        [("b_1", plain("b1", 1)), ("b_2", plain("b1", 1)), ("b_3", booked("b1", 1, json!({"hold": "7.00"})))]
    {
        accepted(&world, id, &body).await;
        world.drain().await.unwrap();
    }
    assert_eq!(effect(&world, "b_2").await, "noop: already-done");
    assert!(shown(&world, "b_2", CreateJob).await["note"].as_str().unwrap().contains("acme/b_1"));
    assert_eq!(effect(&world, "b_3").await, "needs-review: conflict");
    assert_eq!(held(&world).await, of("95.000000", "5.000000"));
    assert_eq!(open_reviews(&world).await, ["acme/b_3 create-job"]);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_later_version_is_an_update_and_an_older_one_after_it_nothing() {
    let world = funded().await;
    for (id, version) in [("b_2", 2), ("b_4", 4), ("b_3", 3), ("b_1", 1)] {
        accepted(&world, id, &plain("b1", version)).await;
        world.drain().await.unwrap();
    }
    assert_eq!(effect(&world, "b_2").await, "done: job booking-b1 made by version 2");
    assert_eq!(effect(&world, "b_4").await, "done: job booking-b1 brought up to version 4");
    assert_eq!(effect(&world, "b_3").await, "noop: superseded");
    assert_eq!(effect(&world, "b_1").await, "noop: superseded");
    assert_eq!(held(&world).await, of("95.000000", "5.000000"), "no second hold");
    let versions = items(&world, "jobs").into_iter().filter(|item| item["pk"]["S"] == "B|t1|b1");
    assert_eq!(versions.map(|item| item["vn"]["N"].clone()).collect::<Vec<_>>(), [json!("2"), json!("4")]);
    // What the first version pinned, a later one cannot change.
    accepted(&world, "b_5", &booked("b1", 5, json!({"hold": "9.00"}))).await;
    world.drain().await.unwrap();
    assert_eq!(effect(&world, "b_5").await, "needs-review: not-possible");
    assert_eq!(open_reviews(&world).await, ["acme/b_5 create-job"]);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_comes_with_a_later_version_is_attached() {
    let world = funded().await;
    accepted(&world, "b_1", &booked("b1", 1, json!({"id": null}))).await;
    world.drain().await.unwrap();
    accepted(&world, "b_2", &plain("b1", 2)).await;
    world.drain().await.unwrap();
    assert_eq!(world.job("booking-b1").await["provider_job_ref"], "p-b1");
    accepted(&world, "b_3", &booked("b1", 3, json!({"id": "p-other"}))).await;
    world.drain().await.unwrap();
    assert_eq!(effect(&world, "b_3").await, "needs-review: mismatch");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn copies_at_the_same_moment_reserve_once() {
    let world = funded().await;
    for (id, version) in [("b_1", 1), ("b_2", 1), ("b_3", 2)] {
        taken_in(&world, id, &plain("b1", version)).await;
    }
    join!(
        work(&world, "b_1", CreateJob),
        work(&world, "b_2", CreateJob),
        work(&world, "b_3", CreateJob),
        work(&world, "b_1", CreateJob)
    );
    world.minutes(10).await.unwrap();
    assert_eq!(held(&world).await, of("95.000000", "5.000000"));
    for id in ["b_1", "b_2", "b_3"] {
        assert_eq!(world.explain(id).await["status"], "completed", "{id}");
    }
    audit(&world);
}

/// Holds back the second of the first two reads of the booking's versions and of its job.
#[derive(Debug, Default)]
struct Between(AtomicUsize);

impl CallHook for Between {
    fn on_call(&self, call: &Call) -> HookDecision {
        let text = String::from_utf8_lossy(&call.body);
        let read = call.operation == "Query" && (text.contains("B|t1|b1") || text.contains("J|t1|booking-b1"));
        if read && self.0.fetch_add(1, Ordering::SeqCst) == 1 {
            return HookDecision::Delay(Duration::from_millis(500), Box::new(HookDecision::Pass));
        }
        HookDecision::Pass
    }
}

/// Another event's version is taken in between the two reads: that makes no conflict of an honest version.
#[tokio::test(start_paused = true)]
async fn what_another_version_commits_between_the_two_reads_is_no_conflict() {
    for (version, expected) in [(1, "noop: already-done"), (2, "done: job booking-b1 brought up to version 2")] {
        let world = funded().await;
        taken_in(&world, "b_1", &plain("b1", version)).await;
        taken_in(&world, "b_2", &plain("b1", 1)).await;
        let between = Arc::new(Between::default());
        world.aws.add_hook(between.clone());
        join!(work(&world, "b_1", CreateJob), async {
            meanwhile().await;
            assert_eq!(between.0.load(Ordering::SeqCst), 2, "the first event waits between its reads");
            work(&world, "b_2", CreateJob).await;
        });
        assert_eq!(effect(&world, "b_2").await, "done: job booking-b1 made by version 1");
        assert_eq!(effect(&world, "b_1").await, expected);
        assert_eq!(held(&world).await, of("95.000000", "5.000000"));
        assert_eq!(open_reviews(&world).await, [""; 0]);
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn too_little_money_waits_and_is_a_persons_in_the_end() {
    let world = funded_with(limits(RetryPolicy { max_attempts: 6, cap_ms: MINUTE_MS, ..RetryPolicy::default() })).await;
    accepted(&world, "b_1", &booked("b1", 1, json!({"hold": "150.00"}))).await;
    accepted(&world, "b_2", &booked("b2", 1, json!({"hold": "120.00"}))).await;
    world.drain().await.unwrap();
    assert_eq!(effect(&world, "b_1").await, "retrying: funds-short");
    let more = json!({"amount": "30.00", "reference": "second"});
    assert_eq!(world.control("POST", "/control/tenants/t1/wallets/w1/fund", Some(more)).await.0, 201);
    world.minutes(4).await.unwrap();
    assert_eq!(effect(&world, "b_2").await, "done: job booking-b2 made by version 1");
    assert_eq!(held(&world).await, of("10.000000", "120.000000"));
    world.minutes(10).await.unwrap(); // six tries, a minute apart at most
    assert_eq!(effect(&world, "b_1").await, "needs-review: attempts-exhausted");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_become_a_job_is_a_persons_or_waits_for_its_wallet() {
    let world = funded().await;
    assert_eq!(world.submit("booking-b1", "w1", "1.00").await.0, 201);
    assert_eq!(world.submit("j1", "w1", "1.00").await.0, 201);
    for (id, body, expected) in [
        ("b_1", booked("b1", 1, json!({"id": "p-x"})), "needs-review: conflict"), // the name is taken
        ("b_2", booked("b2", 1, json!({"id": "p-j1"})), "needs-review: conflict"), // the reference is taken
        ("b_3", booked("b3", 1, json!({"model": "large-9"})), "needs-review: not-possible"), // no price
        ("b_4", booked("b4", 1, json!({"wallet": "w9"})), "retrying: not-yet"),
    ] {
        accepted(&world, id, &body).await;
        world.drain().await.unwrap();
        assert_eq!(effect(&world, id).await, expected, "{id}");
    }
    assert_eq!(held(&world).await, of("98.000000", "2.000000"));
    for (id, more) in
        [("q_1", json!({"version": null})), ("q_2", json!({"hold": "-1.00"})), ("q_3", json!({"booking_id": ""}))]
    {
        assert_eq!(world.send(id, &booked("b9", 1, more)).await, (200, "quarantined".to_owned()), "{id}");
    }
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_or_a_busy_table_makes_no_second_hold() {
    for decision in
        [HookDecision::lost_answer(), throttled(), cancelled(&["TransactionConflict", "None", "None", "None"])]
    {
        for times in [1, 3, 9] {
            let world = funded().await;
            let rule = Rule::times(times, "TransactWriteItems", &["B|t1|b1"], decision.clone());
            world.aws.add_hook(rule.clone());
            accepted(&world, "b_1", &plain("b1", 1)).await;
            world.minutes(30).await.unwrap();
            assert!(rule.hits() > 0);
            assert_eq!(effect(&world, "b_1").await, "done: job booking-b1 made by version 1");
            assert_eq!(held(&world).await, of("95.000000", "5.000000"));
            audit(&world);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_booking_is_found_by_its_id_with_its_versions_and_its_job() {
    let world = funded().await;
    let path = "/control/tenants/t1/bookings/b1";
    assert_eq!(world.control("GET", path, None).await.0, 404);
    accepted(&world, "b_1", &plain("b1", 1)).await;
    accepted(&world, "b_2", &plain("b1", 2)).await;
    world.drain().await.unwrap();
    let (status, shown) = world.control("GET", path, None).await;
    assert_eq!((status, &shown["job"]), (200, &json!("booking-b1")));
    let by: Vec<&Value> = shown["versions"].as_array().unwrap().iter().map(|version| &version["by"]).collect();
    assert_eq!(by, [&json!("acme/b_1"), &json!("acme/b_2")]);
}
