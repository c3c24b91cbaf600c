//! The chain of these tests was made outside the program: the records are written out, and their
//! hashes were computed with another SHA-256 (Python's hashlib) by the rule
//! `sha256("1|sequence|previous|" + sha256(record without its link))`.
//!
//! Worked out by hand: 10.00 - 0.0087 + 0.50 = 10.4913; with 3.00 held, 7.4913 is available.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use serde_json::{Value, json};

use super::{Broken, Clean, Fault, Hold, Place, Wallet, audit};
use crate::ledger::{Entry, chain_hash};
use crate::money::Micros;

const HASH_1: &str = "85a102cf86f3acf0673be9ef6ab069225e43cf58f8a0b8363e6e4e53f9096c5c";
const HASH_2: &str = "4d4c63c849799e38e2a83ff0244dfc80ca9b52b3e7a574891c8bc2c5dfb4b04c";
const HASH_3: &str = "650480018579334a7c12a960705c659ac19d0440858b457c86210602716ac40c";

fn fund(reference: &str, micros: i64, created_ms: i64, link: Value) -> Value {
    let mut record = json!({
        "kd": "fund", "tn": "t1", "wl": "w1", "rn": reference, "am": micros, "cu": "USD",
        "ln": [{"ac": "wallet", "am": micros}, {"ac": "external-funding", "am": -micros}],
        "by": "local", "cr": created_ms,
    });
    record.as_object_mut().unwrap().extend(link.as_object().unwrap().clone());
    record
}

/// Funded 10.00, captured 0.0087 of a hold of 5.00, funded 0.50.
fn records() -> Vec<Value> {
    let capture = json!({
        "kd": "capture", "tn": "t1", "wl": "w1", "jb": "j1", "vn": 1, "am": 8700, "rl": 4_991_300, "cu": "USD",
        "ln": [{"ac": "wallet", "am": -8700}, {"ac": "revenue", "am": 8700}], "by": "acme/msg_1", "cr": 2000,
        "seq": 2, "ph": HASH_1, "hh": HASH_2,
    });
    vec![
        fund("inv-1", 10_000_000, 1000, json!({"seq": 1, "hh": HASH_1})),
        capture,
        fund("inv-2", 500_000, 3000, json!({"seq": 3, "ph": HASH_2, "hh": HASH_3})),
    ]
}

fn entries(records: &[Value]) -> Vec<Entry> {
    records.iter().map(|record| serde_json::from_value(record.clone()).unwrap()).collect()
}

fn wallet() -> Wallet {
    let shown = json!({
        "tenant": "t1", "wallet": "w1", "currency": "USD", "available": "7.491300", "held": "3.000000",
        "credit_limit": "0.000000", "sequence": 3, "head": HASH_3, "rev": 6,
    });
    serde_json::from_value(shown).unwrap()
}

fn holds() -> Vec<Hold> {
    serde_json::from_value(json!([
        {"job": "j2", "hold": "2.000000", "expires_at": "2026-12-04T12:00:00Z"},
        {"job": "j3", "hold": "1.000000", "expires_at": "2026-12-04T12:00:00Z"},
    ]))
    .unwrap()
}

fn check(records: &[Value]) -> Result<Clean, Broken> {
    audit(&wallet(), &entries(records), &holds())
}

fn broken_at(result: Result<Clean, Broken>) -> (Place, Fault) {
    let broken = result.unwrap_err();
    (broken.place, broken.fault)
}

#[test]
fn a_sound_chain_is_clean() {
    assert_eq!(check(&records()), Ok(Clean { entries: 3, open_holds: 2 }));
}

#[test]
fn a_wallet_without_entries_is_clean() {
    let nothing = Wallet { available: Micros::ZERO, held: Micros::ZERO, sequence: 0, head: String::new(), ..wallet() };
    assert_eq!(audit(&nothing, &[], &[]), Ok(Clean { entries: 0, open_holds: 0 }));
}

#[test]
fn a_changed_amount_breaks_its_own_entry() {
    let mut records = records();
    records[1]["am"] = json!(87);
    assert_eq!(broken_at(check(&records)), (Place::Entry(2), Fault::Content));
}

#[test]
fn every_changed_member_breaks_its_own_entry() {
    let changes = [
        ("ln", json!([{"ac": "wallet", "am": -87}, {"ac": "revenue", "am": 87}])),
        ("by", json!("acme/msg_2")),
        ("cr", json!(2001)),
        ("jb", json!("j9")),
        ("vn", json!(2)),
        ("rl", json!(4_991_301)),
        ("rs", json!("because")),
        ("hh", json!(HASH_1)),
    ];
    for (member, value) in changes {
        let mut records = records();
        records[1][member] = value;
        assert_eq!(broken_at(check(&records)), (Place::Entry(2), Fault::Content), "{member}");
    }
}

