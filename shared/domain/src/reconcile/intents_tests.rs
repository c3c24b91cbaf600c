//! Each fact with its action, at its very boundary, and what is nobody's.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::super::{EffectPage, read_effects};
use super::*;
use crate::operation::{Change, Class};
use crate::outcome::{KeyLife, LookUp};
use crate::profile::{EffectList, Profiles};

const HOUR: i64 = 3_600_000;
const T0: i64 = 1_795_953_600_000;
/// Hex SHA-256 of "a".
const KEY: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4f72b9807785afee48bb";

fn key() -> OperationKey {
    let event = "own/charge|t1|j1|c".parse().unwrap();
    OperationKey { event, item: "stripe".parse().unwrap(), name: crate::operation::OperationName::Forward }
}

/// An intent in this state whose only try was told this.
fn intent(state: &str, told: Option<&str>) -> Intent {
    let mut json = serde_json::json!({
        "k": "k", "by": key().by(), "to": "http:stripe", "rq": "{}", "gr": "g", "hs": "h", "st": state, "cr": T0, "rv": 2,
    });
    if state != "pending" {
        (json["at"], json["fs"], json["ls"]) = (1.into(), T0.into(), T0.into());
    }
    if let Some(told) = told {
        json["ou"] = serde_json::json!({"at": 1, "td": told, "nt": "told", "ms": T0});
    }
    if state == "settled" {
        json["se"] = T0.into();
    }
    serde_json::from_value(json).unwrap()
}

fn rules(lookup: bool) -> Rules {
    let key = KeyLife::For { life_ms: 24 * HOUR, margin_ms: HOUR };
    Rules { key, lookup: lookup.then(LookUp::default), ..Rules::default() }
}

fn record(state: OperationState, due_ms: Option<i64>) -> OperationRecord {
    let change = Change {
        state,
        class: Class::Transient,
        note: String::new(),
        due_ms,
        generation: 1,
        resend: false,
        attempts: 1,
    };
    OperationRecord::next(key(), None, change, T0, String::new())
}

fn listed(state: EffectState) -> ListedEffect {
    let (amount, currency) = (Some(1_234), Some("USD".to_owned()));
    let (key, id) = (KEY.to_owned(), "pi_1".to_owned());
    let (event, paid, refunded, refunded_ms, created_ms) = (None, None, None, None, T0);
    ListedEffect { key, event, id, state, amount, currency, paid, refunded, refunded_ms, created_ms }
}

struct Read {
    intent: Intent,
    record: Option<OperationRecord>,
    rules: Rules,
    listed: Vec<ListedEffect>,
    charge: Option<ChargeView>,
    whole: bool,
}

fn read(intent: Intent, listed: &[ListedEffect]) -> Read {
    Read { intent, record: None, rules: rules(true), listed: listed.to_vec(), charge: None, whole: true }
}

impl Read {
    fn at(&self, now_ms: i64) -> Vec<(CaseClass, Action)> {
        let view = IntentView {
            key: &key(),
            intent: &self.intent,
            record: self.record.as_ref(),
            rules: &self.rules,
            listed: &self.listed,
            whole: self.whole,
            charge: self.charge.as_ref(),
            now_ms,
        };
        compare_intent(&view).into_iter().map(|finding| (finding.class, finding.action)).collect()
    }
}

#[test]
fn what_is_settled_there_is_asked_for_again_where_that_is_safe_and_else_taken_from_the_list() {
    use Action::{AcceptFromAuthority, Retry};
    let (within, past) = (T0 + 3 * HOUR, T0 + 25 * HOUR);
    let review = Some(record(OperationState::Review, None));
    let table = [
        (intent("uncertain", Some("unknown")), true, None, within, Retry),
        (intent("uncertain", Some("unknown")), true, None, past, Retry),
        (intent("uncertain", Some("unknown")), false, None, past, AcceptFromAuthority),
        (intent("uncertain", Some("stored")), false, None, within, AcceptFromAuthority),
        (intent("uncertain", Some("stored")), true, review.clone(), within, Retry),
        // A limit would hold back what a retry sends, and a look-up is not held back.
        (intent("uncertain", Some("unknown")), true, review.clone(), within, AcceptFromAuthority),
        (intent("uncertain", Some("unknown")), true, review.clone(), past, Retry),
        (intent("uncertain", Some("key-reused")), true, review.clone(), within, AcceptFromAuthority),
        // Sent again, these would be something new.
        (intent("pending", None), true, None, within, AcceptFromAuthority),
        (intent("submitted", Some("not-done")), true, None, within, AcceptFromAuthority),
        (intent("failed", Some("failed")), true, review, within, AcceptFromAuthority),
    ];
    for (number, (intent, lookup, record, now_ms, action)) in table.into_iter().enumerate() {
        let read = Read { record, rules: rules(lookup), ..read(intent, &[listed(EffectState::Settled)]) };
        assert_eq!(read.at(now_ms), [(CaseClass::SettledThere, action)], "row {number}");
    }
}

