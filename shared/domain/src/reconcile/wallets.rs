//! A wallet: its balance against its entries, its chain, and its holds. The audit compares; this says what is to be done.

use super::{Action, CaseClass, Finding, Subject};
use crate::audit::{Broken, Fault, Wallet};
use crate::money::{Micros, MoneyError};

/// The finding of a fault that two bracketed readings agree on.
pub fn compare_wallet(broken: &Broken, wallet: &Wallet) -> Finding {
    let subject = Subject::Wallet { tenant: wallet.tenant.clone(), wallet: wallet.wallet.clone() };
    let (class, action, amount) = match &broken.fault {
        Fault::Total { balance, entries } => (CaseClass::BalanceDrift, Action::Rebuild, Some(balance - entries)),
        Fault::Held { held, holds, .. } => (CaseClass::HeldDrift, Action::Rebuild, Some(held - holds)),
        _ => (CaseClass::ChainBroken, Action::Person, None),
    };
    let finding = Finding::new(class, action, subject, broken.to_string());
    let amount = amount.and_then(|amount| i64::try_from(amount).ok()).and_then(|amount| Micros::new(amount).ok());
    match amount {
        Some(amount) => finding.with_money(amount, wallet.currency),
        None => finding,
    }
}

/// What moves a balance to what its entries and open holds say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebuild {
    /// Added to available.
    pub available: Micros,
    /// Added to held.
    pub held: Micros,
}

/// The delta between a balance and what stands: the sum of its entries, of which the open holds are held.
///
/// # Errors
/// [`MoneyError::TooLarge`] when an amount leaves the limits.
pub fn rebuild(wallet: &Wallet, entries: i128, holds: i128) -> Result<Rebuild, MoneyError> {
    let amount = |sum: i128| i64::try_from(sum).map_err(|_| MoneyError::TooLarge).and_then(Micros::new);
    let (held, available) = (amount(holds)?, amount(entries - holds)?);
    Ok(Rebuild { available: available.minus(wallet.available)?, held: held.minus(wallet.held)? })
}
