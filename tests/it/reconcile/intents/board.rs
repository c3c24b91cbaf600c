//! A job board whose list has no more than a reference and an id.

use std::sync::{Arc, Mutex};

use local::world::{World, WorldConfig};
use runtime::call::{Call, CallError, Called, Caller, Reply};
use runtime::lambda::PROVIDERS_TOML;
use serde_json::{Value, json};

use super::{applied_and_gone, found, later, nothing};
use crate::harness::{accepted, funded_with};

/// It makes a job of every request and never answers; its list has them.
#[derive(Debug, Default, Clone)]
struct Mute(Arc<Mutex<Vec<Value>>>);

impl Caller for Mute {
    fn call(&self, call: Call) -> Called<'_> {
        Box::pin(async move {
            let mut jobs = self.0.lock().unwrap();
            if call.method == "GET" {
                assert_eq!(call.url, "https://board.example/v1/jobs");
                return Ok(Reply {
                    status: 200,
                    body: Some(json!({ "jobs": *jobs }).to_string().into_bytes()),
                    retry_after_s: None,
                });
            }
            let key = call.headers.iter().find(|(name, _)| name == "idempotency-key").unwrap().1.clone();
            let id = format!("b-{}", jobs.len() + 1);
            jobs.push(json!({"ref": key, "id": id, "made": "2026-11-29T12:00:00Z"}));
            Err(CallError::Lost("no answer in time"))
        })
    }
}

async fn booked() -> (Arc<World>, Mute) {
    let line = "[providers.acme.events.\"booking.created\"]\n";
    let rule = "board = { to = \"http:board\", body = { \"/day\" = \"body:/data/day\" }, update = { path = \"/v1/jobs/{id}\" }, attach_ref = true }\n";
    let table = r#"
[destinations.board]
url = "env:BOARD_URL"
path = "/v1/jobs"
id = "/id"
[destinations.board.list]
path = "/v1/jobs"
items = "/jobs"
key = "/ref"
id = "/id"
created = { at = "/made", unit = "rfc3339" }
"#;
    let providers = format!("{}{table}", PROVIDERS_TOML.replace(line, &format!("{line}{rule}")));
    let addresses = [("BOARD_URL".to_owned(), "https://board.example".to_owned())].into();
    let mute = Mute::default();
    let caller = Arc::new(mute.clone());
    let world = funded_with(WorldConfig { providers, addresses, caller, ..WorldConfig::default() }).await;
    let data = json!({
        "tenant": "t1", "booking_id": "b1", "version": 1, "model": "small-1", "wallet": "w1", "hold": "5.00",
        "day": "2026-12-01",
    });
    let body = json!({"type": "booking.created", "timestamp": "2026-11-29T12:00:00Z", "data": data});
    accepted(&world, "b_1", &body.to_string()).await;
    world.minutes(5).await.unwrap();
    (world, mute)
}

/// The board keeps no keys and cannot be asked by one, so what it did not answer is a review; its list settles it.
#[tokio::test(start_paused = true)]
async fn a_job_that_the_board_made_and_did_not_answer_for_is_taken_from_its_list() {
    let (world, board) = booked().await;
    assert_eq!(crate::harness::open_reviews(&world).await, ["own/board.job|t1|b1|1 forward"]);
    assert_eq!(world.job("booking-b1").await["provider_job_ref"], Value::Null);
    later(&world, 3).await;
    let case = applied_and_gone(&world, "settled-there/accept-from-authority/open").await;
    assert_eq!((&case["effect"]["id"], &case["amount"]), (&json!("b-1"), &Value::Null), "{case}");
    assert_eq!(world.job("booking-b1").await["provider_job_ref"], "b-1");
    assert_eq!(crate::harness::open_reviews(&world).await, [""; 0]);
    assert_eq!(board.0.lock().unwrap().len(), 1);
    crate::books::audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_names_no_event_is_nobodys_and_what_the_board_never_got_is_stuck() {
    let (world, board) = booked().await;
    board.0.lock().unwrap()[0]["ref"] = json!(domain::operation::hex_sha256("of another system"));
    later(&world, 5).await;
    nothing(&world, "early").await;
    later(&world, 2).await;
    let (cases, run) = found(&world, "first").await;
    assert_eq!(cases, ["stuck/person/open"], "nobody knows whether it was done: {run}");
}
