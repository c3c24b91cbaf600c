//! A destination that is down defers and blocks nobody; a crash at any step repeats the identical bytes.

use std::sync::{Arc, Mutex};

use domain::event::EventRef;
use domain::ids::ItemId;
use domain::limits::RetryPolicy;
use domain::message::Message;
use domain::operation::OperationKey;
use domain::profile::Profiles;
use local::hook::{Call, CallHook, Fault, HookDecision, Service};
use local::stack::Function;
use runtime::App;
use runtime::sqs::{SqsAttributes, SqsEvent, SqsRecord};
use serde_json::{Value, json};

use super::*;
use crate::harness::{MINUTE_MS, failures, open_reviews, throttled, unreachable};

/// Every SendMessage to the destination, as it was sent.
#[derive(Debug, Default)]
struct Wire(Mutex<Vec<Value>>);

impl CallHook for Wire {
    fn on_call(&self, call: &Call) -> HookDecision {
        if call.is("SendMessage", QUEUE) {
            self.0.lock().unwrap().push(serde_json::from_slice(&call.body).unwrap());
        }
        HookDecision::Pass
    }
}

impl Wire {
    /// How many were sent, and that all were the same.
    fn same(&self) -> usize {
        let sent = self.0.lock().unwrap();
        assert!(sent.iter().all(|one| *one == sent[0]), "{sent:?}");
        sent.len()
    }
}

