//! The consumer's loop: per-record results, groups in order, other groups go on.
//!
//! Deferral instead of redelivery: what cannot be done now is written down with its due time and the
//! message is consumed, so that nobody behind it waits and the receive count means nothing. Only if
//! even that cannot be written is the message reported failed, and with it the rest of ITS group.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use domain::decide::{Ask, NoEffect};
use domain::envelope::Envelope;
use domain::event::{By, EventRef};
use domain::limits::DEFER_FIRST_AT_RECEIVE;
use domain::message::Message;
use domain::operation::{Change, Class, OperationKey, OperationName, OperationRecord, OperationState};
use domain::receipt::{Conflict, Receipt};
use futures_util::FutureExt;
use futures_util::future::join_all;
use store::{EventRecords, OperationPut, StoreError};

use crate::App;
use crate::sqs::{BatchResponse, ItemFailure, SqsEvent, SqsRecord};

/// Added to the exponent of a wait that was not an own try: the first ceiling is 80 s, so that messages
/// deferred in one batch come due in different runs of the relay.
const SPREAD: u32 = 3;

/// One operation to carry out.
#[derive(Debug)]
pub struct Work {
    /// Which.
    pub key: OperationKey,
    /// What its effects carry.
    pub by: By,
    /// The durable receipt.
    pub receipt: Receipt,
    /// The operation's record, if it did not go straight.
    pub record: Option<OperationRecord>,
    /// The generation of the message at hand.
    pub generation: u32,
}

impl Work {
    /// The decision's side of this work, now.
    pub fn ask<'a>(&'a self, app: &'a App) -> Ask<'a> {
        Ask {
            by: &self.by,
            envelope: &self.receipt.envelope,
            business_time_ms: self.receipt.business_time_ms(),
            expire_after_ms: app.expire_after_ms(&self.key.event),
            record: self.record.as_ref(),
            now_ms: app.clock.now_ms(),
            policy: &app.policy,
            settles: self.receipt.plans(OperationName::SettleUsage),
        }
    }
}

/// Carries operations out: reads, asks the pure decision, commits. [`NoEffect::Done`] means that the
/// operation's own effect exists, whether written now or before.
pub trait Operate: Sync {
    /// True when a deferral counts as a try; the dead-letter consumer's does not.
    const COUNTS_TRIES: bool = true;

    /// One operation.
    fn operate(&self, app: &App, work: &Work) -> impl Future<Output = Result<NoEffect, StoreError>> + Send;
}

/// What is to become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Consumed,
    Failed,
}

/// Handles a batch. Records of one group are taken in order, groups run side by side.
pub async fn handle_batch(app: &App, event: &SqsEvent, operate: &impl Operate) -> BatchResponse {
    let mut groups: Vec<(&str, Vec<&SqsRecord>)> = Vec::new();
    for record in &event.records {
        let group = record.attributes.message_group_id.as_str();
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, records)) => records.push(record),
            None => groups.push((group, vec![record])),
        }
    }
    let failed = join_all(groups.into_iter().map(|(_, records)| handle_group(app, records, operate))).await;
    let failures = failed.into_iter().flatten().map(|item_identifier| ItemFailure { item_identifier });
    BatchResponse { batch_item_failures: failures.collect() }
}

/// Handles one group; the ids of the records that stay in the queue: the failed one and all behind it.
async fn handle_group(app: &App, records: Vec<&SqsRecord>, operate: &impl Operate) -> Vec<String> {
    for (index, record) in records.iter().enumerate() {
        if handle_record(app, record, operate).await == Fate::Failed {
            return records[index..].iter().map(|r| r.message_id.clone()).collect();
        }
    }
    Vec::new()
}

