//! Limits of attempts, age and business expiry end in review, and a review's way back is a redelivery.

use domain::limits::RetryPolicy;
use domain::operation::OperationName::{CompleteJob, SettleUsage};
use domain::operation::{Class, OperationState};
use local::world::{completed, event_body};
use serde_json::json;

use crate::books::audit;
use crate::harness::*;

const BOTH: [&str; 2] = ["acme/msg_1 complete-job", "acme/msg_1 settle-usage"];

fn few_attempts() -> RetryPolicy {
    RetryPolicy { max_attempts: 3, ..RetryPolicy::default() }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_attempts_ends_in_review_and_nothing_is_tried_after_it() {
    let world = funded_with(limits(few_attempts())).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(15).await.unwrap();
    assert_eq!(open_reviews(&world).await, BOTH);
    let review = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((review.class, review.attempts, review.due_ms), (Class::AttemptsExhausted, 3, None));
    assert!(review.note.contains("3 tries") && review.note.contains("JobUnknown"), "{}", review.note);
    // The cause is gone, and yet only a person or the provider's redelivery tries again.
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    world.minutes(30).await.unwrap();
    assert_untouched(&world, "j1").await;
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap(), review);
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_age_ends_in_review_though_attempts_are_left() {
    let policy = RetryPolicy { max_age_ms: 10 * MINUTE_MS, max_attempts: 1_000, ..RetryPolicy::default() };
    let world = funded_with(limits(policy)).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(10).await.unwrap();
    assert_eq!(open_reviews(&world).await, [""; 0], "ten minutes are within the limit");
    world.minutes(20).await.unwrap();
    assert_eq!(open_reviews(&world).await, BOTH);
}

#[tokio::test(start_paused = true)]
async fn age_is_enforced_by_the_relay_when_no_consumer_works() {
    let policy = RetryPolicy { max_age_ms: 10 * MINUTE_MS, ..RetryPolicy::default() };
    let world = funded_with(limits(policy)).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    for _ in 0..25 {
        world.clock.advance(MINUTE_MS);
        world.stack.relay().await.unwrap();
        purge(&world);
    }
    assert_eq!(open_reviews(&world).await, BOTH);
    assert_eq!(operation(&world, "msg_1", CompleteJob).await.unwrap().attempts, 1, "a send is no attempt");
}

#[tokio::test(start_paused = true)]
async fn an_event_past_its_business_expiry_is_a_review_and_never_automatic() {
    let world = submitted().await;
    world.clock.advance(24 * HOUR_MS); // to the millisecond: still within 24 h of its first sending
    taken_in(&world, "in_time", &completed("j1")).await;
    work(&world, "in_time", SettleUsage).await;
    assert_settled(&world, "j1", "in_time").await;

    world.submit("j2", "w1", "5.00").await;
    world.clock.advance(1);
    let receipt = world.send("late", &completed("j2")).await;
    assert_eq!(receipt.0, 202);
    world.drain().await.unwrap();
    for name in [CompleteJob, SettleUsage] {
        assert_eq!(state(&world, "late", name).await, ("needs-review".to_owned(), "expired".to_owned()), "{name}");
    }
    relay_has_run(&world).await;
    world.minutes(10).await.unwrap();
    // A redelivery asks again and gets the same answer: age is not cured by asking.
    assert_eq!(world.send("late", &completed("j2")).await, (200, "duplicate".to_owned()));
    world.drain().await.unwrap();
    assert_eq!(state(&world, "late", SettleUsage).await.1, "expired");
    assert_untouched(&world, "j2").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_first_sending_expires_by_its_arrival() {
    let body = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 1}}));
    let body = body.replace("\"timestamp\":\"2026-11-29T12:00:00Z\"", "\"timestamp\":null");
    let world = submitted().await;
    taken_in(&world, "msg_1", &body).await;
    world.clock.advance(24 * HOUR_MS + 1);
    work(&world, "msg_1", SettleUsage).await;
    assert_eq!(state(&world, "msg_1", SettleUsage).await.1, "expired");
    assert_untouched(&world, "j1").await;
}

/// "Done" comes before every limit: an effect that stands is not put into question by age.
#[tokio::test(start_paused = true)]
async fn the_own_effect_outranks_every_limit() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", CompleteJob).await;
    work(&world, "msg_1", SettleUsage).await;
    world.clock.advance(72 * HOUR_MS);
    for name in [CompleteJob, SettleUsage] {
        work(&world, "msg_1", name).await;
        assert_eq!(operation(&world, "msg_1", name).await, None, "{name}");
    }
    assert_eq!(world.explain("msg_1").await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn ded_10_a_redelivery_of_an_event_in_review_gets_fresh_limits_and_completes() {
    let world = funded_with(limits(few_attempts())).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(15).await.unwrap();
    let review = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!(review.state, OperationState::Review);

    // While the cause lasts, it is tried as often as a new one, and ends in review again.
    assert_eq!(world.send("msg_1", &completed("j1")).await, (200, "duplicate".to_owned()));
    let again = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((again.state, again.class, again.attempts), (OperationState::Wait, Class::Retried, 0));
    assert_eq!(again.generation, review.generation + 1);
    assert_eq!((again.due_ms, again.waiting_since_ms), (Some(now_ms(&world)), now_ms(&world)));
    world.minutes(15).await.unwrap();
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap().attempts, 3);
    assert_eq!(open_reviews(&world).await, BOTH);

    // Once the cause is gone it completes.
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    assert_eq!(world.send("msg_1", &completed("j1")).await, (200, "duplicate".to_owned()));
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(open_reviews(&world).await, [""; 0]);
    assert_eq!(world.explain("msg_1").await["status"], "completed");
    assert_eq!(world.explain("msg_1").await["deliveries"], 3);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_redelivered_review_completes_even_if_its_message_is_lost() {
    let world = funded_with(limits(few_attempts())).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(15).await.unwrap();
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    assert_eq!(world.send("msg_1", &completed("j1")).await.0, 200);
    purge(&world);
    world.minutes(8).await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}
