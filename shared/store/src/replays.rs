//! Replays: the request's parts with their results, and the audit item beside each replayed receipt.

use aws_sdk_dynamodb::types::TransactWriteItem;
use domain::event::EventRef;
use domain::ids::{Provider, Reference};
use domain::keys;
use domain::operation::OperationRecord;
use domain::replay::Replayed;
use serde::{Deserialize, Serialize};

use crate::error::{Commit, classify, judge};
use crate::item::{decode, encode, s, text};
use crate::ledger::MAX_ACTIONS;
use crate::{Store, StoreError, tables};

/// One part of a replay, with what was answered (`Q·replay·reference`); append-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayPart {
    /// The replay's reference.
    #[serde(rename = "rn")]
    pub reference: Reference,
    /// 0, 1, ...: a long replay comes in parts.
    #[serde(rename = "pt")]
    pub part: u32,
    /// The caller's identity.
    #[serde(rename = "ac")]
    pub actor: String,
    /// Why.
    #[serde(rename = "rs")]
    pub reason: String,
    /// What was asked for, for people.
    #[serde(rename = "sc")]
    pub scope: String,
    /// Milliseconds between two events of one tenant.
    #[serde(rename = "sp")]
    pub spacing_ms: i64,
    /// Tells the same replay from another one: of every part alike.
    #[serde(rename = "hs")]
    pub replay_hash: String,
    /// Tells the same part from another one.
    #[serde(rename = "hp")]
    pub part_hash: String,
    /// Where the next part's due times begin, Unix milliseconds.
    #[serde(rename = "en")]
    pub end_ms: i64,
    /// The answer, as JSON, less what each event's own audit item says.
    #[serde(rename = "an")]
    pub answer: String,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

impl Store {
    /// One part of a replay, if it was carried out, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_replay_part(&self, reference: &Reference, part: u32) -> Result<Option<ReplayPart>, StoreError> {
        let item = self.get(&self.names.events, &keys::replay_pk(reference), &keys::replay_sk(part)).await?;
        item.map(|item| decode("replay", item)).transpose()
    }

    /// Records a part of a replay, once; the one that stands if another came first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn put_replay_part(&self, part: &ReplayPart) -> Result<Option<ReplayPart>, StoreError> {
        let item = encode("replay", part, &keys::replay_pk(&part.reference), &keys::replay_sk(part.part))?;
        let put = self.put_if_absent(&self.names.events, item).await;
        let stands = put.map_err(|error| classify("put replay", &error))?;
        stands.map(|item| decode("replay", item)).transpose()
    }

    /// What a replay did with one event, if it did anything yet, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read.
    pub async fn get_replayed(&self, event: &EventRef, reference: &Reference) -> Result<Option<Replayed>, StoreError> {
        let item = self.get(&self.names.events, &keys::event_pk(event), &keys::replayed_sk(reference)).await?;
        item.map(|item| decode("replay of an event", item)).transpose()
    }

    /// Commits the replay of one event: its audit item, once per reference, and the operations' records. What
    /// one transaction has no room for goes before, in transactions of its own, and the audit item comes with
    /// the last ones: until it stands, the event is decided on again, and what is written is due already.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the event to find out.
    pub async fn commit_replayed(
        &self, event: &EventRef, reference: &Reference, replayed: &Replayed, records: &[OperationRecord],
    ) -> Result<Commit, StoreError> {
        let item = encode("replay of an event", replayed, &keys::event_pk(event), &keys::replayed_sk(reference))?;
        let mut records = records;
        while let Some((slice, rest)) = records.split_at_checked(MAX_ACTIONS - 1).filter(|(_, rest)| !rest.is_empty()) {
            let actions: Vec<_> = slice.iter().map(|record| self.operation_action(record)).collect::<Result<_, _>>()?;
            match self.commit_slice(actions).await? {
                Commit::Committed => records = rest,
                lost => return Ok(lost),
            }
        }
        let mut actions = vec![self.put_action(&self.names.events, item)?];
        for record in records {
            actions.push(self.operation_action(record)?);
        }
        if domain::planted::on("replay-not-recorded") && actions.len() > 1 {
            actions.remove(0); // PLANTED
        }
        self.commit_slice(actions).await
    }

    async fn commit_slice(&self, actions: Vec<TransactWriteItem>) -> Result<Commit, StoreError> {
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge("replay", &error), |_| Ok(Commit::Committed))
    }

    /// A provider's events whose receipts arrived in a minute, of one shard, in order of their keys, at most
    /// `limit`; behind the partition key `after`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn receipts_of(
        &self, provider: &Provider, minute: i64, shard: u32, after: Option<&str>, limit: usize,
    ) -> Result<Vec<EventRef>, StoreError> {
        let first = format!("E|{provider}|");
        let query = self
            .client
            .query()
            .table_name(&self.names.events)
            .index_name(tables::BY_BUCKET)
            .key_condition_expression("rb = :rb AND pk BETWEEN :from AND :to")
            .expression_attribute_values(":rb", s(keys::bucket(minute, shard)))
            .expression_attribute_values(":from", s(after.unwrap_or(&first)))
            .expression_attribute_values(":to", s(format!("E|{provider}|\u{10ffff}")))
            .limit(i32::try_from(limit.saturating_add(1)).unwrap_or(i32::MAX)); // `after` itself comes first
        let output = query.send().await.map_err(|error| classify("query index", &error))?;
        let items = output.items.unwrap_or_default();
        let found = items.iter().filter_map(|item| text(item, "pk")).filter(|pk| Some(*pk) != after);
        Ok(found.filter_map(keys::event_of_pk).take(limit).collect())
    }
}
