//! The actions that move money: a settlement with the authority's usage, an adjustment under a named key, a rebuild.

use domain::decide::settle::{self, View};
use domain::decide::{Ask, adjust};
use domain::envelope::Envelope;
use domain::event::By;
use domain::ids::{JobId, Reference, TenantId};
use domain::job::JobRecords;
use domain::keys;
use domain::ledger::{Balance, Entry, EntryKind, JobLedger};
use domain::operation::{OperationKey, OperationName, hex_sha256};
use domain::reconcile::{Case, CaseClass, Compensation, Decision, Resolution, Subject, compensation, rebuild};
use runtime::App;
use store::{Commit, ControlRequest, StoreError};

use super::{ResolveError, Round, closed, not_possible};
use crate::wallets::{self, Rest};

/// The balance first, then the ledger, then the job: as the billing consumer reads.
async fn view(
    app: &App, tenant: &TenantId, job: &JobId,
) -> Result<Option<(Balance, JobLedger, JobRecords)>, StoreError> {
    let Some(submitted) = app.store.get_job(tenant, job).await? else { return Ok(None) };
    let Some(balance) = app.store.get_balance(tenant, &submitted.wallet).await? else { return Ok(None) };
    let ledger = app.store.load_ledger(tenant, job).await?;
    Ok(app.store.load_job(tenant, job).await?.map(|records| (balance, ledger, records)))
}

async fn gone(app: &App, case: &Case, decision: Decision) -> Result<Round, ResolveError> {
    let note = "the fact is gone; nothing was done".to_owned();
    let decision = Decision { resolution: Resolution::Gone, note, ..decision };
    Ok(app.store.resolve_case(case, &decision).await?.into())
}

/// An adjustment by what the charge lacks, under the case's own reference.
pub(super) async fn compensate(app: &App, case: &Case, decision: Decision) -> Result<Round, ResolveError> {
    let Subject::Job { tenant, job } = &case.subject else { return Err(not_possible("the case names no job")) };
    let Some((balance, ledger, records)) = view(app, tenant, job).await? else {
        return Err(not_possible("the job or its wallet is unknown"));
    };
    let Some(Compensation { amount, usage, uncharged }) = compensation(case.listed.as_ref(), &records, &ledger) else {
        return gone(app, case, decision).await;
    };
    let named = |_| not_possible("the case's reference is too long");
    let reference = Reference::new(case.reference()).map_err(named)?;
    let by = By::control("adjust", &reference).map_err(named)?;
    let now_ms = app.clock.now_ms();
    let entry = Entry::of_job(EntryKind::Adjust, &records.job, by.to_string(), now_ms);
    let price_version = Some(records.job.price.version.clone());
    let reason = decision.reason.clone();
    let entry = Entry { amount, uncharged, usage: Some(usage), price_version, reason: reason.clone(), ..entry };
    let posting = app.telling(adjust::post(entry, &reference, &ledger, &balance, None)?, &balance).await?;
    let request = ControlRequest {
        kind: "adjust".to_owned(),
        tenant: tenant.clone(),
        subject: job.to_string(),
        content_hash: hex_sha256(&format!("{amount}|{reason}")),
        reference,
        actor: decision.actor.clone(),
        reason,
        created_ms: now_ms,
    };
    let decision = Decision { note: format!("adjusted by {amount} under {}", request.reference), ..decision };
    let committed = app.store.resolve_with_posting(case, &decision, &posting, Some(&request)).await?;
    if committed == Commit::Committed {
        app.send_posted(&posting).await;
    }
    Ok(committed.into())
}

