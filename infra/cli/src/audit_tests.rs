//! The readings of an audit; what is checked in one is tested beside `domain::audit`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::cell::Cell;

use super::*;
use crate::pages::fake::Fake;

const WALLET: &str = "tenants/t1/wallets/w1?";
const FIRST: &str = "tenants/t1/wallets/w1/statement?after=0&limit=200";
const HOLDS: &str = "tenants/t1/wallets/w1/holds?";
/// Hash of the one entry, computed outside the program; see `domain::audit`'s tests.
const HASH: &str = "85a102cf86f3acf0673be9ef6ab069225e43cf58f8a0b8363e6e4e53f9096c5c";

fn wallet(rev: u64, available: &str) -> Value {
    json!({
        "tenant": "t1", "wallet": "w1", "currency": "USD", "available": available, "held": "0.000000",
        "credit_limit": "0.000000", "sequence": 1, "head": HASH, "rev": rev,
    })
}

/// A page with the funding of 10.00 that makes the whole chain, as it is or with another amount.
fn page(micros: i64) -> Value {
    let record = json!({
        "kd": "fund", "tn": "t1", "wl": "w1", "rn": "inv-1", "am": micros, "cu": "USD",
        "ln": [{"ac": "wallet", "am": 10_000_000}, {"ac": "external-funding", "am": -10_000_000}],
        "by": "local", "cr": 1000, "seq": 1, "hh": HASH,
    });
    json!({"entries": [{"sequence": 1, "record": record}], "next": null})
}

fn quiet() -> Fake {
    Fake::default().answer(HOLDS, 200, json!({"holds": [], "next": null}))
}

/// The verdict and how many pauses it took.
fn judge(server: &Fake) -> (Verdict, usize) {
    let pauses = Cell::new(0);
    let verdict = audit(server, "t1", "w1", &|| pauses.set(pauses.get() + 1)).unwrap();
    (verdict, pauses.get())
}

#[test]
fn a_clean_wallet_is_read_once() {
    let server = quiet().answer(WALLET, 200, wallet(3, "10.000000")).answer(FIRST, 200, page(10_000_000));
    let (verdict, pauses) = judge(&server);
    assert!(matches!(verdict, Verdict::Clean(_, Clean { entries: 1, open_holds: 0 })), "{verdict:?}");
    assert_eq!(pauses, 0);
    let said = "clean   wallet w1 of tenant t1: entries 1, open holds 0; available 10.00 + held 0.00 USD is what the entries say";
    assert_eq!(say("t1", "w1", &verdict), said);
}

#[test]
fn a_tampered_entry_is_named_once_it_was_seen_twice() {
    let server = quiet().answer(WALLET, 200, wallet(3, "10.000000")).answer(FIRST, 200, page(10_000_001));
    let (verdict, pauses) = judge(&server);
    assert_eq!(pauses, 1);
    let said = "BROKEN  wallet w1 of tenant t1, entry 1: its content does not give its hash: it was changed after it was written";
    assert_eq!(say("t1", "w1", &verdict), said);
    let line: Value = serde_json::from_str(&line("t1", "w1", &verdict)).unwrap();
    assert_eq!(
        (&line["verdict"], &line["sequence"], &line["code"]),
        (&json!("broken"), &json!(1), &json!("content-hash"))
    );
}

#[test]
fn a_reading_that_the_wallet_moved_under_is_repeated() {
    // Read at rev 3 and 4: the balance of the first does not meet the entries. Then at rest.
    let server = quiet().answer(WALLET, 200, wallet(3, "9.000000")).answer(WALLET, 200, wallet(4, "10.000000")).answer(
        FIRST,
        200,
        page(10_000_000),
    );
    let (verdict, pauses) = judge(&server);
    assert!(matches!(verdict, Verdict::Clean(..)), "{verdict:?}");
    assert_eq!(pauses, 1);
}

#[test]
fn a_wallet_that_never_rests_is_neither_clean_nor_broken() {
    let mut server = quiet().answer(FIRST, 200, page(10_000_000));
    for rev in 1..=10 {
        server = server.answer(WALLET, 200, wallet(rev, "9.000000"));
    }
    let (verdict, pauses) = judge(&server);
    assert!(matches!(verdict, Verdict::Moving), "{verdict:?}");
    assert_eq!(pauses, 4);
}

#[test]
fn a_broken_chain_is_found_even_while_the_wallet_is_written() {
    let mut server = quiet().answer(FIRST, 200, page(10_000_001));
    for rev in 1..=10 {
        server = server.answer(WALLET, 200, wallet(rev, "10.000000"));
    }
    let (verdict, _) = judge(&server);
    assert!(matches!(&verdict, Verdict::Broken(broken) if broken.sequence() == Some(1)), "{verdict:?}");
}

#[test]
fn an_entry_that_lagged_behind_and_came_is_no_fault() {
    let server = quiet()
        .answer(WALLET, 200, wallet(3, "10.000000"))
        .answer(FIRST, 200, json!({"entries": [], "next": null}))
        .answer(FIRST, 200, page(10_000_000));
    let (verdict, pauses) = judge(&server);
    assert!(matches!(verdict, Verdict::Clean(..)), "{verdict:?}");
    assert_eq!(pauses, 1);
}

#[test]
fn an_entry_that_the_server_cannot_read_is_found_one_by_one() {
    let broken = json!({"title": "The request cannot be carried out", "code": "internal"});
    let mut one = page(10_000_000);
    one["next"] = json!(1);
    let server = quiet()
        .answer(WALLET, 200, wallet(3, "10.000000"))
        .answer(FIRST, 500, broken.clone())
        .answer("tenants/t1/wallets/w1/statement?after=0&limit=1", 200, one)
        .answer("tenants/t1/wallets/w1/statement?after=1&limit=1", 500, broken);
    let (verdict, _) = judge(&server);
    let said =
        "BROKEN  wallet w1 of tenant t1, entry 2: it cannot be read: The request cannot be carried out (500, internal)";
    assert_eq!(say("t1", "w1", &verdict), said);
}

#[test]
fn a_wallet_that_does_not_exist_is_the_servers_error() {
    let server = Fake::default().answer(WALLET, 404, json!({"code": "not-found"}));
    let refused = audit(&server, "t1", "w1", &|| {});
    assert!(matches!(refused, Err(CliError::Refused(problem)) if problem.status == 404));
}
