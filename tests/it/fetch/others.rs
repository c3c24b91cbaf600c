//! What else looks at the event: other events of its job, a pause, the reconciler, deliveries of several items.

use local::Function;

use super::*;
use crate::sender::{Sender, WHSEC, profile, said};

/// Two completions under two ids, neither with usage: the second is a no-op; one that says the fetched usage itself is as
/// well, and one that says other usage is a person's.
#[tokio::test(start_paused = true)]
async fn other_events_of_the_job_are_compared_with_what_was_fetched() {
    let (world, runs) = world().await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    accepted(&world, "msg_1", &without_usage()).await;
    world.minutes(2).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    accepted(&world, "msg_2", &without_usage()).await;
    accepted(&world, "msg_3", &local::world::completed("j1")).await;
    let other = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 9}}));
    accepted(&world, "msg_4", &other).await;
    world.minutes(3).await.unwrap();
    assert_eq!(settle_state(&world, "msg_2").await, "noop already-done");
    assert_eq!(settle_state(&world, "msg_3").await, "noop already-done");
    assert_eq!(settle_state(&world, "msg_4").await, "needs-review conflict");
    // By now the provider says something else: what it says to another event is a conflict, and not silent.
    runs.has("/v1/runs/p-j1", says(200, &json!({"run": {"id": "p-j1", "usage": {"input_tokens": 9}}})));
    accepted(&world, "msg_5", &without_usage()).await;
    world.minutes(3).await.unwrap();
    assert_eq!(settle_state(&world, "msg_5").await, "needs-review conflict");
    assert_settled(&world, "j1", "msg_1").await;
    crate::books::audit(&world);
}

