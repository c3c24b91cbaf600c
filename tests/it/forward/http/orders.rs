//! Every order of faults, up to three of them: at most one effect there, and here the truth or a review.

use std::collections::BTreeMap;

use domain::limits::RetryPolicy;

use super::*;

const FAULTS: [Fault; 9] = [
    Fault::SavesThenTimesOut,
    Fault::LostBefore,
    Fault::InProgress,
    Fault::StoredError,
    Fault::StoredErrorAfterEffect,
    Fault::Garbage,
    Fault::GarbageBefore,
    Fault::Throttled,
    Fault::Down,
];

/// Every order of up to three different faults.
fn orders() -> Vec<Vec<Fault>> {
    let mut all: Vec<Vec<Fault>> = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..3 {
        last = last
            .iter()
            .flat_map(|order| {
                let more = FAULTS.iter().filter(|fault| !order.contains(fault));
                more.map(|fault| [order.clone(), vec![*fault]].concat()).collect::<Vec<_>>()
            })
            .collect();
        all.extend(last.clone());
    }
    all
}

/// What became of all orders under some rules: how many ended in which state.
async fn ends(rules: &str, life_ms: i64) -> BTreeMap<String, usize> {
    // Tries come up to half an hour apart, so that three faults and an outage of four hours outlast the key's life.
    let policy = RetryPolicy { base_ms: 20 * 60_000, cap_ms: 30 * 60_000, max_attempts: 100, ..RetryPolicy::default() };
    let (world, board) = world_with(WorldConfig { policy, ..board_config(rules) }, life_ms).await;
    let orders = orders();
    for (n, order) in orders.iter().enumerate() {
        board.script(&format!("github/d-{n}"), order);
        send(&world, &format!("d-{n}"), "issues", &json!({"action": "opened"})).await;
    }
    for _ in 0..24 {
        world.drain().await.unwrap();
        world.clock.advance(30 * 60_000);
        world.stack.relay().await.unwrap();
    }
    world.drain().await.unwrap();
    let mut ends = BTreeMap::new();
    for (n, order) in orders.iter().enumerate() {
        let (id, event) = (format!("d-{n}"), format!("github/d-{n}"));
        let (end, effects) = (state(&world, &id).await, board.effects(&event));
        board.same(&event);
        assert!(effects <= 1, "{order:?}: {effects} effects");
        match end.split_once(' ').unwrap().0 {
            "done" => assert_eq!(effects, 1, "{order:?}: done, and it is not there"),
            "needs-review" => {
                let intent = intent(&world, &id).await;
                assert_eq!(intent["state"], "uncertain", "{order:?}: {intent}");
            }
            _ => panic!("{order:?}: {end}"),
        }
        *ends.entry(end.replace("already-done", "-")).or_default() += 1;
    }
    assert_eq!(orders.len(), 1 + 9 + 9 * 8 + 9 * 8 * 7);
    ends
}

/// Everything can be found out: no order needs a person.
#[tokio::test(start_paused = true)]
async fn keys_and_a_look_up() {
    let ends = ends(&format!("{KEYED}{LOOKUP}"), 2 * HOUR_MS).await;
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [("done -".to_owned(), 586)]);
}

#[tokio::test(start_paused = true)]
async fn keys_alone() {
    let ends = ends(KEYED, 2 * HOUR_MS).await;
    let classes: Vec<&str> = ends.keys().map(String::as_str).collect();
    assert_eq!(classes, ["done -", "needs-review unknown-outcome"], "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_look_up_alone() {
    let ends = ends(LOOKUP, 0).await;
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [("done -".to_owned(), 586)]);
}

/// Nothing is known of any lost answer, so each is a person's; what surely did nothing is not.
#[tokio::test(start_paused = true)]
async fn neither() {
    let ends = ends("", 0).await;
    // By hand: orders whose faults are all of those that did nothing (throttled, down) end by themselves: none, one of the
    // two, both in either order: 1 + 2 + 2. Every other order has one of the other seven and stops there.
    let by_hand = [("done -".to_owned(), 5), ("needs-review unknown-outcome".to_owned(), 581)];
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), by_hand);
}

/// A destination that repeats a stored 500: another try is of no use, so it is looked up, and what is not there is a
/// person's while the key lives.
#[tokio::test(start_paused = true)]
async fn stored_errors_that_are_repeated() {
    let ends = ends(&format!("{KEYED}replays_errors = true\n{LOOKUP}"), 2 * HOUR_MS).await;
    let classes: Vec<&str> = ends.keys().map(String::as_str).collect();
    assert_eq!(classes, ["done -", "needs-review unknown-outcome"], "{ends:?}");
}
