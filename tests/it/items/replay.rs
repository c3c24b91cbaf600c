//! Replays of deliveries with many items: more operations than one transaction, and than one part, has room for.

use domain::operation::OperationState;

use super::*;
use crate::harness::{now_ms, throttled};

async fn replay(world: &World, body: Value) -> Value {
    let (status, answer) = world.control("POST", "/control/replays", Some(body)).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

fn by_ids(events: &[String], part: u32, reference: &str, dry: bool) -> Value {
    json!({"events": events, "part": part, "reason": "after the repair", "reference": reference, "dry_run": dry})
}

/// A delivery of a hundred items, each with two operations on a job of its own.
fn hundred() -> String {
    batch(&(0..100).map(|n| completed(&format!("i{n}"), &format!("j{n}"))).collect::<Vec<_>>())
}

/// A world in which deliveries of a hundred items were received and never sent.
async fn received(deliveries: usize) -> (World, Vec<String>) {
    let world = world_of(BATCHED).await;
    let down = Rule::always("SendMessage", &[], crate::harness::unreachable());
    world.aws.add_hook(down.clone());
    let mut names = Vec::new();
    for n in 0..deliveries {
        let event = beta().event(&world, &format!("msg_{n}"), hundred());
        assert_eq!(deliver(&world, &event).await, said(202, "accepted"));
        names.push(format!("beta/msg_{n}"));
    }
    down.stop();
    (world, names)
}

/// How many operations of a delivery wait and are due now.
async fn due(world: &World, name: &str) -> usize {
    let records = world.stack.app.store.load_event(&name.parse().unwrap()).await.unwrap().unwrap();
    let due = |r: &&domain::operation::OperationRecord| {
        r.state == OperationState::Wait && r.due_ms.is_some_and(|due| due <= now_ms(world))
    };
    records.operations.iter().filter(due).count()
}

#[tokio::test(start_paused = true)]
async fn a_delivery_of_a_hundred_items_is_replayed_and_its_answer_said_again() {
    let (world, names) = received(1).await;
    let body = by_ids(&names, 0, "r-1", false);
    let first = replay(&world, body.clone()).await;
    assert_eq!(first["counts"], json!({"started": 200}), "{first}");
    assert_eq!(due(&world, &names[0]).await, 200);
    let mut again = replay(&world, body).await;
    assert_eq!((&first["again"], &again["again"]), (&json!(false), &json!(true)));
    again["again"] = json!(false);
    assert_eq!(again, first);
    // The record of the part does not say what the event's own audit item says.
    let events = crate::harness::items(&world, "events");
    let part = events.iter().find(|item| item["pk"]["S"] == "Q|replay|r-1").unwrap();
    let recorded: Value = serde_json::from_str(part["an"]["S"].as_str().unwrap()).unwrap();
    assert_eq!(recorded["events"], json!([{"event": "beta/msg_0", "result": "replayed"}]));
}

#[tokio::test(start_paused = true)]
async fn a_replay_that_dies_between_two_transactions_goes_on_with_the_event() {
    let (world, names) = received(1).await;
    // The one that holds the audit item, and with it the last two of the 200 operations.
    let lost = Rule::always("TransactWriteItems", &["p|r-1"], throttled());
    world.aws.add_hook(lost.clone());
    let body = by_ids(&names, 0, "r-1", false);
    assert_eq!(world.control("POST", "/control/replays", Some(body.clone())).await.0, 503);
    assert_eq!(due(&world, &names[0]).await, 198, "two transactions of 99");
    lost.stop();
    assert_eq!(replay(&world, body).await["counts"], json!({"already-due": 198, "started": 2}));
    assert_eq!(due(&world, &names[0]).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_part_takes_a_thousand_operations_and_leaves_the_rest_to_the_next() {
    let (world, names) = received(6).await;
    let part = replay(&world, by_ids(&names, 0, "r-1", true)).await;
    assert_eq!(part["counts"], json!({"started": 1_000, "next-part": 1}));
    assert_eq!(part["events"][5], json!({"event": "beta/msg_5", "result": "next-part", "operations": []}));
    let window = |after: Value| {
        json!({
            "provider": "beta", "from": "2026-11-29T11:00:00Z", "to": "2026-11-29T13:00:00Z", "reason": "x",
            "reference": "r-2", "dry_run": true, "after": after,
        })
    };
    let first = replay(&world, window(Value::Null)).await;
    let second = replay(&world, window(first["next"].clone())).await;
    assert_eq!(first["counts"], json!({"started": 1_000}));
    assert_eq!((&second["counts"], &second["next"]), (&json!({"started": 200}), &Value::Null));
    assert_eq!(second["events"][0]["event"], "beta/msg_5", "in order of their keys");
}
