//! Pause switches and what they hold back.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use domain::keys;
use domain::operation::OperationKey;
use domain::pause::{Switched, Switches};

use crate::error::{Commit, judge};
use crate::item::{Item, decode, encode, n, text};
use crate::{Store, StoreError, tables};

/// An operation that a switch holds back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// Its event's arrival, Unix milliseconds: its place in the order.
    pub arrival_ms: i64,
    /// Which.
    pub key: OperationKey,
}

impl Store {
    /// All switches, in one strongly consistent read.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_switches(&self) -> Result<Switches, StoreError> {
        let item = self.get(&self.names.events, keys::SWITCHES_PK, keys::SWITCHES).await?;
        item.map_or_else(|| Ok(Switches::default()), |item| decode("pause switches", item))
    }

    /// Puts the switches at the revision after the one that was read, with the record of the change that
    /// led to it, if a person asked for one.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the switches to find out.
    pub async fn put_switches(&self, next: &Switches, change: Option<&Switched>) -> Result<Commit, StoreError> {
        let item = encode("pause switches", next, keys::SWITCHES_PK, keys::SWITCHES)?;
        let mut put = Put::builder().table_name(&self.names.events).set_item(Some(item));
        put = if next.revision <= 1 {
            put.condition_expression("attribute_not_exists(pk)")
        } else {
            put.condition_expression("rv = :before").expression_attribute_values(":before", n(next.revision - 1))
        };
        let built = |_| StoreError::Permanent { operation: "transaction", code: "construction".to_owned() };
        let mut actions = vec![TransactWriteItem::builder().put(put.build().map_err(built)?).build()];
        if let Some(change) = change {
            let (pk, sk) = (keys::switched_pk(&change.name), keys::decision_sk(next.revision));
            actions.push(self.put_action(&self.names.events, encode("pause", change, &pk, &sk)?)?);
        }
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge("switch", &error), |_| Ok(Commit::Committed))
    }

    /// The operations of one shard that a switch holds back, in order of arrival, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn parked(&self, switch: &str, shard: u32, limit: usize) -> Result<Vec<Parked>, StoreError> {
        let hash = ("ds", keys::parked_shard(switch, shard));
        let items = self.query_index(&self.names.events, tables::BY_DUE, hash, None, Some(limit)).await?;
        let parked = |item: &Item| {
            let key = keys::operation_of(text(item, "pk")?, text(item, "sk")?)?;
            Some(Parked { arrival_ms: item.get("due")?.as_n().ok()?.parse().ok()?, key })
        };
        Ok(items.iter().filter_map(parked).collect())
    }
}
