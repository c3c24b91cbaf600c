//! Carrying out a case's action: on the ordinary path, with the ordinary keys and conditions, from fresh reads. Money and
//! the case's resolution commit in one transaction.

mod intents;
mod money;

use domain::decide::NoEffect;
use domain::envelope::Envelope;
use domain::event::{EventId, EventRef};
use domain::ids::{ItemId, Provider};
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::operation::{Change, Class, OperationKey, OperationName, OperationRecord, OperationState};
use domain::receipt::{Planned, Receipt};
use domain::reconcile::{Action, Case, CaseClass, CaseState, Decision, Resolution, Subject};
use runtime::App;
use runtime::retry::Again;
use store::{Commit, StoreError};

/// What an automatic action came to.
pub(crate) enum Done {
    /// It was carried out.
    Did(String),
    /// There was nothing left to do.
    Gone,
}

/// Why a case is not resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No such case.
    #[error("there is no such case")]
    Unknown,
    /// The action cannot be carried out; the text says why and what to do.
    #[error("{0}")]
    NotPossible(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(crate) fn not_possible(why: impl Into<String>) -> ResolveError {
    ResolveError::NotPossible(why.into())
}

impl From<NoEffect> for ResolveError {
    fn from(verdict: NoEffect) -> Self {
        match verdict {
            NoEffect::Review(_, note)
            | NoEffect::Noop(_, note)
            | NoEffect::Wait(_, note)
            | NoEffect::Until(_, note, _) => Self::NotPossible(note),
            NoEffect::Done => not_possible("this was done before"),
        }
    }
}

/// What one round came to.
pub(crate) enum Round {
    /// The case is resolved.
    Resolved,
    /// Another writer came between: read again and decide again.
    Again,
}

impl From<Commit> for Round {
    fn from(commit: Commit) -> Self {
        match commit {
            Commit::Committed => Self::Resolved,
            Commit::ConditionFailed(_) | Commit::Conflict => Self::Again,
        }
    }
}

/// What a person asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Applied or dismissed.
    pub resolution: Resolution,
    /// The caller's identity.
    pub actor: &'a str,
    /// Why.
    pub reason: &'a str,
    /// The caller's own key, if one was given.
    pub reference: Option<&'a str>,
}

