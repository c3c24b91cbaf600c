//! Records of operations that did not go straight. Every change bumps the revision under a condition.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use domain::keys;
use domain::operation::{OperationKey, OperationRecord, OperationState};

use crate::error::classify;
use crate::item::{Item, decode, encode, n, s, text};
use crate::{Store, StoreError};

/// What became of an operation record's conditional put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationPut {
    /// It is ours.
    Written,
    /// Another writer came first; this is what stands.
    Lost(Box<OperationRecord>),
}

pub(crate) fn decode_operation(item: Item) -> Result<OperationRecord, StoreError> {
    let unreadable = StoreError::Corrupt { what: "operation record" };
    let (pk, sk) = (text(&item, "pk").unwrap_or_default(), text(&item, "sk").unwrap_or_default());
    let key = keys::operation_of(pk, sk).ok_or(unreadable)?;
    let record: OperationRecord = decode("operation record", item)?;
    Ok(OperationRecord { key: Some(key), ..record })
}

/// The record as an item, on the index of what is due, of what a switch holds back, or of reviews.
pub(crate) fn operation_item(record: &OperationRecord) -> Result<Item, StoreError> {
    let Some(key) = &record.key else { return Err(StoreError::Corrupt { what: "operation record" }) };
    let pk = keys::event_pk(&key.event);
    let shard = keys::shard_of(&pk);
    let mut item = encode("operation record", record, &pk, &keys::operation_sk(key))?;
    match (record.state, &record.parked) {
        (OperationState::Wait, None) => item.insert("ds".to_owned(), s(keys::due_shard(shard))),
        (OperationState::Wait, Some(switch)) => item.insert("ds".to_owned(), s(keys::parked_shard(switch, shard))),
        (OperationState::Review, _) if domain::planted::on("review-not-listed") => None, // PLANTED
        (OperationState::Review, _) => item.insert("rs".to_owned(), s(keys::review_shard(shard))),
        (OperationState::Noop | OperationState::Closed, _) => None,
    };
    Ok(item)
}

impl Store {
    /// One operation's record, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read.
    pub async fn get_operation(&self, key: &OperationKey) -> Result<Option<OperationRecord>, StoreError> {
        let item = self.get(&self.names.events, &keys::event_pk(&key.event), &keys::operation_sk(key)).await?;
        item.map(decode_operation).transpose()
    }

    /// Puts an operation's record: absent before when `record.revision` is 1, else at the revision before.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] it may or may not be written.
    pub async fn put_operation(&self, record: &OperationRecord) -> Result<OperationPut, StoreError> {
        let item = operation_item(record)?;
        let mut put = self
            .client
            .put_item()
            .table_name(&self.names.events)
            .set_item(Some(item))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        put = if record.revision <= 1 {
            put.condition_expression("attribute_not_exists(pk)")
        } else {
            put.condition_expression("rv = :before").expression_attribute_values(":before", n(record.revision - 1))
        };
        let Err(error) = put.send().await else { return Ok(OperationPut::Written) };
        let Some(PutItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() else {
            return Err(classify("put operation record", &error));
        };
        match failed.item().cloned() {
            // Our own earlier try whose answer was lost.
            Some(old) if text(&old, "tk") == Some(&record.token) => Ok(OperationPut::Written),
            Some(old) => decode_operation(old).map(|r| OperationPut::Lost(Box::new(r))),
            // Records are never deleted, so a missing item under "rv = :before" is damage.
            None => Err(StoreError::Corrupt { what: "operation record" }),
        }
    }
}
