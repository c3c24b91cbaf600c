//! Looking at, and interfering with, every AWS call of the embedded stack.
//!
//! A [`CallHook`] sees each call before it is applied and may let it pass, refuse it ([`HookDecision::FailBefore`]), or
//! let it be applied and lose the answer ([`HookDecision::FailAfter`]): the two faults that look alike to the caller
//! and must not be treated alike. The usual faults have constructors; [`CallLog`] counts calls and capacity.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::wire::WireResponse;

pub use crate::call_log::{CallLog, CallRecord};

/// The AWS services that exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// DynamoDB.
    DynamoDb,
    /// SQS.
    Sqs,
    /// EventBridge.
    EventBridge,
}

/// One AWS call, as it was sent. A retry by the SDK is a call of its own.
#[derive(Debug, Clone)]
pub struct Call {
    /// The service called.
    pub service: Service,
    /// E.g. `PutItem`.
    pub operation: String,
    /// Tables or queues named in the request, each once, in the order of the request.
    pub targets: Vec<String>,
    /// Running number of the call in this embedded AWS, from 1.
    pub sequence: u64,
    /// The request's JSON. It can hold business data: never log it.
    pub body: Bytes,
}

impl Call {
    pub(crate) fn new(service: Service, operation: &str, sequence: u64, body: Bytes) -> Self {
        let targets = serde_json::from_slice(&body).map_or_else(|_| Vec::new(), |json| targets(&json));
        Self { service, operation: operation.to_owned(), targets, sequence, body }
    }

    /// The first table or queue named.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.targets.first().map(String::as_str)
    }

    /// Whether this is that operation on that table or queue.
    #[must_use]
    pub fn is(&self, operation: &str, target: &str) -> bool {
        self.operation == operation && self.targets.iter().any(|name| name == target)
    }
}

/// Tables and queues that a request names.
fn targets(request: &Value) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    };
    for field in ["TableName", "QueueName"] {
        if let Some(name) = request[field].as_str() {
            add(name);
        }
    }
    if let Some(url) = request["QueueUrl"].as_str() {
        add(url.rsplit_once('/').map_or(url, |(_, name)| name));
    }
    for table in request["RequestItems"].as_object().into_iter().flatten() {
        add(table.0);
    }
    for item in request["TransactItems"].as_array().into_iter().flatten() {
        for action in item.as_object().into_iter().flatten() {
            if let Some(name) = action.1["TableName"].as_str() {
                add(name);
            }
        }
    }
    found
}

/// What is to happen to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookDecision {
    /// Nothing out of the ordinary.
    Pass,
    /// The service never applies it, and the caller sees the fault.
    FailBefore(Fault),
    /// The service applies it, and the caller sees the fault instead of the answer.
    FailAfter(Fault),
    /// The request is on its way for that long; then the inner decision holds. A caller that gives up meanwhile does
    /// not recall it: it is applied late.
    Delay(Duration, Box<HookDecision>),
}

impl HookDecision {
    /// The call is applied and its answer never arrives: the connection breaks instead.
    #[must_use]
    pub fn lost_answer() -> Self {
        Self::FailAfter(Fault::ConnectionReset)
    }
}

/// What the caller sees instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An error answer of the service.
    Status(WireResponse),
    /// The connection breaks.
    ConnectionReset,
    /// Nothing, until a timeout of the SDK's own.
    Timeout,
}

impl Fault {
    /// The service is asked too much: DynamoDB's or SQS's own error for it. The SDK retries it.
    #[must_use]
    pub fn throttled(service: Service) -> Self {
        match service {
            Service::DynamoDb => Self::dynamo(
                400,
                "ProvisionedThroughputExceededException",
                "The level of configured provisioned throughput for the table was exceeded.",
            ),
            Service::Sqs => Self::sqs(403, "RequestThrottled", "Rate exceeded", "Sender"),
            Service::EventBridge => Self::bus(400, "ThrottlingException"),
        }
    }

    /// A fault inside the service. The SDK retries it.
    #[must_use]
    pub fn internal_server_error(service: Service) -> Self {
        match service {
            Service::DynamoDb => Self::dynamo(500, "InternalServerError", "Internal server error"),
            Service::Sqs => {
                Self::sqs(500, "InternalError", "We encountered an internal error. Please try again.", "Receiver")
            }
            Service::EventBridge => Self::bus(500, "InternalException"),
        }
    }

    fn bus(status: u16, name: &str) -> Self {
        Self::Status(WireResponse::json(status, json!({ "__type": name, "message": name }).to_string()))
    }

