//! Queues and what reads from them: the rules that no linter knows or that only show across resources.
//!
//! - SQS-03: without `ReportBatchItemFailures` Lambda deletes the failed messages as done.
//! - SQS-05: a queue's visibility timeout is at least six times its consumer's timeout (AWS's own advice).
//! - SQS-06: a FIFO source takes at most 10 messages a batch and no batching window.
//! - Encrypted by your KMS key where there is one, else by SQS's own.
//! - SQS-10: a message may be received 100 times; dead letters are FIFO too and kept for 14 days.

use serde_json::{Value, json};

use super::document::{Finding, Resource, listed, of_kind, target};

/// AWS's factor between a function's timeout and its queue's visibility timeout.
const VISIBILITY_FACTOR: i64 = 6;
/// What a function has without `Timeout`, in seconds (SAM).
const DEFAULT_TIMEOUT_S: i64 = 3;
/// What a queue has without `VisibilityTimeout`, in seconds (SQS).
const DEFAULT_VISIBILITY_S: i64 = 30;
/// The range that SQS accepts; outside it the deployment fails.
const RECEIVE_COUNT_RANGE: std::ops::RangeInclusive<i64> = 1..=1_000;
/// Receives before the queue itself gives a message up (DESIGN: deferral instead of redelivery).
const RECEIVE_COUNT: i64 = 100;
const FOUR_DAYS_S: i64 = 345_600;
const FOURTEEN_DAYS_S: i64 = 1_209_600;

/// A function's SQS event source, with the queue that it reads.
struct Source<'a> {
    place: String,
    function: Resource<'a>,
    properties: &'a Value,
    queue: Option<Resource<'a>>,
}

fn queues(template: &Value) -> Vec<Resource<'_>> {
    of_kind(template, "AWS::SQS::Queue")
}

fn sources(template: &Value) -> Vec<Source<'_>> {
    let mut found = Vec::new();
    for function in of_kind(template, "AWS::Serverless::Function") {
        for (name, event) in function.property("Events").as_object().into_iter().flatten() {
            if event["Type"] != "SQS" {
                continue;
            }
            let properties = &event["Properties"];
            let id = target(&properties["Queue"]);
            let queue = queues(template).into_iter().find(|queue| Some(queue.id) == id);
            found.push(Source { place: format!("{}.{name}", function.id), function, properties, queue });
        }
    }
    found
}

/// SQS-03 and SQS-06: how each event source takes its batches.
pub(super) fn check_event_sources(template: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources(template) {
        let mut find = |rule, says: String| findings.push(Finding::new(rule, source.place.clone(), says));
        let Some(queue) = source.queue else {
            find("source-queue", "reads no queue of this template".to_owned());
            continue;
        };
        let responses = listed(&source.properties["FunctionResponseTypes"]);
        if !responses.iter().any(|response| *response == "ReportBatchItemFailures") {
            find("partial-batch", "set FunctionResponseTypes: [ReportBatchItemFailures]".to_owned());
        }
        if !source.properties["BatchSize"].as_i64().is_some_and(|size| (1..=10).contains(&size)) {
            find("batch-size", format!("{} is not 1 to 10", source.properties["BatchSize"]));
        }
        let fifo = queue.property("FifoQueue") == &Value::Bool(true);
        if fifo && !source.properties["MaximumBatchingWindowInSeconds"].is_null() {
            find("batch-window", "a FIFO source takes no batching window".to_owned());
        }
    }
    // Written out in plain CloudFormation a source would pass unseen.
    for mapping in of_kind(template, "AWS::Lambda::EventSourceMapping") {
        findings.push(Finding::new("source-form", mapping.id, "declare it under the function's Events"));
    }
    findings
}

