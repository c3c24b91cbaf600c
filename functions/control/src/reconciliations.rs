//! Reconciliations: start a run, show its progress and what it found, apply or dismiss a case. The reference is the key
//! of a run; who asked and why is kept with the run and with each decision.

use domain::ids::{Provider, Reference, TenantId, WalletId};
use domain::operation::hex_sha256;
use domain::reconcile::{
    Case, DEFAULT_RANGE_MS, Decision, GRACE_MS, Kind, MAX_RANGE_MS, Part, PartKey, PartResult, PartState, Resolution,
    Run, Window,
};
use domain::time::{parse_rfc3339, rfc3339};
use reconciler::{ResolveError, Started};
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{body, check_reason, id, unavailable};

/// Cases of one page: each is read again.
const PAGE: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    reference: String,
    reason: Option<String>,
    kinds: Option<Vec<Kind>>,
    from: Option<String>,
    to: Option<String>,
    tenant: Option<String>,
    wallet: Option<String>,
    provider: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    action: Asked,
    reason: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Asked {
    Apply,
    Dismiss,
}

fn time(name: &str, text: Option<&str>) -> Result<Option<i64>, Problem> {
    let refused = || Problem::invalid(format!("{name}: give an RFC 3339 time, such as 2026-11-29T12:00:00Z"));
    text.map(|text| parse_rfc3339(text).ok_or_else(refused)).transpose()
}

/// A request for a run, as far as it does not depend on the time at which it comes.
struct AskedRun {
    run: Run,
    from_ms: Option<i64>,
    to_ms: Option<i64>,
}

impl AskedRun {
    /// The run with its range. Receipts younger than the grace are left out, whatever `to` says: others are still at work
    /// on them.
    fn ranged(self) -> Result<Run, Problem> {
        let settled_ms = self.run.created_ms - GRACE_MS;
        let to_ms = self.to_ms.map_or(settled_ms, |to_ms| to_ms.min(settled_ms));
        let from_ms = self.from_ms.unwrap_or(to_ms - DEFAULT_RANGE_MS);
        if from_ms > to_ms && self.to_ms.is_none_or(|asked_ms| from_ms <= asked_ms) {
            return Err(Problem::invalid("from, to: receipts of the last 15 minutes are left out: begin earlier"));
        }
        if from_ms > to_ms || to_ms - from_ms > MAX_RANGE_MS {
            return Err(Problem::invalid("from, to: give a range that begins before it ends, of at most 31 days"));
        }
        // Whole minutes: that is how receipts are found.
        let floor = |ms: i64| ms.div_euclid(60_000) * 60_000;
        Ok(Run { window: Window { from_ms: floor(from_ms), to_ms: floor(to_ms) }, ..self.run })
    }
}

/// Reads a request.
fn asked_run(app: &App, event: &GatewayEvent) -> Result<AskedRun, Problem> {
    let asked: Body = body(event)?;
    let reason = asked.reason.unwrap_or_default();
    check_reason(&reason)?;
    let reference: Reference = id(&asked.reference)?;
    if let Some(name) = reconciler::SCHEDULED_NAMES.iter().find(|name| reference.as_str().starts_with(**name)) {
        let detail = format!("reference: names that begin with {name:?} are those of scheduled runs: choose another");
        return Err(Problem::invalid(detail));
    }
    let (from_ms, to_ms) = (time("from", asked.from.as_deref())?, time("to", asked.to.as_deref())?);
    let wallet = match (asked.tenant, asked.wallet) {
        (Some(tenant), Some(wallet)) => Some((id::<TenantId>(&tenant)?, id::<WalletId>(&wallet)?)),
        (None, None) => None,
        _ => return Err(Problem::invalid("tenant, wallet: a wallet is named by both")),
    };
    let slug = |text: String| Provider::new(text).map_err(|error| Problem::invalid(error.to_string()));
    let provider = asked.provider.map(slug).transpose()?;
    if provider.as_ref().is_some_and(|slug| app.profiles.get(slug.as_str()).is_none_or(|p| p.list.is_none())) {
        return Err(Problem::invalid("provider: no profile of this name has a list"));
    }
    let mut kinds = match asked.kinds {
        Some(kinds) if kinds.is_empty() => return Err(Problem::invalid("kinds: name at least one, or leave it out")),
        Some(kinds) => kinds,
        None if wallet.is_some() => vec![Kind::Wallets],
        None if provider.is_some() => vec![Kind::ProviderList],
        None => Kind::ALL.to_vec(),
    };
    kinds.sort_unstable();
    kinds.dedup();
    let told = (asked.from.as_deref(), asked.to.as_deref());
    let content_hash = hex_sha256(&format!("{kinds:?}|{told:?}|{wallet:?}|{provider:?}|{reason}"));
    let (window, actor, created_ms) = (Window { from_ms: 0, to_ms: 0 }, event.actor(), app.clock.now_ms());
    let run = Run { id: reference, kinds, window, wallet, provider, actor, reason, content_hash, created_ms };
    Ok(AskedRun { run, from_ms, to_ms })
}

