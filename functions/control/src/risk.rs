//! Whose an operation is, and how much money hangs on it.

use domain::event::By;
use domain::ids::{JobId, TenantId, WalletId};
use domain::job::JobRecords;
use domain::ledger::JobLedger;
use domain::money::{Currency, Micros};
use domain::operation::{OperationKey, OperationName};
use domain::receipt::Receipt;
use runtime::App;
use serde_json::{Value, json};
use store::StoreError;

/// Money that hangs on an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Risk {
    pub(crate) amount: Micros,
    pub(crate) currency: Currency,
    /// `hold`: the job's open hold; `charge`: the priced usage; `amount`: what the event names.
    pub(crate) of: &'static str,
}

/// What an operation is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Subject {
    pub(crate) tenant: Option<TenantId>,
    pub(crate) job: Option<JobId>,
    pub(crate) wallet: Option<WalletId>,
    pub(crate) risk: Option<Risk>,
    /// True when the job's hold is open and no other event is the one that settles it.
    pub(crate) holds: bool,
}

impl Risk {
    pub(crate) fn json(&self) -> Value {
        json!({ "amount": self.amount, "currency": self.currency, "of": self.of })
    }
}

/// Follows the receipt's keys to the job and its ledger; two or three reads. A job whose records cannot be
/// read has no known amount.
pub(crate) async fn subject(app: &App, key: &OperationKey, receipt: &Receipt) -> Result<Subject, StoreError> {
    match of_job(app, key, receipt).await {
        Err(StoreError::Corrupt { .. }) => Ok(told_by(receipt)),
        other => other,
    }
}

fn told_by(receipt: &Receipt) -> Subject {
    let envelope = &receipt.envelope;
    let named = envelope.amount.and_then(|amount| Micros::new(amount).ok()).zip(envelope.currency);
    let risk = named.map(|(amount, currency)| Risk { amount, currency, of: "amount" });
    let (tenant, job, wallet) = (envelope.tenant.clone(), envelope.job.clone(), envelope.wallet.clone());
    Subject { tenant, job, wallet, risk, holds: false }
}

async fn of_job(app: &App, key: &OperationKey, receipt: &Receipt) -> Result<Subject, StoreError> {
    let told = told_by(receipt);
    // What cannot be fetched holds up the job's money.
    if !key.name.needs_job() && key.name != OperationName::Fetch {
        return Ok(told);
    }
    let Some((tenant, job)) = app.store.find_job(&key.event.provider, &receipt.envelope).await? else {
        return Ok(told);
    };
    let Some(records) = app.store.load_job(&tenant, &job).await? else {
        return Ok(Subject { tenant: Some(tenant), job: Some(job), ..told });
    };
    let ledger = app.store.load_ledger(&tenant, &job).await?;
    Ok(Subject {
        wallet: Some(records.job.wallet.clone()),
        risk: job_risk(key.name, receipt, &records, &ledger),
        holds: ledger.close.is_none() && settles(&records, &key.by()),
        tenant: Some(tenant),
        job: Some(job),
    })
}

/// True when this event settles the job's hold, or may: it decided the outcome, or nobody did yet.
pub(crate) fn settles(records: &JobRecords, by: &By) -> bool {
    records.transitions.last().is_none_or(|last| last.by == *by)
}

fn job_risk(name: OperationName, receipt: &Receipt, records: &JobRecords, ledger: &JobLedger) -> Option<Risk> {
    let currency = records.job.currency();
    if ledger.close.is_none() {
        return records.hold().ok().map(|amount| Risk { amount, currency, of: "hold" });
    }
    let usage = receipt.envelope.billed_usage()?;
    let charge = match name {
        OperationName::SettleUsage => {
            let outcome = receipt.envelope.outcome.unwrap_or_else(|| records.priced_outcome());
            records.job.price.charge_for(outcome, usage).ok()?
        }
        OperationName::AdjustUsage => {
            let before = ledger.captured_by_usage().ok()?;
            let difference = records.job.price.charge_for(records.priced_outcome(), usage).ok()?.minus(before).ok()?;
            difference.max(difference.negated())
        }
        _ => return None,
    };
    Some(Risk { amount: charge, currency, of: "charge" })
}
