//! What a person decides on a review: retry, approve, close. The decision is recorded, append-only, in the
//! transaction that changes what was in review, under the condition that nobody changed it meanwhile.
//!
//! One revision has one decision. Whoever comes second is told whose stands; the same request by the same
//! caller is the same decision.

use domain::decide::dismiss;
use domain::decide::posting::Posting;
use domain::event::{By, EventRef};
use domain::ids::Reference;
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::operation::{Change, Class, OperationKey, OperationName, OperationRecord, OperationState, hex_sha256};
use domain::receipt::{Conflict, Receipt, UNREADABLE};
use domain::review::{Action, Alternative, Decision, ReviewId, allowed, waive};
use runtime::App;
use runtime::dispatch::message;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use runtime::retry::Again;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Commit, Reviewed, StoreError};

use crate::jobs::timestamp;
use crate::risk::settles;
use crate::{body, check_reason, id, unavailable};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    action: Action,
    alternative: Option<Alternative>,
    reason: String,
    #[serde(default)]
    release: bool,
    reference: Option<String>,
}

/// A checked request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) action: Action,
    pub(crate) alternative: Option<Alternative>,
    pub(crate) release: bool,
    pub(crate) reason: String,
    pub(crate) reference: Option<Reference>,
    pub(crate) actor: String,
}

impl Request {
    /// Checks what belongs together.
    pub(crate) fn check(self) -> Result<Self, Problem> {
        check_reason(&self.reason)?;
        match (self.action, self.alternative) {
            (Action::Approve, None) => Err(Problem::invalid(
                "alternative: an approval names one: \"cap\" or \"available\" for a charge, \"resend\" for an unknown outcome",
            )),
            (Action::Retry | Action::Close, Some(_)) => Err(Problem::invalid("alternative: only an approval has one")),
            _ if self.release && self.action != Action::Close => {
                Err(Problem::invalid("release: only a close releases"))
            }
            _ => Ok(self),
        }
    }

    pub(crate) fn content_hash(&self) -> String {
        let alternative = self.alternative.map(|alternative| format!("{alternative:?}"));
        let reference = self.reference.as_ref().map(Reference::as_str);
        hex_sha256(&format!(
            "{:?}|{}|{}|{:?}|{}",
            self.action,
            alternative.unwrap_or_default(),
            self.release,
            reference,
            self.reason
        ))
    }
}

/// What a decision did, for the answer.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    /// True when it stood before.
    pub(crate) again: bool,
}

impl Decided {
    pub(crate) fn json(&self) -> Value {
        let mut shown = decision_json(&self.decision);
        shown["id"] = json!(self.decision.review);
        shown["again"] = json!(self.again);
        shown
    }
}

/// A decision for people; no payload.
pub(crate) fn decision_json(decision: &Decision) -> Value {
    json!({
        "action": decision.action, "alternative": decision.alternative, "released": decision.released,
        "reason": decision.reason, "reference": decision.reference, "actor": decision.actor,
        "class": decision.class, "evidence": decision.evidence, "waived": decision.waived,
        "at": timestamp(decision.created_ms),
    })
}

/// `POST /control/reviews/{id}`.
pub(crate) async fn resolve(app: &App, event: &GatewayEvent, review: &str) -> Result<GatewayResponse, Problem> {
    let review: ReviewId =
        review.parse().map_err(|error: domain::review::NotAReview| Problem::invalid(error.to_string()))?;
    let asked: Body = body(event)?;
    let reference = asked.reference.as_deref().map(id).transpose()?;
    let Body { action, alternative, reason, release, .. } = asked;
    let request = Request { action, alternative, release, reason, reference, actor: event.actor() }.check()?;
    let decided = decide(app, &review, &request, false).await?;
    Ok(GatewayResponse::json(200, &decided.json()))
}

/// Carries out one request on one review; with `dry` it only says what would be.
pub(crate) async fn decide(app: &App, review: &ReviewId, request: &Request, dry: bool) -> Result<Decided, Problem> {
    let mut again = Again::new(app);
    for _ in 0..DECIDE_AGAIN_LIMIT {
        let before = app.store.decisions(review).await.map_err(unavailable)?;
        if let Some(reference) = &request.reference
            && let Some(stands) = before.iter().find(|d| d.reference.as_deref() == Some(reference.as_str()))
        {
            return same(stands, request);
        }
        let plan = match review {
            ReviewId::Operation(key) => operation(app, key, request).await,
            ReviewId::Conflict(event, hash) => match app.store.get_conflict(event, hash).await {
                Ok(Some(conflict)) => close_conflict(app, (review, event), conflict, request),
                Ok(None) => Err(Refusal::Problem(unknown(review))),
                Err(error) => Err(Refusal::Store(error)),
            },
            ReviewId::Case(case) => {
                return crate::cases::decide(app, case, request, dry).await;
            }
        };
        let plan = match plan {
            Ok(plan) => plan,
            Err(Refusal::Over) => {
                // Whoever ended it may have decided after the first look.
                let decisions = app.store.decisions(review).await.map_err(unavailable)?;
                return last(&decisions, review, request);
            }
            Err(Refusal::Problem(problem)) => return Err(problem),
            Err(Refusal::Store(error)) => {
                again.after(error).await.map_err(unavailable)?;
                continue;
            }
        };
        if dry {
            return Ok(Decided { decision: plan.decision, again: false });
        }
        match app.store.commit_decision(&plan.decision, plan.change.borrowed(), plan.release.as_ref()).await {
            Ok(Commit::Committed) => return Ok(plan.done(app, review).await),
            Ok(Commit::ConditionFailed(_) | Commit::Conflict) => app.pause().await,
            Err(error) => again.after(error).await.map_err(unavailable)?,
        }
    }
    Err(Problem::unavailable())
}

