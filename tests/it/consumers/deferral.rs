//! Deferral instead of redelivery: generations, attempts, due times; a stale message never writes.

use domain::operation::OperationName::{RecordProgress, SettleUsage};
use domain::operation::{Class, Consumer, OperationState};
use local::world::{completed, event_body};
use serde_json::json;

use crate::books::audit;
use crate::harness::*;

#[tokio::test(start_paused = true)]
async fn each_deferral_is_a_generation_an_attempt_and_a_due_time() {
    let world = funded().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let first = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((first.state, first.class), (OperationState::Wait, Class::JobUnknown));
    assert_eq!((first.generation, first.attempts, first.revision), (1, 1, 1));
    // Full jitter under the first ceiling of 5 s, and never less than one second.
    let wait = first.due_ms.unwrap() - now_ms(&world);
    assert!((1_000..=5_000).contains(&wait), "{wait}");
    assert_eq!(depths(&world, Consumer::Billing), (0, 0), "consumed, though not done");

    // The relay sends the next generation and pushes the record on with it.
    world.clock.advance(MINUTE_MS);
    world.stack.relay().await.unwrap();
    let sent = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((sent.generation, sent.attempts, sent.revision), (2, 1, 2));
    assert_eq!(sent.due_ms.unwrap() - now_ms(&world), world.stack.app.policy.resend_ms);
    let message = &messages(&world, Consumer::Billing)[0];
    assert_eq!((&message.key, message.generation), (&key("msg_1", SettleUsage), 2));

    // The second try: another generation, another attempt, and still waiting since the first.
    world.drain().await.unwrap();
    let second = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((second.generation, second.attempts, second.revision), (3, 2, 3));
    let wait = second.due_ms.unwrap() - now_ms(&world);
    assert!((1_000..=10_000).contains(&wait), "{wait}");
    assert_eq!(second.waiting_since_ms, first.waiting_since_ms);
}

