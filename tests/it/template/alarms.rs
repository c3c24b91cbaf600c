//! Alarms, the dashboard and the runbook: what must be watched is, what is asked for exists, and whoever an alarm wakes
//! finds a section that says what it means, what to look at, what to do, and how to know that it is over.

use std::collections::BTreeSet;

use runtime::telemetry::{NAMESPACE, metric_names};
use serde_json::{Value, json};

use super::document::{Finding, of_kind};
use super::{named, template, with};

const RUNBOOK: &str = include_str!("../../../RUNBOOK.md");
/// What each section of the runbook answers.
const QUESTIONS: [&str; 4] = ["**What it means.**", "**Look at.**", "**Do.**", "**Over when.**"];
/// What must be watched, and by which metric.
const WATCHED: [(&str, &str, &str); 11] = [
    ("OldestWaitingAlarm", "hookledger", "OldestWaiting"),
    ("ReviewsOpenAlarm", "hookledger", "ReviewsOpen"),
    ("RelayLagAlarm", "hookledger", "RelayLag"),
    ("ReconciliationCasesAlarm", "hookledger", "ReconciliationCases"),
    ("ChainsBrokenAlarm", "hookledger", "ChainsBroken"),
    ("ServerErrorsAlarm", "AWS/ApiGateway", "5xx"),
    ("RelayAlarm", "AWS/Lambda", "Errors"),
    ("JobDeadLettersAlarm", "AWS/SQS", "ApproximateNumberOfMessagesVisible"),
    ("BillingDeadLettersAlarm", "AWS/SQS", "ApproximateNumberOfMessagesVisible"),
    ("OutboundDeadLettersAlarm", "AWS/SQS", "ApproximateNumberOfMessagesVisible"),
    ("ReconcileDeadLettersAlarm", "AWS/SQS", "ApproximateNumberOfMessagesVisible"),
];
/// What is watched over all functions together.
const SUMMED: [(&str, &str); 2] = [("FunctionErrorsAlarm", "Errors"), ("ThrottlesAlarm", "Throttles")];

fn check_alarms(template: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let alarms = of_kind(template, "AWS::CloudWatch::Alarm");
    let known: BTreeSet<&str> = metric_names().collect();
    let topic = json!({"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]});
    for alarm in &alarms {
        if alarm.property("AlarmActions") != &topic {
            findings.push(Finding::new("alarm-silent", alarm.id, "notify the topic"));
        }
        let ours = alarm.property("Namespace") == NAMESPACE;
        if ours && !alarm.property("MetricName").as_str().is_some_and(|name| known.contains(name)) {
            findings.push(Finding::new("alarm-metric", alarm.id, "no log line has this metric"));
        }
        if ours && !alarm.property("Dimensions").is_null() {
            findings.push(Finding::new("alarm-metric", alarm.id, "the total has no dimensions"));
        }
    }
    let find = |id: &str| alarms.iter().find(|alarm| alarm.id == id);
    for (id, namespace, metric) in WATCHED {
        let same = find(id).is_some_and(|a| a.property("Namespace") == namespace && a.property("MetricName") == metric);
        if !same {
            findings.push(Finding::new("unwatched", id, format!("{namespace} {metric}")));
        }
    }
    let functions = of_kind(template, "AWS::Serverless::Function");
    for (id, metric) in SUMMED {
        let metrics = find(id).map(|alarm| alarm.property("Metrics").to_string()).unwrap_or_default();
        for function in &functions {
            let dimension = json!([{"Name": "FunctionName", "Value": {"Ref": function.id}}]).to_string();
            if !metrics.contains(&dimension) || !metrics.contains(&format!("\"{metric}\"")) {
                findings.push(Finding::new("unwatched", id, function.id));
            }
        }
    }
    findings
}

/// An operation that waits is seen when it is sent, at most one longest wait apart: one sight must be enough, and the
/// alarm must remember it until the next.
#[test]
fn the_alarm_of_the_oldest_waiting_operation_remembers_it_between_two_tries() {
    let template = template();
    let alarms = of_kind(&template, "AWS::CloudWatch::Alarm");
    let alarm = alarms.iter().find(|alarm| alarm.id == "OldestWaitingAlarm").unwrap();
    let number = |name: &str| alarm.property(name).as_i64().unwrap();
    let longest_wait_s = domain::limits::RetryPolicy::default().cap_ms / 1_000;
    assert_eq!(number("DatapointsToAlarm"), 1);
    assert!(number("Period") * number("EvaluationPeriods") > longest_wait_s + 60);
}

/// The runbook's text under `## name`, up to the next section.
fn section<'a>(runbook: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = runbook.split_once(&format!("\n## {name}\n"))?;
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

fn check_runbook(template: &Value, runbook: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for alarm in of_kind(template, "AWS::CloudWatch::Alarm") {
        let Some(text) = section(runbook, alarm.id) else {
            findings.push(Finding::new("runbook-section", alarm.id, "has no section"));
            continue;
        };
        for question in QUESTIONS.iter().filter(|question| !text.contains(**question)) {
            findings.push(Finding::new("runbook-answer", alarm.id, *question));
        }
    }
    findings
}

#[test]
fn what_must_be_watched_is() {
    assert_eq!(check_alarms(&template()), []);
    let place = "/Resources/OldestWaitingAlarm/Properties";
    let other = check_alarms(&with(place, "MetricName", json!("OldestWaitin")));
    assert_eq!(named(&other), [("alarm-metric", "OldestWaitingAlarm"), ("unwatched", "OldestWaitingAlarm")]);
    let silent = check_alarms(&with(place, "AlarmActions", Value::Null));
    assert_eq!(named(&silent), [("alarm-silent", "OldestWaitingAlarm")]);
    let partly = with("/Resources/ThrottlesAlarm/Properties", "Metrics", json!([]));
    assert_eq!(check_alarms(&partly).len(), 8);
    let gone = with("/Resources", "ChainsBrokenAlarm", json!({"Type": "AWS::SNS::Topic"}));
    assert_eq!(named(&check_alarms(&gone)), [("unwatched", "ChainsBrokenAlarm")]);
}

#[test]
fn every_alarm_has_its_section_in_the_runbook() {
    assert_eq!(check_runbook(&template(), RUNBOOK), []);
    let renamed = RUNBOOK.replace("\n## ChainsBrokenAlarm\n", "\n## Chains\n");
    assert_eq!(named(&check_runbook(&template(), &renamed)), [("runbook-section", "ChainsBrokenAlarm")]);
    let unfinished = RUNBOOK.replacen("**Over when.**", "", 1);
    assert_eq!(check_runbook(&template(), &unfinished).len(), 1);
    for drill in ["Restore from backups", "Before the queues are opened again"] {
        assert!(RUNBOOK.contains(drill), "{drill}");
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let template = template();
    let body = &template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"];
    let body: Value = serde_json::from_str(body.as_str().unwrap()).unwrap();
    let known: BTreeSet<&str> = metric_names().collect();
    let widgets = body["widgets"].as_array().unwrap();
    let metrics = widgets.iter().flat_map(|widget| widget["properties"]["metrics"].as_array().unwrap());
    let ours: BTreeSet<&str> =
        metrics.filter(|metric| metric[0] == NAMESPACE).map(|metric| metric[1].as_str().unwrap()).collect();
    assert!(ours.is_subset(&known), "{:?}", ours.difference(&known));
    for metric in ["OldestWaiting", "ReviewsOpen", "RelayLag", "ReconciliationCases", "ChainsBroken"] {
        assert!(ours.contains(metric), "{metric} is not shown");
    }
}
