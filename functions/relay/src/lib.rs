//! The relay: every minute it finds what was received and never dispatched, and sends what is due.
//!
//! Each receipt bucket is examined once, when it is two minutes old, under a durable cursor that
//! advances only after every missing record is written. So after the cursor every operation that is
//! not final has a due time or is a person's, whatever SQS remembers. Overlapping runs are harmless:
//! every write is conditional and every send has its generation's deduplication id.

mod expiry;
mod health;
mod resume;

pub use expiry::close as close_expired;

use domain::decide::{NoEffect, exhausted};
use domain::event::EventRef;
use domain::keys::shard_of;
use domain::limits::{BUCKET_MS, RELAY_GRACE_MS, SHARDS};
use domain::operation::{Change, Class, OperationKey, OperationRecord, OperationState};
use domain::status::EventEffects;
use futures_util::future::join_all;
use runtime::App;
use runtime::consumer::review_unreadable;
use runtime::dispatch::message;
use serde::Serialize;
use store::{Cursor, Store, StoreError};

use crate::health::Health;

/// How far back the first run looks, before a cursor exists: one day.
pub const FIRST_LOOK_BACK_MS: i64 = 24 * 3_600_000;
/// Due operations of one shard in one run; what is left is next minute's.
const DUE_PER_SHARD: usize = 500;
/// Operations handled side by side.
const SIDE_BY_SIDE: usize = 25;
/// After this the sweeps of a run begin no further bucket: the function's timeout is 50 s.
const TIME_BUDGET_MS: i64 = 35_000;
/// After this a run resumes nothing more. Later than the sweeps' end, so that a backlog of theirs leaves it some
/// seconds.
const RESUME_BUDGET_MS: i64 = 40_000;
/// Empty buckets after which the cursor is saved all the same.
const SAVE_EVERY: i64 = 60;

/// What one run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Receipts examined.
    pub examined: usize,
    /// Operations found without effect or record.
    pub found: usize,
    /// Messages sent.
    pub sent: usize,
    /// Operations given to a person.
    pub reviews: usize,
    /// Holds closed by their expiry.
    pub expired: usize,
    /// Operations sent that a pause switch had held back.
    pub resumed: usize,
}

impl Report {
    fn add(&mut self, part: Self) {
        self.examined += part.examined;
        self.found += part.found;
        self.sent += part.sent;
        self.reviews += part.reviews;
        self.expired += part.expired;
        self.resumed += part.resumed;
    }
}

/// One run over all shards.
///
/// # Errors
/// [`StoreError`] of the first shard that failed; the others are done all the same.
pub async fn run(app: &App) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let mut health = Health::default();
    let mut failed = None;
    let resume_until_ms = app.clock.now_ms() + RESUME_BUDGET_MS;
    for (shard, part, seen, errors) in join_all((0..SHARDS).map(|shard| run_shard(app, shard))).await {
        report.add(part);
        health.add(seen);
        for error in errors {
            tracing::error!(shard, %error, "relay shard failed");
            failed.get_or_insert(error);
        }
    }
    // Last: a long pause, or a queue that is down, must not keep what is due and the sweeps from their turn.
    if let Err(error) = resume::resume(app, resume_until_ms, &mut report).await {
        tracing::error!(%error, "relay: resuming failed");
        failed.get_or_insert(error);
    }
    tracing::info!(
        examined = report.examined,
        found = report.found,
        sent = report.sent,
        reviews = report.reviews,
        expired = report.expired,
        lag_s = health.lag_s,
        oldest_waiting_s = health.oldest_waiting_s,
        reviews_open = health.reviews_open,
        oldest_review_s = health.oldest_review_s,
        resumed = report.resumed,
        "relay"
    );
    failed.map_or(Ok(report), Err)
}

/// One shard: what is due first, then expired holds, then receipts, so that a backlog of receipts keeps
/// nobody waiting. A part that fails does not hold up the others.
async fn run_shard(app: &App, shard: u32) -> (u32, Report, Health, Vec<StoreError>) {
    let mut report = Report::default();
    let mut health = Health::default();
    let stop_ms = app.clock.now_ms() + TIME_BUDGET_MS;
    let mut results = vec![
        send_due(app, shard, &mut report, &mut health).await,
        expiry::sweep(app, shard, stop_ms, &mut report).await,
        sweep_receipts(app, shard, stop_ms, &mut report, &mut health).await,
    ];
    if report.found > 0 {
        // What was just found need not wait for the next run.
        results.push(send_due(app, shard, &mut report, &mut health).await);
    }
    results.push(health.look(app, shard).await);
    (shard, report, health, results.into_iter().filter_map(Result::err).collect())
}

