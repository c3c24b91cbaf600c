//! settle-usage: the one close of a hold, or a late capture when the hold is already closed.

use std::borrow::Cow;

use super::posting::{Change, Check, Posting, from_available};
use super::{Ask, NoEffect, Standing, standing};
use crate::authorisation::{self, Authorisation};
use crate::job::{Job, JobRecords, Outcome, Overage, Transition};
use crate::keys;
use crate::ledger::{Account, Balance, Entry, EntryKind, JobLedger, lines_out};
use crate::money::Micros;
use crate::operation::Class;
use crate::price::UsageError;

/// What the billing consumer may commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Commit all of it in one transaction.
    Commit(Box<Posting>),
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
    /// What became of the job's authorisation.
    pub authorisation: &'a Authorisation,
}

/// Decides one settlement.
pub fn decide(ask: &Ask<'_>, view: &View<'_>) -> Decision {
    if view.ledger.own(ask.by).is_some() {
        return Decision::None(NoEffect::Done);
    }
    if crate::planted::on("ours-taken-for-done")
        && view.job.is_some_and(|job| job.transitions.iter().any(|t| t.by == *ask.by))
    {
        return Decision::None(NoEffect::Done); // PLANTED
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
    let (version, transition) = match stands(ask, outcome, records, view.ledger) {
        Standing::Owns(version) if crate::planted::on("version-computed-as-maximum-plus-one") => (version + 1, None), // PLANTED
        Standing::Owns(version) => (version, None),
        Standing::Next(version) => (version, Some(transition(ask, version, outcome))),
        Standing::Overtaken(note) => return Decision::None(NoEffect::Noop(Class::Superseded, note)),
        Standing::Settled(class, note) => return Decision::None(NoEffect::Noop(class, note)),
        Standing::Contested(class, note) => return Decision::None(NoEffect::Review(class, note)),
    };
    match charge(ask, &records.job, outcome) {
        Ok(charge) => {
            let authorisation = view.authorisation;
            Case { ask, records, balance, authorisation, version, transition, charge }.settle(view.ledger)
        }
        Err(review) => Decision::None(review),
    }
}

/// Where the event stands among the job's transitions, by the usage that is billed: a fetched one counts, and so does the
/// one that was captured for a transition whose event told none. An event that has none itself has nothing to compare.
fn stands(ask: &Ask<'_>, outcome: Outcome, records: &JobRecords, ledger: &JobLedger) -> Standing {
    let mut envelope = Cow::Borrowed(ask.envelope);
    let mut transitions = Cow::Borrowed(records.transitions.as_slice());
    let compares = outcome == Outcome::Success && ask.envelope.billed_usage().is_some();
    if let Some(last) = records.transitions.last().filter(|_| compares) {
        let mut settled = ledger.close.iter().chain(&ledger.late);
        let entry = settled.find(|entry| entry.version == Some(last.version));
        let captured = entry.and_then(|entry| entry.usage.clone()).filter(|_| last.usage.is_none());
        let known = last.usage.is_some() || captured.is_some();
        if known && (captured.is_some() || envelope.fetched.is_some()) {
            envelope.to_mut().usage = ask.envelope.billed_usage().cloned();
            if let (Some(captured), Some(last)) = (captured, transitions.to_mut().last_mut()) {
                last.usage = Some(captured);
            }
        }
    }
    standing(ask.by, &envelope, outcome, &records.job, &transitions)
}

fn transition(ask: &Ask<'_>, version: u32, outcome: Outcome) -> Transition {
    let (usage, by) = (ask.envelope.usage.clone(), ask.by.clone());
    Transition { version, outcome, usage, by, created_ms: ask.now_ms }
}

/// The priced usage; zero for an outcome that the policies do not bill.
fn charge(ask: &Ask<'_>, job: &Job, outcome: Outcome) -> Result<Micros, NoEffect> {
    let told = ask.envelope.billed_usage().is_some() || !ask.envelope.usage_problem.is_empty();
    let billed = outcome == Outcome::Success || (job.policies.bill_partial && told);
    if !billed {
        return Ok(Micros::ZERO);
    }
    if !ask.envelope.usage_problem.is_empty() {
        return Err(NoEffect::Review(Class::InvalidUsage, ask.envelope.usage_problem.clone()));
    }
    let Some(usage) = ask.envelope.billed_usage() else {
        let note = "a success without usage is not zero: find the usage at the provider".to_owned();
        return Err(NoEffect::Review(Class::NoUsage, note));
    };
    job.price.charge_for(outcome, usage).map_err(|error| match error {
        UsageError::Missing => NoEffect::Review(Class::NoUsage, error.to_string()),
        _ => NoEffect::Review(Class::InvalidUsage, error.to_string()),
    })
}

/// One settlement whose version and charge are known.
struct Case<'a> {
    ask: &'a Ask<'a>,
    records: &'a JobRecords,
    balance: &'a Balance,
    authorisation: &'a Authorisation,
    version: u32,
    transition: Option<Transition>,
    charge: Micros,
}

