//! Statements: a wallet's chain entries in order of their sequence, by the index, a page at a time.

use domain::ids::{TenantId, WalletId};
use domain::keys;
use domain::ledger::Entry;

use crate::error::classify;
use crate::item::{decode, n, s};
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
    /// The entries after a sequence. The index may lag a moment behind the table.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn statement(
        &self, tenant: &TenantId, wallet: &WalletId, after: u64, limit: usize,
    ) -> Result<StatementPage, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.names.ledger)
            .index_name(tables::BY_WALLET)
            .key_condition_expression("w = :w AND seq > :after")
            .expression_attribute_values(":w", s(keys::wallet_pk(tenant, wallet)))
            .expression_attribute_values(":after", n(after))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX));
        let output = query.send().await.map_err(|error| classify("query statement", &error))?;
        let more = output.last_evaluated_key.is_some();
        let items = output.items.unwrap_or_default();
        let entries = items.into_iter().map(|item| decode("ledger entry", item)).collect::<Result<_, _>>()?;
        Ok(StatementPage { entries, more })
    }
}
