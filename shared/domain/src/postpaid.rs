//! Postpaid wallets: who is charged afterwards, and how much of a change is whole minor units.
//!
//! A payment provider takes whole minor units (cents), and often a minimum; usage is worth fractions of them. So every
//! change of what a tenant owes is split: what is moved at the provider now goes through the receivable account, the
//! rest through the rounding account, where the wallet carries it ([`crate::ledger::Balance::carried`]). The next charge
//! takes whole units out of it. So the receivable is always exactly what the provider was asked for and has not paid,
//! and no fraction is lost or taken twice.

use serde::{Deserialize, Serialize};

use crate::ledger::{Account, Entry, Line};
use crate::money::{Micros, MoneyError, as_number, minor_unit};

/// Longest id of a customer or a payment method, in bytes.
pub const MAX_ID_BYTES: usize = 200;

/// How a wallet is charged; fixed when it is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Postpaid {
    /// The table `[charges.NAME]` of providers.toml.
    #[serde(rename = "to")]
    pub to: String,
    /// The provider's id of the customer.
    #[serde(rename = "cs")]
    pub customer: String,
    /// The provider's id of what is charged.
    #[serde(rename = "pm")]
    pub payment_method: String,
    /// Decimals of the minor unit at this provider, pinned: what is carried would else change its meaning.
    #[serde(rename = "dg")]
    pub minor_digits: u32,
    /// Nothing below this is charged; it is carried until it comes to as much.
    #[serde(rename = "mn", with = "as_number")]
    pub minimum: Micros,
    /// True where each job says at its submission how much is authorised for it.
    #[serde(rename = "az", default, skip_serializing_if = "std::ops::Not::not")]
    pub authorise: bool,
}

/// A change of what is owed, in its two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Whole minor units that are moved now: charged, or, negative, given back.
    pub moved: Micros,
    /// What the wallet carries more than before; negative where whole units were taken out of it.
    pub carried: Micros,
}

/// An earlier charge of the same job that money can go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Back {
    /// Sort key of the entry that was charged.
    pub charge: String,
    /// The provider's id of its payment; none where the charge failed, so that nothing was paid and nothing is refunded.
    pub payment: Option<String>,
    /// What of it did not go back before.
    pub left: Micros,
}

impl Postpaid {
    /// The same terms, whatever the provider's decimals are by now.
    pub fn same_terms(&self, other: &Self) -> bool {
        Self { minor_digits: 0, ..self.clone() } == Self { minor_digits: 0, ..other.clone() }
    }

    /// Micros in one minor unit.
    fn unit(&self) -> i64 {
        minor_unit(self.minor_digits).unwrap_or(1) // a file gives six at most
    }

    /// How many minor units an amount of whole ones is.
    pub fn minor(&self, amount: Micros) -> i64 {
        amount.get() / self.unit()
    }

    /// The least whole minor units that cover an amount; it is rounded here and nowhere else.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when that leaves the limits.
    pub fn covering(&self, amount: Micros) -> Result<Micros, MoneyError> {
        let unit = self.unit();
        let whole = amount.get().div_euclid(unit) + i64::from(amount.get().rem_euclid(unit) > 0);
        Micros::new(whole.checked_mul(unit).ok_or(MoneyError::TooLarge)?)
    }

    /// The least that is charged: the minimum, and one minor unit where there is none.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when that leaves the limits.
    pub fn least_charge(&self) -> Result<Micros, MoneyError> {
        self.covering(self.minimum.max(Micros::new(1)?))
    }

    /// Splits a charge of `amount`, or, negative, what goes back of one, `refundable` at most. `carried` is what the wallet
    /// carries.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when an amount leaves the limits.
    pub fn split(&self, carried: Micros, amount: Micros, refundable: Micros) -> Result<Split, MoneyError> {
        let carried = if crate::planted::on("carried-rest-forgotten") { Micros::ZERO } else { carried }; // PLANTED
        let due = carried.plus(amount)?;
        let whole = Micros::new(due.get() / self.unit() * self.unit())?; // towards zero
        let moved = match whole {
            back if back < Micros::ZERO => back.max(refundable.negated()),
            small if small < self.minimum => Micros::ZERO,
            charge => charge,
        };
        Ok(Split { moved, carried: amount.minus(moved)? })
    }
}

/// The lines of a charge of `amount`, of which `split` says what is moved; they sum to zero.
pub fn lines(amount: Micros, split: Split) -> Vec<Line> {
    let all = [
        Line { account: Account::Receivable, amount: split.moved.negated() },
        Line { account: Account::Rounding, amount: split.carried.negated() },
        Line { account: Account::Revenue, amount },
    ];
    all.into_iter().filter(|line| line.amount != Micros::ZERO).collect()
}

