//! One wallet: balance, entries, jobs, balance again. A reading whose `rev` moved is discarded, and what is wrong must be
//! seen the same in two readings: the indexes that lead to entries and jobs may lag, and every entry and job that they
//! name is read again from its table.

use std::time::Duration;

use domain::audit::{Audit, Broken, Hold, Wallet};
use domain::ids::{JobId, TenantId, WalletId};
use domain::keys;
use domain::ledger::Balance;
use domain::reconcile::{Finding, Subject, compare_wallet};
use futures_util::future::join_all;
use runtime::App;
use store::StoreError;

use crate::SIDE_BY_SIDE;
use crate::jobs::{self, JobLook};
use crate::receipts::unreadable;
use crate::record::Recorder;

/// Readings of one wallet at most.
const READINGS: usize = 5;
/// Between two readings: an index that lagged has caught up by then.
const BETWEEN: Duration = Duration::from_secs(1);
/// Keys of one page.
const PAGE: usize = 200;

/// A wallet at rest.
pub(crate) struct Reading {
    pub(crate) balance: Balance,
    pub(crate) wallet: Wallet,
    /// True when nothing was written meanwhile.
    pub(crate) still: bool,
    /// Means something only of a reading that is still.
    pub(crate) fault: Option<Broken>,
    /// The sum of the entries and of the open holds, in micros.
    pub(crate) entries: i128,
    pub(crate) holds: i128,
    pub(crate) jobs: Vec<Finding>,
    pub(crate) examined: u64,
}

/// What several readings come to.
pub(crate) enum Rest {
    /// Two readings agree, or one has no fault.
    Agreed(Box<Reading>),
    /// It was written during every reading, or no two agreed; the last one.
    Moving(Box<Reading>),
    /// There is no such wallet.
    Unknown,
}

pub(crate) async fn compare(
    recorder: &mut Recorder<'_>, tenant: &TenantId, wallet: &WalletId,
) -> Result<(), StoreError> {
    let findings = match at_rest(recorder.app, tenant, wallet).await {
        Ok(Rest::Agreed(reading)) => {
            recorder.result.examined += reading.examined;
            let mut findings = reading.jobs;
            findings.extend(reading.fault.map(|fault| compare_wallet(&fault, &reading.wallet)));
            findings
        }
        Ok(Rest::Moving(last)) => {
            let pk = keys::wallet_pk(tenant, wallet);
            recorder.result.skipped.push(format!("{pk}: written during {READINGS} readings; the next run looks again"));
            recorder.result.examined += last.examined;
            last.jobs // a job stands by itself, whatever else is written to its wallet
        }
        Ok(Rest::Unknown) => return Ok(()),
        Err(StoreError::Corrupt { what }) => {
            let subject = Subject::Wallet { tenant: tenant.clone(), wallet: wallet.clone() };
            vec![unreadable(subject, what)]
        }
        Err(error) => return Err(error),
    };
    recorder.record_all(&findings).await
}

/// What is wrong with a wallet and its jobs; `None` while it does not come to rest.
pub(crate) async fn examine(
    app: &App, tenant: &TenantId, wallet: &WalletId,
) -> Result<Option<Vec<Finding>>, StoreError> {
    Ok(match at_rest(app, tenant, wallet).await? {
        Rest::Agreed(reading) => Some(reading.fault.iter().map(|f| compare_wallet(f, &reading.wallet)).collect()),
        Rest::Moving(_) => None,
        Rest::Unknown => Some(Vec::new()),
    })
}

