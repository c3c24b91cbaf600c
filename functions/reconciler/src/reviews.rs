//! Reviews and conflicts that wait for long are told again, once each; open cases are looked at again, and those whose
//! fact is gone are resolved.

use domain::event::EventRef;
use domain::keys;
use domain::limits::SHARDS;
use domain::operation::{OperationKey, OperationRecord, OperationState};
use domain::reconcile::{
    Action, Case, CaseClass, CaseState, Decision, Finding, OLD_REVIEW_MS, Resolution, Subject, compare_listed,
    missing_at_provider,
};
use domain::time::rfc3339;
use runtime::App;
use store::{ReviewRow, StoreError};

use crate::record::{RECONCILER, Recorder};
use crate::{intents, jobs, receipts, wallets};

/// Open items of one shard that one part looks at.
const MOST: usize = 2_000;
/// Rows of one page of the index.
const PAGE: usize = 200;

pub(crate) async fn compare(recorder: &mut Recorder<'_>, shard: u32) -> Result<(), StoreError> {
    let waiting = waiting(recorder.app, shard, recorder.app.clock.now_ms()).await?;
    if waiting.len() == MOST {
        recorder.result.skipped.push(format!("reviews of shard {shard}: only the oldest {MOST} were looked at"));
    }
    for review in waiting {
        recorder.result.examined += 1;
        match compare_one(recorder, &review).await {
            Err(StoreError::Corrupt { what }) => recorder.unreadable(&review.pk, what),
            done => done?,
        }
    }
    Ok(())
}

/// The rows of one shard that wait since `up_to_ms` or before, the oldest [`MOST`].
async fn waiting(app: &App, shard: u32, up_to_ms: i64) -> Result<Vec<ReviewRow>, StoreError> {
    let mut rows: Vec<ReviewRow> = Vec::new();
    loop {
        let page = app.store.review_rows(shard, rows.last(), PAGE).await?;
        let young = page.last().is_some_and(|row| row.since_ms > up_to_ms);
        let more = page.len() == PAGE && !young;
        rows.extend(page.into_iter().filter(|row| row.since_ms <= up_to_ms));
        if !more || rows.len() >= MOST {
            rows.truncate(MOST);
            return Ok(rows);
        }
    }
}

async fn compare_one(recorder: &mut Recorder<'_>, review: &ReviewRow) -> Result<(), StoreError> {
    let app = recorder.app;
    if let Some((id, _)) = keys::case_of(&review.pk, &review.sk) {
        look_again(recorder, &id).await?;
    } else if app.clock.now_ms() - review.since_ms < OLD_REVIEW_MS {
    } else if let Some(key) = keys::operation_of(&review.pk, &review.sk) {
        if let Some(finding) = old_review(app, key).await? {
            recorder.record(&finding).await?;
        }
    } else if let (Some(event), Some(hash)) = (keys::event_of_pk(&review.pk), keys::conflict_of(&review.sk))
        && app.store.conflict_is_open(&event, hash).await?
    {
        recorder.record(&old_conflict(event, hash, review.since_ms)).await?;
    }
    Ok(())
}

/// A review that nobody has decided for long. One whose effect exists needs no decision: that is a stale record.
async fn old_review(app: &App, key: OperationKey) -> Result<Option<Finding>, StoreError> {
    let Some(record) = app.store.get_operation(&key).await? else { return Ok(None) };
    let (OperationState::Review, Some(since_ms)) = (record.state, record.review_since_ms) else { return Ok(None) };
    match has_effect(app, &key, &record).await {
        Ok(true) => return Ok(None),
        Ok(false) | Err(StoreError::Corrupt { .. }) => {} // it waits for a person all the same
        Err(error) => return Err(error),
    }
    let evidence = format!("{} waits for a person since {}: {:?}", key.name, rfc3339(since_ms), record.class);
    Ok(Some(Finding::new(CaseClass::OldReview, Action::Person, Subject::Operation(key), evidence)))
}

async fn has_effect(app: &App, key: &OperationKey, record: &OperationRecord) -> Result<bool, StoreError> {
    let Some(event) = app.store.load_event(&key.event).await? else { return Ok(false) };
    Ok(app.store.effects_of(&event.receipt.of_item(&key.item)).await?.effect(key, Some(record)).is_some())
}

fn old_conflict(event: EventRef, hash: &str, since_ms: i64) -> Finding {
    let evidence = format!("other content under this event id waits for a person since {}", rfc3339(since_ms));
    let subject = Subject::Conflict { event, payload_hash: hash.to_owned() };
    Finding::new(CaseClass::OldConflict, Action::Person, subject, evidence)
}