/// What an entry of a job moved at the payment provider: charged, or, negative, given back.
pub fn moved(entry: &Entry) -> Micros {
    let line = entry.lines.iter().find(|line| line.account == Account::Receivable);
    line.filter(|_| entry.job.is_some()).map_or(Micros::ZERO, |line| line.amount.negated())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    fn of(digits: u32, minimum: &str) -> Postpaid {
        let minimum = Micros::parse(minimum).unwrap();
        let id = |text: &str| text.to_owned();
        let (to, customer, payment_method) = (id("stripe"), id("c"), id("p"));
        Postpaid { to, customer, payment_method, minor_digits: digits, minimum, authorise: false }
    }

    #[test]
    fn what_is_authorised_is_rounded_up_to_whole_units() {
        let up = |digits, amount| of(digits, "0").covering(Micros::parse(amount).unwrap()).unwrap().to_string();
        assert_eq!(up(2, "5.00"), "5.000000");
        assert_eq!(up(2, "5.000001"), "5.010000");
        assert_eq!(up(0, "0.6"), "1.000000");
        assert_eq!(up(3, "1.2341"), "1.235000");
        assert_eq!(up(2, "0"), "0.000000");
    }

    /// Splits one change after the other; each gives (moved, carried after it).
    fn walk(terms: &Postpaid, changes: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut carried = Micros::ZERO;
        let one = |(amount, refundable): &(&str, &str)| {
            let (amount, refundable) = (Micros::parse(amount).unwrap(), Micros::parse(refundable).unwrap());
            let split = terms.split(carried, amount, refundable).unwrap();
            carried = carried.plus(split.carried).unwrap();
            let sum: i64 = lines(amount, split).iter().map(|line| line.amount.get()).sum();
            assert_eq!(sum, 0, "the lines of {amount}");
            (split.moved.to_string(), carried.to_string())
        };
        changes.iter().map(one).collect()
    }

    fn said(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(moved, carried)| ((*moved).to_owned(), (*carried).to_owned())).collect()
    }

    #[test]
    fn whole_units_leave_and_the_rest_is_carried_to_the_next_charge() {
        // Cents: 0.0087 three times is 0.0261, of which 0.02 can be charged.
        let found = walk(&of(2, "0"), &[("0.0087", "0"), ("0.0087", "0"), ("0.0087", "0")]);
        let hand = [("0.000000", "0.008700"), ("0.010000", "0.007400"), ("0.010000", "0.006100")];
        assert_eq!(found, said(&hand));
        // Yen have no decimals: 0.6 three times is 1.8.
        let found = walk(&of(0, "0"), &[("0.6", "0"), ("0.6", "0"), ("0.6", "0")]);
        let hand = [("0.000000", "0.600000"), ("1.000000", "0.200000"), ("0.000000", "0.800000")];
        assert_eq!(found, said(&hand));
        // Dinars have three: 1.2345 three times is 3.7035.
        let found = walk(&of(3, "0"), &[("1.2345", "0"), ("1.2345", "0"), ("1.2345", "0")]);
        let hand = [("1.234000", "0.000500"), ("1.235000", "0.000000"), ("1.234000", "0.000500")];
        assert_eq!(found, said(&hand));
    }

    #[test]
    fn nothing_below_the_minimum_is_charged_and_nothing_of_it_is_lost() {
        let found = walk(&of(2, "0.50"), &[("0.3", "0"), ("0.1999", "0"), ("0.0051", "0")]);
        let hand = [("0.000000", "0.300000"), ("0.000000", "0.499900"), ("0.500000", "0.005000")];
        assert_eq!(found, said(&hand));
    }

    #[test]
    fn what_goes_back_is_taken_from_what_is_carried_first_and_never_exceeds_what_was_charged() {
        // 1.005: 1.00 charged, 0.005 carried; all of it back is 1.00.
        let found = walk(&of(2, "0"), &[("1.005", "0"), ("-1.005", "1")]);
        assert_eq!(found, said(&[("1.000000", "0.005000"), ("-1.000000", "0.000000")]));
        // With nothing to refund it is a credit, and the next charge is so much smaller.
        let found = walk(&of(2, "0"), &[("-0.50", "0"), ("0.75", "0")]);
        assert_eq!(found, said(&[("0.000000", "-0.500000"), ("0.250000", "0.000000")]));
        // More than is left of the charge goes back as far as it reaches.
        let found = walk(&of(2, "0"), &[("-0.50", "0.20")]);
        assert_eq!(found, said(&[("-0.200000", "-0.300000")]));
    }
}
