//! Reversal: captured money goes back to the wallet under its own key; in sum never more than was
//! captured.

use super::NoEffect;
use super::posting::{Posting, back_to};
use crate::ids::Reference;
use crate::keys;
use crate::ledger::{Account, Balance, Entry, JobLedger};
use crate::operation::Class;
use crate::postpaid::Back;

/// The posting of a reversal of `entry.amount`, or why it is refused. Of a postpaid job `back` is the charge that it goes
/// back to.
///
/// # Errors
/// The verdict.
pub fn post(
    entry: Entry, reference: &Reference, ledger: &JobLedger, balance: &Balance, back: Option<&Back>,
) -> Result<Posting, NoEffect> {
    let beyond = |_| NoEffect::Review(Class::NotPossible, "an amount is beyond the limit".to_owned());
    let captured = ledger.captured().map_err(beyond)?;
    let reversed = ledger.reversed().map_err(beyond)?;
    let after = reversed.plus(entry.amount).map_err(beyond)?;
    if after > captured && !crate::planted::on("reversal-without-its-sum") {
        // PLANTED
        let note =
            format!("{captured} was captured and {reversed} reversed before: at most the difference can be reversed");
        return Err(NoEffect::Review(Class::NotPossible, note));
    }
    let entry = Entry { reference: Some(reference.to_string()), ..entry };
    let posting = back_to(entry, Account::Revenue, keys::reverse_sk(reference), balance, back).map_err(beyond)?;
    Ok(posting.with_slot(keys::slot_sk(ledger.next_change())))
}
