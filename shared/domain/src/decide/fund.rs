//! fund-wallet and reverse-funding: a payment funds its wallet once, however many events speak of it;
//! its refunds take the funding back.

use super::posting::{Posting, from_available};
use super::settle::{Decision, funds_short};
use super::{Ask, NoEffect};
use crate::ids::{Reference, TenantId, WalletId};
use crate::keys;
use crate::ledger::{Account, Balance, Entry, EntryKind};
use crate::money::{Currency, Micros, MoneyError};
use crate::operation::Class;

/// The wallet's part of the view, read in this order.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Whose wallet.
    pub tenant: &'a TenantId,
    /// Which.
    pub wallet: &'a WalletId,
    /// Its balance.
    pub balance: Option<&'a Balance>,
    /// The funding under the event's reference, if it exists.
    pub funding: Option<&'a Entry>,
    /// The reversals of that funding.
    pub reversals: &'a [Entry],
}

/// The event's amount, currency and key.
struct Payment<'a> {
    reference: &'a Reference,
    amount: Micros,
    currency: Currency,
}

fn payment<'a>(ask: &Ask<'a>) -> Option<Payment<'a>> {
    let amount = Micros::new(ask.envelope.amount?).ok()?;
    Some(Payment { reference: ask.envelope.reference.as_ref()?, amount, currency: ask.envelope.currency? })
}

fn review(class: Class, note: impl Into<String>) -> Decision {
    Decision::None(NoEffect::Review(class, note.into()))
}

/// What both directions check before anything else, after their own effect.
fn preconditions<'a>(ask: &Ask<'a>, view: &View<'a>) -> Result<(Payment<'a>, &'a Balance), Decision> {
    if let Some(limit) = ask.over_limit() {
        return Err(Decision::None(limit));
    }
    let Some(payment) = payment(ask) else {
        return Err(review(Class::Unreadable, "the receipt lacks reference, amount or currency"));
    };
    let Some(balance) = view.balance else {
        return Err(Decision::None(NoEffect::Wait(Class::NotYet, "the wallet does not exist yet".to_owned())));
    };
    if balance.currency != payment.currency {
        let note = format!("the wallet holds {}, the payment is in {}", balance.currency, payment.currency);
        return Err(review(Class::Mismatch, note));
    }
    Ok((payment, balance))
}

/// Decides fund-wallet.
pub fn decide(ask: &Ask<'_>, view: &View<'_>) -> Decision {
    if view.funding.is_some_and(|entry| entry.is_by(ask.by)) {
        return Decision::None(NoEffect::Done);
    }
    let (payment, balance) = match preconditions(ask, view) {
        Ok(checked) => checked,
        Err(decision) => return decision,
    };
    if let Some(owner) = view.funding {
        if owner.amount == payment.amount {
            return Decision::None(NoEffect::Noop(Class::AlreadyDone, format!("funded by {}", owner.by)));
        }
        return review(Class::Conflict, format!("{} funded {} under this payment", owner.by, owner.amount));
    }
    let request = Funding { kind: EntryKind::Fund, amount: payment.amount, reference: payment.reference };
    match request.post(view.tenant, view.wallet, ask.by.to_string(), balance, ask.now_ms) {
        Ok(posting) => Decision::Commit(Box::new(posting)),
        Err(_) => review(Class::NotPossible, "the wallet would hold more than the limit"),
    }
}

/// A funding or an opening balance.
#[derive(Debug, Clone, Copy)]
pub struct Funding<'a> {
    /// [`EntryKind::Fund`] or [`EntryKind::OpeningBalance`].
    pub kind: EntryKind,
    /// More than zero.
    pub amount: Micros,
    /// The key.
    pub reference: &'a Reference,
}

impl Funding<'_> {
    /// The posting.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when the wallet would hold more than the limit.
    pub fn post(
        &self, tenant: &TenantId, wallet: &WalletId, by: String, balance: &Balance, now_ms: i64,
    ) -> Result<Posting, MoneyError> {
        balance.available.plus(balance.held)?.plus(self.amount)?;
        let entry = Entry::of_wallet(self.kind, tenant, wallet, balance.currency, by, now_ms);
        let entry = Entry { amount: self.amount, reference: Some(self.reference.to_string()), ..entry };
        let key = match crate::planted::on("funding-keyed-by-the-event") {
            true => format!("f|{}", entry.by), // PLANTED
            false => keys::fund_sk(self.reference),
        };
        from_available(entry, Account::ExternalFunding, key, balance)
    }
}

/// Decides reverse-funding. The event's amount is what was refunded of the payment IN ALL, so that
/// repeated, lost and reordered events of one payment cannot take back twice.
pub fn decide_reversal(ask: &Ask<'_>, view: &View<'_>) -> Decision {
    if view.reversals.iter().any(|entry| entry.is_by(ask.by)) {
        return Decision::None(NoEffect::Done);
    }
    let (payment, balance) = match preconditions(ask, view) {
        Ok(checked) => checked,
        Err(decision) => return decision,
    };
    if payment.amount == Micros::ZERO {
        // An authorisation that was given up, or the rest of one that was captured in part: no funding is waited for.
        let note = "nothing was refunded of what was captured".to_owned();
        return Decision::None(NoEffect::Noop(Class::AlreadyDone, note));
    }
    let Some(funding) = view.funding else {
        return Decision::None(NoEffect::Wait(Class::NotYet, "the payment funded nothing yet".to_owned()));
    };
    let before = if crate::planted::on("refund-taken-for-new") { &[] } else { view.reversals }; // PLANTED
    let reversed = before.iter().try_fold(Micros::ZERO, |sum, entry| sum.plus(entry.amount));
    let Ok(due) = reversed.and_then(|before| payment.amount.minus(before)) else {
        return review(Class::NotPossible, "an amount is beyond the limit");
    };
    if due <= Micros::ZERO {
        let note = format!("{} of the payment was taken back before", payment.amount);
        return Decision::None(NoEffect::Noop(Class::AlreadyDone, note));
    }
    if payment.amount > funding.amount {
        let note = format!("{} is refunded and {} was funded", payment.amount, funding.amount);
        return review(Class::NotPossible, note);
    }
    if !balance.covers(due) {
        return Decision::None(funds_short(due, balance));
    }
    let by = ask.by.to_string();
    let entry =
        Entry::of_wallet(EntryKind::FundingReversal, view.tenant, view.wallet, balance.currency, by, ask.now_ms);
    let entry = Entry { amount: due, reference: Some(payment.reference.to_string()), ..entry };
    let sort_key = keys::funding_reversal_sk(payment.reference, payment.amount.get());
    let slot = keys::funding_slot_sk(payment.reference, view.reversals.len() + 1);
    match from_available(entry, Account::ExternalFunding, sort_key, balance) {
        Ok(posting) => Decision::Commit(Box::new(posting.with_slot(slot))),
        Err(_) => review(Class::NotPossible, "an amount is beyond the limit"),
    }
}
