//! Reconciliation cases among the reviews: shown with their evidence, and decided under the same two words. `retry`
//! carries the case's own action out, `close` lets its fact stand.

use domain::ids::Reference;
use domain::reconcile::{Action as Remedy, Case, CaseState, Decision as Stands, Resolution, Subject as About};
use domain::review::{Action, Decision, ReviewId};
use reconciler::{Asked, ResolveError};
use runtime::App;
use runtime::problem::Problem;
use serde_json::{Value, json};
use store::StoreError;

use crate::jobs::timestamp;
use crate::resolve::{Decided, Request};
use crate::risk::{Risk, Subject};
use crate::unavailable;

/// An open case as the list of reviews has it.
pub(crate) struct Shown {
    pub(crate) reason: String,
    pub(crate) subject: Subject,
    pub(crate) actions: Vec<Action>,
    pub(crate) evidence: Value,
}

/// Reads a case; `None` when it is open no more.
pub(crate) async fn look(app: &App, id: &str) -> Result<Option<Shown>, StoreError> {
    let case = app.store.get_case(id).await?;
    Ok(case.filter(|case| case.state == CaseState::Open).map(|case| shown(&case)))
}

fn shown(case: &Case) -> Shown {
    let mut subject = match &case.subject {
        About::Job { tenant, job } => {
            Subject { tenant: Some(tenant.clone()), job: Some(job.clone()), ..Subject::default() }
        }
        About::Wallet { tenant, wallet } => {
            Subject { tenant: Some(tenant.clone()), wallet: Some(wallet.clone()), ..Subject::default() }
        }
        _ => Subject::default(),
    };
    subject.risk = case.amount.zip(case.currency).map(|(amount, currency)| Risk { amount, currency, of: "amount" });
    let actions = if case.action == Remedy::Person { vec![Action::Close] } else { vec![Action::Retry, Action::Close] };
    let evidence = json!({
        "note": case.evidence, "remedy": case.action, "occurrence": case.occurrence, "subject": case.subject,
        "run": case.opened_by,
    });
    Shown { reason: case.class.as_str().to_owned(), subject, actions, evidence }
}

fn not_possible(why: impl Into<String>) -> Problem {
    Problem::new(409, "not-possible", "The review does not allow this", why)
}

/// Decides an open case, or says what would be decided. A case that is decided stays so: the same request by the same
/// caller is the same decision, and anybody else is told whose stands.
pub(crate) async fn decide(app: &App, id: &str, request: &Request, dry: bool) -> Result<Decided, Problem> {
    let resolution = match request.action {
        Action::Retry => Resolution::Applied,
        Action::Close => Resolution::Dismissed,
        Action::Approve => {
            return Err(not_possible("a case has one action: `retry` carries it out, `close` lets its fact stand"));
        }
    };
    let unknown = || Problem::not_found(format!("case {id} does not exist"));
    let case = app.store.get_case(id).await.map_err(unavailable)?.ok_or_else(unknown)?;
    let before = app.store.load_decisions(id).await.map_err(unavailable)?;
    let reference = request.reference.as_ref().map(Reference::as_str);
    let keyed = (1..).zip(&before).find(|(_, stands)| reference.is_some() && stands.reference.as_deref() == reference);
    if let Some((occurrence, stands)) = keyed {
        return ours(&Case { occurrence, ..case }, stands, request, resolution, true);
    }
    if case.state != CaseState::Open {
        return ours(&case, stands_of(&case, &before)?, request, resolution, true);
    }
    if case.action == Remedy::Person && resolution == Resolution::Applied {
        return Err(not_possible(
            "nothing can be carried out here: look at the evidence, put it right, and close the case",
        ));
    }
    if dry {
        return Ok(Decided { decision: decision(&case, request, app.clock.now_ms()), again: false });
    }
    let asked = Asked { resolution, actor: &request.actor, reason: &request.reason, reference };
    let resolved = match reconciler::resolve(app, id, asked).await {
        Ok(resolved) => resolved,
        Err(ResolveError::Unknown) => return Err(unknown()),
        Err(ResolveError::NotPossible(why)) => return Err(not_possible(why)),
        Err(ResolveError::Store(error)) => return Err(unavailable(error)),
    };
    let decisions = app.store.load_decisions(id).await.map_err(unavailable)?;
    ours(&resolved, stands_of(&resolved, &decisions)?, request, resolution, false)
}

/// The decision on an occurrence that is resolved: each has one, in order, put in the transaction that resolved it.
fn stands_of<'a>(case: &Case, decisions: &'a [Stands]) -> Result<&'a Stands, Problem> {
    let place = usize::try_from(case.occurrence).unwrap_or_default().saturating_sub(1);
    decisions.get(place).ok_or_else(Problem::unavailable)
}

/// What stands, if it is what this caller asked for; a fact that was found gone when it was to be applied is that, too.
fn ours(
    case: &Case, stands: &Stands, request: &Request, resolution: Resolution, again: bool,
) -> Result<Decided, Problem> {
    let gone = stands.resolution == Resolution::Gone && resolution == Resolution::Applied;
    let reference = request.reference.as_ref().map(Reference::as_str);
    let same = (gone || stands.resolution == resolution)
        && stands.actor == request.actor
        && stands.reason == request.reason
        && (reference.is_none() || stands.reference.as_deref() == reference);
    if !same {
        return Err(Problem::conflict(told(stands)));
    }
    let decision = decision(case, request, stands.decided_ms);
    Ok(Decided { decision: Decision { reference: stands.reference.clone(), ..decision }, again })
}

/// Whose decision stands.
pub(crate) fn told(stands: &Stands) -> String {
    let (what, at) = (stands.resolution.as_str(), timestamp(stands.decided_ms));
    format!("decided before: {what} by {} at {at}", stands.actor)
}

fn decision(case: &Case, request: &Request, created_ms: i64) -> Decision {
    Decision {
        review: ReviewId::Case(case.id.clone()).to_string(),
        action: request.action,
        alternative: None,
        released: false,
        reference: request.reference.as_ref().map(ToString::to_string),
        actor: request.actor.clone(),
        reason: request.reason.clone(),
        content_hash: request.content_hash(),
        class: case.class.as_str().to_owned(),
        evidence: case.evidence.clone(),
        waived: Vec::new(),
        revision: u64::from(case.occurrence),
        created_ms,
    }
}
