//! settle-usage: the one close of a hold, or a late capture when the hold is already closed.

use super::{Ask, NoEffect, Standing, standing};
use crate::job::{Job, JobRecords, Outcome, Overage, Transition};
use crate::keys;
use crate::ledger::{Account, Advance, Balance, BalanceDelta, Entry, EntryKind, JobLedger, lines_out};
use crate::money::Micros;
use crate::operation::Class;
use crate::price::UsageError;

/// One transaction: the entry, the balance's deltas, and the transition where none exists yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Sort key of the entry in the job's ledger partition; put only if absent.
    pub sort_key: String,
    /// The entry.
    pub entry: Entry,
    /// What it does to the balance.
    pub delta: BalanceDelta,
    /// The transition to put, if this event's does not exist.
    pub transition: Option<Transition>,
}

/// What the billing consumer may commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Commit all of it in one transaction.
    Commit(Box<Settlement>),
    /// Nothing to write.
    None(NoEffect),
}

/// What was read, in this order: the balance first, then the ledger, then the job.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The job's wallet.
    pub balance: Option<&'a Balance>,
    /// The job's settlements.
    pub ledger: &'a JobLedger,
    /// The job; `None` when it is not known yet.
    pub job: Option<&'a JobRecords>,
}

/// Decides one settlement.
pub fn decide(ask: &Ask<'_>, view: &View<'_>) -> Decision {
    if view.ledger.own(ask.by).is_some() {
        return Decision::None(NoEffect::Done);
    }
    if let Some(limit) = ask.over_limit() {
        return Decision::None(limit);
    }
    let Some(records) = view.job else {
        return Decision::None(NoEffect::Wait(Class::JobUnknown, "the job was not submitted yet".to_owned()));
    };
    if let Some(review) = ask.contradicts(&records.job) {
        return Decision::None(review);
    }
    let Some(balance) = view.balance else {
        return Decision::None(NoEffect::Review(Class::Unreadable, "the job's wallet has no balance".to_owned()));
    };
    let Some(outcome) = ask.envelope.outcome else {
        return Decision::None(NoEffect::Review(Class::Unreadable, "the receipt has no outcome".to_owned()));
    };
    let (version, transition) = match standing(ask.by, ask.envelope, outcome, &records.job, &records.transitions) {
        Standing::Owns(version) => (version, None),
        Standing::Next(version) => (version, Some(transition(ask, version, outcome))),
        Standing::Overtaken(note) => return Decision::None(NoEffect::Noop(Class::Superseded, note)),
        Standing::Settled(class, note) => return Decision::None(NoEffect::Noop(class, note)),
        Standing::Contested(class, note) => return Decision::None(NoEffect::Review(class, note)),
    };
    match charge(ask, &records.job, outcome) {
        Ok(charge) => Case { ask, job: &records.job, balance, version, transition, charge }.settle(view.ledger),
        Err(review) => Decision::None(review),
    }
}

fn transition(ask: &Ask<'_>, version: u32, outcome: Outcome) -> Transition {
    let (usage, by) = (ask.envelope.usage.clone(), ask.by.clone());
    Transition { version, outcome, usage, by, created_ms: ask.now_ms }
}

/// The priced usage; zero for an outcome that the policies do not bill.
fn charge(ask: &Ask<'_>, job: &Job, outcome: Outcome) -> Result<Micros, NoEffect> {
    let billed = outcome == Outcome::Success || (job.policies.bill_partial && ask.envelope.usage.is_some());
    if !billed {
        return Ok(Micros::ZERO);
    }
    let Some(usage) = &ask.envelope.usage else {
        let note = "a success without usage is not zero: find the usage at the provider".to_owned();
        return Err(NoEffect::Review(Class::NoUsage, note));
    };
    job.price.charge(usage).map_err(|error| match error {
        UsageError::Missing => NoEffect::Review(Class::NoUsage, error.to_string()),
        _ => NoEffect::Review(Class::InvalidUsage, error.to_string()),
    })
}

/// One settlement whose version and charge are known.
struct Case<'a> {
    ask: &'a Ask<'a>,
    job: &'a Job,
    balance: &'a Balance,
    version: u32,
    transition: Option<Transition>,
    charge: Micros,
}

