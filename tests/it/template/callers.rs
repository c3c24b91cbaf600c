//! Who may call the control API: the four policies of the template, judged as IAM judges them against every call that
//! `infra/openapi.yaml` describes. Each call that changes something is one policy's alone, and a reader only reads.

use serde_json::Value;

use super::document::{self, listed, of_kind};
use super::template;

const OPENAPI: &str = include_str!("../../../infra/openapi.yaml");
const POLICIES: [&str; 4] =
    ["ControlFinancePolicy", "ControlOperatorPolicy", "ControlReaderPolicy", "ControlSubmitterPolicy"];

/// A character of an IAM pattern: `*` is any text, `?` any one character, `${?}` and the like that very character.
/// Source: IAM user guide, "Policy variables", "Using special characters".
fn matches(pattern: &str, text: &str) -> bool {
    for literal in ['?', '*', '$'] {
        if let Some(rest) = pattern.strip_prefix(&format!("${{{literal}}}")) {
            return text.strip_prefix(literal).is_some_and(|text| matches(rest, text));
        }
    }
    let Some(first) = pattern.chars().next() else { return text.is_empty() };
    let rest = &pattern[first.len_utf8()..];
    match first {
        '*' => (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, &text[at..])),
        _ => text
            .chars()
            .next()
            .is_some_and(|one| (first == '?' || first == one) && matches(rest, &text[one.len_utf8()..])),
    }
}

/// Whether a policy lets a call through: a statement allows it and none denies it. `call` is `METHOD/path`.
fn allows(template: &Value, policy: &str, call: &str) -> bool {
    let found = of_kind(template, "AWS::IAM::ManagedPolicy").into_iter().find(|one| one.id == policy);
    let document =
        &found.unwrap_or_else(|| panic!("{policy} is in the template")).property("PolicyDocument")["Statement"];
    let applies = |effect: &str| {
        let statements = listed(document).into_iter().filter(|one| one["Effect"] == effect);
        let patterns =
            statements.filter(|one| one["Action"] == "execute-api:Invoke").flat_map(|one| listed(&one["Resource"]));
        let base = "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/$default/";
        patterns.filter_map(|one| one["Fn::Sub"].as_str()).any(|pattern| {
            let own = pattern.strip_prefix(base).unwrap_or_else(|| panic!("{pattern} is not of this API and stage"));
            matches(&own.replace("${!", "${"), call)
        })
    };
    applies("Allow") && !applies("Deny")
}

fn allowing(template: &Value, call: &str) -> Vec<&'static str> {
    POLICIES.into_iter().filter(|policy| allows(template, policy, call)).collect()
}

/// Every call of `/control`, with an id of each form that a path may hold.
fn calls() -> Vec<String> {
    let openapi = document::parse(OPENAPI).unwrap();
    let mut calls = Vec::new();
    for (path, methods) in
        openapi["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/control/"))
    {
        for method in
            methods.as_object().unwrap().keys().filter(|name| ["get", "put", "post", "delete"].contains(&name.as_str()))
        {
            let filled = regex_lite::Regex::new(r"\{[a-z_]+\}").unwrap().replace_all(path, "a~2Fb-1_.c").into_owned();
            calls.push(format!("{}{filled}", method.to_uppercase()));
        }
    }
    calls
}

/// Whose a call is.
fn owner(call: &str) -> &'static str {
    let end = |suffix: &str| call.ends_with(suffix);
    match call {
        _ if call.starts_with("GET/") => "ControlReaderPolicy",
        _ if end("/fund") || end("/adjust") || end("/reverse") => "ControlFinancePolicy",
        _ if call.starts_with("PUT/control/tenants/") && call.contains("/wallets/") => "ControlFinancePolicy",
        _ if call.starts_with("PUT/control/tenants/") => "ControlSubmitterPolicy",
        _ => "ControlOperatorPolicy",
    }
}

#[test]
fn every_call_is_the_right_policys_alone() {
    let (template, calls) = (template(), calls());
    assert!(calls.len() >= 26, "the description names them all: {calls:?}");
    for call in &calls {
        assert_eq!(allowing(&template, call), [owner(call)], "{call}");
    }
    // By name, so that the table above is not its own judge.
    let by_name = [
        ("POST/control/tenants/t1/jobs/j1/cancel", "ControlOperatorPolicy"),
        ("POST/control/tenants/t1/jobs/j1/extend", "ControlOperatorPolicy"),
        ("POST/control/replays", "ControlOperatorPolicy"),
        ("PUT/control/pauses/billing", "ControlOperatorPolicy"),
        ("POST/control/reconciliations/r1/cases/c1", "ControlOperatorPolicy"),
        ("POST/control/tenants/t1/jobs/j1/adjust", "ControlFinancePolicy"),
        ("PUT/control/tenants/t1/wallets/w1", "ControlFinancePolicy"),
        ("PUT/control/tenants/t1/jobs/j1", "ControlSubmitterPolicy"),
        ("GET/control/status", "ControlReaderPolicy"),
    ];
    for (call, policy) in by_name {
        assert_eq!(allowing(&template, call), [policy], "{call}");
    }
}

#[test]
fn a_readers_post_is_refused_and_so_is_a_call_that_no_policy_knows() {
    let template = template();
    for call in calls().iter().filter(|call| !call.starts_with("GET/")) {
        assert!(!allows(&template, "ControlReaderPolicy", call), "{call}");
    }
    for call in ["DELETE/control/tenants/t1/wallets/w1", "POST/webhooks/acme", "POST/control/tenants/t1/jobs/j1"] {
        assert_eq!(allowing(&template, call), [""; 0], "{call}");
    }
}

#[test]
fn no_path_ends_as_an_allowed_one_and_means_another() {
    let template = template();
    // API Gateway decodes and cuts the path after IAM has judged it: these would arrive as an adjustment.
    for call in ["POST/control/tenants/t1/jobs/j1/adjust%3F/cancel", "POST/control/tenants/t1/jobs/j1/adjust?/cancel"] {
        assert_eq!(allowing(&template, call), [""; 0], "{call}");
    }
}

#[test]
fn patterns_are_read_as_iam_reads_them() {
    assert!(matches("a/*/c", "a/b/x/c") && !matches("a/*/c", "a/b/x/d"));
    assert!(matches("a?c", "abc") && !matches("a?c", "ac"));
    assert!(matches("*${?}*", "a?b") && !matches("*${?}*", "ab"));
    assert!(matches("${*}", "*") && !matches("${*}", "x"));
}
