//! Bodies, ids and lines of what goes to a job board, worked out by hand.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::*;
use crate::event::By;
use crate::ids::{BookingId, TenantId};

fn version(booking: &str, version: u32) -> BookingVersion {
    let (tenant, booking) = (TenantId::new("t1").unwrap(), BookingId::new(booking).unwrap());
    let event = "acme/b_1".parse().unwrap();
    BookingVersion {
        job: crate::booking::job_of(&booking).unwrap(),
        tenant,
        booking,
        version,
        data: BTreeMap::new(),
        content_hash: String::new(),
        board: true,
        by: By { event, item: ItemId::only() },
        created_ms: 7,
    }
}

fn board() -> Board {
    Board {
        to: "board".to_owned(),
        body: BTreeMap::new(),
        update_method: "PUT".to_owned(),
        update_path: "/v1/jobs/{id}".to_owned(),
        attach_ref: true,
    }
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(at, value)| ((*at).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_body_has_each_value_at_its_place_and_numbers_by_their_digits() {
    let values = values(&[
        ("/title", "\"Caf\\u00e9 \\\"x\\\"\""),
        ("/price/amount", "9007199254740993.10"),
        ("/price/net", "true"),
        ("/a~1b", "null"),
    ]);
    assert_eq!(
        body(&values),
        r#"{"a/b":null,"price":{"amount":9007199254740993.10,"net":true},"title":"Caf\u00e9 \"x\""}"#
    );
    assert_eq!(body(&BTreeMap::new()), "{}");
}

#[test]
fn the_first_event_opens_the_line_and_each_later_one_updates_what_it_created() {
    let said = values(&[("/title", "\"x\"")]);
    let first = told(&version("b1", 1), &said, &board(), None).unwrap();
    let step = first.receipts[0].board().unwrap().clone();
    assert_eq!((&step.update, step.attach, step.to.as_str()), (&None, true, "board"));
    assert_eq!(first.steps[0].from, None);
    assert_eq!(first.steps[0].to, "board.job|t1|b1|1");
    let before = Before { id: event_id(&version("b1", 1)), step };
    // The profile names another board by now: the job stands where it is.
    let moved = Board { to: "other".to_owned(), ..board() };
    let second = told(&version("b1", 2), &said, &moved, Some(&before)).unwrap();
    let step = second.receipts[0].board().unwrap().clone();
    assert_eq!((step.update.as_ref().unwrap().of.as_str(), step.to.as_str()), ("board.job|t1|b1|1", "board"));
    assert!(!step.attach);
    let before = Before { id: event_id(&version("b1", 2)), step };
    let third = told(&version("b1", 5), &said, &board(), Some(&before)).unwrap();
    let step = third.receipts[0].board().unwrap();
    assert_eq!(step.update.as_ref().unwrap().of.as_str(), "board.job|t1|b1|1");
    assert_eq!(third.receipts[0].envelope.ordered["board"], "board.job|t1|b1|2");
    assert_eq!(third.steps[0].from.as_deref(), Some("board.job|t1|b1|2"));
}

#[test]
fn no_two_steps_have_one_key_and_a_long_booking_has_one_too() {
    let key = |booking: &str, number: u32| intent_key(&event_id(&version(booking, number))).unwrap();
    assert_eq!(key("b1", 1), "own|board.job%7Ct1%7Cb1%7C1|board|outbound|forward");
    assert_ne!(key("b1", 1), key("b1", 2));
    assert_ne!(key("b1|1", 1), key("b1", 1));
    assert_ne!(key(&"x".repeat(200), 1), key(&"x".repeat(200), 2));
}

#[test]
fn an_id_is_one_part_of_a_path() {
    assert_eq!(segment("job-1_a.~").as_deref(), Some("job-1_a.~"));
    assert_eq!(segment("a/../b?c#é").as_deref(), Some("a%2F..%2Fb%3Fc%23%C3%A9"));
    assert_eq!((segment(".."), segment("."), segment("")), (None, None, None));
}
