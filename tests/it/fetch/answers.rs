//! What each answer, and each silence, leads to.

use super::*;

/// Whatever is wrong in passing is waited out, and what waits is settled a minute after the answer came.
#[tokio::test(start_paused = true)]
async fn what_is_not_there_yet_is_asked_again_until_it_is() {
    let empty = || Says::Status(204, String::new());
    let started = || says(200, &json!({"run": {"id": "p-j1", "usage": null}}));
    for (answer, class, note) in [
        (Says::Down, "transient", "http:runs: no connection"),
        (Says::Silent, "transient", "http:runs: no answer in time"),
        (Says::Status(500, String::new()), "transient", "http:runs: status 500"),
        (Says::Status(302, String::new()), "transient", "http:runs: status 302"),
        (Says::Status(429, String::new()), "transient", "http:runs: status 429"),
        (Says::Status(404, "no such run".to_owned()), "not-yet", "http:runs: it has nothing there yet (status 404)"),
        (empty(), "not-yet", "http:runs: it has nothing there yet (status 204, no body)"),
        (started(), "not-yet", "http:runs: the answer has no `usage` yet, which settle-usage needs"),
        (
            Says::Status(401, String::new()),
            "refused",
            "http:runs: status 401: put the right secret into the variable that `auth` names",
        ),
        (Says::Cut(200), "transient", "http:runs: the answer broke off, or has more than 65536 bytes"),
    ] {
        let (world, runs) = world().await;
        runs.has("/v1/runs/p-j1", says(200, &run()));
        runs.script([answer.clone(), answer.clone()]);
        accepted(&world, "msg_1", &without_usage()).await;
        world.drain().await.unwrap();
        let waits = shown(&world, "msg_1", Fetch).await;
        assert_eq!((&waits["state"], &waits["class"]), (&json!("retrying"), &json!(class)), "{answer:?}");
        assert_eq!(waits["note"], note, "{answer:?}");
        let settle = shown(&world, "msg_1", SettleUsage).await;
        assert_eq!(
            (&settle["state"], &settle["class"], &settle["attempts"]),
            (&json!("retrying"), &json!("not-yet"), &json!(0))
        );
        assert!(settle["note"].as_str().unwrap().starts_with("what the event lacks is"), "{settle}");
        // The job does not wait for its money.
        assert_eq!(state(&world, "msg_1", CompleteJob).await.0, "done", "{answer:?}");
        world.minutes(4).await.unwrap();
        assert_settled(&world, "j1", "msg_1").await;
        assert_eq!(
            (runs.asked().len(), fetch_state(&world, "msg_1").await.as_str()),
            (3, "done already-done"),
            "{answer:?}"
        );
        assert_eq!(open_reviews(&world).await, [""; 0], "{answer:?}");
    }
}

/// A form that does not pass is a person's after three tries; what waits for it ends with the event's expiry, and says why.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_a_persons_and_a_retry_settles_it() {
    for garbage in [
        Says::Status(200, "<html>".to_owned()),
        Says::Status(200, r#"{"run":{"id":"p-j1"},"run":{}}"#.to_owned()),
        says(200, &json!({"run": {"id": 7, "usage": {}}})),
        Says::Cut(200),
    ] {
        let mut config = config(USAGE, "");
        config.providers = config.providers.replacen("expire_after_hours = 24", "expire_after_hours = 2", 1);
        let (world, runs) = world_with(config).await;
        runs.has("/v1/runs/p-j1", garbage.clone());
        accepted(&world, "msg_1", &without_usage()).await;
        world.minutes(5).await.unwrap();
        assert_eq!(fetch_state(&world, "msg_1").await, "needs-review unreadable", "{garbage:?}");
        assert_eq!(runs.asked().len(), 3, "{garbage:?}");
        let note = shown(&world, "msg_1", Fetch).await["note"].as_str().unwrap().to_owned();
        assert!(note.contains("correct `fetch` in the profile") && !note.contains("html"), "{note}");
        assert_eq!(settle_state(&world, "msg_1").await, "retrying not-yet");

        world.clock.advance(2 * HOUR_MS);
        relay_has_run(&world).await;
        world.minutes(3).await.unwrap();
        assert_eq!(settle_state(&world, "msg_1").await, "needs-review expired");
        let note = shown(&world, "msg_1", SettleUsage).await["note"].as_str().unwrap().to_owned();
        assert!(note.contains("a person decides on `fetch`; unreadable"), "{note}");
        assert_eq!(open_reviews(&world).await, ["acme/msg_1 fetch", "acme/msg_1 settle-usage"]);

        runs.has("/v1/runs/p-j1", says(200, &run()));
        for name in ["fetch", "settle-usage"] {
            let path = format!("/control/reviews/{name}~3Aacme~2Fmsg_1");
            let body = json!({"action": "retry", "reason": "the address is right now"});
            assert_eq!(world.control("POST", &path, Some(body)).await.0, 200);
        }
        world.minutes(3).await.unwrap();
        assert_settled(&world, "j1", "msg_1").await;
        assert_eq!(open_reviews(&world).await, [""; 0]);
    }
}

