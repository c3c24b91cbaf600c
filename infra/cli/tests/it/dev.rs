//! `dev` with the verbs against it: kills, published rows, the provider simulator, the operator's day.

use std::path::Path;

use serde_json::Value;

use crate::harness::Dev;

/// Looks at most, each of which starts the program: on a busy machine something may have to wait for the relay.
const LOOKS: usize = 5_000;

/// Looks until the job is settled. Mostly it is at the second look; on a machine so busy that a handler ran into its time
/// limit, the relay does it at its next minute.
fn settled(dev: &Dev, job: &str) -> Value {
    for _ in 0..LOOKS {
        let (_, shown) = dev.json(&["job", "show", "t1", job]);
        if shown["status"] == "billing-settled" {
            return shown;
        }
    }
    panic!("job {job} is not settled");
}

fn sample(dir: &Path, job: &str) -> String {
    let now = domain::time::rfc3339(runtime::clock::Clock::now_ms(&runtime::clock::SystemClock));
    let body = serde_json::json!({
        "type": "job.completed", "timestamp": now,
        "data": {"tenant": "t1", "job_id": job, "id": format!("p-{job}"), "model": "small-1", "sequence": 3,
                 "usage": {"input_tokens": 1200, "output_tokens": 340}},
    });
    let file = dir.join(format!("{job}.json"));
    std::fs::write(&file, body.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

fn submit(dev: &Dev, job: &str) {
    let reference = format!("p-{job}");
    let args =
        ["job", "submit", "t1", job, "--provider", "acme", "--model", "small-1", "--wallet", "w1", "--hold", "5.00"];
    let (code, _) = dev.json(&[&args[..], &["--ref", &reference]].concat());
    assert_eq!(code, Some(0));
}

/// `kill -9` after each acknowledgement: nothing acknowledged is lost, nothing doubled.
#[test]
fn what_was_acknowledged_survives_kill_9_and_is_done_once() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let dev = Dev::start(&data, &[]);
    assert_eq!(dev.json(&["wallet", "create", "t1", "w1", "--currency", "USD"]).0, Some(0));
    assert_eq!(dev.json(&["wallet", "fund", "t1", "w1", "100.00", "--reference", "r"]).0, Some(0));
    let jobs = ["j1", "j2", "j3", "j4"];
    jobs.iter().for_each(|job| submit(&dev, job));
    drop(dev);
    for job in jobs {
        let dev = Dev::start(&data, &[]);
        let sent = dev.json(&["send", "acme", &sample(dir.path(), job), "--id", &format!("msg_{job}")]);
        assert_eq!(sent.0, Some(0), "{}", sent.1);
        drop(dev); // killed right behind the acknowledgement
    }
    let dev = Dev::start(&data, &[]);
    for job in jobs {
        let shown = settled(&dev, job);
        assert_eq!(shown["transitions"].as_array().unwrap().len(), 1, "{shown}");
        assert_eq!(shown["settlements"].as_array().unwrap().len(), 1, "{shown}");
    }
    // 100 - 4 x 0.0087
    let (_, wallet) = dev.json(&["wallet", "show", "t1", "w1"]);
    assert_eq!((&wallet["available"], &wallet["held"]), (&"99.965200".into(), &"0.000000".into()));
}

/// The published deliveries of Stripe and GitHub, against a clock of their own.
#[test]
fn published_deliveries_are_taken_and_broken_ones_refused() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Value = serde_json::from_str(include_str!("../../../../tests/fixtures/signatures.json")).unwrap();
    let rows: Vec<&Value> = rows["vectors"].as_array().unwrap().iter().collect();
    for (provider, secret) in [("stripe", "webhook_secret"), ("github", "It's a Secret to Everybody")] {
        let of = |r: &&&Value| r["scheme"] == provider && r["secret"] == secret && r["kind"] == "request";
        let mut clocks: Vec<i64> = rows.iter().filter(of).map(|r| r["now"].as_i64().unwrap_or(0)).collect();
        clocks.sort_unstable();
        clocks.dedup();
        let mut seen = 0;
        for clock in clocks {
            let dev = Dev::start(&dir.path().join(format!("{provider}-{clock}")), &["--at", &clock.to_string()]);
            for row in rows.iter().filter(of).filter(|r| r["now"].as_i64().unwrap_or(0) == clock) {
                assert_eq!(post(&dev.url, provider, row), row["expect"] == "valid", "{}", row["id"]);
                seen += 1;
            }
        }
        assert!(seen >= 4, "{provider}: {seen} rows");
    }
}

