//! Reviews and the decisions on them. The index gives rows; what is in review is read from the table,
//! and a decision is written in the transaction that changes it.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use domain::decide::posting::Posting;
use domain::event::EventRef;
use domain::keys;
use domain::operation::OperationRecord;
use domain::receipt::Conflict;
use domain::review::{Decision, ReviewId};

use crate::error::{Commit, classify, judge};
use crate::item::{Item, decode, encode, n, s, text};
use crate::operations::operation_item;
use crate::{Store, StoreError, tables};

/// A row of the index of open reviews.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReviewRow {
    /// Since when, Unix milliseconds; rows are ordered by it.
    pub since_ms: i64,
    /// The partition of what is in review.
    pub pk: String,
    /// Its sort key.
    pub sk: String,
}

impl ReviewRow {
    /// What is in review; `None` for a kind that this program does not know.
    pub fn id(&self) -> Option<ReviewId> {
        ReviewId::of_keys(&self.pk, &self.sk)
    }
}

/// What a row of another room's making says, read from the table: a reconciliation case, or a kind that
/// this program does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRow {
    /// Its class, if it names one.
    pub class: String,
    /// Its note for people.
    pub note: String,
}

/// What a decision changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reviewed<'a> {
    /// The operation's next revision.
    Operation(&'a OperationRecord),
    /// The conflict, closed.
    Conflict(&'a EventRef, &'a Conflict),
}

impl Store {
    /// Rows of one shard's open reviews, oldest first, at most `limit`; behind `after`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn review_rows(
        &self, shard: u32, after: Option<&ReviewRow>, limit: usize,
    ) -> Result<Vec<ReviewRow>, StoreError> {
        let mut query = self
            .client
            .query()
            .table_name(&self.names.events)
            .index_name(tables::BY_REVIEW)
            .key_condition_expression("rs = :rs")
            .expression_attribute_values(":rs", s(keys::review_shard(shard)))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX));
        if let Some(row) = after {
            let start =
                [("rs", s(keys::review_shard(shard))), ("rt", n(row.since_ms)), ("pk", s(&row.pk)), ("sk", s(&row.sk))];
            let start: Item = start.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            query = query.set_exclusive_start_key(Some(start));
        }
        let output = query.send().await.map_err(|error| classify("query index", &error))?;
        let row = |item: &Item| {
            let since_ms = item.get("rt")?.as_n().ok()?.parse().ok()?;
            Some(ReviewRow { since_ms, pk: text(item, "pk")?.to_owned(), sk: text(item, "sk")?.to_owned() })
        };
        Ok(output.items.unwrap_or_default().iter().filter_map(row).collect())
    }

    /// A conflict by its content hash, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_conflict(&self, event: &EventRef, hash: &str) -> Result<Option<Conflict>, StoreError> {
        let item = self.get(&self.names.events, &keys::event_pk(event), &keys::conflict_sk(hash)).await?;
        item.map(|item| decode("conflict", item)).transpose()
    }

    /// What a row says that is neither an operation nor a conflict, strongly consistent; `None` when it is
    /// no review any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_row(&self, row: &ReviewRow) -> Result<Option<OpenRow>, StoreError> {
        let item = self.get(&self.names.events, &row.pk, &row.sk).await?;
        let told = |item: &Item, name: &str| text(item, name).unwrap_or_default().to_owned();
        let open = item.filter(|item| item.contains_key("rs"));
        Ok(open.map(|item| OpenRow { class: told(&item, "cl"), note: told(&item, "nt") }))
    }

    /// The decisions on a review, oldest first, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn decisions(&self, review: &ReviewId) -> Result<Vec<Decision>, StoreError> {
        let items = self.query_range(&self.names.events, &keys::decision_pk(&review.to_string()), None).await?;
        items.into_iter().map(|item| decode("decision", item)).collect()
    }

    /// Commits a decision: its record, the change of what was in review under the condition that nobody
    /// changed it meanwhile, and the release of the open hold, if there is one to be released.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the decisions to find out.
    pub async fn commit_decision(
        &self, decision: &Decision, change: Reviewed<'_>, release: Option<&Posting>,
    ) -> Result<Commit, StoreError> {
        let mut actions = Vec::new();
        if let Some(posting) = release {
            actions.push(self.balance_action(&posting.entry.tenant, &posting.entry.wallet, &posting.delta)?);
            self.posting_actions(posting, &mut actions)?;
        }
        actions.push(match change {
            Reviewed::Operation(record) => self.operation_action(record)?,
            Reviewed::Conflict(event, conflict) => self.closed_conflict_action(event, conflict)?,
        });
        let (pk, sk) = (keys::decision_pk(&decision.review), keys::decision_sk(decision.revision));
        if !domain::planted::on("decision-not-recorded") {
            // PLANTED
            actions.push(self.put_action(&self.names.events, encode("decision", decision, &pk, &sk)?)?);
        }
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge("decide review", &error), |_| Ok(Commit::Committed))
    }

    /// The put of an operation's record within a transaction: absent before when its revision is 1, else at
    /// the revision before.
    pub(crate) fn operation_action(&self, record: &OperationRecord) -> Result<TransactWriteItem, StoreError> {
        let item = operation_item(record)?;
        if record.revision <= 1 {
            return self.put_action(&self.names.events, item);
        }
        let put = Put::builder()
            .table_name(&self.names.events)
            .set_item(Some(item))
            .condition_expression("rv = :before")
            .expression_attribute_values(":before", n(record.revision - 1));
        let built = |_| StoreError::Permanent { operation: "transaction", code: "construction".to_owned() };
        Ok(TransactWriteItem::builder().put(put.build().map_err(built)?).build())
    }

    /// The put that takes a conflict off the list of reviews, if it is on it.
    fn closed_conflict_action(&self, event: &EventRef, conflict: &Conflict) -> Result<TransactWriteItem, StoreError> {
        let (pk, sk) = (keys::event_pk(event), keys::conflict_sk(&conflict.payload_hash));
        let put = Put::builder()
            .table_name(&self.names.events)
            .set_item(Some(encode("conflict", conflict, &pk, &sk)?))
            .condition_expression("attribute_exists(rs)");
        let built = |_| StoreError::Permanent { operation: "transaction", code: "construction".to_owned() };
        Ok(TransactWriteItem::builder().put(put.build().map_err(built)?).build())
    }
}