/// Reads a wallet until one reading has no fault, or two agree on it and on both sums.
pub(crate) async fn at_rest(app: &App, tenant: &TenantId, wallet: &WalletId) -> Result<Rest, StoreError> {
    let (mut suspected, mut last) = (None, None);
    for count in 0..READINGS {
        if count > 0 {
            tokio::time::sleep(BETWEEN).await;
        }
        let Some(reading) = Box::pin(read(app, tenant, wallet)).await? else { return Ok(Rest::Unknown) };
        if reading.still {
            // A rebuild takes both sums from this reading: a lagging index must not get into either of them.
            let seen = Some((reading.fault.clone(), reading.entries, reading.holds));
            if reading.fault.is_none() || seen == suspected {
                return Ok(Rest::Agreed(Box::new(reading)));
            }
            suspected = seen;
        }
        last = Some(reading);
    }
    Ok(last.map_or(Rest::Unknown, |reading| Rest::Moving(Box::new(reading))))
}

/// One bracketed reading.
async fn read(app: &App, tenant: &TenantId, name: &WalletId) -> Result<Option<Reading>, StoreError> {
    let Some(balance) = app.store.get_balance(tenant, name).await? else { return Ok(None) };
    let wallet = Wallet {
        tenant: tenant.clone(),
        wallet: name.clone(),
        currency: balance.currency,
        available: balance.available,
        held: balance.held,
        sequence: balance.sequence,
        head: balance.head.clone(),
        rev: balance.rev,
        carried: balance.carried,
    };
    let mut audit = Audit::of(&wallet);
    let chain = entries(app, &wallet, &mut audit).await?;
    let (holds, findings, jobs) = jobs_of(app, tenant, name).await?;
    let still = app.store.get_balance(tenant, name).await?.is_some_and(|after| after.rev == balance.rev);
    let fault = chain.err().or_else(|| audit.finish(&holds).err());
    let (entries, examined) = (audit.total(), audit.checked() + jobs);
    let sum = holds.iter().map(|hold| i128::from(hold.hold.get())).sum();
    Ok(Some(Reading { balance, wallet, still, fault, entries, holds: sum, jobs: findings, examined }))
}

/// Every entry of the chain, in order, each read from the table; the first broken link.
async fn entries(app: &App, wallet: &Wallet, audit: &mut Audit<'_>) -> Result<Result<(), Broken>, StoreError> {
    let mut after = 0;
    loop {
        let (keys, more) = app.store.entry_keys(&wallet.tenant, &wallet.wallet, after, PAGE).await?;
        for chunk in keys.chunks(SIDE_BY_SIDE) {
            for entry in join_all(chunk.iter().map(|key| app.store.get_entry(key))).await {
                let checked = match entry {
                    Ok(Some(entry)) => audit.entry(&entry),
                    Ok(None) => Err(audit.unreadable("the index names an entry that the table does not have")),
                    Err(StoreError::Corrupt { what }) => {
                        Err(audit.unreadable(format!("a stored {what} cannot be read")))
                    }
                    Err(error) => return Err(error),
                };
                if let Err(broken) = checked {
                    return Ok(Err(broken));
                }
            }
        }
        match keys.last() {
            Some(last) if more => after = last.sequence,
            _ => return Ok(Ok(())),
        }
    }
}

/// The open holds of a wallet, what is wrong with its jobs, and how many there are.
async fn jobs_of(
    app: &App, tenant: &TenantId, wallet: &WalletId,
) -> Result<(Vec<Hold>, Vec<Finding>, u64), StoreError> {
    let (mut holds, mut findings, mut count) = (Vec::new(), Vec::new(), 0);
    let mut after: Option<JobId> = None;
    loop {
        let page = app.store.jobs_of_wallet(tenant, wallet, after.as_ref(), PAGE).await?;
        for chunk in page.chunks(SIDE_BY_SIDE) {
            let looks = join_all(chunk.iter().map(|job| jobs::examine(app, tenant, job))).await;
            for (job, look) in chunk.iter().zip(looks) {
                let JobLook { findings: found, open_hold } = look?;
                findings.extend(found);
                holds.extend(open_hold.map(|hold| Hold { job: job.clone(), hold }));
                count += 1;
            }
        }
        if page.len() < PAGE {
            return Ok((holds, findings, count));
        }
        after = page.into_iter().next_back();
    }
}
