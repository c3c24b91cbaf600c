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
use domain::fetch::Awaited;
use domain::limits::DEFER_FIRST_AT_RECEIVE;
use domain::message::Message;
use domain::operation::{Change, Class, OperationKey, OperationName, OperationRecord, OperationState};
use domain::receipt::{Conflict, Receipt, UNREADABLE};
use futures_util::FutureExt;
use futures_util::future::join_all;
use store::{EventRecords, OperationPut, StoreError};

use crate::App;
use crate::pauses::{self, BatchSwitches};
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
    /// The durable receipt, as the operation's item sees it.
    pub receipt: Receipt,
    /// The operation's record, if it did not go straight.
    pub record: Option<OperationRecord>,
    /// The generation of the message at hand.
    pub generation: u32,
    /// What keeps it back for want of what is fetched for its event; none where nothing does.
    pub awaits: Option<Awaited>,
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
    /// True when the pause switches hold it back; the dead-letter consumer only writes deferrals.
    const PAUSABLE: bool = true;
    /// True when it commits several operations of one group together.
    const BATCHES: bool = false;

    /// One operation.
    fn operate(&self, app: &App, work: &Work) -> impl Future<Output = Result<NoEffect, StoreError>> + Send;

    /// Several operations of one group that may be committed together. Returns the places of those
    /// whose own effects are now certainly written; every other one is then taken alone, in order.
    fn together(&self, _app: &App, _works: &[Work]) -> impl Future<Output = Vec<usize>> + Send {
        async { Vec::new() }
    }
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
    let switches = BatchSwitches::default();
    let failed = join_all(groups.into_iter().map(|(_, records)| handle_group(app, records, operate, &switches))).await;
    let failures = failed.into_iter().flatten().map(|item_identifier| ItemFailure { item_identifier });
    BatchResponse { batch_item_failures: failures.collect() }
}

/// Handles one group; the ids of the records that stay in the queue: the failed one and all behind it.
async fn handle_group<O: Operate>(
    app: &App, records: Vec<&SqsRecord>, operate: &O, switches: &BatchSwitches,
) -> Vec<String> {
    let several = O::BATCHES && records.len() > 1;
    let done = if several { commit_together(app, &records, operate, switches).await } else { Vec::new() };
    for (index, record) in records.iter().enumerate() {
        let fate = match done.iter().find(|(place, _)| *place == index) {
            Some((_, work)) => conclude(app, work, NoEffect::Done, 1).await,
            None => handle_record(app, record, operate, switches).await,
        };
        if fate == Fate::Failed {
            return records[index..].iter().map(|r| r.message_id.clone()).collect();
        }
    }
    Vec::new()
}

/// Offers the group's straight records to [`Operate::together`]; those that it committed, by place.
/// Whatever goes wrong here costs nothing: each record is then taken alone.
async fn commit_together<O: Operate>(
    app: &App, records: &[&SqsRecord], operate: &O, switches: &BatchSwitches,
) -> Vec<(usize, Work)> {
    let straight = records.iter().enumerate().filter(|(_, r)| r.receive_count() < DEFER_FIRST_AT_RECEIVE);
    let loads = straight.filter_map(|(place, r)| Message::from_json(&r.body).ok().map(|m| (place, m))).map(
        async |(place, message)| {
            let records = app.store.load_event(&message.key.event).await.ok()??;
            Some((place, workable(&message, records)?))
        },
    );
    let loaded: Vec<(usize, Work)> = join_all(loads).await.into_iter().flatten().collect();
    if loaded.len() < 2 {
        return Vec::new();
    }
    let Ok(switches) = switches.read(app).await else { return Vec::new() };
    let free = loaded.into_iter().filter(|(_, work)| work.awaits.is_none() && switches.holds(&work.key).is_none());
    let (places, works): (Vec<usize>, Vec<Work>) = free.unzip();
    let committed = AssertUnwindSafe(operate.together(app, &works)).catch_unwind().await.unwrap_or_default();
    let mut done = Vec::new();
    for (index, (place, work)) in places.into_iter().zip(works).enumerate() {
        if committed.contains(&index) {
            tracing::info!(
                event = %work.key.event, operation = %work.key.name, generation = work.generation,
                trace = work.receipt.trace, outcome = "done", batch = committed.len(), "operation"
            );
            done.push((place, work));
        }
    }
    done
}

