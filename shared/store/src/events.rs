//! Receipts: the durable proof that a delivery was taken in.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use domain::event::EventRef;
use domain::keys;
use domain::limits::BUCKET_MS;
use domain::operation::{OperationKey, OperationRecord};
use domain::receipt::{Conflict, Deliveries, Receipt};
use domain::replay::Replayed;

use crate::error::classify;
use crate::fetched::decode_fetched;
use crate::item::{Item, decode, encode, n, s, text};
use crate::operations::decode_operation;
use crate::{Store, StoreError};

/// What became of a receipt's conditional put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptPut {
    /// It is ours: written now, or by our own earlier try whose answer was lost.
    Stored,
    /// The event was received before.
    Exists(Box<Receipt>),
}

/// What an event's partition holds for the path: the receipt, the operations' records and the replays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecords {
    /// The receipt, completed by what was fetched for it.
    pub receipt: Receipt,
    /// Records of operations that did not go straight.
    pub operations: Vec<OperationRecord>,
    /// Its replays. The plans that they added are in the receipt's already.
    pub replays: Vec<Replayed>,
}

impl EventRecords {
    /// The record of one operation, if it did not go straight.
    pub fn operation(&self, key: &OperationKey) -> Option<&OperationRecord> {
        self.operations.iter().find(|o| o.key.as_ref() == Some(key))
    }
}

fn decode_receipt(event: &EventRef, item: Item) -> Result<Receipt, StoreError> {
    let receipt: Receipt = decode("receipt", item)?;
    Ok(Receipt { event: Some(event.clone()), ..receipt })
}

/// A receipt as an item, on the index of its minute.
pub(crate) fn receipt_item(event: &EventRef, receipt: &Receipt) -> Result<Item, StoreError> {
    let pk = keys::event_pk(event);
    let mut item = encode("receipt", receipt, &pk, keys::RECEIPT)?;
    let minute = receipt.arrival_ms.div_euclid(BUCKET_MS);
    item.insert("rb".to_owned(), s(keys::bucket(minute, keys::shard_of(&pk))));
    Ok(item)
}

/// A conflict as an item, on the list of reviews.
pub(crate) fn conflict_item(event: &EventRef, conflict: &Conflict) -> Result<Item, StoreError> {
    let pk = keys::event_pk(event);
    let mut item = encode("conflict", conflict, &pk, &keys::conflict_sk(&conflict.payload_hash))?;
    item.insert("rs".to_owned(), s(keys::review_shard(keys::shard_of(&pk))));
    Ok(item)
}

impl Store {
    /// Puts the receipt if the event was never received. A failed condition is read, never guessed:
    /// the old item with our own claim token means that our first try succeeded (DDB-01).
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] the receipt may or may not exist.
    pub async fn put_receipt(&self, event: &EventRef, receipt: &Receipt) -> Result<ReceiptPut, StoreError> {
        match self.put_if_absent(&self.names.events, receipt_item(event, receipt)?).await {
            Ok(None) => Ok(ReceiptPut::Stored),
            Ok(Some(old))
                if text(&old, "tk") == Some(&receipt.claim_token) && !domain::planted::on("claim-token-ignored") =>
            // PLANTED
            {
                Ok(ReceiptPut::Stored)
            }
            Ok(Some(old)) => decode_receipt(event, old).map(|r| ReceiptPut::Exists(Box::new(r))),
            Err(error) => Err(classify("put receipt", &error)),
        }
    }

    /// Puts an item if its key is absent; `Some(old item)` when it is not.
    pub(crate) async fn put_if_absent(
        &self, table: &str, item: Item,
    ) -> Result<Option<Item>, SdkError<PutItemError, aws_smithy_runtime_api::client::orchestrator::HttpResponse>> {
        let result = self
            .client
            .put_item()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match result {
            Ok(_) => Ok(None),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                    Ok(Some(failed.item().cloned().unwrap_or_default()))
                }
                _ => Err(error),
            },
        }
    }

    /// Reads the receipt, what was fetched for it, the operations' records and the replays of an event, strongly
    /// consistent, in one query.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a record cannot be read.
    pub async fn load_event(&self, event: &EventRef) -> Result<Option<EventRecords>, StoreError> {
        // "f|...", "o|..." and "p|..." sort before "r" and after bodies and counts, which stay unread.
        let items = self.query_range(&self.names.events, &keys::event_pk(event), Some(("f", keys::RECEIPT))).await?;
        let (mut receipt, mut operations, mut replays, mut fetched) = (None, Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match text(&item, "sk") {
                Some(keys::RECEIPT) => receipt = Some(decode_receipt(event, item)?),
                Some(sk) if sk.starts_with("f|") => fetched.push(decode_fetched(item)?),
                Some(sk) if sk.starts_with("o|") => operations.push(decode_operation(item)?),
                Some(sk) if sk.starts_with("p|") => replays.push(decode::<Replayed>("replay of an event", item)?),
                _ => {}
            }
        }
        replays.sort_by_key(|replayed| replayed.created_ms);
        let planned = |receipt: Receipt| receipt.with_added_plans(&replays).with_fetched(fetched);
        let receipt = receipt.map(planned);
        Ok(receipt.map(|receipt| EventRecords { receipt, operations, replays }))
    }

    /// Reads a partition, or a range of its sort keys, strongly consistent unless at a glance.
    pub(crate) async fn query_range(
        &self, table: &str, pk: &str, range: Option<(&str, &str)>,
    ) -> Result<Vec<Item>, StoreError> {
        let mut query = self
            .client
            .query()
            .table_name(table)
            .consistent_read(self.consistent)
            .expression_attribute_values(":pk", s(pk));
        query = match range {
            None => query.key_condition_expression("pk = :pk"),
            Some((from, to)) => query
                .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
                .expression_attribute_values(":from", s(from))
                .expression_attribute_values(":to", s(to)),
        };
        let items = query.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await;
        items.map_err(|error| classify("query", &error))
    }

    /// Counts a later delivery of a known event.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_delivery(&self, event: &EventRef, now_ms: i64) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.names.events)
            .key("pk", s(keys::event_pk(event)))
            .key("sk", s(keys::DELIVERIES))
            .update_expression("SET la = :now, sv = :sv ADD n :one")
            .expression_attribute_values(":now", n(now_ms))
            .expression_attribute_values(":sv", n(domain::SCHEMA_VERSION))
            .expression_attribute_values(":one", n(1));
        update.send().await.map(|_| ()).map_err(|error| classify("count delivery", &error))
    }

    /// Records other content under a known event id, once per content, as an open review.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn put_conflict(&self, event: &EventRef, conflict: &Conflict) -> Result<(), StoreError> {
        let put = self.put_if_absent(&self.names.events, conflict_item(event, conflict)?).await;
        put.map(|_| ()).map_err(|error| classify("put conflict", &error))
    }

    /// Everything that `explain` shows beside [`EventRecords`]: later deliveries and conflicts.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_deliveries(&self, event: &EventRef) -> Result<(Deliveries, Vec<Conflict>), StoreError> {
        let pk = keys::event_pk(event);
        let counted = self.query_range(&self.names.events, &pk, Some((keys::DELIVERIES, keys::DELIVERIES))).await?;
        let count = counted.into_iter().next().map(|item| decode("delivery count", item)).transpose()?;
        let conflicts = self.query_range(&self.names.events, &pk, Some(("x|", "x~"))).await?;
        let conflicts = conflicts.into_iter().map(|item| decode("conflict", item)).collect::<Result<_, _>>()?;
        Ok((count.unwrap_or_default(), conflicts))
    }
}
