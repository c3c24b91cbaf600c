//! Deliveries that carry several items: each is work of its own under one receipt.

mod limits;
mod profiles;
mod replay;

use local::world::World;
use serde_json::{Value, json};

use crate::books::audit;
use crate::harness::Rule;
use crate::sender::{LIKE_ACME, Sender, WHSEC, config, deliver, explain, profile, said};

/// A list under `/events`, whose items have an id, a type and a time of their own and speak of jobs.
const BATCHED: &str = r#"
event_id = "signed-id"
items = "/events"
item_id = "item:/id"
event_type = "item:/type"
first_sent = { at = "item:/at", unit = "rfc3339" }
fields = { tenant = "body:/tenant", job = "item:/job", model = "item:/model", sequence = "item:/n", usage = "item:/usage" }
events."job.progress" = { operations = ["record-progress"] }
events."job.completed" = { outcome = "success", operations = ["complete-job", "settle-usage"] }
events."job.failed" = { outcome = "failure", operations = ["complete-job", "settle-usage"] }
"#;

fn beta() -> Sender {
    Sender::new("beta", "standard-webhooks", WHSEC)
}

async fn world_of(more: &str) -> World {
    let world = World::new(config(&[profile("beta", "standard-webhooks", more)], &[("beta", WHSEC)])).await.unwrap();
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    world
}

async fn submit(world: &World, job: &str) {
    let body = json!({"provider": "beta", "model": "small-1", "wallet": "w1", "hold": "1.00"});
    assert_eq!(world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await.0, 201);
}

/// An item that completes a job with the sample usage, worth 0.008700.
fn completed(id: &str, job: &str) -> Value {
    json!({
        "id": id, "type": "job.completed", "at": "2026-11-29T12:00:00Z", "job": job, "model": "small-1", "n": 3,
        "usage": {"input_tokens": 1200, "output_tokens": 340},
    })
}

fn batch(items: &[Value]) -> String {
    json!({"tenant": "t1", "events": items}).to_string()
}

/// State of each operation as `item operation state`, in the order of the plan.
async fn states(world: &World, id: &str) -> Vec<String> {
    let (_, event) = explain(world, "beta", id).await;
    let text = |row: &Value, member: &str| row[member].as_str().unwrap_or_default().to_owned();
    let rows = event["operations"].as_array().unwrap().iter();
    rows.map(|row| format!("{} {} {}", text(row, "item"), text(row, "operation"), text(row, "state"))).collect()
}

