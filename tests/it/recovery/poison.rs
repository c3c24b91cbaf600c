//! Promise 8: one bad message dooms no other. A message that kills the process, and records that are
//! damaged, hold up their group for minutes at most, and end with a person.

use std::sync::Arc;
use std::time::Duration;

use domain::message::Message;
use domain::operation::Consumer;
use domain::operation::OperationName::{self, SettleUsage};
use local::lambda::{Handler, handler};
use local::poller::{Poller, PollerConfig};
use local::stack::PREFIX;
use local::world::{World, completed};
use queue::queue_name;
use runtime::sqs::SqsEvent;
use serde_json::{Value, json};

use crate::books::{audit, text};
use crate::harness::*;

/// The billing function, in which the work on event `killer` kills the process: what stands before it in
/// the batch is done, and then nothing more happens until Lambda's timeout.
fn dying(world: &Arc<World>, killer: &'static str) -> Handler {
    let world = world.clone();
    handler(move |event: Value| {
        let world = world.clone();
        async move {
            let event: SqsEvent = serde_json::from_value(event)?;
            let kills = |body: &str| Message::from_json(body).unwrap().key.event == event_ref(killer);
            let at = event.records.iter().position(|r| kills(&r.body) && r.receive_count() < 4);
            if let Some(at) = at {
                let before = SqsEvent { records: event.records[..at].to_vec() };
                billing::handle(&world.stack.app, before).await;
                std::future::pending::<()>().await;
            }
            let response = billing::handle(&world.stack.app, event).await;
            Ok::<Value, local::lambda::BoxError>(serde_json::to_value(response)?)
        }
    })
}

/// Lets `minutes` pass with only that billing function, the relay and the real visibility timeout of 180 s.
async fn minutes_with(world: &Arc<World>, billing: &Poller, minutes: usize) {
    for _ in 0..minutes {
        while billing.poll_once().await.unwrap() > 0 {}
        world.clock.advance(MINUTE_MS);
        world.stack.relay().await.unwrap();
    }
}

fn shard(id: &str) -> u32 {
    domain::keys::shard_of(&domain::keys::event_pk(&event_ref(id)))
}

#[tokio::test(start_paused = true)]
async fn a_message_that_kills_the_process_dooms_nobody_behind_it() {
    let world = funded().await;
    let settings = PollerConfig {
        queue: queue_name(PREFIX, Consumer::Billing),
        batch_size: 10,
        function_timeout: Duration::from_secs(30),
        concurrency: 1,
    };
    let billing = Poller::new(world.aws.queues().clone(), settings, dying(&world, "killer"));
    // The worst case: the relay always sends the killer first, since its shard comes first.
    let victim = (0..).map(|n| format!("victim_{n}")).find(|id| shard(id) > shard("killer")).unwrap();
    for (id, job) in [("killer", "j1"), (victim.as_str(), "j2")] {
        assert_eq!(world.submit(job, "w1", "5.00").await.0, 201);
        accepted(&world, id, &completed(job)).await;
    }
    minutes_with(&world, &billing, 60).await;
    let settlement = world.job("j2").await["settlements"][0].clone();
    assert_eq!(settlement["by"], json!(format!("acme/{victim}")), "not within an hour");
    assert_eq!(world.job("j1").await["settlements"], json!([]));
    audit(&world);
}

/// A record of an operation loses its state, as no handler would ever do.
fn damage_operation(world: &World, id: &str, name: OperationName) {
    let (pk, sk) = (format!("E|acme|{id}"), format!("o|-|{}|{name}", name.consumer()));
    let all = items(world, "events");
    let mut record = all.into_iter().find(|item| text(item, "pk") == pk && text(item, "sk") == sk).unwrap();
    record.as_object_mut().unwrap().remove("st").unwrap();
    overwrite(world, "events", &record);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_of_an_operation_is_a_review_and_blocks_nobody_in_its_group() {
    for receives in [1, 4] {
        let world = funded().await;
        taken_in(&world, "broken", &completed("j1")).await;
        work(&world, "broken", SettleUsage).await; // its job is not known: a record exists
        assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
        assert_eq!(world.submit("j2", "w1", "5.00").await.0, 201);
        taken_in(&world, "healthy", &completed("j2")).await;
        damage_operation(&world, "broken", SettleUsage);
        let batch = vec![record_of("g", "broken", SettleUsage, 1, receives), record("g", "healthy", SettleUsage)];
        assert_eq!(consume(&world, batch).await, [""; 0], "receive {receives}");
        assert_settled(&world, "j2", "healthy").await;
        assert_untouched(&world, "j1").await;
        assert!(open_reviews(&world).await.iter().any(|review| review.starts_with("acme/broken")));
        audit(&world);
    }
}
