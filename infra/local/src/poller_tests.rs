//! The poller against Lambda's documented rules.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Mutex;

use tokio::sync::watch;

use super::*;
use crate::clock::ManualClock;
use crate::fifo::{Depth, OutgoingMessage, QueueAttributes};
use crate::lambda::handler;

const Q: &str = "jobs.fifo";
const LIMIT: Duration = Duration::from_secs(5);

fn engine() -> (Arc<QueueEngine>, ManualClock) {
    let clock = ManualClock::new(1_000_000);
    let engine = QueueEngine::memory(Arc::new(clock.clone()), 1);
    engine.create_queue(Q, QueueAttributes::default()).unwrap();
    (Arc::new(engine), clock)
}

fn send(engine: &QueueEngine, group: &str, id: &str) -> String {
    let message = OutgoingMessage::new(group, id, id);
    engine.send(Q, message).unwrap().message_id
}

fn poller(engine: &Arc<QueueEngine>, concurrency: usize, handler: Handler) -> Poller {
    let config = PollerConfig { queue: Q.to_owned(), batch_size: 10, function_timeout: LIMIT, concurrency };
    Poller::new(Arc::clone(engine), config, handler)
}

/// A handler that always gives this answer.
fn answers(answer: &Value) -> Handler {
    let answer = answer.clone();
    handler(move |_| {
        let answer = answer.clone();
        async move { Ok::<_, BoxErrorText>(answer) }
    })
}

type BoxErrorText = &'static str;

fn depth(visible: usize, in_flight: usize) -> Depth {
    Depth { visible, in_flight }
}

#[tokio::test]
async fn the_event_is_lambdas() {
    let (engine, _) = engine();
    let mut message = OutgoingMessage::new("g1", "d1", "abc");
    let attribute = MessageAttribute::string("v");
    message.attributes.insert("k".to_owned(), attribute);
    message.trace_header = Some("Root=1".to_owned());
    let sent = engine.send(Q, message).unwrap();
    let seen = Arc::new(Mutex::new(Value::Null));
    let seen_by_handler = Arc::clone(&seen);
    let function = handler(move |event| {
        *seen_by_handler.lock().unwrap() = event;
        async { Ok::<_, BoxErrorText>(Value::Null) }
    });
    assert_eq!(poller(&engine, 1, function).poll_once().await, Ok(1));
    let event = seen.lock().unwrap().clone();
    let record = &event["Records"][0];
    assert_eq!(record["messageId"], sent.message_id);
    assert_eq!(record["body"], "abc");
    // RFC 1321, appendix A.5.
    assert_eq!(record["md5OfBody"], "900150983cd24fb0d6963f7d28e17f72");
    assert_eq!(record["eventSource"], "aws:sqs");
    let arn = "arn:aws:sqs:us-east-1:000000000000:jobs.fifo";
    assert_eq!(record["eventSourceARN"], arn);
    assert_eq!(record["awsRegion"], "us-east-1");
    let expected = json!({
        "SenderId": "000000000000",
        "SentTimestamp": "1000000",
        "ApproximateReceiveCount": "1",
        "ApproximateFirstReceiveTimestamp": "1000000",
        "MessageGroupId": "g1",
        "MessageDeduplicationId": "d1",
        "SequenceNumber": sent.sequence_number,
        "AWSTraceHeader": "Root=1",
    });
    assert_eq!(record["attributes"], expected);
    let expected = json!({ "k": {
        "stringValue": "v", "stringListValues": [], "binaryListValues": [], "dataType": "String",
    }});
    assert_eq!(record["messageAttributes"], expected);
}

