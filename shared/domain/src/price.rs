//! What usage costs: a price book of versions, and the snapshot that a submission pins.
//!
//! A charge is the sum of `quantity x price / per` over the units, computed exactly in integers and
//! rounded ONCE, half-even, to micros. A later price never changes a settlement, because the
//! snapshot is stored in the job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::ModelId;
use crate::job::Outcome;
use crate::json::Value;
use crate::money::{Currency, Micros, MoneyError, parse_scaled};

pub use crate::price_book::{PriceBook, PriceVersion, SHAPE as BOOK_SHAPE};

/// Decimals kept of a quantity (0.001 second).
const QUANTITY_DECIMALS: usize = 3;
/// Decimals kept of a price.
const PRICE_DECIMALS: usize = 9;
/// Powers of ten that `per` may be, at most this many zeros.
pub(crate) const MAX_PER_ZEROS: u32 = 9;
/// Units in one event's usage, and in one price.
pub const MAX_UNITS: usize = 16;

/// A decimal with a fixed number of decimals; its text form is the plain decimal.
macro_rules! scaled {
    ($(#[$doc:meta])* $name:ident, $decimals:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(i64);

        impl $name {
            /// The value scaled to an integer.
            pub fn scaled(self) -> i64 {
                self.0
            }

            /// Reads a plain decimal.
            ///
            /// # Errors
            /// [`MoneyError`] for another form or too many decimals.
            pub fn parse(text: &str) -> Result<Self, MoneyError> {
                parse_scaled(text, $decimals).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = MoneyError;
            fn try_from(text: String) -> Result<Self, MoneyError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                let one = 10_u64.pow($decimals as u32);
                let sign = if value.0 < 0 { "-" } else { "" };
                let (whole, rest) = (value.0.unsigned_abs() / one, value.0.unsigned_abs() % one);
                let fraction = format!("{rest:0width$}", width = $decimals);
                let fraction = fraction.trim_end_matches('0');
                if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
            }
        }
    };
}

scaled!(
    /// How much of a unit was used, exact to 0.001.
    Quantity, QUANTITY_DECIMALS
);
scaled!(
    /// A price in major units of the currency, exact to nine decimals.
    Price, PRICE_DECIMALS
);

/// Usage by unit name (`input_tokens`, `seconds`).
pub type Usage = BTreeMap<String, Quantity>;

/// Why usage cannot be charged; every one of them is a person's decision, never a silent zero.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// Not an object of numbers, or more than [`MAX_UNITS`] units.
    #[error("usage is not an object of at most {MAX_UNITS} numbers with at most 3 decimals")]
    Malformed,
    /// No priced unit at all.
    #[error("usage names no unit that the price knows")]
    Missing,
    /// A unit that the pinned price neither prices nor ignores.
    #[error("unit {0:?} has no price; price it or list it under `ignore`")]
    UnknownUnit(String),
    /// A quantity below zero.
    #[error("unit {0:?} has a negative quantity")]
    Negative(String),
    /// A quantity or a charge above the stated ceiling.
    #[error("usage is above the ceiling of {0}")]
    AboveCeiling(String),
    /// Beyond what the arithmetic or the amount limit can hold.
    #[error("the charge is beyond the largest amount")]
    Overflow,
}

/// Reads a usage object from JSON, each number exactly.
///
/// # Errors
/// [`UsageError::Malformed`].
pub fn usage_from_json(value: &Value<'_>) -> Result<Usage, UsageError> {
    let members = value.as_object().ok_or(UsageError::Malformed)?;
    if members.len() > MAX_UNITS {
        return Err(UsageError::Malformed);
    }
    let quantity = |value: &Value<'_>| match value {
        Value::Number(number) => plain_decimal(&number.canonical()).and_then(|text| Quantity::parse(&text).ok()),
        _ => None,
    };
    members
        .iter()
        .map(|(name, value)| {
            let named = !name.is_empty() && name.len() <= 64;
            quantity(value).filter(|_| named).map(|q| (name.to_string(), q)).ok_or(UsageError::Malformed)
        })
        .collect()
}

