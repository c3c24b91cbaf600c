//! Each mistake in a profile has its line, its cause and its remedy, and no secret is repeated.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::super::board::{RawBoard, RawUpdate};
use super::super::fetch::{FETCH, RawFetch};
use super::super::secret::RawSecretTable;
use super::super::shape::{
    BOARD, BOARD_UPDATE, EVENT, FIELDS, ONLY_IF, POLICIES, PROVIDER, RECIPE, SECRET_TABLE, TIME,
};
use super::{Profiles, Raw, RawEvent, RawFields, RawOnlyIf, RawPolicies, RawTime};
use crate::config::shape::Kind;
use crate::config::shape::fields::{of_loader, of_shape};

const GOOD: &str = mine!(
    r#"[providers.mine.events."done.now"]
outcome = "success"
operations = ["complete-job", "settle-usage"]
"#
);

fn refused(text: &str) -> Vec<(usize, String)> {
    Profiles::parse(text).unwrap_err().findings.into_iter().map(|f| (f.line, f.field)).collect()
}

fn checked(text: &str) -> Vec<(usize, String)> {
    Profiles::check(text).into_iter().map(|f| (f.line, f.field)).collect()
}

fn at(line: usize, field: &str) -> (usize, String) {
    (line, format!("providers.mine{}{field}", if field.is_empty() { "" } else { "." }))
}

#[test]
fn a_good_profile_has_nothing_against_it() {
    assert_eq!(Profiles::check(GOOD), []);
}

#[test]
fn every_mistake_of_every_provider_is_told_in_the_order_of_the_lines() {
    let second = GOOD.replace("mine", "other").replace("\"body:/type\"", "\"body:type\"");
    let text =
        format!("{}{second}", GOOD.replace("owner", "ovner").replace("72", "-1").replace("settle-usage", "bill"));
    let found = refused(&text);
    let other = (20, "providers.other.event_type".to_owned());
    let mine = [at(2, "ovner"), at(5, "retry_window_hours"), at(12, "events.done.now.operations.1")];
    assert_eq!(found, [mine.to_vec(), vec![other]].concat());
    let told = Profiles::parse(&text).unwrap_err().to_string();
    assert!(
        told.contains("providers.toml:2:1: providers.mine.ovner") && told.contains("did you mean `owner`"),
        "{told}"
    );
}

#[test]
fn what_the_values_say_is_told_with_its_line() {
    let hold = GOOD.replace("retention_days", "hold_hours = 80\nrun_limit_hours = 24\nretention_days");
    assert_eq!(refused(&hold), [at(9, "hold_hours")]);
    assert_eq!(refused(&GOOD.replace("outcome = \"success\"\n", "")), [at(10, "events.done.now.outcome")]);
    assert_eq!(refused(&GOOD.replace("body:/id", "signed-id")), [at(7, "event_id")]);
    assert_eq!(refused(&GOOD.replace("scheme = \"stripe\"", "scheme = \"hmac\"")), [at(3, "signature")]);
    let both = format!("{GOOD}[providers.mine.policies]\nbill_partial = true\nprovisional_failure = true\n");
    assert_eq!(refused(&both), [at(13, "policies")]);
    assert_eq!(refused(&GOOD.replace("mine", "control"))[0].1, "providers.control");
}

#[test]
fn a_secret_in_the_file_is_refused_and_repeated_nowhere() {
    let text = GOOD.replace("MINE_SECRET", "whsec_c2VjcmV0");
    let error = Profiles::parse(&text).unwrap_err();
    assert_eq!((error.findings[0].line, error.findings.len()), (4, 1));
    assert!(!error.to_string().contains("c2VjcmV0") && error.to_string().contains("roll it"), "{error}");
    let broken = Profiles::parse("[providers.mine]\nsecrets = [whsec_c2VjcmV0]\n").unwrap_err();
    assert!(broken.findings[0].line == 2 && !broken.to_string().contains("c2VjcmV0"), "{broken}");
}

#[test]
fn the_check_asks_more_than_the_loader() {
    for (text, expected) in [
        (GOOD.replace("\"team\"", "\"TODO: who?\""), at(2, "owner")),
        (GOOD.replace("[\"*\"]", "[\"<tenant>\"]"), at(6, "tenants")),
        (GOOD.replace("retention_days = 0\n", ""), at(1, "retention_days")),
        (GOOD.replace(", \"settle-usage\"", ""), at(12, "events.done.now.operations")),
        (GOOD.replace("body:/id", "header:x-id"), at(7, "event_id")),
        (GOOD.replace("stripe", "mailgun"), at(7, "event_id")),
    ] {
        assert!(Profiles::parse(&text).is_ok(), "{text}");
        assert_eq!(checked(&text), [expected]);
    }
    let said = GOOD.replace(", \"settle-usage\"]", "]\nunbilled = \"free of charge\"");
    assert_eq!(checked(&said), []);
}

#[test]
fn a_table_that_stands_twice_is_told_at_the_second() {
    let twice = format!("{GOOD}[providers.mine]\nowner = \"b\"\n");
    assert_eq!(Profiles::check(&twice)[0].line, 13);
}

/// The names that serde's own message lists are those of the shape.
#[test]
fn the_shape_has_the_fields_of_the_loader() {
    assert_eq!(of_loader::<Raw>(), of_shape(&PROVIDER));
    assert_eq!(of_loader::<RawEvent>(), of_shape(&EVENT));
    assert_eq!(of_loader::<RawFields>(), of_shape(&Kind::Table(FIELDS)));
    assert_eq!(of_loader::<RawPolicies>(), of_shape(&Kind::Table(POLICIES)));
    assert_eq!(of_loader::<RawBoard>(), of_shape(&Kind::Table(BOARD)));
    assert_eq!(of_loader::<RawFetch>(), of_shape(&Kind::Table(FETCH)));
    assert_eq!(of_loader::<RawUpdate>(), of_shape(&Kind::Table(BOARD_UPDATE)));
    assert_eq!(of_loader::<RawTime>(), of_shape(&Kind::Table(TIME)));
    assert_eq!(of_loader::<RawOnlyIf>(), of_shape(&Kind::Table(ONLY_IF)));
    assert_eq!(of_loader::<RawSecretTable>(), of_shape(&Kind::Table(SECRET_TABLE)));
    assert_eq!(of_loader::<signature::Recipe>(), of_shape(&Kind::Table(RECIPE)));
}