impl Case<'_> {
    fn settle(self, ledger: &JobLedger) -> Decision {
        let success = self.ask.envelope.outcome == Some(Outcome::Success);
        match &ledger.close {
            None => self.close(success),
            Some(_) if self.charge == Micros::ZERO && !success => {
                let note = "the hold was closed before, and nothing is to be charged".to_owned();
                Decision::None(NoEffect::Noop(Class::AlreadyDone, note))
            }
            Some(_) => self.late(),
        }
    }

    fn job(&self) -> &Job {
        &self.records.job
    }

    /// Closes the hold: the charge up to the hold is captured, the rest released.
    fn close(self, success: bool) -> Decision {
        let Ok(hold) = self.records.hold() else {
            return Decision::None(NoEffect::Review(Class::Unreadable, "the hold is beyond the limit".to_owned()));
        };
        if !success && self.charge == Micros::ZERO {
            return self.release(hold);
        }
        let above = self.charge.minus(hold).unwrap_or(Micros::ZERO).max(Micros::ZERO);
        let (captured, need, uncharged) = match self.overage() {
            _ if above == Micros::ZERO => (self.charge, Micros::ZERO, Micros::ZERO),
            Overage::Cap => (hold, Micros::ZERO, above),
            Overage::Available => (self.charge, above, Micros::ZERO),
            Overage::Review => {
                let note = format!("the charge {} is above the hold {hold}", self.charge);
                return Decision::None(NoEffect::Review(Class::Overage, note));
            }
        };
        let released = hold.minus(captured.min(hold)).unwrap_or(Micros::ZERO);
        let available = released.minus(need).unwrap_or(Micros::ZERO); // one of the two is zero
        let mut entry = self.entry(EntryKind::Capture, captured, released);
        entry.uncharged = uncharged;
        entry.lines = lines_out(captured, Account::Revenue);
        let change = Change { available, held: hold.negated(), need, ..Change::default() };
        let checks = self.checks();
        let posting = match self.balance.postpaid {
            None => Posting::chained(keys::CLOSE.to_owned(), entry, self.balance, change),
            // There is no hold: its job pinned that everything comes from available.
            Some(_) => match from_available(entry, Account::Revenue, keys::CLOSE.to_owned(), self.balance) {
                Ok(posting) => posting,
                Err(_) => return Decision::None(self.short(captured)),
            },
        };
        if let Err(need) = posting.borne_by(self.balance) {
            return Decision::None(self.short(need));
        }
        let authorised = match authorisation::close(&posting, self.job(), self.authorisation) {
            Ok(authorised) => authorised,
            Err(verdict) => return Decision::None(verdict),
        };
        let posting = Posting { authorised, ..posting };
        Decision::Commit(Box::new(posting.with_transition(self.transition).with_checks(checks)))
    }

    /// What a close needs to be still true: the whole hold is closed, and where a failure may be followed
    /// by a success, no later version came since it was read.
    fn checks(&self) -> Vec<Check> {
        let provisional = self.job().policies.provisional_failure && self.transition.is_none();
        let later = provisional.then(|| Check::NoTransition(self.version + 1));
        whole_hold(self.records).into_iter().chain(later).collect()
    }

    /// Gives the whole hold back. Neither needs nor advances the sequence.
    fn release(self, hold: Micros) -> Decision {
        let entry = self.entry(EntryKind::Release, Micros::ZERO, hold);
        let twice = if crate::planted::on("release-counted-twice") { hold } else { Micros::ZERO }; // PLANTED
        let available = hold.plus(twice).unwrap_or(hold);
        let change = Change { available, held: hold.negated(), ..Change::default() };
        let posting = Posting::unchained(keys::CLOSE.to_owned(), entry, self.balance, change).giving_up(self.job());
        let checks = self.checks();
        Decision::Commit(Box::new(posting.with_transition(self.transition).with_checks(checks)))
    }

    /// Charges the available balance, since the hold is gone. The hold still says how much was foreseen.
    fn late(self) -> Decision {
        let foreseen = self.records.hold().is_ok_and(|hold| self.charge <= hold);
        let overage = self.overage();
        if overage == Overage::Review && !foreseen {
            let note = format!("the charge {} is above the hold, which is closed", self.charge);
            return Decision::None(NoEffect::Review(Class::Overage, note));
        }
        let uncharged = above_cap(self.records, overage == Overage::Cap, self.charge);
        let charge = self.charge.minus(uncharged).unwrap_or(Micros::ZERO); // at least the hold is left
        let mut entry = self.entry(EntryKind::LateCapture, charge, Micros::ZERO);
        entry.uncharged = uncharged;
        let sort_key = keys::late_capture_sk(self.version);
        match from_available(entry, Account::Revenue, sort_key, self.balance) {
            Ok(posting) => match posting.borne_by(self.balance) {
                Ok(()) => Decision::Commit(Box::new(posting.with_transition(self.transition))),
                Err(need) => Decision::None(self.short(need)),
            },
            Err(_) => Decision::None(self.short(charge)),
        }
    }

    /// Of a postpaid wallet there is no hold to cap at: a cap would give the job away, so no waiver makes one.
    fn overage(&self) -> Overage {
        match self.balance.postpaid {
            Some(_) => Overage::Available,
            None => self.ask.overage(self.job()),
        }
    }

    fn short(&self, need: Micros) -> NoEffect {
        funds_short(need, self.balance)
    }

    fn entry(&self, kind: EntryKind, amount: Micros, released: Micros) -> Entry {
        let charged = kind != EntryKind::Release;
        let by = self.ask.by.to_string();
        let entry = Entry::of_job(kind, self.job(), by, self.ask.now_ms);
        Entry {
            version: Some(self.version),
            amount,
            released,
            usage: self.ask.envelope.billed_usage().cloned().filter(|_| charged),
            price_version: charged.then(|| self.job().price.version.clone()),
            ..entry
        }
    }
}

