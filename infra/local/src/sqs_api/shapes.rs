//! The fields of SQS's JSON requests and answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::fifo::message::{MessageAttributes, md5_of_attributes, md5_of_body};
use crate::fifo::{OutgoingMessage, QueueError, ReceivedMessage};

/// A request body, or one entry of a batch: a JSON object with typed access to its members.
pub(crate) struct Body(Map<String, Value>);

impl Body {
    /// An empty body is an empty object, as for `ListQueues`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, QueueError> {
        if bytes.is_empty() {
            return Ok(Self(Map::new()));
        }
        serde_json::from_slice(bytes)
            .map(Self)
            .map_err(|_| QueueError::InvalidParameterValue("The request body is not a JSON object.".to_owned()))
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, QueueError> {
        self.0.get(name).and_then(Value::as_str).ok_or_else(|| QueueError::MissingParameter(name.to_owned()))
    }

    fn optional_text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    pub(crate) fn required_number(&self, name: &str) -> Result<i64, QueueError> {
        self.number(name).ok_or_else(|| QueueError::MissingParameter(name.to_owned()))
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub(crate) fn text_map(&self, name: &str) -> Result<BTreeMap<String, String>, QueueError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(map) => {
                serde_json::from_value(map.clone()).map_err(|_| QueueError::InvalidAttributeValue(name.to_owned()))
            }
        }
    }

    pub(crate) fn entries(&self) -> Result<Vec<Body>, QueueError> {
        let list = self.0.get("Entries").and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .map(|entry| match entry {
                Value::Object(fields) => Ok(Body(fields.clone())),
                _ => Err(QueueError::MissingParameter("Entries.Id".to_owned())),
            })
            .collect()
    }

    /// The queue's name: the last part of `QueueUrl`, whatever host the URL names.
    pub(crate) fn queue(&self) -> Result<String, QueueError> {
        let url = self.text("QueueUrl")?;
        Ok(url.rsplit_once('/').map_or(url, |(_, name)| name).to_owned())
    }

    pub(crate) fn outgoing_message(&self) -> Result<OutgoingMessage, QueueError> {
        if self.number("DelaySeconds").is_some_and(|delay| delay != 0) {
            return Err(QueueError::InvalidParameterValue(format!(
                "Value {} for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.",
                self.number("DelaySeconds").unwrap_or_default()
            )));
        }
        let system = self.message_attributes("MessageSystemAttributes")?;
        Ok(OutgoingMessage {
            body: self.text("MessageBody")?.to_owned(),
            group_id: self.optional_text("MessageGroupId").unwrap_or_default(),
            deduplication_id: self.optional_text("MessageDeduplicationId"),
            attributes: self.message_attributes("MessageAttributes")?,
            trace_header: system.get("AWSTraceHeader").and_then(|header| header.string_value.clone()),
        })
    }

    fn message_attributes(&self, name: &str) -> Result<MessageAttributes, QueueError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(MessageAttributes::new()),
            Some(map) => serde_json::from_value(map.clone())
                .map_err(|_| QueueError::InvalidParameterValue(format!("{name} cannot be read."))),
        }
    }
}

/// One message of a `ReceiveMessage` answer, with the attributes that were asked for.
pub(crate) fn received_json(received: &ReceivedMessage, system: &[String], own: &[String]) -> Value {
    let message = &received.message;
    let mut fields = Map::new();
    fields.insert("MessageId".to_owned(), json!(message.message_id));
    fields.insert("ReceiptHandle".to_owned(), json!(received.receipt_handle));
    fields.insert("Body".to_owned(), json!(&*message.body));
    fields.insert("MD5OfBody".to_owned(), json!(md5_of_body(&message.body)));
    let mut all = message.system_attributes();
    if !system.iter().any(|name| name == "All") {
        all.retain(|name, _| system.iter().any(|wanted| wanted == name));
    }
    if !all.is_empty() {
        fields.insert("Attributes".to_owned(), json!(all));
    }
    let mut attributes = message.attributes.clone();
    attributes.retain(|name, _| own.iter().any(|wanted| selects(wanted, name)));
    if let Some(md5) = md5_of_attributes(&attributes) {
        fields.insert("MD5OfMessageAttributes".to_owned(), json!(md5));
        fields.insert("MessageAttributes".to_owned(), json!(attributes));
    }
    Value::Object(fields)
}

/// `All`, `.*`, a name, or a prefix followed by `.*`.
fn selects(wanted: &str, name: &str) -> bool {
    wanted == "All" || wanted == name || wanted.strip_suffix(".*").is_some_and(|prefix| name.starts_with(prefix))
}
