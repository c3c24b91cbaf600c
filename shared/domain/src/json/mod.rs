//! Strict JSON for authenticated webhook bodies: one reading of the bytes, and one canonical form of what they say.
//!
//! A signature proves who sent the bytes, not that two readers understand them alike. This module therefore refuses
//! every text that two parsers may read differently, and never passes a number through a float. It promises:
//!
//! - **RFC 8259 and nothing more.** No comments, trailing commas, byte order mark, leading zeros, `NaN`, lone
//!   surrogates, or raw control characters in strings.
//! - **No ambiguity.** A member name that occurs twice in one object, compared after unescaping and at any depth, is
//!   [`JsonError::DuplicateMember`]; it is reported only for a text that is acceptable in every other respect.
//! - **Bounded work.** Nesting stops at [`MAX_DEPTH`]; time is at worst `n log n` in the length of the body, and a
//!   number is never expanded, whatever its exponent. The length itself (256 KiB) is the receiver's limit.
//! - **Exact content.** Ids and amounts keep the text they were sent with ([`Number::text`]); strings are borrowed
//!   from the body unless they hold an escape.
//! - **No leaks.** Neither an error nor a `Debug` output repeats anything of the body.
//!
//! [`canonical`] writes equal values as equal bytes and different values as different bytes; [`payload_hash`] is what
//! a receipt keeps, so that the same event id with other content is noticed.

mod canonical;
mod form;
#[cfg(test)]
mod model;
mod number;
mod parse;
mod pointer;
#[cfg(test)]
mod properties;

pub use canonical::{CANONICAL_VERSION, canonical, payload_hash};
pub use form::parse_form;
pub use number::Number;
pub use parse::{MAX_DEPTH, parse};
pub use pointer::{MAX_TOKENS, Pointer, PointerError};

use std::borrow::Cow;
use std::fmt;

/// One JSON value, borrowing from the body wherever the body holds the text literally.
///
/// Equality is that of the spelling: `1` and `1.0` differ here, as do two orders of the same members. To compare what
/// two values mean, compare their [`canonical`] bytes. Values made by [`parse`] are at most [`MAX_DEPTH`] deep, which
/// is what bounds the recursion of everything that walks them.
#[derive(Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as the text that was sent.
    Number(Number<'a>),
    /// A string, unescaped.
    String(Cow<'a, str>),
    /// The elements in document order.
    Array(Vec<Value<'a>>),
    /// The members in document order; the names, unescaped, are distinct.
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// The value that an RFC 6901 pointer names, or `None` where the document has no such place.
    pub fn pointer(&self, pointer: &Pointer) -> Option<&Value<'a>> {
        pointer.tokens().iter().try_fold(self, |value, token| match value {
            Value::Object(_) => value.get(token),
            Value::Array(items) => items.get(pointer::array_index(token)?),
            _ => None,
        })
    }

    /// The member of that (unescaped) name, if this is an object that has one.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        let (_, value) = self.as_object()?.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value, if this is `true` or `false`.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if this is one.
    pub fn as_number(&self) -> Option<&Number<'a>> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The elements, if this is an array.
    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members in document order, if this is an object.
    pub fn as_object(&self) -> Option<&[(Cow<'a, str>, Value<'a>)]> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Whether this is `null`, which is not the same as an absent member.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The JSON type's name (RFC 8259 section 1), for messages: it says what was found without repeating it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }
}

/// Shows the type and the size only: a body must not reach a log through a `{:?}`.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null | Value::Bool(_) => f.write_str(self.kind()),
            Value::Number(number) => number.fmt(f),
            Value::String(text) => write!(f, "string({} bytes)", text.len()),
            Value::Array(items) => write!(f, "array({} elements)", items.len()),
            Value::Object(members) => write!(f, "object({} members)", members.len()),
        }
    }
}

/// Why a body was refused. Offsets count bytes from the start of the body; no variant holds any of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The body is not UTF-8, which RFC 8259 section 8.1 requires.
    #[error("the body is not UTF-8 (bad byte at offset {offset}): the sender must encode JSON as UTF-8")]
    NotUtf8 {
        /// Where the first bad sequence begins.
        offset: usize,
    },
    /// The body is not JSON by RFC 8259.
    #[error("the body is not valid JSON at offset {offset}: {what}")]
    Syntax {
        /// Where the fault was noticed.
        offset: usize,
        /// What is wrong there, in fixed words.
        what: &'static str,
    },
    /// Arrays and objects are nested beyond [`MAX_DEPTH`].
    #[error("the body nests deeper than {MAX_DEPTH} levels (at offset {offset}): the sender must flatten it")]
    TooDeep {
        /// Where the first bracket beyond the limit stands.
        offset: usize,
    },
    /// One object names a member twice, so that two readers may see different values.
    #[error("the body repeats a member name within one object (at offset {offset}): which value holds is ambiguous")]
    DuplicateMember {
        /// Where the first repeated name stands, at its second occurrence.
        offset: usize,
    },
    /// Something follows the one value that a JSON text consists of.
    #[error("the body continues after its JSON value (at offset {offset}): it must hold exactly one")]
    TrailingData {
        /// Where the first byte too many stands.
        offset: usize,
    },
    /// The body holds no byte, or white space only.
    #[error("the body is empty: it must hold one JSON value")]
    Empty,
    /// A number's exponent does not fit 64 bits, as written or once the number is normalised.
    #[error("a number's exponent does not fit 64 bits (at offset {offset}): the sender must write a smaller one")]
    NumberTooLarge {
        /// Where the number begins.
        offset: usize,
    },
}
