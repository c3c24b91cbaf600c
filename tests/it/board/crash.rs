//! The process dies at each call of the billing or the outbound function, before or after the call took hold: one job on the
//! board, the newest version on it, and our job has the board's id.

use local::Function;
use local::hook::Fault as AwsFault;

use super::*;
use crate::harness::DiesAt;

/// As many calls as the client makes before it gives up, and the deferral's.
const DEAD: usize = 8;

/// Version 1, then version 2, in a world whose function dies at this call; whether it came to that.
async fn dies(function: Function, at: usize, after: bool, rules: &str, life_ms: i64) -> bool {
    let config = config(rules);
    let hook = DiesAt::new(at, after, DEAD, AwsFault::ConnectionReset);
    config.hooks.add(function, hook.clone());
    let (world, board) = world_with(config, life_ms).await;
    hook.begin();
    book(&world, "b_1", 1).await;
    world.drain().await.unwrap();
    book(&world, "b_2", 2).await;
    world.drain().await.unwrap();
    let died = hook.end();
    world.minutes(6).await.unwrap();
    let place = format!("{function:?} call {at}, after {after}");
    let versions = board.versions();
    assert_eq!(versions.len(), 1, "{place}: one job");
    assert!(versions[0].is_sorted() && versions[0].last() == Some(&2), "{place}: {versions:?}");
    assert_eq!(world.job("booking-b1").await["provider_job_ref"], "job/0", "{place}");
    assert_eq!(balance(&world, "w1").await.1, "5.000000", "{place}: one hold");
    assert_eq!(reviews(&world).await, [""; 0], "{place}");
    died
}

async fn every_call(function: Function, rules: &str, life_ms: i64) -> usize {
    let mut deaths = 0;
    for at in 0..100 {
        // A call that did not take hold is the ordinary case of a table that is down: every fourth of them.
        let before = at % 4 == 0 && dies(function, at, false, rules, life_ms).await;
        let after = dies(function, at, true, rules, life_ms).await;
        deaths += usize::from(before) + usize::from(after);
        if !before && !after {
            return deaths;
        }
    }
    panic!("it never came to an end");
}

#[tokio::test(start_paused = true)]
async fn every_death_of_billing_ends_in_one_job() {
    assert!(every_call(Function::Billing, KEYED, 2 * HOUR_MS).await >= 12);
}

#[tokio::test(start_paused = true)]
async fn every_death_of_outbound_ends_in_one_job_with_keys() {
    assert!(every_call(Function::Outbound, KEYED, 2 * HOUR_MS).await >= 20);
}

#[tokio::test(start_paused = true)]
async fn every_death_of_outbound_ends_in_one_job_with_a_look_up() {
    assert!(every_call(Function::Outbound, LOOKUP, 0).await >= 20);
}
