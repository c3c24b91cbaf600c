//! The template keeps the rules of `queues`, and each planted mistake against one is found.

use serde_json::{Value, json};

use super::{document, named, queues, template, with};

const JOB_SOURCE: &str = "/Resources/JobFunction/Properties/Events/Queue/Properties";

const BILLING_QUEUE: &str = "/Resources/BillingQueue/Properties";

#[test]
fn sqs_03_every_event_source_reports_its_failed_items() {
    let template = template();
    let functions = document::of_kind(&template, "AWS::Serverless::Function");
    let sources: Vec<(&str, &str)> = functions
        .iter()
        .flat_map(|function| function.property("Events").as_object().into_iter().flatten())
        .filter(|(_, event)| event["Type"] == "SQS")
        .map(|(name, event)| (name.as_str(), document::target(&event["Properties"]["Queue"]).unwrap()))
        .collect();
    // The check says nothing of a source that is not there: these eight are.
    let eight = [
        ("Queue", "BillingQueue"),
        ("Billing", "BillingDeadLetters"),
        ("Job", "JobDeadLetters"),
        ("Outbound", "OutboundDeadLetters"),
        ("Queue", "JobQueue"),
        ("Queue", "OutboundQueue"),
        ("DeadLetters", "ReconcileDeadLetters"),
        ("Queue", "ReconcileQueue"),
    ];
    assert_eq!(sources, eight);
    assert_eq!(queues::check_event_sources(&template), []);
}

#[test]
fn sqs_03_a_source_without_the_flag_is_found() {
    for value in [Value::Null, json!([])] {
        let changed = with(JOB_SOURCE, "FunctionResponseTypes", value);
        let findings = queues::check_event_sources(&changed);
        assert_eq!(named(&findings), [("partial-batch", "JobFunction.Queue")]);
    }
}

#[test]
fn sqs_06_a_batch_or_window_that_fifo_refuses_is_found() {
    for size in [json!(50), json!(11), json!(0), Value::Null] {
        let findings = queues::check_event_sources(&with(JOB_SOURCE, "BatchSize", size));
        assert_eq!(named(&findings), [("batch-size", "JobFunction.Queue")]);
    }
    let windowed = with(JOB_SOURCE, "MaximumBatchingWindowInSeconds", json!(5));
    let findings = queues::check_event_sources(&windowed);
    assert_eq!(named(&findings), [("batch-window", "JobFunction.Queue")]);
}

#[test]
fn sqs_05_visibility_is_at_least_six_timeouts_of_the_consumer() {
    assert_eq!(queues::check_visibility(&template()), []);
}

#[test]
fn sqs_05_a_visibility_below_six_timeouts_is_found() {
    let too_short = [("visibility", "BillingQueue")];
    // 30 s of function: 179 s is one too few; unset is SQS's own 30 s.
    for visibility in [json!(179), json!(30), Value::Null] {
        let changed = with(BILLING_QUEUE, "VisibilityTimeout", visibility);
        assert_eq!(named(&queues::check_visibility(&changed)), too_short);
    }
    // The other side of the same rule: 31 s x 6 = 186 s, above the queue's 180 s.
    let slower = with("/Resources/BillingFunction/Properties", "Timeout", json!(31));
    assert_eq!(named(&queues::check_visibility(&slower)), too_short);
    let unread = with("/Resources/BillingFunction/Properties", "Events", json!({}));
    assert_eq!(named(&queues::check_visibility(&unread)), [("unread", "BillingQueue")]);
}

#[test]
fn sqs_10_dead_letters_are_fifo_and_outlive_their_source() {
    assert_eq!(queues::check_queues(&template()), []);
}

#[test]
fn sqs_10_a_wrong_redrive_or_retention_is_found() {
    let redrive = "/Resources/BillingQueue/Properties/RedrivePolicy";
    let three = queues::check_queues(&with(redrive, "maxReceiveCount", json!(3)));
    assert_eq!(named(&three), [("receive-count", "BillingQueue")]);
    let refused = queues::check_queues(&with(redrive, "maxReceiveCount", json!(5_000)));
    let both = [("receive-count-range", "BillingQueue"), ("receive-count", "BillingQueue")];
    assert_eq!(named(&refused), both);

    let dead_letters = "/Resources/JobDeadLetters/Properties";
    let four_days = with(dead_letters, "MessageRetentionPeriod", json!(345_600));
    assert_eq!(named(&queues::check_queues(&four_days)), [("retention", "JobDeadLetters")]);
    let standard = with(dead_letters, "FifoQueue", Value::Null);
    assert_eq!(named(&queues::check_queues(&standard)), [("queue-form", "JobDeadLetters")]);

    let none = queues::check_queues(&with(BILLING_QUEUE, "RedrivePolicy", Value::Null));
    assert!(named(&none).contains(&("dead-letters", "BillingQueue")), "{none:?}");
}
