//! A posting: one transaction over a ledger entry, the wallet's balance, and what must still be true.

use crate::authorisation::Close;
use crate::charge::Outgoing;
use crate::job::{Job, Transition};
use crate::ledger::{Account, Advance, Balance, BalanceDelta, Entry, lines_out};
use crate::money::{Micros, MoneyError};
use crate::postpaid::{self, Back, Postpaid};
use crate::told::Told;

/// What the transaction checks beside its own puts, in the job's partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// No extension of this number exists: the hold that was read is the whole hold.
    NoExtension(u32),
    /// No terminal transition of this version exists.
    NoTransition(u32),
    /// The hold is not closed.
    NoClose,
}

/// One posting. All of it commits, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    /// Sort key of the entry in its ledger partition; put only if absent.
    pub sort_key: String,
    /// The entry.
    pub entry: Entry,
    /// What it does to the balance.
    pub delta: BalanceDelta,
    /// The transition to put, if this event's does not exist.
    pub transition: Option<Transition>,
    /// What must still be true.
    pub checks: Vec<Check>,
    /// A key that only one posting can take: for postings that were decided from a sum of entries. Reads
    /// beside a transaction can show its balance and not yet its entry (DynamoDB's isolation of single
    /// reads), so two such postings must collide on more than the balance's sequence.
    pub slot: Option<String>,
    /// What is told of it, in its transaction; nothing unless somebody subscribed.
    pub told: Told,
    /// The payment that a refund is of.
    pub payment: Option<String>,
    /// What a close does with its job's authorisation; none where nothing is held.
    pub authorised: Option<Close>,
    /// What it asks of a payment provider, in its transaction; nothing unless the wallet is postpaid.
    pub outgoing: Vec<Outgoing>,
}

/// How an entry changes the balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Added to available.
    pub available: Micros,
    /// Added to held.
    pub held: Micros,
    /// Taken from available under a funds condition.
    pub need: Micros,
    /// Added to what a postpaid wallet carries.
    pub carried: Micros,
}

impl Posting {
    /// A posting of an entry that moves the wallet's money: it advances sequence and chain.
    pub fn chained(sort_key: String, entry: Entry, balance: &Balance, change: Change) -> Self {
        let entry = entry.linked(balance);
        let head = entry.link.as_ref().map(|link| link.hash.clone()).unwrap_or_default();
        let advance = Advance { from: balance.sequence, to: balance.sequence + 1, head };
        Self::new(sort_key, entry, balance, change, Some(advance))
    }

    /// A posting of an entry that moves nothing out of the wallet: neither needs nor advances the sequence.
    pub fn unchained(sort_key: String, entry: Entry, balance: &Balance, change: Change) -> Self {
        Self::new(sort_key, entry, balance, change, None)
    }

    fn new(sort_key: String, entry: Entry, balance: &Balance, change: Change, advance: Option<Advance>) -> Self {
        let delta = BalanceDelta {
            available: change.available,
            held: change.held,
            carried: change.carried,
            need: change.need,
            advance,
            currency: balance.currency,
            credit_limit: balance.credit_limit,
            low: Box::default(),
        };
        Self {
            sort_key,
            entry,
            delta,
            transition: None,
            checks: Vec::new(),
            slot: None,
            told: Told::default(),
            payment: None,
            authorised: None,
            outgoing: Vec::new(),
        }
    }

    /// Whether the wallet bears what the posting takes, by the very amount that its commit is conditioned on: of a postpaid
    /// wallet that is what moves now, which is not what was priced.
    ///
    /// # Errors
    /// What is needed, where the available balance has less.
    pub fn borne_by(&self, balance: &Balance) -> Result<(), Micros> {
        let need = self.delta.need;
        if need <= Micros::ZERO || balance.covers(need) { Ok(()) } else { Err(need) }
    }

    /// With a transition to put.
    #[must_use]
    pub fn with_transition(mut self, transition: Option<Transition>) -> Self {
        self.transition = transition;
        self
    }

    /// The close of a job without a capture: what was authorised for it is given up, whatever became of that.
    #[must_use]
    pub fn giving_up(mut self, job: &Job) -> Self {
        let left = crate::planted::on("authorisation-left-standing"); // PLANTED
        self.authorised = (job.authorised != Micros::ZERO && !left).then_some(Close::Void);
        self
    }

    /// With a key that only one posting can take.
    #[must_use]
    pub fn with_slot(mut self, slot: String) -> Self {
        self.slot = Some(slot);
        self
    }

    /// With what must still be true.
    #[must_use]
    pub fn with_checks(mut self, checks: impl IntoIterator<Item = Check>) -> Self {
        self.checks.extend(checks);
        self
    }
}

/// An entry that charges the wallet for `amount` (or, negative, pays it back) outside the hold.
///
/// # Errors
/// [`MoneyError::TooLarge`] when an amount leaves the limits.
pub fn from_available(entry: Entry, to: Account, sort_key: String, balance: &Balance) -> Result<Posting, MoneyError> {
    back_to(entry, to, sort_key, balance, None)
}

/// The same; of a postpaid wallet, what is paid back goes `back` to an earlier charge as far as it reaches.
///
/// # Errors
/// [`MoneyError::TooLarge`] when an amount leaves the limits.
pub fn back_to(
    entry: Entry, to: Account, sort_key: String, balance: &Balance, back: Option<&Back>,
) -> Result<Posting, MoneyError> {
    let amount = if entry.kind.wallet_sign() > 0 { entry.amount.negated() } else { entry.amount };
    balance.available.plus(balance.held)?.minus(amount)?;
    match &balance.postpaid {
        Some(terms) if entry.job.is_some() => return charged(entry, amount, sort_key, (balance, terms), back),
        Some(_) | None => {}
    }
    let mut lines = lines_out(amount, to);
    if let Some(own) = lines.first_mut().filter(|_| balance.postpaid.is_some()) {
        own.account = Account::Receivable;
    }
    let change = Change { available: amount.negated(), need: amount.max(Micros::ZERO), ..Change::default() };
    Ok(Posting::chained(sort_key, Entry { lines, ..entry }, balance, change))
}

/// An entry of a job on a postpaid wallet: whole minor units move through the receivable, the rest is carried.
fn charged(
    entry: Entry, amount: Micros, sort_key: String, wallet: (&Balance, &Postpaid), back: Option<&Back>,
) -> Result<Posting, MoneyError> {
    let (balance, terms) = wallet;
    let split = terms.split(balance.carried, amount, back.map_or(Micros::ZERO, |back| back.left))?;
    let back = back.filter(|_| split.moved < Micros::ZERO);
    let (lines, charge) = (postpaid::lines(amount, split), back.map(|back| back.charge.clone()));
    let change = Change {
        available: split.moved.negated(),
        need: split.moved.max(Micros::ZERO),
        carried: split.carried,
        ..Change::default()
    };
    let posting = Posting::chained(sort_key, Entry { lines, charge, ..entry }, balance, change);
    Ok(Posting { payment: back.and_then(|back| back.payment.clone()), ..posting })
}
