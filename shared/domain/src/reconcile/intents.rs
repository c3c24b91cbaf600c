//! Intents against what their destination lists: settled there and not here, here and not there, another amount, stuck, and
//! a payment or refund that nobody told us of.
//!
//! What may still be on its way is nobody's finding: an entry younger than [`LIST_GRACE_MS`], an intent that was sent within
//! [`GRACE_MS`], one that somebody is at work on. What is missing counts only where the list was
//! read to its end and reaches back before the intent.

use super::{Action, CaseClass, EffectState, Finding, GRACE_MS, LIST_GRACE_MS, ListedEffect, STUCK_MS, Subject};
use crate::intent::step::{Step, next};
use crate::intent::{Intent, IntentState, Told};
use crate::money::{Currency, Micros};
use crate::operation::{OperationKey, OperationRecord, OperationState};
use crate::outcome::Rules;
use crate::time::rfc3339;

/// What a charge or refund asked for, and what is posted of its payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargeView {
    /// In minor units, as it was frozen.
    pub minor: i64,
    /// The same in micros.
    pub amount: Micros,
    /// Its currency.
    pub currency: Currency,
    /// Decimals of the minor unit.
    pub digits: u32,
    /// Set of a payment: what the wallet has of the one that is listed, funded and taken back.
    pub posted: Option<Posted>,
    /// True of an authorisation whose job is over: nothing is to be authorised for it any more.
    pub over: bool,
}

/// What a wallet has of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    /// Whether it was funded.
    pub funded: bool,
    /// What was taken back of it in all.
    pub reversed: Micros,
}

/// What is read of one intent.
#[derive(Debug, Clone, Copy)]
pub struct IntentView<'a> {
    /// The operation that it is of.
    pub key: &'a OperationKey,
    /// The intent.
    pub intent: &'a Intent,
    /// The operation's record, if it did not go straight.
    pub record: Option<&'a OperationRecord>,
    /// What its destination's answers mean.
    pub rules: &'a Rules,
    /// The entries under its key.
    pub listed: &'a [ListedEffect],
    /// Whether the list surely has no other.
    pub whole: bool,
    /// Set of a charge or refund.
    pub charge: Option<&'a ChargeView>,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
}

/// The entry that counts of those under one key: one that exists, else one that may.
pub fn decisive(listed: &[ListedEffect]) -> Option<&ListedEffect> {
    listed.iter().min_by_key(|effect| effect.state)
}

/// Compares one intent with the entries under its key.
pub fn compare_intent(view: &IntentView<'_>) -> Vec<Finding> {
    let Some(there) = decisive(view.listed) else { return missing(view).into_iter().collect() };
    if view.now_ms - there.created_ms < LIST_GRACE_MS {
        return Vec::new();
    }
    let found = [twice(view), stands_otherwise(view, there), other_amount(view, there), untold(view, there)];
    found.into_iter().flatten().collect()
}

/// An entry under a key that is none of ours, though it names an event of ours.
pub fn unknown_here(destination: &str, effect: &ListedEffect) -> Finding {
    let subject = Subject::Effect { destination: destination.to_owned(), id: effect.id.clone() };
    let event = effect.event.as_deref().unwrap_or_default();
    let evidence =
        format!("the destination lists {} for the event {event}, and nothing was sent for it here", effect.id);
    Finding::new(CaseClass::UnknownHere, Action::Person, subject, evidence).with_effect(effect.clone())
}

fn finding(view: &IntentView<'_>, class: CaseClass, action: Action, evidence: String) -> Finding {
    let finding = Finding::new(class, action, Subject::Operation(view.key.clone()), evidence);
    match view.charge {
        Some(charge) => finding.with_money(charge.amount, charge.currency),
        None => finding,
    }
}

fn stands(view: &IntentView<'_>) -> String {
    let review = if in_review(view) { ", in review" } else { "" };
    format!("{}{review}", view.intent.state.as_str())
}

fn in_review(view: &IntentView<'_>) -> bool {
    view.record.is_some_and(|record| record.state == OperationState::Review)
}

/// A person has closed it.
fn closed(view: &IntentView<'_>) -> bool {
    view.record.is_some_and(OperationRecord::is_final)
}

/// A switch holds it back, so nothing is sent or asked for it.
fn parked(view: &IntentView<'_>) -> bool {
    view.record.is_some_and(|record| record.parked.is_some())
}

fn twice(view: &IntentView<'_>) -> Option<Finding> {
    let settled: Vec<&str> =
        view.listed.iter().filter(|one| one.state == EffectState::Settled).map(|one| one.id.as_str()).collect();
    (settled.len() > 1).then(|| {
        let evidence = format!("the destination has {} effects under one key: {}", settled.len(), settled.join(", "));
        finding(view, CaseClass::DoneTwice, Action::Person, evidence)
    })
}

fn stands_otherwise(view: &IntentView<'_>, there: &ListedEffect) -> Option<Finding> {
    let (intent, id) = (view.intent, &there.id);
    let (class, action, evidence) = match (intent.state, there.state) {
        (IntentState::Settled, EffectState::Failed) => {
            let evidence = format!("settled here, and the destination lists {id} as failed");
            (CaseClass::FailedThere, Action::Person, evidence)
        }
        (IntentState::Failed, EffectState::Settled) if !intent.late_settled => {
            let evidence = format!("failed here, and the destination lists {id} as done");
            (CaseClass::SettledThere, Action::AcceptFromAuthority, evidence)
        }
        (IntentState::Settled | IntentState::Failed, _) => return None,
        (_, EffectState::Settled) if !closed(view) && !lately_sent(view) => {
            let evidence = format!("{} here, and the destination lists {id} as done", stands(view));
            (CaseClass::SettledThere, settles(view), evidence)
        }
        (_, EffectState::Failed) => return stuck(view, &format!("the destination lists {id} as failed")),
        _ => return None,
    };
    Some(finding(view, class, action, evidence).with_effect(there.clone()))
}