async fn handle_record(app: &App, record: &SqsRecord, operate: &impl Operate) -> Fate {
    let message = match Message::from_json(&record.body) {
        Ok(message) => message,
        Err(error) => {
            // Not ours, or of another version: the receipt is the truth, and the relay sends anew.
            tracing::error!(message_id = %record.message_id, %error, "unreadable message consumed");
            return Fate::Consumed;
        }
    };
    let outcome = AssertUnwindSafe(handle_message(app, record, &message, operate)).catch_unwind().await;
    match outcome {
        Ok(fate) => fate,
        Err(_) => {
            // The panic's text can hold payload; the panic hook logs the place.
            let note = "the handler panicked".to_owned();
            tracing::error!(event = %message.key.event, operation = %message.key.name, "handler panicked");
            defer_unread(app, &message, Class::Crashed, note, true).await
        }
    }
}

async fn handle_message<O: Operate>(app: &App, record: &SqsRecord, message: &Message, operate: &O) -> Fate {
    if O::COUNTS_TRIES && record.receive_count() >= DEFER_FIRST_AT_RECEIVE {
        // It may be the message that kills the process: deferred and consumed before anything else.
        // Throttled invocations raise the count too, so this is not counted as a try.
        let note = format!("received {} times without an end", record.receive_count());
        return defer_unread(app, message, Class::Crashed, note, false).await;
    }
    let records = match app.store.load_event(&message.key.event).await {
        Ok(Some(records)) => records,
        Ok(None) => {
            tracing::error!(event = %message.key.event, "message without a receipt consumed");
            return Fate::Consumed;
        }
        Err(error) => return without_records(app, message, error).await,
    };
    let Some(work) = workable(message, records) else { return Fate::Consumed };
    let started = app.clock.now_ms();
    let verdict = match operate.operate(app, &work).await {
        Ok(verdict) => verdict,
        Err(StoreError::Corrupt { what }) => {
            NoEffect::Review(Class::Unreadable, format!("a stored {what} cannot be read"))
        }
        Err(error) => NoEffect::Wait(Class::Transient, error.to_string()),
    };
    tracing::info!(
        event = %work.key.event, operation = %work.key.name, generation = work.generation,
        outcome = outcome_name(&verdict), duration_ms = app.clock.now_ms() - started, "operation"
    );
    conclude(app, &work, verdict, u32::from(O::COUNTS_TRIES)).await
}

/// The work of a message, unless a newer generation, a review or an end stands in the record.
fn workable(message: &Message, records: EventRecords) -> Option<Work> {
    let record = records.operation(&message.key).cloned();
    let stands = record
        .as_ref()
        .is_some_and(|r| r.generation > message.generation || r.state == OperationState::Review || r.is_final());
    if stands {
        tracing::info!(event = %message.key.event, operation = %message.key.name, generation = message.generation, outcome = "stale", "operation");
        return None;
    }
    let (key, by) = (message.key.clone(), message.key.by());
    Some(Work { key, by, receipt: records.receipt, record, generation: message.generation })
}

fn outcome_name(verdict: &NoEffect) -> &'static str {
    match verdict {
        NoEffect::Done => "done",
        NoEffect::Noop(..) => "noop",
        NoEffect::Wait(..) => "deferred",
        NoEffect::Review(..) => "review",
    }
}

/// The event could not be read: a busy store defers blindly, a damaged record goes to a person.
async fn without_records(app: &App, message: &Message, error: StoreError) -> Fate {
    match error {
        StoreError::Corrupt { what } => {
            let (generation, attempts) = (message.generation, 0);
            let note = format!("a stored {what} cannot be read");
            let change = Change {
                state: OperationState::Review,
                class: Class::Unreadable,
                note,
                due_ms: None,
                generation,
                attempts,
            };
            write(app, &message.key, None, change).await
        }
        _ => defer_unread(app, message, Class::Transient, error.to_string(), true).await,
    }
}

