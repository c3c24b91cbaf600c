//! Money without floats: `i64` micros (10^-6 of a currency's major unit) with checked arithmetic.
//!
//! In the API, in files and in tables an amount is a decimal string in major units ("25.00"). More
//! than six decimals is refused, and so is a code that ISO 4217 does not know.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Micros in one major unit.
pub const MICROS: i64 = 1_000_000;
/// The largest amount, either sign: ten billion major units. Sums of 900 such amounts fit an `i64`.
pub const MAX_MICROS: i64 = 10_000_000_000 * MICROS;

/// Why an amount is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not a plain decimal number.
    #[error("{0:?} is not an amount: write digits with an optional fraction, such as \"25.00\"")]
    NotDecimal(String),
    /// More decimals than the kind of value has.
    #[error("{text:?} has more than {decimals} decimals, the most that are kept exactly")]
    TooPrecise {
        /// What was given.
        text: String,
        /// The most that is allowed.
        decimals: usize,
    },
    /// Beyond [`MAX_MICROS`].
    #[error("the amount is beyond the limit of 10000000000.00")]
    TooLarge,
    /// A negative amount where only zero or more makes sense.
    #[error("the amount is negative: give zero or more")]
    Negative,
    /// Zero where only a positive amount makes sense.
    #[error("the amount is zero: give more than zero")]
    Zero,
    /// A currency code that ISO 4217 does not know.
    #[error("{0:?} is not an ISO 4217 currency code: write one such as \"USD\"")]
    UnknownCurrency(String),
}

/// Reads `-?digits[.digits]` with at most `decimals` decimals as an integer scaled by `10^decimals`.
///
/// # Errors
/// [`MoneyError`] for another form, more decimals, or a value beyond an `i64`.
pub fn parse_scaled(text: &str, decimals: usize) -> Result<i64, MoneyError> {
    let shown = || text.chars().take(40).collect::<String>();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(fraction) {
        return Err(MoneyError::NotDecimal(shown()));
    }
    if fraction.len() > decimals.max(1) {
        return Err(MoneyError::TooPrecise { text: shown(), decimals });
    }
    let scaled: i64 = format!("{whole}{fraction:0<decimals$}").parse().map_err(|_| MoneyError::TooLarge)?;
    Ok(if negative { -scaled } else { scaled })
}

/// An amount in micros of its currency's major unit; always within [`MAX_MICROS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Micros(i64);

/// Micros in one minor unit (a cent) of so many decimals; `None` for more than micros have.
pub fn minor_unit(digits: u32) -> Option<i64> {
    6_u32.checked_sub(digits).and_then(|zeros| 10_i64.checked_pow(zeros))
}

impl Micros {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From a count of micros.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] beyond [`MAX_MICROS`].
    pub fn new(micros: i64) -> Result<Self, MoneyError> {
        if (-MAX_MICROS..=MAX_MICROS).contains(&micros) { Ok(Self(micros)) } else { Err(MoneyError::TooLarge) }
    }

    /// From a count of minor units (cents) of so many decimals.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] beyond [`MAX_MICROS`], or for more decimals than micros have.
    pub fn from_minor(minor: i64, digits: u32) -> Result<Self, MoneyError> {
        let micros = minor_unit(digits).and_then(|unit| minor.checked_mul(unit));
        micros.ok_or(MoneyError::TooLarge).and_then(Self::new)
    }

    /// The count of micros.
    pub fn get(self) -> i64 {
        self.0
    }

    /// Parses a decimal string in major units.
    ///
    /// # Errors
    /// [`MoneyError`] for anything but `-?digits[.digits]` with at most six decimals.
    pub fn parse(text: &str) -> Result<Self, MoneyError> {
        Self::new(parse_scaled(text, 6)?)
    }

    /// Refuses a negative amount.
    ///
    /// # Errors
    /// [`MoneyError::Negative`].
    pub fn non_negative(self) -> Result<Self, MoneyError> {
        if self.0 < 0 { Err(MoneyError::Negative) } else { Ok(self) }
    }

    /// Refuses zero and less.
    ///
    /// # Errors
    /// [`MoneyError::Negative`] or [`MoneyError::Zero`].
    pub fn positive(self) -> Result<Self, MoneyError> {
        if self.0 == 0 { Err(MoneyError::Zero) } else { self.non_negative() }
    }

    /// The sum, if it is within the limit.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`].
    pub fn plus(self, other: Self) -> Result<Self, MoneyError> {
        Self::new(self.0 + other.0) // both within MAX_MICROS: the i64 sum cannot overflow
    }

    /// The difference, if it is within the limit.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`].
    pub fn minus(self, other: Self) -> Result<Self, MoneyError> {
        Self::new(self.0 - other.0)
    }

    /// The same amount with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(-self.0)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let absolute = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:06}", absolute / 1_000_000, absolute % 1_000_000)
    }
}

/// In JSON and TOML an amount is its decimal string.
impl Serialize for Micros {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// In stored items an amount is a number of micros, so that DynamoDB can add to it.
pub mod as_number {
    use super::Micros;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the count of micros.
    ///
    /// # Errors
    /// The serializer's own.
    pub fn serialize<S: Serializer>(amount: &Micros, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(amount.get())
    }

    /// Reads a count of micros.
    ///
    /// # Errors
    /// When the number is beyond the limit.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Micros, D::Error> {
        Micros::new(i64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// An ISO 4217 currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// From its three-letter code, upper case.
    ///
    /// # Errors
    /// [`MoneyError::UnknownCurrency`].
    pub fn parse(code: &str) -> Result<Self, MoneyError> {
        iso_currency::Currency::from_code(code)
            .map(Self)
            .ok_or_else(|| MoneyError::UnknownCurrency(code.chars().take(10).collect()))
    }

    /// The three-letter code.
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// Decimal places of the minor unit (ISO 4217): JPY 0, USD 2, KWD 3.
    pub fn minor_digits(self) -> u32 {
        u32::from(self.0.exponent().unwrap_or(2))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn amounts_are_exact_decimals_of_at_most_six_places() {
        assert_eq!(Micros::parse("25.00").unwrap().get(), 25_000_000);
        assert_eq!(Micros::parse("0.0087").unwrap().to_string(), "0.008700");
        assert_eq!(Micros::parse("-0.5").unwrap().to_string(), "-0.500000");
        assert!(matches!(Micros::parse("0.1234567"), Err(MoneyError::TooPrecise { .. })));
        for bad in ["", "-", ".5", "1.", "+1", "1e3", " 1", "1,0", "NaN", "--1", "1.-5"] {
            assert!(matches!(Micros::parse(bad), Err(MoneyError::NotDecimal(_))), "{bad:?}");
        }
        assert_eq!(Micros::parse("10000000000.000001"), Err(MoneyError::TooLarge));
        assert_eq!(Micros::parse("99999999999999999999"), Err(MoneyError::TooLarge));
    }

    #[test]
    fn led_01_minor_units_follow_iso_4217() {
        for (code, digits) in [("JPY", 0), ("USD", 2), ("KWD", 3)] {
            assert_eq!(Currency::parse(code).unwrap().minor_digits(), digits);
        }
        assert!(Currency::parse("usd").is_err());
        assert!(Currency::parse("XXZ").is_err());
    }
}