/// SQS-05: each queue is read by someone, and hides a message for six times its reader's timeout.
pub(super) fn check_visibility(template: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sources = sources(template);
    let shared_timeout_s = template["Globals"]["Function"]["Timeout"].as_i64();
    for queue in queues(template) {
        let mut readers =
            sources.iter().filter(|source| source.queue.is_some_and(|read| read.id == queue.id)).peekable();
        if readers.peek().is_none() {
            findings.push(Finding::new("unread", queue.id, "no function reads it"));
        }
        let visibility_s = seconds(queue.property("VisibilityTimeout"), Some(DEFAULT_VISIBILITY_S));
        for reader in readers {
            let default_s = shared_timeout_s.unwrap_or(DEFAULT_TIMEOUT_S);
            let timeout_s = seconds(reader.function.property("Timeout"), Some(default_s));
            // A reference cannot be judged here, so it does not pass.
            let enough = match (visibility_s, timeout_s) {
                (Some(visibility), Some(timeout)) => visibility >= VISIBILITY_FACTOR * timeout,
                _ => false,
            };
            if !enough {
                let says = format!("{visibility_s:?} s is below 6 x {timeout_s:?} s of {}", reader.function.id);
                findings.push(Finding::new("visibility", queue.id, says));
            }
        }
    }
    findings
}

/// A number of seconds; `default` where it is not set, `None` where it is not a number.
fn seconds(value: &Value, default: Option<i64>) -> Option<i64> {
    if value.is_null() { default } else { value.as_i64() }
}

/// SQS-10: receives, dead letters, retention, and the form of each queue.
pub(super) fn check_queues(template: &Value) -> Vec<Finding> {
    let all = queues(template);
    let dead_letters: Vec<&str> = all.iter().filter_map(dead_letter_target).collect();
    let mut findings = Vec::new();
    for queue in &all {
        check_form(queue, &mut findings);
        let is_dead_letters = dead_letters.contains(&queue.id);
        let retention_s = if is_dead_letters { FOURTEEN_DAYS_S } else { FOUR_DAYS_S };
        if queue.property("MessageRetentionPeriod").as_i64() != Some(retention_s) {
            findings.push(Finding::new("retention", queue.id, format!("keep messages {retention_s} s")));
        }
        if !is_dead_letters {
            check_redrive(queue, &all, &mut findings);
        }
    }
    findings
}

fn dead_letter_target<'a>(queue: &Resource<'a>) -> Option<&'a str> {
    target(&queue.property("RedrivePolicy")["deadLetterTargetArn"])
}

fn check_redrive(queue: &Resource<'_>, all: &[Resource<'_>], findings: &mut Vec<Finding>) {
    let count = queue.property("RedrivePolicy")["maxReceiveCount"].as_i64();
    if !count.is_some_and(|count| RECEIVE_COUNT_RANGE.contains(&count)) {
        findings.push(Finding::new("receive-count-range", queue.id, "SQS takes 1 to 1000"));
    }
    if count != Some(RECEIVE_COUNT) {
        findings.push(Finding::new("receive-count", queue.id, format!("maxReceiveCount is {RECEIVE_COUNT}")));
    }
    let dead_letters = dead_letter_target(queue);
    if !all.iter().any(|other| Some(other.id) == dead_letters && other.id != queue.id) {
        findings.push(Finding::new("dead-letters", queue.id, "name a queue of this template for dead letters"));
    }
}

/// All queues are high-throughput FIFO, encrypted, and deduplicate by the sender's id.
fn check_form(queue: &Resource<'_>, findings: &mut Vec<Finding>) {
    let wanted = [
        ("FifoQueue", Value::Bool(true)),
        ("ContentBasedDeduplication", Value::Bool(false)),
        ("DeduplicationScope", Value::from("messageGroup")),
        ("FifoThroughputLimit", Value::from("perMessageGroupId")),
        ("SqsManagedSseEnabled", json!({"Fn::If": ["HasKmsKey", false, true]})),
        ("KmsMasterKeyId", json!({"Fn::If": ["HasKmsKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]})),
    ];
    for (name, value) in wanted {
        if queue.property(name) != &value {
            findings.push(Finding::new("queue-form", queue.id, format!("{name} must be {value}")));
        }
    }
}