/// Turns the canonical `digits[e exponent]` into a plain decimal, for exponents that money can hold.
fn plain_decimal(canonical: &str) -> Option<String> {
    let Some((digits, exponent)) = canonical.split_once('e') else { return Some(canonical.to_owned()) };
    let exponent: i32 = exponent.parse().ok().filter(|e| (-18..=18).contains(e))?;
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    if exponent >= 0 {
        return Some(format!("{sign}{digits}{}", "0".repeat(exponent.unsigned_abs() as usize)));
    }
    let places = exponent.unsigned_abs() as usize;
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    Some(format!("{sign}{whole}.{fraction}"))
}

/// What one unit costs. Stored in jobs, so a field that a newer version adds is let pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Price in major units for `per` units.
    pub price: Price,
    /// How many units the price is for: 1, 10, ... 1000000000.
    #[serde(default = "one")]
    pub per: i64,
    /// The most of this unit that one event may report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Quantity>,
}

fn one() -> i64 {
    1
}

/// A price as pinned in a job: everything a settlement needs, for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The priced model.
    pub model: ModelId,
    /// The version's name, shown beside every charge.
    pub version: String,
    /// The currency of the rates.
    pub currency: Currency,
    /// Price by unit.
    pub rates: BTreeMap<String, Rate>,
    /// Units that the provider reports and nobody pays for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The least that a success costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Micros>,
    /// The most that one event may cost; above it a person looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Micros>,
}

impl Snapshot {
    /// What the usage of a run that ended so costs, rounded once, half-even, to micros. A success costs at least the
    /// minimum; that of another outcome is charged as it is.
    ///
    /// # Errors
    /// [`UsageError`] when the usage is not chargeable as it stands.
    pub fn charge_for(&self, outcome: Outcome, usage: &Usage) -> Result<Micros, UsageError> {
        let minimum = self.minimum.filter(|_| outcome == Outcome::Success);
        let mut total: i128 = 0;
        let mut priced = false;
        for (unit, quantity) in usage {
            if quantity.scaled() < 0 {
                return Err(UsageError::Negative(unit.clone()));
            }
            let Some(rate) = self.rates.get(unit) else {
                if self.ignore.contains(unit) {
                    continue;
                }
                return Err(UsageError::UnknownUnit(unit.clone()));
            };
            priced = true;
            if let Some(max) = rate.max.filter(|max| quantity > max) {
                return Err(UsageError::AboveCeiling(format!("{} {unit}", String::from(max))));
            }
            let share = i128::from(10_i64.pow(MAX_PER_ZEROS)) / i128::from(rate.per);
            let product = i128::from(quantity.scaled()).checked_mul(i128::from(rate.price.scaled()));
            let term = product.and_then(|p| p.checked_mul(share)).ok_or(UsageError::Overflow)?;
            total = total.checked_add(term).ok_or(UsageError::Overflow)?;
        }
        if !priced {
            return Err(UsageError::Missing);
        }
        // 3 + 9 + 9 decimals are in `total`; six of them stay.
        let micros = round_half_even(total, 10_i128.pow(15));
        let charge = i64::try_from(micros).ok().and_then(|m| Micros::new(m).ok()).ok_or(UsageError::Overflow)?;
        let charge = minimum.map_or(charge, |minimum| charge.max(minimum));
        match self.ceiling.filter(|ceiling| charge > *ceiling) {
            Some(ceiling) => Err(UsageError::AboveCeiling(format!("{ceiling} {}", self.currency))),
            None => Ok(charge),
        }
    }
}