fn lately_sent(view: &IntentView<'_>) -> bool {
    view.intent.last_sent_ms.is_some_and(|sent_ms| view.now_ms - sent_ms < GRACE_MS)
}

/// A retry where it surely asks, or repeats under a key that is surely known; else the entry itself is taken for the answer.
/// What was never sent, or was told that nothing was done, would be sent as something new.
fn settles(view: &IntentView<'_>) -> Action {
    let intent = view.intent;
    let new = intent.state == IntentState::Pending
        || (intent.state == IntentState::Submitted && intent.last_told() == Some(Told::NotDone));
    match next(intent, view.rules, view.now_ms, None) {
        _ if parked(view) => Action::AcceptFromAuthority,
        Step::LookUp => Action::Retry,
        Step::Send if !new && !in_review(view) => Action::Retry,
        _ => Action::AcceptFromAuthority,
    }
}

fn missing(view: &IntentView<'_>) -> Option<Finding> {
    if !view.whole {
        return None;
    }
    match view.intent.state {
        IntentState::Failed => None,
        IntentState::Settled => {
            let settled_ms = view.intent.sent_ms.unwrap_or(view.intent.created_ms);
            let id = view.intent.result.as_ref().and_then(|result| result.id.as_deref()).unwrap_or("no id");
            let evidence =
                format!("settled here at {} ({id}), and the destination does not have it", rfc3339(settled_ms));
            let old = view.now_ms - settled_ms >= LIST_GRACE_MS;
            old.then(|| finding(view, CaseClass::UnknownThere, Action::Person, evidence))
        }
        _ => stuck(view, "the destination does not have it"),
    }
}

/// Not at an end for long, and nobody is on it.
fn stuck(view: &IntentView<'_>, there: &str) -> Option<Finding> {
    let (intent, now_ms) = (view.intent, view.now_ms);
    let overdue = |due_ms: i64| now_ms - due_ms >= GRACE_MS;
    let nobody = match view.record {
        None => true, // neither a try under way nor one to come
        Some(record) => match record.state {
            OperationState::Review => true,
            OperationState::Wait => record.parked.is_none() && record.due_ms.is_none_or(overdue),
            OperationState::Noop | OperationState::Closed => false,
        },
    };
    if !nobody || now_ms - intent.created_ms < STUCK_MS || lately_sent(view) {
        return None;
    }
    let action = match next(intent, view.rules, now_ms, None) {
        Step::Send if view.charge.is_some_and(|charge| charge.over) => Action::Person,
        Step::Send | Step::LookUp => Action::Retry,
        Step::Review(..) => Action::Person,
        Step::Done | Step::Wait(..) => return None,
    };
    let evidence = format!("{} since {}, and {there}", stands(view), rfc3339(intent.created_ms));
    Some(finding(view, CaseClass::Stuck, action, evidence))
}

fn other_amount(view: &IntentView<'_>, there: &ListedEffect) -> Option<Finding> {
    let (charge, minor, currency) = (view.charge?, there.amount?, there.currency.as_deref()?);
    let same_currency = currency == charge.currency.code();
    if there.state == EffectState::Failed || (same_currency && minor == charge.minor) {
        return None;
    }
    let evidence = format!(
        "asked for {} minor units of {}, and the destination lists {} with {minor} of {currency}",
        charge.minor,
        charge.currency.code(),
        there.id
    );
    let finding = finding(view, CaseClass::AmountDiffers, Action::Person, evidence).with_effect(there.clone());
    let more = Micros::from_minor(minor, charge.digits).and_then(|amount| amount.minus(charge.amount)).ok();
    Some(match more.filter(|_| same_currency) {
        Some(more) => finding.with_money(more, charge.currency),
        None => finding,
    })
}

fn untold(view: &IntentView<'_>, there: &ListedEffect) -> Option<Finding> {
    let charge = view.charge?;
    let (posted, paid) = (charge.posted?, Micros::from_minor(there.paid?, charge.digits).ok()?);
    if !posted.funded {
        let evidence = format!("the destination lists payment {} as paid, and nothing was posted for it", there.id);
        let finding = finding(view, CaseClass::PaymentUntold, Action::AcceptFromAuthority, evidence);
        return Some(finding.with_effect(there.clone()).with_money(paid, charge.currency));
    }
    let refunded = Micros::from_minor(there.refunded?, charge.digits).ok()?;
    let more = refunded.minus(posted.reversed).ok().filter(|more| *more > Micros::ZERO)?;
    // When it went back says whether the webhook may still come; a list that does not say so is not waited for.
    if there.refunded_ms.is_some_and(|at_ms| view.now_ms - at_ms < LIST_GRACE_MS) {
        return None;
    }
    let evidence = format!(
        "the destination lists {refunded} of payment {} as refunded, and {} was posted",
        there.id, posted.reversed
    );
    let finding = finding(view, CaseClass::RefundUntold, Action::AcceptFromAuthority, evidence);
    Some(finding.with_effect(there.clone()).with_money(more, charge.currency))
}

#[cfg(test)]
#[path = "intents_tests.rs"]
mod tests;
