//! The canonical form: equal values become equal bytes, different values different bytes.
//!
//! It is RFC 8785 (JCS) in everything but numbers: no white space, members sorted by the UTF-16 code units of their
//! names (section 3.2.3), strings escaped no more than needed (section 3.2.2.2). RFC 8785 writes numbers as doubles
//! and so merges 9007199254740992 and …993; here a number is written by its exact decimal value ([`Number::canonical`]):
//! `1`, `1.0` and `1e0` are `1`, 1200 is `12e2`, 0.05 is `5e-2`. The result is JSON, and its own canonical form.
//!
//! [`Number::canonical`]: super::Number::canonical

use std::borrow::Cow;
use std::cmp::Ordering;

use sha2::{Digest as _, Sha256};

use super::parse::plain_run;
use super::pointer::array_index;
use super::{Pointer, Value};

/// The version of the canonical form, which every payload hash begins with. Any change of the bytes raises it.
pub const CANONICAL_VERSION: &str = "1";

/// Up to this many members are put in order on the stack.
const FEW_MEMBERS: usize = 32;

/// The tokens of an ignored pointer that are still to be matched, from the value at hand downwards.
type Remaining<'p> = &'p [String];

/// The canonical bytes of a value, without the members that the pointers name.
///
/// A member that is ignored counts as absent. Only members can be ignored: a pointer to the whole document or to an
/// array element has no effect (removing an element would move its neighbours), while one that passes through an
/// element, such as `/items/0/sent_at`, has. A pointer to what is not there changes nothing.
///
/// Recursion follows the value's depth, which [`parse`](super::parse) bounds.
pub fn canonical(value: &Value<'_>, ignore: &[Pointer]) -> Vec<u8> {
    let ignore: Vec<Remaining<'_>> = ignore.iter().map(Pointer::tokens).collect();
    // Enough for most webhooks; a larger one grows it a few times.
    let mut out = Out { bytes: Vec::with_capacity(4096), hash: None };
    write_value(&mut out, value, &ignore);
    out.bytes
}

/// `1:` and the lower-case hex SHA-256 of the [`canonical`] bytes: equal hashes mean equal content.
///
/// Compare it only with a hash of the same [`CANONICAL_VERSION`] and the same `ignore`. The bytes are hashed as they are
/// made: memory does not grow with the value.
pub fn payload_hash(value: &Value<'_>, ignore: &[Pointer]) -> String {
    let ignore: Vec<Remaining<'_>> = ignore.iter().map(Pointer::tokens).collect();
    let mut out = Out { bytes: Vec::with_capacity(2 * HASHED_AT_ONCE), hash: Some(Sha256::new()) };
    write_value(&mut out, value, &ignore);
    let hash = out.hash.take().unwrap_or_default().chain_update(&out.bytes);
    format!("{CANONICAL_VERSION}:{}", hex::encode(hash.finalize()))
}

/// Bytes that are gathered before they are hashed: this much stays in the nearest cache.
const HASHED_AT_ONCE: usize = 8192;

/// Where canonical bytes go: gathered, or hashed piece by piece.
struct Out {
    bytes: Vec<u8>,
    hash: Option<Sha256>,
}

impl Out {
    /// Called once per value, which is cheaper than looking at each byte.
    fn hash_some(&mut self) {
        if self.bytes.len() >= HASHED_AT_ONCE
            && let Some(hash) = &mut self.hash
        {
            hash.update(&self.bytes);
            self.bytes.clear();
        }
    }
}

fn write_value(out: &mut Out, value: &Value<'_>, ignore: &[Remaining<'_>]) {
    out.hash_some();
    match value {
        Value::Null => out.bytes.extend_from_slice(b"null"),
        Value::Bool(true) => out.bytes.extend_from_slice(b"true"),
        Value::Bool(false) => out.bytes.extend_from_slice(b"false"),
        Value::Number(number) => number.write_canonical(&mut out.bytes),
        Value::String(text) => write_string(&mut out.bytes, text),
        Value::Array(items) => write_array(out, items, ignore),
        Value::Object(members) => write_object(out, members, ignore),
    }
}

fn write_array(out: &mut Out, items: &[Value<'_>], ignore: &[Remaining<'_>]) {
    // Taken apart once, so that a long array does not read the tokens again for each element.
    let ignore: Vec<(usize, Remaining<'_>)> = ignore
        .iter()
        .filter_map(|remaining| remaining.split_first())
        .filter_map(|(token, rest)| Some((array_index(token)?, rest)))
        .collect();
    out.bytes.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.bytes.push(b',');
        }
        let inner: Vec<Remaining<'_>> =
            ignore.iter().filter(|(wanted, _)| *wanted == index).map(|(_, rest)| *rest).collect();
        write_value(out, item, &inner);
    }
    out.bytes.push(b']');
}

