//! Which rights each function uses: what IAM would have been asked for its AWS calls. The tests' worlds write them into
//! the file that [`FILE_VARIABLE`] names, and the deployment's roles are compared with what a whole run used.
//!
//! One line a right: the function, the action and the resource, such as `relay dynamodb:Query events/by-due`.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::hook::{Call, CallHook, HookDecision, Service};
use crate::stack::{Function, PREFIX};

/// The environment variable with the file that lines are added to; without it nothing is written.
pub const FILE_VARIABLE: &str = "HOOKLEDGER_CALLS";
/// A resource that is none of the stack's own: a destination that events are forwarded to.
pub const ELSEWHERE: &str = "elsewhere";

/// Collects what every function of a stack uses; what is collected is written when the last clone is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage(Arc<Lines>);

#[derive(Debug, Default)]
struct Lines(Mutex<BTreeSet<String>>);

impl Usage {
    /// The hook on one function's calls; none for what is no function.
    pub(crate) fn of(&self, function: Function) -> Option<Arc<dyn CallHook>> {
        let name = match function {
            Function::Receiver => "receiver",
            Function::Job => "job",
            Function::Billing => "billing",
            Function::Outbound => "outbound",
            Function::Relay => "relay",
            Function::DeadLetter => "deadletter",
            Function::Reconciler => "reconciler",
            Function::Control => "control",
            Function::Onlooker => return None,
        };
        Some(Arc::new(Ear { name, lines: self.0.clone() }))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let lines = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = std::env::var_os(FILE_VARIABLE).filter(|_| !lines.is_empty()) else { return };
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        // A list with a hole would pass for a smaller need, so the whole run's comparison fails on the note instead.
        if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
            tracing::error!(%error, "the file that HOOKLEDGER_CALLS names cannot be written");
        }
    }
}

#[derive(Debug)]
struct Ear {
    name: &'static str,
    lines: Arc<Lines>,
}

impl CallHook for Ear {
    fn on_call(&self, call: &Call) -> HookDecision {
        let rights = rights(call);
        let mut lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend(rights.into_iter().map(|(action, resource)| format!("{} {action} {resource}", self.name)));
        HookDecision::Pass
    }
}

/// Action and resource of each right that a call needs. A transaction needs those of its parts.
/// Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon DynamoDB".
fn rights(call: &Call) -> BTreeSet<(String, String)> {
    let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let of_table = |action: &str, part: &Value| {
        let table = part["TableName"].as_str().map_or(ELSEWHERE, own);
        let index = part["IndexName"].as_str().map_or_else(String::new, |index| format!("/{index}"));
        (format!("dynamodb:{action}"), format!("{table}{index}"))
    };
    let parts = request["TransactItems"].as_array().into_iter().flatten();
    let parts = parts.filter_map(Value::as_object).flatten();
    match (call.service, call.operation.as_str()) {
        (Service::DynamoDb, "TransactWriteItems") => {
            parts.map(|(kind, part)| of_table(action_of_part(kind), part)).collect()
        }
        (Service::DynamoDb, "TransactGetItems") => parts.map(|(_, part)| of_table("GetItem", part)).collect(),
        (Service::DynamoDb, name @ ("BatchGetItem" | "BatchWriteItem")) => {
            call.targets.iter().map(|table| (format!("dynamodb:{name}"), own(table).to_owned())).collect()
        }
        (Service::DynamoDb, name) => BTreeSet::from([of_table(name, &request)]),
        (Service::Sqs, name) => {
            let name = name.strip_suffix("Batch").unwrap_or(name);
            let queue = call.target().map_or(ELSEWHERE, own);
            BTreeSet::from([(format!("sqs:{name}"), queue.strip_suffix(".fifo").unwrap_or(queue).to_owned())])
        }
        (Service::EventBridge, name) => BTreeSet::from([(format!("events:{name}"), ELSEWHERE.to_owned())]),
    }
}

fn action_of_part(kind: &str) -> &'static str {
    match kind {
        "Put" => "PutItem",
        "Update" => "UpdateItem",
        "Delete" => "DeleteItem",
        _ => "ConditionCheckItem",
    }
}

/// The stack's own name of a table or queue.
fn own(name: &str) -> &str {
    name.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('-')).unwrap_or(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::json;

    fn told(service: Service, operation: &str, body: &Value) -> Vec<String> {
        let call = Call::new(service, operation, 1, Bytes::from(body.to_string()));
        rights(&call).into_iter().map(|(action, resource)| format!("{action} {resource}")).collect()
    }

    #[test]
    fn a_call_needs_the_rights_of_its_parts_on_their_own_resources() {
        let query = json!({"TableName": "hookledger-events", "IndexName": "by-due"});
        assert_eq!(told(Service::DynamoDb, "Query", &query), ["dynamodb:Query events/by-due"]);
        let transaction = json!({"TransactItems": [
            {"Put": {"TableName": "hookledger-ledger"}}, {"Update": {"TableName": "hookledger-balances"}},
            {"ConditionCheck": {"TableName": "hookledger-jobs"}}, {"Put": {"TableName": "hookledger-jobs"}},
        ]});
        let parts = [
            "dynamodb:ConditionCheckItem jobs",
            "dynamodb:PutItem jobs",
            "dynamodb:PutItem ledger",
            "dynamodb:UpdateItem balances",
        ];
        assert_eq!(told(Service::DynamoDb, "TransactWriteItems", &transaction), parts);
        let send = json!({"QueueUrl": crate::queue_url("hookledger-job.fifo")});
        assert_eq!(told(Service::Sqs, "SendMessageBatch", &send), ["sqs:SendMessage job"]);
        let send = json!({"QueueUrl": crate::queue_url("orders.fifo")});
        assert_eq!(told(Service::Sqs, "SendMessage", &send), ["sqs:SendMessage elsewhere"]);
        assert_eq!(told(Service::EventBridge, "PutEvents", &json!({})), ["events:PutEvents elsewhere"]);
    }
}
