//! What a person or our own service may do to a job: cancel, extend, adjust, reverse. Each is keyed by
//! its reference: the same content again is 200, other content 409. Actor and reason are recorded in
//! the transaction of what was done.

use domain::decide::cancel::{self, Decision as Cancel};
use domain::decide::posting::Posting;
use domain::decide::{NoEffect, adjust, extend, reverse};
use domain::event::By;
use domain::ids::{JobId, Reference, TenantId};
use domain::job::JobRecords;
use domain::ledger::{Balance, Entry, EntryKind, JobLedger};
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::money::Micros;
use domain::operation::{Class, hex_sha256};
use domain::own::OwnEvent;
use domain::postpaid::Back;
use runtime::App;
use runtime::charges::Refundable;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use runtime::retry::Again;
use serde::Deserialize;
use store::{Commit, ControlRequest, StoreError};

use crate::{body, check_reason, id, jobs, unavailable};

/// What is asked of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cancel,
    Extend,
    Adjust,
    Reverse,
}

impl Kind {
    /// The last part of the path.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Cancel, Self::Extend, Self::Adjust, Self::Reverse].into_iter().find(|kind| kind.as_str() == text)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Extend => "extend",
            Self::Adjust => "adjust",
            Self::Reverse => "reverse",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    reference: String,
    amount: Option<String>,
    reason: Option<String>,
}

/// A checked request.
struct Asked {
    kind: Kind,
    amount: Micros,
    by: By,
    request: ControlRequest,
}

fn check(kind: Kind, event: &GatewayEvent, tenant: TenantId, job: &JobId, now_ms: i64) -> Result<Asked, Problem> {
    let asked: Body = body(event)?;
    let reference: Reference = id(&asked.reference)?;
    let amount = match (kind, asked.amount.as_deref()) {
        (Kind::Cancel, None) => Ok(Micros::ZERO),
        (Kind::Cancel, Some(_)) => return Err(Problem::invalid("amount: a cancellation has none")),
        (_, None) => return Err(Problem::bad_request("missing field `amount`")),
        (Kind::Adjust, Some(text)) => Micros::parse(text), // negative pays back
        (_, Some(text)) => Micros::parse(text).and_then(Micros::positive),
    };
    let amount = amount.map_err(|error| Problem::invalid(format!("amount: {error}")))?;
    if kind == Kind::Adjust && amount == Micros::ZERO {
        return Err(Problem::invalid("amount: an adjustment by zero does nothing"));
    }
    let reason = asked.reason.unwrap_or_default();
    check_reason(&reason)?;
    let by = By::control(kind.as_str(), &reference).map_err(|error| Problem::invalid(error.to_string()))?;
    let content_hash = hex_sha256(&format!("{amount}|{reason}"));
    let (actor, subject, kind_name) = (event.actor(), job.to_string(), kind.as_str().to_owned());
    let request =
        ControlRequest { kind: kind_name, tenant, subject, reference, actor, reason, content_hash, created_ms: now_ms };
    Ok(Asked { kind, amount, by, request })
}

/// Carries out one action on a job.
pub(crate) async fn act(
    app: &App, event: &GatewayEvent, tenant: &str, job: &str, kind: Kind,
) -> Result<GatewayResponse, Problem> {
    let (tenant, job): (TenantId, JobId) = (id(tenant)?, id(job)?);
    let asked = check(kind, event, tenant.clone(), &job, app.clock.now_ms())?;
    let mut again = Again::new(app);
    let mut answer_lost = false;
    for _ in 0..DECIDE_AGAIN_LIMIT {
        if let Some(stands) = app.store.get_request(&asked.request).await.map_err(unavailable)? {
            if stands.content_hash != asked.request.content_hash {
                return Err(Problem::conflict("this reference asked for something else before: use another reference"));
            }
            // Our own commit whose answer was lost is found here in a later round.
            let status = if answer_lost && stands.actor == asked.request.actor { 201 } else { 200 };
            return jobs::shown(app, &tenant, &job, status).await;
        }
        match act_once(app, &tenant, &job, &asked).await {
            Ok(Commit::Committed) => return jobs::shown(app, &tenant, &job, 201).await,
            Ok(Commit::ConditionFailed(_) | Commit::Conflict) => app.pause().await,
            Err(Failure::Problem(problem)) => return Err(problem),
            Err(Failure::Store(error)) => {
                again.after(error).await.map_err(unavailable)?;
                answer_lost = true;
            }
        }
    }
    Err(Problem::unavailable())
}