#[test]
fn rec_03_what_may_be_on_its_way_is_nobodys_finding() {
    let there = read(intent("uncertain", Some("unknown")), &[listed(EffectState::Settled)]);
    assert_eq!(there.at(T0 + LIST_GRACE_MS - 1), []);
    assert_eq!(there.at(T0 + LIST_GRACE_MS).len(), 1);
    let lately = Intent { last_sent_ms: Some(T0 + 3 * HOUR), ..there.intent.clone() };
    let again = Read { intent: lately, ..there };
    assert_eq!(again.at(T0 + 3 * HOUR + GRACE_MS - 1), []);
    assert_eq!(again.at(T0 + 3 * HOUR + GRACE_MS).len(), 1);
    // What a person closed is theirs; for what a switch holds back nothing is asked.
    let over = Read { record: Some(record(OperationState::Closed, None)), ..again };
    assert_eq!(over.at(T0 + 9 * HOUR), []);
    let parked = OperationRecord { parked: Some("outbound".to_owned()), ..record(OperationState::Wait, Some(T0)) };
    let held = Read { record: Some(parked), ..over };
    assert_eq!(held.at(T0 + 9 * HOUR), [(CaseClass::SettledThere, Action::AcceptFromAuthority)]);
    assert_eq!(Read { listed: Vec::new(), ..held }.at(T0 + 9 * HOUR), []);
    let known = Intent { late_settled: true, ..intent("failed", Some("failed")) };
    assert_eq!(read(known, &[listed(EffectState::Settled)]).at(T0 + 9 * HOUR), []);
    for same in [("settled", EffectState::Settled), ("settled", EffectState::Pending), ("failed", EffectState::Failed)]
    {
        assert_eq!(read(intent(same.0, None), &[listed(same.1)]).at(T0 + 9 * HOUR), [], "{same:?}");
    }
}

#[test]
fn what_is_missing_is_stuck_or_unknown_there_and_only_by_a_whole_list() {
    let (stuck, unknown) = (CaseClass::Stuck, CaseClass::UnknownThere);
    let settled = read(intent("settled", Some("settled")), &[]);
    assert_eq!(settled.at(T0 + LIST_GRACE_MS - 1), []);
    assert_eq!(settled.at(T0 + LIST_GRACE_MS), [(unknown, Action::Person)]);
    assert_eq!(Read { whole: false, ..settled }.at(T0 + 9 * HOUR), []);
    let pending = read(intent("pending", None), &[]);
    assert_eq!(pending.at(T0 + STUCK_MS - 1), []);
    assert_eq!(pending.at(T0 + STUCK_MS), [(stuck, Action::Retry)]);
    let no_lookup = |told| Read { rules: rules(false), ..read(intent("uncertain", Some(told)), &[]) };
    assert_eq!(no_lookup("unknown").at(T0 + 22 * HOUR), [(stuck, Action::Retry)]);
    assert_eq!(no_lookup("unknown").at(T0 + 23 * HOUR), [(stuck, Action::Person)]);
    assert_eq!(no_lookup("key-reused").at(T0 + 9 * HOUR), [(stuck, Action::Person)]);
    // Somebody is on it until it is long overdue.
    let due_ms = T0 + 9 * HOUR;
    let waiting = Read { record: Some(record(OperationState::Wait, Some(due_ms))), ..pending };
    assert_eq!(waiting.at(due_ms + GRACE_MS - 1), []);
    assert_eq!(waiting.at(due_ms + GRACE_MS), [(stuck, Action::Retry)]);
    let failed_there = Read { listed: vec![listed(EffectState::Failed)], ..waiting };
    assert_eq!(failed_there.at(due_ms + GRACE_MS), [(stuck, Action::Retry)]);
    let pending_there = Read { listed: vec![listed(EffectState::Pending)], ..failed_there };
    assert_eq!(pending_there.at(due_ms + GRACE_MS), []);
    assert_eq!(read(intent("failed", None), &[]).at(T0 + 9 * HOUR), []);
}

fn usd(text: &str) -> Micros {
    Micros::parse(text).unwrap()
}

fn charge(posted: Option<Posted>) -> ChargeView {
    let currency = Currency::parse("USD").unwrap();
    ChargeView { minor: 1_234, amount: usd("12.34"), currency, digits: 2, posted, over: false }
}

