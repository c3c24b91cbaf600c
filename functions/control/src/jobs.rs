//! Jobs: submit with a hold, and show with everything that became of it.
//!
//! A submission is classified in this order: the same content again is 200, other content 409, a
//! taken reference 409, funds short 402.

use domain::booking::BookingVersion;
use domain::ids::{BookingId, JobId, TenantId};
use domain::job::{Extension, Job, JobRecords, Transition};
use domain::ledger::{Account, Entry, EntryKind, JobLedger, Line};
use domain::limits::{DECIDE_AGAIN_LIMIT, SIDE_BY_SIDE};
use domain::money::Micros;
use domain::postpaid::Postpaid;
use domain::status::job_status;
use domain::submit::{SubmitJob, hold_delta};
use futures_util::future::join_all;
use runtime::App;
use runtime::charges::Asked;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use runtime::retry::Again;
use serde_json::{Value, json};
use store::{Attached, Submitted};

use crate::{body, id, refused, unavailable};

pub(crate) async fn submit(
    app: &App, event: &GatewayEvent, tenant: &str, job: &str,
) -> Result<GatewayResponse, Problem> {
    let (tenant, job): (TenantId, JobId) = (id(tenant)?, id(job)?);
    let request = body::<SubmitJob>(event)?;
    let asked = request.job(tenant, job, &app.profiles, &app.prices, app.clock.now_ms()).map_err(refused)?;
    let mut again = Again::new(app);
    for _ in 0..DECIDE_AGAIN_LIMIT {
        if let Some(stands) = app.store.get_job(&asked.tenant, &asked.job).await.map_err(unavailable)? {
            return submitted_before(app, &request, &stands, &asked).await;
        }
        match try_submit(app, &request, &asked).await {
            Ok(Some(response)) => return Ok(response),
            Ok(None) => app.pause().await,
            Err(Failure::Problem(problem)) => return Err(problem),
            Err(Failure::Store(error)) => again.after(error).await.map_err(unavailable)?,
        }
    }
    Err(Problem::unavailable())
}

enum Failure {
    Problem(Problem),
    Store(store::StoreError),
}

impl From<store::StoreError> for Failure {
    fn from(error: store::StoreError) -> Self {
        Self::Store(error)
    }
}

/// One try; `None` means that another writer came between.
async fn try_submit(app: &App, request: &SubmitJob, asked: &Job) -> Result<Option<GatewayResponse>, Failure> {
    let problem = |problem| Err(Failure::Problem(problem));
    let Some(balance) = app.store.get_balance(&asked.tenant, &asked.wallet).await? else {
        let detail = format!("wallet {:?} does not exist: create it first", asked.wallet.as_str());
        return problem(Problem::new(404, "unknown-wallet", "The wallet does not exist", detail));
    };
    if balance.currency != asked.currency() {
        let detail = format!(
            "model {:?} is priced in {}, the wallet holds {}",
            asked.model().as_str(),
            asked.currency(),
            balance.currency
        );
        return problem(Problem::invalid(detail));
    }
    let asked = &request.on(&balance, asked.clone()).map_err(|error| Failure::Problem(refused(error)))?;
    if let Some(reference) = &asked.provider_ref
        && let Some(other) = app.store.get_ref(&asked.provider, reference).await?
        && (&other.tenant, &other.job) != (&asked.tenant, &asked.job)
    {
        return problem(Problem::conflict(REF_TAKEN));
    }
    if !balance.covers(asked.hold) {
        let detail = format!(
            "the hold is {} {} and {} is available: fund the wallet",
            asked.hold, balance.currency, balance.available
        );
        return problem(Problem::new(402, "funds-short", "The wallet has too little", detail));
    }
    let delta = app.watching((&asked.tenant, &asked.wallet), &balance, hold_delta(asked, &balance)).await?;
    let outgoing = app.authorising(asked, &balance)?;
    match app.store.submit_job(asked, &delta, outgoing.as_slice()).await? {
        Submitted::Created => {
            app.send_told(&delta.low.told).await;
            app.send_outgoing(outgoing.as_slice()).await;
            Ok(Some(GatewayResponse::json(201, &submission_json(asked))))
        }
        // Read again and classify in the stated order.
        Submitted::ConditionFailed { .. } | Submitted::Conflict => Ok(None),
    }
}

/// The job exists: the same content is 200; a reference that came later may be attached once.
async fn submitted_before(
    app: &App, request: &SubmitJob, stands: &Job, asked: &Job,
) -> Result<GatewayResponse, Problem> {
    if stands.request_hash == asked.request_hash {
        return Ok(GatewayResponse::json(200, &submission_json(stands)));
    }
    let without_ref = SubmitJob { provider_job_ref: None, ..request.clone() };
    let bare = without_ref.job(asked.tenant.clone(), asked.job.clone(), &app.profiles, &app.prices, app.clock.now_ms());
    let bare = bare.map_err(refused)?;
    let (None, Some(reference), true) =
        (&stands.provider_ref, &asked.provider_ref, bare.request_hash == stands.request_hash)
    else {
        return Err(Problem::conflict(
            "this job was submitted with other content: look at it with GET, and use another job id for another job",
        ));
    };
    match app.store.attach_ref(stands, reference).await.map_err(unavailable)? {
        Attached::Ours => Ok(GatewayResponse::json(200, &submission_json(stands))),
        Attached::Other => Err(Problem::conflict("this job has another provider_job_ref: it is attached once")),
        Attached::Taken => Err(Problem::conflict(REF_TAKEN)),
    }
}