/// The settlement of the event that decided the job, with the usage that the provider's list has.
pub(super) async fn ask_authority(app: &App, case: &Case, decision: Decision) -> Result<Round, ResolveError> {
    let Subject::Job { tenant, job } = &case.subject else { return Err(not_possible("the case names no job")) };
    let Some(usage) = case.listed.as_ref().and_then(|listed| listed.usage.clone()) else {
        return Err(not_possible("the provider's list was not read yet, or has no usage: run with kind provider-list"));
    };
    let Some((balance, ledger, records)) = view(app, tenant, job).await? else {
        return Err(not_possible("the job or its wallet is unknown"));
    };
    let Some(last) = records.transitions.last() else { return gone(app, case, decision).await };
    let by = last.by.clone();
    let Some(event) = app.store.load_event(&by.event).await? else {
        return Err(not_possible("the event that decided the job has no receipt"));
    };
    let key = OperationKey { event: by.event.clone(), item: by.item.clone(), name: OperationName::SettleUsage };
    if !event.receipt.operations().contains(&key) {
        return Err(not_possible("the event that decided the job settles nothing"));
    }
    let told = event.receipt.envelope.clone();
    let envelope = Envelope { usage: Some(usage), usage_problem: String::new(), ..told };
    let ask = Ask {
        by: &by,
        envelope: &envelope,
        business_time_ms: event.receipt.business_time_ms(),
        expire_after_ms: i64::MAX, // a person decides here
        record: None,
        now_ms: app.clock.now_ms(),
        policy: &app.policy,
        settles: true,
    };
    let authorisation = app.authorisation_of(&records.job, &balance).await?;
    let view = View { balance: Some(&balance), ledger: &ledger, job: Some(&records), authorisation: &authorisation };
    let posting = match settle::decide(&ask, &view) {
        settle::Decision::Commit(posting) => posting,
        settle::Decision::None(domain::decide::NoEffect::Done) => return gone(app, case, decision).await,
        settle::Decision::None(verdict) => return Err(verdict.into()),
    };
    let posting = app.telling(*posting, &balance).await?;
    let amount = posting.entry.amount;
    let decision = Decision { note: format!("settled {amount} with the usage of the provider's list"), ..decision };
    let committed = app.store.resolve_with_posting(case, &decision, &posting, None).await?;
    if committed == Commit::Committed {
        app.send_posted(&posting).await;
    }
    let round = Round::from(committed);
    if matches!(round, Round::Resolved)
        && let Some(record) = event.operation(&key).filter(|record| !record.is_final())
    {
        // If this is lost, the next run closes the record: the effect outranks it.
        app.store.put_operation(&closed(key, record, app.clock.now_ms(), app.random.token())).await?;
    }
    Ok(round)
}

/// The balance moves to what its entries and open holds say, under the `rev` that was read.
pub(super) async fn rebuild_balance(app: &App, case: &Case, decision: Decision) -> Result<Round, ResolveError> {
    let Subject::Wallet { tenant, wallet } = &case.subject else {
        return Err(not_possible("the case names no wallet"));
    };
    let reading = match wallets::at_rest(app, tenant, wallet).await? {
        Rest::Agreed(reading) => reading,
        Rest::Moving(_) => return Err(not_possible("the wallet was written during every reading: try again later")),
        Rest::Unknown => return Err(not_possible("the wallet is unknown")),
    };
    let Some(fault) = &reading.fault else { return gone(app, case, decision).await };
    let class = domain::reconcile::compare_wallet(fault, &reading.wallet).class;
    if !matches!(class, CaseClass::BalanceDrift | CaseClass::HeldDrift) {
        return Err(not_possible("the chain of entries is broken: a balance is rebuilt from sound entries only"));
    }
    let beyond = |_| not_possible("an amount is beyond the limit");
    let delta = rebuild(&reading.wallet, reading.entries, reading.holds).map_err(beyond)?;
    let note = format!("available {:+}, held {:+} (micros)", delta.available.get(), delta.held.get());
    let decision = Decision { note, ..decision };
    let pk = keys::wallet_pk(tenant, wallet);
    Ok(app.store.resolve_with_rebuild(case, &decision, &pk, &reading.balance, delta).await?.into())
}
