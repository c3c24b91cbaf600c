//! Dying between the commit and the dispatch loses nothing; a replay sends the same once more; a second system takes it.

use domain::operation::Consumer;
use local::fifo::message::StoredMessage;
use local::hook::HookDecision;
use local::stack::Function;
use local::world::completed;
use serde_json::json;

use super::*;
use crate::harness::{MINUTE_MS, Rule, accepted, depths, open_reviews, unreachable};
use crate::sender::{Sender, said};

const BOTH: [&str; 2] = ["job.completed|t1|j1|1", "job.settled|t1|j1|c"];

async fn settled(config: WorldConfig) -> World {
    let world = world_of(config).await;
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    accepted(&world, "e-1", &completed("j1")).await;
    world.drain().await.unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn what_was_committed_and_not_dispatched_is_sent_by_the_relay() {
    let config = config("");
    let rules = [Function::Job, Function::Billing].map(|function| {
        let rule = Rule::always("SendMessage", &[], unreachable());
        config.hooks.add(function, rule.clone());
        rule
    });
    let world = settled(config).await;
    assert!(rules.iter().map(|rule| rule.hits()).sum::<usize>() > 0);
    assert_eq!((ids(&world), depths(&world, Consumer::Outbound)), (Vec::new(), (0, 0)));
    world.minutes(5).await.unwrap();
    assert_eq!(sorted_ids(&world), BOTH);
    assert_eq!(open_reviews(&world).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_whose_answer_is_lost_is_told_once() {
    for (what, times) in [(HookDecision::lost_answer(), 1), (HookDecision::lost_answer(), 5), (unreachable(), 5)] {
        let config = config("");
        let rules = [Function::Job, Function::Billing].map(|function| {
            let rule = Rule::times(times, "TransactWriteItems", &[], what.clone());
            config.hooks.add(function, rule.clone());
            rule
        });
        let world = settled(config).await;
        world.minutes(15).await.unwrap();
        assert_eq!(sorted_ids(&world), BOTH);
        assert_eq!(world.job("j1").await["settlements"].as_array().unwrap().len(), 1);
        assert!(rules.iter().any(|rule| rule.hits() > 0), "it came to that");
    }
}

async fn replay(world: &World, mut body: Value) -> Value {
    body["reason"] = json!("the reader lost them");
    let (status, answer) = world.control("POST", "/control/replays", Some(body)).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

/// The bodies that the reader has under one key, by the attribute.
fn keys(world: &World) -> Vec<(String, String)> {
    let stored = world.aws.queues().peek(QUEUE).unwrap();
    let one = |m: &StoredMessage| (m.attributes["hookledger-key"].string_value.clone().unwrap(), m.body.to_string());
    stored.iter().map(one).collect()
}

#[tokio::test(start_paused = true)]
async fn a_replay_by_id_or_window_sends_the_same_bytes_under_the_same_key_and_a_dry_one_nothing() {
    let world = settled(config("")).await;
    let first = keys(&world);
    assert_eq!(first.len(), 2);
    world.clock.advance(10 * MINUTE_MS); // SQS forgets
    let by_id = json!({"events": ["own/job.settled|t1|j1|c"], "reference": "r-1"});
    let mut dry = by_id.clone();
    dry["dry_run"] = json!(true);
    assert_eq!(replay(&world, dry).await["counts"], json!({"again": 1}));
    world.minutes(2).await.unwrap();
    assert_eq!(keys(&world), first);
    let answer = replay(&world, by_id.clone()).await;
    assert_eq!(answer["events"][0]["operations"][0]["item"], "books");
    assert_eq!(answer["counts"], json!({"again": 1}));
    world.minutes(5).await.unwrap();
    let settlement = first.iter().find(|(_, body)| body.contains("job.settled")).unwrap();
    assert_eq!((keys(&world).len(), &keys(&world)[2]), (3, settlement));
    // The same reference is the same replay.
    replay(&world, by_id).await;
    world.minutes(5).await.unwrap();
    assert_eq!(keys(&world).len(), 3);
    let window = json!({
        "provider": "own", "from": "2026-11-29T12:00:00Z", "to": "2026-11-29T12:05:00Z", "states": ["completed"],
        "reference": "r-2",
    });
    assert_eq!(replay(&world, window).await["counts"], json!({"again": 2}));
    world.minutes(10).await.unwrap();
    let mut again = keys(&world).split_off(3);
    again.sort();
    let mut before = first;
    before.sort();
    assert_eq!(again, before);
    assert_eq!(open_reviews(&world).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_was_told_is_explained_and_can_be_paused() {
    let world = settled(config("")).await;
    let path = "/control/events/own/job.settled~7Ct1~7Cj1~7Cc";
    let (status, shown) = world.control("GET", path, None).await;
    assert_eq!((status, &shown["status"], &shown["type"]), (200, &json!("completed"), &json!("job.settled")));
    assert_eq!(shown["operations"][0]["effect"], format!("forwarded to sqs:{ADDRESS}"));
    let switch = async |paused: bool| {
        let body = json!({"paused": paused, "reason": "the reader is moved"});
        assert_eq!(world.control("PUT", "/control/pauses/own", Some(body)).await.0, 200);
    };
    switch(true).await;
    assert_eq!(world.submit("j2", "w1", "5.00").await.0, 201);
    accepted(&world, "e-2", &completed("j2")).await;
    world.minutes(3).await.unwrap();
    assert_eq!(ids(&world).len(), 2);
    assert_eq!(world.job("j2").await["status"], "billing-settled");
    switch(false).await;
    world.minutes(3).await.unwrap();
    assert_eq!(ids(&world).len(), 4);
}

/// The shipped profile: a second system follows the first, however often it is told.
#[tokio::test(start_paused = true)]
async fn a_second_hookledger_takes_what_the_first_one_tells_and_settles_once() {
    let first = settled(config("ordered = true")).await;
    let secret = "whsec_dGhlIHNlY29uZCBvbmUncyBvd24gc2VjcmV0";
    let profile = include_str!("../../../infra/profiles/hookledger.toml");
    let mut config = WorldConfig { providers: format!("{PROVIDERS_TOML}{profile}"), ..WorldConfig::default() };
    config.secrets.insert("HOOKLEDGER_WEBHOOK_SECRET".to_owned(), secret.to_owned());
    let second = World::new(config).await.unwrap();
    assert_eq!(second.fund("w9", "10.00").await.0, 201);
    let job = json!({"provider": "hookledger", "model": "small-1", "wallet": "w9", "hold": "1.00"});
    assert_eq!(second.control("PUT", "/control/tenants/t1/jobs/j1", Some(job)).await.0, 201);
    let sender = Sender::new("hookledger", "standard-webhooks", secret);
    for (round, body) in keys(&first).into_iter().chain(keys(&first)).map(|(_, body)| body).enumerate() {
        let answer = if round < 2 { said(202, "accepted") } else { said(200, "duplicate") };
        assert_eq!(sender.send(&second, &format!("delivery-{round}"), &body).await, answer, "{body}");
        second.drain().await.unwrap();
    }
    let shown = second.job("j1").await;
    assert_eq!(shown["transitions"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["transitions"][0]["by"], "hookledger/job.completed|t1|j1|1");
    assert_eq!(
        (&shown["settlements"][0]["captured"], &shown["status"]),
        (&json!("0.008700"), &json!("billing-settled"))
    );
    assert_eq!(second.wallet("w9").await["available"], "9.991300");
    assert_eq!(open_reviews(&second).await, [""; 0]);
}