/// Resolves an open case whose fact is gone; one that still stands is listed with this run.
async fn look_again(recorder: &mut Recorder<'_>, id: &str) -> Result<(), StoreError> {
    let app = recorder.app;
    let Some(case) = app.store.get_case(id).await?.filter(|case| case.state == CaseState::Open) else { return Ok(()) };
    match stands(app, &case).await? {
        Some(true) => {
            // Listed with the run, and counted by the part that found it.
            app.store.put_found(&recorder.run.id, &case.id, case.occurrence).await?;
        }
        Some(false) => gone(recorder, &case).await?,
        None => {}
    }
    Ok(())
}

/// Resolves a case whose fact a later look does not find any more.
pub(crate) async fn gone(recorder: &Recorder<'_>, case: &Case) -> Result<(), StoreError> {
    let (actor, reason) = (RECONCILER.to_owned(), format!("run {}", recorder.run.id));
    let note = "a later look did not find it any more".to_owned();
    let decided_ms = recorder.app.clock.now_ms();
    let decision = Decision { resolution: Resolution::Gone, actor, reason, reference: None, note, decided_ms };
    recorder.app.store.resolve_case(case, &decision).await.map(|_| ()) // losing to another writer is fine: it decided
}

/// The open cases of some classes, by the index of open reviews.
pub(crate) async fn open_cases(recorder: &mut Recorder<'_>, classes: &[CaseClass]) -> Result<Vec<Case>, StoreError> {
    let (mut cases, app) = (Vec::new(), recorder.app);
    let prefixes: Vec<String> = classes.iter().map(|class| format!("{class}.")).collect();
    for shard in 0..SHARDS {
        for review in waiting(app, shard, i64::MAX).await? {
            let Some((id, _)) = keys::case_of(&review.pk, &review.sk) else { continue };
            if !prefixes.iter().any(|prefix| id.starts_with(prefix)) {
                continue;
            }
            match app.store.get_case(&id).await {
                Ok(case) => cases.extend(case.filter(|case| case.state == CaseState::Open)),
                Err(StoreError::Corrupt { what }) => recorder.unreadable(&review.pk, what),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(cases)
}

/// Whether a case's fact still stands; `None` when that cannot be said now.
async fn stands(app: &App, case: &Case) -> Result<Option<bool>, StoreError> {
    let same = |findings: &[Finding]| findings.iter().any(|finding| finding.case_id() == case.id);
    Ok(match (case.class, &case.subject) {
        (CaseClass::OldReview, Subject::Operation(key)) => Some(old_review(app, key.clone()).await?.is_some()),
        (CaseClass::OldConflict, Subject::Conflict { event, payload_hash }) => {
            Some(app.store.conflict_is_open(event, payload_hash).await?)
        }
        (CaseClass::UnknownHere, _) => None, // the destination's list alone tells
        (class, Subject::Operation(_)) if CaseClass::OF_INTENTS.contains(&class) => {
            Some(intents::stands(app, case).await?)
        }
        (CaseClass::NotDispatched | CaseClass::StaleRecord | CaseClass::Unreadable, Subject::Operation(key)) => {
            Some(same(&receipts::examine(app, &key.event).await?))
        }
        (_, Subject::Event(event)) => Some(same(&receipts::examine(app, event).await?)),
        (CaseClass::Unsettled, Subject::Operation(key)) => {
            let records = app.store.load_event(&key.event).await?;
            let Some(records) = records else { return Ok(Some(false)) };
            let found = app.store.find_job(&key.event.provider, &records.receipt.envelope).await?;
            let Some((tenant, job)) = found else { return Ok(Some(false)) };
            Some(same(&jobs::examine(app, &tenant, &job).await?.findings))
        }
        (class, Subject::Job { tenant, job }) if case.listed.is_some() || class == CaseClass::MissingAtProvider => {
            let Some(records) = app.store.load_job(tenant, job).await? else { return Ok(Some(false)) };
            let ledger = app.store.load_ledger(tenant, job).await?;
            let now_ms = app.clock.now_ms();
            let finding = match &case.listed {
                Some(listed) => compare_listed(listed, &records, &ledger, now_ms),
                None => missing_at_provider(&records, &ledger, now_ms),
            };
            Some(finding.is_some_and(|finding| finding.class == class))
        }
        (_, Subject::Job { tenant, job }) => Some(same(&jobs::examine(app, tenant, job).await?.findings)),
        (_, Subject::Wallet { tenant, wallet }) => match wallets::examine(app, tenant, wallet).await {
            Ok(findings) => findings.map(|findings| same(&findings)),
            Err(StoreError::Corrupt { .. }) => Some(case.class == CaseClass::Unreadable),
            Err(error) => return Err(error),
        },
        _ => None,
    })
}
