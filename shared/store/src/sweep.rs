//! What sweeps read: receipt buckets, due operations, open reviews, and the relay's durable cursors.
//! Indexes give keys only; every decision reads the table itself.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use domain::event::EventRef;
use domain::ids::{JobId, TenantId, WalletId};
use domain::keys;
use domain::operation::OperationKey;

use crate::error::classify;
use crate::item::{Item, n, s, text};
use crate::{Store, StoreError, tables};

/// One open review as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenReview {
    /// The event.
    pub event: EventRef,
    /// The operation; `None` for a conflict.
    pub operation: Option<OperationKey>,
    /// Since when, Unix milliseconds.
    pub since_ms: i64,
}

impl Store {
    pub(crate) async fn query_index(
        &self, table: &str, index: &str, hash: (&str, String), up_to: Option<(&str, i64)>, limit: Option<usize>,
    ) -> Result<Vec<Item>, StoreError> {
        let condition = match up_to {
            None => "#h = :h".to_owned(),
            Some(_) => "#h = :h AND #r <= :r".to_owned(),
        };
        let mut query = self
            .client
            .query()
            .table_name(table)
            .index_name(index)
            .key_condition_expression(condition)
            .expression_attribute_names("#h", hash.0)
            .expression_attribute_values(":h", s(hash.1));
        if let Some((range, value)) = up_to {
            query = query.expression_attribute_names("#r", range).expression_attribute_values(":r", n(value));
        }
        if let Some(limit) = limit {
            let page = i32::try_from(limit).unwrap_or(i32::MAX);
            let output = query.limit(page).send().await.map_err(|error| classify("query index", &error))?;
            return Ok(output.items.unwrap_or_default());
        }
        let items = query.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await;
        items.map_err(|error| classify("query index", &error))
    }