/// What is surely wrong is a person's at once: usage that cannot be, and an answer about something else.
#[tokio::test(start_paused = true)]
async fn bad_usage_and_another_identity_are_a_persons_at_once() {
    for (answer, expected, words) in [
        (
            json!({"run": {"id": "p-j1", "usage": {"input_tokens": "many"}}}),
            "invalid-usage",
            "its usage cannot be read",
        ),
        (
            json!({"run": {"id": "p-j2", "usage": {"input_tokens": 1}}}),
            "mismatch",
            "the answer's ref is not the event's",
        ),
    ] {
        let (world, runs) = world().await;
        runs.has("/v1/runs/p-j1", says(200, &answer));
        accepted(&world, "msg_1", &without_usage()).await;
        world.minutes(3).await.unwrap();
        let review = shown(&world, "msg_1", Fetch).await;
        assert_eq!((&review["state"], &review["class"]), (&json!("needs-review"), &json!(expected)));
        let note = review["note"].as_str().unwrap();
        assert!(note.contains(words) && !note.contains("many") && !note.contains("p-j2"), "{note}");
        assert_eq!((runs.asked().len(), world.explain("msg_1").await["fetched"].clone()), (1, json!([])));
        assert_eq!(world.job("j1").await["settlements"], json!([]));
    }
}

/// A provider that never knows it: the tries of the fetch end in review, and a person who gives it up is asked for the usage.
#[tokio::test(start_paused = true)]
async fn one_that_never_comes_is_a_persons_and_when_it_is_closed_the_settlement_is() {
    let policy = domain::limits::RetryPolicy { max_attempts: 3, cap_ms: MINUTE_MS, ..Default::default() };
    let (world, runs) = world_with(WorldConfig { policy, ..config(USAGE, "") }).await;
    accepted(&world, "msg_1", &without_usage()).await;
    world.minutes(8).await.unwrap();
    assert_eq!(fetch_state(&world, "msg_1").await, "needs-review attempts-exhausted");
    assert_eq!((runs.asked().len(), settle_state(&world, "msg_1").await.as_str()), (3, "retrying not-yet"));
    let body = json!({"action": "close", "reason": "the provider has lost it"});
    assert_eq!(world.control("POST", "/control/reviews/fetch~3Aacme~2Fmsg_1", Some(body)).await.0, 200);
    world.minutes(6).await.unwrap();
    assert_eq!(settle_state(&world, "msg_1").await, "needs-review no-usage");
    assert_eq!(open_reviews(&world).await, ["acme/msg_1 settle-usage"]);
}

/// The table's own limits hold: a breaker spares a provider that is down, and its tries.
#[tokio::test(start_paused = true)]
async fn a_breaker_and_a_missing_variable_hold_it_back() {
    let (world, runs) = world_with(config(USAGE, "breaker = { failures = 2, cool_s = 600 }\n")).await;
    runs.has("/v1/runs/p-j1", says(200, &run()));
    runs.script([Says::Down, Says::Silent]);
    accepted(&world, "msg_1", &without_usage()).await;
    world.minutes(4).await.unwrap();
    let waits = shown(&world, "msg_1", Fetch).await;
    assert!(waits["note"].as_str().unwrap().contains("left alone") && waits["attempts"] == 2, "{waits}");
    assert_eq!(runs.asked().len(), 2);
    world.minutes(12).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;

    let mut config = config(USAGE, "");
    config.addresses.remove("RUNS_TOKEN");
    let (world, runs) = world_with(config).await;
    accepted(&world, "msg_1", &without_usage()).await;
    world.drain().await.unwrap();
    let waits = shown(&world, "msg_1", Fetch).await;
    assert_eq!((fetch_state(&world, "msg_1").await.as_str(), runs.asked().len()), ("retrying refused", 0));
    assert!(waits["note"].as_str().unwrap().contains("RUNS_TOKEN"), "{waits}");
}