/// Of two at one moment one owns the outcome, and the other is a no-op whichever fetch was first.
#[tokio::test(start_paused = true)]
async fn two_events_at_one_moment_settle_once() {
    let (world, runs) = world().await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    runs.script([Says::Down]);
    accepted(&world, "msg_1", &without_usage()).await;
    accepted(&world, "msg_2", &without_usage()).await;
    world.minutes(4).await.unwrap();
    let job = world.job("j1").await;
    assert_eq!(
        (job["settlements"].as_array().unwrap().len(), &job["settlements"][0]["captured"]),
        (1, &json!("0.008700"))
    );
    assert_eq!(job["settlements"][0]["by"], job["transitions"][0]["by"]);
    assert_eq!(open_reviews(&world).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_outbound_asks_nobody_until_it_is_resumed() {
    let (world, runs) = world().await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    let switch = async |on: bool| {
        let body = json!({"paused": on, "reason": "their API is under repair"});
        let (status, answer) = world.control("PUT", "/control/pauses/outbound", Some(body)).await;
        assert!(status < 300, "{answer}");
    };
    switch(true).await;
    accepted(&world, "msg_1", &without_usage()).await;
    world.minutes(3).await.unwrap();
    assert_eq!((fetch_state(&world, "msg_1").await.as_str(), runs.asked().len()), ("retrying paused", 0));
    switch(false).await;
    world.minutes(4).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
}

/// While the fetch waits the reconciler finds nothing; once it is a person's, the provider's list may settle it instead,
/// and then the operation that still waits is done.
#[tokio::test(start_paused = true)]
async fn a_person_may_settle_by_the_providers_list_what_cannot_be_fetched() {
    // The record of what waits cannot be closed by the decision itself, so the operation finds its own effect.
    let lost = Rule::times(0, "PutItem", &["o|-|billing|settle-usage"], unreachable());
    let config = config(USAGE, "");
    config.hooks.add(Function::Control, lost.clone());
    let (world, runs) = world_with(config).await;
    runs.has("/v1/runs/p-j1", Says::Status(200, "<html>".to_owned()));
    runs.script(vec![Says::Down; 2]);
    accepted(&world, "msg_1", &without_usage()).await;
    world.drain().await.unwrap();
    let run_of = async |reference: &str| {
        let run = world.reconcile(reference, json!({"kinds": ["wallets"]})).await.unwrap();
        run["cases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|case| case["class"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    world.clock.advance(20 * MINUTE_MS);
    assert_eq!(run_of("waits").await, [""; 0]);
    world.minutes(20).await.unwrap();
    assert_eq!(fetch_state(&world, "msg_1").await, "needs-review unreadable");
    assert_eq!(run_of("lacks").await, ["no-usage"]);
    world.provider.emit("acme", "e1", &local::world::completed("j1"), now_ms(&world)).unwrap();
    let listed = world.reconcile("list", json!({"provider": "acme"})).await.unwrap();
    assert_eq!(listed["state"], "done", "{listed}");
    let shown = world.reconcile("again", json!({"kinds": ["wallets"]})).await.unwrap();
    let case = shown["cases"][0]["case"].as_str().unwrap_or_default().to_owned();
    lost.start();
    let (status, answer) = world.decide_case("again", &case, "apply").await;
    assert!(lost.hits() > 0, "{status} {answer}");
    lost.stop();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(settle_state(&world, "msg_1").await, "done not-yet", "the effect outranks the record");
    world.minutes(20).await.unwrap();
    assert_eq!(settle_state(&world, "msg_1").await, "done already-done");
    crate::books::audit(&world);
}

/// Each item of a delivery is fetched by itself, and one that is not there keeps no other.
#[tokio::test(start_paused = true)]
async fn items_are_fetched_one_by_one() {
    let more = r#"
event_id = "signed-id"
items = "/events"
item_id = "item:/id"
event_type = "body:/type"
first_sent = { at = "item:/at", unit = "rfc3339" }
fields = { tenant = "body:/tenant", job = "item:/job", usage = "item:/usage" }
events."job.completed" = { outcome = "success", operations = ["complete-job", "settle-usage"], fetch = { from = "http:runs", path = "/v1/jobs/{tenant}/{job}", when = "usage-missing", fields = { usage = "body:/usage" } } }
"#;
    let mut config = crate::sender::config(&[profile("beta", "standard-webhooks", more)], &[("beta", WHSEC)]);
    config.providers += "\n[destinations.runs]\nurl = \"env:RUNS_URL\"\n";
    config.addresses.insert("RUNS_URL".to_owned(), "https://runs.example".to_owned());
    let runs = Runs::default();
    let world = funded_with(WorldConfig { caller: Arc::new(runs.clone()), ..config }).await;
    for job in ["j1", "j2", "j3"] {
        let body = json!({"provider": "beta", "model": "small-1", "wallet": "w1", "hold": "1.00"});
        assert_eq!(world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await.0, 201);
    }
    let usage = json!({"input_tokens": 1200, "output_tokens": 340});
    runs.has("/v1/jobs/t1/j1", says(200, &json!({"usage": usage})));
    let item = |id: &str, job: &str| json!({"id": id, "at": "2026-11-29T12:00:00Z", "job": job});
    let mut told = item("c", "j3");
    told["usage"] = usage.clone();
    let body = json!({"tenant": "t1", "type": "job.completed", "events": [item("a", "j1"), item("b", "j2"), told]});
    let sender = Sender::new("beta", "standard-webhooks", WHSEC);
    assert_eq!(sender.send(&world, "d_1", body.to_string()).await, said(202, "accepted"));
    world.minutes(3).await.unwrap();
    let (_, event) = crate::sender::explain(&world, "beta", "d_1").await;
    let fetched = event["fetched"].as_array().unwrap();
    assert_eq!((fetched.len(), &fetched[0]["item"]), (1, &json!("a")), "{event}");
    assert_eq!(event["operations"].as_array().unwrap().len(), 8, "two of three items have a fetch");
    assert_eq!(balance(&world, "w1").await.1, "1.000000", "j2 still has its hold");
    runs.has("/v1/jobs/t1/j2", says(200, &json!({"usage": usage})));
    world.minutes(6).await.unwrap();
    assert_eq!(balance(&world, "w1").await, ("99.973900".to_owned(), "0.000000".to_owned())); // 100 - 3 x 0.0087
    crate::books::audit(&world);
}
