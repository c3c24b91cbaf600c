//! What needs a person is told; what is told of never leads to more of it.

use domain::limits::RetryPolicy;
use local::hook::{Fault, HookDecision, Service};
use local::stack::Function;
use local::world::{completed, event_body};
use serde_json::json;

use super::*;
use crate::harness::{MINUTE_MS, Rule, accepted, items, open_reviews, unreachable};

const TYPES: &str = r#"["review.opened", "event.conflict"]"#;

fn watching(more: &str) -> WorldConfig {
    subscribed(&subscription("desk", ADDRESS, TYPES, more))
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_needs_a_person_is_told_once_and_again_when_it_does_again() {
    let world = world_of(watching("")).await;
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    accepted(&world, "e-1", &event_body("job.completed", "j1", json!({}))).await;
    world.minutes(5).await.unwrap();
    let by_hand = json!({
        "type": "review.opened", "id": "review.opened|acme|e-1|-|billing|settle-usage|1",
        "timestamp": "2026-11-29T12:00:00Z",
        "data": {
            "tenant": "t1", "job": "j1", "wallet": "w1", "provider_job_ref": "p-j1", "event": "acme/e-1", "item": "-",
            "operation": "settle-usage", "class": "no-usage", "revision": "1",
        },
    });
    assert_eq!(told(&world), [by_hand]);
    let body = json!({"action": "retry", "reason": "to see"});
    let path = "/control/reviews/settle-usage~3Aacme~2Fe-1";
    assert_eq!(world.control("POST", path, Some(body)).await.0, 200);
    world.drain().await.unwrap();
    assert_eq!(ids(&world)[1..], ["review.opened|acme|e-1|-|billing|settle-usage|3"]);
}

#[tokio::test(start_paused = true)]
async fn one_that_the_relay_gives_up_is_told_too() {
    let policy = RetryPolicy { max_attempts: 1, cap_ms: MINUTE_MS, ..RetryPolicy::default() };
    let world = world_of(WorldConfig { policy, ..watching("") }).await;
    accepted(&world, "e-1", &completed("never")).await;
    world.minutes(10).await.unwrap();
    assert_eq!(open_reviews(&world).await, ["acme/e-1 complete-job", "acme/e-1 settle-usage"]);
    let classes: Vec<_> = told(&world).iter().map(|body| body["data"]["class"].clone()).collect();
    assert_eq!(classes, ["attempts-exhausted", "attempts-exhausted"]);
}

#[tokio::test(start_paused = true)]
async fn other_content_under_a_known_id_is_told_once_per_content() {
    let world = world_of(watching("")).await;
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    accepted(&world, "e-1", &completed("j1")).await;
    let other = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 9}}));
    for _ in 0..3 {
        assert_eq!(world.send("e-1", &other).await, (200, "quarantined".to_owned()));
        world.drain().await.unwrap();
    }
    let told = told(&world);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["type"], &told[0]["data"]["event"]), (&json!("event.conflict"), &json!("acme/e-1")));
    assert_eq!(told[0]["data"]["job"], "j1");
    assert!(told[0]["id"].as_str().unwrap().starts_with("event.conflict|acme|e-1|1:"), "{told:?}");
    let another = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 8}}));
    assert_eq!(world.send("e-1", &another).await.0, 200);
    world.drain().await.unwrap();
    assert_eq!(ids(&world).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_nobodys_in_particular_is_told_to_those_who_hear_of_everybody() {
    for (tenants, heard) in [("tenants = [\"t1\"]", 1), ("tenants = [\"t2\"]", 0)] {
        let world = world_of(watching(tenants)).await;
        assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
        accepted(&world, "e-1", &event_body("job.completed", "j1", json!({}))).await;
        world.drain().await.unwrap();
        assert_eq!(ids(&world).len(), heard, "{tenants}");
    }
}

/// The destination refuses for ever: the forward of the review is a review of its own, which is told to nobody.
#[tokio::test(start_paused = true)]
async fn a_review_of_what_was_told_is_not_told() {
    let config = watching("");
    let refused = HookDecision::FailBefore(Fault::internal_server_error(Service::Sqs));
    let rule = Rule::always("SendMessage", &[QUEUE], refused);
    config.hooks.add(Function::Outbound, rule.clone());
    let policy = RetryPolicy { max_attempts: 2, cap_ms: MINUTE_MS, ..RetryPolicy::default() };
    let world = world_of(WorldConfig { policy, ..config }).await;
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    accepted(&world, "e-1", &event_body("job.completed", "j1", json!({}))).await;
    world.minutes(30).await.unwrap();
    let own = "own/review.opened|acme|e-1|-|billing|settle-usage|1 forward";
    assert_eq!(open_reviews(&world).await, ["acme/e-1 settle-usage", own]);
    let receipts =
        items(&world, "events").into_iter().filter(|item| item["pk"]["S"].as_str().unwrap().starts_with("E|own|"));
    assert_eq!(receipts.filter(|item| item["sk"]["S"] == "r").count(), 1);
    assert!(rule.hits() > 0);
}

/// The review stands or is told together with its event: an answer that is lost makes neither two.
#[tokio::test(start_paused = true)]
async fn a_review_whose_answer_is_lost_is_told_once() {
    // Where the review could not be written the relay has written two revisions before it is.
    for (what, revision) in [(HookDecision::lost_answer(), 1), (unreachable(), 3)] {
        let config = watching("");
        let rule = Rule::times(3, "TransactWriteItems", &["review.opened"], what);
        config.hooks.add(Function::Billing, rule.clone());
        let world = world_of(config).await;
        assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
        accepted(&world, "e-1", &event_body("job.completed", "j1", json!({}))).await;
        world.minutes(15).await.unwrap();
        assert_eq!(rule.hits(), 3);
        assert_eq!(ids(&world), [format!("review.opened|acme|e-1|-|billing|settle-usage|{revision}")]);
        assert_eq!(open_reviews(&world).await, ["acme/e-1 settle-usage"]);
    }
}
