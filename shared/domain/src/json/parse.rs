//! The parser: one pass over the bytes, by recursive descent with a stated depth.
//!
//! The whole body is checked to be UTF-8 first, so that every later slice is text. Strings without an escape are
//! borrowed. Repeated member names are looked for when an object closes: not at all where the names came in ascending
//! order, pairwise in a small object, and by sorting in a large one, so no body makes the search quadratic.

use std::borrow::Cow;

use super::{JsonError, Number, Value};

/// How many arrays and objects may be open at once. Real webhooks nest fewer than ten.
pub const MAX_DEPTH: usize = 128;

/// Up to this many members, comparing each pair is cheaper than sorting.
const FEW_MEMBERS: usize = 16;

pub(super) const LONE_SURROGATE: &str = "a \\u escape is half of a surrogate pair";
const BAD_ESCAPE: &str = "unknown escape in a string";
const BAD_HEX: &str = "a \\u escape needs four hexadecimal digits";
const UNEXPECTED_END: &str = "the text ends in the middle of a value";
const EXPECTED_VALUE: &str = "expected a value";

/// Parses a body that holds exactly one JSON value.
///
/// # Errors
///
/// [`JsonError`], with the offset of the first fault. [`JsonError::DuplicateMember`] comes last: it is reported only
/// for a text that has no other fault, so "ambiguous" never hides "not JSON".
pub fn parse(bytes: &[u8]) -> Result<Value<'_>, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError::NotUtf8 { offset: error.valid_up_to() })?;
    let (items, members) = (Vec::new(), Vec::new());
    let mut parser = Parser { text, at: 0, depth: 0, name_offsets: Vec::new(), duplicate: None, items, members };
    parser.skip_white_space();
    match parser.peek() {
        None => return Err(JsonError::Empty),
        Some(0xEF) if text.starts_with('\u{feff}') => {
            return Err(parser.syntax("a byte order mark (RFC 8259 section 8.1 forbids it)"));
        }
        Some(_) => {}
    }
    let value = parser.value()?;
    parser.skip_white_space();
    if parser.peek().is_some() {
        return Err(JsonError::TrailingData { offset: parser.at });
    }
    match parser.duplicate {
        Some(offset) => Err(JsonError::DuplicateMember { offset }),
        None => Ok(value),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Offset of the next byte to read.
    at: usize,
    /// Containers open now.
    depth: usize,
    /// Where the names of the open objects stand, innermost object last: one buffer for the whole body.
    name_offsets: Vec<usize>,
    /// The first repeated name.
    duplicate: Option<usize>,
    /// Elements of the open arrays and members of the open objects, the innermost container's last: each container is
    /// allocated once, when it closes, at its exact size.
    items: Vec<Value<'a>>,
    members: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Parser<'a> {
    fn value(&mut self) -> Result<Value<'a>, JsonError> {
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(_) => Err(self.syntax(EXPECTED_VALUE)),
            None => Err(self.syntax(UNEXPECTED_END)),
        }
    }

    /// Steps over the opening bracket and into the container, if the depth allows.
    fn nested(&mut self, container: fn(&mut Self) -> Result<Value<'a>, JsonError>) -> Result<Value<'a>, JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(JsonError::TooDeep { offset: self.at });
        }
        self.depth += 1;
        self.at += 1;
        let value = container(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value<'a>, JsonError> {
        self.skip_white_space();
        if self.eat(b']') {
            return Ok(Value::Array(Vec::new()));
        }
        let first = self.items.len();
        loop {
            self.skip_white_space();
            let item = self.value()?;
            self.items.push(item);
            self.skip_white_space();
            if self.eat(b']') {
                return Ok(Value::Array(self.items.drain(first..).collect()));
            }
            self.expect(b',', "expected ',' or ']'")?;
        }
    }

    fn object(&mut self) -> Result<Value<'a>, JsonError> {
        self.skip_white_space();
        if self.eat(b'}') {
            return Ok(Value::Object(Vec::new()));
        }
        let (first_name, first) = (self.name_offsets.len(), self.members.len());
        loop {
            self.skip_white_space();
            self.name_offsets.push(self.at);
            if self.peek() != Some(b'"') {
                return Err(self.syntax_or_end("expected a member name in double quotes"));
            }
            let name = self.string()?;
            self.skip_white_space();
            self.expect(b':', "expected ':' after a member name")?;
            self.skip_white_space();
            let value = self.value()?;
            self.members.push((name, value));
            self.skip_white_space();
            if self.eat(b'}') {
                break;
            }
            self.expect(b',', "expected ',' or '}'")?;
        }
        let members: Vec<_> = self.members.drain(first..).collect();
        if let Some(repeated) = first_repeat(&members, |(name, _)| name.as_ref()) {
            let offset = self.name_offsets[first_name + repeated];
            self.duplicate = Some(self.duplicate.map_or(offset, |known| known.min(offset)));
        }
        self.name_offsets.truncate(first_name);
        Ok(Value::Object(members))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let first = self.plain_text_after(1);
        if self.eat(b'"') {
            return Ok(Cow::Borrowed(first));
        }
        let mut unescaped = String::from(first);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(unescaped));
                }
                Some(b'\\') => unescaped.push(self.escape()?),
                Some(_) => {
                    return Err(self.syntax("a control character in a string must be escaped"));
                }
                None => return Err(self.syntax(UNEXPECTED_END)),
            }
            unescaped.push_str(self.plain_text_after(0));
        }
    }

    /// Steps over `skipped` bytes and the text after them that a string may hold literally; returns that text.
    fn plain_text_after(&mut self, skipped: usize) -> &'a str {
        let start = self.at + skipped;
        self.at = start + plain_run(&self.text.as_bytes()[start..]);
        // What ends the run is an ASCII byte or the end, so this cuts between characters.
        &self.text[start..self.at]
    }

    /// Reads one escape (at the backslash) or one surrogate pair of escapes.
    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let escaped = self.peek();
        self.at += 1;
        Ok(match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(start),
            Some(_) => {
                return Err(JsonError::Syntax { offset: start, what: BAD_ESCAPE });
            }
            None => {
                return Err(JsonError::Syntax { offset: start, what: UNEXPECTED_END });
            }
        })
    }

    /// Reads what follows `\u`, together with the second half if this is the first of a surrogate pair.
    fn code_point(&mut self, start: usize) -> Result<char, JsonError> {
        let lone = JsonError::Syntax { offset: start, what: LONE_SURROGATE };
        let unit = self.hex4()?;
        if !(0xD800..=0xDBFF).contains(&unit) {
            // Of all 16-bit values only a low surrogate is no character.
            return char::from_u32(unit).ok_or(lone);
        }
        if !(self.eat(b'\\') && self.eat(b'u')) {
            return Err(lone);
        }
        let low = self.hex4()?;
        if !(0xDC00..=0xDFFF).contains(&low) {
            return Err(lone);
        }
        char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)).ok_or(lone)
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            value = value * 16 + digit.ok_or(self.syntax(BAD_HEX))?;
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value<'a>, JsonError> {
        let start = self.at;
        self.eat(b'-');
        if self.eat(b'0') {
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.syntax("a number must not begin with a superfluous zero"));
            }
        } else {
            self.digits("expected a digit after '-'")?;
        }
        if !matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return Ok(Value::Number(Number::integer(&self.text[start..self.at])));
        }
        if self.eat(b'.') {
            self.digits("expected a digit after the decimal point")?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            self.digits("expected a digit in the exponent")?;
        }
        Number::new(&self.text[start..self.at]).map(Value::Number).ok_or(JsonError::NumberTooLarge { offset: start })
    }

    /// Steps over one digit or more.
    fn digits(&mut self, what: &'static str) -> Result<(), JsonError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.syntax_or_end(what));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn literal(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, JsonError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.syntax(EXPECTED_VALUE));
        }
        self.at += word.len();
        Ok(value)
    }

    fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), JsonError> {
        if self.eat(byte) { Ok(()) } else { Err(self.syntax_or_end(what)) }
    }

    fn syntax(&self, what: &'static str) -> JsonError {
        JsonError::Syntax { offset: self.at, what }
    }

    /// A missing byte: at the end of the text, that it ends is the better answer.
    fn syntax_or_end(&self, what: &'static str) -> JsonError {
        self.syntax(if self.peek().is_none() { UNEXPECTED_END } else { what })
    }
}

/// The index of the first item whose key an earlier item has. At most `n log n` comparisons, or a fixed number.
fn first_repeat<T, K: Ord + ?Sized>(items: &[T], key: impl Fn(&T) -> &K) -> Option<usize> {
    if items.is_sorted_by(|a, b| key(a) < key(b)) {
        return None;
    }
    if items.len() <= FEW_MEMBERS {
        return (1..items.len()).find(|&index| items[..index].iter().any(|earlier| key(earlier) == key(&items[index])));
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_unstable_by(|&a, &b| key(&items[a]).cmp(key(&items[b])).then(a.cmp(&b)));
    let repeats = order.windows(2).filter(|pair| key(&items[pair[0]]) == key(&items[pair[1]]));
    repeats.map(|pair| pair[1]).min()
}

/// How many bytes, from the first, a JSON string holds literally: up to a `"`, a `\` or a control character.
///
/// Eight bytes are looked at together. In each word the highest bit of a byte is set where the byte is one of those
/// three; a borrow can set it wrongly only above a byte that is one, so the lowest set bit is always right.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH;
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = below(word, 0x20) | equal(word, b'"') | equal(word, b'\\');
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let start = words.len() * 8;
    let rest = &bytes[start..];
    start + rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap_or(rest.len())
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
