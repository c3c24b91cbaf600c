//! What is stuck, how old, whose money, whose turn: counts, oldest age and money at risk by state, per
//! provider and tenant.
//!
//! The work is bounded: of each state at most [`STATUS_ROWS`] rows of each shard are looked at, oldest
//! first. Where that bound was hit, the numbers are lower bounds and `lower_bound` says so; the oldest age
//! is right all the same. Money is counted once per job and state.

use std::collections::{BTreeMap, BTreeSet};

use domain::event::EventRef;
use domain::ids::{JobId, TenantId};
use domain::limits::{BUCKET_MS, EXPIRY_BUCKET_MS, OVERDUE_MS, SHARDS, STATUS_ROWS};
use domain::money::{Currency, Micros};
use domain::operation::OperationState;
use futures_util::future::join_all;
use runtime::App;
use runtime::gateway::GatewayResponse;
use runtime::problem::Problem;
use serde_json::{Value, json};
use store::{Cursor, StoreError};

use crate::jobs::timestamp;
use crate::risk::{Risk, Subject, subject};
use crate::{pauses, reviews, unavailable};

/// Rows read side by side.
const SIDE_BY_SIDE: usize = 25;
/// Minutes, and expiry buckets, that are looked at behind a cursor.
const BUCKETS: i64 = 30;

/// Numbers of one group: a state, a state's provider, a state's tenant.
#[derive(Debug, Default)]
struct Sum {
    count: u64,
    oldest_ms: Option<i64>,
    at_risk: BTreeMap<String, i64>,
    jobs: BTreeSet<(String, String)>,
}

impl Sum {
    fn add(&mut self, since_ms: i64, subject: &Subject) {
        self.count += 1;
        self.oldest_ms = Some(self.oldest_ms.map_or(since_ms, |oldest| oldest.min(since_ms)));
        let Some(Risk { amount, currency, .. }) = subject.risk else { return };
        if let (Some(tenant), Some(job)) = (&subject.tenant, &subject.job)
            && !self.jobs.insert((tenant.to_string(), job.to_string()))
        {
            return; // two operations of one job hang on one hold
        }
        let sum = self.at_risk.entry(currency.code().to_owned()).or_default();
        *sum = sum.saturating_add(amount.get());
    }

    fn json(&self, now_ms: i64) -> Value {
        let money = |(currency, micros): (&String, &i64)| {
            let amount = Micros::new(*micros).ok(); // beyond the largest amount: not told
            Currency::parse(currency).ok().map(|currency| json!({ "currency": currency, "amount": amount }))
        };
        json!({
            "count": self.count, "oldest_at": self.oldest_ms.map(timestamp),
            "oldest_age_s": self.oldest_ms.map(|oldest| (now_ms - oldest).max(0) / 1_000),
            "at_risk": self.at_risk.iter().filter_map(money).collect::<Vec<_>>(),
        })
    }
}

/// One state with its parts.
#[derive(Debug, Default)]
struct State {
    all: Sum,
    providers: BTreeMap<String, Sum>,
    tenants: BTreeMap<String, Sum>,
}

impl State {
    fn add(&mut self, since_ms: i64, provider: Option<&str>, subject: &Subject) {
        self.all.add(since_ms, subject);
        if let Some(provider) = provider {
            self.providers.entry(provider.to_owned()).or_default().add(since_ms, subject);
        }
        if let Some(tenant) = &subject.tenant {
            self.tenants.entry(tenant.to_string()).or_default().add(since_ms, subject);
        }
    }
}

/// All states, and which of them are lower bounds.
#[derive(Debug, Default)]
struct Board {
    states: BTreeMap<String, State>,
    bounded: BTreeSet<String>,
}

impl Board {
    fn state(&mut self, name: &str) -> &mut State {
        self.states.entry(name.to_owned()).or_default()
    }

    fn json(&self, now_ms: i64) -> Value {
        let parts = |name: &str, parts: &BTreeMap<String, Sum>| -> Vec<Value> {
            let part = |(key, sum): (&String, &Sum)| {
                let mut shown = sum.json(now_ms);
                shown[name] = json!(key);
                shown
            };
            parts.iter().map(part).collect()
        };
        let state = |(name, state): (&String, &State)| {
            let mut shown = state.all.json(now_ms);
            shown["state"] = json!(name);
            shown["next"] = json!(next(name));
            shown["lower_bound"] = json!(self.bounded.iter().any(|bounded| name.starts_with(bounded.as_str())));
            shown["providers"] = json!(parts("provider", &state.providers));
            shown["tenants"] = json!(parts("tenant", &state.tenants));
            shown
        };
        self.states.iter().map(state).collect()
    }
}

