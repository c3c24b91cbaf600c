//! Injected faults: what the SDK makes of them, and that the log counts the calls behind one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use hookledger_local::hook::{Call, CallHook, CallLog, Fault, HookDecision, Service};

use crate::dynamodb::{create_table, s};
use crate::{dynamodb_client, embedded, sqs_client};

/// Says one decision after the other for calls of one operation, then passes.
#[derive(Debug)]
struct Script {
    operation: &'static str,
    decisions: Mutex<VecDeque<HookDecision>>,
}

impl Script {
    fn of(operation: &'static str, decisions: &[HookDecision]) -> Arc<Self> {
        Arc::new(Self { operation, decisions: Mutex::new(decisions.iter().cloned().collect()) })
    }
}

impl CallHook for Script {
    fn on_call(&self, call: &Call) -> HookDecision {
        if call.operation != self.operation {
            return HookDecision::Pass;
        }
        let next = self.decisions.lock().unwrap().pop_front();
        next.unwrap_or(HookDecision::Pass)
    }
}

fn put(client: &aws_sdk_dynamodb::Client) -> PutItemFluentBuilder {
    client
        .put_item()
        .table_name("events")
        .item("pk", s("E"))
        .item("sk", s("r"))
        .condition_expression("attribute_not_exists(pk)")
        .return_consumed_capacity(ReturnConsumedCapacity::Total)
}

#[tokio::test(start_paused = true)]
async fn ddb_01_the_sdks_own_retry_of_a_lost_answer_fails_its_condition() {
    let (aws, _) = embedded();
    let client = dynamodb_client(&aws);
    create_table(&client, "events").await;
    let log = Arc::new(CallLog::default());
    aws.add_hook(log.clone());
    aws.add_hook(Script::of("PutItem", &[HookDecision::lost_answer()]));
    let error = put(&client).send().await.unwrap_err().into_service_error();
    assert!(error.is_conditional_check_failed_exception());
    let records = log.take();
    let statuses: Vec<_> = records.iter().map(|r| r.status).collect();
    assert_eq!(statuses, [Some(200), Some(400)]);
    // One item under 1 KB: one write unit.
    assert_eq!(records[0].capacity_milli_units, Some(1_000));
    assert_eq!(records[0].target.as_deref(), Some("events"));
}

#[tokio::test(start_paused = true)]
async fn throttles_and_internal_errors_are_retried_and_then_reported() {
    let (aws, _) = embedded();
    let client = dynamodb_client(&aws);
    create_table(&client, "events").await;
    let log = Arc::new(CallLog::default());
    aws.add_hook(log.clone());
    let service = Service::DynamoDb;
    let faults = [
        HookDecision::FailBefore(Fault::throttled(service)),
        HookDecision::FailBefore(Fault::internal_server_error(service)),
    ];
    aws.add_hook(Script::of("PutItem", &faults));
    put(&client).send().await.unwrap();
    assert_eq!(log.count("PutItem"), 3);
    aws.clear_hooks();
    let always = vec![HookDecision::FailBefore(Fault::throttled(service)); 20];
    aws.add_hook(Script::of("PutItem", &always));
    let error = put(&client).send().await.unwrap_err();
    assert_eq!(error.code(), Some("ProvisionedThroughputExceededException"));
}

#[tokio::test(start_paused = true)]
async fn an_sqs_throttle_is_retried_by_its_sdk() {
    let (aws, _) = embedded();
    let client = sqs_client(&aws);
    let url = crate::sqs::create(&client, "jobs.fifo", &[]).await;
    let service = Service::Sqs;
    let faults = [
        HookDecision::FailBefore(Fault::throttled(service)),
        HookDecision::FailBefore(Fault::internal_server_error(service)),
    ];
    aws.add_hook(Script::of("SendMessage", &faults));
    let message = client.send_message().queue_url(&url).message_body("x");
    let message = message.message_group_id("a").message_deduplication_id("1");
    message.send().await.unwrap();
    assert_eq!(aws.queues().depth("jobs.fifo").unwrap().visible, 1);
}

#[tokio::test(start_paused = true)]
async fn ddb_02_an_injected_conflict_has_its_reasons() {
    let (aws, _) = embedded();
    let client = dynamodb_client(&aws);
    create_table(&client, "events").await;
    let conflict = Fault::transaction_conflict(2, &[1]);
    let all = vec![HookDecision::FailBefore(conflict); 10];
    aws.add_hook(Script::of("TransactWriteItems", &all));
    let item = |pk: &str| {
        let put = aws_sdk_dynamodb::types::Put::builder()
            .table_name("events")
            .item("pk", s(pk))
            .item("sk", s("r"))
            .build()
            .unwrap();
        aws_sdk_dynamodb::types::TransactWriteItem::builder().put(put).build()
    };
    let request = client.transact_write_items();
    let request = request.transact_items(item("a")).transact_items(item("b"));
    let error = request.send().await.unwrap_err().into_service_error();
    use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException as Cancelled;
    let Cancelled(cancelled) = error else { unreachable!("a conflict cancels") };
    let codes: Vec<_> = cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect();
    assert_eq!(codes, ["None", "TransactionConflict"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends_by_the_sdks_timeout_and_may_have_been_applied() {
    let (aws, _) = embedded();
    let client = dynamodb_client(&aws);
    create_table(&client, "events").await;
    let timeouts = TimeoutConfig::builder().read_timeout(Duration::from_secs(2)).build();
    let config = client.config().to_builder().timeout_config(timeouts);
    let config = config.retry_config(aws_sdk_dynamodb::config::retry::RetryConfig::disabled());
    let impatient = aws_sdk_dynamodb::Client::from_conf(config.build());
    let silence = [HookDecision::FailAfter(Fault::Timeout)];
    aws.add_hook(Script::of("PutItem", &silence));
    let started = tokio::time::Instant::now();
    let error = put(&impatient).send().await.unwrap_err();
    assert!(matches!(error, SdkError::DispatchFailure(failure) if failure.is_timeout()));
    assert_eq!(started.elapsed().as_secs(), 2);
    let get = client.get_item().table_name("events").consistent_read(true);
    let got = get.key("pk", s("E")).key("sk", s("r")).send().await.unwrap();
    assert!(got.item().is_some());
}

#[tokio::test(start_paused = true)]
async fn lam_04_a_dropped_caller_does_not_recall_its_request() {
    let (aws, _) = embedded();
    let client = dynamodb_client(&aws);
    create_table(&client, "events").await;
    let on_its_way = Duration::from_secs(5);
    let slow = [HookDecision::Delay(on_its_way, Box::new(HookDecision::Pass))];
    aws.add_hook(Script::of("PutItem", &slow));
    let killed = tokio::time::timeout(Duration::from_secs(1), put(&client).send()).await;
    assert!(killed.is_err());
    let get = client.get_item().table_name("events").consistent_read(true);
    let get = get.key("pk", s("E")).key("sk", s("r"));
    assert!(get.clone().send().await.unwrap().item().is_none());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(get.send().await.unwrap().item().is_some());
}