enum Refusal {
    /// It is no review any more.
    Over,
    Problem(Problem),
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

enum Written {
    Operation(Box<(OperationRecord, Receipt)>),
    Conflict(EventRef, Box<Conflict>),
}

impl Written {
    fn borrowed(&self) -> Reviewed<'_> {
        match self {
            Self::Operation(both) => Reviewed::Operation(&both.0),
            Self::Conflict(event, conflict) => Reviewed::Conflict(event, conflict),
        }
    }
}

struct Plan {
    decision: Decision,
    change: Written,
    release: Option<Posting>,
}

impl Plan {
    /// Sends what is to be tried again. A send that fails is the relay's: the record is due.
    async fn done(self, app: &App, review: &ReviewId) -> Decided {
        if let (Written::Operation(both), ReviewId::Operation(key)) = (&self.change, review)
            && both.0.state == OperationState::Wait
        {
            app.dispatch(&[message(&both.1, key.clone(), both.0.generation)]).await;
        }
        if let Some(release) = &self.release {
            app.send_posted(release).await;
        }
        tracing::info!(
            review = %self.decision.review, action = self.decision.action.as_str(), actor = %self.decision.actor,
            class = %self.decision.class, released = self.decision.released, "review decided"
        );
        Decided { decision: self.decision, again: false }
    }
}

/// What is decided on an operation in review.
async fn operation(app: &App, key: &OperationKey, request: &Request) -> Result<Plan, Refusal> {
    let review = ReviewId::Operation(key.clone());
    let records = match app.store.load_event(&key.event).await {
        Ok(records) => records.ok_or_else(|| Refusal::Problem(unknown(&review)))?,
        Err(StoreError::Corrupt { .. }) => {
            return Err(Refusal::Problem(not_possible(
                "a stored record of this event cannot be read: repair it first",
            )));
        }
        Err(error) => return Err(error.into()),
    };
    let record = records.operation(key).ok_or(Refusal::Over)?;
    if record.state != OperationState::Review {
        return Err(Refusal::Over);
    }
    if !allowed(record).contains(&request.action) {
        let detail =
            format!("a review of class {} has no alternative to approve: retry or close it", record.class.name());
        return Err(Refusal::Problem(not_possible(detail)));
    }
    if request.alternative.is_some_and(|alternative| !alternative.fits(record)) {
        let with = if record.class == Class::UnknownOutcome { "`resend`" } else { "`cap` or `available`" };
        let detail = format!("a review of class {} is approved with {with}", record.class.name());
        return Err(Refusal::Problem(not_possible(detail)));
    }
    if request.alternative == Some(Alternative::Cap) && is_postpaid(app, key, &records.receipt).await? {
        let detail = "the job's wallet is postpaid and there is no hold to cap at: a cap would charge nothing; approve `available` \
                      or retry when less is owed, or close it";
        return Err(Refusal::Problem(not_possible(detail)));
    }
    let now_ms = app.clock.now_ms();
    let past = now_ms.saturating_sub(records.receipt.business_time_ms()) > app.expire_after_ms(&key.event);
    let (waivers, waived) = waive(record, request.alternative, past, now_ms);
    let closes = request.action == Action::Close;
    let release = if closes && key.name == OperationName::SettleUsage {
        release(app, key, record, &records.receipt, request).await?
    } else {
        None
    };
    let token = app.random.token();
    let next = if closes {
        let change = Change {
            state: OperationState::Closed,
            class: Class::Dismissed,
            note: format!("closed by a person; was {}: {}", record.class.name(), record.note),
            due_ms: None,
            generation: record.generation + 1,
            resend: false,
            attempts: record.attempts,
        };
        Some(OperationRecord::next(key.clone(), Some(record), change, now_ms, token))
    } else {
        let note = format!("a person decided: {}", request.action.as_str());
        record.retried(Class::Retried, note, now_ms, token).map(|next| next.waiving(waivers))
    };
    let next = next.ok_or_else(|| Refusal::Problem(unknown(&review)))?;
    let mut decision = decision(&review, request, now_ms);
    decision.class = record.class.name();
    decision.evidence = format!("{} tries; {}", record.attempts, record.note);
    decision.waived = if closes { Vec::new() } else { waived };
    decision.revision = record.revision;
    decision.released = release.is_some();
    Ok(Plan { decision, change: Written::Operation(Box::new((next, records.receipt))), release })
}