async fn sweep_receipts(
    app: &App, shard: u32, stop_ms: i64, report: &mut Report, health: &mut Health,
) -> Result<(), StoreError> {
    let now_ms = app.clock.now_ms();
    let first = (now_ms - FIRST_LOOK_BACK_MS).div_euclid(BUCKET_MS);
    let end = (now_ms - RELAY_GRACE_MS).div_euclid(BUCKET_MS); // the first minute that is too young
    let saved = app.store.cursor(Cursor::Receipts, shard).await?;
    let mut unsaved = 0;
    health.stands_at(saved.unwrap_or(first), now_ms);
    for minute in saved.unwrap_or(first)..end {
        if app.clock.now_ms() > stop_ms {
            return Ok(()); // the next run goes on from the cursor
        }
        let events = app.store.receipts_in(minute, shard).await?;
        if domain::planted::on("cursor-advanced-before-the-writes") {
            app.store.advance_cursor(Cursor::Receipts, shard, minute + 1).await?; // PLANTED
        }
        unsaved += 1;
        for chunk in events.chunks(SIDE_BY_SIDE) {
            for found in join_all(chunk.iter().map(|event| examine(app, event))).await {
                report.found += found?;
            }
        }
        report.examined += events.len();
        if minute + 1 == end || !events.is_empty() || unsaved >= SAVE_EVERY {
            app.store.advance_cursor(Cursor::Receipts, shard, minute + 1).await?;
            unsaved = 0;
        }
        health.stands_at(minute + 1, now_ms);
    }
    Ok(())
}

/// Whether every operation of an event has its record or its effect, seen at a glance: almost all have, and what was
/// seen stands. Whatever else was seen, or not, is read again.
async fn is_whole(store: &Store, event: &EventRef) -> Result<bool, StoreError> {
    let Some(records) = store.load_event(event).await? else { return Ok(false) };
    let missing = |key: &OperationKey| records.operation(key).is_none();
    let missing: Vec<OperationKey> = records.receipt.operations().into_iter().filter(missing).collect();
    if missing.is_empty() {
        return Ok(!records.receipt.plan.is_empty()); // an empty plan may have been added to
    }
    let effects = store.effects_of(&records.receipt).await?;
    Ok(missing.iter().all(|key| effects.effect(key, None).is_some()))
}

/// Gives every operation of a receipt that has neither effect nor record its first record, due now.
/// Returns how many there were.
async fn examine(app: &App, event: &EventRef) -> Result<usize, StoreError> {
    if let Ok(true) = is_whole(&app.store.at_a_glance(), event).await {
        return Ok(0);
    }
    let records = match app.store.load_event(event).await {
        Ok(Some(records)) => records,
        Ok(None) => return Ok(0), // an index entry whose item is gone
        Err(StoreError::Corrupt { .. }) => return pass_unreadable(app, event).await,
        Err(error) => return Err(error),
    };
    let receipt = &records.receipt;
    let missing: Vec<OperationKey> =
        receipt.operations().into_iter().filter(|key| records.operation(key).is_none()).collect();
    if missing.is_empty() || domain::planted::on("plan-dropped-when-a-send-fails") {
        return Ok(0); // PLANTED
    }
    let effects = match app.store.effects_of(receipt).await {
        Ok(effects) => effects,
        // One damaged job must not stop its shard: the consumer will tell a person what it cannot read.
        Err(StoreError::Corrupt { .. }) => EventEffects::default(),
        Err(error) => return Err(error),
    };
    let mut found = 0;
    for key in missing {
        if effects.effect(&key, None).is_some() {
            continue;
        }
        let now_ms = app.clock.now_ms();
        let change = Change {
            state: OperationState::Wait,
            class: Class::NotDispatched,
            note: "no effect two minutes after receipt".to_owned(),
            due_ms: Some(now_ms),
            generation: 1,
            resend: false,
            attempts: 0,
        };
        let record = OperationRecord::next(key, None, change, now_ms, app.random.token());
        app.store.put_operation(&record).await?; // losing to another writer is fine: a record stands
        found += 1;
    }
    Ok(found)
}

