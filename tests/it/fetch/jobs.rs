//! What an answer is compared with: the job, also where it, or its reference, is known only later; and a thin event whose
//! fetch is given up, which leads to none.

use super::*;

/// acme's completion by the provider's reference alone, so that the answer says whose model it was.
fn by_reference() -> String {
    json!({"type": "job.completed", "timestamp": "2026-11-29T12:00:00Z", "data": {"id": "p-j1"}}).to_string()
}

/// acme's completion by our own name alone.
fn by_name() -> String {
    let data = json!({"tenant": "t1", "job_id": "j1"});
    json!({"type": "job.completed", "timestamp": "2026-11-29T12:00:00Z", "data": data}).to_string()
}

/// What was frozen before the job was known is compared with it afterwards: it was run with another model, which has
/// another price, so no money moves and the job does not end.
#[tokio::test(start_paused = true)]
async fn an_answer_from_before_the_job_is_compared_with_it() {
    let fetch = USAGE.replace("ref = \"body:/run/id\"", "ref = \"body:/run/id\", model = \"body:/run/model\"");
    assert_ne!(fetch, USAGE);
    let runs = Runs::default();
    let world = funded_with(WorldConfig { caller: Arc::new(runs.clone()), ..config(&fetch, "") }).await;
    let mut other = run();
    other["run"]["model"] = json!("large-9");
    runs.has("/v1/runs/p-j1", says(200, &other));
    accepted(&world, "msg_1", &by_reference()).await;
    world.minutes(2).await.unwrap();
    assert_eq!((fetch_state(&world, "msg_1").await.as_str(), runs.asked().len()), ("done", 1));
    assert_eq!(settle_state(&world, "msg_1").await, "retrying job-unknown");
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    world.minutes(4).await.unwrap();
    for name in [CompleteJob, SettleUsage] {
        let shown = shown(&world, "msg_1", name).await;
        assert_eq!((&shown["state"], &shown["class"]), (&json!("needs-review"), &json!("mismatch")), "{shown}");
        assert_eq!(shown["note"], "with what http:runs answered, the event's model is not the job's");
    }
    assert_untouched(&world, "j1").await;
    assert_eq!(balance(&world, "w1").await, ("95.000000".to_owned(), "5.000000".to_owned()));
}

/// A job that was submitted without a reference, which is attached afterwards.
async fn attached_later(config: WorldConfig) -> (Arc<World>, Runs) {
    let runs = Runs::default();
    let world = funded_with(WorldConfig { caller: Arc::new(runs.clone()), ..config }).await;
    let submit = async |reference: Value| {
        let mut body = json!({"provider": "acme", "model": "small-1", "wallet": "w1", "hold": "5.00"});
        body.as_object_mut().unwrap().extend(reference.as_object().unwrap().clone());
        world.control("PUT", "/control/tenants/t1/jobs/j1", Some(body)).await.0
    };
    assert_eq!(submit(json!({})).await, 201);
    assert_eq!(submit(json!({"provider_job_ref": "p-j1"})).await, 200);
    (world, runs)
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_was_attached_later_is_asked_for() {
    let (world, runs) = attached_later(config(USAGE, "")).await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    accepted(&world, "msg_1", &by_name()).await;
    world.minutes(3).await.unwrap();
    assert_eq!(runs.lines(), ["GET /v1/runs/p-j1"]);
    assert_settled(&world, "j1", "msg_1").await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_compared_with_the_reference_that_was_attached_later() {
    let fetch = USAGE.replace("/v1/runs/{ref}", "/v1/jobs/{job}");
    let (world, runs) = attached_later(config(&fetch, "")).await;
    let mut other = run();
    other["run"]["id"] = json!("p-other");
    runs.has("/v1/jobs/j1", says(200, &other));
    accepted(&world, "msg_1", &by_name()).await;
    world.minutes(3).await.unwrap();
    assert_eq!(fetch_state(&world, "msg_1").await, "needs-review mismatch");
    let note = shown(&world, "msg_1", Fetch).await["note"].clone();
    assert_eq!(note, "with what http:runs answered, the event's ref is not the job's");
    assert_eq!(world.explain("msg_1").await["fetched"], json!([]), "nothing is frozen");
    assert_eq!(world.job("j1").await["settlements"], json!([]));
}

/// The provider never knows it, and a person gives it up: what waited for it cannot be done, and says so at once.
#[tokio::test(start_paused = true)]
async fn a_thin_event_whose_fetch_is_closed_asks_a_person_to_close_the_rest() {
    let policy = domain::limits::RetryPolicy { max_attempts: 3, cap_ms: MINUTE_MS, ..Default::default() };
    let (world, _) = world_with(WorldConfig { policy, ..config(super::thin::THIN, "") }).await;
    accepted(&world, "msg_1", &super::thin::thin()).await;
    world.minutes(8).await.unwrap();
    assert_eq!(fetch_state(&world, "msg_1").await, "needs-review attempts-exhausted");
    let close = async |name: &str| {
        let body = json!({"action": "close", "reason": "the provider has lost it"});
        let path = format!("/control/reviews/{name}~3Aacme~2Fmsg_1");
        assert_eq!(world.control("POST", &path, Some(body)).await.0, 200, "{name}");
    };
    close("fetch").await;
    world.minutes(6).await.unwrap();
    for name in [CompleteJob, SettleUsage] {
        let shown = shown(&world, "msg_1", name).await;
        assert_eq!((&shown["state"], &shown["class"]), (&json!("needs-review"), &json!("not-possible")), "{shown}");
        let note = "the event has no `ref (or tenant and job)`, and its fetch was closed: close this too";
        assert_eq!(shown["note"], note);
        close(name.as_str()).await;
    }
    world.minutes(2).await.unwrap();
    assert_eq!(open_reviews(&world).await, [""; 0]);
    assert_eq!(world.explain("msg_1").await["status"], "completed");
}