#[tokio::test(start_paused = true)]
async fn waits_grow_under_the_cap() {
    let world = funded().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    let (base, cap) = (world.stack.app.policy.base_ms, world.stack.app.policy.cap_ms);
    let mut seen = 0;
    while seen < 12 {
        world.drain().await.unwrap();
        let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
        if record.attempts > seen {
            seen = record.attempts;
            let ceiling = (base << (seen - 1)).min(cap);
            let wait = record.due_ms.unwrap() - now_ms(&world);
            assert!((1_000..=ceiling).contains(&wait), "attempt {seen}: {wait} of {ceiling}");
        }
        world.clock.advance(MINUTE_MS);
        world.stack.relay().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_of_an_older_generation_never_writes() {
    let world = funded().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", SettleUsage).await;
    let stands = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!(stands.generation, 1);
    // Its job is there now, so that only the generation keeps the old message from acting.
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    let writes = [Rule::count("PutItem", &[]), Rule::count("TransactWriteItems", &[]), Rule::count("UpdateItem", &[])];
    for rule in &writes {
        world.aws.add_hook(rule.clone());
    }
    work(&world, "msg_1", SettleUsage).await;
    assert_eq!(writes.iter().map(|rule| rule.hits()).sum::<usize>(), 0);
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap(), stands);
    assert_untouched(&world, "j1").await;
    // The generation that stands does it.
    assert_eq!(consume(&world, vec![record_of("g", "msg_1", SettleUsage, 1, 1)]).await, [""; 0]);
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_stale_message_that_cannot_be_read_does_not_move_the_record() {
    let world = funded().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", SettleUsage).await;
    let stands = operation(&world, "msg_1", SettleUsage).await.unwrap();
    let blind = Rule::always("Query", &["E|acme|msg_1"], throttled());
    world.aws.add_hook(blind.clone());
    work(&world, "msg_1", SettleUsage).await;
    blind.stop();
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap(), stands);
}

#[tokio::test(start_paused = true)]
async fn a_deferral_that_cannot_be_written_leaves_the_message_in_its_queue() {
    let world = funded().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    let refused = Rule::always("PutItem", &["o|-|billing|settle-usage"], throttled());
    world.aws.add_hook(refused.clone());
    world.drain().await.unwrap();
    assert!(refused.hits() > 0);
    assert_eq!(operation(&world, "msg_1", SettleUsage).await, None);
    assert_eq!(depths(&world, Consumer::Billing), (1, 0), "not consumed before its record is written");
    assert_eq!(depths(&world, Consumer::Job), (0, 0), "the other operation's record was");
    refused.stop();
    // The visibility timeout of 180 s ends, and the same message is deferred.
    world.clock.advance(181_000);
    world.drain().await.unwrap();
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap().generation, 1);
    assert_eq!(depths(&world, Consumer::Billing), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn from_the_fourth_receive_a_message_is_deferred_before_anything_else() {
    for (receives, done) in [(3, true), (4, false), (99, false)] {
        let world = submitted().await;
        taken_in(&world, "msg_1", &completed("j1")).await;
        let calls = Rule::count("*", &[]);
        world.aws.add_hook(calls.clone());
        assert_eq!(consume(&world, vec![record_of("g", "msg_1", SettleUsage, 0, receives)]).await, [""; 0]);
        if done {
            assert_settled(&world, "j1", "msg_1").await;
            continue;
        }
        assert_eq!(calls.hits(), 1, "one put of the record, and nothing was read before it");
        let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
        assert_eq!((record.state, record.class), (OperationState::Wait, Class::Crashed));
        // Throttled invocations raise the receive count too: only an own try is an attempt.
        assert_eq!((record.generation, record.attempts), (1, 0));
        assert_untouched(&world, "j1").await;
        world.minutes(5).await.unwrap();
        assert_settled(&world, "j1", "msg_1").await;
        audit(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn ded_10_a_redelivery_reads_what_became_of_the_operation() {
    let world = submitted().await;
    accepted(&world, "done", &completed("j1")).await;
    accepted(&world, "waits", &completed("later")).await;
    world.drain().await.unwrap();
    // Final: counted, nothing is sent.
    assert_eq!(world.send("done", &completed("j1")).await, (200, "duplicate".to_owned()));
    assert_eq!(depths(&world, Consumer::Job).0 + depths(&world, Consumer::Billing).0, 0);
    assert_eq!(world.explain("done").await["deliveries"], 2);
    // Waiting: dispatched again, and done at once when the cause is gone.
    assert_eq!(world.submit("later", "w1", "5.00").await.0, 201);
    assert_eq!(world.send("waits", &completed("later")).await, (200, "duplicate".to_owned()));
    assert_eq!(messages(&world, Consumer::Billing)[0].generation, 1);
    world.drain().await.unwrap();
    assert_settled(&world, "later", "waits").await;
    assert_settled(&world, "j1", "done").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn progress_is_deferred_too_and_its_receipt_is_never_changed() {
    let world = funded().await;
    accepted(&world, "p_1", &event_body("job.progress", "j1", json!({"sequence": 1}))).await;
    let receipt = |world: &local::world::World| items(world, "events").into_iter().find(|i| i["sk"]["S"] == "r");
    let before = receipt(&world).unwrap();
    world.drain().await.unwrap();
    assert_eq!(operation(&world, "p_1", RecordProgress).await.unwrap().class, Class::JobUnknown);
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    world.minutes(3).await.unwrap();
    assert_eq!(world.job("j1").await["progress"]["sequence"], 1);
    assert_eq!(state(&world, "p_1", RecordProgress).await.0, "done");
    assert_eq!(receipt(&world).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_message_has_its_line_in_the_log() {
    let world = submitted().await;
    for id in ["busy", "damaged", "killer"] {
        taken_in(&world, id, &completed("j1")).await;
    }
    let pk = "E|acme|damaged";
    let mut receipt =
        items(&world, "events").into_iter().find(|item| item["pk"]["S"] == pk && item["sk"]["S"] == "r").unwrap();
    receipt["ar"] = json!({"BOOL": true});
    overwrite(&world, "events", &receipt);
    world.aws.add_hook(Rule::always("Query", &["E|acme|busy"], throttled()));
    let (lines, _guard) = crate::privacy::collect();
    for (id, receives) in [("busy", 1), ("damaged", 1), ("killer", 4)] {
        assert_eq!(consume(&world, vec![record_of("g", id, SettleUsage, 0, receives)]).await, [""; 0]);
    }
    let text = lines.text();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let told: Vec<_> = lines
        .filter(|line| line["message"] == "operation")
        .map(|line| ["event", "operation", "outcome", "class"].map(|name| line[name].as_str().unwrap().to_owned()))
        .collect();
    let line = |event: &str, outcome: &str, class: &str| {
        [event.to_owned(), "settle-usage".to_owned(), outcome.to_owned(), class.to_owned()]
    };
    assert_eq!(
        told,
        [
            line("acme/busy", "deferred", "transient"),
            line("acme/damaged", "review", "unreadable"),
            line("acme/killer", "deferred", "crashed")
        ],
        "{text}"
    );
}