async fn handle_record(app: &App, record: &SqsRecord, operate: &impl Operate, switches: &BatchSwitches) -> Fate {
    let message = match Message::from_json(&record.body) {
        Ok(message) => message,
        Err(error) => {
            // Not ours, or of another version: the receipt is the truth, and the relay sends anew.
            tracing::error!(message_id = %record.message_id, %error, "unreadable message consumed");
            return Fate::Consumed;
        }
    };
    let outcome = AssertUnwindSafe(handle_message(app, record, &message, operate, switches)).catch_unwind().await;
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

async fn handle_message<O: Operate>(
    app: &App, record: &SqsRecord, message: &Message, operate: &O, switches: &BatchSwitches,
) -> Fate {
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
    if O::PAUSABLE {
        match switches.read(app).await.map(|switches| switches.holds(&work.key)) {
            Ok(None) => {}
            Ok(Some(switch)) => {
                return match pauses::park(app, &work, switch).await {
                    Ok(_) => Fate::Consumed,
                    Err(error) => unwritten(app, &work.key, &error).await,
                };
            }
            // Whether it is paused is not known, so it does not act; that is no try of its own.
            Err(error) => return defer_unread(app, message, Class::Transient, error.to_string(), false).await,
        }
    }
    let started = app.clock.now_ms();
    let tried = match work.awaits.as_ref().filter(|_| O::PAUSABLE) {
        Some(awaited) => app.awaiting(&work, awaited).await,
        None => operate.operate(app, &work).await,
    };
    let verdict = match tried {
        Ok(verdict) => verdict,
        Err(StoreError::Corrupt { what }) => {
            NoEffect::Review(Class::Unreadable, format!("a stored {what} cannot be read"))
        }
        Err(error) if error.is_invalid() => NoEffect::Review(Class::Refused, error.to_string()),
        Err(error) if !error.is_transient() => NoEffect::Wait(Class::Refused, error.to_string()),
        Err(error) => NoEffect::Wait(Class::Transient, error.to_string()),
    };
    tracing::info!(
        event = %work.key.event, operation = %work.key.name, generation = work.generation,
        trace = work.receipt.trace, outcome = outcome_name(&verdict), class = class_name(&verdict), duration_ms = app.clock.now_ms() - started, "operation"
    );
    conclude(app, &work, verdict, u32::from(O::COUNTS_TRIES)).await
}

/// The work of a message, unless a newer generation, a review or an end stands in the record.
fn workable(message: &Message, records: EventRecords) -> Option<Work> {
    let record = records.operation(&message.key).cloned();
    let stands = record
        .as_ref()
        .is_some_and(|r| r.live_from > message.generation || r.state == OperationState::Review || r.is_final());
    if stands && !domain::planted::on("stale-generation-acts") {
        // PLANTED
        tracing::info!(event = %message.key.event, operation = %message.key.name, generation = message.generation, outcome = "stale", "operation");
        return None;
    }
    let (key, by) = (message.key.clone(), message.key.by());
    let receipt = records.receipt.of_item(&key.item);
    let fetch = records.operation(&domain::fetch::key(&key.event, &key.item));
    let awaits = domain::fetch::awaits(&receipt, key.name, fetch);
    Some(Work { key, by, receipt, record, generation: message.generation, awaits })
}

fn outcome_name(verdict: &NoEffect) -> &'static str {
    match verdict {
        NoEffect::Done => "done",
        NoEffect::Noop(..) => "noop",
        NoEffect::Wait(..) | NoEffect::Until(..) => "deferred",
        NoEffect::Review(..) => "review",
    }
}

/// Why an operation did not go straight.
fn class_name(verdict: &NoEffect) -> Option<String> {
    match verdict {
        NoEffect::Done => None,
        NoEffect::Noop(class, _)
        | NoEffect::Wait(class, _)
        | NoEffect::Until(class, ..)
        | NoEffect::Review(class, _) => Some(class.name()),
    }
}

/// The event could not be read: a busy store defers blindly, a damaged record goes to a person.
async fn without_records(app: &App, message: &Message, error: StoreError) -> Fate {
    match error {
        StoreError::Corrupt { what } => {
            let (generation, attempts) = (message.generation, 0);
            let note = format!("a stored {what} cannot be read");
            log_unread(message, "review", Class::Unreadable);
            let change = Change {
                state: OperationState::Review,
                class: Class::Unreadable,
                note,
                due_ms: None,
                generation,
                resend: false,
                attempts,
            };
            write(app, &message.key, None, None, change).await
        }
        _ => defer_unread(app, message, Class::Transient, error.to_string(), true).await,
    }
}