/// What every close checks where holds can be extended: that it closes the whole hold.
pub(crate) fn whole_hold(records: &JobRecords) -> Option<Check> {
    if crate::planted::on("extension-not-checked-by-the-close") {
        return None; // PLANTED
    }
    records.job.policies.extendable.then(|| Check::NoExtension(records.next_extension()))
}

/// True where the job's charge is capped at its hold: by the pinned policy, or by a person's decision; then what
/// was not charged says so.
pub(crate) fn is_capped(records: &JobRecords, ledger: &JobLedger) -> bool {
    let mut charges = ledger.close.iter().chain(&ledger.late);
    records.job.policies.overage == Overage::Cap || charges.any(|entry| entry.uncharged > Micros::ZERO)
}

/// What a charge has above the hold, where it is capped there: nobody pays that, neither at the close
/// nor by a late capture nor by a correction.
pub(crate) fn above_cap(records: &JobRecords, capped: bool, charge: Micros) -> Micros {
    let hold = records.hold().ok().filter(|_| capped);
    hold.and_then(|hold| charge.minus(hold).ok()).map_or(Micros::ZERO, |above| above.max(Micros::ZERO))
}

/// The review of a debit that the wallet cannot bear.
pub(crate) fn funds_short(need: Micros, balance: &Balance) -> NoEffect {
    let note = format!("{need} {} is needed and {} is available", balance.currency, balance.available);
    NoEffect::Review(Class::FundsShort, note)
}