/// A receipt that cannot be read gets an open review under its key and is passed.
async fn pass_unreadable(app: &App, event: &EventRef) -> Result<usize, StoreError> {
    review_unreadable(app, event).await.map(|()| 0)
}

async fn send_due(app: &App, shard: u32, report: &mut Report, health: &mut Health) -> Result<(), StoreError> {
    let due = app.store.due_operations(shard, app.clock.now_ms(), DUE_PER_SHARD).await?;
    debug_assert!(due.iter().all(|key| shard_of(&domain::keys::event_pk(&key.event)) == shard), "index shard");
    let mut failed = None;
    for chunk in due.chunks(SIDE_BY_SIDE) {
        for result in join_all(chunk.iter().map(|key| send_one(app, key))).await {
            match result {
                Ok(Sent::Message { waits_since_ms }) => {
                    report.sent += 1;
                    health.waits_since(waits_since_ms, app.clock.now_ms());
                }
                Ok(Sent::Review) => report.reviews += 1,
                Ok(Sent::Nothing) => {}
                Err(error) => failed = failed.or(Some(error)), // one operation never keeps the others
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

enum Sent {
    Message { waits_since_ms: i64 },
    Review,
    Nothing,
}

/// A due operation whose event cannot be read becomes a person's, so that it does not stay due for ever.
async fn give_up_unreadable(app: &App, key: &OperationKey) -> Result<Sent, StoreError> {
    pass_unreadable(app, &key.event).await?;
    let Some(record) = app.store.get_operation(key).await? else { return Ok(Sent::Nothing) };
    let change = Change {
        state: OperationState::Review,
        class: Class::Unreadable,
        note: "the event's receipt cannot be read".to_owned(),
        due_ms: None,
        generation: record.generation,
        resend: true,
        attempts: record.attempts,
    };
    let next = OperationRecord::next(key.clone(), Some(&record), change, app.clock.now_ms(), app.random.token());
    app.put_operation(&next, None).await.map(|_| Sent::Review)
}

/// Sends one due operation with its next generation, then pushes it on with it. Dying between the
/// two is harmless: the next run sends the same generation, which SQS takes as the same message.
async fn send_one(app: &App, key: &OperationKey) -> Result<Sent, StoreError> {
    let records = match app.store.load_event(&key.event).await {
        Ok(Some(records)) => records,
        Ok(None) => return Ok(Sent::Nothing),
        Err(StoreError::Corrupt { .. }) => return give_up_unreadable(app, key).await,
        Err(error) => return Err(error),
    };
    let now_ms = app.clock.now_ms();
    // The index can be late: only the record itself says whether it is due.
    let Some(record) = records.operation(key).filter(|r| r.due_ms.is_some_and(|due| due <= now_ms)) else {
        return Ok(Sent::Nothing);
    };
    let generation = record.generation + 1;
    let (state, class, note, due_ms) = match exhausted(record, &app.policy, now_ms) {
        Some(NoEffect::Review(class, note)) => (OperationState::Review, class, note, None),
        _ => {
            let resend = now_ms + app.policy.resend_ms;
            (OperationState::Wait, record.class, record.note.clone(), Some(resend))
        }
    };
    let sent = state == OperationState::Review
        || app.dispatch(&[message(&records.receipt, key.clone(), generation)]).await > 0;
    // A queue that cannot be reached must not keep the other consumer's operations from their turn:
    // the same generation waits a little.
    let (generation, due_ms) = if sent {
        (generation, due_ms)
    } else {
        (record.generation, Some(now_ms + app.policy.backoff_ms(2, app.random.next_u64())))
    };
    let change = Change { state, class, note, due_ms, generation, resend: true, attempts: record.attempts };
    let next = OperationRecord::next(key.clone(), Some(record), change, now_ms, app.random.token());
    app.put_operation(&next, Some(records.receipt.envelope_of(&key.item))).await?;
    Ok(match state {
        OperationState::Review => Sent::Review,
        _ if sent => Sent::Message { waits_since_ms: record.waiting_since_ms },
        _ => Sent::Nothing,
    })
}
