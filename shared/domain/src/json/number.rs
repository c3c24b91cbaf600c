//! JSON numbers as exact decimals.
//!
//! A number keeps the text it was sent with, so that an id above 2^53 stays itself (a double would merge
//! 8202522731445525542 and …543), and knows its decimal exponent, so that equal values can be written alike. Its
//! value is `digits * 10^exponent`, where the significant digits have no zero at either end; zero has no digits. Nothing is ever expanded: work is linear in the length of the text, not in the size of the number.

use std::fmt;

/// A JSON number: its exact text, checked by the parser.
///
/// Equality compares the text. By value, compare [`Number::canonical`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Number<'a> {
    text: &'a str,
    /// The power of ten of the last significant digit; without meaning for zero, which has none.
    exponent: i64,
}

/// The two runs that the significant digits consist of: those before the decimal point, and those after it.
struct Significant<'a> {
    negative: bool,
    before_point: &'a str,
    after_point: &'a str,
    /// The power of ten of the last significant digit, before the exponent that was written is added.
    shift: i64,
}

impl<'a> Number<'a> {
    /// Takes a text that has the grammar of RFC 8259 section 6. `None`: an exponent beyond 64 bits.
    ///
    /// The written exponent must fit even where the value is zero, so the limit can be told from the text alone.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let (mantissa, written) = split_exponent(text);
        let written = match written {
            "" => 0,
            // Takes a sign and any number of leading zeros; only a value beyond 64 bits can fail here.
            digits => digits.parse::<i64>().ok()?,
        };
        let exponent = written.checked_add(Significant::of(mantissa).shift)?;
        Some(Number { text, exponent })
    }

    /// Takes digits with an optional minus sign, without a superfluous zero in front.
    pub(super) fn integer(text: &'a str) -> Self {
        Number { text, exponent: length(text) - length(text.trim_end_matches('0')) }
    }

    /// The number as it was sent.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Whether the text is digits with an optional minus sign: no fraction, no exponent.
    ///
    /// This is what a numeric id must look like; `1.0` and `1e3` are numbers, but no one's id.
    pub fn is_plain_integer(&self) -> bool {
        !self.text.contains(['.', 'e', 'E'])
    }

    /// The value, if it is an integer that fits `i64`, however it is spelled: 1200, 1200.0 and 1.2e3 are 1200.
    pub fn to_i64_exact(&self) -> Option<i64> {
        let significant = self.significant();
        if significant.is_zero() {
            return Some(0);
        }
        // A negative exponent leaves a digit after the point. 10^18 is the largest power of ten in an i64.
        let power = u32::try_from(self.exponent).ok().filter(|power| *power <= 18)?;
        let digits = significant.before_point.bytes().chain(significant.after_point.bytes());
        // Counted downwards from zero, because only there is room for i64::MIN.
        let negated = digits
            .map(|digit| i64::from(digit - b'0'))
            .try_fold(0_i64, |sum, digit| sum.checked_mul(10)?.checked_sub(digit))?;
        let negated = negated.checked_mul(10_i64.pow(power))?;
        if significant.negative { Some(negated) } else { negated.checked_neg() }
    }

    /// The one spelling of this value: optional minus, significant digits, and `e` with the exponent unless that is 0.
    ///
    /// 1200 and 1.2e3 are `12e2`, 0.05 is `5e-2`, -0 is `0`. The result is a JSON number again.
    pub fn canonical(&self) -> String {
        let mut bytes = Vec::with_capacity(self.text.len());
        self.write_canonical(&mut bytes);
        bytes.into_iter().map(char::from).collect()
    }

    /// Appends [`Number::canonical`], which is ASCII.
    pub(super) fn write_canonical(&self, out: &mut Vec<u8>) {
        // Most numbers of a body are these, and need no taking apart.
        let plain = self.text.as_bytes();
        if self.exponent == 0 && plain.last() != Some(&b'0') && plain.iter().all(u8::is_ascii_digit) {
            return out.extend_from_slice(plain);
        }
        let significant = self.significant();
        if significant.is_zero() {
            out.push(b'0');
            return;
        }
        if significant.negative {
            out.push(b'-');
        }
        out.extend_from_slice(significant.before_point.as_bytes());
        out.extend_from_slice(significant.after_point.as_bytes());
        if self.exponent != 0 {
            out.push(b'e');
            out.extend_from_slice(self.exponent.to_string().as_bytes());
        }
    }

    fn significant(&self) -> Significant<'a> {
        Significant::of(split_exponent(self.text).0)
    }
}

/// Shows the size only: a number of a body may be an account's.
impl fmt::Debug for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number({} bytes)", self.text.len())
    }
}