/// Two jobs never share a reference.
const REF_TAKEN: &str =
    "this provider_job_ref already names another job: give the reference of this job, or leave it out";

fn submission_json(job: &Job) -> Value {
    let mut shown = json!({
        "tenant": job.tenant, "job": job.job, "provider": job.provider, "provider_job_ref": job.provider_ref,
        "wallet": job.wallet, "hold": job.hold, "currency": job.currency(), "model": job.model(),
        "price_version": job.price.version, "expires_at": timestamp(job.expires_ms),
    });
    if job.authorised != Micros::ZERO {
        shown["authorised"] = json!(job.authorised);
    }
    shown
}

/// RFC 3339 in UTC, for people and machines.
pub(crate) fn timestamp(ms: i64) -> String {
    domain::time::rfc3339(ms)
}

pub(crate) async fn show(app: &App, tenant: &str, job: &str) -> Result<GatewayResponse, Problem> {
    shown(app, &id(tenant)?, &id(job)?, 200).await
}

/// The job with everything that became of it, under a status code.
pub(crate) async fn shown(app: &App, tenant: &TenantId, job: &JobId, status: u16) -> Result<GatewayResponse, Problem> {
    let records = app.store.load_job(tenant, job).await.map_err(unavailable)?;
    let records = records.ok_or_else(|| Problem::not_found(format!("job {:?} was never submitted", job.as_str())))?;
    let ledger = app.store.load_ledger(tenant, job).await.map_err(unavailable)?;
    let progress = app.store.get_progress(tenant, job).await.map_err(unavailable)?;
    let mut shown = submission_json(&records.job);
    let postpaid = postpaid_of(app, &records.job, &ledger).await?;
    let (settlements, mut done) = settlements_json(app, &ledger, postpaid.as_ref()).await?;
    if records.job.authorised != Micros::ZERO {
        let (authorisation, ended) = authorisation_json(app, &records.job, &ledger, postpaid.as_ref()).await?;
        shown["authorisation"] = authorisation;
        done &= ended;
    }
    shown["status"] = json!(job_status(&records, &ledger, done));
    shown["submitted_at"] = json!(timestamp(records.job.created_ms));
    shown["expires_at"] = json!(timestamp(records.expires_ms()));
    shown["request_id"] = json!(records.job.request_id);
    shown["metadata"] = json!(records.job.metadata);
    shown["progress"] = json!(progress.map(|p| json!({"sequence": p.sequence, "type": p.event_type, "by": p.by})));
    shown["extensions"] = extensions_json(&records);
    shown["transitions"] = transitions_json(&records);
    shown["settlements"] = json!(settlements);
    Ok(GatewayResponse::json(status, &shown))
}

/// The terms of a job's wallet at its payment provider; read only where something of the job goes there.
async fn postpaid_of(app: &App, job: &Job, ledger: &JobLedger) -> Result<Option<Postpaid>, Problem> {
    if job.authorised == Micros::ZERO && !entries(ledger).any(|entry| charged(entry).is_some()) {
        return Ok(None);
    }
    let balance = app.store.get_balance(&job.tenant, &job.wallet).await.map_err(unavailable)?;
    Ok(balance.and_then(|balance| balance.postpaid))
}

/// What became of a job's authorisation, and of giving it up where the job's close asked for that; and whether nothing is held
/// any more that the close does not take, as far as is known.
async fn authorisation_json(
    app: &App, job: &Job, ledger: &JobLedger, postpaid: Option<&Postpaid>,
) -> Result<(Value, bool), Problem> {
    let corrupt = |_| unavailable(store::StoreError::Corrupt { what: "authorisation" });
    let Some(postpaid) = postpaid else { return Ok((Value::Null, true)) };
    let key = domain::authorisation::key_of(job, &postpaid.to).map_err(corrupt)?;
    let authorised = app.asked(key).await.map_err(unavailable)?;
    let mut shown = asked_json(&authorised);
    let voided = match &ledger.close {
        Some(close) => app.voided_by(close, postpaid).await.map_err(unavailable)?,
        None => None,
    };
    shown["void"] = json!(voided.as_ref().map(|void| {
        let mut one = asked_json(void);
        one["done"] = json!(void.done);
        one
    }));
    // What was declined, and later said to stand after all, may be held until a person has looked.
    let clear = authorised.done || !authorised.contradicted;
    Ok((shown, clear && voided.is_none_or(|void| void.done)))
}

