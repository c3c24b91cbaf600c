//! Metrics out of log lines, in CloudWatch's embedded metric format: a line that says what happened carries the
//! metadata that makes CloudWatch count it. No second pipeline, no agent, nothing to flush, nothing lost with a
//! sandbox. Source: CloudWatch user guide, "Specification: Embedded metric format".

use serde_json::{Map, Value, json};

/// The namespace of all metrics.
pub const NAMESPACE: &str = "hookledger";

/// One metric of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Metric {
    /// The line's message.
    line: &'static str,
    /// The line's `outcome`, where the outcome decides.
    outcome: Option<&'static str>,
    /// The field that holds the value; none counts the line itself.
    field: Option<&'static str>,
    /// The metric's name.
    name: &'static str,
    /// CloudWatch's unit.
    unit: &'static str,
    /// By what it is told apart, beside the total. Each name has few values: providers, operations, reasons, classes.
    by: &'static [&'static str],
}

const fn counted(line: &'static str, outcome: &'static str, name: &'static str, by: &'static [&'static str]) -> Metric {
    Metric { line, outcome: Some(outcome), field: None, name, unit: "Count", by }
}

const fn measured(
    line: &'static str, field: &'static str, name: &'static str, unit: &'static str, by: &'static [&'static str],
) -> Metric {
    Metric { line, outcome: None, field: Some(field), name, unit, by }
}

const METRICS: [Metric; 23] = [
    counted("delivery", "accepted", "Accepted", &["provider"]),
    counted("delivery", "duplicate", "Duplicate", &["provider"]),
    counted("delivery", "ignored", "Ignored", &["provider"]),
    counted("delivery", "quarantined", "Quarantined", &["provider"]),
    counted("delivery", "rejected", "Rejected", &["provider", "reason"]),
    counted("delivery", "not-configured", "NotConfigured", &["provider"]),
    counted("delivery", "unavailable", "Unavailable", &["provider"]),
    measured("delivery", "duration_ms", "DeliveryDuration", "Milliseconds", &[]),
    counted("operation", "done", "Applied", &["operation"]),
    counted("operation", "noop", "NoEffect", &["operation"]),
    counted("operation", "deferred", "Deferred", &["operation"]),
    counted("operation", "review", "Review", &["operation"]),
    measured("operation", "duration_ms", "OperationDuration", "Milliseconds", &["operation"]),
    measured("relay", "found", "RelayFound", "Count", &[]),
    measured("relay", "sent", "RelaySent", "Count", &[]),
    measured("relay", "reviews", "RelayReviews", "Count", &[]),
    measured("relay", "expired", "HoldsExpired", "Count", &[]),
    measured("relay", "lag_s", "RelayLag", "Seconds", &[]),
    measured("relay", "oldest_waiting_s", "OldestWaiting", "Seconds", &[]),
    measured("relay", "reviews_open", "ReviewsOpen", "Count", &[]),
    measured("relay", "oldest_review_s", "OldestReview", "Seconds", &[]),
    measured("reconciliation", "cases", "ReconciliationCases", "Count", &["class"]),
    measured("reconciliation", "chains_broken", "ChainsBroken", "Count", &[]),
];

/// The names of all metrics, for checking what alarms and dashboards ask for.
pub fn metric_names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.name)
}

/// Adds to a line what makes CloudWatch read its metrics. A line without any stays as it is.
pub fn embed(line: &mut Map<String, Value>, now_ms: i64) {
    let message = line.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    let outcome = line.get("outcome").and_then(Value::as_str).map(str::to_owned);
    let mut sets: Vec<(&'static [&'static str], Vec<Value>)> = Vec::new();
    for metric in METRICS.iter().filter(|metric| metric.line == message) {
        let counts = metric.outcome.is_some() && metric.outcome == outcome.as_deref();
        let measures = metric.field.is_some_and(|field| line.get(field).is_some_and(Value::is_number));
        if !counts && !measures {
            continue;
        }
        let value = metric.field.and_then(|field| line.get(field)).cloned();
        line.insert(metric.name.to_owned(), value.unwrap_or_else(|| json!(1)));
        let told = json!({"Name": metric.name, "Unit": metric.unit});
        match sets.iter_mut().find(|(by, _)| *by == metric.by) {
            Some((_, metrics)) => metrics.push(told),
            None => sets.push((metric.by, vec![told])),
        }
    }
    if sets.is_empty() {
        return;
    }
    let directives: Vec<Value> = sets.into_iter().map(|(by, metrics)| directive(line, by, &metrics)).collect();
    line.insert("_aws".to_owned(), json!({"Timestamp": now_ms, "CloudWatchMetrics": directives}));
}

/// The total, and the metric told apart by those of its dimensions that the line has as texts.
fn directive(line: &Map<String, Value>, by: &[&str], metrics: &[Value]) -> Value {
    let known: Vec<&&str> = by.iter().filter(|name| line.get(**name).is_some_and(Value::is_string)).collect();
    let mut dimensions = vec![json!([])];
    if known.len() == by.len() && !by.is_empty() {
        dimensions.push(json!(by));
    }
    json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": metrics})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn embedded(line: Value) -> Value {
        let Value::Object(mut line) = line else { return Value::Null };
        embed(&mut line, 1_795_953_600_000);
        Value::Object(line)
    }

    #[test]
    fn a_rejected_delivery_counts_by_provider_and_reason() {
        let line = json!({"message": "delivery", "outcome": "rejected", "provider": "acme", "reason": "no-signature"});
        let line = embedded(line);
        assert_eq!(line["Rejected"], 1);
        assert_eq!(
            line["_aws"],
            json!({"Timestamp": 1_795_953_600_000_i64, "CloudWatchMetrics": [{
                "Namespace": "hookledger", "Dimensions": [[], ["provider", "reason"]],
                "Metrics": [{"Name": "Rejected", "Unit": "Count"}],
            }]})
        );
    }

    #[test]
    fn the_outcome_counts_and_the_duration_is_measured() {
        let line = embedded(
            json!({"message": "operation", "outcome": "done", "operation": "settle-usage", "duration_ms": 12}),
        );
        assert_eq!((line["Applied"].as_i64(), line["OperationDuration"].as_i64()), (Some(1), Some(12)));
        let directives = line["_aws"]["CloudWatchMetrics"].as_array().unwrap();
        assert_eq!(directives.len(), 1); // both are told apart by the operation
        assert_eq!(directives[0]["Metrics"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_line_without_a_metric_stays_as_it_is() {
        let line = json!({"message": "panic", "place": "src/lib.rs:1:1"});
        assert_eq!(embedded(line.clone()), line);
    }

    #[test]
    fn no_value_is_taken_for_a_dimension_that_the_line_lacks() {
        let line = embedded(json!({"message": "delivery", "outcome": "accepted"}));
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([[]]));
    }
}
