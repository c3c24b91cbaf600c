//! Statements: a wallet's chain entries in order of their sequence, by the index, a page at a time.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::ids::{TenantId, WalletId};
use domain::keys;
use domain::ledger::Entry;

use crate::error::classify;
use crate::item::{decode, n, s, text};
use crate::{Store, StoreError, tables};

/// A page of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementPage {
    /// Oldest first.
    pub entries: Vec<Entry>,
    /// True when more may follow.
    pub more: bool,
}

impl Store {
    fn entries_after(&self, tenant: &TenantId, wallet: &WalletId, after: u64, limit: usize) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.names.ledger)
            .index_name(tables::BY_WALLET)
            .key_condition_expression("w = :w AND seq > :after")
            .expression_attribute_values(":w", s(keys::wallet_pk(tenant, wallet)))
            .expression_attribute_values(":after", n(after))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
    }

    /// The entries after a sequence. The index may lag a moment behind the table.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn statement(
        &self, tenant: &TenantId, wallet: &WalletId, after: u64, limit: usize,
    ) -> Result<StatementPage, StoreError> {
        let query = self.entries_after(tenant, wallet, after, limit);
        let output = query.send().await.map_err(|error| classify("query statement", &error))?;
        let more = output.last_evaluated_key.is_some();
        let items = output.items.unwrap_or_default();
        let entries = items.into_iter().map(|item| decode("ledger entry", item)).collect::<Result<_, _>>()?;
        Ok(StatementPage { entries, more })
    }

    /// The keys of the entries after a sequence, in order; the index may lag, and says nothing of their content.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn entry_keys(
        &self, tenant: &TenantId, wallet: &WalletId, after: u64, limit: usize,
    ) -> Result<(Vec<EntryKey>, bool), StoreError> {
        let query = self.entries_after(tenant, wallet, after, limit).projection_expression("pk, sk, seq");
        let output = query.send().await.map_err(|error| classify("query statement", &error))?;
        let more = output.last_evaluated_key.is_some();
        let key = |item: &crate::item::Item| {
            let sequence = item.get("seq")?.as_n().ok()?.parse().ok()?;
            Some(EntryKey { pk: text(item, "pk")?.to_owned(), sk: text(item, "sk")?.to_owned(), sequence })
        };
        Ok((output.items.unwrap_or_default().iter().filter_map(key).collect(), more))
    }

    /// An entry by its key, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be read.
    pub async fn get_entry(&self, key: &EntryKey) -> Result<Option<Entry>, StoreError> {
        let item = self.get(&self.names.ledger, &key.pk, &key.sk).await?;
        item.map(|item| decode("ledger entry", item)).transpose()
    }
}

/// Where an entry of a wallet's chain stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryKey {
    /// Partition key.
    pub pk: String,
    /// Sort key.
    pub sk: String,
    /// Its sequence, as the index says.
    pub sequence: u64,
}