/// Divides with rounding half to even; the divisor is positive.
pub fn round_half_even(value: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (value.div_euclid(divisor), value.rem_euclid(divisor));
    match (rest * 2).cmp(&divisor) {
        std::cmp::Ordering::Less => quotient,
        std::cmp::Ordering::Greater => quotient + 1,
        std::cmp::Ordering::Equal => quotient + quotient.rem_euclid(2),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::ids::TenantId;

    const BOOK: &str = r#"
        [[price]]
        model = "small-1"
        version = "2026-01"
        effective = "2026-01-01T00:00:00Z"
        currency = "USD"
        rates.input_tokens = { price = "3.00", per = 1000000 }
        rates.output_tokens = { price = "15.00", per = 1000000 }
        [[price]]
        model = "small-1"
        version = "2026-06-t9"
        tenant = "t9"
        effective = "2026-06-01T00:00:00Z"
        currency = "USD"
        rates.input_tokens = { price = "1.00", per = 1000000, max = "1000" }
        "#;
    const MAY_2026: i64 = 1_777_593_600_000;
    const JULY_2026: i64 = 1_782_864_000_000;

    fn usage(pairs: &[(&str, &str)]) -> Usage {
        pairs.iter().map(|(unit, q)| ((*unit).to_owned(), Quantity::parse(q).unwrap())).collect()
    }

    fn pin(tenant: &str, at_ms: i64) -> Snapshot {
        let book = PriceBook::parse(BOOK).unwrap();
        book.pin(&ModelId::new("small-1").unwrap(), &TenantId::new(tenant).unwrap(), at_ms).unwrap().clone()
    }

    #[test]
    fn the_sample_event_costs_0_008700() {
        // 1200 x 3.00 / 10^6 = 0.0036; 340 x 15.00 / 10^6 = 0.0051.
        let charge = pin("t1", JULY_2026)
            .charge_for(Outcome::Success, &usage(&[("input_tokens", "1200"), ("output_tokens", "340")]));
        assert_eq!(charge.unwrap().to_string(), "0.008700");
    }

    #[test]
    fn a_tenants_own_terms_go_first_and_only_from_their_time_on() {
        assert_eq!(pin("t9", MAY_2026).version, "2026-01");
        assert_eq!(pin("t9", JULY_2026).version, "2026-06-t9");
        assert_eq!(pin("t1", JULY_2026).version, "2026-01");
    }

    #[test]
    fn rounding_is_half_even_and_happens_once() {
        // 125 -> 12|5 -> 12 (even); 135 -> 13|5 -> 14; -125 -> -12; 126 -> 13.
        for (value, expected) in [(125, 12), (135, 14), (-125, -12), (-135, -14), (126, 13), (-126, -13), (124, 12)] {
            assert_eq!(round_half_even(value, 10), expected, "{value}");
        }
        // Two units of 0.0000005 each: 0.000001 in sum, though each alone would round to zero.
        let mut snapshot = pin("t1", JULY_2026);
        for rate in snapshot.rates.values_mut() {
            *rate = Rate { price: Price::parse("0.0000005").unwrap(), per: 1, max: None };
        }
        let charge = snapshot.charge_for(Outcome::Success, &usage(&[("input_tokens", "1"), ("output_tokens", "1")]));
        assert_eq!(charge.unwrap().get(), 1);
    }

    #[test]
    fn usage_that_makes_no_sense_is_refused_and_never_zero() {
        let snapshot = pin("t9", JULY_2026);
        let refused = |pairs: &[(&str, &str)]| snapshot.charge_for(Outcome::Success, &usage(pairs)).unwrap_err();
        assert_eq!(refused(&[]), UsageError::Missing);
        assert_eq!(refused(&[("input_tokens", "-1")]), UsageError::Negative("input_tokens".to_owned()));
        assert_eq!(refused(&[("minutes", "1")]), UsageError::UnknownUnit("minutes".to_owned()));
        assert_eq!(refused(&[("input_tokens", "1000.001")]), UsageError::AboveCeiling("1000 input_tokens".to_owned()));
        let mut dear = pin("t1", JULY_2026);
        dear.rates.insert("seconds".to_owned(), Rate { price: Price::parse("9000000000").unwrap(), per: 1, max: None });
        assert_eq!(
            dear.charge_for(Outcome::Success, &usage(&[("seconds", "9000000000000000")])),
            Err(UsageError::Overflow)
        );
    }

    #[test]
    fn usage_is_read_exactly_from_json() {
        let read = |json: &str| usage_from_json(&crate::json::parse(json.as_bytes()).unwrap());
        assert_eq!(
            read(r#"{"a":1.2e3,"b":0.5,"c":-0.125}"#).unwrap(),
            usage(&[("a", "1200"), ("b", "0.5"), ("c", "-0.125")])
        );
        for bad in ["[]", "3", r#"{"a":"1"}"#, r#"{"a":null}"#, r#"{"a":0.0001}"#, r#"{"a":1e400}"#, r#"{"":1}"#] {
            assert_eq!(read(bad), Err(UsageError::Malformed), "{bad}");
        }
    }
}