    /// The events whose receipts arrived in a minute, of one shard.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn receipts_in(&self, minute: i64, shard: u32) -> Result<Vec<EventRef>, StoreError> {
        self.receipts(minute, shard, None).await
    }

    /// The first of these events, at most `limit`: for a look that must stay bounded.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn first_receipts_in(&self, minute: i64, shard: u32, limit: usize) -> Result<Vec<EventRef>, StoreError> {
        self.receipts(minute, shard, Some(limit)).await
    }

    async fn receipts(&self, minute: i64, shard: u32, limit: Option<usize>) -> Result<Vec<EventRef>, StoreError> {
        let hash = ("rb", keys::bucket(minute, shard));
        let items = self.query_index(&self.names.events, tables::BY_BUCKET, hash, None, limit).await?;
        Ok(items.iter().filter_map(|item| keys::event_of_pk(text(item, "pk")?)).collect())
    }

    /// The operations of one shard that are due at `now_ms`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due_operations(&self, shard: u32, now_ms: i64, limit: usize) -> Result<Vec<OperationKey>, StoreError> {
        let hash = ("ds", keys::due_shard(shard));
        let items =
            self.query_index(&self.names.events, tables::BY_DUE, hash, Some(("due", now_ms)), Some(limit)).await?;
        Ok(items.iter().filter_map(|i| keys::operation_of(text(i, "pk")?, text(i, "sk")?)).collect())
    }

    /// The open reviews of one shard, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_reviews(&self, shard: u32, limit: usize) -> Result<Vec<OpenReview>, StoreError> {
        let hash = ("rs", keys::review_shard(shard));
        let items = self.query_index(&self.names.events, tables::BY_REVIEW, hash, None, Some(limit)).await?;
        let review = |item: &Item| {
            let (pk, sk) = (text(item, "pk")?, text(item, "sk")?);
            let since_ms = item.get("rt")?.as_n().ok()?.parse().ok()?;
            Some(OpenReview { event: keys::event_of_pk(pk)?, operation: keys::operation_of(pk, sk), since_ms })
        };
        Ok(items.iter().filter_map(review).collect())
    }

    /// The jobs whose hold, or an extension of it, expires in a bucket, of one shard.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn jobs_expiring(&self, bucket: i64, shard: u32) -> Result<Vec<(TenantId, JobId)>, StoreError> {
        Ok(self.expiring(bucket, shard, None).await?.0)
    }

    /// The first of these jobs, of at most `limit` rows, and how many rows were read: an extended job has several.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn first_jobs_expiring(
        &self, bucket: i64, shard: u32, limit: usize,
    ) -> Result<(Vec<(TenantId, JobId)>, usize), StoreError> {
        self.expiring(bucket, shard, Some(limit)).await
    }

    async fn expiring(
        &self, bucket: i64, shard: u32, limit: Option<usize>,
    ) -> Result<(Vec<(TenantId, JobId)>, usize), StoreError> {
        let hash = ("xb", keys::bucket(bucket, shard));
        let items = self.query_index(&self.names.jobs, tables::BY_EXPIRY, hash, None, limit).await?;
        let mut jobs: Vec<_> = items.iter().filter_map(|item| keys::job_of_pk(text(item, "pk")?)).collect();
        jobs.dedup();
        Ok((jobs, items.len()))
    }

    /// The jobs of a wallet, a page at a time, in order of job; `after` is the last job of the page before.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn jobs_of_wallet(
        &self, tenant: &TenantId, wallet: &WalletId, after: Option<&JobId>, limit: usize,
    ) -> Result<Vec<JobId>, StoreError> {
        let page = i32::try_from(limit).unwrap_or(i32::MAX);
        let mut query = self
            .client
            .query()
            .table_name(&self.names.jobs)
            .index_name(tables::BY_WALLET)
            .key_condition_expression("w = :w AND pk > :after")
            .expression_attribute_values(":w", s(keys::wallet_pk(tenant, wallet)))
            .limit(page);
        // Every job key of the tenant sorts behind its prefix alone.
        let start = after.map_or_else(|| keys::tenant_jobs_prefix(tenant), |job| keys::job_pk(tenant, job));
        query = query.expression_attribute_values(":after", s(start));
        let output = query.send().await.map_err(|error| classify("query index", &error))?;
        let items = output.items.unwrap_or_default();
        Ok(items.iter().filter_map(|item| keys::job_of_pk(text(item, "pk")?)).map(|(_, job)| job).collect())
    }

    /// Where a sweep has to go on in a shard: the next minute of receipts, or the next expiry bucket.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn cursor(&self, cursor: Cursor, shard: u32) -> Result<Option<i64>, StoreError> {
        let item = self.get(&self.names.events, &cursor.pk(shard), keys::CURSOR).await?;
        Ok(item.and_then(|item| item.get("mi")?.as_n().ok()?.parse().ok()))
    }

    /// Moves a shard's cursor on; never back, so overlapping runs are harmless.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn advance_cursor(&self, cursor: Cursor, shard: u32, to: i64) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.names.events)
            .key("pk", s(cursor.pk(shard)))
            .key("sk", s(keys::CURSOR))
            .update_expression("SET mi = :mi, sv = :sv")
            .condition_expression("attribute_not_exists(mi) OR mi < :mi")
            .expression_attribute_values(":mi", n(to))
            .expression_attribute_values(":sv", n(domain::SCHEMA_VERSION));
        match update.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(classify("advance cursor", &error)),
            },
        }
    }
}

/// A durable cursor over the buckets of one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// Over receipts, by minute.
    Receipts,
    /// Over expiring holds, by [`domain::limits::EXPIRY_BUCKET_MS`].
    Expiry,
    /// Over receipts again, by minute, so many hours later: one for all shards.
    Pass(u32),
}

impl Cursor {
    fn pk(self, shard: u32) -> String {
        match self {
            Self::Receipts => keys::relay_cursor_pk(shard),
            Self::Expiry => keys::expiry_cursor_pk(shard),
            Self::Pass(hours) => keys::pass_cursor_pk(hours),
        }
    }
}
