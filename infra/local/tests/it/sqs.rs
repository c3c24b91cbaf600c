//! SQS through the SDK: deduplication, group blocking, redrive, batches, errors.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, MessageAttributeValue, MessageSystemAttributeName,
    MessageSystemAttributeNameForSends, MessageSystemAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry,
};

use crate::{embedded, sqs_client};

/// Makes a FIFO queue and returns its URL.
pub(crate) async fn create(client: &Client, name: &str, attributes: &[(QueueAttributeName, &str)]) -> String {
    let mut request = client.create_queue().queue_name(name).attributes(QueueAttributeName::FifoQueue, "true");
    for (attribute, value) in attributes {
        request = request.attributes(attribute.clone(), *value);
    }
    request.send().await.unwrap().queue_url.unwrap()
}

async fn send(client: &Client, url: &str, group: &str, id: &str) -> String {
    let request =
        client.send_message().queue_url(url).message_group_id(group).message_deduplication_id(id).message_body(id);
    request.send().await.unwrap().message_id.unwrap()
}

async fn receive(client: &Client, url: &str) -> Vec<aws_sdk_sqs::types::Message> {
    let request = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(10)
        .message_attribute_names("All")
        .message_system_attribute_names(MessageSystemAttributeName::All);
    request.send().await.unwrap().messages.unwrap_or_default()
}

fn bodies(messages: &[aws_sdk_sqs::types::Message]) -> Vec<&str> {
    messages.iter().filter_map(|m| m.body()).collect()
}

#[tokio::test]
async fn sqs_07_deduplication_and_group_blocking_hold_through_the_sdk() {
    let (aws, clock) = embedded();
    let client = sqs_client(&aws);
    let url = create(&client, "jobs.fifo", &[]).await;
    let first = send(&client, &url, "a", "a1").await;
    assert_eq!(send(&client, &url, "a", "a1").await, first);
    send(&client, &url, "a", "a2").await;
    let taken = receive(&client, &url).await;
    assert_eq!(bodies(&taken), ["a1", "a2"]);
    send(&client, &url, "a", "a3").await;
    assert_eq!(receive(&client, &url).await.len(), 0);
    let attributes = taken[0].attributes().unwrap();
    for (name, value) in [
        (MessageSystemAttributeName::MessageGroupId, "a"),
        (MessageSystemAttributeName::MessageDeduplicationId, "a1"),
        (MessageSystemAttributeName::ApproximateReceiveCount, "1"),
        (MessageSystemAttributeName::SentTimestamp, "1700000000000"),
    ] {
        assert_eq!(attributes[&name], value);
    }
    for message in &taken {
        let delete = client.delete_message().queue_url(&url);
        let handle = message.receipt_handle().unwrap();
        delete.receipt_handle(handle).send().await.unwrap();
    }
    clock.advance(299_000);
    assert_eq!(send(&client, &url, "a", "a1").await, first);
    assert_eq!(bodies(&receive(&client, &url).await), ["a3"]);
}

