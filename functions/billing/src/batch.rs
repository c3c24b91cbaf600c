//! A batch for one wallet: decided serially on a running balance, committed as one transaction.
//!
//! Only settlements that go straight take part, each of another job, so that every key is distinct.
//! On any cancellation or unknown outcome nothing is concluded here: the caller takes every message
//! one by one, in order, from its first read, where what did commit is found as done.

use std::collections::BTreeSet;

use domain::authorisation::Authorisation;
use domain::decide::posting::Posting;
use domain::decide::settle::{self, Decision};
use domain::ids::{JobId, TenantId, WalletId};
use domain::ledger::{Balance, BalanceDelta};
use domain::money::Micros;
use domain::operation::OperationName;
use domain::own::OwnEvent;
use futures_util::future::join_all;
use runtime::App;
use runtime::consumer::Work;
use store::{Commit, StoreError};

use crate::round::{Reads, wallet_of};

/// Commits what can be committed together. Returns the places of the works whose effects are now
/// written; none when fewer than two can, or when the commit is not certain.
pub async fn commit(app: &App, works: &[Work]) -> Vec<usize> {
    match try_commit(app, works).await {
        Ok(committed) => committed,
        Err(error) => {
            tracing::info!(%error, messages = works.len(), "batch not committed; one by one instead");
            Vec::new()
        }
    }
}

struct Candidate<'a> {
    place: usize,
    work: &'a Work,
    tenant: TenantId,
    job: JobId,
}

async fn try_commit(app: &App, works: &[Work]) -> Result<Vec<usize>, StoreError> {
    let Some((tenant, wallet, candidates)) = candidates(app, works).await? else { return Ok(Vec::new()) };
    let Some(first) = app.store.get_balance(&tenant, &wallet).await? else { return Ok(Vec::new()) };
    let mut running = first.clone();
    let reads = join_all(candidates.iter().map(|candidate| read(app, candidate, &first))).await;
    let mut postings: Vec<(usize, Posting)> = Vec::new();
    for (candidate, reads) in candidates.iter().zip(reads) {
        let reads = reads?;
        let view = settle::View { balance: Some(&running), ..reads.view() };
        let same_wallet = reads.job.as_ref().is_some_and(|j| j.job.wallet == wallet && j.job.tenant == tenant);
        if !same_wallet {
            continue;
        }
        if let Decision::Commit(posting) = settle::decide(&candidate.work.ask(app), &view)
            && let Ok(next) = running.after(&posting.delta)
        {
            running = next;
            let told = app.tell(OwnEvent::of_posting(&posting)).await?;
            postings.push((candidate.place, app.charging(Posting { told, ..*posting }, &first)?));
        }
    }
    if postings.len() < 2 {
        return Ok(Vec::new());
    }
    let change = running.available.minus(first.available).map_err(|_| StoreError::Corrupt { what: "amount" })?;
    watch(app, (&tenant, &wallet), &first, change, &mut postings).await?;
    let together: Vec<&Posting> = postings.iter().map(|(_, posting)| posting).collect();
    match app.store.commit_all(&together, None).await? {
        Commit::Committed => {
            for posting in together {
                app.send_posted(posting).await;
            }
            Ok(postings.into_iter().map(|(place, _)| place).collect())
        }
        _ if domain::planted::on("batch-cancellation-taken-for-done") => {
            Ok(postings.into_iter().map(|(place, _)| place).collect()) // PLANTED
        }
        Commit::ConditionFailed(_) | Commit::Conflict => Ok(Vec::new()),
    }
}

/// The balance has one write for all of them, so it falls once: the first posting carries what is told of it.
async fn watch(
    app: &App, wallet: (&TenantId, &WalletId), before: &Balance, change: Micros, postings: &mut [(usize, Posting)],
) -> Result<(), StoreError> {
    let Some((_, posting)) = postings.first_mut() else { return Ok(()) };
    let whole = BalanceDelta { available: change, ..posting.delta.clone() };
    posting.delta.low = app.watching(wallet, before, whole).await?.low;
    Ok(())
}

/// The settlements of one wallet, the first of each job.
async fn candidates<'a>(
    app: &App, works: &'a [Work],
) -> Result<Option<(TenantId, WalletId, Vec<Candidate<'a>>)>, StoreError> {
    let straight = |work: &&Work| work.key.name == OperationName::SettleUsage;
    if works.iter().filter(straight).count() < 2 {
        return Ok(None);
    }
    let (mut found, mut jobs) = (Vec::new(), BTreeSet::new());
    let mut shared: Option<(TenantId, WalletId)> = None;
    for (place, work) in works.iter().enumerate().filter(|(_, work)| straight(work)) {
        let Some((tenant, job, wallet)) = wallet_of(app, work).await? else { continue };
        let same = shared.get_or_insert_with(|| (tenant.clone(), wallet.clone()));
        if *same == (tenant.clone(), wallet) && jobs.insert(job.clone()) {
            found.push(Candidate { place, work, tenant, job });
        }
    }
    Ok(shared.map(|(tenant, wallet)| (tenant, wallet, found)))
}

/// The ledger, then the job; the balance was read before.
async fn read(app: &App, candidate: &Candidate<'_>, balance: &Balance) -> Result<Reads, StoreError> {
    let ledger = app.store.load_ledger(&candidate.tenant, &candidate.job).await?;
    let job = app.store.load_job(&candidate.tenant, &candidate.job).await?;
    let authorisation = match &job {
        Some(records) => app.authorisation_of(&records.job, balance).await?,
        None => Authorisation::Nothing,
    };
    Ok(Reads { balance: None, ledger, job, authorisation })
}
