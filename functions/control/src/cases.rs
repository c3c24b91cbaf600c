//! Reconciliation cases among the reviews: shown with their evidence, and decided under the same two words. `retry`
//! carries the case's own action out, `close` lets its fact stand.

use domain::reconcile::{Action as Remedy, Case, CaseState, Resolution, Subject as About};
use domain::review::{Action, Decision, ReviewId};
use runtime::App;
use runtime::problem::Problem;
use serde_json::{Value, json};
use store::StoreError;

use crate::resolve::Request;
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

/// Decides an open case, or says what would be decided.
pub(crate) async fn decide(app: &App, id: &str, request: &Request, dry: bool) -> Result<Decision, Problem> {
    let refused = |why: String| Problem::new(409, "not-possible", "The review does not allow this", why);
    let resolution = match request.action {
        Action::Retry => Resolution::Applied,
        Action::Close => Resolution::Dismissed,
        Action::Approve => {
            return Err(refused(
                "a case has one action: `retry` carries it out, `close` lets its fact stand".to_owned(),
            ));
        }
    };
    let unknown = || Problem::not_found(format!("case {id} does not exist"));
    let case = app.store.get_case(id).await.map_err(unavailable)?.ok_or_else(unknown)?;
    if !dry {
        match reconciler::resolve(app, id, resolution, &request.actor, &request.reason).await {
            Ok(_) => {}
            Err(reconciler::ResolveError::Unknown) => return Err(unknown()),
            Err(reconciler::ResolveError::NotPossible(why)) => return Err(refused(why)),
            Err(reconciler::ResolveError::Store(error)) => return Err(unavailable(error)),
        }
    }
    Ok(Decision {
        review: ReviewId::Case(id.to_owned()).to_string(),
        action: request.action,
        alternative: None,
        released: false,
        reference: request.reference.as_ref().map(ToString::to_string),
        actor: request.actor.clone(),
        reason: request.reason.clone(),
        content_hash: request.content_hash(),
        class: case.class.as_str().to_owned(),
        evidence: case.evidence,
        waived: Vec::new(),
        revision: u64::from(case.occurrence),
        created_ms: app.clock.now_ms(),
    })
}