/// Applies or dismisses an open case; a case that is resolved stays as it is and is given back. Whoever asks has to look
/// whose decision it is: another caller may have come first.
///
/// # Errors
/// [`ResolveError`].
pub async fn resolve(app: &App, id: &str, asked: Asked<'_>) -> Result<Case, ResolveError> {
    let resolution = asked.resolution;
    let mut again = Again::new(app);
    for _ in 0..DECIDE_AGAIN_LIMIT {
        let case = app.store.get_case(id).await?.ok_or(ResolveError::Unknown)?;
        if case.state == CaseState::Resolved {
            return Ok(case);
        }
        let (actor, reason, note) = (asked.actor.to_owned(), asked.reason.to_owned(), String::new());
        let reference = asked.reference.map(str::to_owned);
        let decision = Decision { resolution, actor, reason, reference, note, decided_ms: app.clock.now_ms() };
        let round = match resolution {
            Resolution::Applied => Box::pin(apply(app, &case, decision)).await,
            _ => app.store.resolve_case(&case, &decision).await.map(Round::from).map_err(Into::into),
        };
        match round {
            Ok(Round::Resolved | Round::Again) => app.pause().await, // read back what stands
            Err(ResolveError::Store(error)) => again.after(error).await?,
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Busy { operation: "resolve case", code: "other writers won every time".to_owned() }.into())
}

async fn apply(app: &App, case: &Case, decision: Decision) -> Result<Round, ResolveError> {
    match case.action {
        Action::Retry | Action::Close => {
            let decision = match automatic(app, case).await? {
                Done::Did(note) => Decision { note, ..decision },
                Done::Gone => Decision { resolution: Resolution::Gone, ..decision },
            };
            Ok(app.store.resolve_case(case, &decision).await?.into())
        }
        Action::AskAuthority => money::ask_authority(app, case, decision).await,
        Action::AcceptFromAuthority => match &case.effect {
            Some(effect) => intents::accept(app, case, effect, decision).await,
            None => accept(app, case, decision).await,
        },
        Action::Compensate => money::compensate(app, case, decision).await,
        Action::Rebuild => money::rebuild_balance(app, case, decision).await,
        Action::Person => Err(not_possible(
            "nothing can be done for you here: look at the evidence, put it right, and dismiss the case (or run again)",
        )),
    }
}

/// What is harmless under the ordinary conditions.
pub(crate) async fn automatic(app: &App, case: &Case) -> Result<Done, StoreError> {
    match (&case.subject, case.class) {
        (Subject::Job { tenant, job }, CaseClass::HoldExpired) => {
            let closed = relay::close_expired(app, tenant, job).await?;
            Ok(if closed { Done::Did("the hold was closed by its expiry".to_owned()) } else { Done::Gone })
        }
        (Subject::Operation(key), class) => operation(app, key, class).await,
        _ => Ok(Done::Gone),
    }
}

async fn operation(app: &App, key: &OperationKey, class: CaseClass) -> Result<Done, StoreError> {
    let (now_ms, token) = (app.clock.now_ms(), app.random.token());
    let stands = app.store.get_operation(key).await?;
    let next = match (class, &stands) {
        (CaseClass::NotDispatched, None) => Some(due(key.clone(), now_ms, token)),
        (CaseClass::SettledThere | CaseClass::Stuck, None) => Some(due(key.clone(), now_ms, token)),
        (CaseClass::SettledThere | CaseClass::Stuck, Some(record)) if !record.is_final() && record.parked.is_none() => {
            let note = "reconciled with the destination's own list".to_owned();
            // Its limits of age and attempts count anew, as after a person's retry.
            let next = record.retried(Class::Retried, note, now_ms, token);
            next.map(|next| OperationRecord { waiting_since_ms: now_ms, ..next })
        }
        (CaseClass::StaleRecord, Some(record)) if !record.is_final() => {
            Some(closed(key.clone(), record, now_ms, token))
        }
        (CaseClass::Unsettled, Some(record)) if record.is_final() => {
            record.retried(Class::Retried, "reconciliation found no effect".to_owned(), now_ms, token)
        }
        _ => None,
    };
    let Some(next) = next else { return Ok(Done::Gone) };
    app.store.put_operation(&next).await?; // losing to another writer is fine: it knew more
    Ok(Done::Did(format!("{} of {} is now {:?}", key.name, key.event, next.state).to_lowercase()))
}

/// The first record of an operation, due now.
fn due(key: OperationKey, now_ms: i64, token: String) -> OperationRecord {
    let change = Change {
        state: OperationState::Wait,
        class: Class::NotDispatched,
        note: "reconciliation found neither effect nor record".to_owned(),
        due_ms: Some(now_ms),
        generation: 1,
        resend: false,
        attempts: 0,
    };
    OperationRecord::next(key, None, change, now_ms, token)
}

/// The record of an operation whose effect exists.
pub(crate) fn closed(key: OperationKey, record: &OperationRecord, now_ms: i64, token: String) -> OperationRecord {
    let change = Change {
        state: OperationState::Closed,
        class: Class::AlreadyDone,
        note: "its effect exists".to_owned(),
        due_ms: None,
        generation: record.generation,
        resend: true,
        attempts: record.attempts,
    };
    OperationRecord::next(key, Some(record), change, now_ms, token)
}

/// The list's entry becomes an event of its own: a receipt under an id derived from what it says, with the ordinary
/// operations, due now. A webhook that comes later after all meets its effects as it would another event's.
async fn accept(app: &App, case: &Case, decision: Decision) -> Result<Round, ResolveError> {
    let (Subject::Job { tenant, job }, Some(listed)) = (&case.subject, &case.listed) else {
        return Err(not_possible("the case has no entry of the provider's list: run again"));
    };
    let Some(records) = app.store.load_job(tenant, job).await? else { return Err(not_possible("the job is unknown")) };
    if !records.transitions.is_empty() {
        let decision = Decision { resolution: Resolution::Gone, ..decision };
        return Ok(app.store.resolve_case(case, &decision).await?.into());
    }
    let job = &records.job;
    let envelope = Envelope {
        tenant: Some(job.tenant.clone()),
        job: Some(job.job.clone()),
        provider_ref: Some(listed.reference.clone()),
        model: Some(job.model().clone()),
        wallet: Some(job.wallet.clone()),
        currency: Some(job.currency()),
        usage: listed.usage.clone(),
        outcome: Some(listed.outcome),
        ..Envelope::default()
    };
    let entry = ListEntry {
        whose: "provider",
        provider: job.provider.clone(),
        identity: listed.identity(),
        envelope,
        names: &[OperationName::CompleteJob, OperationName::SettleUsage],
    };
    let note = entry.accepted(app, case, &decision.actor).await?;
    Ok(app.store.resolve_case(case, &Decision { note, ..decision }).await?.into())
}

/// An entry of a list that is to become an event of its own.
struct ListEntry<'a> {
    /// Whose list: `provider` or `destination`.
    whose: &'static str,
    provider: Provider,
    /// The same entry makes the same event, whoever accepts it.
    identity: String,
    envelope: Envelope,
    names: &'a [OperationName],
}

impl ListEntry<'_> {
    /// Puts its receipt, with its operations due now; says as which event.
    async fn accepted(self, app: &App, case: &Case, actor: &str) -> Result<String, StoreError> {
        let event = EventRef { provider: self.provider, id: EventId::listed(&self.identity) };
        let now_ms = app.clock.now_ms();
        let receipt = Receipt {
            event: Some(event.clone()),
            event_type: "list".to_owned(),
            payload_hash: format!("list:{}", self.identity),
            envelope: self.envelope,
            plan: self.names.iter().map(|name| Planned { item: ItemId::only(), name: *name }).collect(),
            items: Vec::new(),
            empty: None,
            note: format!("accepted from the {}'s own list by {actor} (case {})", self.whose, case.id),
            arrival_ms: now_ms,
            first_sent_ms: None,
            attempt: None,
            id_signed: false,
            key_id: format!("{}-list", self.whose),
            claim_token: app.random.token(),
            trace: None,
        };
        app.store.put_receipt(&event, &receipt).await?; // if it exists, an earlier try of ours put it
        for key in receipt.operations() {
            app.store.put_operation(&due(key, now_ms, app.random.token())).await?;
        }
        Ok(format!("accepted as {event}"))
    }
}
