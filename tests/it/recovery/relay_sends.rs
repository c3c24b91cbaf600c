//! The relay's dispatch: what is due is sent with its next generation, again and again until it is
//! final, and one queue's trouble is not the other's.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::operation::OperationName::{CompleteJob, SettleUsage};
use domain::operation::{Consumer, OperationState};
use local::Function;
use local::hook::{Call, CallHook, Fault, HookDecision};
use local::wire::WireResponse;
use local::world::{WorldConfig, completed};
use tokio::join;

use crate::books::audit;
use crate::harness::*;

#[tokio::test(start_paused = true)]
async fn a_queue_that_cannot_be_reached_keeps_no_other_operation_from_being_sent() {
    let down = Rule::always("SendMessage", &["hookledger-billing.fifo"], unreachable());
    let world = submitted_with(hooked(Function::Relay, down.clone())).await;
    let ids: Vec<String> = (1..=5).map(|n| format!("msg_{n}")).collect();
    for (n, id) in (1..).zip(&ids) {
        world.submit(&format!("j{n}"), "w1", "5.00").await;
        taken_in(&world, id, &completed(&format!("j{n}"))).await;
    }
    for _ in 0..3 {
        relay_minute(&world).await.unwrap();
    }
    assert_eq!(messages(&world, Consumer::Job).len(), 5);
    assert_eq!(messages(&world, Consumer::Billing).len(), 0);
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.state, record.generation), (OperationState::Wait, 1), "the same generation waits a little");
    assert!(record.due_ms.unwrap() > now_ms(&world));
    world.minutes(3).await.unwrap();
    for n in 1..=5 {
        assert_eq!(world.job(&format!("j{n}")).await["status"], "billing-pending");
    }
    down.stop();
    world.minutes(5).await.unwrap();
    for (n, id) in (1..).zip(&ids) {
        assert_settled(&world, &format!("j{n}"), id).await;
    }
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_message_lost_after_the_relays_send_is_sent_again_with_its_next_generation() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    for _ in 0..3 {
        relay_minute(&world).await.unwrap();
    }
    assert_eq!(messages(&world, Consumer::Billing)[0].generation, 2);
    purge(&world);
    for _ in 1..world.stack.app.policy.resend_ms / MINUTE_MS {
        relay_minute(&world).await.unwrap();
        assert_eq!(messages(&world, Consumer::Billing).len(), 0, "it may still be on its way");
    }
    relay_minute(&world).await.unwrap();
    assert_eq!(messages(&world, Consumer::Billing)[0].generation, 3);
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_dies_between_send_and_push_sends_the_same_message_again() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    for _ in 0..2 {
        relay_minute(&world).await.unwrap();
    }
    // In the third run the records are written; their pushes, revision 2, are not.
    let refused = Rule::always("PutItem", &["\"rv\":{\"N\":\"2\"}"], throttled());
    world.aws.add_hook(refused.clone());
    relay_minute(&world).await.unwrap_err();
    assert!(refused.hits() > 0);
    refused.stop();
    relay_minute(&world).await.unwrap();
    for consumer in SETTLING {
        let sent = messages(&world, consumer);
        assert_eq!((sent.len(), sent[0].generation), (1, 2), "SQS took the second as the first");
    }
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn rec_03_an_operation_that_ends_while_the_relay_pushes_it_stays_ended() {
    let slow = HookDecision::Delay(Duration::from_millis(100), Box::new(HookDecision::Pass));
    let pushes = Rule::always("PutItem", &["\"rv\":{\"N\":\"2\"}"], slow);
    let world = submitted_with(hooked(Function::Relay, pushes.clone())).await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    for _ in 0..2 {
        relay_minute(&world).await.unwrap();
    }
    world.clock.advance(MINUTE_MS);
    let consumers = async {
        // The message is out before the push: the operation ends between the relay's read and its write.
        while depths(&world, Consumer::Billing).0 == 0 || depths(&world, Consumer::Job).0 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            world.drain().await.unwrap();
            if pushes.hits() >= 2 {
                break;
            }
        }
        world.drain().await.unwrap();
    };
    let (report, ()) = join!(world.stack.relay(), consumers);
    report.unwrap();
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    for name in [CompleteJob, SettleUsage] {
        assert_eq!(operation(&world, "msg_1", name).await.unwrap().state, OperationState::Closed, "{name}");
    }
    let sends = Rule::count("SendMessage", &[]);
    world.aws.add_hook(sends.clone());
    world.minutes(10).await.unwrap();
    assert_eq!(sends.hits(), 0);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn rec_03_what_is_being_worked_on_is_not_replayed_and_loses_no_attempts() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    // In flight at its consumer, not older than the receiver's longest legal life.
    for _ in 0..2 {
        let report = relay_minute(&world).await.unwrap();
        assert_eq!((report.found, report.sent), (0, 0));
    }
    for _ in 0..30 {
        relay_minute(&world).await.unwrap();
        purge(&world);
    }
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap().attempts, 0, "a send is no attempt");
    let resend = world.stack.app.policy.resend_ms / MINUTE_MS;
    world.minutes(u32::try_from(resend).unwrap() + 1).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
}

