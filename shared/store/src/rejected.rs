//! The last refused deliveries of each provider: a ring of slots, each overwritten in its turn.

use aws_sdk_dynamodb::types::ReturnValue;
use domain::ids::Provider;
use domain::keys;
use domain::rejected::{KEPT, KEPT_S, Rejected};

use crate::error::classify;
use crate::item::{decode, encode, n, s};
use crate::{Store, StoreError};

impl Store {
    /// Keeps a refused delivery in the provider's next slot. Two writes, and never more than
    /// [`KEPT`] items and a count, however many are refused.
    ///
    /// # Errors
    /// [`StoreError`]; nothing depends on it.
    pub async fn keep_rejected(&self, provider: &Provider, rejected: &Rejected) -> Result<(), StoreError> {
        let pk = keys::rejected_pk(provider);
        let count = self
            .client
            .update_item()
            .table_name(&self.names.events)
            .key("pk", s(&pk))
            .key("sk", s(keys::REJECTED_COUNT))
            .update_expression("SET sv = :sv ADD n :one")
            .expression_attribute_values(":sv", n(domain::SCHEMA_VERSION))
            .expression_attribute_values(":one", n(1))
            .return_values(ReturnValue::UpdatedNew);
        let counted = count.send().await.map_err(|error| classify("count rejected", &error))?;
        let counted = counted.attributes.as_ref().and_then(|all| all.get("n")?.as_n().ok()?.parse::<u64>().ok());
        let slot = counted.unwrap_or_default() % KEPT;
        let mut item = encode("rejected delivery", rejected, &pk, &keys::rejected_sk(slot))?;
        item.insert("ttl".to_owned(), n(rejected.arrival_ms / 1_000 + KEPT_S));
        let put = self.client.put_item().table_name(&self.names.events).set_item(Some(item));
        put.send().await.map(|_| ()).map_err(|error| classify("put rejected", &error))
    }

    /// The refused deliveries that are kept of a provider, the latest first. What is older than
    /// [`KEPT_S`] at `now_ms` is left out, whether DynamoDB has removed it yet or not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn rejected(&self, provider: &Provider, now_ms: i64) -> Result<Vec<Rejected>, StoreError> {
        let items = self.query_range(&self.names.events, &keys::rejected_pk(provider), Some(("s|", "s~"))).await?;
        let kept: Result<Vec<Rejected>, _> = items.into_iter().map(|item| decode("rejected delivery", item)).collect();
        let mut kept = kept?;
        kept.retain(|rejected| rejected.arrival_ms / 1_000 + KEPT_S > now_ms / 1_000);
        kept.sort_by_key(|rejected| std::cmp::Reverse(rejected.arrival_ms));
        Ok(kept)
    }
}
