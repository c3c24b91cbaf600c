//! The billing consumer: each settlement is ONE transaction over the entry, the balance and, where
//! none exists yet, the transition.
//!
//! Read the balance FIRST, then the job's ledger, then the job: the transaction's condition on the
//! balance's sequence then covers everything that was read after it. Between its reads and its
//! commit it talks to DynamoDB only.

use domain::decide::{NoEffect, settle};
use domain::ids::{JobId, TenantId, WalletId};
use domain::ledger::JobLedger;
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::operation::{Class, OperationName};
use runtime::App;
use runtime::consumer::{Operate, Work, handle_batch};
use runtime::retry::Again;
use runtime::sqs::{BatchResponse, SqsEvent};
use store::{Commit, StoreError};

/// Handles one batch of the billing queue.
pub async fn handle(app: &App, event: SqsEvent) -> BatchResponse {
    handle_batch(app, &event, &BillingConsumer).await
}

struct BillingConsumer;

impl Operate for BillingConsumer {
    async fn operate(&self, app: &App, work: &Work) -> Result<NoEffect, StoreError> {
        if work.key.name != OperationName::SettleUsage {
            let note = "this operation belongs to another consumer".to_owned();
            return Ok(NoEffect::Review(Class::Unreadable, note));
        }
        let mut again = Again::new(app);
        for _ in 0..DECIDE_AGAIN_LIMIT {
            match settle_once(app, work).await {
                Ok(Round::Verdict(verdict)) => return Ok(verdict),
                Ok(Round::DecideAgain) => {}
                Ok(Round::Conflict) => again.conflict("settle").await?,
                Err(error) => again.after(error).await?,
            }
        }
        Ok(NoEffect::Wait(Class::Transient, "other writers won every time".to_owned()))
    }
}

enum Round {
    Verdict(NoEffect),
    DecideAgain,
    Conflict,
}

/// Which wallet is to be read first: the receipt's copy, else the job's immutable record.
async fn wallet_of(app: &App, work: &Work) -> Result<Option<(TenantId, JobId, WalletId)>, StoreError> {
    let envelope = &work.receipt.envelope;
    let Some((tenant, job)) = app.store.find_job(&work.key.event.provider, envelope).await? else { return Ok(None) };
    if let Some(wallet) = &envelope.wallet {
        return Ok(Some((tenant, job, wallet.clone())));
    }
    let found = app.store.get_job(&tenant, &job).await?;
    Ok(found.map(|found| (tenant, job, found.wallet)))
}

/// One round: reads, decides, commits.
async fn settle_once(app: &App, work: &Work) -> Result<Round, StoreError> {
    let (mut balance, mut ledger, mut job) = (None, JobLedger::default(), None);
    if let Some((tenant, id, wallet)) = wallet_of(app, work).await? {
        balance = app.store.get_balance(&tenant, &wallet).await?;
        ledger = app.store.load_ledger(&tenant, &id).await?;
        job = app.store.load_job(&tenant, &id).await?;
    }
    let view = settle::View { balance: balance.as_ref(), ledger: &ledger, job: job.as_ref() };
    let settlement = match settle::decide(&work.ask(app), &view) {
        settle::Decision::Commit(settlement) => settlement,
        settle::Decision::None(verdict) => return Ok(Round::Verdict(verdict)),
    };
    match app.store.commit_settlement(&settlement).await? {
        Commit::Committed => Ok(Round::Verdict(NoEffect::Done)),
        // Whatever failed, even an item that this very event wrote: only the own effect says "done".
        Commit::ConditionFailed(_) => Ok(Round::DecideAgain),
        Commit::Conflict => Ok(Round::Conflict),
    }
}
