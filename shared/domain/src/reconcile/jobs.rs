//! One job: its transitions against its closes, its usage against its charge, its hold against its expiry.

use super::receipts::not_dispatched;
use super::{Action, CaseClass, EXPIRY_MARGIN_MS, Finding, GRACE_MS, Listed, Subject};
use crate::decide::settle::{above_cap, is_capped};
use crate::job::{JobRecords, Outcome, Transition};
use crate::ledger::{Entry, EntryKind, JobLedger};
use crate::money::Micros;
use crate::operation::{Class, OperationKey, OperationName, OperationRecord, OperationState};
use crate::price::Usage;
use crate::receipt::Receipt;
use crate::time::rfc3339;

/// What was read of one job: its records first, then its ledger.
#[derive(Debug, Clone, Copy)]
pub struct JobView<'a> {
    /// The job, its extensions and transitions.
    pub records: &'a JobRecords,
    /// Its settlements.
    pub ledger: &'a JobLedger,
    /// The receipt and records of the event that decided the last transition; read only where the hold is open or a
    /// charge is lacking.
    pub decider: Option<(&'a Receipt, &'a [OperationRecord])>,
    /// True when the provider's profile names a list that can be asked for usage.
    pub has_list: bool,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
}

/// Compares one job's records.
pub fn compare_job(view: &JobView<'_>) -> Vec<Finding> {
    let mut found = orphans(view);
    match (view.records.transitions.last(), &view.ledger.close) {
        (None, None) => found.extend(expired(view)),
        (Some(last), None) => found.extend(unsettled(view, last)),
        (Some(last), Some(_)) if lacks_charge(last, view.ledger) => found.extend(uncharged(view, last)),
        (Some(last), Some(_)) => found.extend(mismatch(view, last)),
        (None, Some(_)) => {}
    }
    found
}

fn subject(view: &JobView<'_>) -> Subject {
    Subject::Job { tenant: view.records.job.tenant.clone(), job: view.records.job.job.clone() }
}

fn with_hold(view: &JobView<'_>, finding: Finding) -> Finding {
    match view.records.hold() {
        Ok(hold) => finding.with_money(hold, view.records.job.currency()),
        Err(_) => finding,
    }
}

/// A close or late capture for a version that no transition has: our transactions cannot write it.
fn orphans(view: &JobView<'_>) -> Vec<Finding> {
    let known = |entry: &&Entry| {
        entry.version.is_none_or(|version| view.records.transitions.iter().any(|t| t.version == version))
    };
    let settled = view.ledger.close.iter().chain(&view.ledger.late);
    let old = settled.filter(|entry| view.now_ms - entry.created_ms >= GRACE_MS);
    let finding = |entry: &Entry| {
        let (kind, version) = (entry.kind.as_str(), entry.version.unwrap_or_default());
        let evidence = format!(
            "{kind} of {} by {} is for version {version}, and the job has no such transition",
            entry.amount, entry.by
        );
        let finding = Finding::new(CaseClass::CloseWithoutTransition, Action::Person, subject(view), evidence);
        Finding { fact: version.to_string(), ..finding.with_money(entry.amount, entry.currency) }
    };
    old.filter(|entry| !known(entry)).map(finding).collect()
}

/// A hold that the expiry sweep missed.
fn expired(view: &JobView<'_>) -> Option<Finding> {
    let expires_ms = view.records.expires_ms();
    if view.now_ms - expires_ms < EXPIRY_MARGIN_MS {
        return None;
    }
    let evidence = format!("the hold expired at {} and is still open", rfc3339(expires_ms));
    Some(with_hold(view, Finding::new(CaseClass::HoldExpired, Action::Retry, subject(view), evidence)))
}