/// The release of the settlement's open hold. Without a hold, or with a closed one, there is nothing to
/// release; with an open one, the request has to say so. A hold that another event settles stays its own.
async fn release(
    app: &App, key: &OperationKey, record: &OperationRecord, receipt: &Receipt, request: &Request,
) -> Result<Option<Posting>, Refusal> {
    let Some((tenant, job)) = app.store.find_job(&key.event.provider, &receipt.envelope).await? else {
        return Ok(None);
    };
    let Some(submitted) = app.store.get_job(&tenant, &job).await? else { return Ok(None) };
    let balance = app.store.get_balance(&tenant, &submitted.wallet).await?;
    let ledger = app.store.load_ledger(&tenant, &job).await?;
    let records = app.store.load_job(&tenant, &job).await?;
    let (Some(balance), Some(records)) = (balance, records) else { return Ok(None) };
    if !settles(&records, &key.by()) {
        let detail =
            "another event decided this job's outcome, and its settlement closes the hold: close without release";
        return if request.release { Err(Refusal::Problem(not_possible(detail))) } else { Ok(None) };
    }
    let review = ReviewId::Operation(key.clone());
    // One key per decision: this review, at this revision.
    let place = hex_sha256(&format!("{review}|{}", record.revision));
    let by = Reference::new(place).and_then(|place| By::control("review", &place));
    let by = by.map_err(|error| Refusal::Problem(Problem::invalid(error.to_string())))?;
    let posting = dismiss::release(by.to_string(), &request.reason, &records, &ledger, &balance, app.clock.now_ms());
    match posting {
        Some(posting) if !request.release => {
            let detail = format!(
                "the job's hold of {} {} is open and nobody would settle it: say \"release\": true to give it back",
                posting.entry.released, posting.entry.currency
            );
            Err(Refusal::Problem(Problem::new(409, "release-needed", "The job's hold is open", detail)))
        }
        Some(posting) => Ok(Some(app.telling(posting, &balance).await?)),
        None => Ok(None),
    }
}

/// Whether the job of a settlement is charged afterwards.
async fn is_postpaid(app: &App, key: &OperationKey, receipt: &Receipt) -> Result<bool, Refusal> {
    let Some((tenant, job)) = app.store.find_job(&key.event.provider, &receipt.envelope).await? else {
        return Ok(false);
    };
    let Some(submitted) = app.store.get_job(&tenant, &job).await? else { return Ok(false) };
    let balance = app.store.get_balance(&tenant, &submitted.wallet).await?;
    Ok(balance.is_some_and(|balance| balance.postpaid.is_some()))
}

fn close_conflict(
    app: &App, (review, event): (&ReviewId, &EventRef), conflict: Conflict, request: &Request,
) -> Result<Plan, Refusal> {
    if conflict.review_since_ms.is_none() {
        return Err(Refusal::Over);
    }
    if request.action != Action::Close {
        let detail = "other content under a known event id never acts: close it, and have the provider send a new event if it is right";
        return Err(Refusal::Problem(not_possible(detail)));
    }
    let now_ms = app.clock.now_ms();
    let mut decision = decision(review, request, now_ms);
    decision.class = if conflict.payload_hash == UNREADABLE { "unreadable" } else { "conflict" }.to_owned();
    decision.evidence = format!("content {}", conflict.payload_hash);
    let closed = Conflict { review_since_ms: None, closed_ms: Some(now_ms), ..conflict };
    Ok(Plan { decision, change: Written::Conflict(event.clone(), Box::new(closed)), release: None })
}

fn decision(review: &ReviewId, request: &Request, now_ms: i64) -> Decision {
    Decision {
        review: review.to_string(),
        action: request.action,
        alternative: request.alternative,
        released: false,
        reference: request.reference.as_ref().map(ToString::to_string),
        actor: request.actor.clone(),
        reason: request.reason.clone(),
        content_hash: request.content_hash(),
        class: String::new(),
        evidence: String::new(),
        waived: Vec::new(),
        revision: 0,
        created_ms: now_ms,
    }
}

/// A request under the key of a recorded decision.
fn same(stands: &Decision, request: &Request) -> Result<Decided, Problem> {
    if stands.content_hash == request.content_hash() && stands.actor == request.actor {
        return Ok(Decided { decision: stands.clone(), again: true });
    }
    Err(Problem::conflict(told(stands)))
}

/// It is no review any more: the same request again, somebody else's decision, or nobody's.
fn last(before: &[Decision], review: &ReviewId, request: &Request) -> Result<Decided, Problem> {
    match before.last() {
        Some(stands) => same(stands, request),
        None => Err(not_possible(format!("{review} is not in review: nothing is to be decided"))),
    }
}

fn told(stands: &Decision) -> String {
    let (action, actor, at) = (stands.action.as_str(), &stands.actor, timestamp(stands.created_ms));
    format!("decided before: {action} by {actor} at {at}")
}

fn unknown(review: &ReviewId) -> Problem {
    Problem::not_found(format!("review {review} does not exist"))
}

fn not_possible(detail: impl Into<String>) -> Problem {
    Problem::new(409, "not-possible", "The review does not allow this", detail)
}
