//! What the parser accepts, what it refuses and where it says so.
#![allow(clippy::unwrap_used, reason = "a test's failure is its report")]

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use super::{LONE_SURROGATE, MAX_DEPTH, first_repeat, parse, plain_run};
use crate::json::{JsonError, Value, canonical};

fn syntax_offset(body: &[u8]) -> usize {
    match parse(body) {
        Err(JsonError::Syntax { offset, .. }) => offset,
        other => unreachable!("{}: {other:?}", String::from_utf8_lossy(body)),
    }
}

#[test]
fn a_document_is_read_in_its_own_order() {
    let value = parse(b" {\"b\" : [1, -2.5e3 ,true,\tfalse,null],\r\n\"a\":{\"c\":\"\"} } ").unwrap();
    let members = value.as_object().unwrap();
    assert_eq!(members.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["b", "a"]);
    let items = value.get("b").unwrap().as_array().unwrap();
    assert_eq!(items[1].as_number().unwrap().text(), "-2.5e3");
    assert_eq!(items[2].as_bool(), Some(true));
    assert!(items[4].is_null());
    assert_eq!(value.get("a").unwrap().get("c").unwrap().as_str(), Some(""));
}

#[test]
fn strings_are_borrowed_unless_they_hold_an_escape() {
    let value = parse(r#"["plain é €","tab\t"]"#.as_bytes()).unwrap();
    let items = value.as_array().unwrap();
    assert!(matches!(&items[0], Value::String(Cow::Borrowed("plain é €"))));
    assert!(matches!(&items[1], Value::String(Cow::Owned(text)) if text == "tab\t"));
}

#[test]
fn every_escape_is_understood() {
    let value = parse(br#""\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\uD83D\ude00\u0000\uffff""#).unwrap();
    assert_eq!(value.as_str(), Some("\"\\/\u{8}\u{c}\n\r\tAé€\u{1f600}\0\u{ffff}"));
}

#[test]
fn what_rfc_8259_does_not_know_is_refused_at_its_place() {
    for (body, offset) in [
        (&b"01"[..], 1),
        (b"-01", 2),
        (b"+1", 0),
        (b".5", 0),
        (b"1.", 2),
        (b"[1.]", 3),
        (b"-", 1),
        (b"1e", 2),
        (b"1e+", 3),
        (b"[-a]", 2),
        (b"NaN", 0),
        (b"-Infinity", 1),
        (b"True", 0),
        (b"nul", 0),
        (b"'a'", 0),
        (b"[1,]", 3),
        (b"[,1]", 1),
        (b"[1 2]", 3),
        (b"{\"a\":1,}", 7),
        (b"{\"a\" 1}", 5),
        (b"{\"a\":}", 5),
        (b"{a:1}", 1),
        (b"{1:1}", 1),
        (b"[", 1),
        (b"{\"a\"", 4),
        (b"\"abc", 4),
        (b"\"\\", 1),
        (b"\"\\x\"", 1),
        (b"\"\\u12g4\"", 5),
        (b"\"\\u12", 5),
        (b"\"a\nb\"", 2),
        (b"\"\x00\"", 1),
        (b"\"\x1f\"", 1),
        (b"// note\n1", 0),
        (b"\x0c1", 0),
        (b"\xC2\xA01", 0),
        (b"\xEF\xBB\xBF{}", 0),
        (b"[\xEF\xBB\xBF]", 1),
    ] {
        assert_eq!(syntax_offset(body), offset, "{}", String::from_utf8_lossy(body));
    }
    assert!(parse(b"\"\x7f\"").is_ok(), "DEL is not a control character of RFC 8259");
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    for body in [
        &br#""\ud83d""#[..],
        br#""\ude00""#,
        br#""\ude00\ud83d""#,
        br#""\ud83d\ud83d""#,
        br#""\ud83dx""#,
        br#""\ud83d\n""#,
        br#""\ud83d\u0041""#,
    ] {
        assert_eq!(parse(body), Err(JsonError::Syntax { offset: 1, what: LONE_SURROGATE }));
    }
}

#[test]
fn invalid_utf_8_is_refused_with_the_place() {
    // An encoded surrogate, an overlong form, a cut sequence, and a byte that never occurs.
    for bad in [&b"\"ab\xED\xA0\x80\""[..], b"\"ab\xC0\x80\"", b"\"ab\xE2\x82\"", b"\"ab\xFF\""] {
        assert_eq!(parse(bad), Err(JsonError::NotUtf8 { offset: 3 }));
    }
}

#[test]
fn there_is_exactly_one_value() {
    assert_eq!(parse(b""), Err(JsonError::Empty));
    assert_eq!(parse(b" \r\n\t"), Err(JsonError::Empty));
    assert_eq!(parse(b"{} {}"), Err(JsonError::TrailingData { offset: 3 }));
    assert_eq!(parse(b"1x"), Err(JsonError::TrailingData { offset: 1 }));
    assert_eq!(parse(b"{}\0"), Err(JsonError::TrailingData { offset: 2 }));
    assert!(parse(b" 1 ").is_ok());
}

/// A quarter of the smallest stack that a thread of ours has (2 MiB) carries the deepest body through everything.
#[test]
fn the_deepest_body_needs_little_stack() {
    let body = "[{\"a\":".repeat(MAX_DEPTH / 2) + "1" + &"}]".repeat(MAX_DEPTH / 2);
    let walk = move || {
        let value = parse(body.as_bytes()).unwrap();
        assert_eq!(canonical(&value.clone(), &[]), body.as_bytes());
    };
    let small = std::thread::Builder::new().stack_size(512 * 1024);
    small.spawn(walk).unwrap().join().unwrap();
}

#[test]
fn depth_is_bounded() {
    let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "1" + &close.repeat(depth);
    assert!(parse(nested("[", "]", MAX_DEPTH).as_bytes()).is_ok());
    assert!(parse(nested("{\"a\":", "}", MAX_DEPTH).as_bytes()).is_ok());
    let deeper = nested("[", "]", MAX_DEPTH + 1);
    assert_eq!(parse(deeper.as_bytes()), Err(JsonError::TooDeep { offset: 128 }));
    assert_eq!(parse("[".repeat(100_000).as_bytes()), Err(JsonError::TooDeep { offset: 128 }));
    let objects = "{\"a\":".repeat(50_000);
    assert_eq!(parse(objects.as_bytes()), Err(JsonError::TooDeep { offset: 640 }));
    // Siblings do not add up.
    assert!(parse(format!("[{}]", vec!["[]"; 1_000].join(",")).as_bytes()).is_ok());
}

#[test]
fn jsn_04_a_repeated_member_is_ambiguous_at_every_depth_and_after_unescaping() {
    for (body, offset) in [
        (&br#"{"id":"evt_1","amount":100,"amount":100000}"#[..], 27),
        (br#"{"amount":100,"am\u006funt":100000}"#, 14),
        (br#"{"data":[{"x":1},{"y":{"n":1,"m":2,"n":1}}]}"#, 35),
        (br#"{"":1,"":1}"#, 6),
        (br#"{"a":1,"b":2,"b":3,"a":4}"#, 13),
        // Names of objects in between do not shift the place.
        (br#"{"a":{"x":1,"y":2},"b":1,"a":3}"#, 25),
        // The outer pair closes last, but stands first.
        (br#"{"a":1,"a":{"z":1,"z":2}}"#, 7),
    ] {
        assert_eq!(parse(body), Err(JsonError::DuplicateMember { offset }), "{}", String::from_utf8_lossy(body));
    }
    // The same name in two objects, and names that differ in case or in normalisation, are no duplicates.
    assert!(parse(r#"{"a":{"a":[{"a":1},{"a":1}]},"A":1,"é":1,"e\u0301":2}"#.as_bytes()).is_ok());
}

#[test]
fn a_repeated_member_is_reported_only_where_nothing_else_is_wrong() {
    assert_eq!(syntax_offset(br#"{"a":1,"a":2"#), 12);
    assert_eq!(parse(br#"{"a":1,"a":2} x"#), Err(JsonError::TrailingData { offset: 14 }));
}

#[test]
fn jsn_04_large_objects_are_searched_too() {
    let members = |count: usize| -> Vec<String> {
        // A multiplier prime to the count scatters the order.
        (0..count).map(|index| format!("\"k{}\":0", index * 7_919 % count)).collect()
    };
    for count in [16, 17, 20_000] {
        let mut members = members(count);
        assert!(parse(format!("{{{}}}", members.join(",")).as_bytes()).is_ok());
        members.push(members[count / 2].replace('k', "\\u006b"));
        let body = format!("{{{}}}", members.join(","));
        let offset = body.find('\\').unwrap() - 1;
        assert_eq!(parse(body.as_bytes()), Err(JsonError::DuplicateMember { offset }));
    }
}

#[test]
fn jsn_04_of_several_repeats_the_first_is_named() {
    for unrepeated in [0, 40] {
        // Descending names, so that the order of the names is not that of the places.
        let names = (100..100 + unrepeated).rev().map(|number| number.to_string());
        let names: Vec<_> = names.chain(["z", "b", "z", "b", "a", "z", "a"].map(String::from)).collect();
        assert_eq!(first_repeat(&names, |name| name), Some(unrepeated + 2));
    }
    // Many equal names: an unstable sort alone would leave their places in any order.
    let names: Vec<_> = (0..1_000).map(|place| if place < 3 { place } else { 1 }).rev().collect();
    assert_eq!(first_repeat(&names, |name| name), Some(1));
}

#[test]
fn jsn_04_the_search_for_repeats_is_not_quadratic() {
    #[derive(Clone)]
    struct Counted<'a>(usize, &'a Cell<usize>);
    impl Ord for Counted<'_> {
        fn cmp(&self, other: &Self) -> Ordering {
            self.1.set(self.1.get() + 1);
            self.0.cmp(&other.0)
        }
    }
    impl PartialOrd for Counted<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }
    impl Eq for Counted<'_> {}

    let comparisons = Cell::new(0);
    let mut keys: Vec<_> = (0..20_000).map(|index| Counted(index * 7_919 % 20_000, &comparisons)).collect();
    assert_eq!(first_repeat(&keys, |key| key), None);
    keys.push(Counted(5, &comparisons));
    assert_eq!(first_repeat(&keys, |key| key), Some(20_000));
    // Two searches of 20,000: n log n is about 600,000 together, each pair would be 400,000,000.
    assert!(comparisons.get() < 2_000_000, "{} comparisons", comparisons.get());
}

#[test]
fn the_plain_run_ends_at_the_first_byte_that_needs_an_escape() {
    // Every byte value at every place of three words, behind bytes just beside the limits.
    for byte in 0..=u8::MAX {
        for place in 0..24 {
            let mut bytes = [b'!', 0x7f, b' ', 0xff, b'#', 0x80, b'[', b']'].repeat(3);
            bytes[place] = byte;
            let special = byte < 0x20 || byte == b'"' || byte == b'\\';
            assert_eq!(plain_run(&bytes), if special { place } else { 24 }, "{byte} at {place}");
            assert_eq!(plain_run(&bytes[..place]), place);
        }
    }
}

#[test]
fn numbers_beyond_64_bits_of_exponent_are_refused_where_they_begin() {
    assert_eq!(parse(b"[1, 1e9223372036854775808]"), Err(JsonError::NumberTooLarge { offset: 4 }));
    let digits = format!("1e{}", "9".repeat(200_000));
    assert_eq!(parse(digits.as_bytes()), Err(JsonError::NumberTooLarge { offset: 0 }));
    assert!(parse(b"1e1000000000").is_ok());
}

#[test]
fn errors_and_debug_output_hold_nothing_of_the_body() {
    let body = br#"{"card":"4111111111111111","card":"secret"}"#;
    let error = parse(body).unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("card") && !shown.contains("4111"), "{shown}");
    let value = parse(br#"{"card":["4111",4111]}"#).unwrap();
    assert_eq!(format!("{value:?}"), "object(1 members)");
    assert_eq!(format!("{:?}", value.get("card").unwrap().as_array().unwrap()), "[string(4 bytes), number(4 bytes)]");
}