/// Posts a row; true for 2xx, false for 401, anything else is a failure.
fn post(url: &str, provider: &str, row: &Value) -> bool {
    use base64::Engine;
    let body = base64::engine::general_purpose::STANDARD.decode(row["body_b64"].as_str().unwrap()).unwrap();
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let mut request = agent.post(format!("{url}/webhooks/{provider}")).content_type("application/json");
    for (name, value) in row["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    match request.send(&body[..]).unwrap().status().as_u16() {
        200 | 202 => true,
        401 => false,
        other => panic!("{}: {other}", row["id"]),
    }
}

/// A provider that keeps its own events: it delivers, and delivers again under the same id when asked.
#[test]
fn the_provider_simulator_delivers_and_replays_under_the_same_id() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("data"), &[]);
    assert_eq!(dev.json(&["wallet", "create", "t1", "w1", "--currency", "USD"]).0, Some(0));
    assert_eq!(dev.json(&["wallet", "fund", "t1", "w1", "100.00", "--reference", "r"]).0, Some(0));
    submit(&dev, "j1");
    let body = std::fs::read_to_string(sample(dir.path(), "j1")).unwrap();
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let ask = |path: &str, body: &str| {
        let request = agent.post(format!("{}/provider/{path}", dev.url)).content_type("application/json");
        request.send(body).unwrap().status().as_u16()
    };
    assert_eq!(ask("nobody/events", &body), 422);
    assert_eq!(ask("acme/events?id=evt_1", &body), 202);
    assert_eq!(settled(&dev, "j1")["settlements"][0]["captured"], "0.008700");
    assert_eq!(ask("replay", r#"{"ids":["evt_1"]}"#), 202);
    let twice = (0..LOOKS).any(|_| dev.json(&["explain", "acme/evt_1"]).1["deliveries"] == 2);
    assert!(twice, "the event came again under its id");
    assert_eq!(settled(&dev, "j1")["settlements"].as_array().unwrap().len(), 1);
}

/// A charge above the hold: a person is told, tries dry, decides; the rest tells what became of it.
#[test]
fn a_person_is_told_decides_and_asks_again() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("data"), &[]);
    assert_eq!(dev.json(&["wallet", "create", "t1", "w1", "--currency", "USD"]).0, Some(0));
    assert_eq!(dev.json(&["wallet", "fund", "t1", "w1", "100.00", "--reference", "r"]).0, Some(0));
    submit(&dev, "j1");
    let file = sample(dir.path(), "j1");
    let body = std::fs::read_to_string(&file).unwrap().replace("1200", "2000000"); // 6.0051, and 5.00 are held
    std::fs::write(&file, body).unwrap();
    assert_eq!(dev.json(&["send", "acme", &file, "--id", "msg_1"]).0, Some(0));
    let id = "settle-usage:acme/msg_1";
    let listed = (0..LOOKS).any(|_| dev.json(&["reviews", "--class", "overage"]).1["reviews"][0]["id"] == id);
    assert!(listed, "the review is listed");
    let (code, status) = dev.json(&["status"]);
    assert_eq!((code, &status["states"][0]["state"]), (Some(1), &"review:overage".into()), "a person is needed");

    let approve = ["--action", "approve", "--alternative", "cap", "--reason", "agreed"];
    let dry = [&["reviews", "resolve", "--class", "overage", "--dry-run"][..], &approve].concat();
    assert_eq!(dev.json(&dry).1["results"][0]["result"], "would-decide");
    let close = ["reviews", "resolve", id, "--action", "close", "--reason", "x"];
    assert_eq!(dev.json(&close).1["code"], "release-needed");
    let decided = [&["reviews", "resolve", id][..], &approve].concat();
    for again in [false, true] {
        let (code, answer) = dev.json(&decided);
        assert_eq!((code, &answer["again"]), (Some(0), &again.into()), "{answer}");
    }
    assert_eq!(settled(&dev, "j1")["settlements"][0]["captured"], "5.000000");

    let replay = ["replay", "acme/msg_1", "--reason", "x", "--reference", "r-1"];
    assert_eq!(dev.json(&replay).1["counts"], serde_json::json!({"finished": 2}));
    assert_eq!(dev.json(&["replay", "acme/nobody", "--reason", "x"]).0, Some(1));
    let (code, explained) = dev.json(&["explain", "--job", "t1/j1"]);
    assert_eq!((code, &explained["events"][0]["event"]), (Some(0), &"acme/msg_1".into()));
    assert_eq!(dev.json(&["explain", "--payment", "t1/w1/r"]).1["funding"]["amount"], "100.000000");
    assert_eq!(dev.json(&["explain", "--job", "t1"]).0, Some(2));
    for paused in [true, false] {
        let (code, switch) = dev.json(&[if paused { "pause" } else { "resume" }, "billing", "--reason", "x"]);
        assert_eq!((code, &switch["paused"]), (Some(0), &paused.into()));
    }
    assert_eq!(dev.json(&["pause", "nobody", "--reason", "x"]).0, Some(1));
}
