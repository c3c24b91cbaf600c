//! SQS's JSON protocol (`X-Amz-Target: AmazonSQS.<Op>`) onto the queue engine.
//!
//! Errors carry both names that AWS gives them: `__type` in the body and the older code in `x-amzn-query-error`, which
//! is the one that the SDKs match on. Digests are filled as AWS fills them. `WaitTimeSeconds` is served by
//! [`call_waiting`]; [`call`] answers at once.

mod batch;
mod shapes;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::fifo::engine::MAX_BATCH;
use crate::fifo::message::{md5_of_attributes, md5_of_body};
use crate::fifo::{QueueAttributes, QueueEngine, QueueError};
use crate::wire::WireResponse;
use shapes::{Body, received_json};

/// Answers one SQS operation, e.g. `SendMessage`, without waiting.
#[must_use]
pub fn call(engine: &QueueEngine, operation: &str, body: &[u8]) -> WireResponse {
    let answer = Body::parse(body).and_then(|body| dispatch(engine, operation, &body));
    match answer {
        Ok(json) => WireResponse::ok(json.to_string()),
        Err(error) => error_response(&error),
    }
}

/// As [`call`], but a `ReceiveMessage` that finds nothing waits as long as it or its queue says (long polling).
pub async fn call_waiting(engine: &QueueEngine, operation: &str, body: &[u8]) -> WireResponse {
    let response = call(engine, operation, body);
    if operation != "ReceiveMessage" || response.status != 200 || response.body.len() > 2 {
        return response;
    }
    let Ok(body_fields) = Body::parse(body) else {
        return response;
    };
    let Ok(queue) = body_fields.queue() else {
        return response;
    };
    let of_queue = engine.attributes(&queue).map(|all| all.receive_wait_s);
    let wait_s = body_fields.number("WaitTimeSeconds").or(of_queue.ok()).unwrap_or(0);
    let wait = Duration::from_secs(u64::try_from(wait_s).unwrap_or(0));
    if wait.is_zero() {
        return response;
    }
    // A timeout is an empty receive; so is a queue that went away meanwhile.
    let _ = tokio::time::timeout(wait, engine.wait_for_message(&queue)).await;
    call(engine, operation, body)
}

/// An error in the protocol's form.
#[must_use]
pub fn error_response(error: &QueueError) -> WireResponse {
    let kind = if error.is_sender_fault() { "Sender" } else { "Receiver" };
    let body = json!({ "__type": error.json_type(), "message": error.to_string() });
    WireResponse {
        status: error.status(),
        query_error: Some(format!("{};{kind}", error.query_code())),
        body: body.to_string().into(),
    }
}

fn dispatch(engine: &QueueEngine, operation: &str, body: &Body) -> Result<Value, QueueError> {
    match operation {
        "SendMessage" => send(engine, body),
        "SendMessageBatch" => batch::send(engine, body),
        "ReceiveMessage" => receive(engine, body),
        "DeleteMessage" => {
            engine.delete(&body.queue()?, body.text("ReceiptHandle")?)?;
            Ok(json!({}))
        }
        "DeleteMessageBatch" => batch::delete(engine, body),
        "ChangeMessageVisibility" => {
            let seconds = body.required_number("VisibilityTimeout")?;
            engine.change_visibility(&body.queue()?, body.text("ReceiptHandle")?, seconds)?;
            Ok(json!({}))
        }
        "ChangeMessageVisibilityBatch" => batch::change_visibility(engine, body),
        "CreateQueue" => create_queue(engine, body),
        "GetQueueUrl" => {
            let name = body.text("QueueName")?;
            engine.attributes(name)?;
            Ok(json!({ "QueueUrl": crate::queue_url(name) }))
        }
        "ListQueues" => Ok(list_queues(engine, body)),
        "GetQueueAttributes" => get_attributes(engine, body),
        "SetQueueAttributes" => {
            let queue = body.queue()?;
            let mut attributes = engine.attributes(&queue)?;
            for (name, value) in body.text_map("Attributes")? {
                attributes.set(&name, &value)?;
            }
            engine.set_attributes(&queue, attributes)?;
            Ok(json!({}))
        }
        "PurgeQueue" => {
            engine.purge(&body.queue()?)?;
            Ok(json!({}))
        }
        other => Err(QueueError::UnsupportedOperation(other.to_owned())),
    }
}