#[test]
fn amounts_payments_and_refunds_are_compared_with_what_was_posted() {
    let posted = |funded, reversed: &str| Some(charge(Some(Posted { funded, reversed: usd(reversed) })));
    let look = |there: ListedEffect, charge| {
        Read { charge, ..read(intent("settled", Some("settled")), &[there]) }.at(T0 + 3 * HOUR)
    };
    let paid = ListedEffect { paid: Some(1_234), ..listed(EffectState::Settled) };
    assert_eq!(look(paid.clone(), posted(true, "0")), []);
    assert_eq!(look(paid.clone(), None), []);
    let accept = Action::AcceptFromAuthority;
    assert_eq!(look(paid.clone(), posted(false, "0")), [(CaseClass::PaymentUntold, accept)]);
    let back = ListedEffect { refunded: Some(500), ..paid.clone() };
    assert_eq!(look(back.clone(), posted(true, "4.99")), [(CaseClass::RefundUntold, accept)]);
    assert_eq!(look(back.clone(), posted(true, "5")), []);
    let lately = ListedEffect { refunded_ms: Some(T0 + HOUR + 1), ..back };
    assert_eq!(look(lately, posted(true, "0")), []);
    let differs = [(CaseClass::AmountDiffers, Action::Person)];
    assert_eq!(look(ListedEffect { amount: Some(1_233), ..paid.clone() }, posted(true, "0")), differs);
    assert_eq!(look(ListedEffect { currency: Some("EUR".to_owned()), ..paid.clone() }, posted(true, "0")), differs);
    // Two under one key, and the one that exists counts.
    let two = [listed(EffectState::Failed), paid.clone()];
    assert_eq!(read(intent("settled", Some("settled")), &two).at(T0 + 3 * HOUR), []);
    let twice = read(intent("settled", Some("settled")), &[paid.clone(), paid]);
    assert_eq!(twice.at(T0 + 3 * HOUR), [(CaseClass::DoneTwice, Action::Person)]);
}

#[test]
fn a_worn_out_retry_of_what_is_there_is_taken_from_the_list() {
    let subject = Subject::Operation(key());
    let open = |class, before: Option<&super::super::Case>| {
        super::super::Case::open(&Finding::new(class, Action::Retry, subject.clone(), "told"), before, "r", T0)
    };
    for (class, worn) in [(CaseClass::SettledThere, Action::AcceptFromAuthority), (CaseClass::Stuck, Action::Person)] {
        let first = open(class, None);
        let second = open(class, Some(&first));
        assert_eq!((first.action, second.action), (Action::Retry, Action::Retry));
        assert_eq!(open(class, Some(&second)).action, worn);
    }
}

fn list(more: &str) -> EffectList {
    let text = format!(
        "[destinations.d]\nurl = \"env:D\"\n[destinations.d.list]\npath = \"/x\"\nitems = \"/data\"\nkey = \"/meta/key\"\n\
         id = \"/id\"\nstatus = \"/status\"\nsettled = [\"ok\"]\nfailed = [\"no\"]\namount = \"/amount\"\n\
         currency = \"/cur\"\ncreated = {{ at = \"/at\", unit = \"seconds\" }}\n{more}"
    );
    Profiles::parse(&text).unwrap().destination("d").unwrap().list.clone().unwrap()
}

#[test]
fn a_page_keeps_the_entries_with_a_key_and_counts_those_that_cannot_be_read() {
    let whole = |change: &str| {
        format!(r#"{{"meta":{{"key":"{KEY}"}},"id":"a","status":"ok","amount":5,"cur":"usd","at":1795953600{change}}}"#)
    };
    let entry = |from: &str, to: &str| whole("").replace(from, to);
    let entries = [
        whole(""),
        entry("\"ok\"", "\"odd\""),
        entry("\"ok\"", "\"no\""),
        // Not ours.
        entry(KEY, "theirs"),
        "7".to_owned(),
        "{\"id\":\"b\"}".to_owned(),
        // Ours, and not readable.
        entry("\"ok\"", "null"),
        entry(":5", ":-5"),
        entry(":5", ":5.5"),
        entry("\"usd\"", "null"),
        entry("\"usd\"", "\"dollars\""),
        entry("\"id\":\"a\"", "\"id\":\"\""),
        entry("1795953600", "\"yesterday\""),
    ];
    let body = format!(r#"{{"data":[{}]}}"#, entries.join(","));
    let page = read_effects(&list(""), body.as_bytes()).unwrap();
    assert_eq!((page.entries.len(), page.all, page.unreadable, page.next), (3, 13, 7, None));
    let states: Vec<EffectState> = page.entries.iter().map(|entry| entry.state).collect();
    assert_eq!(states, [EffectState::Settled, EffectState::Pending, EffectState::Failed]);
    let first = ListedEffect { id: "a".to_owned(), amount: Some(5), ..listed(EffectState::Settled) };
    assert_eq!(page.entries[0], first);
}

#[test]
fn the_next_page_is_named_or_begins_behind_the_last_entry() {
    let next = |list: &EffectList, body: &str| read_effects(list, body.as_bytes()).map(|page: EffectPage| page.next);
    let named = list("page = { param = \"after\", next = \"/next\" }");
    assert_eq!(next(&named, r#"{"data":[],"next":"c2"}"#), Ok(Some("c2".to_owned())));
    assert_eq!(next(&named, r#"{"data":[],"next":null}"#), Ok(None));
    let behind = list("page = { param = \"after\", last = \"/id\", more = \"/more\" }");
    assert_eq!(next(&behind, r#"{"data":[{"id":"a"},{"id":"b"}],"more":true}"#), Ok(Some("b".to_owned())));
    assert_eq!(next(&behind, r#"{"data":[{"id":"a"}],"more":false}"#), Ok(None));
    for body in [r#"{"data":[],"more":true}"#, r#"{"data":[{}],"more":true}"#, r#"{"data":[]}"#] {
        assert!(next(&behind, body).is_err(), "{body}");
    }
}