fn write_object(out: &mut Out, members: &[(Cow<'_, str>, Value<'_>)], ignore: &[Remaining<'_>]) {
    out.bytes.push(b'{');
    let mut separator: &[u8] = b"";
    let mut write_member = |(name, value): &(Cow<'_, str>, Value<'_>)| {
        let inner: Vec<Remaining<'_>> = ignore
            .iter()
            .filter_map(|remaining| remaining.split_first())
            .filter(|(token, _)| *token == name)
            .map(|(_, rest)| rest)
            .collect();
        // Nothing remains: this member is what the pointer names.
        if inner.iter().any(|rest| rest.is_empty()) {
            return;
        }
        out.bytes.extend_from_slice(separator);
        separator = b",";
        write_string(&mut out.bytes, name);
        out.bytes.push(b':');
        write_value(out, value, &inner);
    };
    if members.is_sorted_by(|(a, _), (b, _)| by_utf_16(a, b).is_le()) {
        members.iter().for_each(&mut write_member);
    } else if members.len() <= FEW_MEMBERS {
        // Without an allocation: most objects are this small.
        let mut order: [usize; FEW_MEMBERS] = std::array::from_fn(|index| index);
        let order = &mut order[..members.len()];
        order.sort_unstable_by(|&a, &b| by_utf_16(&members[a].0, &members[b].0));
        order.iter().for_each(|&index| write_member(&members[index]));
    } else {
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| by_utf_16(a, b));
        sorted.into_iter().for_each(write_member);
    }
    out.bytes.push(b'}');
}

/// Compares as RFC 8785 section 3.2.3 asks: by UTF-16 code units.
///
/// UTF-8 bytes sort as code points do. The two orders differ only where a character above U+FFFF (four bytes, from
/// 0xF0; in UTF-16 a surrogate from 0xD800) meets one of U+E000 to U+FFFF (three bytes, 0xEE or 0xEF). Those two
/// bytes never occur inside a sequence, so lifting them above every four-byte sequence gives the order of UTF-16.
fn by_utf_16(a: &str, b: &str) -> Ordering {
    let lift = |byte: u8| {
        if byte == 0xEE || byte == 0xEF { byte + 0x10 } else { byte }
    };
    let first_difference = a.bytes().zip(b.bytes()).find(|(x, y)| x != y);
    first_difference.map_or(a.len().cmp(&b.len()), |(x, y)| lift(x).cmp(&lift(y)))
}

