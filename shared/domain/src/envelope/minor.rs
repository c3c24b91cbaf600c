//! Amounts in a provider's minor units (cents), as micros of our own.

use std::collections::BTreeMap;

use crate::money::{Currency, Micros, MoneyError};

/// A provider's minor units (cents) in micros: by the provider's own exponent where its profile names
/// one, else by the currency's ISO 4217 exponent (LED-01).
pub(super) fn to_micros(
    text: &str, currency: Option<Currency>, own: &BTreeMap<String, u32>,
) -> Result<i64, MoneyError> {
    let currency = currency.ok_or_else(|| MoneyError::UnknownCurrency(String::new()))?;
    let digits = own.get(currency.code()).copied().unwrap_or_else(|| currency.minor_digits());
    let minor: i64 = text.parse().map_err(|_| MoneyError::NotDecimal(text.chars().take(40).collect()))?;
    Micros::from_minor(minor, digits).map(Micros::get)
}

/// What was refunded of what was captured, where the rest of an authorisation is counted as refunded too; nothing is taken
/// off where the body does not say both, or where so much was not refunded.
pub(super) fn less_uncaptured(
    refunded: i64, authorised: Option<i64>, captured: Option<i64>,
) -> Result<i64, MoneyError> {
    let (Some(authorised), Some(captured)) = (authorised, captured) else { return Ok(refunded) };
    let rest = Micros::new(authorised)?.minus(Micros::new(captured)?)?.max(Micros::ZERO).get();
    Ok(if refunded >= rest { refunded - rest } else { refunded })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn what_was_never_captured_is_taken_off_a_refund() {
        let of = |refunded, authorised, captured| less_uncaptured(refunded, authorised, captured).unwrap();
        assert_eq!(of(7_000_000, Some(12_000_000), Some(10_000_000)), 5_000_000);
        assert_eq!(of(2_000_000, Some(12_000_000), Some(10_000_000)), 0);
        assert_eq!(of(12_000_000, Some(12_000_000), Some(0)), 0);
        assert_eq!(of(5_000_000, Some(10_000_000), Some(10_000_000)), 5_000_000);
        // Where the rest is not counted, or nothing is said of it.
        assert_eq!(of(1_000_000, Some(12_000_000), Some(10_000_000)), 1_000_000);
        assert_eq!(of(7_000_000, Some(12_000_000), None), 7_000_000);
        assert_eq!(of(7_000_000, None, None), 7_000_000);
    }
}