    /// `TransactWriteItems` cancelled for these reasons, one per item of the request, e.g.
    /// `["None", "TransactionConflict"]`.
    #[must_use]
    pub fn transaction_cancelled(reasons: &[&str]) -> Self {
        let list: Vec<Value> = reasons
            .iter()
            .map(|&code| match reason_message(code) {
                None => json!({ "Code": code }),
                Some(message) => json!({ "Code": code, "Message": message }),
            })
            .collect();
        let body = json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": format!(
                "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
                reasons.join(", ")
            ),
            "CancellationReasons": list,
        });
        Self::Status(WireResponse::json(400, body.to_string()))
    }

    /// Another transaction holds one of the items: reason `TransactionConflict` at each place in `conflicting`, of
    /// `items` items of the request.
    #[must_use]
    pub fn transaction_conflict(items: usize, conflicting: &[usize]) -> Self {
        let reasons: Vec<&str> = (0..items)
            .map(|item| match conflicting.contains(&item) {
                true => "TransactionConflict",
                false => "None",
            })
            .collect();
        Self::transaction_cancelled(&reasons)
    }

    /// A plain write of an item that a transaction holds. The SDK does NOT retry it.
    #[must_use]
    pub fn item_in_transaction() -> Self {
        Self::dynamo(400, "TransactionConflictException", "Transaction is ongoing for the item")
    }

    fn dynamo(status: u16, name: &str, message: &str) -> Self {
        let body = json!({
            "__type": format!("com.amazonaws.dynamodb.v20120810#{name}"),
            "message": message,
        });
        Self::Status(WireResponse::json(status, body.to_string()))
    }

    fn sqs(status: u16, name: &str, message: &str, whose: &str) -> Self {
        let body = json!({ "__type": format!("com.amazonaws.sqs#{name}"), "message": message });
        Self::Status(WireResponse {
            status,
            query_error: Some(format!("{name};{whose}")),
            body: body.to_string().into(),
        })
    }
}

/// DynamoDB's text beside a cancellation reason's code.
fn reason_message(code: &str) -> Option<&'static str> {
    match code {
        "ConditionalCheckFailed" => Some("The conditional request failed"),
        "TransactionConflict" => Some("Transaction is ongoing for the item"),
        "ThrottlingError" => Some("Throughput exceeds the current capacity of your table or index"),
        "ProvisionedThroughputExceeded" => {
            Some("The level of configured provisioned throughput for the table was exceeded")
        }
        _ => None,
    }
}

/// Sees every AWS call. Called on the task of the call: it must not block.
pub trait CallHook: Send + Sync + Debug {
    /// Before the call is applied. The first hook that does not say [`HookDecision::Pass`] decides; all are asked.
    fn on_call(&self, call: &Call) -> HookDecision {
        let _ = call;
        HookDecision::Pass
    }

    /// After the call was applied, with what the service answered, whether or not the caller gets to see it.
    fn on_answer(&self, call: &Call, answer: &WireResponse) {
        let _ = (call, answer);
    }
}

/// A hook made of a function that decides before each call.
pub struct FnHook<F>(pub F);

impl<F> Debug for FnHook<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FnHook")
    }
}

impl<F: Fn(&Call) -> HookDecision + Send + Sync> CallHook for FnHook<F> {
    fn on_call(&self, call: &Call) -> HookDecision {
        (self.0)(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(body: &Value) -> Call {
        Call::new(Service::DynamoDb, "Any", 1, Bytes::from(body.to_string()))
    }

    #[test]
    fn a_call_names_its_tables_and_queues_once_each() {
        let url = crate::queue_url("jobs.fifo");
        for (body, expected) in [
            (json!({ "TableName": "events" }), vec!["events"]),
            (json!({ "QueueUrl": url }), vec!["jobs.fifo"]),
            (
                json!({ "TransactItems": [
                    { "Put": { "TableName": "ledger" } },
                    { "Update": { "TableName": "balances" } },
                    { "ConditionCheck": { "TableName": "ledger" } },
                ]}),
                vec!["ledger", "balances"],
            ),
            (json!({ "RequestItems": { "jobs": {} , "events": {} } }), vec!["events", "jobs"]),
        ] {
            let mut found = call(&body).targets;
            if body.get("RequestItems").is_some() {
                // The members of a JSON object have no order.
                found.sort();
            }
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_conflict_names_a_reason_for_every_item() {
        let Fault::Status(response) = Fault::transaction_conflict(3, &[1]) else {
            unreachable!("a conflict is an answer")
        };
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let codes: Vec<&str> = body["CancellationReasons"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|reason| reason["Code"].as_str())
            .collect();
        assert_eq!(codes, ["None", "TransactionConflict", "None"]);
    }
}