/// `POST /control/reconciliations`.
pub(crate) async fn start(app: &App, event: &GatewayEvent) -> Result<GatewayResponse, Problem> {
    let asked = asked_run(app, event)?;
    // The same request is the same run, also when its range would be refused by now.
    let run = match app.store.get_run(&asked.run.id).await.map_err(unavailable)? {
        Some(stands) => Run { content_hash: asked.run.content_hash, ..stands },
        None => asked.ranged()?,
    };
    match reconciler::start(app, &run).await.map_err(unavailable)? {
        Started::Created => shown(app, event, &run, 201).await,
        Started::Exists(stands) => shown(app, event, &stands, 200).await,
        Started::Conflict => Err(Problem::conflict("this reference is another run's: use another reference")),
    }
}

async fn known(app: &App, run: &str) -> Result<Run, Problem> {
    let reference: Reference = id(run)?;
    let run = app.store.get_run(&reference).await.map_err(unavailable)?;
    run.ok_or_else(|| Problem::not_found(format!("no reconciliation has the id {:?}", reference.as_str())))
}

/// `GET /control/reconciliations/{id}?after=CASE&limit=N`.
pub(crate) async fn show(app: &App, event: &GatewayEvent, run: &str) -> Result<GatewayResponse, Problem> {
    let run = known(app, run).await?;
    shown(app, event, &run, 200).await
}

async fn shown(app: &App, event: &GatewayEvent, run: &Run, status: u16) -> Result<GatewayResponse, Problem> {
    let limit = crate::statements::limit(event, PAGE)?;
    let after = event.query("after");
    let parts = app.store.load_parts(&run.id).await.map_err(unavailable)?;
    let page = app.store.found(&run.id, after.as_deref(), limit).await.map_err(unavailable)?;
    let mut cases = Vec::new();
    for (id, occurrence) in &page.cases {
        let case = app.store.get_occurrence(id, *occurrence).await.map_err(unavailable)?;
        let Some(case) = case else { continue }; // occurrences are never deleted
        cases.push(case_json(&case));
    }
    let mut body = run_json(run, &parts);
    body["cases"] = json!(cases);
    body["next"] = json!(page.cases.last().map(|(id, _)| id).filter(|_| page.more));
    Ok(GatewayResponse::json(status, &body))
}

fn run_json(run: &Run, parts: &[Part]) -> Value {
    let mut sum = PartResult::default();
    parts.iter().for_each(|part| sum.add(&part.result));
    let count = |state: PartState| parts.iter().filter(|part| part.state == state).count();
    let planned = parts.iter().any(|part| part.key == PartKey::Plan && part.state != PartState::Open);
    let state = if planned && count(PartState::Open) == 0 { "done" } else { "running" };
    json!({
        "id": run.id, "state": state, "kinds": run.kinds, "from": rfc3339(run.window.from_ms),
        "to": rfc3339(run.window.to_ms), "tenant": run.wallet.as_ref().map(|(tenant, _)| tenant),
        "wallet": run.wallet.as_ref().map(|(_, wallet)| wallet), "provider": run.provider, "actor": run.actor,
        "reason": run.reason, "started_at": rfc3339(run.created_ms),
        "parts": {"total": parts.len(), "done": count(PartState::Done), "failed": count(PartState::Failed)},
        "examined": sum.examined, "classes": sum.classes, "skipped": sum.skipped,
    })
}