/// Remembers one answer of the index and gives it again to the same question: an index that is behind
/// its table.
#[derive(Debug, Default)]
struct StaleIndex {
    remembered: Mutex<Option<(String, WireResponse)>>,
    serving: AtomicBool,
    served: AtomicUsize,
}

impl CallHook for StaleIndex {
    fn on_call(&self, call: &Call) -> HookDecision {
        match &*self.remembered.lock().unwrap() {
            Some((shard, answer)) if self.serving.load(SeqCst) && due_shard(call).as_ref() == Some(shard) => {
                self.served.fetch_add(1, SeqCst);
                HookDecision::FailBefore(Fault::Status(answer.clone()))
            }
            _ => HookDecision::Pass,
        }
    }

    fn on_answer(&self, call: &Call, answer: &WireResponse) {
        if let Some(shard) = due_shard(call)
            && !String::from_utf8_lossy(&answer.body).contains("\"Items\":[]")
        {
            *self.remembered.lock().unwrap() = Some((shard, answer.clone()));
        }
    }
}

/// Which shard a query of the due index asks for.
fn due_shard(call: &Call) -> Option<String> {
    let text = String::from_utf8_lossy(&call.body);
    let at = text.find("due.").filter(|_| text.contains("by-due"))?;
    Some(text[at..at + 5].to_owned())
}

#[tokio::test(start_paused = true)]
async fn ddb_09_a_late_index_makes_the_relay_send_nothing_that_is_over() {
    let stale = Arc::new(StaleIndex::default());
    let world = submitted_with(hooked(Function::Relay, stale.clone())).await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    world.minutes(4).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    stale.serving.store(true, SeqCst);
    for _ in 0..3 {
        let report = relay_minute(&world).await.unwrap();
        assert_eq!((report.sent, report.reviews), (0, 0), "the record itself says that it is over");
    }
    assert_eq!((stale.served.load(SeqCst), depths(&world, Consumer::Billing).0), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_everything_but_the_receiver_ends_with_everything_done_once() {
    let (job, billing, relay) = (Rule::outage(), Rule::outage(), Rule::outage());
    let config = WorldConfig::default();
    for (function, rule) in [(Function::Job, &job), (Function::Billing, &billing), (Function::Relay, &relay)] {
        config.hooks.add(function, rule.clone());
    }
    let world = funded_with(config).await;
    for rule in [&job, &billing, &relay] {
        rule.start();
    }
    for n in 0..10 {
        assert_eq!(world.submit(&format!("j{n}"), "w1", "1.00").await.0, 201);
        accepted(&world, &format!("msg_{n}"), &completed(&format!("j{n}"))).await;
        world.minutes(1).await.unwrap();
    }
    for rule in [&job, &billing, &relay] {
        rule.stop();
    }
    world.minutes(15).await.unwrap();
    for n in 0..10 {
        assert_settled(&world, &format!("j{n}"), &format!("msg_{n}")).await;
    }
    assert_eq!(balance(&world, "w1").await, ("99.913000".to_owned(), "0.000000".to_owned()));
    audit(&world);
}
