//! create-job with a job board: one job there for a booking, whatever of it is said how often and in which order, and its
//! later versions are updates of that job.

mod crash;
mod fake;
mod faults;
mod order;

use std::sync::Arc;

use domain::operation::OperationName::CreateJob;
use local::world::{World, WorldConfig};
use runtime::lambda::PROVIDERS_TOML;
use serde_json::{Value, json};

use crate::harness::*;
use fake::{Fault, JobBoard, Later, header};

const KEYED: &str = "key_life_hours = 2\nkey_margin_minutes = 60\n";
const LOOKUP: &str = r#"lookup = { path = "/v1/jobs?ref={key}", found = "/data/0", reference = "/data/0/reference", id = "/data/0/id", settles_after_s = 120 }
"#;

/// acme's bookings go to a board under these rules.
fn config(rules: &str) -> WorldConfig {
    let board = r#"
board = { to = "http:board", body = { "/title" = "body:/data/title", "/version" = "body:/data/version", "/when/day" = "body:/data/day" }, update = { path = "/v1/jobs/{id}" }, attach_ref = true }
"#;
    let line = "[providers.acme.events.\"booking.created\"]\n";
    assert!(PROVIDERS_TOML.contains(line));
    let providers = PROVIDERS_TOML.replace(line, &format!("{line}{}", board.trim_start()));
    let table = format!(
        "\n[destinations.board]\nurl = \"env:BOARD_URL\"\npath = \"/v1/jobs\"\nid = \"/id\"\nfailed = [\"410\"]\n\
         auth = {{ as = \"bearer\", secret = \"env:BOARD_TOKEN\" }}\n{rules}"
    );
    let mut config = WorldConfig { providers: format!("{providers}{table}"), ..WorldConfig::default() };
    config.addresses = [("BOARD_URL", "https://board.example/"), ("BOARD_TOKEN", "token-canary")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    config
}

/// A funded world whose bookings go to a board that knows keys for so long.
async fn world_of(rules: &str, life_ms: i64) -> (Arc<World>, JobBoard) {
    world_with(config(rules), life_ms).await
}

async fn world_with(config: WorldConfig, life_ms: i64) -> (Arc<World>, JobBoard) {
    let later = Later::default();
    let slot = later.0.clone();
    let world = funded_with(WorldConfig { caller: Arc::new(later), ..config }).await;
    let board = JobBoard::new(world.clock.clone(), life_ms);
    slot.set(board.clone()).unwrap();
    (world, board)
}

/// acme's booking b1 of 5.00 on small-1.
fn booked(version: u32, title: &str) -> String {
    let data = json!({
        "tenant": "t1", "booking_id": "b1", "version": version, "model": "small-1", "wallet": "w1", "hold": "5.00",
        "title": title, "day": "2026-12-01",
    });
    json!({"type": "booking.created", "timestamp": "2026-11-29T12:00:00Z", "data": data}).to_string()
}

async fn book(world: &World, id: &str, version: u32) {
    accepted(world, id, &booked(version, &format!("as of {version}"))).await;
}

fn said(version: u32) -> Value {
    json!({"title": format!("as of {version}"), "version": version, "when": {"day": "2026-12-01"}})
}

/// The event of our own for a version of b1, as `explain` shows it.
async fn told(world: &World, version: u32) -> Value {
    let path = format!("/control/events/own/board.job~7Ct1~7Cb1~7C{version}");
    let (status, shown) = world.control("GET", &path, None).await;
    assert_eq!(status, 200, "{shown}");
    shown
}

/// State and class of that event's operation.
async fn went(world: &World, version: u32) -> String {
    let shown = &told(world, version).await["operations"][0];
    format!("{} {}", shown["state"].as_str().unwrap(), shown["class"].as_str().unwrap_or("-"))
}

/// A person decides on the review of what a version of b1 tells the board.
async fn decide(world: &World, version: u32, decision: Value) {
    let id = format!("forward:board@own/board.job|t1|b1|{version}");
    let path = format!("/control/reviews/{}", runtime::gateway::path_part(&id));
    let (status, answer) = world.control("POST", &path, Some(decision)).await;
    assert_eq!(status, 200, "{answer}");
}

async fn reviews(world: &World) -> Vec<String> {
    open_reviews(world).await
}

#[tokio::test(start_paused = true)]
async fn a_booking_makes_one_job_on_the_board_and_a_later_version_updates_it() {
    let (world, board) = world_of(KEYED, 2 * HOUR_MS).await;
    book(&world, "b_1", 1).await;
    world.drain().await.unwrap();
    let sent = board.sent();
    assert_eq!(board.lines(), ["POST /v1/jobs"]);
    assert_eq!(header(&sent[0], "authorization"), "Bearer token-canary");
    assert_eq!(header(&sent[0], "content-type"), "application/json");
    let text = String::from_utf8(sent[0].body.clone()).unwrap();
    assert_eq!(text, r#"{"title":"as of 1","version":1,"when":{"day":"2026-12-01"}}"#);
    // printf %s 'own|board.job%7Ct1%7Cb1%7C1|board|outbound|forward' | sha256sum
    assert_eq!(header(&sent[0], "idempotency-key"), KEY_OF_V1);

    accepted(&world, "b_2", &booked(2, "as of 2")).await;
    world.drain().await.unwrap();
    assert_eq!(board.lines(), ["POST /v1/jobs", "PUT /v1/jobs/job%2F0"]);
    assert_ne!(header(&board.sent()[1], "idempotency-key"), KEY_OF_V1);
    assert_eq!(board.jobs(), [said(2)]);
    assert_eq!(balance(&world, "w1").await, ("95.000000".to_owned(), "5.000000".to_owned()));

    // Everything that is shown of it.
    let made = &told(&world, 1).await["operations"][0];
    assert_eq!((&made["state"], &made["effect"]), (&json!("done"), &json!("forwarded to http:board")));
    assert_eq!((&made["intent"]["state"], &made["intent"]["result"]["id"]), (&json!("settled"), &json!("job/0")));
    let effect = |shown: Value| shown["effect"].as_str().unwrap().to_owned();
    assert_eq!(
        effect(shown(&world, "b_1", CreateJob).await),
        "job booking-b1 made by version 1; to the board by own/board.job|t1|b1|1"
    );
    let (status, booking) = world.control("GET", "/control/tenants/t1/bookings/b1", None).await;
    assert_eq!(status, 200);
    assert_eq!(
        booking["versions"][0]["board"],
        json!({"event": "own/board.job|t1|b1|1", "state": "settled", "id": "job/0"})
    );
    assert_eq!(booking["versions"][1]["board"]["state"], "settled");
    assert_eq!(reviews(&world).await, [""; 0]);
    assert!(!format!("{:?}", items(&world, "events")).contains("token-canary"));
}

const KEY_OF_V1: &str = "7e66f50c7c8d978c6ac84a00f5c94f88c612aa692d7b9a26ebbc0ada82b43e51";

/// The board's later webhook names the job by the board's id.
#[tokio::test(start_paused = true)]
async fn the_boards_id_is_the_jobs_reference_and_its_completion_finds_it() {
    let (world, _board) = world_of(KEYED, 2 * HOUR_MS).await;
    book(&world, "b_1", 1).await;
    world.drain().await.unwrap();
    assert_eq!(world.job("booking-b1").await["provider_job_ref"], "job/0");
    let done = json!({
        "type": "job.completed", "timestamp": "2026-11-29T12:00:00Z",
        "data": {"id": "job/0", "model": "small-1", "usage": {"input_tokens": 1200, "output_tokens": 340}},
    });
    accepted(&world, "msg_1", &done.to_string()).await;
    world.drain().await.unwrap();
    assert_settled(&world, "booking-b1", "msg_1").await;
    crate::books::audit(&world);
}

/// An id that leads to another job of ours is no reference of this one: a person's, and no second job.
#[tokio::test(start_paused = true)]
async fn an_id_that_another_job_has_is_a_persons() {
    let (world, board) = world_of(KEYED, 2 * HOUR_MS).await;
    let body = json!({
        "provider": "acme", "provider_job_ref": "job/0", "model": "small-1", "wallet": "w1", "hold": "1.00",
    });
    assert_eq!(world.control("PUT", "/control/tenants/t1/jobs/j1", Some(body)).await.0, 201);
    book(&world, "b_1", 1).await;
    world.minutes(3).await.unwrap();
    assert_eq!(went(&world, 1).await, "needs-review conflict");
    assert_eq!(board.jobs().len(), 1);
    // Once the person has decided, later versions go on.
    book(&world, "b_2", 2).await;
    world.minutes(2).await.unwrap();
    assert_eq!(board.versions(), [[1]]);
    decide(&world, 1, json!({"action": "close", "reason": "it keeps no reference"})).await;
    world.minutes(10).await.unwrap();
    assert_eq!(board.versions(), [[1, 2]]);
}

#[tokio::test(start_paused = true)]
async fn a_version_without_any_value_for_the_board_is_quarantined_and_other_content_is_a_conflict() {
    let (world, board) = world_of(KEYED, 2 * HOUR_MS).await;
    book(&world, "b_1", 1).await;
    accepted(&world, "b_2", &booked(1, "said otherwise")).await;
    world.drain().await.unwrap();
    assert_eq!(state(&world, "b_2", CreateJob).await, ("needs-review".to_owned(), "conflict".to_owned()));
    assert_eq!(board.jobs(), [said(1)]);
    let object = booked(3, "x").replace("\"x\"", "{\"a\":1}");
    assert_eq!(world.send("b_3", &object).await, (200, "quarantined".to_owned()));
}
