//! Between records and DynamoDB items.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::SCHEMA_VERSION;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;

/// A DynamoDB item.
#[expect(clippy::disallowed_types, reason = "it is the SDK's type; nothing is ever ordered by it")]
pub(crate) type Item = std::collections::HashMap<String, AttributeValue>;

/// A string attribute.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A number attribute.
pub(crate) fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Turns a record into an item under its keys, with the schema version.
pub(crate) fn encode<T: Serialize>(what: &'static str, record: &T, pk: &str, sk: &str) -> Result<Item, StoreError> {
    let mut item: Item = serde_dynamo::aws_sdk_dynamodb_1::to_item(record).map_err(|_| StoreError::Corrupt { what })?;
    item.insert("pk".to_owned(), s(pk));
    item.insert("sk".to_owned(), s(sk));
    item.insert("sv".to_owned(), n(SCHEMA_VERSION));
    Ok(item)
}

/// Reads a record from an item. One of a later schema version is not guessed at: it is as unreadable as a broken one.
pub(crate) fn decode<T: DeserializeOwned>(what: &'static str, item: Item) -> Result<T, StoreError> {
    let version = item.get("sv").and_then(|value| value.as_n().ok()?.parse::<i64>().ok());
    if version.is_some_and(|version| version > i64::from(SCHEMA_VERSION)) {
        return Err(StoreError::Corrupt { what });
    }
    serde_dynamo::aws_sdk_dynamodb_1::from_item(item).map_err(|_| StoreError::Corrupt { what })
}

/// A string attribute of an item, or nothing.
pub(crate) fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    #[derive(Serialize, serde::Deserialize)]
    struct Record {
        a: String,
    }

    #[test]
    fn a_later_schema_version_is_unreadable_and_an_unknown_member_is_not() {
        let mut item = encode("record", &Record { a: "1".to_owned() }, "p", "s").unwrap();
        let read = |item: &Item| decode::<Record>("record", item.clone()).map(|record| record.a);
        item.insert("later".to_owned(), s("added by a later deployment"));
        assert_eq!(read(&item).unwrap(), "1");
        item.insert("sv".to_owned(), n(SCHEMA_VERSION + 1));
        assert!(matches!(read(&item), Err(StoreError::Corrupt { .. })));
        item.remove("sv");
        assert!(read(&item).is_ok(), "written before there was one");
    }
}
