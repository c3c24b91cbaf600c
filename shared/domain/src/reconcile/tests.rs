#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::*;
use crate::event::By;
use crate::ids::{Reference, TenantId, WalletId};
use crate::job::{Job, JobRecords, Outcome, Policies, Transition};
use crate::ledger::{Entry, EntryKind, JobLedger};
use crate::money::Micros;
use crate::price::{PriceBook, Usage};
use crate::profile::{ListProfile, Profiles};

const BEGAN_MS: i64 = 1_795_953_600_000;
const LATER_MS: i64 = BEGAN_MS + 3 * 3_600_000;

/// small-1 costs 3.00 and 15.00 per million tokens.
const PRICES: &str = r#"
[[price]]
model = "small-1"
version = "v1"
effective = "2026-01-01T00:00:00Z"
currency = "USD"
rates.input_tokens = { price = "3.00", per = 1000000 }
rates.output_tokens = { price = "15.00", per = 1000000 }
"#;

fn job() -> Job {
    let tenant = TenantId::new("t1").unwrap();
    let model = "small-1".parse().unwrap();
    let price = PriceBook::parse(PRICES).unwrap().pin(&model, &tenant, BEGAN_MS).unwrap().clone();
    Job {
        tenant,
        job: "j1".parse().unwrap(),
        provider: crate::ids::Provider::new("acme").unwrap(),
        provider_ref: Some("p-1".parse().unwrap()),
        wallet: WalletId::new("w1").unwrap(),
        hold: Micros::parse("5.00").unwrap(),
        authorised: Micros::ZERO,
        price,
        policies: Policies::default(),
        created_ms: BEGAN_MS,
        expires_ms: BEGAN_MS + 120 * 3_600_000,
        request_hash: String::new(),
        request_id: None,
        metadata: std::collections::BTreeMap::new(),
    }
}

fn usage(input: &str) -> Usage {
    let body = format!(r#"{{"input_tokens":{input},"output_tokens":340}}"#);
    crate::price::usage_from_json(&crate::json::parse(body.as_bytes()).unwrap()).unwrap()
}

fn ended(used: Option<Usage>) -> JobRecords {
    let by = By::event("acme/e1".parse().unwrap());
    let transition = Transition { version: 1, outcome: Outcome::Success, usage: used, by, created_ms: BEGAN_MS };
    JobRecords { job: job(), extensions: Vec::new(), transitions: vec![transition] }
}

fn captured(amount: &str, used: &Usage) -> JobLedger {
    let entry = Entry::of_job(EntryKind::Capture, &job(), "acme/e1".to_owned(), BEGAN_MS);
    let amount = Micros::parse(amount).unwrap();
    let close = Entry { version: Some(1), amount, usage: Some(used.clone()), ..entry };
    JobLedger { close: Some(close), ..JobLedger::default() }
}

fn found(records: &JobRecords, ledger: &JobLedger, now_ms: i64) -> Vec<Finding> {
    compare_job(&JobView { records, ledger, decider: None, has_list: false, now_ms })
}

#[test]
fn a_charge_that_is_the_price_of_its_usage_is_no_finding_and_another_names_the_difference() {
    // 1200 x 3.00 and 340 x 15.00 per million: 0.0087.
    let right = captured("0.0087", &usage("1200"));
    assert_eq!(found(&ended(Some(usage("1200"))), &right, LATER_MS), []);
    // 2200 input tokens are 0.003 more.
    let wrong = found(&ended(Some(usage("2200"))), &right, LATER_MS);
    assert_eq!((wrong[0].class, wrong[0].action), (CaseClass::UsageMismatch, Action::Compensate));
    assert_eq!(wrong[0].amount, Some(Micros::parse("0.003").unwrap()));
}

#[test]
fn an_adjustment_that_carries_the_usage_makes_up_for_the_difference() {
    let mut ledger = captured("0.0087", &usage("1200"));
    let entry = Entry::of_job(EntryKind::Adjust, &job(), "control/adjust.x".to_owned(), BEGAN_MS + 1);
    let amount = Micros::parse("0.003").unwrap();
    ledger.adjusts.push(Entry { amount, usage: Some(usage("2200")), ..entry });
    assert_eq!(found(&ended(Some(usage("2200"))), &ledger, LATER_MS), []);
}

#[test]
fn rec_03_what_is_younger_than_the_grace_is_nobodys_finding() {
    let records = ended(Some(usage("1200")));
    assert_eq!(found(&records, &JobLedger::default(), BEGAN_MS + GRACE_MS - 1), []);
    let old = found(&records, &JobLedger::default(), BEGAN_MS + GRACE_MS);
    assert_eq!((old[0].class, old[0].action), (CaseClass::Unsettled, Action::Person));
}

#[test]
fn the_same_fact_has_the_same_id_and_a_worn_out_retry_is_a_persons() {
    let subject = Subject::Job { tenant: job().tenant, job: job().job };
    let finding = Finding::new(CaseClass::HoldExpired, Action::Retry, subject, "expired");
    let later = Finding { evidence: "expired long ago".to_owned(), ..finding.clone() };
    assert_eq!(finding.case_id(), later.case_id());
    let first = Case::open(&finding, None, "r1", 1);
    let second = Case::open(&finding, Some(&first), "r2", 2);
    let third = Case::open(&finding, Some(&second), "r3", 3);
    assert_eq!((first.action, second.action, third.action), (Action::Retry, Action::Retry, Action::Person));
    assert_eq!(third.occurrence, 3);
    let dismissed = third.resolved(Resolution::Dismissed);
    assert!(dismissed.covers(&finding) && !dismissed.covers(&later));
    assert!(!third.resolved(Resolution::Applied).covers(&finding));
}

#[test]
fn what_was_let_stand_opens_again_when_the_list_says_something_else() {
    let running = JobRecords { transitions: Vec::new(), ..ended(None) };
    let find = |input: &str| {
        let entry = listed(Outcome::Success, input);
        compare_listed(&entry, &running, &JobLedger::default(), LATER_MS).unwrap()
    };
    let dismissed = Case::open(&find("1200"), None, "r1", 1).resolved(Resolution::Dismissed);
    assert_eq!(find("2200").case_id(), dismissed.id, "one case of a job, whatever its entry says");
    assert!(dismissed.covers(&find("1200")) && !dismissed.covers(&find("2200")));
}

const PROFILE: &str = r#"
[providers.acme]
owner = "o"
signature = { scheme = "standard-webhooks" }
secrets = ["S"]
retry_window_hours = 1
tenants = ["*"]
event_id = "signed-id"
event_type = "body:/type"
[providers.acme.list]
url = "env:LIST"
page = { param = "after", next = "/next" }
items = "/jobs"
ref = "/id"
status = "/status"
statuses = { done = "success", going = "running" }
usage = "/usage"
updated = { at = "/at", unit = "seconds" }
"#;

fn list() -> ListProfile {
    Profiles::parse(PROFILE).unwrap().get("acme").unwrap().list.clone().unwrap()
}

#[test]
fn a_list_that_makes_no_sense_is_refused_with_its_remedy() {
    let mistakes = [
        ("url = \"env:LIST\"", "url = \"http://plain.example\"", "https://"),
        ("done = \"success\", going", "going", "names none that ends a job"),
        ("going = \"running\"", "going = \"walking\"", "canceled"),
        ("items = \"/jobs\"", "items = \"jobs\"", "write a pointer"),
        ("usage = \"/usage\"", "max_pages = 0", "1000"),
    ];
    for (right, wrong, remedy) in mistakes {
        let text = PROFILE.replacen(right, wrong, 1);
        assert_ne!(text, PROFILE, "{right}");
        let error = Profiles::parse(&text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(remedy) && error.contains("acme.list"), "{error}");
    }
}

#[test]
fn a_page_is_read_by_its_pointers_and_what_cannot_be_read_is_counted() {
    let body = br#"{"jobs":[
        {"id":"p-1","status":"done","usage":{"input_tokens":1200,"output_tokens":340},"at":1795953600},
        {"id":"p-2","status":"going"}, {"id":"p-3","status":"strange"}, {"status":"done"}, 7],"next":"c2"}"#;
    let page = read_page(&list(), body).unwrap();
    assert_eq!((page.entries.len(), page.unreadable, page.next.as_deref()), (2, 3, Some("c2")));
    let listed = page.entries[0].ended.clone().unwrap();
    assert_eq!((listed.outcome, listed.updated_ms), (Outcome::Success, Some(BEGAN_MS)));
    assert_eq!(listed.usage, Some(usage("1200")));
    assert_eq!(page.entries[1].ended, None);
    let error = read_page(&list(), br#"{"secret":"canary"}"#).unwrap_err();
    assert!(!error.contains("canary"), "{error}");
}

