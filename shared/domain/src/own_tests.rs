#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
use super::*;

fn micros(text: &str) -> Micros {
    Micros::parse(text).unwrap()
}

fn set(texts: &[&str]) -> BTreeSet<Micros> {
    texts.iter().map(|text| micros(text)).collect()
}

#[test]
fn a_threshold_is_passed_by_the_change_that_goes_below_it_and_by_no_other() {
    let passed = |before: &str, change: &str| crossing(&set(&["10", "5"]), micros(before), micros(change)).0;
    assert_eq!(passed("12", "-1"), []);
    assert_eq!(passed("12", "-2"), [], "ten is not below ten");
    assert_eq!(passed("12", "-2.000001"), [micros("10")]);
    assert_eq!(passed("10", "-1"), [micros("10")]);
    assert_eq!(passed("9", "-1"), [], "passed before");
    assert_eq!(passed("12", "-8"), [micros("5"), micros("10")]);
    assert_eq!(passed("4", "8"), [], "upwards");
}

#[test]
fn within_the_bounds_the_same_thresholds_are_passed_and_beyond_them_others() {
    let thresholds = set(&["10", "5"]);
    for change in ["-1", "-2.5", "-7"] {
        for before in -3_i64..20 {
            let (told, within) = crossing(&thresholds, Micros::new(before * 1_000_000).unwrap(), micros(change));
            for other in -3_i64..20 {
                let other = Micros::new(other * 1_000_000).unwrap();
                let holds = within.at_least.is_none_or(|l| other >= l) && within.below.is_none_or(|b| other < b);
                let same = crossing(&thresholds, other, micros(change)).0 == told;
                assert!(!holds || same, "{before} {change} {other:?}");
            }
        }
    }
}

#[test]
fn an_id_is_the_effects_key_and_a_long_one_its_hash() {
    let id = |tenant: &str, job: &str| {
        let key = format!("{}|c", of_job(&TenantId::new(tenant).unwrap(), &JobId::new(job).unwrap()));
        id_of("job.settled", &key)
    };
    assert_eq!(id("t1", "j1").as_str(), "job.settled|t1|j1|c");
    assert_ne!(id("a|b", "c"), id("a", "b|c"));
    let long = "x".repeat(200);
    assert!(id(&long, "j").as_str().starts_with("job.settled|sha256:"));
    assert_ne!(id(&long, "j"), id(&long, "k"));
}

#[test]
fn the_body_has_amounts_as_texts_and_usage_as_numbers() {
    let usage = BTreeMap::from([("input_tokens".to_owned(), crate::price::Quantity::parse("1200.5").unwrap())]);
    let envelope = Envelope {
        tenant: Some(TenantId::new("t\"1").unwrap()),
        amount: Some(8_700),
        usage: Some(usage),
        data: BTreeMap::from([("by".to_owned(), "acme/e".to_owned())]),
        ..Envelope::default()
    };
    let id = id_of("job.settled", "t|j|c");
    let (kind, subject) = (OwnType::JobSettled, String::new());
    let event = OwnEvent { kind, id, subject, at_ms: 1_795_953_600_000, envelope, threshold: None };
    let text = body(&event.receipt(&[], BTreeMap::new()).unwrap());
    let by_hand = r#"{"data":{"amount":"0.008700","by":"acme/e","tenant":"t\"1","usage":{"input_tokens":1200.5}},"id":"job.settled|t|j|c","timestamp":"2026-11-29T12:00:00Z","type":"job.settled"}"#;
    assert_eq!(text, by_hand);
}
