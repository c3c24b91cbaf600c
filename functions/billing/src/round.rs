//! One round of one operation: reads in order, decides, commits.

use domain::authorisation::Authorisation;
use domain::decide::posting::Posting;
use domain::decide::settle::{self, Decision};
use domain::decide::{NoEffect, adjust, extend, fund, payment};
use domain::event::EventId;
use domain::ids::{ItemId, JobId, TenantId, WalletId};
use domain::job::JobRecords;
use domain::ledger::{Balance, JobLedger};
use domain::money::Micros;
use domain::operation::{Class, OperationKey, OperationName};
use domain::own;
use runtime::App;
use runtime::consumer::Work;
use store::{Commit, StoreError};

/// What came of a round.
pub enum Round {
    /// It is over.
    Verdict(NoEffect),
    /// A condition failed: whatever it was, even an item that this very event wrote, only the own
    /// effect says "done".
    DecideAgain,
    /// Another transaction was at work.
    Conflict,
}

impl From<Commit> for Round {
    fn from(commit: Commit) -> Self {
        match commit {
            Commit::Committed => Self::Verdict(NoEffect::Done),
            Commit::ConditionFailed(_) => Self::DecideAgain,
            Commit::Conflict => Self::Conflict,
        }
    }
}

/// Which wallet is to be read first: the receipt's copy, else the job's immutable record.
pub async fn wallet_of(app: &App, work: &Work) -> Result<Option<(TenantId, JobId, WalletId)>, StoreError> {
    let envelope = &work.receipt.envelope;
    let Some((tenant, job)) = app.store.find_job(&work.key.event.provider, envelope).await? else { return Ok(None) };
    if let Some(wallet) = &envelope.wallet {
        return Ok(Some((tenant, job, wallet.clone())));
    }
    let found = app.store.get_job(&tenant, &job).await?;
    Ok(found.map(|found| (tenant, job, found.wallet)))
}

/// What a job's operation is decided from.
#[derive(Default)]
pub struct Reads {
    /// Read first.
    pub balance: Option<Balance>,
    /// Read second.
    pub ledger: JobLedger,
    /// Read after it.
    pub job: Option<JobRecords>,
    /// What became of the job's authorisation.
    pub authorisation: Authorisation,
}

impl Reads {
    /// The decision's view.
    pub fn view(&self) -> settle::View<'_> {
        settle::View {
            balance: self.balance.as_ref(),
            ledger: &self.ledger,
            job: self.job.as_ref(),
            authorisation: &self.authorisation,
        }
    }
}

/// One round of an operation on a job.
pub async fn job(app: &App, work: &Work) -> Result<Round, StoreError> {
    let mut reads = Reads::default();
    if let Some((tenant, id, wallet)) = wallet_of(app, work).await? {
        reads.balance = app.store.get_balance(&tenant, &wallet).await?;
        reads.ledger = app.store.load_ledger(&tenant, &id).await?;
        reads.job = app.store.load_job(&tenant, &id).await?;
        if domain::planted::on("balance-read-last") {
            reads.balance = app.store.get_balance(&tenant, &wallet).await?; // PLANTED
        }
    }
    if let (Some(balance), Some(records)) = (&reads.balance, &reads.job) {
        reads.authorisation = app.authorisation_of(&records.job, balance).await?;
    }
    if work.key.name == OperationName::ExtendHold {
        return extend_hold(app, work, &reads).await;
    }
    let decision = match work.key.name {
        OperationName::AdjustUsage => adjust::decide(&work.ask(app), &reads.view()),
        _ => settle::decide(&work.ask(app), &reads.view()),
    };
    match decision {
        Decision::Commit(posting) => post(app, *posting, reads.balance.as_ref()).await,
        // Waiting for the authorisation's end is no try.
        Decision::None(NoEffect::Wait(Class::NotYet, note)) if reads.authorisation == Authorisation::Open => {
            let due_ms = app.next_look_ms(work.receipt.arrival_ms);
            Ok(Round::Verdict(NoEffect::Until(Class::NotYet, note, due_ms)))
        }
        Decision::None(verdict) => Ok(Round::Verdict(verdict)),
    }
}

/// Commits a posting with what is told of it.
async fn post(app: &App, posting: Posting, balance: Option<&Balance>) -> Result<Round, StoreError> {
    let posting = match balance {
        Some(balance) => app.telling(posting, balance).await?,
        None => posting, // decide posts nothing without a balance
    };
    let committed = app.store.commit(&posting).await?;
    if committed == Commit::Committed {
        app.send_posted(&posting).await;
    }
    Ok(committed.into())
}