/// Writes a string by RFC 8785 section 3.2.2.2: the short escapes where they exist, other control characters as
/// `\u00xx` in lower case, all else literally.
fn write_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else {
            break;
        };
        rest = after;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xF)]];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test's failure is its report")]

    use proptest::prelude::*;

    use super::{by_utf_16, canonical, payload_hash};
    use crate::json::{Pointer, parse};

    fn form_without(body: &str, ignore: &[&str]) -> String {
        let ignore: Vec<Pointer> = ignore.iter().map(|text| text.parse().unwrap()).collect();
        String::from_utf8(canonical(&parse(body.as_bytes()).unwrap(), &ignore)).unwrap()
    }

    fn form(body: &str) -> String {
        form_without(body, &[])
    }

    /// The sample of RFC 8785 section 3.2.2; its numbers are written by exact value here.
    #[test]
    fn the_rfc_8785_sample_is_escaped_and_sorted() {
        let body = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let expected = concat!(
            r#"{"literals":[null,true,false],"numbers":[33333333333333329e-8,1e30,45e-1,2e-3,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        assert_eq!(form(body), expected);
    }

    /// The sample of RFC 8785 section 3.2.3.
    #[test]
    fn the_rfc_8785_sample_sorts_by_utf_16_code_units() {
        let body = r#"{
            "\u20ac": "Euro Sign",
            "\r": "Carriage Return",
            "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "1": "One",
            "\ud83d\ude00": "Emoji: Grinning Face",
            "\u0080": "Control",
            "\u00f6": "Latin Small Letter O With Diaeresis"
        }"#;
        let expected = concat!(
            r#"{"\r":"Carriage Return","1":"One",""#,
            "\u{80}",
            r#"":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","#,
            "\"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
        );
        assert_eq!(form(body), expected);
    }

    #[test]
    fn every_control_character_has_its_one_escape() {
        let escapes: String = (0..0x20).map(|unit| format!("\\u{unit:04X}")).collect();
        let expected = concat!(
            r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#,
            r#"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f""#
        );
        assert_eq!(form(&format!("\"{escapes}\"")), expected);
        assert_eq!(form(r#""\u007f\/\u2028""#), "\"\u{7f}/\u{2028}\"");
    }

    #[test]
    fn jsn_01_numbers_are_written_by_exact_value() {
        assert_eq!(form(r#"{"n":18446744073709551615}"#), r#"{"n":18446744073709551615}"#);
        assert_eq!(form(r#"{"n":9007199254740993}"#), r#"{"n":9007199254740993}"#);
        assert_eq!(form("[1.0, 1200, 1.2e3, -0, 0.05]"), "[1,12e2,12e2,0,5e-2]");
    }

    #[test]
    fn ded_05_big_ids_and_types_stay_apart() {
        let bodies =
            [r#"{"id":8202522731445525542}"#, r#"{"id":8202522731445525543}"#, r#"{"id":"8202522731445525542"}"#];
        for (index, body) in bodies.iter().enumerate() {
            assert_eq!(form(body), *body);
            assert!(!bodies[..index].contains(body));
        }
        assert_ne!(form("1"), form("\"1\""));
    }

    #[test]
    fn absent_null_and_empty_differ() {
        let bodies =
            [r#"{}"#, r#"{"a":null}"#, r#"{"a":""}"#, r#"{"a":[]}"#, r#"{"a":{}}"#, r#"{"a":false}"#, r#"{"a":0}"#];
        for body in bodies {
            assert_eq!(form(body), body);
        }
    }

    #[test]
    fn ignored_members_count_as_absent() {
        let body = r#"{"b":1,"attempt":3,"data":{"sent_at":"x","id":"e"},"sent_at":"y"}"#;
        let without = r#"{"b":1,"data":{"id":"e"},"sent_at":"y"}"#;
        assert_eq!(form_without(body, &["/attempt", "/data/sent_at"]), form(without));
        assert_eq!(form_without(body, &["/b", "/attempt", "/data", "/sent_at"]), "{}");
        // A pointer inside an ignored member changes nothing more.
        assert_eq!(form_without(body, &["/data/id", "/data"]), form_without(body, &["/data"]));
    }

    #[test]
    fn only_members_can_be_ignored() {
        let body = r#"{"items":[{"at":1,"v":2},{"at":3,"v":4}],"s":"t"}"#;
        for ignored in
            ["", "/items/0", "/items/-", "/items/0/at/x", "/s/0", "/none", "/items/2/at", "/items/00/at", "/at"]
        {
            assert_eq!(form_without(body, &[ignored]), body, "{ignored}");
        }
        assert_eq!(form_without(body, &["/items/1/at"]), r#"{"items":[{"at":1,"v":2},{"v":4}],"s":"t"}"#);
    }

    #[test]
    fn ignored_names_may_be_escaped_on_either_side() {
        assert_eq!(form_without(r#"{"a\/b":1,"m\u007en":2,"k":3}"#, &["/a~1b", "/m~0n"]), r#"{"k":3}"#);
    }

    /// Digests from `printf '{}' | sha256sum` and `printf '{"a":12e2,"b":"é"}' | sha256sum`.
    #[test]
    fn the_hash_is_versioned_sha_256_of_the_canonical_bytes() {
        let hash = |body: &str| payload_hash(&parse(body.as_bytes()).unwrap(), &[]);
        assert_eq!(hash(" { } "), "1:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(
            hash(r#"{"b":"\u00e9","a":1.2e3}"#),
            "1:593ddff4975ec3b8ea506cc9fb3a71c72a6e01219b3d8175d75a61d7ddd44cba"
        );
    }

    proptest! {
        #![proptest_config(crate::json::properties::config())]

        #[test]
        fn names_sort_as_their_utf_16_code_units(a in names(), b in names()) {
            prop_assert_eq!(by_utf_16(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }
    }

    /// Characters on both sides of each border between the lengths of UTF-8 sequences and of the surrogates.
    fn names() -> impl Strategy<Value = String> {
        let borders = "a\u{7f}\u{80}\u{7ff}\u{800}\u{d7ff}\u{e000}\u{efff}\u{f000}\u{ffff}\u{10000}\u{10ffff}";
        let character = prop::sample::select(borders.chars().collect::<Vec<_>>());
        prop::collection::vec(prop_oneof![3 => character, 1 => any::<char>()], 0..4).prop_map(String::from_iter)
    }
}
