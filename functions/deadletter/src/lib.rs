//! The dead-letter consumer: what a queue gave up becomes a deferral again, or a person's.
//!
//! The receipt is the truth, not the dead-letter queue. Each message leads to a deferral under the
//! condition that no newer generation stands, or to a review at our own limits; then it is consumed.
//! A message that was never tried (throttling raises the receive count) loses nothing.

use domain::decide::{NoEffect, exhausted};
use domain::operation::Class;
use runtime::App;
use runtime::consumer::{Operate, Work, handle_batch};
use runtime::sqs::{BatchResponse, SqsEvent};
use store::StoreError;

/// Handles one batch of either dead-letter queue.
pub async fn handle(app: &App, event: SqsEvent) -> BatchResponse {
    handle_batch(app, &event, &DeadLetters).await
}

struct DeadLetters;

impl Operate for DeadLetters {
    const COUNTS_TRIES: bool = false;
    const PAUSABLE: bool = false;

    async fn operate(&self, app: &App, work: &Work) -> Result<NoEffect, StoreError> {
        let limit = work.record.as_ref().and_then(|r| exhausted(r, &app.policy, app.clock.now_ms()));
        let again = || NoEffect::Wait(Class::DeadLetter, "came back from the dead-letter queue".to_owned());
        Ok(limit.unwrap_or_else(again))
    }
}
