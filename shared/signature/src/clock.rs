//! Signed timestamps and their age.
//!
//! Plain ASCII digits and nothing else; checked `i64` arithmetic; both edges of the tolerance are inclusive and both sides
//! are checked (SIG-07). The age is measured in the timestamp's own unit, so that the milliseconds of our clock do not
//! narrow a tolerance that is stated in seconds.

use crate::rejection::Rejection;
use serde::Deserialize;

/// The unit of a timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Unit {
    /// Unix seconds.
    #[default]
    #[serde(rename = "s")]
    Seconds,
    /// Unix milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Either: twelve digits or more are milliseconds (as seconds they would lie beyond the year 5000).
    #[serde(rename = "auto")]
    Auto,
}

/// A timestamp that has been read. Its value in milliseconds is known to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    value: i64,
    per_second: i64,
}

impl Stamp {
    pub(crate) fn parse(text: &str, unit: Unit) -> Result<Self, Rejection> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Rejection::MalformedSignature);
        }
        let value: i64 = text.parse().map_err(|_| Rejection::MalformedSignature)?;
        let per_second = match unit {
            Unit::Seconds => 1,
            Unit::Millis => 1000,
            Unit::Auto if text.len() >= 12 => 1000,
            Unit::Auto => 1,
        };
        let stamp = Self { value, per_second };
        value.checked_mul(1000 / per_second).map(|_| stamp).ok_or(Rejection::MalformedSignature)
    }

    /// Unix milliseconds.
    pub(crate) fn ms(self) -> i64 {
        self.value.saturating_mul(1000 / self.per_second)
    }

    /// `tolerance_s` in seconds; `None` checks nothing.
    pub(crate) fn check(self, now_ms: i64, tolerance_s: Option<u32>) -> Result<(), Rejection> {
        let Some(tolerance_s) = tolerance_s else {
            return Ok(());
        };
        let now = now_ms.div_euclid(1000 / self.per_second);
        let tolerance = i64::from(tolerance_s) * self.per_second;
        match now.checked_sub(self.value) {
            Some(age) if age > tolerance => Err(Rejection::TimestampTooOld),
            Some(age) if age < -tolerance => Err(Rejection::TimestampInFuture),
            Some(_) => Ok(()),
            // `value` is not negative, so only a clock before 1970 can get here.
            None => Err(Rejection::TimestampInFuture),
        }
    }
}

/// The text of `now_ms` in `unit` (seconds where either will do); `None` before 1970.
pub(crate) fn text_of(now_ms: i64, unit: Unit) -> Option<String> {
    let value = match unit {
        Unit::Seconds | Unit::Auto => now_ms.div_euclid(1000),
        Unit::Millis => now_ms,
    };
    (value >= 0).then(|| value.to_string())
}