#[tokio::test]
async fn sqs_01_only_what_did_not_fail_is_deleted_and_a_failed_group_waits() {
    let (engine, clock) = engine();
    let failed = send(&engine, "g1", "a");
    send(&engine, "g2", "b");
    let untouched = send(&engine, "g1", "c");
    let answer = json!({ "batchItemFailures": [
        { "itemIdentifier": failed }, { "itemIdentifier": untouched },
    ]});
    let first = poller(&engine, 1, answers(&answer));
    assert_eq!(first.poll_once().await, Ok(3));
    assert_eq!(engine.depth(Q), Ok(depth(0, 2)));
    assert_eq!(first.poll_once().await, Ok(0));
    clock.advance(30_000);
    let second = poller(&engine, 1, answers(&Value::Null));
    assert_eq!(second.poll_once().await, Ok(2));
    assert_eq!(engine.depth(Q), Ok(depth(0, 0)));
}

#[tokio::test]
async fn the_answers_that_lambda_takes_for_success_and_for_failure() {
    let unknown = json!({ "batchItemFailures": [{ "itemIdentifier": "unknown" }] });
    for (answer, left) in [
        (json!(null), 0),
        (json!({}), 0),
        (json!({ "batchItemFailures": [] }), 0),
        (json!({ "batchItemFailures": null }), 0),
        (json!({ "batchItemFailures": [{ "itemIdentifier": "" }] }), 2),
        (json!({ "batchItemFailures": [{ "itemIdentifier": null }] }), 2),
        (json!({ "batchItemFailures": [{ "messageId": "x" }] }), 2),
        (json!({ "batchItemFailures": "all" }), 2),
        (json!("done"), 2),
        (unknown, 2),
    ] {
        let (engine, _) = engine();
        send(&engine, "a", "1");
        send(&engine, "b", "2");
        let poller = poller(&engine, 1, answers(&answer));
        assert_eq!(poller.poll_once().await, Ok(2));
        assert_eq!(engine.depth(Q), Ok(depth(0, left)), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn sqs_04_an_error_or_a_timeout_leaves_the_whole_batch_hidden() {
    let (engine, _) = engine();
    send(&engine, "a", "1");
    let fails = handler(|_| async { Err::<Value, _>("no") });
    assert_eq!(poller(&engine, 1, fails).poll_once().await, Ok(1));
    send(&engine, "b", "2");
    let hangs = handler(|_| std::future::pending::<Result<Value, BoxErrorText>>());
    assert_eq!(poller(&engine, 1, hangs).poll_once().await, Ok(1));
    assert_eq!(engine.depth(Q), Ok(depth(0, 2)));
}

#[tokio::test(start_paused = true)]
async fn sqs_08_no_more_is_received_than_can_run() {
    let (engine, _) = engine();
    let (release, gate) = watch::channel(false);
    let function = handler(move |_| {
        let mut gate = gate.clone();
        async move {
            let _ = gate.wait_for(|open| *open).await;
            Ok::<_, BoxErrorText>(Value::Null)
        }
    });
    let mut poller = poller(&engine, 2, function);
    Arc::make_mut(&mut poller.config).batch_size = 1;
    for group in ["a", "b", "c", "d"] {
        send(&engine, group, group);
    }
    let (stop, stopped) = watch::channel(false);
    let loop_ = tokio::spawn(async move { poller.run(stopped).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(engine.depth(Q), Ok(depth(2, 2)));
    for message in engine.peek(Q).unwrap().iter().skip(2) {
        assert_eq!(message.receive_count, 0);
    }
    release.send(true).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(engine.depth(Q), Ok(depth(0, 0)));
    stop.send(true).unwrap();
    assert_eq!(loop_.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_the_running_invocation_end() {
    let (engine, _) = engine();
    send(&engine, "a", "1");
    let function = handler(|_| async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok::<_, BoxErrorText>(Value::Null)
    });
    let poller = poller(&engine, 1, function);
    let (stop, stopped) = watch::channel(false);
    let loop_ = tokio::spawn(async move { poller.run(stopped).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&engine, "b", "2");
    stop.send(true).unwrap();
    assert_eq!(loop_.await.unwrap(), Ok(()));
    assert_eq!(engine.depth(Q), Ok(depth(1, 0)));
}
