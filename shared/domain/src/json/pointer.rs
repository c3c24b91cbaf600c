//! JSON pointers (RFC 6901): how a provider's profile says where in a body something stands.
//!
//! A pointer is parsed and checked once, when the profile is loaded, and then only compared. It is bounded in depth,
//! so that following one is never a surprise.

use std::fmt;
use std::str::FromStr;

/// How many reference tokens a pointer may have. Profiles use four at most; the limit only keeps mistakes small.
pub const MAX_TOKENS: usize = 16;

/// An RFC 6901 pointer such as `/data/job_id`; the empty text is the whole document.
///
/// Tokens are kept unescaped. `Display` gives back the text that was parsed: RFC 6901 allows one spelling only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer {
    tokens: Vec<String>,
}

/// Why a text is no pointer. Offsets count bytes from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// The text is not empty and does not begin with `/`.
    #[error("a JSON pointer begins with '/', as in \"/data/id\"")]
    NoLeadingSlash,
    /// A `~` is followed by neither `0` nor `1`.
    #[error("bad escape in a JSON pointer at offset {offset}: write \"~0\" for '~' and \"~1\" for '/'")]
    BadEscape {
        /// Where the `~` stands.
        offset: usize,
    },
    /// There are more than [`MAX_TOKENS`] reference tokens.
    #[error("a JSON pointer may have at most {MAX_TOKENS} parts: name something nearer to the top of the body")]
    TooManyTokens,
}

impl Pointer {
    /// The reference tokens, unescaped, outermost first; none for the whole document.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Pointer { tokens: Vec::new() });
        }
        let Some(path) = text.strip_prefix('/') else {
            return Err(PointerError::NoLeadingSlash);
        };
        let mut tokens = Vec::new();
        let mut offset = 1;
        for escaped in path.split('/') {
            if tokens.len() == MAX_TOKENS {
                return Err(PointerError::TooManyTokens);
            }
            tokens.push(unescape(escaped).map_err(|at| PointerError::BadEscape { offset: offset + at })?);
            offset += escaped.len() + 1;
        }
        Ok(Pointer { tokens })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `~` first: the other way round, the tilde of a `~1` would be escaped again.
        self.tokens.iter().try_for_each(|token| write!(f, "/{}", token.replace('~', "~0").replace('/', "~1")))
    }
}

/// Replaces `~1` by `/` and `~0` by `~` in one pass, so that `~01` becomes `~1` (RFC 6901 section 4).
///
/// The error is the offset of a `~` that begins no escape.
fn unescape(token: &str) -> Result<String, usize> {
    let mut pieces = token.split('~');
    let mut out = String::from(pieces.next().unwrap_or_default());
    let mut tilde = out.len();
    for piece in pieces {
        let (character, rest) = match piece.as_bytes().first() {
            Some(b'0') => ('~', &piece[1..]),
            Some(b'1') => ('/', &piece[1..]),
            _ => return Err(tilde),
        };
        out.push(character);
        out.push_str(rest);
        tilde += 1 + piece.len();
    }
    Ok(out)
}

/// The array index that a token stands for: `0`, or digits without a leading zero (RFC 6901 section 4).
///
/// `-`, the place after the last element, is never an element, so it is `None` too.
pub(super) fn array_index(token: &str) -> Option<usize> {
    let digits_only = token.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = token.len() > 1 && token.starts_with('0');
    if digits_only && !leading_zero { token.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test's failure is its report")]

    use super::{MAX_TOKENS, Pointer, PointerError};
    use crate::json::parse;

    fn pointer(text: &str) -> Pointer {
        text.parse().unwrap()
    }

    #[test]
    fn the_examples_of_rfc_6901_section_5_hold() {
        let body = br#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        let document = parse(body).unwrap();
        assert_eq!(document.pointer(&pointer("")), Some(&document));
        assert_eq!(document.pointer(&pointer("/foo")).unwrap().as_array().unwrap().len(), 2);
        assert_eq!(document.pointer(&pointer("/foo/0")).unwrap().as_str(), Some("bar"));
        for (text, expected) in [
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(document.pointer(&pointer(text)).unwrap().as_number().unwrap().text(), expected, "{text}");
        }
    }

    #[test]
    fn a_place_that_is_not_there_is_none() {
        let document = parse(br#"{"a":["x","y"],"s":"text","01":1}"#).unwrap();
        for text in
            ["/b", "/a/2", "/a/-", "/a/01", "/a/+1", "/a/ 1", "/a/", "/a/99999999999999999999999", "/s/0", "/a/0/0"]
        {
            assert_eq!(document.pointer(&pointer(text)), None, "{text}");
        }
        // In an object the same token is a name like any other.
        assert!(document.pointer(&pointer("/01")).is_some());
    }

    #[test]
    fn names_are_compared_unescaped() {
        let document = parse(br#"{"am\u006funt":5}"#).unwrap();
        assert!(document.pointer(&pointer("/amount")).is_some());
    }

    #[test]
    fn escapes_are_replaced_in_one_pass_and_display_gives_the_text_back() {
        assert_eq!(pointer("/~01").tokens(), ["~1"]);
        assert_eq!(pointer("/~10/~0~1").tokens(), ["/0", "~/"]);
        for text in ["", "/", "//", "/~01", "/~10/~0~1", "/data/job_id", "/ü/€"] {
            assert_eq!(pointer(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_pointer_is_refused_with_its_place() {
        assert_eq!("data".parse::<Pointer>(), Err(PointerError::NoLeadingSlash));
        assert_eq!("/a/~".parse::<Pointer>(), Err(PointerError::BadEscape { offset: 3 }));
        assert_eq!("/a/b~2".parse::<Pointer>(), Err(PointerError::BadEscape { offset: 4 }));
        assert_eq!("/~0~1x~é".parse::<Pointer>(), Err(PointerError::BadEscape { offset: 6 }));
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        assert_eq!(pointer(&"/a".repeat(MAX_TOKENS)).tokens().len(), 16);
        assert_eq!("/a".repeat(MAX_TOKENS + 1).parse::<Pointer>(), Err(PointerError::TooManyTokens));
    }
}