impl<'a> Significant<'a> {
    fn of(mantissa: &'a str) -> Self {
        let (negative, digits) = match mantissa.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, mantissa),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = whole.trim_start_matches('0');
        let mut after_point = fraction.trim_end_matches('0');
        let mut before_point = whole;
        if after_point.is_empty() {
            before_point = whole.trim_end_matches('0');
        } else if whole.is_empty() {
            after_point = after_point.trim_start_matches('0');
        }
        // Zeros cut from the end of the whole part raise the exponent, digits left after the point lower it.
        let shift = if after_point.is_empty() {
            length(whole) - length(before_point)
        } else {
            -length(fraction.trim_end_matches('0'))
        };
        Significant { negative, before_point, after_point, shift }
    }

    fn is_zero(&self) -> bool {
        self.before_point.is_empty() && self.after_point.is_empty()
    }
}

/// A length in bytes. No slice is longer than `isize::MAX`, so the conversion never saturates.
fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// The text before the `e`, and the written exponent with its sign (empty if there is none).
fn split_exponent(text: &str) -> (&str, &str) {
    text.split_once(['e', 'E']).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test's failure is its report")]

    use super::Number;

    fn canonical(text: &str) -> String {
        Number::new(text).unwrap().canonical()
    }

    #[test]
    fn equal_values_have_one_spelling() {
        for (spellings, expected) in [
            (&["1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1e-0", "1.000e000"][..], "1"),
            (&["1200", "1.2e3", "1200.0", "12e2", "0.0012e6", "120000e-2"], "12e2"),
            (&["0.05", "5e-2", "0.050", "50e-3", "0.5E-1"], "5e-2"),
            (&["0", "-0", "0.0", "-0.0", "0e999", "-0.000e-999", "0e9223372036854775807"], "0"),
            (&["-10.50", "-105e-1", "-1.05e1"], "-105e-1"),
            (&["100.001", "100001e-3"], "100001e-3"),
        ] {
            for spelling in spellings {
                assert_eq!(canonical(spelling), expected, "{spelling}");
            }
        }
    }

    #[test]
    fn jsn_01_integers_beyond_a_double_stay_themselves() {
        for text in ["18446744073709551615", "9007199254740993", "9007199254740992", "-9007199254740993"] {
            assert_eq!(canonical(text), text);
        }
    }

    #[test]
    fn ded_05_neighbouring_big_ids_stay_distinct() {
        assert_eq!(canonical("8202522731445525542"), "8202522731445525542");
        assert_eq!(canonical("8202522731445525543"), "8202522731445525543");
        // The exponent form is the same value, but not an id.
        assert_eq!(canonical("8.202522731445525542e18"), "8202522731445525542");
        assert!(Number::new("8202522731445525542").unwrap().is_plain_integer());
        assert!(!Number::new("8.202522731445525542e18").unwrap().is_plain_integer());
    }

    #[test]
    fn giant_exponents_cost_nothing_and_stop_at_64_bits() {
        assert_eq!(canonical("1e1000000000"), "1e1000000000");
        assert_eq!(canonical("1e0000000000000000000000000000000007"), "1e7");
        assert_eq!(canonical("1e9223372036854775807"), "1e9223372036854775807");
        assert_eq!(canonical("1e-9223372036854775808"), "1e-9223372036854775808");
        // The written exponent just fits and the zeros around the digits cancel out.
        assert_eq!(canonical("1.0e-9223372036854775808"), "1e-9223372036854775808");
        assert_eq!(canonical("0.5e9223372036854775807"), "5e9223372036854775806");
        for text in [
            "1e9223372036854775808",
            "1e-9223372036854775809",
            "10e9223372036854775807",
            "1.5e-9223372036854775808",
            "0e99999999999999999999",
        ] {
            assert!(Number::new(text).is_none(), "{text}");
        }
    }

    #[test]
    fn exact_integers_are_taken_in_any_spelling() {
        for (text, expected) in [
            ("1200", Some(1200)),
            ("1.2e3", Some(1200)),
            ("1200.000", Some(1200)),
            ("-120000e-2", Some(-1200)),
            ("-0.0", Some(0)),
            ("0e99999", Some(0)),
            ("1e18", Some(1_000_000_000_000_000_000)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9.223372036854775808e18", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("10e18", None),
            ("1e19", None),
            ("1e1000000000", None),
            ("1200.5", None),
            ("1e-1", None),
            ("1e-1000000000", None),
        ] {
            assert_eq!(Number::new(text).unwrap().to_i64_exact(), expected, "{text}");
        }
    }

    #[test]
    fn only_digits_and_a_minus_are_a_plain_integer() {
        for (text, expected) in
            [("12", true), ("-12", true), ("0", true), ("1.0", false), ("1e3", false), ("1E3", false)]
        {
            assert_eq!(Number::new(text).unwrap().is_plain_integer(), expected, "{text}");
        }
    }

    #[test]
    fn debug_does_not_show_the_number() {
        assert_eq!(format!("{:?}", Number::new("4111111111111111").unwrap()), "number(16 bytes)");
    }
}
