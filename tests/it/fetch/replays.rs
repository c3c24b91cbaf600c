//! A replay uses what is frozen: it asks nobody.

use super::*;

async fn replay(world: &World, reference: &str) -> Value {
    let body = json!({"events": ["acme/msg_1"], "reason": "to see", "reference": reference});
    let (status, answer) = world.control("POST", "/control/replays", Some(body)).await;
    assert_eq!(status, 200, "{answer}");
    answer["events"][0]["operations"].clone()
}

fn became(operations: &Value) -> Vec<&str> {
    operations.as_array().unwrap().iter().map(|one| one["became"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_finished_event_is_reported_and_nothing_is_asked_again() {
    let (world, runs) = world().await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    accepted(&world, "msg_1", &without_usage()).await;
    world.minutes(3).await.unwrap();
    let told = replay(&world, "r-1").await;
    assert_eq!(became(&told), ["finished", "finished", "finished"], "{told}");
    assert_eq!(told[0]["result"], "usage from http:runs at 2026-11-29T12:00:00Z");
    world.minutes(3).await.unwrap();
    assert_eq!(runs.asked().len(), 1);
    assert_settled(&world, "j1", "msg_1").await;
}

/// The settlement is in review; by its replay the provider says something else, and that is not asked for.
#[tokio::test(start_paused = true)]
async fn a_settlement_in_review_is_replayed_with_what_was_frozen() {
    let (world, runs) = world().await;
    // 2,000,000 x 3.00 per million = 6.00, above the hold of 5.00.
    let above = json!({"run": {"id": "p-j1", "usage": {"input_tokens": 2_000_000}}});
    runs.has("/v1/runs/p-j1", says(200, &above));
    accepted(&world, "msg_1", &without_usage()).await;
    world.minutes(3).await.unwrap();
    assert_eq!(settle_state(&world, "msg_1").await, "needs-review overage");
    runs.has("/v1/runs/p-j1", says(200, &run()));
    assert_eq!(became(&replay(&world, "r-1").await), ["finished", "finished", "from-review"]);
    world.minutes(3).await.unwrap();
    assert_eq!((settle_state(&world, "msg_1").await.as_str(), runs.asked().len()), ("needs-review overage", 1));
    let body = json!({"action": "approve", "alternative": "available", "reason": "agreed"});
    assert_eq!(world.control("POST", "/control/reviews/settle-usage~3Aacme~2Fmsg_1", Some(body)).await.0, 200);
    world.minutes(3).await.unwrap();
    assert_eq!(world.job("j1").await["settlements"][0]["captured"], "6.000000");
    assert_eq!(runs.asked().len(), 1);
}

/// An event that the profile did not act on is planned anew, with its fetch.
#[tokio::test(start_paused = true)]
async fn an_ignored_event_is_planned_anew_with_its_fetch() {
    let corrected = config(USAGE, "");
    let mut before = corrected.clone();
    before.providers = before.providers.replace("\"job.completed\" =", "\"job.other\" =");
    let (world, runs) = world_with(before).await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    assert_eq!(world.send("msg_1", &without_usage()).await, (200, "ignored".to_owned()));
    // Functions with the corrected profile replay it and carry it out.
    let profiles = Arc::new(domain::profile::Profiles::parse(&corrected.providers).unwrap());
    let app = runtime::App { profiles, ..world.stack.app.clone() }.calling(Arc::new(runs.clone()));
    let body = json!({"events": ["acme/msg_1"], "reason": "profile corrected", "reference": "r-1"}).to_string();
    let answer = control::handle(&app, &world.event("POST", "/control/replays", [], Some(&body))).await;
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(became(&answer["events"][0]["operations"]), ["started", "started", "started"], "{answer}");
    let records = world.stack.app.store.load_event(&event_ref("msg_1")).await.unwrap().unwrap();
    assert_eq!(records.receipt.envelope.fetch, Some(domain::fetch::When::UsageMissing));
    for name in [Fetch, CompleteJob, SettleUsage] {
        let event = runtime::sqs::SqsEvent { records: vec![record_of("g", "msg_1", name, 1, 1)] };
        let failed = match name.consumer() {
            domain::operation::Consumer::Job => failures(job::handle(&app, event).await),
            domain::operation::Consumer::Billing => failures(billing::handle(&app, event).await),
            domain::operation::Consumer::Outbound => failures(outbound::handle(&app, event).await),
        };
        assert_eq!(failed, [""; 0], "{name}");
    }
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(runs.asked().len(), 1);
}
