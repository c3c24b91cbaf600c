//! The deployment template keeps the promises that only a deployment can break: failed messages are
//! reported, queues hide a message long enough, dead letters outlive their source, tables have the
//! store's keys, and no role can do more than its function does.
//!
//! Each check is a function from a parsed template to findings. The real template must have none, and
//! each planted mistake must be found: a check that finds nothing anywhere would pass for ever.
//! `.ci/template` runs the linters over the same file; what they know is not repeated here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails where it stands"
)]

mod access;
mod access_cases;
mod alarms;
mod callers;
mod deployment;
mod document;
mod interface;
mod privileges;
mod queue_cases;
mod queues;
mod table_cases;
mod tables;

use serde_json::{Value, json};

use document::Finding;

const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/template.yaml");

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");

fn template() -> Value {
    let text = std::fs::read_to_string(TEMPLATE).expect("infra/template.yaml is in the repository");
    document::parse(&text).expect("infra/template.yaml is YAML")
}

/// The template with one value set; `null` removes it in all but name, as every check reads it so.
fn with(pointer: &str, key: &str, value: Value) -> Value {
    let mut changed = template();
    let parent = changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is in the template"));
    assert_ne!(parent[key], value, "the planted mistake at {pointer}/{key} changes nothing");
    parent[key] = value;
    changed
}

/// What the checks name, in their order: rule and place.
fn named(findings: &[Finding]) -> Vec<(&str, &str)> {
    findings.iter().map(|finding| (finding.rule, finding.place.as_str())).collect()
}

/// `sam build` runs `cargo lambda build --release`, which sets panic=abort unless the profile names
/// another: then one bad message would end the process and with it its whole batch.
#[test]
fn the_release_profile_unwinds_on_lambda_too() {
    let text = std::fs::read_to_string(WORKSPACE).expect("Cargo.toml is in the repository");
    let manifest: toml::Table = text.parse().expect("Cargo.toml is TOML");
    assert_eq!(manifest["profile"]["release"].get("panic").and_then(toml::Value::as_str), Some("unwind"));
}

#[test]
fn short_tags_become_long_forms() {
    let text = "a: !Ref X\nb: !GetAtt X.Arn\nc: !If [On, !Sub '${X}', !Ref 'AWS::NoValue']\nd: '1'\n";
    let long = json!({
        "a": {"Ref": "X"},
        "b": {"Fn::GetAtt": "X.Arn"},
        "c": {"Fn::If": ["On", {"Fn::Sub": "${X}"}, {"Ref": "AWS::NoValue"}]},
        "d": "1",
    });
    assert_eq!(document::parse(text), Ok(long));
    assert!(document::parse("a: 1\na: 2\n").is_err(), "a second member of one name would hide the first");
}