enum Failure {
    Problem(Problem),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<NoEffect> for Failure {
    fn from(verdict: NoEffect) -> Self {
        Self::Problem(match verdict {
            NoEffect::Review(Class::FundsShort, note) => {
                Problem::new(402, "funds-short", "The wallet has too little", note)
            }
            NoEffect::Review(_, note)
            | NoEffect::Noop(_, note)
            | NoEffect::Wait(_, note)
            | NoEffect::Until(_, note, _) => not_possible(note),
            NoEffect::Done => not_possible("this was done before".to_owned()),
        })
    }
}

fn not_possible(note: String) -> Problem {
    Problem::new(409, "not-possible", "The job does not allow this now", note)
}

/// One round: the balance first, then the ledger, then the job; then the pure decision and its commit.
async fn act_once(app: &App, tenant: &TenantId, job: &JobId, asked: &Asked) -> Result<Commit, Failure> {
    let unknown = || Failure::Problem(Problem::not_found(format!("job {:?} was never submitted", job.as_str())));
    let submitted = app.store.get_job(tenant, job).await?.ok_or_else(unknown)?;
    let balance = app.store.get_balance(tenant, &submitted.wallet).await?.ok_or_else(unknown)?;
    let ledger = app.store.load_ledger(tenant, job).await?;
    let records = app.store.load_job(tenant, job).await?.ok_or_else(unknown)?;
    let balance = match domain::planted::on("balance-read-last") {
        true => app.store.get_balance(tenant, &submitted.wallet).await?.ok_or_else(unknown)?, // PLANTED
        false => balance,
    };
    match asked.kind {
        Kind::Cancel => cancel(app, asked, &records, &ledger, &balance).await,
        Kind::Extend => extend(app, asked, &records, &ledger, &balance).await,
        Kind::Adjust => {
            let entry = entry(app, asked, EntryKind::Adjust, &records);
            if ledger.adjust(asked.request.reference.as_str()).is_some() {
                return Err(Failure::Problem(not_possible("a provider's correction has this reference".to_owned())));
            }
            if !ledger.has_capture() {
                return Err(Failure::Problem(not_possible("nothing was captured that could be adjusted".to_owned())));
            }
            let back = match asked.amount < Micros::ZERO {
                true => back(app, &balance, &ledger).await?,
                false => None,
            };
            let posting = adjust::post(entry, &asked.request.reference, &ledger, &balance, back.as_ref())?;
            post(app, asked, posting, &balance).await
        }
        Kind::Reverse => {
            let entry = entry(app, asked, EntryKind::Reverse, &records);
            let back = back(app, &balance, &ledger).await?;
            let posting = reverse::post(entry, &asked.request.reference, &ledger, &balance, back.as_ref())?;
            post(app, asked, posting, &balance).await
        }
    }
}

/// The charge that money of a postpaid job goes back to.
async fn back(app: &App, balance: &Balance, ledger: &JobLedger) -> Result<Option<Back>, Failure> {
    match app.refundable(balance, ledger).await? {
        Refundable::Nothing => Ok(None),
        Refundable::To(back) => Ok(Some(back)),
        Refundable::Not(why) => Err(Failure::Problem(not_possible(why.to_owned()))),
    }
}

/// Commits a posting with its request and what is told of it.
async fn post(app: &App, asked: &Asked, posting: Posting, balance: &Balance) -> Result<Commit, Failure> {
    let posting = app.telling(posting, balance).await?;
    let committed = app.store.commit_all(&[&posting], Some(&asked.request)).await?;
    if committed == Commit::Committed {
        app.send_posted(&posting).await;
    }
    Ok(committed)
}

fn entry(app: &App, asked: &Asked, kind: EntryKind, records: &JobRecords) -> Entry {
    let entry = Entry::of_job(kind, &records.job, asked.by.to_string(), app.clock.now_ms());
    let price_version = Some(records.job.price.version.clone());
    Entry { amount: asked.amount, reason: asked.request.reason.clone(), price_version, ..entry }
}

async fn cancel(
    app: &App, asked: &Asked, records: &JobRecords, ledger: &JobLedger, balance: &Balance,
) -> Result<Commit, Failure> {
    match cancel::decide(&asked.by, &asked.request.reason, records, ledger, balance, app.clock.now_ms()) {
        Cancel::Commit(posting) => post(app, asked, *posting, balance).await,
        Cancel::Transition(transition) => {
            let job = &records.job;
            let told = app.tell([OwnEvent::transition(&job.tenant, &job.job, &job.wallet, &transition)]).await?;
            let committed = app.store.commit_transition(job, &transition, &asked.request, &told).await?;
            if committed == Commit::Committed {
                app.send_told(&told).await;
            }
            Ok(committed)
        }
        Cancel::Refuse(note) => Err(Failure::Problem(not_possible(note))),
    }
}

async fn extend(
    app: &App, asked: &Asked, records: &JobRecords, ledger: &JobLedger, balance: &Balance,
) -> Result<Commit, Failure> {
    let now_ms = app.clock.now_ms();
    let life_ms = app.profiles.get(records.job.provider.as_str()).map_or(0, |profile| profile.hold_life_ms);
    let (reference, by) = (&asked.request.reference, asked.by.to_string());
    let expires_ms = now_ms.saturating_add(life_ms);
    let request = extend::Request { reference, amount: asked.amount, expires_ms, by: &by, now_ms };
    match extend::decide(&request, records, ledger, balance) {
        extend::Decision::Commit(extension, delta) => {
            let delta = app.watching((&records.job.tenant, &records.job.wallet), balance, *delta).await?;
            let committed = app.store.commit_extension(&records.job, &extension, &delta, Some(&asked.request)).await?;
            if committed == Commit::Committed {
                app.send_told(&delta.low.told).await;
            }
            Ok(committed)
        }
        extend::Decision::None(verdict) => Err(verdict.into()),
    }
}
