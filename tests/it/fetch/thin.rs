//! Thin events, which say little more than that there is something: all their operations wait for the whole of it.

use super::*;

pub const THIN: &str = r#"fetch = { from = "http:runs", path = "/v1/things/{data.thing}", when = "always", fields = { ref = "body:/id", model = "body:/model", usage = "body:/usage" } }, data = { thing = "body:/thing" }"#;

/// All that such an event says. The odd characters stand for themselves.
pub fn thin() -> String {
    json!({"type": "job.completed", "timestamp": "2026-11-29T12:00:00Z", "thing": "a/b ?1"}).to_string()
}

const PATH: &str = "/v1/things/a%2Fb%20%3F1";

fn whole() -> Value {
    json!({"id": "p-j1", "model": "small-1", "usage": {"input_tokens": 1200, "output_tokens": 340}})
}

#[tokio::test(start_paused = true)]
async fn a_thin_event_completes_and_settles_the_job_that_the_answer_names() {
    let (world, runs) = world_with(config(THIN, "")).await;
    runs.has(PATH, says(200, &whole()));
    runs.script([Says::Down]);
    accepted(&world, "msg_1", &thin()).await;
    world.drain().await.unwrap();
    for name in [CompleteJob, SettleUsage] {
        assert_eq!(state(&world, "msg_1", name).await, ("retrying".to_owned(), "not-yet".to_owned()));
    }
    world.minutes(3).await.unwrap();
    assert_eq!(runs.lines(), [format!("GET {PATH}"), format!("GET {PATH}")]);
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(balance(&world, "w1").await, ("99.991300".to_owned(), "0.000000".to_owned()));
    // Here the transition is written from the completed event, usage and all.
    assert_eq!(world.job("j1").await["transitions"][0]["usage"]["output_tokens"], "340");
    let event = world.explain("msg_1").await;
    assert_eq!(event["fetched"][0]["gave"], json!(["ref", "model", "usage"]), "{event}");
    assert_eq!((&event["job"], &event["tenant"], &event["status"]), (&json!("j1"), &json!("t1"), &json!("completed")));
    crate::books::audit(&world);
}

/// The job is submitted after its event: then the fetched reference finds it.
#[tokio::test(start_paused = true)]
async fn a_thin_event_before_its_job_waits_for_it() {
    let runs = Runs::default();
    let world = funded_with(WorldConfig { caller: Arc::new(runs.clone()), ..config(THIN, "") }).await;
    runs.has(PATH, says(200, &whole()));
    accepted(&world, "msg_1", &thin()).await;
    world.minutes(2).await.unwrap();
    assert_eq!((fetch_state(&world, "msg_1").await.as_str(), runs.asked().len()), ("done", 1));
    assert_eq!(settle_state(&world, "msg_1").await, "retrying job-unknown");
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    world.minutes(4).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(runs.asked().len(), 1, "what was fetched stands");
}

/// The checks that the receiver makes of an event that says all by itself are made of the completed one.
#[tokio::test(start_paused = true)]
async fn what_the_answer_says_is_checked_as_an_event_is() {
    let mut other_model = whole();
    other_model["model"] = json!("large-9");
    let (world, runs) = world_with(config(THIN, "")).await;
    runs.has(PATH, says(200, &other_model));
    accepted(&world, "msg_1", &thin()).await;
    world.minutes(2).await.unwrap();
    assert_eq!(fetch_state(&world, "msg_1").await, "needs-review mismatch");
    let note = shown(&world, "msg_1", Fetch).await["note"].clone();
    assert_eq!(note, "with what http:runs answered, the event's model is not the job's");
    assert_eq!(world.job("j1").await["transitions"], json!([]));

    // A tenant that the profile does not serve.
    let fetch = THIN.replace("ref = \"body:/id\"", "tenant = \"body:/tenant\", job = \"body:/job\"");
    let mut config = config(&fetch, "");
    config.providers = config.providers.replacen("tenants = [\"*\"]", "tenants = [\"t2\"]", 1);
    let runs = Runs::default();
    let world = funded_with(WorldConfig { caller: Arc::new(runs.clone()), ..config }).await;
    runs.has(PATH, says(200, &json!({"tenant": "t1", "job": "j1", "usage": {"input_tokens": 1}})));
    accepted(&world, "msg_1", &thin()).await;
    world.minutes(2).await.unwrap();
    assert_eq!(fetch_state(&world, "msg_1").await, "needs-review mismatch");
    let note = shown(&world, "msg_1", Fetch).await["note"].clone();
    assert_eq!(note, "http:runs: tenant \"t1\" is not in the profile's `tenants`");
}

