//! Least privilege, proven both ways: `tests/fixtures/calls.txt` is what the functions did in a whole run of the tests
//! (`.ci/run` records it anew and compares), and each role allows exactly that. `tests/e2e/run` deploys the same roles
//! where they are enforced.
//!
//! What the embedded stack cannot show is listed here, each with its reason.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::access::{actions, statements};
use super::document::{Finding, listed, of_kind, target};
use super::{named, template, with};

const USED: &str = include_str!("../../fixtures/calls.txt");

/// Rights that no call of ours shows.
const UNSEEN: [(&str, &str); 3] = [
    ("logs:CreateLogStream", "Lambda writes the log in the role's name"),
    ("logs:PutLogEvents", "Lambda writes the log in the role's name"),
    ("secretsmanager:GetSecretValue", "worlds hand secrets in; the end-to-end run fetches one under the role"),
];
/// What Lambda does in the role's name for an event source: allowed on exactly the queues that the function reads.
const POLLING: [&str; 3] = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"];

/// The name that a run gives to a resource of the template; `None` for one that no call can name.
fn name_of(resource: &Value) -> Option<String> {
    let id = target(resource)?;
    let own = match id {
        "ForwardQueueArn" | "ForwardBusArn" => return Some(local::usage::ELSEWHERE.to_owned()),
        _ => id.strip_suffix("Table").or_else(|| id.strip_suffix("Queue")).map(str::to_lowercase),
    };
    let own = own.or_else(|| Some(format!("{}-dlq", id.strip_suffix("DeadLetters")?.to_lowercase())))?;
    let index = resource["Fn::Sub"].as_str().and_then(|text| text.rsplit_once("/index/"));
    Some(index.map_or_else(|| own.clone(), |(_, index)| format!("{own}/{index}")))
}

/// Every right of every function's own role, in the form of a run's lines.
fn allowed(template: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for statement in statements(template) {
        let Some(function) = statement.holder.strip_suffix("Role").map(str::to_lowercase) else { continue };
        for action in actions(statement.body) {
            if UNSEEN.iter().any(|(unseen, _)| *unseen == action) {
                continue;
            }
            for resource in listed(&statement.body["Resource"]) {
                let name = name_of(resource).unwrap_or_else(|| resource.to_string());
                all.insert(format!("{function} {action} {name}"));
            }
        }
    }
    all
}

/// What the functions need: what a run used, and what their event sources do for them.
fn needed(template: &Value, used: &str) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = used.lines().map(str::to_owned).collect();
    for function in of_kind(template, "AWS::Serverless::Function") {
        let name = function.id.trim_end_matches("Function").to_lowercase();
        for (_, event) in function.property("Events").as_object().into_iter().flatten() {
            if let Some(queue) = name_of(&event["Properties"]["Queue"]) {
                all.extend(POLLING.map(|action| format!("{name} {action} {queue}")));
            }
        }
    }
    all
}

fn check_privileges(template: &Value, used: &str) -> Vec<Finding> {
    let (allowed, needed) = (allowed(template), needed(template, used));
    let place = |right: &str| right.split(' ').next().unwrap_or_default().to_owned();
    let unused = allowed.difference(&needed).map(|right| Finding::new("right-unused", place(right), right));
    let lacking = needed.difference(&allowed).map(|right| Finding::new("right-lacking", place(right), right));
    unused.chain(lacking).collect()
}

#[test]
fn every_role_allows_what_its_function_does_and_nothing_else() {
    assert!(USED.lines().count() > 50, "the recorded list is the whole run's");
    let findings = check_privileges(&template(), USED);
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn a_role_that_is_wider_or_narrower_than_its_function_is_found() {
    let statement = "/Resources/JobRole/Properties/Policies/0/PolicyDocument/Statement/1";
    let wider = json!(["dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"]);
    let findings = check_privileges(&with(statement, "Action", wider), USED);
    assert_eq!(named(&findings), [("right-unused", "job")], "{findings:?}");
    assert_eq!(findings[0].says, "job dynamodb:UpdateItem jobs");

    let narrower = json!(["dynamodb:GetItem", "dynamodb:Query"]);
    let findings = check_privileges(&with(statement, "Action", narrower), USED);
    assert_eq!(findings[0].says, "job dynamodb:PutItem jobs");
    assert_eq!(named(&findings), [("right-lacking", "job")], "{findings:?}");

    let tables = json!([{"Fn::GetAtt": "JobsTable.Arn"}, {"Fn::GetAtt": "LedgerTable.Arn"}]);
    let findings = check_privileges(&with(statement, "Resource", tables), USED);
    assert_eq!(named(&findings), [("right-unused", "job"); 3], "a table too many, with three actions");

    // A queue that the function does not read, and an index that it does.
    let polling = "/Resources/JobRole/Properties/Policies/0/PolicyDocument/Statement/2";
    let other = check_privileges(&with(polling, "Resource", json!({"Fn::GetAtt": "BillingQueue.Arn"})), USED);
    assert_eq!(other.len(), 6, "three too many and three too few: {other:?}");
    let indexes = "/Resources/RelayRole/Properties/Policies/0/PolicyDocument/Statement/1";
    let fewer =
        json!([{"Fn::Sub": "${EventsTable.Arn}/index/by-bucket"}, {"Fn::Sub": "${EventsTable.Arn}/index/by-due"}]);
    let findings = check_privileges(&with(indexes, "Resource", fewer), USED);
    let says: Vec<&str> = findings.iter().map(|finding| finding.says.as_str()).collect();
    assert_eq!(says, ["relay dynamodb:Query events/by-review", "relay dynamodb:Query jobs/by-expiry"]);
}