/// The operation's line of the log where nothing was tried, or what was tried has no verdict.
fn log_unread(message: &Message, outcome: &str, class: Class) {
    tracing::info!(
        event = %message.key.event, operation = %message.key.name, generation = message.generation, outcome,
        class = class.name(), "operation"
    );
}

/// Defers without having read the record: absent first, else behind what stands.
async fn defer_unread(app: &App, message: &Message, class: Class, note: String, own_try: bool) -> Fate {
    log_unread(message, "deferred", class);
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
            resend: false,
            attempts,
        }
    };
    let first = wait(message.generation + 1, tries);
    let record = OperationRecord::next(message.key.clone(), None, first, app.clock.now_ms(), app.random.token());
    match app.store.put_operation(&record).await {
        Ok(OperationPut::Written) => Fate::Consumed,
        Ok(OperationPut::Lost(stands))
            if stands.state != OperationState::Wait || stands.live_from > message.generation =>
        {
            Fate::Consumed
        }
        Ok(OperationPut::Lost(stands)) => {
            let change = wait(stands.generation + 1, stands.attempts + tries);
            write(app, &message.key, None, Some(&stands), change).await
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
                resend: false,
                attempts,
            }
        }
        NoEffect::Noop(class, note) => {
            Change { state: OperationState::Noop, class, note, due_ms: None, generation, resend: false, attempts }
        }
        NoEffect::Review(class, note) => {
            Change { state: OperationState::Review, class, note, due_ms: None, generation, resend: false, attempts }
        }
        NoEffect::Until(class, note, due_ms) => Change {
            state: OperationState::Wait,
            class,
            note,
            due_ms: Some(due_ms),
            generation: generation + 1,
            resend: false,
            attempts,
        },
        NoEffect::Wait(class, note) => Change {
            state: OperationState::Wait,
            class,
            note,
            due_ms: Some(app.clock.now_ms() + app.policy.backoff_ms(attempts, app.random.next_u64())),
            generation: generation + 1,
            resend: false,
            attempts: attempts + tries,
        },
    };
    write(app, &work.key, Some(&work.receipt.envelope), old, change).await
}

/// Writes the next revision. A resend that came between the reading and the writing tried nothing: what
/// this try found is written on top of it, and an effect ends whatever stands. Losing to any other writer
/// is fine: what stands is final, in review, or waits with a due time and a newer generation.
async fn write(
    app: &App, key: &OperationKey, from: Option<&Envelope>, old: Option<&OperationRecord>, change: Change,
) -> Fate {
    let next = |old: Option<&OperationRecord>, change: &Change| {
        OperationRecord::next(key.clone(), old, change.clone(), app.clock.now_ms(), app.random.token())
    };
    let stands = match app.put_operation(&next(old, &change), from).await {
        Ok(OperationPut::Lost(stands)) => stands,
        Ok(OperationPut::Written) => return Fate::Consumed,
        Err(error) => return unwritten(app, key, &error).await,
    };
    let resent = old.is_some_and(|old| {
        stands.state == OperationState::Wait && (stands.live_from, stands.attempts) == (old.live_from, old.attempts)
    });
    let ended = change.state == OperationState::Closed && !stands.is_final();
    if !resent && !ended {
        return Fate::Consumed;
    }
    let waits = u32::from(change.state == OperationState::Wait);
    let on_top = Change { generation: change.generation.max(stands.generation + waits), ..change };
    match app.put_operation(&next(Some(&stands), &on_top), from).await {
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
    if domain::planted::on("deferral-consumed-before-it-is-written") {
        return Fate::Consumed; // PLANTED
    }
    Fate::Failed
}

/// Opens the review of an event whose stored records cannot be read; again and again it stays one.
///
/// # Errors
/// [`StoreError`] when the review cannot be written.
pub async fn review_unreadable(app: &App, event: &EventRef) -> Result<(), StoreError> {
    let now_ms = app.clock.now_ms();
    let review = Conflict {
        payload_hash: UNREADABLE.to_owned(),
        arrival_ms: now_ms,
        envelope: Envelope::default(),
        review_since_ms: Some(now_ms),
        closed_ms: None,
    };
    tracing::error!(%event, "stored records cannot be read; review opened");
    app.put_conflict(event, &review).await
}
