//! Intents: what is to leave the system, written down before it leaves.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use domain::intent::Intent;
use domain::keys;

use crate::error::classify;
use crate::item::{decode, encode, n, s};
use crate::{Store, StoreError};

impl Store {
    /// The intent under a key, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_intent(&self, key: &str) -> Result<Option<Intent>, StoreError> {
        let item = self.get(&self.names.events, &keys::intent_pk(key), keys::INTENT).await?;
        item.map(|item| decode("intent", item)).transpose()
    }

    /// Writes an intent down if its key is absent. Whoever stands is read afterwards.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] it may or may not stand.
    pub async fn put_intent(&self, intent: &Intent) -> Result<(), StoreError> {
        let item = encode("intent", intent, &keys::intent_pk(&intent.key), keys::INTENT)?;
        let put = self.put_if_absent(&self.names.events, item).await;
        put.map(|_| ()).map_err(|error| classify("put intent", &error))
    }

    /// Records that the destination has taken an intent. Again, it changes nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_sent(&self, key: &str, now_ms: i64) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.names.events)
            .key("pk", s(keys::intent_pk(key)))
            .key("sk", s(keys::INTENT))
            .update_expression("SET st = :sent, se = :now")
            .condition_expression("st = :prepared")
            .expression_attribute_values(":sent", s("sent"))
            .expression_attribute_values(":prepared", s("prepared"))
            .expression_attribute_values(":now", n(now_ms));
        match update.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(()), // marked before
                _ => Err(classify("mark sent", &error)),
            },
        }
    }
}