/// The job ended and its hold is open: whose turn is it?
fn unsettled(view: &JobView<'_>, last: &Transition) -> Option<Finding> {
    if view.now_ms - last.created_ms < GRACE_MS {
        return None;
    }
    let evidence =
        format!("{:?} decided by {} at {}, and the hold is open", last.outcome, last.by, rfc3339(last.created_ms))
            .to_lowercase();
    if last.outcome == Outcome::Success && last.usage.is_none() && !is_fetched(view, last) {
        let action = if view.has_list { Action::AskAuthority } else { Action::Person };
        let finding =
            Finding::new(CaseClass::NoUsage, action, subject(view), format!("{evidence}; the event has no usage"));
        return Some(with_hold(view, finding));
    }
    whose_turn(view, last, &evidence).map(|finding| with_hold(view, finding))
}

/// True where the usage that the deciding event lacks was fetched, or still will be: then its settlement waits for that.
fn is_fetched(view: &JobView<'_>, last: &Transition) -> bool {
    let Some((receipt, records)) = view.decider else { return false };
    let own = receipt.of_item(&last.by.item);
    let key = crate::fetch::key(&last.by.event, &last.by.item);
    let record = records.iter().find(|record| record.key.as_ref() == Some(&key));
    let given_up = record.is_some_and(|record| record.state != OperationState::Wait);
    own.envelope.billed_usage().is_some() || (own.envelope.fetch.is_some() && !given_up)
}

/// Whose turn the settlement of the deciding event is: nobody's finding while it waits or a person has it.
fn whose_turn(view: &JobView<'_>, last: &Transition, evidence: &str) -> Option<Finding> {
    let person = || Some(Finding::new(CaseClass::Unsettled, Action::Person, subject(view), evidence));
    let Some((receipt, records)) = view.decider else { return person() };
    let (event, item, name) = (last.by.event.clone(), last.by.item.clone(), OperationName::SettleUsage);
    let key = OperationKey { event, item, name };
    if !receipt.operations().contains(&key) {
        return person();
    }
    match records.iter().find(|record| record.key.as_ref() == Some(&key)) {
        Some(record) if matches!(record.state, OperationState::Wait | OperationState::Review) => None,
        Some(record) if view.now_ms - record.changed_ms < GRACE_MS => None,
        // A person let it be; an open hold is another matter, and speaks all the same.
        Some(record) if record.class == Class::Dismissed && view.ledger.close.is_some() => None,
        Some(record) => {
            let evidence = format!("{evidence}; its settlement is recorded as {:?} without effect", record.state);
            Some(Finding::new(CaseClass::Unsettled, Action::Retry, Subject::Operation(key), evidence))
        }
        // The same fact as the receipt's own comparison finds, and so the same case.
        None if view.now_ms - receipt.arrival_ms >= GRACE_MS => Some(not_dispatched(receipt, key)),
        None => None,
    }
}

/// True for a success that was not charged although the hold is closed: neither is the close of its version, nor is
/// there a late capture of it.
pub fn lacks_charge(last: &Transition, ledger: &JobLedger) -> bool {
    let mut settled = ledger.close.iter().chain(&ledger.late);
    last.outcome == Outcome::Success
        && ledger.close.is_some()
        && !settled.any(|entry| entry.version == Some(last.version))
}

/// The hold was closed before the success, and its late capture is missing: whose turn is it?
fn uncharged(view: &JobView<'_>, last: &Transition) -> Option<Finding> {
    if view.now_ms - last.created_ms < GRACE_MS {
        return None;
    }
    let at = rfc3339(last.created_ms);
    let evidence =
        format!("success decided by {} at {at}, the hold was closed before, and nothing was charged", last.by);
    let finding = whose_turn(view, last, &evidence)?;
    let charge = last.usage.as_ref().and_then(|usage| view.records.job.price.charge_for(last.outcome, usage).ok());
    Some(match charge {
        Some(charge) => finding.with_money(charge, view.records.job.currency()),
        None => finding,
    })
}