/// Whose turn it is.
fn next(state: &str) -> &'static str {
    match state {
        "waiting" => "tried again by itself when it is due",
        "due" => "sent by the relay's next run",
        "overdue" => "should have been sent: look at the relay",
        "received" => "examined by the relay two minutes after arrival",
        "hold-expired" => "released by the relay's next run",
        _ if state.starts_with("paused:") => "resumed when the switch is turned off",
        _ => "a person decides: hookledger reviews",
    }
}

/// `GET /control/status`.
pub(crate) async fn show(app: &App) -> Result<GatewayResponse, Problem> {
    let now_ms = app.clock.now_ms();
    let mut board = Board::default();
    let switches = app.store.get_switches().await.map_err(unavailable)?;
    waiting(app, &mut board, now_ms).await.map_err(unavailable)?;
    for name in switches.paused.keys().map(String::as_str).chain(switches.to_resume()) {
        parked(app, &mut board, name).await.map_err(unavailable)?;
    }
    in_review(app, &mut board).await.map_err(unavailable)?;
    let relay = receipts(app, &mut board, now_ms).await.map_err(unavailable)?;
    holds(app, &mut board, now_ms).await.map_err(unavailable)?;
    let body = json!({
        "at": timestamp(now_ms), "states": board.json(now_ms), "pauses": pauses::all(&switches), "relay": relay,
    });
    Ok(GatewayResponse::json(200, &body))
}

/// Operations that wait: not due yet, due, or due for longer than two runs of the relay.
async fn waiting(app: &App, board: &mut Board, now_ms: i64) -> Result<(), StoreError> {
    let mut keys = Vec::new();
    let reads = (0..SHARDS).map(|shard| app.store.due_operations(shard, i64::MAX, STATUS_ROWS));
    for shard in join_all(reads).await {
        let shard = shard?;
        if shard.len() == STATUS_ROWS {
            board.bounded.extend(["waiting", "due", "overdue"].map(str::to_owned));
        }
        keys.extend(shard);
    }
    for chunk in keys.chunks(SIDE_BY_SIDE) {
        let reads = chunk.iter().map(async |key| {
            let Some(records) = readable(app.store.load_event(&key.event).await)? else { return Ok(None) };
            let Some(record) = records.operation(key).filter(|r| r.state == OperationState::Wait).cloned() else {
                return Ok(None);
            };
            Ok::<_, StoreError>(Some((record, subject(app, key, &records.receipt).await?)))
        });
        for (key, read) in chunk.iter().zip(join_all(reads).await) {
            let Some((record, subject)) = read? else { continue };
            let state = match record.due_ms {
                Some(due_ms) if due_ms + OVERDUE_MS < now_ms => "overdue",
                Some(due_ms) if due_ms <= now_ms => "due",
                _ => "waiting",
            };
            board.state(state).add(record.waiting_since_ms, Some(key.event.provider.as_str()), &subject);
        }
    }
    Ok(())
}

/// A record that cannot be read is a review's, and no reason to show nothing.
fn readable<T>(read: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        other => other,
    }
}

/// What a switch holds back, since its arrival.
async fn parked(app: &App, board: &mut Board, name: &str) -> Result<(), StoreError> {
    let state = format!("paused:{name}");
    for shard in join_all((0..SHARDS).map(|shard| app.store.parked(name, shard, STATUS_ROWS))).await {
        let shard = shard?;
        if shard.len() == STATUS_ROWS {
            board.bounded.insert(state.clone());
        }
        for chunk in shard.chunks(SIDE_BY_SIDE) {
            let reads = chunk.iter().map(async |parked| {
                let Some(records) = readable(app.store.load_event(&parked.key.event).await)? else { return Ok(None) };
                let held = records.operation(&parked.key).is_some_and(|r| r.parked.as_deref() == Some(name));
                if !held {
                    return Ok(None);
                }
                subject(app, &parked.key, &records.receipt).await.map(Some)
            });
            for (parked, subject) in chunk.iter().zip(join_all(reads).await) {
                let Some(subject) = subject? else { continue };
                let provider = parked.key.event.provider.as_str();
                board.state(&state).add(parked.arrival_ms, Some(provider), &subject);
            }
        }
    }
    Ok(())
}

