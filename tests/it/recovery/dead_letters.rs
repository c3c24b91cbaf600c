//! Dead letters: the receipt is the truth, not the queue. What a queue gave up is deferred under its
//! generation and done later; nothing is lost and nothing doubled.

use domain::operation::OperationName::{CompleteJob, SettleUsage};
use domain::operation::{Class, Consumer, OperationState};
use local::Function;
use local::fifo::OutgoingMessage;
use local::stack::PREFIX;
use local::world::{World, WorldConfig, completed};
use queue::{dead_letter_name, queue_name};

use crate::books::audit;
use crate::harness::*;

/// After so many receives a message moves, in these tests: 100 would take five hours of virtual time.
fn give_up_after(world: &World, receives: u32) {
    for consumer in Consumer::ALL {
        let name = queue_name(PREFIX, consumer);
        let mut attributes = world.aws.queues().attributes(&name).unwrap();
        attributes.redrive.as_mut().unwrap().max_receive_count = receives;
        world.aws.queues().set_attributes(&name, attributes).unwrap();
    }
}

/// Every visibility timeout is over, and the pollers come again.
async fn next_receive(world: &World) {
    world.clock.advance(181_000);
    world.drain().await.unwrap();
}

fn both_down() -> (WorldConfig, [std::sync::Arc<Rule>; 2]) {
    let rules = [Rule::outage(), Rule::outage()];
    let config = hooked(Function::Job, rules[0].clone());
    config.hooks.add(Function::Billing, rules[1].clone());
    (config, rules)
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_deferred_with_its_generation_and_done_later() {
    let (config, down) = both_down();
    let world = submitted_with(config).await;
    give_up_after(&world, 3);
    accepted(&world, "msg_1", &completed("j1")).await;
    down.iter().for_each(|rule| rule.start());
    world.drain().await.unwrap();
    for _ in 0..3 {
        assert_eq!(operation(&world, "msg_1", SettleUsage).await, None);
        next_receive(&world).await;
    }
    for name in [CompleteJob, SettleUsage] {
        let record = operation(&world, "msg_1", name).await.unwrap();
        assert_eq!((record.state, record.class), (OperationState::Wait, Class::DeadLetter), "{name}");
        assert_eq!((record.generation, record.attempts), (1, 0), "{name}: it was never tried");
        assert_eq!(depths(&world, name.consumer()), (0, 0), "consumed");
    }
    down.iter().for_each(|rule| rule.stop());
    relay_has_run(&world).await; // only the deferral's due time brings it back
    world.minutes(5).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_of_an_older_generation_changes_nothing() {
    let world = funded().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", SettleUsage).await; // the job is not known: generation 1 waits
    let stands = operation(&world, "msg_1", SettleUsage).await.unwrap();
    bury(&world, "msg_1", "g", 0);
    world.drain().await.unwrap();
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap(), stands);
    assert_eq!(depths(&world, Consumer::Billing), (0, 0), "and it is consumed");
}

/// A message of settle-usage stands in the dead-letter queue.
fn bury(world: &World, id: &str, group: &str, generation: u32) {
    let body = record_of(group, id, SettleUsage, generation, 1).body;
    let name = dead_letter_name(PREFIX, Consumer::Billing);
    // FIFO dead letters carry their message id as deduplication id: never our own.
    let message = OutgoingMessage::new(group, &format!("moved-{id}-{generation}"), &body);
    world.aws.queues().send(&name, message).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_past_our_own_limits_is_a_persons() {
    let policy = domain::limits::RetryPolicy { max_age_ms: HOUR_MS, ..Default::default() };
    let world = funded_with(limits(policy)).await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", SettleUsage).await;
    world.clock.advance(2 * HOUR_MS);
    bury(&world, "msg_1", "g", 1);
    world.drain().await.unwrap();
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.state, record.class), (OperationState::Review, Class::AttemptsExhausted));
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_queue_filled_by_an_outage_loses_and_doubles_nothing() {
    let (config, down) = both_down();
    let world = funded_with(config).await;
    give_up_after(&world, 3);
    down.iter().for_each(|rule| rule.start());
    for n in 0..12 {
        assert_eq!(world.submit(&format!("j{n}"), "w1", "1.00").await.0, 201);
        accepted(&world, &format!("msg_{n}"), &completed(&format!("j{n}"))).await;
    }
    world.minutes(20).await.unwrap(); // the relay goes on sending all the while
    let waiting = operation(&world, "msg_0", SettleUsage).await.unwrap();
    assert_eq!((waiting.state, waiting.attempts), (OperationState::Wait, 0));
    down.iter().for_each(|rule| rule.stop());
    world.minutes(25).await.unwrap();
    for n in 0..12 {
        assert_settled(&world, &format!("j{n}"), &format!("msg_{n}")).await;
        assert_eq!(world.explain(&format!("msg_{n}")).await["status"], "completed");
    }
    // 12 charges of 0.008700.
    assert_eq!(balance(&world, "w1").await, ("99.895600".to_owned(), "0.000000".to_owned()));
    for consumer in Consumer::ALL {
        assert_eq!(depths(&world, consumer), (0, 0));
    }
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn sqs_07_a_retry_within_five_minutes_is_delivered_because_its_generation_is_new() {
    let world = funded().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    // The same generation again is one message...
    assert_eq!(world.send("msg_1", &completed("j1")).await.0, 200);
    assert_eq!(messages(&world, Consumer::Billing).len(), 1);
    world.drain().await.unwrap();
    // ...even after the first copy was consumed; but what waits has a generation of its own.
    world.submit("j1", "w1", "5.00").await;
    world.clock.advance(MINUTE_MS);
    world.stack.relay().await.unwrap();
    assert_eq!(messages(&world, Consumer::Billing).len(), 1);
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
}

#[tokio::test(start_paused = true)]
async fn sqs_07_after_a_dead_letter_the_replay_within_the_window_arrives() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await; // sent and consumed at 0 s
    bury(&world, "msg_1", "g", 0); // in the dead-letter queue at once
    world.drain().await.unwrap();
    world.minutes(2).await.unwrap(); // replayed within two minutes: the window is five
    assert_eq!(state(&world, "msg_1", SettleUsage).await.0, "done");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn sqs_08_receives_that_never_ran_cost_no_attempt_and_lose_nothing() {
    let world = submitted().await;
    for consumer in Consumer::ALL {
        let attributes = world.aws.queues().attributes(&queue_name(PREFIX, consumer)).unwrap();
        assert_eq!(attributes.redrive.unwrap().max_receive_count, 100);
    }
    accepted(&world, "msg_1", &completed("j1")).await;
    // Throttled invocations: received and given back a hundred times, and never handled.
    for consumer in SETTLING {
        for _ in 0..100 {
            let received = world.aws.queues().receive(&queue_name(PREFIX, consumer), 10, Some(0)).unwrap();
            assert_eq!(received.len(), 1);
        }
    }
    world.drain().await.unwrap();
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.class, record.attempts), (Class::DeadLetter, 0));
    relay_has_run(&world).await;
    world.minutes(3).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn sqs_09_a_dead_letter_that_comes_back_after_a_newer_event_is_a_recorded_no_op() {
    let world = submitted().await;
    taken_in(&world, "m1", &completed("j1")).await; // its message is in the dead-letter queue
    taken_in(&world, "m2", &completed("j1")).await;
    work(&world, "m2", CompleteJob).await;
    work(&world, "m2", SettleUsage).await;
    // Another group, and a deduplication id that is a message id: identity comes from the body alone.
    bury(&world, "m1", "another-group", 0);
    world.minutes(5).await.unwrap();
    let shown = shown(&world, "m1", SettleUsage).await;
    assert_eq!(shown["state"], "noop", "{shown}");
    assert!(shown["note"].as_str().unwrap().contains("acme/m2"), "{shown}");
    assert_settled(&world, "j1", "m2").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn sqs_10_dead_letters_outlive_their_source_and_are_not_needed_to_find_the_event() {
    let (config, down) = both_down();
    let world = submitted_with(config).await;
    for consumer in Consumer::ALL {
        let retention = |name: &str| world.aws.queues().attributes(name).unwrap().retention_s;
        assert_eq!(retention(&queue_name(PREFIX, consumer)), 4 * 86_400);
        assert_eq!(retention(&dead_letter_name(PREFIX, consumer)), 14 * 86_400);
    }
    give_up_after(&world, 1);
    accepted(&world, "msg_1", &completed("j1")).await;
    down.iter().for_each(|rule| rule.start());
    world.drain().await.unwrap();
    for consumer in Consumer::ALL {
        world.aws.queues().purge(&queue_name(PREFIX, consumer)).unwrap();
        world.aws.queues().purge(&dead_letter_name(PREFIX, consumer)).unwrap();
    }
    down.iter().for_each(|rule| rule.stop());
    world.minutes(5).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}