fn listed(outcome: Outcome, used: &str) -> Listed {
    let reference = "p-1".parse().unwrap();
    Listed { reference, outcome, usage: Some(usage(used)), updated_ms: Some(BEGAN_MS) }
}

#[test]
fn a_list_entry_is_compared_with_what_was_decided() {
    let running = JobRecords { transitions: Vec::new(), ..ended(None) };
    let entry = listed(Outcome::Success, "1200");
    let compare = |records: &JobRecords, ledger: &JobLedger, entry: &Listed| {
        compare_listed(entry, records, ledger, LATER_MS).map(|f| (f.class, f.action))
    };
    let none = JobLedger::default();
    assert_eq!(compare(&running, &none, &entry), Some((CaseClass::NeverDelivered, Action::AcceptFromAuthority)));
    assert_eq!(compare_listed(&entry, &running, &none, BEGAN_MS + LIST_GRACE_MS - 1), None);
    let right = captured("0.0087", &usage("1200"));
    assert_eq!(compare(&ended(Some(usage("1200"))), &right, &entry), None);
    let failed = listed(Outcome::Failure, "1200");
    assert_eq!(compare(&ended(Some(usage("1200"))), &right, &failed), Some((CaseClass::StatusDiffers, Action::Person)));
    let more = listed(Outcome::Success, "2200");
    let differs = compare_listed(&more, &ended(Some(usage("1200"))), &right, LATER_MS).unwrap();
    assert_eq!((differs.class, differs.amount), (CaseClass::UsageDiffers, Some(Micros::parse("0.003").unwrap())));
    assert_eq!(compare(&ended(None), &none, &entry), Some((CaseClass::NoUsage, Action::AskAuthority)));
}

#[test]
fn a_run_is_cut_into_hours_and_shards() {
    let window = Window { from_ms: BEGAN_MS + 30 * 60_000, to_ms: BEGAN_MS + 90 * 60_000 };
    let run = Run {
        id: Reference::new("r").unwrap(),
        kinds: vec![Kind::Receipts, Kind::Reviews],
        window,
        wallet: None,
        provider: None,
        actor: String::new(),
        reason: String::new(),
        content_hash: String::new(),
        created_ms: 0,
    };
    // Two half hours of four shards, and the reviews of four shards.
    let parts = run.parts(&[], &[]);
    assert_eq!(parts.len(), 12);
    let minutes: i64 = parts.iter().map(|p| if let PartKey::Receipts { minutes, .. } = p { *minutes } else { 0 }).sum();
    assert_eq!(minutes, 4 * 60);
}
