//! Replays: same path, same keys; finished, failed, waiting and never planned events; spacing, dry runs,
//! repetitions, parts.

use std::sync::Arc;

use domain::operation::OperationName::{CompleteJob, SettleUsage};
use domain::profile::Profiles;
use futures_util::future::join;
use local::world::{World, completed, event_body};
use runtime::App;
use runtime::lambda::PROVIDERS_TOML;
use serde_json::{Value, json};

use super::scene::*;
use crate::books::audit;
use crate::harness::*;

fn by_ids(events: &[&str], reference: &str) -> Value {
    json!({"events": events, "reason": "after the repair", "reference": reference})
}

async fn replay(world: &World, body: Value) -> (u16, Value) {
    ask(world, "POST", "/control/replays", Some(body)).await
}

/// What became of each operation of the first event.
fn became(answer: &Value) -> Vec<&str> {
    answer["events"][0]["operations"].as_array().unwrap().iter().map(|o| o["became"].as_str().unwrap()).collect()
}

/// A request of a control function that was built with other profiles.
async fn with_profiles(world: &World, providers: &str, body: Value) -> (u16, Value) {
    asked_with_profiles(world, providers, ("POST", "/control/replays"), body).await
}

async fn asked_with_profiles(
    world: &World, providers: &str, (method, path): (&str, &str), body: Value,
) -> (u16, Value) {
    let app = App { profiles: Arc::new(Profiles::parse(providers).unwrap()), ..world.stack.app.clone() };
    let event = world.event(method, path, [], Some(&body.to_string()));
    let response = control::handle(&app, &event).await;
    (response.status_code, serde_json::from_str(&response.body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_finished_event_reports_its_recorded_result_and_is_not_sent() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let (status, answer) = replay(&world, by_ids(&["acme/msg_1"], "r-1")).await;
    assert_eq!((status, became(&answer)), (200, vec!["finished", "finished"]), "{answer}");
    assert_eq!(answer["events"][0]["operations"][1]["result"], "capture of 0.008700 USD for version 1");
    assert_eq!(answer["counts"], json!({"finished": 2}));
    assert_eq!(operation(&world, "msg_1", SettleUsage).await, None);
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
    let replays = &world.explain("msg_1").await["replays"];
    assert_eq!((&replays[0]["reference"], &replays[0]["actor"]), (&json!("r-1"), &json!(ANN)));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_failed_event_is_tried_anew_and_completes_once() {
    let world = exhausted().await;
    world.submit("j1", "w1", "5.00").await;
    let (_, answer) = replay(&world, by_ids(&["acme/msg_1"], "r-1")).await;
    assert_eq!(became(&answer), ["from-review", "from-review"]);
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.attempts, record.due_ms), (0, Some(now_ms(&world))));
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_comes_earlier_and_keeps_its_tries() {
    let world = funded().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(4).await.unwrap();
    let before = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert!(before.due_ms.unwrap() > now_ms(&world) && before.attempts > 0);
    let (_, answer) = replay(&world, by_ids(&["acme/msg_1"], "r-1")).await;
    assert!(became(&answer).contains(&"due"), "{answer}");
    let after = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!(after.due_ms, Some(now_ms(&world)));
    assert_eq!((after.attempts, after.generation, after.class), (before.attempts, before.generation, before.class));
    assert_eq!(after.waiting_since_ms, before.waiting_since_ms);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_sent_is_started() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    let (_, answer) = replay(&world, by_ids(&["acme/msg_1", "acme/nobody", "acme/msg_1"], "r-1")).await;
    assert_eq!(became(&answer), ["started", "started"]);
    assert_eq!(answer["events"].as_array().unwrap().len(), 2, "each event once");
    assert_eq!(answer["events"][1]["result"], "not-received");
    relay_minute(&world).await.unwrap();
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn rec_05_twice_within_a_second_is_one_replay_and_one_effect() {
    let world = exhausted().await;
    world.submit("j1", "w1", "5.00").await;
    let body = by_ids(&["acme/msg_1"], "r-1");
    let (one, two) = join(replay(&world, body.clone()), replay(&world, body.clone())).await;
    assert_eq!((one.0, two.0), (200, 200));
    assert_eq!(one.1["events"], two.1["events"]);
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    let (status, third) = replay(&world, body).await;
    assert_eq!((status, &third["again"], &third["events"]), (200, &json!(true), &one.1["events"]));
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap(), record);
    let (_, other) = replay(&world, by_ids(&["acme/msg_1"], "r-2")).await;
    assert_eq!(became(&other), ["already-due", "already-due"], "another replay finds it due");
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn the_same_reference_for_something_else_is_refused() {
    let world = exhausted().await;
    assert_eq!(replay(&world, by_ids(&["acme/msg_1"], "r-1")).await.0, 200);
    for other in [
        by_ids(&["acme/msg_2"], "r-1"),
        json!({"events": ["acme/msg_1"], "reason": "another", "reference": "r-1"}),
        json!({"provider": "acme", "from": "2026-11-29T12:00:00Z", "to": "2026-11-29T13:00:00Z",
               "reason": "after the repair", "reference": "r-1"}),
    ] {
        let (status, told) = replay(&world, other).await;
        assert_eq!((status, told["code"].as_str()), (409, Some("conflict")), "{told}");
    }
    let refused = [
        json!({"reason": "x", "reference": "r-9"}),
        json!({"events": ["acme/a"], "provider": "acme", "reason": "x", "reference": "r-9"}),
        json!({"events": [], "reason": "x", "reference": "r-9"}),
        json!({"events": ["acme"], "reason": "x", "reference": "r-9"}),
        json!({"events": ["acme/a"], "reason": "", "reference": "r-9"}),
        json!({"events": ["acme/a"], "reason": "x", "reference": "r-9", "part": 1}),
        json!({"provider": "acme", "from": "2026-11-29T12:00:00Z", "reason": "x", "reference": "r-9"}),
        json!({"provider": "acme", "from": "2026-11-29T12:00:00Z", "to": "2026-11-29T12:00:00Z", "reason": "x", "reference": "r-9"}),
        json!({"provider": "acme", "from": "noon", "to": "2026-11-29T12:00:00Z", "reason": "x", "reference": "r-9"}),
        json!({"provider": "acme", "from": "2026-11-29T12:00:00Z", "to": "2026-11-29T13:00:00Z", "states": ["lost"],
               "reason": "x", "reference": "r-9"}),
    ];
    for body in refused {
        let (status, told) = replay(&world, body.clone()).await;
        assert!(status == 400 || status == 422, "{body}: {status} {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_the_same_and_writes_nothing() {
    let world = exhausted().await;
    let mut body = by_ids(&["acme/msg_1"], "r-1");
    body["dry_run"] = json!(true);
    let before = items(&world, "events");
    let (status, dry) = replay(&world, body).await;
    assert_eq!((status, became(&dry), &dry["dry_run"]), (200, vec!["from-review", "from-review"], &json!(true)));
    assert_eq!(items(&world, "events"), before);
    let (_, real) = replay(&world, by_ids(&["acme/msg_1"], "r-1")).await;
    assert_eq!(real["events"], dry["events"]);
}

#[tokio::test(start_paused = true)]
async fn due_times_of_one_tenant_are_a_fifth_of_a_second_apart() {
    let world = submitted().await;
    for (n, tenant) in ["t1", "t1", "t2", "t1"].iter().enumerate() {
        world.clock.advance(10);
        let body = completed(&format!("j{n}")).replace("\"t1\"", &format!("\"{tenant}\""));
        taken_in(&world, &format!("msg_{n}"), &body).await;
    }
    let now = now_ms(&world);
    let names = ["acme/msg_3", "acme/msg_0", "acme/msg_1", "acme/msg_2"];
    let (_, answer) = replay(&world, by_ids(&names, "r-1")).await;
    assert_eq!(answer["spacing_ms"], 200);
    let mut due = Vec::new();
    for id in ["msg_0", "msg_1", "msg_2", "msg_3"] {
        let both = [CompleteJob, SettleUsage];
        for name in both {
            due.push(operation(&world, id, name).await.unwrap().due_ms.unwrap() - now);
        }
    }
    // In order of arrival, each tenant by itself: t1 at 0, 200 and 400, t2 at 0.
    assert_eq!(due, [0, 0, 200, 200, 0, 0, 400, 400]);
    // The next part begins behind this one: 600.
    taken_in(&world, "msg_9", &completed("j9")).await;
    let mut next = by_ids(&["acme/msg_9"], "r-1");
    next["part"] = json!(1);
    assert_eq!(replay(&world, next).await.0, 200);
    assert_eq!(operation(&world, "msg_9", SettleUsage).await.unwrap().due_ms, Some(now + 600));
}

#[tokio::test(start_paused = true)]
async fn a_window_takes_its_own_states_and_times() {
    let world = submitted().await;
    accepted(&world, "done", &completed("j1")).await;
    world.drain().await.unwrap();
    world.send("ignored", &event_body("job.renamed", "j1", json!({}))).await;
    world.clock.advance(2 * MINUTE_MS);
    taken_in(&world, "lost", &completed("j2")).await;
    world.clock.advance(2 * MINUTE_MS);
    taken_in(&world, "later", &completed("j3")).await;
    let mut body = json!({
        "provider": "acme", "from": "2026-11-29T12:00:00Z", "to": "2026-11-29T12:04:00Z", "reason": "x",
        "reference": "r-1", "dry_run": true,
    });
    let names = |answer: &Value| -> Vec<String> {
        answer["events"].as_array().unwrap().iter().map(|e| e["event"].as_str().unwrap().to_owned()).collect()
    };
    let (_, open) = replay(&world, body.clone()).await;
    assert_eq!((names(&open), &open["next"]), (vec!["acme/lost".to_owned()], &json!(null)), "{open}");
    body["states"] = json!(["completed", "ignored"]);
    let (_, finished) = replay(&world, body.clone()).await;
    assert_eq!(names(&finished), ["acme/done", "acme/ignored"]);
    body["states"] = json!(["received"]);
    body["to"] = json!("2026-11-29T12:05:00Z");
    body["dry_run"] = json!(false);
    let (status, both) = replay(&world, body.clone()).await;
    assert_eq!((status, names(&both)), (200, vec!["acme/lost".to_owned(), "acme/later".to_owned()]));
    assert_eq!(replay(&world, body).await.1["again"], true);
}

/// 600 events in 620 minutes: by the bound of events, and by that of minutes, in parts whose due times follow
/// each other.
#[tokio::test(start_paused = true)]
async fn a_long_replay_comes_in_parts_and_misses_nothing() {
    let world = funded().await;
    for n in 0..600 {
        accepted(&world, &format!("msg_{n}"), &completed("j1")).await;
    }
    purge(&world);
    world.clock.advance(615 * MINUTE_MS);
    taken_in(&world, "last", &completed("j1")).await;
    world.clock.advance(5 * MINUTE_MS);
    let mut body = json!({
        "provider": "acme", "from": "2026-11-29T12:00:00Z", "to": "2026-11-29T22:20:00Z", "reason": "x", "reference": "r-1",
    });
    let (mut seen, mut due, mut parts) = (std::collections::BTreeSet::new(), Vec::new(), Vec::new());
    loop {
        let (status, answer) = replay(&world, body.clone()).await;
        assert_eq!(status, 200, "{answer}");
        let events = answer["events"].as_array().unwrap();
        for event in events {
            assert!(seen.insert(event["event"].to_string()), "{event}");
            due.push(event["operations"][0]["due_at"].as_str().unwrap().to_owned());
        }
        parts.push(events.len());
        if answer["next"].is_null() {
            break;
        }
        body["after"] = answer["next"].clone();
    }
    assert_eq!((seen.len(), parts), (601, vec![250, 250, 100, 1]));
    let mut sorted = due.clone();
    sorted.sort_by_key(|at| domain::time::parse_rfc3339(at));
    sorted.dedup();
    assert_eq!((sorted.len(), &sorted), (601, &due), "one tenant: never two at one time, and in order");
}

#[tokio::test(start_paused = true)]
async fn an_ignored_event_is_planned_anew_by_a_corrected_profile() {
    let world = submitted().await;
    let unknown = completed("j1").replace("job.completed", "job.finished");
    assert_eq!(world.send("msg_1", &unknown).await, (200, "ignored".to_owned()));
    // By the profile as it is there is still nothing to plan.
    let (_, answer) = replay(&world, by_ids(&["acme/msg_1"], "r-0")).await;
    assert_eq!(answer["events"][0]["result"], "cannot-plan", "{answer}");
    let corrected = PROVIDERS_TOML.replacen("\"job.completed\" =", "\"job.finished\" =", 1);
    let (status, answer) = with_profiles(&world, &corrected, by_ids(&["acme/msg_1"], "r-1")).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["events"][0]["planned_anew"], json!(["complete-job", "settle-usage"]));
    assert_eq!(became(&answer), ["started", "started"]);
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
    let shown = world.explain("msg_1").await;
    assert_eq!(
        (&shown["status"], &shown["replays"][0]["planned_anew"][0]),
        (&json!("completed"), &json!("complete-job"))
    );
    // Planned once: a second replay finds it finished.
    let (_, again) = with_profiles(&world, &corrected, by_ids(&["acme/msg_1"], "r-2")).await;
    assert_eq!(became(&again), ["finished", "finished"]);
    assert_eq!(again["events"][0]["planned_anew"], json!([]));
    assert_eq!(world.send("msg_1", &unknown).await.1, "duplicate");
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_quarantined_event_is_planned_once_its_tenant_is_served_and_never_when_unreadable() {
    let strict = PROVIDERS_TOML.replacen("tenants = [\"*\"]", "tenants = [\"t2\"]", 1);
    let config = local::world::WorldConfig { providers: strict, ..local::world::WorldConfig::default() };
    let world = funded_with(config).await;
    let job =
        json!({"provider": "acme", "provider_job_ref": "p-j1", "model": "small-1", "wallet": "w1", "hold": "5.00"});
    let submit = ("PUT", "/control/tenants/t1/jobs/j1");
    assert_eq!(asked_with_profiles(&world, PROVIDERS_TOML, submit, job).await.0, 201);
    assert_eq!(world.send("msg_1", &completed("j1")).await.1, "quarantined");
    assert_eq!(world.send("msg_2", "{\"type\":").await.1, "quarantined");
    let raw = items(&world, "events").iter().find_map(|item| {
        item["pk"]["S"].as_str().and_then(|pk| pk.strip_prefix("E|acme|raw#")).map(|hash| format!("acme/raw#{hash}"))
    });
    let (_, refused) = replay(&world, by_ids(&["acme/msg_1"], "r-0")).await;
    assert_eq!(refused["events"][0]["detail"], "its tenant is not in the profile's `tenants`");
    let raw = raw.unwrap();
    let (_, answer) = with_profiles(&world, PROVIDERS_TOML, by_ids(&["acme/msg_1", &raw], "r-1")).await;
    assert_eq!(answer["events"][0]["planned_anew"], json!(["complete-job", "settle-usage"]), "{answer}");
    assert_eq!(answer["events"][1]["result"], "cannot-plan");
    assert!(answer["events"][1]["detail"].as_str().unwrap().contains("no field of it was kept"), "{answer}");
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_what_is_paused_leaves_it_in_its_order() {
    let world = submitted().await;
    let body = json!({"paused": true, "reason": "x"});
    ask(&world, "PUT", "/control/pauses/billing", Some(body)).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let (_, answer) = replay(&world, by_ids(&["acme/msg_1"], "r-1")).await;
    assert_eq!(became(&answer), ["finished", "paused"]);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_died_half_way_goes_on_where_it_stopped() {
    let world = exhausted().await;
    let lost = Rule::times(3, "PutItem", &["Q|replay|"], unreachable());
    world.aws.add_hook(lost.clone());
    let (status, _) = replay(&world, by_ids(&["acme/msg_1"], "r-1")).await;
    assert_eq!((status, lost.hits()), (503, 3), "its due times are written, its record is not");
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    world.clock.advance(1_000);
    let (status, answer) = replay(&world, by_ids(&["acme/msg_1"], "r-1")).await;
    assert_eq!((status, became(&answer)), (200, vec!["from-review", "from-review"]));
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap(), record, "it was not replayed twice");
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_damaged_job_is_told_and_keeps_no_other_from_its_replay() {
    let world = submitted().await;
    world.submit("j2", "w1", "5.00").await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    taken_in(&world, "msg_2", &completed("j2")).await;
    let mut job = items(&world, "jobs").into_iter().find(|item| item["pk"]["S"] == "J|t1|j1").unwrap();
    job["sv"] = json!({"N": "999"}); // of a later schema version
    overwrite(&world, "jobs", &job);
    let window = json!({
        "provider": "acme", "from": "2026-11-29T11:00:00Z", "to": "2026-11-29T13:00:00Z", "reason": "x",
        "reference": "r-1",
    });
    for body in [window, by_ids(&["acme/msg_1", "acme/msg_2"], "r-2")] {
        let (status, answer) = replay(&world, body.clone()).await;
        assert_eq!(status, 200, "{answer}");
        let mut results: Vec<String> = answer["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| {
                format!("{} {} {}", event["event"], event["result"], event["operations"].as_array().unwrap().len())
            })
            .collect();
        results.sort();
        assert_eq!(results, [r#""acme/msg_1" "unreadable" 0"#, r#""acme/msg_2" "replayed" 2"#]);
        assert_eq!(replay(&world, body).await.1["events"], answer["events"], "said again");
    }
}