#[tokio::test]
async fn sqs_09_redrive_to_the_dead_letter_queue() {
    let (aws, clock) = embedded();
    let client = sqs_client(&aws);
    let dead = create(&client, "dead.fifo", &[]).await;
    let policy =
        format!(r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":"1"}}"#, hookledger_local::queue_arn("dead.fifo"));
    let attributes =
        [(QueueAttributeName::RedrivePolicy, policy.as_str()), (QueueAttributeName::VisibilityTimeout, "10")];
    let url = create(&client, "jobs.fifo", &attributes).await;
    let id = send(&client, &url, "a", "a1").await;
    assert_eq!(receive(&client, &url).await.len(), 1);
    clock.advance(10_000);
    assert_eq!(receive(&client, &url).await.len(), 0);
    let buried = receive(&client, &dead).await;
    assert_eq!(buried[0].message_id(), Some(id.as_str()));
    let attributes = buried[0].attributes().unwrap();
    let name = MessageSystemAttributeName::MessageDeduplicationId;
    assert_eq!(attributes[&name], id);
}

#[tokio::test]
async fn trace_headers_and_attributes_pass_through() {
    let (aws, _) = embedded();
    let client = sqs_client(&aws);
    let url = create(&client, "jobs.fifo", &[]).await;
    let attribute = MessageAttributeValue::builder()
        .data_type("String")
        .string_value("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .build()
        .unwrap();
    let header = MessageSystemAttributeValue::builder()
        .data_type("String")
        .string_value("Root=1-5759e988-bd862e3fe1be46a994272793")
        .build()
        .unwrap();
    let sent = client
        .send_message()
        .queue_url(&url)
        .message_group_id("a")
        .message_deduplication_id("1")
        .message_body("abc")
        .message_attributes("traceparent", attribute.clone())
        .message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, header)
        .send()
        .await
        .unwrap();
    // RFC 1321, appendix A.5: the digest of "abc".
    let md5 = Some("900150983cd24fb0d6963f7d28e17f72");
    assert_eq!(sent.md5_of_message_body(), md5);
    // Worked out apart from this code, by the algorithm in the SQS developer guide.
    let md5 = Some("120017706e835176cc391fbb5520ed06");
    assert_eq!(sent.md5_of_message_attributes(), md5);
    let got = receive(&client, &url).await;
    assert_eq!(got[0].md5_of_message_attributes(), md5);
    assert_eq!(got[0].message_attributes().unwrap()["traceparent"], attribute);
    let name = MessageSystemAttributeName::AwsTraceHeader;
    let header = "Root=1-5759e988-bd862e3fe1be46a994272793";
    assert_eq!(got[0].attributes().unwrap()[&name], header);
}

#[tokio::test]
async fn ddb_10_a_batch_answers_for_each_entry() {
    let (aws, clock) = embedded();
    let client = sqs_client(&aws);
    let url = create(&client, "jobs.fifo", &[]).await;
    let entry = |id: &str, body: &str| {
        SendMessageBatchRequestEntry::builder()
            .id(id)
            .message_body(body)
            .message_group_id(id)
            .message_deduplication_id(id)
            .build()
            .unwrap()
    };
    let sent = client
        .send_message_batch()
        .queue_url(&url)
        .entries(entry("good", "x"))
        .entries(entry("long", &"x".repeat(262_145)))
        .send()
        .await
        .unwrap();
    assert_eq!(sent.successful()[0].id(), "good");
    assert_eq!(sent.failed()[0].id(), "long");
    assert_eq!(sent.failed()[0].code(), "InvalidParameterValue");
    assert!(sent.failed()[0].sender_fault());
    let handle = receive(&client, &url).await.remove(0).receipt_handle.unwrap();
    clock.advance(30_000);
    let delete = DeleteMessageBatchRequestEntry::builder().id("late").receipt_handle(handle).build().unwrap();
    let request = client.delete_message_batch().queue_url(&url);
    let deleted = request.entries(delete).send().await.unwrap();
    assert_eq!(deleted.failed()[0].code(), "ReceiptHandleIsInvalid");
    let repeated = client
        .send_message_batch()
        .queue_url(&url)
        .entries(entry("same", "x"))
        .entries(entry("same", "x"))
        .send()
        .await
        .unwrap_err()
        .into_service_error();
    assert!(repeated.is_batch_entry_ids_not_distinct());
}

#[tokio::test]
async fn errors_are_the_sdks_typed_errors() {
    let (aws, clock) = embedded();
    let client = sqs_client(&aws);
    let request = client.get_queue_url().queue_name("nowhere.fifo");
    let error = request.send().await.unwrap_err().into_service_error();
    assert!(error.is_queue_does_not_exist());
    let url = create(&client, "jobs.fifo", &[]).await;
    send(&client, &url, "a", "a1").await;
    let handle = receive(&client, &url).await.remove(0).receipt_handle.unwrap();
    clock.advance(30_000);
    let delete = client.delete_message().queue_url(&url);
    let error = delete.receipt_handle(&handle).send().await.unwrap_err();
    // aws/aws-sdk-js#1279: an expired handle on a FIFO queue.
    assert_eq!(error.code(), Some("InvalidParameterValue"));
    let delete = client.delete_message().queue_url(&url);
    let error = delete.receipt_handle("nonsense").send().await;
    let error = error.unwrap_err().into_service_error();
    assert!(error.is_receipt_handle_is_invalid());
    let again = client
        .create_queue()
        .queue_name("jobs.fifo")
        .attributes(QueueAttributeName::FifoQueue, "true")
        .attributes(QueueAttributeName::VisibilityTimeout, "1");
    let error = again.send().await.unwrap_err().into_service_error();
    assert!(error.is_queue_name_exists());
}

#[tokio::test]
async fn attributes_counts_and_purge() {
    let (aws, _) = embedded();
    let client = sqs_client(&aws);
    let url = create(&client, "jobs.fifo", &[]).await;
    let set = client.set_queue_attributes().queue_url(&url);
    let set = set.attributes(QueueAttributeName::VisibilityTimeout, "77");
    set.send().await.unwrap();
    send(&client, &url, "a", "a1").await;
    send(&client, &url, "b", "b1").await;
    let request = client.receive_message().queue_url(&url);
    let one = request.send().await.unwrap().messages.unwrap();
    assert_eq!(one.len(), 1);
    assert!(one[0].attributes().is_none());
    let all = || async {
        let request = client.get_queue_attributes().queue_url(&url);
        let request = request.attribute_names(QueueAttributeName::All);
        request.send().await.unwrap().attributes.unwrap()
    };
    let got = all().await;
    assert_eq!(got[&QueueAttributeName::VisibilityTimeout], "77");
    assert_eq!(got[&QueueAttributeName::ApproximateNumberOfMessages], "1");
    let in_flight = QueueAttributeName::ApproximateNumberOfMessagesNotVisible;
    assert_eq!(got[&in_flight], "1");
    client.purge_queue().queue_url(&url).send().await.unwrap();
    let got = all().await;
    assert_eq!(got[&QueueAttributeName::ApproximateNumberOfMessages], "0");
    let listed = client.list_queues().send().await.unwrap();
    assert_eq!(listed.queue_urls(), [url]);
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_waits_for_a_message_or_its_end() {
    let (aws, _) = embedded();
    let client = sqs_client(&aws);
    let url = create(&client, "jobs.fifo", &[]).await;
    let poll = client.receive_message().queue_url(&url).wait_time_seconds(20);
    let waiting = tokio::spawn(poll.clone().send());
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    send(&client, &url, "a", "a1").await;
    let got = waiting.await.unwrap().unwrap().messages.unwrap();
    assert_eq!(bodies(&got), ["a1"]);
    let started = tokio::time::Instant::now();
    let nothing = poll.send().await.unwrap();
    assert_eq!(nothing.messages(), []);
    assert_eq!(started.elapsed().as_secs(), 20);
}
