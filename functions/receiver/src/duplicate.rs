//! The same event again: counted; what is not final is dispatched again; what is in review gets a new
//! generation, so that the provider's "redeliver" button works. Other content is a conflict, with no
//! effect.

use domain::message::Message;
use domain::operation::{Class, OperationKey, OperationRecord};
use domain::profile::Profile;
use domain::receipt::{Conflict, Receipt};
use domain::status::Stage;
use runtime::App;
use runtime::dispatch::message;
use runtime::gateway::GatewayResponse;
use runtime::problem::Problem;
use store::{EventRecords, OperationPut, StoreError};

use crate::{answer, unavailable};

/// Answers a delivery whose event was received before.
pub(crate) async fn answer(
    app: &App, profile: &Profile, stored: &Receipt, delivered: &Receipt,
) -> Result<GatewayResponse, Problem> {
    let Some(event) = &stored.event else { return Err(Problem::unavailable()) };
    let same = domain::planted::on("other-content-taken-for-a-duplicate"); // PLANTED
    if !stored.says_the_same(delivered) && !same {
        let conflict = Conflict {
            payload_hash: delivered.payload_hash.clone(),
            arrival_ms: delivered.arrival_ms,
            envelope: delivered.envelope.clone(),
            review_since_ms: Some(delivered.arrival_ms),
            closed_ms: None,
        };
        app.put_conflict(event, &conflict).await.map_err(|error| unavailable(&error))?;
        tracing::warn!(provider = %profile.slug, %event, outcome = "quarantined", reason = "Conflict", "delivery");
        return Ok(answer::status(profile.quarantine_status, "quarantined", stored));
    }
    let again = redispatch(app, stored).await.map_err(|error| unavailable(&error))?;
    app.store.count_delivery(event, delivered.arrival_ms).await.map_err(|error| unavailable(&error))?;
    let duration_ms = (app.clock.now_ms() - delivered.arrival_ms).max(0);
    tracing::info!(
        provider = %profile.slug, %event, outcome = "duplicate", dispatched = again, trace = delivered.trace,
        duration_ms, "delivery"
    );
    Ok(answer::status(200, "duplicate", stored))
}

/// Dispatches what is not final. Returns how many messages were sent.
async fn redispatch(app: &App, receipt: &Receipt) -> Result<usize, StoreError> {
    let Some(event) = &receipt.event else { return Ok(0) };
    // Read from its partition: a replay may have planned anew what had no plan.
    let Some(EventRecords { receipt, operations, .. }) = app.store.load_event(event).await? else { return Ok(0) };
    if receipt.plan.is_empty() {
        return Ok(0);
    }
    let receipt = &receipt;
    let effects = app.store.effects_of(receipt).await?;
    let mut messages = Vec::new();
    for key in receipt.operations() {
        let record = operations.iter().find(|o| o.key.as_ref() == Some(&key));
        let own = effects.effect(&key, record).is_some();
        match Stage::of(own, record) {
            Stage::Done | Stage::Noop | Stage::Closed => {}
            Stage::Processing => messages.push(message(receipt, key, 0)),
            Stage::Retrying => messages.extend(record.map(|r| message(receipt, key, r.generation))),
            Stage::NeedsReview => messages.extend(retry_review(app, receipt, key, record).await?),
        }
    }
    Ok(app.dispatch(&messages).await)
}

/// Turns a review into a wait of a new generation, due now.
async fn retry_review(
    app: &App, receipt: &Receipt, key: OperationKey, record: Option<&OperationRecord>,
) -> Result<Option<Message>, StoreError> {
    let note = "the provider delivered the event again".to_owned();
    let next = record.and_then(|r| r.retried(Class::Retried, note, app.clock.now_ms(), app.random.token()));
    let Some(next) = next else { return Ok(None) };
    match app.store.put_operation(&next).await? {
        OperationPut::Written => Ok(Some(message(receipt, key, next.generation))),
        OperationPut::Lost(_) => Ok(None), // somebody else did it
    }
}