#[test]
fn a_changed_amount_with_a_hash_to_match_breaks_the_next_entry() {
    let mut records = records();
    records[1]["am"] = json!(87);
    let changed: Entry = serde_json::from_value(records[1].clone()).unwrap();
    records[1]["hh"] = json!(chain_hash(2, HASH_1, &changed.content_hash()));
    assert_eq!(broken_at(check(&records)), (Place::Entry(3), Fault::Previous));
}

#[test]
fn a_removed_entry_is_missed_at_its_place() {
    let all = records();
    let without = |gone: usize| {
        let left: Vec<Value> = all.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, r)| r.clone()).collect();
        broken_at(check(&left))
    };
    assert_eq!(without(0), (Place::Entry(1), Fault::Missing { found: 2 }));
    assert_eq!(without(1), (Place::Entry(2), Fault::Missing { found: 3 }));
    assert_eq!(without(2), (Place::Entry(3), Fault::MissingAtEnd { last: 3 }));
}

#[test]
fn a_swapped_pair_breaks_at_the_first_of_the_two() {
    let mut places = records();
    places.swap(1, 2);
    assert_eq!(broken_at(check(&places)), (Place::Entry(2), Fault::Missing { found: 3 }));

    let mut contents = records();
    let (a, b) = (contents[0]["am"].clone(), contents[2]["am"].clone());
    (contents[0]["am"], contents[2]["am"]) = (b, a);
    assert_eq!(broken_at(check(&contents)), (Place::Entry(1), Fault::Content));
}

#[test]
fn an_entry_twice_breaks_at_the_second() {
    let mut records = records();
    records.insert(2, records[1].clone());
    assert_eq!(broken_at(check(&records)), (Place::Entry(3), Fault::Repeated { found: 2 }));
}

#[test]
fn an_entry_of_another_wallet_is_none_of_this_one() {
    let mut records = records();
    records[1]["wl"] = json!("w2");
    assert_eq!(broken_at(check(&records)), (Place::Entry(2), Fault::Foreign));
}

#[test]
fn lines_that_do_not_sum_to_zero_are_found_even_under_a_matching_hash() {
    let mut record = fund("inv-1", 10_000_000, 1000, json!({"seq": 1, "hh": ""}));
    record["ln"] = json!([{"ac": "wallet", "am": 10_000_000}, {"ac": "external-funding", "am": -9_000_000}]);
    let changed: Entry = serde_json::from_value(record.clone()).unwrap();
    record["hh"] = json!(chain_hash(1, "", &changed.content_hash()));
    assert_eq!(broken_at(check(&[record])), (Place::Entry(1), Fault::Unbalanced { sum: 1_000_000 }));
}

#[test]
fn a_wrong_balance_is_named_with_both_sums() {
    let richer = Wallet { available: Micros::parse("17.491300").unwrap(), ..wallet() };
    let broken = audit(&richer, &entries(&records()), &holds()).unwrap_err();
    assert_eq!(broken.fault, Fault::Total { balance: 20_491_300, entries: 10_491_300 });
    let said = "wallet w1 of tenant t1, balance: available + held is 20.491300 and the entries say 10.491300";
    assert_eq!((broken.sequence(), broken.to_string().as_str()), (None, said));
}

#[test]
fn a_balance_that_is_not_where_the_chain_ends_is_found() {
    let entries = entries(&records());
    let behind = Wallet { sequence: 2, head: HASH_2.to_owned(), ..wallet() };
    assert_eq!(broken_at(audit(&behind, &entries, &holds())), (Place::Entry(3), Fault::Beyond { last: 2 }));
    let elsewhere = Wallet { head: HASH_2.to_owned(), ..wallet() };
    assert_eq!(broken_at(audit(&elsewhere, &entries, &holds())), (Place::Entry(3), Fault::Head));
}

#[test]
fn a_wrong_hold_is_named_with_both_sums() {
    let one_lost = &holds()[..1];
    let broken = audit(&wallet(), &entries(&records()), one_lost).unwrap_err();
    assert_eq!(broken.fault, Fault::Held { held: 3_000_000, holds: 2_000_000, open: 1 });
    let said = "wallet w1 of tenant t1, balance: held is 3.000000 and the open holds (1) sum to 2.000000";
    assert_eq!(broken.to_string(), said);
}

#[test]
fn the_first_of_two_broken_links_is_named_by_wallet_and_sequence() {
    let mut records = records();
    (records[1]["am"], records[2]["am"]) = (json!(1), json!(2));
    let said =
        "wallet w1 of tenant t1, entry 2: its content does not give its hash: it was changed after it was written";
    let broken = check(&records).unwrap_err();
    assert_eq!((broken.sequence(), broken.to_string().as_str()), (Some(2), said));
}