/// Item and reason of what leads to nothing.
async fn refused(world: &World, id: &str) -> Vec<String> {
    let (_, event) = explain(world, "beta", id).await;
    let items = event["items"].as_array().unwrap().iter().filter(|item| !item["reason"].is_null());
    items.map(|item| format!("{} {}", item["item"].as_str().unwrap(), item["reason"].as_str().unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn each_item_is_done_and_owned_by_itself_under_one_receipt() {
    let world = world_of(BATCHED).await;
    for job in ["j1", "j2", "j3"] {
        submit(&world, job).await;
    }
    let body = batch(&[completed("a", "j1"), completed("b|%", "j2"), completed("c", "j3")]);
    assert_eq!(beta().send(&world, "msg_1", &body).await, said(202, "accepted"));
    world.drain().await.unwrap();
    // 100 - 3 x 0.0087
    assert_eq!(world.wallet("w1").await["available"], "99.973900");
    let by = |job: Value| job["settlements"][0]["by"].as_str().unwrap().to_owned();
    assert_eq!(by(world.job("j1").await), "a@beta/msg_1");
    assert_eq!(by(world.job("j2").await), "b|%2525@beta/msg_1", "the id's own % is escaped, and so is that");
    assert_eq!(states(&world, "msg_1").await.len(), 6);
    assert!(states(&world, "msg_1").await.iter().all(|state| state.ends_with(" done")));
    assert_eq!(explain(&world, "beta", "msg_1").await.1["status"], "completed");
    assert_eq!(beta().send(&world, "msg_1", &body).await, said(200, "duplicate"));
    // The same items in another delivery are other events of the same jobs: no-ops.
    assert_eq!(beta().send(&world, "msg_2", &body).await, said(202, "accepted"));
    world.minutes(5).await.unwrap();
    assert!(states(&world, "msg_2").await.iter().all(|state| state.ends_with(" noop")));
    assert_eq!(world.wallet("w1").await["available"], "99.973900");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_bad_item_does_not_stop_the_others_and_says_why() {
    let world = world_of(BATCHED).await;
    for job in ["j1", "j2"] {
        submit(&world, job).await;
    }
    let mut other_model = completed("e", "j2");
    other_model["model"] = json!("large-9");
    let mut no_id = completed("f", "j2");
    no_id["id"] = json!({});
    let mut no_job = completed("c", "j2");
    no_job["job"] = json!(7);
    let mut other_content = completed("a", "j1");
    other_content["n"] = json!(4);
    let body = batch(&[
        completed("a", "j1"),
        json!({"id": "b", "type": "job.unheard-of"}),
        no_job,
        json!("no object"),
        other_model,
        no_id,
        completed("a", "j1"),
        other_content,
        completed("g", "j2"),
    ]);
    assert_eq!(beta().send(&world, "msg_1", &body).await, said(202, "accepted"));
    world.drain().await.unwrap();
    let by_hand = [
        "b unknown-type",
        "c missing-field",
        "index#3 missing-field",
        "e mismatch",
        "index#5 missing-field",
        "index#6 repeated",
        "index#7 ambiguous",
    ];
    assert_eq!(refused(&world, "msg_1").await, by_hand);
    let done = ["a complete-job done", "a settle-usage done", "g complete-job done", "g settle-usage done"];
    assert_eq!(states(&world, "msg_1").await, done);
    assert_eq!(world.wallet("w1").await["available"], "99.982600"); // 100 - 2 x 0.0087
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn two_items_of_one_job_are_serial_and_have_one_effect() {
    let world = world_of(BATCHED).await;
    submit(&world, "j1").await;
    let mut failed = completed("b", "j1");
    failed["type"] = json!("job.failed");
    let body = batch(&[completed("a", "j1"), completed("c", "j1"), failed]);
    assert_eq!(beta().send(&world, "msg_1", &body).await, said(202, "accepted"));
    world.drain().await.unwrap();
    let job = world.job("j1").await;
    assert_eq!((job["transitions"].as_array().unwrap().len(), job["settlements"].as_array().unwrap().len()), (1, 1));
    assert_eq!(job["transitions"][0]["by"], job["settlements"][0]["by"]);
    let states = states(&world, "msg_1").await;
    assert_eq!(states.iter().filter(|state| state.ends_with(" done")).count(), 2, "{states:?}");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn an_item_whose_message_was_lost_is_found_by_the_relay_and_an_old_item_is_a_persons() {
    let world = world_of(BATCHED).await;
    for job in ["j1", "j2"] {
        submit(&world, job).await;
    }
    let mut old = completed("old", "j2");
    old["at"] = json!("2026-11-28T11:59:59Z"); // the profile's 24 hours and a second
    let body = batch(&[completed("new", "j1"), old]);
    assert_eq!(beta().send(&world, "msg_1", &body).await, said(202, "accepted"));
    crate::harness::purge(&world);
    world.minutes(5).await.unwrap();
    let by_hand = [
        "new complete-job done",
        "new settle-usage done",
        "old complete-job needs-review",
        "old settle-usage needs-review",
    ];
    assert_eq!(states(&world, "msg_1").await, by_hand);
    // The provider's redelivery tries only what is not final again.
    assert_eq!(beta().send(&world, "msg_1", &body).await, said(200, "duplicate"));
    let sent: Vec<String> = domain::operation::Consumer::ALL
        .into_iter()
        .flat_map(|consumer| crate::harness::messages(&world, consumer))
        .map(|message| message.key.item.to_string())
        .collect();
    assert_eq!(sent, ["old", "old"]);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn the_same_delivery_with_another_item_is_a_conflict() {
    let world = world_of(BATCHED).await;
    submit(&world, "j1").await;
    assert_eq!(beta().send(&world, "msg_1", &batch(&[completed("a", "j1")])).await, said(202, "accepted"));
    let more = batch(&[completed("a", "j1"), completed("b", "j2")]);
    assert_eq!(beta().send(&world, "msg_1", &more).await, said(200, "quarantined"));
    assert_eq!(explain(&world, "beta", "msg_1").await.1["conflicts"].as_array().unwrap().len(), 1);
    assert_eq!(states(&world, "msg_1").await.len(), 2);
}