/// A world in which three tries are the most, a minute apart.
async fn hooked_world(
    operation: &'static str, containing: &[&str], times: usize, what: HookDecision,
) -> (World, Arc<Wire>, Arc<Rule>) {
    let policy = RetryPolicy { max_attempts: 3, cap_ms: MINUTE_MS, ..RetryPolicy::default() };
    let config = WorldConfig { policy, ..config() };
    let (wire, rule) = (Arc::new(Wire::default()), Rule::times(times, operation, containing, what));
    config.hooks.add(Function::Outbound, wire.clone());
    config.hooks.add(Function::Outbound, rule.clone());
    (world_of(config).await, wire, rule)
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_is_down_defers_and_is_tried_again_with_the_same_bytes() {
    let refused = HookDecision::FailBefore(Fault::internal_server_error(Service::Sqs));
    for what in [unreachable(), refused, HookDecision::FailBefore(Fault::throttled(Service::Sqs))] {
        let (world, wire, rule) = hooked_world("SendMessage", &[QUEUE], usize::MAX, what).await;
        send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
        world.drain().await.unwrap();
        assert_eq!(state(&world, "d-1").await, "retrying transient");
        assert_eq!(arrived(&world).len(), 0);
        rule.stop();
        world.minutes(5).await.unwrap();
        assert_eq!(state(&world, "d-1").await, "done already-done");
        assert!(wire.same() > 1);
        assert_eq!(arrived(&world).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_or_a_crash_before_the_mark_sends_the_identical_bytes_under_the_same_key() {
    // A pause beyond the five minutes for which SQS remembers is the receiver's to recognise.
    for (operation, containing, what) in [
        ("SendMessage", QUEUE, HookDecision::lost_answer()),
        ("UpdateItem", "I|github", throttled()),
        ("UpdateItem", "settled", throttled()),
        ("UpdateItem", "settled", HookDecision::lost_answer()),
        ("UpdateItem", "I|github", HookDecision::lost_answer()),
        ("PutItem", "I|github", HookDecision::lost_answer()),
        ("PutItem", "I|github", throttled()),
        ("GetItem", "I|github", unreachable()),
    ] {
        for times in [1, 4] {
            let (world, wire, rule) = hooked_world(operation, &[containing], times, what.clone()).await;
            send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
            world.drain().await.unwrap();
            world.clock.advance(10 * MINUTE_MS); // SQS forgets
            world.minutes(10).await.unwrap();
            assert!(rule.hits() > 0, "{operation}");
            let done = state(&world, "d-1").await;
            assert!(done.starts_with("done"), "{operation} x{times}: {done}");
            assert!(wire.same() >= 1);
            let sent = arrived(&world);
            assert!(!sent.is_empty() && sent.iter().all(|one| *one == sent[0]), "{operation} x{times}: {sent:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_leave_keeps_no_other_and_is_a_persons_in_the_end() {
    let (world, _, rule) = hooked_world("SendMessage", &[QUEUE, "poison"], usize::MAX, unreachable()).await;
    send(&world, "d-1", "issues", &json!({"action": "poison"})).await;
    for n in 2..6 {
        send(&world, &format!("d-{n}"), "issues", &json!({"action": "opened"})).await;
    }
    world.drain().await.unwrap();
    assert_eq!(arrived(&world).len(), 4);
    world.minutes(10).await.unwrap(); // three tries
    assert_eq!(state(&world, "d-1").await, "needs-review attempts-exhausted");
    // The provider's "redeliver" button tries it again with fresh limits.
    rule.stop();
    let again = github(&world, "d-1", "issues", r#"{"action":"poison"}"#);
    assert_eq!(deliver(&world, &again).await, said(200, "duplicate"));
    world.drain().await.unwrap();
    assert_eq!(arrived(&world).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_not_there_is_refused_and_waits_for_its_repair() {
    let world = World::new(config()).await.unwrap();
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.drain().await.unwrap();
    assert_eq!(state(&world, "d-1").await, "retrying refused");
    world.aws.queues().create_queue(QUEUE, local::fifo::QueueAttributes::default()).unwrap();
    world.minutes(5).await.unwrap();
    assert_eq!(arrived(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_forward_whose_tries_are_used_up_is_sent_again_when_a_person_says_so() {
    let (world, wire, rule) = hooked_world("SendMessage", &[QUEUE], usize::MAX, unreachable()).await;
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(15).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "needs-review attempts-exhausted");
    rule.stop();
    let body = json!({"action": "retry", "reason": "the destination is back"});
    let path = "/control/reviews/forward~3Agithub~2Fd-1";
    assert_eq!(world.control("POST", path, Some(body)).await.0, 200);
    // No relay between: the decision itself sends it to the consumer.
    world.drain().await.unwrap();
    assert_eq!(arrived(&world).len(), 1);
    assert!(wire.same() > 3, "three tries, and the last one");
}

/// Hands the forward of an event to a consumer whose profile has no rule for its type any more.
async fn without_its_rule(world: &World, id: &str) {
    let text = GITHUB.replace("\"*\" = { operations = [\"forward\"] }\n", "");
    let profiles = Profiles::parse(&text).unwrap();
    assert!(profiles.get("github").unwrap().rule("issues").is_none());
    let app = App { profiles: Arc::new(profiles), ..world.stack.app.clone() };
    let event: EventRef = format!("github/{id}").parse().unwrap();
    let key = OperationKey { event: event.clone(), item: ItemId::only(), name: Forward };
    let records = app.store.load_event(&event).await.unwrap().unwrap();
    let generation = records.operation(&key).map_or(0, |record| record.generation);
    let body = Message::new(key, generation, "g".to_owned()).to_json();
    let attributes = SqsAttributes { message_group_id: "g".to_owned(), approximate_receive_count: "1".to_owned() };
    let records = vec![SqsRecord { message_id: id.to_owned(), body, attributes }];
    assert_eq!(failures(outbound::handle(&app, SqsEvent { records }).await), [""; 0]);
}

/// What was written down before the rule went leaves as it was written; what left is done; nothing new is begun.
#[tokio::test(start_paused = true)]
async fn a_rule_that_is_removed_takes_back_no_intent() {
    let (world, wire, rule) = hooked_world("SendMessage", &[QUEUE], usize::MAX, unreachable()).await;
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.drain().await.unwrap();
    assert!(rule.hits() > 0 && arrived(&world).is_empty());
    without_its_rule(&world, "d-1").await;
    let sent = arrived(&world);
    assert_eq!(sent.len(), 1);
    let first = wire.0.lock().unwrap()[0]["MessageBody"].as_str().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<Value>(&first).unwrap(), sent[0].0, "the bytes of the first try");
    assert_eq!(state(&world, "d-1").await, "done already-done");
    // It has left: that is not undone either.
    without_its_rule(&world, "d-1").await;
    assert_eq!(state(&world, "d-1").await, "done already-done");
    assert_eq!((arrived(&world).len(), open_reviews(&world).await), (1, vec![]));
    // Without an intent there is nothing to send it by.
    send(&world, "d-2", "issues", &json!({"action": "opened"})).await;
    without_its_rule(&world, "d-2").await;
    assert_eq!(state(&world, "d-2").await, "needs-review not-possible");
    assert_eq!(arrived(&world).len(), 1);
}