/// Defers without having read the record: absent first, else behind what stands.
async fn defer_unread(app: &App, message: &Message, class: Class, note: String, own_try: bool) -> Fate {
    let tries = u32::from(own_try);
    let wait = |generation: u32, attempts: u32| {
        // What killed the process may be this message or one before it in its batch. Deferred together,
        // they must not be sent together for ever: their waits spread, and more with each generation.
        let exponent = if own_try { attempts } else { attempts.saturating_add(generation + SPREAD) };
        Change {
            state: OperationState::Wait,
            class,
            note: note.clone(),
            due_ms: Some(app.clock.now_ms() + app.policy.backoff_ms(exponent, app.random.next_u64())),
            generation,
            attempts,
        }
    };
    let first = wait(message.generation + 1, tries);
    let record = OperationRecord::next(message.key.clone(), None, first, app.clock.now_ms(), app.random.token());
    match app.store.put_operation(&record).await {
        Ok(OperationPut::Written) => Fate::Consumed,
        Ok(OperationPut::Lost(stands))
            if stands.state != OperationState::Wait || stands.generation > message.generation =>
        {
            Fate::Consumed
        }
        Ok(OperationPut::Lost(stands)) => {
            let change = wait(stands.generation + 1, stands.attempts + tries);
            write(app, &message.key, Some(&stands), change).await
        }
        Err(error) => unwritten(app, &message.key, &error).await,
    }
}

/// Writes what the verdict asks for. The straight path, done without a record, writes nothing.
async fn conclude(app: &App, work: &Work, verdict: NoEffect, tries: u32) -> Fate {
    let old = work.record.as_ref();
    let generation = old.map_or(work.generation, |r| r.generation.max(work.generation));
    let attempts = old.map_or(0, |r| r.attempts);
    let change = match verdict {
        NoEffect::Done if old.is_none() => return Fate::Consumed,
        NoEffect::Done => {
            let note = "its effect exists".to_owned();
            Change {
                state: OperationState::Closed,
                class: Class::AlreadyDone,
                note,
                due_ms: None,
                generation,
                attempts,
            }
        }
        NoEffect::Noop(class, note) => {
            Change { state: OperationState::Noop, class, note, due_ms: None, generation, attempts }
        }
        NoEffect::Review(class, note) => {
            Change { state: OperationState::Review, class, note, due_ms: None, generation, attempts }
        }
        NoEffect::Wait(class, note) => Change {
            state: OperationState::Wait,
            class,
            note,
            due_ms: Some(app.clock.now_ms() + app.policy.backoff_ms(attempts, app.random.next_u64())),
            generation: generation + 1,
            attempts: attempts + tries,
        },
    };
    write(app, &work.key, old, change).await
}

/// Writes the next revision. Losing it to another writer is fine: whatever stands is final, in
/// review, or waits with a due time and a newer generation.
async fn write(app: &App, key: &OperationKey, old: Option<&OperationRecord>, change: Change) -> Fate {
    let record = OperationRecord::next(key.clone(), old, change, app.clock.now_ms(), app.random.token());
    match app.store.put_operation(&record).await {
        Ok(_) => Fate::Consumed,
        Err(error) => unwritten(app, key, &error).await,
    }
}

/// No record could be written. Where the one that stands is damaged, no later try will do better: the
/// event gets a review beside it, and nobody behind the message waits.
async fn unwritten(app: &App, key: &OperationKey, error: &StoreError) -> Fate {
    if matches!(error, StoreError::Corrupt { .. }) && review_unreadable(app, &key.event).await.is_ok() {
        return Fate::Consumed;
    }
    tracing::warn!(event = %key.event, operation = %key.name, %error, "record not written; the message stays");
    Fate::Failed
}

/// Opens the review of an event whose stored records cannot be read; again and again it stays one.
///
/// # Errors
/// [`StoreError`] when the review cannot be written.
pub async fn review_unreadable(app: &App, event: &EventRef) -> Result<(), StoreError> {
    let now_ms = app.clock.now_ms();
    let review = Conflict {
        payload_hash: "unreadable".to_owned(),
        arrival_ms: now_ms,
        envelope: Envelope::default(),
        review_since_ms: Some(now_ms),
    };
    tracing::error!(%event, "stored records cannot be read; review opened");
    app.store.put_conflict(event, &review).await
}