fn create_queue(engine: &QueueEngine, body: &Body) -> Result<Value, QueueError> {
    let name = body.text("QueueName")?;
    let given = body.text_map("Attributes")?;
    if given.get("FifoQueue").map(String::as_str) != Some("true") {
        return Err(QueueError::InvalidParameterValue(
            "The embedded SQS has FIFO queues only: set the attribute FifoQueue to true.".to_owned(),
        ));
    }
    let mut attributes = QueueAttributes::default();
    for (attribute, value) in &given {
        attributes.set(attribute, value)?;
    }
    engine.create_queue(name, attributes)?;
    Ok(json!({ "QueueUrl": crate::queue_url(name) }))
}

fn list_queues(engine: &QueueEngine, body: &Body) -> Value {
    let prefix = body.text("QueueNamePrefix").unwrap_or_default();
    let urls: Vec<String> = engine
        .queue_names()
        .iter()
        .filter(|name| name.starts_with(prefix))
        .map(|name| crate::queue_url(name))
        .collect();
    if urls.is_empty() { json!({}) } else { json!({ "QueueUrls": urls }) }
}

fn get_attributes(engine: &QueueEngine, body: &Body) -> Result<Value, QueueError> {
    let queue = body.queue()?;
    let depth = engine.depth(&queue)?;
    let mut all: BTreeMap<String, String> = engine.attributes(&queue)?.to_map();
    all.insert("QueueArn".to_owned(), crate::queue_arn(&queue));
    for (name, count) in [
        ("ApproximateNumberOfMessages", depth.visible),
        ("ApproximateNumberOfMessagesNotVisible", depth.in_flight),
        ("ApproximateNumberOfMessagesDelayed", 0),
    ] {
        all.insert(name.to_owned(), count.to_string());
    }
    let wanted = body.texts("AttributeNames");
    if !wanted.iter().any(|name| name == "All") {
        all.retain(|name, _| wanted.contains(name));
    }
    Ok(json!({ "Attributes": all }))
}

fn send(engine: &QueueEngine, body: &Body) -> Result<Value, QueueError> {
    let message = body.outgoing_message()?;
    let mut answer = digests(&message);
    let receipt = engine.send(&body.queue()?, message)?;
    answer.insert("MessageId".to_owned(), receipt.message_id.into());
    answer.insert("SequenceNumber".to_owned(), receipt.sequence_number.into());
    Ok(Value::Object(answer))
}

/// The MD5 fields of a send's answer.
fn digests(message: &crate::fifo::OutgoingMessage) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("MD5OfMessageBody".to_owned(), md5_of_body(&message.body).into());
    if let Some(md5) = md5_of_attributes(&message.attributes) {
        fields.insert("MD5OfMessageAttributes".to_owned(), md5.into());
    }
    if let Some(header) = &message.trace_header {
        let system = BTreeMap::from([("AWSTraceHeader".to_owned(), crate::fifo::MessageAttribute::string(header))]);
        if let Some(md5) = md5_of_attributes(&system) {
            fields.insert("MD5OfMessageSystemAttributes".to_owned(), md5.into());
        }
    }
    fields
}

fn receive(engine: &QueueEngine, body: &Body) -> Result<Value, QueueError> {
    let max = body.number("MaxNumberOfMessages").unwrap_or(1);
    // Out of range stays out of range: the engine refuses it in SQS's words.
    let max = usize::try_from(max).unwrap_or(MAX_BATCH + 1);
    let messages = engine.receive(&body.queue()?, max, body.number("VisibilityTimeout"))?;
    let mut system = body.texts("MessageSystemAttributeNames");
    system.extend(body.texts("AttributeNames"));
    let own = body.texts("MessageAttributeNames");
    let list: Vec<Value> = messages.iter().map(|received| received_json(received, &system, &own)).collect();
    // SQS leaves the list out when there is nothing: an empty answer is `{}`.
    if list.is_empty() { Ok(json!({})) } else { Ok(json!({ "Messages": list })) }
}
