//! Every order of faults, two or three of them: at most one effect there, and here the truth or a review.

use std::collections::BTreeMap;

use domain::limits::{RetryPolicy, SHARDS};

use super::*;

const FAULTS: [Fault; 10] = [
    Fault::SavesThenTimesOut,
    Fault::ArrivesLate,
    Fault::InProgress,
    Fault::StoredErrorAfterEffect,
    Fault::Down,
    Fault::StoredError,
    Fault::LostBefore,
    Fault::Garbage,
    Fault::GarbageBefore,
    Fault::Throttled,
];

/// Every order of up to `most` different faults of these.
fn orders_of(faults: &[Fault], most: usize) -> Vec<Vec<Fault>> {
    let mut all: Vec<Vec<Fault>> = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..most {
        let longer = |order: &Vec<Fault>| {
            let more = faults.iter().filter(|fault| !order.contains(fault));
            more.map(|fault| [order.clone(), vec![*fault]].concat()).collect::<Vec<_>>()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.clone());
    }
    all
}

/// Every order of two of all faults, and of three of the first five.
fn orders() -> Vec<Vec<Fault>> {
    let mut all = orders_of(&FAULTS, 2);
    all.extend(orders_of(&FAULTS[..5], 3).into_iter().filter(|order| order.len() == 3));
    assert_eq!(all.len(), 1 + 10 + 10 * 9 + 5 * 4 * 3);
    all
}

/// Whether nothing waits any more.
async fn at_rest(world: &World) -> bool {
    for shard in 0..SHARDS {
        if !world.stack.app.store.due_operations(shard, i64::MAX, 1).await.unwrap().is_empty() {
            return false;
        }
    }
    true
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
    for _ in 0..18 {
        world.drain().await.unwrap();
        if at_rest(&world).await {
            break;
        }
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
        // One of these by itself: the second try comes within half an hour, and the key lives for one.
        let single = [
            Fault::SavesThenTimesOut,
            Fault::LostBefore,
            Fault::Garbage,
            Fault::GarbageBefore,
            Fault::InProgress,
            Fault::ArrivesLate,
        ];
        if rules == KEYED && order.len() == 1 && single.contains(&order[0]) {
            assert!(end.starts_with("done "), "{order:?}: {end}");
        }
        *ends.entry(end.replace("already-done", "-")).or_default() += 1;
    }
    assert_eq!(board.looked_up() > 0, rules.contains("lookup"));
    ends
}

/// Everything can be found out: no order needs a person.
#[tokio::test(start_paused = true)]
async fn keys_and_a_look_up() {
    let ends = ends(&format!("{KEYED}{LOOKUP}"), 2 * HOUR_MS).await;
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [("done -".to_owned(), 161)]);
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
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [("done -".to_owned(), 161)]);
}

/// Nothing is known of any lost answer, so each is a person's; what surely did nothing is not.
#[tokio::test(start_paused = true)]
async fn neither() {
    let ends = ends("", 0).await;
    // By hand: orders whose faults are all of those that did nothing (throttled, down) end by themselves: none, one of the
    // two, both in either order: 1 + 2 + 2. Every other order has one of the other eight and stops there.
    let by_hand = [("done -".to_owned(), 5), ("needs-review unknown-outcome".to_owned(), 156)];
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