/// The usage that the charge should be the price of: the newest correction's, else the transition's, else (for a
/// success whose usage was fetched) the settlement's own; with the entry that says what was left uncharged.
pub(super) fn charged_usage<'a>(view: &JobView<'a>, last: &'a Transition) -> Option<(&'a Usage, &'a Entry)> {
    let corrected =
        view.ledger.adjusts.iter().filter(|entry| entry.usage.is_some()).max_by_key(|e| (e.created_ms, e.order));
    if let Some(entry) = corrected {
        return Some((entry.usage.as_ref()?, entry));
    }
    let mut settled = view.ledger.close.iter().chain(&view.ledger.late);
    let entry = settled.find(|entry| entry.version == Some(last.version))?;
    Some((last.usage.as_ref().or(entry.usage.as_ref())?, entry))
}

/// What the job should have cost by a usage, less what was captured for usage: positive is undercharged.
pub(super) fn difference(view: &JobView<'_>, last: &Transition, usage: &Usage, uncharged: Micros) -> Option<Micros> {
    let price = &view.records.job.price;
    let billed = last.outcome == Outcome::Success || view.records.job.policies.bill_partial;
    let due = if billed { price.charge_for(last.outcome, usage).ok()? } else { Micros::ZERO };
    let captured = view.ledger.captured_by_usage().ok()?;
    due.minus(uncharged).ok()?.minus(captured).ok()
}

/// The charge is not the price of the usage.
fn mismatch(view: &JobView<'_>, last: &Transition) -> Option<Finding> {
    let (usage, entry) = charged_usage(view, last)?;
    if view.now_ms - entry.created_ms < GRACE_MS
        || !matches!(entry.kind, EntryKind::Capture | EntryKind::LateCapture | EntryKind::Adjust)
    {
        return None;
    }
    let difference = difference(view, last, usage, entry.uncharged);
    let currency = view.records.job.currency();
    match difference {
        Some(Micros::ZERO) => None,
        Some(difference) => {
            let captured = view.ledger.captured_by_usage().unwrap_or_default();
            let evidence = format!(
                "captured {captured}, and the recorded usage at price {} comes to {difference} more (negative: less)",
                view.records.job.price.version
            );
            let finding = Finding::new(CaseClass::UsageMismatch, Action::Compensate, subject(view), evidence);
            Some(finding.with_money(difference, currency))
        }
        // A usage that cannot be priced was a person's to approve; only a record that differs from what was approved speaks.
        None if entry.usage.as_ref() == Some(usage) => None,
        None => {
            let evidence =
                format!("the recorded usage cannot be priced, and {} was settled for other usage", entry.amount);
            let finding = Finding::new(CaseClass::UsageMismatch, Action::Person, subject(view), evidence);
            Some(Finding { fact: "unpriced".to_owned(), ..finding.with_money(entry.amount, currency) })
        }
    }
}

/// What makes up for a charge that is not the price of its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compensation {
    /// By how much the charge is adjusted; negative gives back.
    pub amount: Micros,
    /// The usage that is then charged.
    pub usage: Usage,
    /// What the price says beyond it, where a policy or a person capped it.
    pub uncharged: Micros,
}

/// The adjustment towards the recorded usage, or towards that of the provider's list; `None` where there is nothing to
/// make up for, or nothing was charged.
pub fn compensation(listed: Option<&Listed>, records: &JobRecords, ledger: &JobLedger) -> Option<Compensation> {
    let view = JobView { records, ledger, decider: None, has_list: false, now_ms: 0 };
    let last = records.transitions.last()?;
    let (charged, entry) = charged_usage(&view, last)?;
    let (usage, uncharged) = match listed.and_then(|listed| listed.usage.as_ref()) {
        Some(usage) => {
            let charge = records.job.price.charge_for(last.outcome, usage).ok()?;
            (usage, above_cap(records, is_capped(records, ledger), charge))
        }
        None => (charged, entry.uncharged),
    };
    let amount = difference(&view, last, usage, uncharged).filter(|amount| *amount != Micros::ZERO)?;
    Some(Compensation { amount, usage: usage.clone(), uncharged })
}