/// A member that the event itself gave stands: another identity is a person's, and another usage is not taken.
#[tokio::test(start_paused = true)]
async fn what_the_event_gave_is_never_overwritten() {
    let said = |reference: &str| {
        let usage = json!({"input_tokens": 1200, "output_tokens": 340});
        json!({
            "type": "job.completed", "timestamp": "2026-11-29T12:00:00Z", "thing": "a/b ?1",
            "data": {"id": reference, "usage": usage},
        })
        .to_string()
    };
    let mut more = whole();
    more["usage"]["input_tokens"] = json!(999_999);
    let (world, runs) = world_with(config(THIN, "")).await;
    runs.has(PATH, says(200, &more));
    accepted(&world, "msg_1", &said("p-j1")).await;
    world.minutes(2).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    let event = world.explain("msg_1").await;
    assert_eq!(event["fetched"][0]["gave"], json!(["model"]), "{event}");
    assert_eq!(shown(&world, "msg_1", SettleUsage).await["effect"], "capture of 0.008700 USD for version 1");

    let (world, runs) = world_with(config(THIN, "")).await;
    runs.has(PATH, says(200, &more));
    accepted(&world, "msg_1", &said("p-other")).await;
    world.minutes(2).await.unwrap();
    assert_eq!(fetch_state(&world, "msg_1").await, "needs-review mismatch");
    assert_eq!(runs.asked().len(), 1);
}

/// What an operation needs and the answer has not is waited for; an event that cannot be asked about is quarantined.
#[tokio::test(start_paused = true)]
async fn an_answer_that_lacks_what_is_needed_is_not_frozen() {
    let (world, runs) = world_with(config(THIN, "")).await;
    runs.has(PATH, says(200, &json!({"model": "small-1"})));
    accepted(&world, "msg_1", &thin()).await;
    world.drain().await.unwrap();
    let note = shown(&world, "msg_1", Fetch).await["note"].clone();
    assert_eq!(note, "http:runs: the answer has no `ref (or tenant and job)` yet, which complete-job needs");
    runs.has(PATH, says(200, &whole()));
    world.minutes(3).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;

    let nothing = json!({"type": "job.completed", "timestamp": "2026-11-29T12:00:00Z"}).to_string();
    assert_eq!(world.send("msg_2", &nothing).await, (200, "quarantined".to_owned()));
    // A name that would lead elsewhere is none.
    assert_eq!(world.send("msg_3", &thin().replace("a/b ?1", "..")).await, (200, "quarantined".to_owned()));
    assert!(world.explain("msg_3").await["note"].as_str().unwrap().contains("cannot stand in a path"));
}

/// A forward of a thin event carries what was fetched.
#[tokio::test(start_paused = true)]
async fn a_forward_waits_for_the_whole_event() {
    const QUEUE: &str = "books.fifo";
    let fetch = THIN.to_owned() + r#", forward = { to = "sqs:HOOKLEDGER_FORWARD_QUEUE_URL" }"#;
    let mut config = config(&fetch, "");
    config.providers = config.providers.replacen(
        r#"operations = ["complete-job", "settle-usage"], fetch"#,
        r#"operations = ["complete-job", "settle-usage", "forward"], fetch"#,
        1,
    );
    config.addresses.insert("HOOKLEDGER_FORWARD_QUEUE_URL".to_owned(), format!("https://sqs.example/1/{QUEUE}"));
    let (world, runs) = world_with(config).await;
    world.aws.queues().create_queue(QUEUE, local::fifo::QueueAttributes::default()).unwrap();
    runs.has(PATH, says(200, &whole()));
    runs.script([Says::Down]);
    accepted(&world, "msg_1", &thin()).await;
    world.minutes(4).await.unwrap();
    let arrived = world.aws.queues().peek(QUEUE).unwrap();
    assert_eq!(arrived.len(), 1);
    let body: Value = serde_json::from_str(&arrived[0].body).unwrap();
    assert_eq!(
        (&body["provider_job_ref"], &body["usage"]),
        (&json!("p-j1"), &json!({"input_tokens": "1200", "output_tokens": "340"}))
    );
    assert_settled(&world, "j1", "msg_1").await;
}