/// A case, less its decisions. No payload: what a list says is its outcome and usage, or its state and amounts.
fn case_json(case: &Case) -> Value {
    json!({
        "case": case.id, "occurrence": case.occurrence, "class": case.class, "action": case.action,
        "state": case.state, "resolution": case.resolution, "subject": case.subject, "evidence": case.evidence,
        "amount": case.amount, "currency": case.currency,
        "listed": case.listed.as_ref().map(|l| json!({
            "ref": l.reference, "outcome": l.outcome, "usage": l.usage, "updated_at": l.updated_ms.map(rfc3339),
        })),
        "effect": case.effect.as_ref().map(|e| json!({
            "id": e.id, "event": e.event, "state": e.state, "minor_amount": e.amount, "currency": e.currency,
            "minor_paid": e.paid, "minor_refunded": e.refunded, "created_at": rfc3339(e.created_ms),
        })),
        "opened_at": rfc3339(case.opened_ms), "opened_by": case.opened_by,
    })
}

fn decision_json(decision: &Decision) -> Value {
    json!({
        "resolution": decision.resolution, "actor": decision.actor, "reason": decision.reason, "reference": decision.reference,
        "note": decision.note, "at": rfc3339(decision.decided_ms),
    })
}

async fn case_shown(app: &App, case: &Case) -> Result<GatewayResponse, Problem> {
    let decisions = app.store.load_decisions(&case.id).await.map_err(unavailable)?;
    let mut body = case_json(case);
    body["decisions"] = decisions.iter().map(decision_json).collect();
    Ok(GatewayResponse::json(200, &body))
}

/// A case that was resolved now or before; a conflict where the other word stands.
async fn case_decided(app: &App, case: &Case, asked: Resolution) -> Result<GatewayResponse, Problem> {
    if case.resolution == Some(asked) || case.resolution == Some(Resolution::Gone) {
        return case_shown(app, case).await;
    }
    let decisions = app.store.load_decisions(&case.id).await.map_err(unavailable)?;
    Err(Problem::conflict(decisions.last().map_or_else(|| "decided before".to_owned(), crate::cases::told)))
}

/// `GET /control/reconciliations/{id}/cases/{case}`: the case with every decision on it.
pub(crate) async fn case(app: &App, run: &str, case: &str) -> Result<GatewayResponse, Problem> {
    known(app, run).await?;
    let found = app.store.get_case(case).await.map_err(unavailable)?;
    case_shown(app, &found.ok_or_else(unknown_case)?).await
}

fn unknown_case() -> Problem {
    Problem::not_found("no case has this id: `GET /control/reconciliations/{id}` lists them")
}

/// `POST /control/reconciliations/{id}/cases/{case}`: applies the case's action, or lets its fact stand.
pub(crate) async fn decide(app: &App, event: &GatewayEvent, run: &str, case: &str) -> Result<GatewayResponse, Problem> {
    let asked: DecisionBody = body(event)?;
    let reason = asked.reason.unwrap_or_default();
    check_reason(&reason)?;
    known(app, run).await?;
    let resolution = match asked.action {
        Asked::Apply => Resolution::Applied,
        Asked::Dismiss => Resolution::Dismissed,
    };
    let actor = event.actor();
    let asked = reconciler::Asked { resolution, actor: &actor, reason: &reason, reference: None };
    match reconciler::resolve(app, case, asked).await {
        Ok(case) => case_decided(app, &case, resolution).await,
        Err(ResolveError::Unknown) => Err(unknown_case()),
        Err(ResolveError::NotPossible(why)) => {
            Err(Problem::new(409, "not-possible", "The case does not allow this now", why))
        }
        Err(ResolveError::Store(error)) => Err(unavailable(error)),
    }
}