fn extensions_json(records: &JobRecords) -> Value {
    let one = |e: &Extension| json!({"reference": e.reference, "amount": e.amount, "by": e.by, "at": timestamp(e.created_ms)});
    records.extensions.iter().map(one).collect()
}

fn transitions_json(records: &JobRecords) -> Value {
    let one = |t: &Transition| json!({"version": t.version, "outcome": t.outcome, "usage": t.usage, "by": t.by, "at": timestamp(t.created_ms)});
    records.transitions.iter().map(one).collect()
}

/// What an entry adds to what the job costs; a reversal takes nothing from it.
fn captured(entry: &Entry) -> Micros {
    if entry.kind == EntryKind::Reverse { Micros::ZERO } else { entry.amount }
}

/// Of a job on a postpaid wallet: what was charged in whole minor units, or, negative, given back.
fn charged(entry: &Entry) -> Option<Micros> {
    let postpaid = |line: &Line| matches!(line.account, Account::Receivable | Account::Rounding);
    entry.lines.iter().any(postpaid).then(|| domain::postpaid::moved(entry))
}

/// A job's entries, in the order in which they are shown.
fn entries(ledger: &JobLedger) -> impl Iterator<Item = &Entry> {
    ledger.close.iter().chain(&ledger.late).chain(&ledger.adjusts).chain(&ledger.reverses)
}

/// The settlements, on a postpaid wallet with what became of each charge and refund; and whether all of those are known to
/// be done.
async fn settlements_json(
    app: &App, ledger: &JobLedger, postpaid: Option<&Postpaid>,
) -> Result<(Vec<Value>, bool), Problem> {
    let one = async |entry: &Entry| {
        let mut shown = settlement_json(entry);
        let asked = match postpaid.filter(|_| charged(entry).is_some()) {
            Some(terms) => app.asked_by(entry, terms).await.map_err(unavailable)?,
            None => None,
        };
        shown["charge"] = json!(asked.as_ref().map(asked_json));
        Ok((shown, asked.is_none_or(|asked| asked.done)))
    };
    let entries: Vec<&Entry> = entries(ledger).collect();
    let (mut shown, mut done) = (Vec::new(), true);
    for some in entries.chunks(SIDE_BY_SIDE) {
        for seen in join_all(some.iter().map(|entry| one(entry))).await {
            let (one, is_done) = seen?;
            shown.push(one);
            done &= is_done;
        }
    }
    Ok((shown, done))
}

/// What became of something that was asked of the payment provider.
fn asked_json(asked: &Asked) -> Value {
    let mut shown = json!({"event": asked.event, "state": asked.state, "payment": asked.payment});
    if asked.contradicted {
        shown["contradicted"] = json!(true);
    }
    shown
}

fn settlement_json(e: &Entry) -> Value {
    json!({
        "kind": e.kind, "version": e.version, "amount": e.amount, "captured": captured(e), "released": e.released,
        "reference": e.reference, "reason": e.reason, "uncharged": e.uncharged, "currency": e.currency, "price_version": e.price_version,
        "by": e.by, "at": timestamp(e.created_ms), "sequence": e.link.as_ref().map(|l| l.sequence),
        "charged": charged(e),
    })
}

/// `GET .../bookings/{booking}`: the versions that were taken in, each with the event that asked, and the job.
pub(crate) async fn booking(app: &App, tenant: &str, booking: &str) -> Result<GatewayResponse, Problem> {
    let (tenant, booking): (TenantId, BookingId) = (id(tenant)?, id(booking)?);
    let versions = app.store.load_booking(&tenant, &booking).await.map_err(unavailable)?;
    let Some(first) = versions.first() else {
        return Err(Problem::not_found(format!("no job was made from booking {:?}", booking.as_str())));
    };
    let mut shown = Vec::new();
    for version in &versions {
        let mut one =
            json!({"version": version.version, "by": version.by.to_string(), "at": timestamp(version.created_ms)});
        if version.board {
            one["board"] = on_board(app, version).await?;
        }
        shown.push(one);
    }
    Ok(GatewayResponse::json(200, &json!({"tenant": tenant, "booking": booking, "job": first.job, "versions": shown})))
}

/// What became of a version on its job board: the event of our own, its intent's state, and the board's id of the job.
async fn on_board(app: &App, version: &BookingVersion) -> Result<Value, Problem> {
    let id = domain::board::event_id(version);
    let corrupt = |_| unavailable(store::StoreError::Corrupt { what: "board event" });
    let event = domain::board::operation(&id).map_err(corrupt)?.event;
    let key = domain::board::intent_key(&id).map_err(corrupt)?;
    let intent = app.store.get_intent(&key).await.map_err(unavailable)?;
    let result = intent.as_ref().and_then(|intent| intent.result.as_ref());
    Ok(json!({
        "event": event, "state": intent.as_ref().map(|intent| intent.state),
        "id": result.and_then(|result| result.id.as_deref()),
    }))
}