async fn extend_hold(app: &App, work: &Work, reads: &Reads) -> Result<Round, StoreError> {
    let ask = work.ask(app);
    let by = work.by.to_string();
    if reads.job.as_ref().is_some_and(|job| job.extensions.iter().any(|extension| extension.by == by)) {
        return Ok(Round::Verdict(NoEffect::Done));
    }
    if let Some(limit) = ask.over_limit() {
        return Ok(Round::Verdict(limit));
    }
    let (Some(records), Some(balance)) = (&reads.job, &reads.balance) else {
        let note = "the job was not submitted yet".to_owned();
        return Ok(Round::Verdict(NoEffect::Wait(Class::JobUnknown, note)));
    };
    if let Some(contradiction) = ask.contradicts(&records.job) {
        return Ok(Round::Verdict(contradiction));
    }
    let amount = ask.envelope.amount.and_then(|amount| Micros::new(amount).ok());
    let (Some(reference), Some(amount)) = (&ask.envelope.reference, amount) else {
        let note = "the receipt has no reference or amount".to_owned();
        return Ok(Round::Verdict(NoEffect::Review(Class::Unreadable, note)));
    };
    let life_ms = app.profiles.get(work.key.event.provider.as_str()).map_or(0, |profile| profile.hold_life_ms);
    let expires_ms = ask.now_ms.saturating_add(life_ms);
    let request = extend::Request { reference, amount, expires_ms, by: &by, now_ms: ask.now_ms };
    match extend::decide(&request, records, &reads.ledger, balance) {
        extend::Decision::Commit(extension, delta) => {
            let delta = app.watching((&records.job.tenant, &records.job.wallet), balance, *delta).await?;
            let committed = app.store.commit_extension(&records.job, &extension, &delta, None).await?;
            if committed == Commit::Committed {
                app.send_told(&delta.low.told).await;
            }
            Ok(committed.into())
        }
        extend::Decision::None(verdict) => Ok(Round::Verdict(verdict)),
    }
}

/// One round of an operation on a wallet alone.
pub async fn wallet(app: &App, work: &Work) -> Result<Round, StoreError> {
    let envelope = &work.receipt.envelope;
    let (Some(tenant), Some(wallet), Some(reference)) = (&envelope.tenant, &envelope.wallet, &envelope.reference)
    else {
        let note = "the receipt has no tenant, wallet or reference".to_owned();
        return Ok(Round::Verdict(NoEffect::Review(Class::Unreadable, note)));
    };
    let balance = app.store.get_balance(tenant, wallet).await?;
    let funding = app.store.get_funding(tenant, wallet, reference).await?;
    let reversals = app.store.load_funding_reversals(tenant, wallet, reference).await?;
    let view =
        fund::View { tenant, wallet, balance: balance.as_ref(), funding: funding.as_ref(), reversals: &reversals };
    let decision = match work.key.name {
        OperationName::FundWallet => fund::decide(&work.ask(app), &view),
        _ => fund::decide_reversal(&work.ask(app), &view),
    };
    match decision {
        Decision::Commit(posting) => post(app, *posting, balance.as_ref()).await,
        Decision::None(verdict) => Ok(Round::Verdict(verdict)),
    }
}

/// One round of payment-failed, which writes nothing of its own.
pub async fn payment_failed(app: &App, work: &Work) -> Result<Round, StoreError> {
    let envelope = &work.receipt.envelope;
    let (Some(tenant), Some(wallet), Some(reference)) = (&envelope.tenant, &envelope.wallet, &envelope.reference)
    else {
        let note = "the receipt has no tenant, wallet or reference".to_owned();
        return Ok(Round::Verdict(NoEffect::Review(Class::Unreadable, note)));
    };
    let postpaid = app.store.get_balance(tenant, wallet).await?.and_then(|balance| balance.postpaid);
    let funding = app.store.get_funding(tenant, wallet, reference).await?;
    // The charge's own event, as the payment's metadata name it.
    let id = envelope.data.get("charge").and_then(|id| EventId::try_from(id.clone()).ok());
    let key = || {
        let (event, item) = (own::event(id?).ok()?, ItemId::new(postpaid?.to).ok()?);
        Some(OperationKey { event, item, name: OperationName::Forward })
    };
    let charge = match key() {
        Some(key) => app.store.get_intent(&key.to_string()).await?,
        None => None,
    };
    let view = payment::View { funding: funding.as_ref(), charge: charge.as_ref() };
    Ok(Round::Verdict(payment::decide(&work.ask(app), &view)))
}
