//! Intents: what is to leave the system, written down before it leaves.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use domain::charge::Outgoing;
use domain::intent::Intent;
use domain::keys;

use crate::error::classify;
use crate::events::receipt_item;
use crate::item::{decode, encode, n, s};
use crate::{Store, StoreError};

/// What of an intent changes; see ARCHITECTURE.md, "Records".
const MUTABLE: [&str; 11] = ["st", "se", "at", "fs", "ls", "rv", "tk", "ou", "lt", "lx", "ah"];

/// What became of an intent's conditional update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentPut {
    /// It is ours.
    Written,
    /// Another writer came first; this is what stands.
    Lost(Box<Intent>),
}

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

    /// The writes of what goes out to a payment provider, in the transaction of what asks for it.
    pub(crate) fn outgoing_actions(
        &self, outgoing: &[Outgoing], actions: &mut Vec<TransactWriteItem>,
    ) -> Result<(), StoreError> {
        for Outgoing { receipt, intent } in outgoing {
            let Some(event) = &receipt.event else { return Err(StoreError::Corrupt { what: "receipt" }) };
            actions.push(self.put_action(&self.names.events, receipt_item(event, receipt)?)?);
            if let Some(intent) = intent {
                let item = encode("intent", intent, &keys::intent_pk(&intent.key), keys::INTENT)?;
                actions.push(self.put_action(&self.names.events, item)?);
            }
        }
        Ok(())
    }

    /// Writes an intent's next revision, if the one before it stands. What is sent is never written anew.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] it may or may not be written.
    pub async fn update_intent(&self, next: &Intent) -> Result<IntentPut, StoreError> {
        const OPERATION: &str = "update intent";
        let whole = encode("intent", next, &keys::intent_pk(&next.key), keys::INTENT)?;
        let mut update = self
            .client
            .update_item()
            .table_name(&self.names.events)
            .key("pk", s(keys::intent_pk(&next.key)))
            .key("sk", s(keys::INTENT))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut sets = Vec::new();
        for (name, value) in MUTABLE.iter().filter_map(|name| Some((*name, whole.get(*name)?.clone()))) {
            sets.push(format!("#{name} = :{name}"));
            update = update.expression_attribute_names(format!("#{name}"), name);
            update = update.expression_attribute_values(format!(":{name}"), value);
        }
        // Written before there were revisions: none stands for 0.
        update = match next.revision {
            0 | 1 => update.condition_expression("attribute_exists(pk) AND attribute_not_exists(#rv)"),
            later => update.condition_expression("#rv = :before").expression_attribute_values(":before", n(later - 1)),
        };
        let Err(error) = update.update_expression(format!("SET {}", sets.join(", "))).send().await else {
            return Ok(IntentPut::Written);
        };
        let Some(UpdateItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() else {
            return Err(classify(OPERATION, &error));
        };
        let Some(old) = failed.item().cloned() else { return Err(StoreError::Corrupt { what: "intent" }) };
        let stands: Intent = decode("intent", old)?;
        // Our own earlier try whose answer was lost.
        Ok(if stands == *next { IntentPut::Written } else { IntentPut::Lost(Box::new(stands)) })
    }
}