impl Case<'_> {
    fn settle(self, ledger: &JobLedger) -> Decision {
        let success = self.outcome_is_success();
        match &ledger.close {
            None => self.close(success),
            Some(_) if self.charge == Micros::ZERO && !success => {
                let note = "the hold was closed before, and nothing is to be charged".to_owned();
                Decision::None(NoEffect::Noop(Class::AlreadyDone, note))
            }
            Some(_) => self.late(),
        }
    }

    fn outcome_is_success(&self) -> bool {
        self.ask.envelope.outcome == Some(Outcome::Success)
    }

    /// Closes the hold: the charge up to the hold is captured, the rest released.
    fn close(self, success: bool) -> Decision {
        let hold = self.job.hold;
        if !success && self.charge == Micros::ZERO {
            return self.release(hold);
        }
        let above = if self.charge > hold { self.charge.minus(hold).unwrap_or(Micros::ZERO) } else { Micros::ZERO };
        let (captured, need, uncharged) = match self.job.policies.overage {
            _ if above == Micros::ZERO => (self.charge, Micros::ZERO, Micros::ZERO),
            Overage::Cap => (hold, Micros::ZERO, above),
            Overage::Available if self.balance.covers(above) => (self.charge, above, Micros::ZERO),
            Overage::Available => return Decision::None(self.short(above)),
            Overage::Review => {
                let note = format!("the charge {} is above the hold {hold}", self.charge);
                return Decision::None(NoEffect::Review(Class::Overage, note));
            }
        };
        let released = hold.minus(captured.min(hold)).unwrap_or(Micros::ZERO);
        let available = released.minus(need).unwrap_or(Micros::ZERO); // one of the two is zero
        let mut entry = self.entry(EntryKind::Capture, captured, released);
        entry.uncharged = uncharged;
        self.commit(keys::CLOSE.to_owned(), entry, available, hold.negated(), need)
    }

    /// Gives the whole hold back. Neither needs nor advances the sequence.
    fn release(self, hold: Micros) -> Decision {
        let entry = self.entry(EntryKind::Release, Micros::ZERO, hold);
        let delta = self.delta(hold, hold.negated(), Micros::ZERO, None);
        let transition = self.transition;
        Decision::Commit(Box::new(Settlement { sort_key: keys::CLOSE.to_owned(), entry, delta, transition }))
    }

    /// Charges the available balance, since the hold is gone.
    fn late(self) -> Decision {
        if !self.balance.covers(self.charge) {
            return Decision::None(self.short(self.charge));
        }
        let entry = self.entry(EntryKind::LateCapture, self.charge, Micros::ZERO);
        let (sort_key, charge) = (keys::late_capture_sk(self.version), self.charge);
        self.commit(sort_key, entry, charge.negated(), Micros::ZERO, charge)
    }

    fn short(&self, need: Micros) -> NoEffect {
        let note = format!("{need} {} is needed and {} is available", self.balance.currency, self.balance.available);
        NoEffect::Review(Class::FundsShort, note)
    }

    fn entry(&self, kind: EntryKind, amount: Micros, released: Micros) -> Entry {
        let charged = kind != EntryKind::Release;
        Entry {
            kind,
            tenant: self.job.tenant.clone(),
            wallet: self.job.wallet.clone(),
            job: Some(self.job.job.clone()),
            version: Some(self.version),
            reference: None,
            amount,
            released,
            uncharged: Micros::ZERO,
            currency: self.job.currency(),
            lines: if amount == Micros::ZERO { Vec::new() } else { lines_out(amount, Account::Revenue) },
            usage: self.ask.envelope.usage.clone().filter(|_| charged),
            price_version: charged.then(|| self.job.price.version.clone()),
            by: self.ask.by.to_string(),
            created_ms: self.ask.now_ms,
            link: None,
        }
    }

    fn delta(&self, available: Micros, held: Micros, need: Micros, advance: Option<Advance>) -> BalanceDelta {
        let (currency, credit_limit) = (self.job.currency(), self.balance.credit_limit);
        BalanceDelta { available, held, need, advance, currency, credit_limit }
    }

    fn commit(self, sort_key: String, entry: Entry, available: Micros, held: Micros, need: Micros) -> Decision {
        let entry = entry.linked(self.balance);
        let head = entry.link.as_ref().map(|l| l.hash.clone()).unwrap_or_default();
        let delta = self.delta(available, held, need, Some(Advance { from: self.balance.sequence, head }));
        Decision::Commit(Box::new(Settlement { sort_key, entry, delta, transition: self.transition }))
    }
}
