//! The action key: two events that speak of one action leave once.

use serde_json::{Value, json};

use super::*;
use crate::harness::open_reviews;

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
