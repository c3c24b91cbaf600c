//! DynamoDB through the SDK: conditions, transactions, returned items, capacity.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, ConditionCheck, KeySchemaElement, KeyType, Put,
    ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure, ScalarAttributeType, TimeToLiveSpecification,
    TransactWriteItem,
};

use crate::{dynamodb_client, embedded};

pub(crate) async fn create_table(client: &Client, name: &str) {
    let key =
        |name: &str, kind: KeyType| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    let attribute = |name: &str| {
        AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build().unwrap()
    };
    client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(key("pk", KeyType::Hash))
        .key_schema(key("sk", KeyType::Range))
        .attribute_definitions(attribute("pk"))
        .attribute_definitions(attribute("sk"))
        .send()
        .await
        .unwrap();
}

pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// A put of `{pk, sk: r, by}` that must not overwrite.
fn put(table: &str, pk: &str, by: &str) -> Put {
    Put::builder()
        .table_name(table)
        .item("pk", s(pk))
        .item("sk", s("r"))
        .item("by", s(by))
        .condition_expression("attribute_not_exists(pk)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
        .unwrap()
}

#[tokio::test]
async fn ddb_01_a_failed_condition_returns_the_old_item() {
    let (aws, _) = embedded();
    let client = dynamodb_client(&aws);
    create_table(&client, "events").await;
    let put = |by: &str| {
        client
            .put_item()
            .table_name("events")
            .item("pk", s("E"))
            .item("sk", s("r"))
            .item("token", s(by))
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
    };
    put("first").await.unwrap();
    let error = put("second").await.unwrap_err().into_service_error();
    let failed = match error {
        aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(e) => e,
        other => unreachable!("{other:?}"),
    };
    assert_eq!(failed.item().unwrap()["token"], s("first"));
}

#[tokio::test]
async fn ddb_02_cancellation_reasons_are_parsed_per_item_with_the_old_item() {
    let (aws, _) = embedded();
    let client = dynamodb_client(&aws);
    create_table(&client, "jobs").await;
    create_table(&client, "ledger").await;
    let transact = |items: Vec<TransactWriteItem>| {
        client
            .transact_write_items()
            .set_transact_items(Some(items))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
    };
    let item = |put: Put| TransactWriteItem::builder().put(put).build();
    let done = transact(vec![item(put("ledger", "c", "first"))]).await.unwrap();
    // One item under 1 KB: 2 write units in a transaction (DynamoDB developer guide, capacity consumption).
    assert_eq!(done.consumed_capacity()[0].capacity_units(), Some(2.0));
    let check = ConditionCheck::builder()
        .table_name("jobs")
        .key("pk", s("J"))
        .key("sk", s("t"))
        .condition_expression("attribute_not_exists(pk)")
        .build()
        .unwrap();
    let error =
        transact(vec![TransactWriteItem::builder().condition_check(check).build(), item(put("ledger", "c", "second"))])
            .await
            .unwrap_err()
            .into_service_error();
    assert!(error.is_transaction_canceled_exception());
    assert_eq!(error.code(), Some("TransactionCanceledException"));
    use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException as Cancelled;
    let Cancelled(cancelled) = error else { unreachable!("checked above") };
    let reasons = cancelled.cancellation_reasons();
    assert_eq!(reasons[0].code(), Some("None"));
    assert_eq!(reasons[1].code(), Some("ConditionalCheckFailed"));
    assert_eq!(reasons[1].item().unwrap()["by"], s("first"));
}

#[tokio::test]
async fn queries_batches_updates_and_table_calls_answer_as_the_sdk_expects() {
    let (aws, _) = embedded();
    let client = dynamodb_client(&aws);
    create_table(&client, "jobs").await;
    for sk in ["t#1", "t#2", "x"] {
        let put = client.put_item().table_name("jobs");
        put.item("pk", s("J")).item("sk", s(sk)).send().await.unwrap();
    }
    let found = client
        .query()
        .table_name("jobs")
        .key_condition_expression("pk = :pk AND begins_with(sk, :t)")
        .expression_attribute_values(":pk", s("J"))
        .expression_attribute_values(":t", s("t#"))
        .consistent_read(true)
        .send()
        .await
        .unwrap();
    assert_eq!(found.count(), 2);
    let updated = client
        .update_item()
        .table_name("jobs")
        .key("pk", s("J"))
        .key("sk", s("x"))
        .update_expression("ADD n :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .return_values(aws_sdk_dynamodb::types::ReturnValue::AllNew)
        .send()
        .await
        .unwrap();
    let new = updated.attributes().unwrap();
    assert_eq!(new["n"], AttributeValue::N("1".to_owned()));
    let tables = client.list_tables().send().await.unwrap();
    assert_eq!(tables.table_names(), ["jobs"]);
    let ttl = TimeToLiveSpecification::builder().attribute_name("ttl").enabled(true).build().unwrap();
    let update = client.update_time_to_live().table_name("jobs");
    update.time_to_live_specification(ttl).send().await.unwrap();
    let described = client.describe_time_to_live().table_name("jobs").send();
    let described = described.await.unwrap();
    let description = described.time_to_live_description().unwrap();
    assert_eq!(description.attribute_name(), Some("ttl"));
    let missing = client.describe_table().table_name("nowhere").send().await;
    let error = missing.unwrap_err().into_service_error();
    assert!(error.is_resource_not_found_exception());
}

#[tokio::test]
async fn an_aws_kept_in_a_directory_has_its_items_and_messages_when_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let clock = std::sync::Arc::new(hookledger_local::ManualClock::new(crate::START_MS));
        hookledger_local::EmbeddedAws::open(directory.path(), clock).unwrap()
    };
    let aws = open();
    let client = dynamodb_client(&aws);
    create_table(&client, "events").await;
    let put = client.put_item().table_name("events");
    put.item("pk", s("E")).item("sk", s("r")).send().await.unwrap();
    crate::sqs::create(&crate::sqs_client(&aws), "jobs.fifo", &[]).await;
    // Never closed, as by kill -9: what was answered has to be in the files already.
    std::mem::forget((client, aws));
    let aws = open();
    let client = dynamodb_client(&aws);
    let get = client.get_item().table_name("events").consistent_read(true);
    let got = get.key("pk", s("E")).key("sk", s("r")).send().await.unwrap();
    assert_eq!(got.item().unwrap()["pk"], s("E"));
    assert_eq!(aws.queues().queue_names(), ["jobs.fifo"]);
}
