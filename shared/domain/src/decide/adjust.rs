//! adjust-usage: a correction of what was captured, by the difference, under the correction's own key
//! and with its own order. It never edits: the capture stays, the adjustment names what it corrects.

use super::posting::{Posting, back_to, from_available};
use super::settle::{Decision, View, above_cap, funds_short, is_capped};
use super::{Ask, NoEffect};
use crate::ids::Reference;
use crate::job::{JobRecords, Outcome};
use crate::keys;
use crate::ledger::{Account, Balance, Entry, EntryKind, JobLedger};
use crate::money::Micros;
use crate::operation::Class;
use crate::postpaid::Back;

/// Decides a provider's correction to a new usage.
pub fn decide(ask: &Ask<'_>, view: &View<'_>) -> Decision {
    let Some(reference) = &ask.envelope.reference else {
        return review(Class::Unreadable, "the receipt has no reference");
    };
    let before = view.ledger.adjust(reference.as_str());
    if before.is_some_and(|entry| entry.is_by(ask.by)) {
        return Decision::None(NoEffect::Done);
    }
    if let Some(limit) = ask.over_limit() {
        return Decision::None(limit);
    }
    let Some(records) = view.job else {
        return Decision::None(NoEffect::Wait(Class::JobUnknown, "the job was not submitted yet".to_owned()));
    };
    if let Some(contradiction) = ask.contradicts(&records.job) {
        return Decision::None(contradiction);
    }
    if !ask.envelope.usage_problem.is_empty() {
        return review(Class::InvalidUsage, &ask.envelope.usage_problem);
    }
    let (Some(balance), Some(order), Some(usage)) = (view.balance, ask.envelope.sequence, &ask.envelope.usage) else {
        return review(Class::Unreadable, "the wallet's balance, or the correction's sequence or usage, is missing");
    };
    if let Some(owner) = before {
        if owner.usage.as_ref() == Some(usage) {
            return Decision::None(NoEffect::Noop(Class::AlreadyDone, format!("adjusted by {}", owner.by)));
        }
        return review(Class::Conflict, &format!("{} adjusted under this reference to other usage", owner.by));
    }
    match view.ledger.adjusts.iter().filter_map(|entry| entry.order).max() {
        Some(newest) if newest > order => {
            let note = format!("a correction of sequence {newest} stands, this one has {order}");
            return Decision::None(NoEffect::Noop(Class::Superseded, note));
        }
        Some(newest) if newest == order => {
            return review(Class::Conflict, &format!("another correction has the same sequence {order}"));
        }
        _ => {}
    }
    if let Some(verdict) = not_yet(records, view.ledger) {
        return Decision::None(verdict);
    }
    let charge = match records.job.price.charge_for(records.priced_outcome(), usage) {
        Ok(charge) => charge,
        Err(error) => return review(Class::InvalidUsage, &error.to_string()),
    };
    let uncharged = above_cap(records, is_capped(records, view.ledger), charge);
    let difference = match view.ledger.captured_by_usage().and_then(|now| charge.minus(uncharged)?.minus(now)) {
        Ok(difference) => difference,
        Err(error) => return review(Class::InvalidUsage, &error.to_string()),
    };
    let entry = Entry::of_job(EntryKind::Adjust, &records.job, ask.by.to_string(), ask.now_ms);
    let entry = Entry {
        amount: difference,
        uncharged,
        order: Some(order),
        usage: Some(usage.clone()),
        price_version: Some(records.job.price.version.clone()),
        ..entry
    };
    // Of a postpaid job a correction down is a credit on the next charge: refunds are what people ask for.
    match post(entry, reference, view.ledger, balance, None) {
        Ok(posting) => Decision::Commit(Box::new(posting)),
        Err(verdict) => Decision::None(verdict),
    }
}

/// A correction needs a charge to correct: it waits for one that may come, and is a person's when none can.
fn not_yet(records: &JobRecords, ledger: &JobLedger) -> Option<NoEffect> {
    if ledger.has_capture() {
        return None;
    }
    let may_come = match (records.transitions.last(), &ledger.close) {
        (None, _) | (_, None) => true,
        (Some(last), Some(_)) => last.outcome == Outcome::Success,
    };
    Some(if may_come {
        NoEffect::Wait(Class::NotYet, "there is no capture to correct yet".to_owned())
    } else {
        NoEffect::Review(Class::NotPossible, "the job ended without a capture".to_owned())
    })
}

/// The posting of an adjustment, or why it needs a person: up and funds short, or down below what was reversed. Of a
/// postpaid job `back` is the charge that an adjustment down goes back to.
///
/// # Errors
/// The verdict.
pub fn post(
    entry: Entry, reference: &Reference, ledger: &JobLedger, balance: &Balance, back: Option<&Back>,
) -> Result<Posting, NoEffect> {
    let beyond = |_| NoEffect::Review(Class::InvalidUsage, "an amount is beyond the limit".to_owned());
    let captured = ledger.captured().and_then(|sum| sum.plus(entry.amount)).map_err(beyond)?;
    let reversed = ledger.reversed().map_err(beyond)?;
    if captured < reversed.max(Micros::ZERO) {
        let note = format!("{captured} would be captured, and {reversed} was reversed");
        return Err(NoEffect::Review(Class::NotPossible, note));
    }
    let borne = |posting: Posting| match posting.borne_by(balance) {
        Ok(()) => Ok(posting),
        Err(need) => Err(funds_short(need, balance)),
    };
    let mut entry = Entry { reference: Some(reference.to_string()), ..entry };
    if crate::planted::on("adjust-without-key") {
        entry.reference = None; // PLANTED
        let sort_key = format!("a|{}", entry.created_ms);
        return from_available(entry, Account::Revenue, sort_key, balance).map_err(beyond).and_then(borne);
    }
    let posting = back_to(entry, Account::Revenue, keys::adjust_sk(reference), balance, back).map_err(beyond)?;
    Ok(borne(posting)?.with_slot(keys::slot_sk(ledger.next_change())))
}

fn review(class: Class, note: &str) -> Decision {
    Decision::None(NoEffect::Review(class, note.to_owned()))
}
