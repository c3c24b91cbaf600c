//! What an event lacks is fetched from its provider once, frozen under the event, and then its operations run.

mod answers;
mod costs;
mod jobs;
mod others;
mod provider;
mod races;
mod real;
mod replays;
mod thin;

use std::sync::Arc;

use domain::operation::OperationName::{CompleteJob, Fetch, SettleUsage};
use local::world::{World, WorldConfig, event_body};
use runtime::call::Caller;
use runtime::lambda::PROVIDERS_TOML;
use runtime::sqs::SqsEvent;
use serde_json::{Value, json};

use crate::harness::*;
use provider::{Runs, Says, says};

const USAGE: &str = r#"fetch = { from = "http:runs", path = "/v1/runs/{ref}", when = "usage-missing", fields = { usage = "body:/run/usage", ref = "body:/run/id" } }"#;

/// acme's completions with this `fetch`, from a table with these further lines.
fn config(fetch: &str, more: &str) -> WorldConfig {
    let line = r#""job.completed" = { outcome = "success", operations = ["complete-job", "settle-usage"] }"#;
    assert!(PROVIDERS_TOML.contains(line));
    let rule = format!("{}, {fetch} }}", line.trim_end_matches(" }"));
    let table = format!(
        "\n[destinations.runs]\nurl = \"env:RUNS_URL\"\nheaders = {{ \"x-api-version\" = \"2026-11\" }}\n\
         auth = {{ as = \"bearer\", secret = \"env:RUNS_TOKEN\" }}\n{more}"
    );
    let mut config = WorldConfig { providers: PROVIDERS_TOML.replace(line, &rule) + &table, ..WorldConfig::default() };
    config.addresses = [("RUNS_URL", "https://runs.example/"), ("RUNS_TOKEN", "token-canary")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    config
}

/// A world with job j1 submitted under a hold of 5.00, and the provider's API.
async fn world_with(config: WorldConfig) -> (Arc<World>, Runs) {
    let runs = Runs::default();
    let world = submitted_with(WorldConfig { caller: Arc::new(runs.clone()), ..config }).await;
    (world, runs)
}

async fn world() -> (Arc<World>, Runs) {
    world_with(config(USAGE, "")).await
}

/// A completion of j1 that says nothing of its usage.
fn without_usage() -> String {
    event_body("job.completed", "j1", json!({}))
}

/// What the provider's API says of j1: 1200 and 340 tokens, worth 0.008700 (1200 x 3.00 and 340 x 15.00 per million).
fn run() -> Value {
    json!({"run": {"id": "p-j1", "usage": {"input_tokens": 1200, "output_tokens": 340}, "note": "body-canary"}})
}

/// Hands one message of the fetch to its consumer.
async fn try_fetch(world: &World, caller: &(impl Caller + Clone + 'static), id: &str) {
    let app = world.stack.app.clone().calling(Arc::new(caller.clone()));
    let records = vec![record("g", id, Fetch)];
    assert_eq!(failures(outbound::handle(&app, SqsEvent { records }).await), [""; 0], "{id}");
}

async fn fetch_state(world: &World, id: &str) -> String {
    let (state, class) = state(world, id, Fetch).await;
    format!("{state} {class}").trim_end().to_owned()
}

async fn settle_state(world: &World, id: &str) -> String {
    let (state, class) = state(world, id, SettleUsage).await;
    format!("{state} {class}").trim_end().to_owned()
}

#[tokio::test(start_paused = true)]
async fn usage_that_is_missing_is_fetched_and_settled_once() {
    let (lines, _guard) = crate::privacy::collect();
    let (world, runs) = world().await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    accepted(&world, "msg_1", &without_usage()).await;
    world.minutes(3).await.unwrap();
    assert_eq!(runs.lines(), ["GET /v1/runs/p-j1"]);
    let asked = &runs.asked()[0];
    let header = |name: &str| asked.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    assert_eq!(header("authorization"), Some("Bearer token-canary"));
    assert_eq!((header("x-api-version"), header("accept")), (Some("2026-11"), Some("application/json")));
    assert_eq!((header("idempotency-key"), asked.body.len()), (None, 0));
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await, ("99.991300".to_owned(), "0.000000".to_owned()));
    // The settlement has the usage; the transition has what the event told.
    let close = items(&world, "ledger").into_iter().find(|item| item["sk"]["S"] == "c").unwrap();
    assert_eq!(close["us"]["M"], json!({"input_tokens": {"S": "1200"}, "output_tokens": {"S": "340"}}));
    assert_eq!(world.job("j1").await["transitions"][0]["usage"], Value::Null);

    // Everything that is shown of it.
    let event = world.explain("msg_1").await;
    let found = json!([{"item": "-", "from": "http:runs", "at": "2026-11-29T12:00:00Z", "gave": ["usage"]}]);
    assert_eq!((&event["fetched"], &event["status"]), (&found, &json!("completed")), "{event}");
    let effect = async |name| shown(&world, "msg_1", name).await["effect"].as_str().unwrap().to_owned();
    assert_eq!(effect(Fetch).await, "usage from http:runs at 2026-11-29T12:00:00Z");
    assert_eq!(
        effect(SettleUsage).await,
        "capture of 0.008700 USD for version 1; usage fetched from http:runs at 2026-11-29T12:00:00Z"
    );
    assert_eq!(open_reviews(&world).await, [""; 0]);
    crate::books::audit(&world);
    // Neither the token nor anything else of the answer is kept or logged.
    let kept = format!("{:?}", items(&world, "events"));
    let text = lines.text();
    assert!(!kept.contains("canary") && !text.is_empty() && !text.contains("canary"), "{text}");
}

/// An event that says everything, a failure, and usage that cannot be read: nothing is asked.
#[tokio::test(start_paused = true)]
async fn an_event_that_lacks_nothing_plans_no_fetch() {
    let (world, runs) = world().await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    let negative = event_body("job.completed", "j1", json!({"usage": {"input_tokens": -1}}));
    for (id, body) in [
        ("msg_1", local::world::completed("j1")),
        ("msg_2", event_body("job.failed", "j1", json!({}))),
        ("msg_3", negative),
    ] {
        accepted(&world, id, &body).await;
        let event = world.explain(id).await;
        let names = event["operations"].as_array().unwrap().iter().map(|one| one["operation"].as_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["complete-job", "settle-usage"], "{id}");
        assert_eq!(event["fetched"], json!([]), "{id}");
    }
    world.minutes(3).await.unwrap();
    assert_eq!(runs.lines(), [""; 0]);
    assert_settled(&world, "j1", "msg_1").await;
}
