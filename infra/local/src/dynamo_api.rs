//! DynamoDB's JSON protocol onto dynoxide's typed methods, without its HTTP server.
//!
//! A request body is read into dynoxide's request type, the synchronous method is called, and the answer, or the error
//! with its `CancellationReasons` and returned old item, goes back as the text that the real SDK parses. What dynoxide
//! never does by itself (throttling, `TransactionConflict`, stale indexes) is injected by [`crate::hook`].

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::WireResponse;

/// Answers one DynamoDB operation, e.g. `PutItem`.
#[must_use]
pub fn call(database: &Database, operation: &str, body: &[u8]) -> WireResponse {
    match dispatch(database, operation, body) {
        Ok(json) => WireResponse::ok(json),
        Err(error) => WireResponse::json(error.status_code(), error.to_json()),
    }
}

fn dispatch(db: &Database, operation: &str, body: &[u8]) -> Result<Vec<u8>, DynoxideError> {
    match operation {
        "PutItem" => run(body, |request| db.put_item(request)),
        "GetItem" => run(body, |request| db.get_item(request)),
        "UpdateItem" => run(body, |request| db.update_item(request)),
        "DeleteItem" => run(body, |request| db.delete_item(request)),
        "Query" => run(body, |request| db.query(request)),
        "Scan" => run(body, |request| db.scan(request)),
        "BatchGetItem" => run(body, |request| db.batch_get_item(request)),
        "BatchWriteItem" => run(body, |request| db.batch_write_item(request)),
        "TransactWriteItems" => run(body, |request| db.transact_write_items(request)),
        "TransactGetItems" => run(body, |request| db.transact_get_items(request)),
        "CreateTable" => run(body, |request| db.create_table(request)),
        "UpdateTable" => run(body, |request| db.update_table(request)),
        "DeleteTable" => run(body, |request| db.delete_table(request)),
        "DescribeTable" => run(body, |request| db.describe_table(request)),
        "ListTables" => run(body, |request| db.list_tables(request)),
        "UpdateTimeToLive" => run(body, |request| db.update_time_to_live(request)),
        "DescribeTimeToLive" => run(body, |request| db.describe_time_to_live(request)),
        other => Err(DynoxideError::ValidationException(format!(
            "The embedded DynamoDB does not have the operation {other}."
        ))),
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8], method: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<Vec<u8>, DynoxideError> {
    let request = serde_json::from_slice(body).map_err(|error| unreadable(&error.to_string()))?;
    let answer = method(request)?;
    serde_json::to_vec(&answer).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// dynoxide's request types say in a prefix of the message which of DynamoDB's errors a body that cannot be read is.
fn unreadable(message: &str) -> DynoxideError {
    let text = message.split(" at line ").next().unwrap_or(message);
    for marker in ["VALIDATION_REQUEST:", "VALIDATION:", "VALIDATION_AS_READ:"] {
        if let Some(rest) = text.strip_prefix(marker) {
            return DynoxideError::ValidationException(rest.to_owned());
        }
    }
    for marker in ["SERIALIZATION:", "SERIALIZATION_AS_READ:"] {
        if let Some(rest) = text.strip_prefix(marker) {
            return DynoxideError::SerializationException(rest.to_owned());
        }
    }
    let incomplete = ["missing field", "unknown variant", "invalid type: null"];
    if incomplete.iter().any(|part| text.contains(part)) || text.contains("AttributeValue") {
        DynoxideError::ValidationException(text.to_owned())
    } else {
        DynoxideError::SerializationException(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn error_type(response: &WireResponse) -> String {
        let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
        body["__type"].as_str().unwrap().to_owned()
    }

    #[test]
    fn an_unknown_table_is_dynamodbs_own_error() {
        let db = Database::memory().unwrap();
        let body = br#"{"TableName":"nowhere","Key":{"pk":{"S":"a"}}}"#;
        let response = call(&db, "GetItem", body);
        assert_eq!(response.status, 400);
        assert_eq!(error_type(&response), "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException");
    }

    #[test]
    fn a_body_without_a_required_field_is_a_validation_error() {
        let db = Database::memory().unwrap();
        let response = call(&db, "GetItem", b"{}");
        assert_eq!(response.status, 400);
        assert_eq!(error_type(&response), "com.amazon.coral.validate#ValidationException");
    }

    #[test]
    fn a_body_that_is_not_json_is_a_serialization_error() {
        let db = Database::memory().unwrap();
        let response = call(&db, "GetItem", b"{");
        assert_eq!(error_type(&response), "com.amazon.coral.service#SerializationException");
    }
}