/// Reviews by reason, since they are a person's.
async fn in_review(app: &App, board: &mut Board) -> Result<(), StoreError> {
    for shard in join_all((0..SHARDS).map(|shard| app.store.review_rows(shard, None, STATUS_ROWS))).await {
        let shard = shard?;
        if shard.len() == STATUS_ROWS {
            board.bounded.insert("review:".to_owned());
        }
        for chunk in shard.chunks(SIDE_BY_SIDE) {
            for review in join_all(chunk.iter().map(|row| reviews::look(app, row))).await {
                let Some(review) = review? else { continue };
                let provider = review.id.as_ref().and_then(|id| id.event()).map(|event| event.provider.as_str());
                let state = format!("review:{}", review.reason);
                board.state(&state).add(review.row.since_ms, provider, &review.subject);
            }
        }
    }
    Ok(())
}

/// Receipts that the relay has not examined yet, and how far its cursors are behind.
async fn receipts(app: &App, board: &mut Board, now_ms: i64) -> Result<Value, StoreError> {
    let mut oldest = None;
    for shard in join_all((0..SHARDS).map(|shard| unexamined(app, shard, now_ms))).await {
        let Some((cursor, events, whole)) = shard? else { continue };
        oldest = Some(oldest.map_or(cursor, |oldest: i64| oldest.min(cursor)));
        if !whole {
            board.bounded.insert("received".to_owned());
        }
        for (minute, event) in events {
            let provider = Some(event.provider.as_str());
            board.state("received").add(minute * BUCKET_MS, provider, &Subject::default());
        }
    }
    let at = oldest.map(|minute| minute * BUCKET_MS);
    Ok(json!({ "examined_up_to": at.map(timestamp), "lag_s": at.map(|at| (now_ms - at).max(0) / 1_000) }))
}

/// A shard's cursor over receipts, the oldest [`STATUS_ROWS`] behind it with their minutes, and whether that is
/// all.
async fn unexamined(
    app: &App, shard: u32, now_ms: i64,
) -> Result<Option<(i64, Vec<(i64, EventRef)>, bool)>, StoreError> {
    let this = now_ms.div_euclid(BUCKET_MS);
    let Some(cursor) = app.store.cursor(Cursor::Receipts, shard).await? else { return Ok(None) };
    let until = this.min(cursor + BUCKETS - 1);
    let mut found = Vec::new();
    for minute in cursor..=until {
        let room = STATUS_ROWS - found.len();
        let events = app.store.first_receipts_in(minute, shard, room).await?;
        let full = events.len() == room;
        found.extend(events.into_iter().map(|event| (minute, event)));
        if full {
            return Ok(Some((cursor, found, false)));
        }
    }
    Ok(Some((cursor, found, until == this)))
}

/// The jobs of a shard's oldest [`STATUS_ROWS`] expiries behind the cursor, and whether that is all.
async fn expired(app: &App, shard: u32, now_ms: i64) -> Result<(Vec<(TenantId, JobId)>, bool), StoreError> {
    let this = now_ms.div_euclid(EXPIRY_BUCKET_MS);
    let Some(cursor) = app.store.cursor(Cursor::Expiry, shard).await? else { return Ok((Vec::new(), true)) };
    let until = this.min(cursor + BUCKETS - 1);
    let (mut found, mut room) = (Vec::new(), STATUS_ROWS);
    for bucket in cursor..=until {
        let (jobs, rows) = app.store.first_jobs_expiring(bucket, shard, room).await?;
        found.extend(jobs);
        if rows >= room {
            return Ok((found, false));
        }
        room -= rows;
    }
    Ok((found, until == this))
}

/// Open holds past their expiry that the relay has not come to yet.
async fn holds(app: &App, board: &mut Board, now_ms: i64) -> Result<(), StoreError> {
    let mut jobs: Vec<(TenantId, JobId)> = Vec::new();
    for shard in join_all((0..SHARDS).map(|shard| expired(app, shard, now_ms))).await {
        let (found, whole) = shard?;
        if !whole {
            board.bounded.insert("hold-expired".to_owned());
        }
        jobs.extend(found);
    }
    for (tenant, job) in jobs {
        let Some(records) = readable(app.store.load_job(&tenant, &job).await)? else { continue };
        let expires_ms = records.expires_ms();
        if now_ms <= expires_ms || !records.transitions.is_empty() {
            continue; // what ended is its settlement's
        }
        let Some(ledger) = readable(app.store.load_ledger(&tenant, &job).await.map(Some))? else { continue };
        if ledger.close.is_some() {
            continue;
        }
        let risk = records.hold().ok().map(|amount| Risk { amount, currency: records.job.currency(), of: "hold" });
        let provider = records.job.provider.clone();
        let subject = Subject { tenant: Some(tenant), job: Some(job), risk, holds: true, ..Subject::default() };
        board.state("hold-expired").add(expires_ms, Some(provider.as_str()), &subject);
    }
    Ok(())
}
