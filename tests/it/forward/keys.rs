//! The action key: two events that speak of one action leave once.

use runtime::lambda::PROVIDERS_TOML;
use serde_json::{Value, json};

use super::*;
use crate::harness::{accepted, open_reviews};

fn merged(title: &str) -> Value {
    json!({"number": 7, "action": "closed", "repository": {"full_name": title}})
}

#[tokio::test(start_paused = true)]
async fn two_events_of_one_action_leave_once_and_the_second_names_the_owner() {
    let world = world_of(config()).await;
    for id in ["d-1", "d-2"] {
        send(&world, id, "pull_request", &merged("octo/one")).await;
        world.drain().await.unwrap();
    }
    let sent = arrived(&world);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].0["key"], "@action|github|pull_request|7|closed");
    assert_eq!(sent[0].0["event"], "github/d-1");
    assert_eq!(state(&world, "d-1").await, "done -");
    assert_eq!(state(&world, "d-2").await, "noop already-done");
    assert!(operation(&world, "d-2").await["note"].as_str().unwrap().contains("github/d-1"));
    // Another action of the same object is another key.
    send(&world, "d-3", "pull_request", &json!({"number": 7, "action": "reopened"})).await;
    world.drain().await.unwrap();
    assert_eq!(arrived(&world).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_action_key_with_other_content_is_a_conflict_and_does_not_leave() {
    let world = world_of(config()).await;
    for (id, title) in [("d-1", "octo/one"), ("d-2", "octo/two")] {
        send(&world, id, "pull_request", &merged(title)).await;
        world.drain().await.unwrap();
    }
    assert_eq!(arrived(&world).len(), 1);
    assert_eq!(state(&world, "d-2").await, "needs-review conflict");
    assert_eq!(open_reviews(&world).await, ["github/d-2 forward"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_the_value_of_its_action_key_is_quarantined() {
    let world = world_of(config()).await;
    let event = github(&world, "d-1", "pull_request", r#"{"action":"closed"}"#);
    assert_eq!(deliver(&world, &event).await, said(200, "quarantined"));
    let (_, shown) = explain(&world, "github", "d-1").await;
    assert!(shown["note"].as_str().unwrap().contains("body:/number"), "{shown}");
}

/// acme's completions are forwarded too, once per reference; with these fields of the body.
async fn acme(fields: &str) -> World {
    let rule = r#""job.completed" = { outcome = "success", operations = ["complete-job", "settle-usage"] }"#;
    let more = r#"operations = ["complete-job", "settle-usage", "forward"], forward = { to = "sqs:HOOKLEDGER_FORWARD_QUEUE_URL", action_key = ["body:/data/action"] } }"#;
    let with = rule.replace(r#"operations = ["complete-job", "settle-usage"] }"#, more);
    let text = PROVIDERS_TOML.replace(rule, &with);
    let text = text.replace("ref = \"body:/data/id\"\nmodel", &format!("{fields}\nmodel"));
    let world =
        world_of(WorldConfig { providers: text, addresses: config().addresses, ..WorldConfig::default() }).await;
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    world
}

fn ended(action: &str, named: &Value, tokens: u32) -> String {
    let mut data = json!({"action": action, "model": "small-1", "usage": {"input_tokens": tokens, "output_tokens": 1}});
    data.as_object_mut().unwrap().extend(named.as_object().unwrap().clone());
    json!({"type": "job.completed", "timestamp": "2026-11-29T12:00:00Z", "data": data}).to_string()
}

/// The job's tenant, id and wallet are looked up for the event that comes after the submission, and for it alone.
#[tokio::test(start_paused = true)]
async fn what_was_looked_up_for_one_event_only_makes_no_conflict_of_the_other() {
    let by_reference = ("ref = \"body:/data/id\"", json!({"id": "p-j1"}));
    let by_job = ("", json!({"tenant": "t1", "job_id": "j1"}));
    for (fields, named) in [by_reference, by_job] {
        let world = acme(fields).await;
        accepted(&world, "e-1", &ended("a-1", &named, 9)).await;
        world.drain().await.unwrap();
        assert_eq!(arrived(&world).len(), 1);
        assert_eq!(arrived(&world)[0].0.get("wallet"), None, "not submitted yet");
        assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
        accepted(&world, "e-2", &ended("a-1", &named, 9)).await;
        accepted(&world, "e-3", &ended("a-1", &named, 8)).await;
        accepted(&world, "e-4", &ended("a-2", &named, 9)).await;
        world.drain().await.unwrap();
        let shown = async |id: &str| crate::harness::state(&world, id, Forward).await;
        assert_eq!(shown("e-2").await, ("noop".to_owned(), "already-done".to_owned()), "{named}");
        assert_eq!(shown("e-3").await, ("needs-review".to_owned(), "conflict".to_owned()), "{named}");
        // What leaves still has all that is known.
        let last = arrived(&world).pop().unwrap().0;
        assert_eq!(last["key"], "@action|acme|job.completed|a-2");
        let whose = ["tenant", "job", "wallet"].map(|member| last[member].clone());
        assert_eq!(whose, [json!("t1"), json!("j1"), json!("w1")]);
    }
}
