//! Settlements and fundings: one put function, always `attribute_not_exists`, in one transaction with
//! the balance's deltas.

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use domain::decide::settle::Settlement;
use domain::ids::{JobId, Reference, TenantId, WalletId};
use domain::keys;
use domain::ledger::{Balance, BalanceDelta, Entry, JobLedger};

use crate::error::{Commit, judge};
use crate::item::{Item, decode, encode, n, s, text};
use crate::jobs::transition_item;
use crate::{Store, StoreError};

/// What became of creating a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalletCreated {
    /// It is written.
    Created,
    /// It existed; this is what stands.
    Exists(Box<Balance>),
}

/// What became of a funding's transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Funded {
    /// Entry and balance are written.
    Committed,
    /// The reference was used, the balance moved on, or another transaction was at work: read again.
    Again,
}

fn entry_item(entry: &Entry, pk: &str, sk: &str) -> Result<Item, StoreError> {
    let mut item = encode("ledger entry", entry, pk, sk)?;
    if entry.link.is_some() {
        // Sparse: only entries of the chain are in the statement's index.
        item.insert("w".to_owned(), s(keys::wallet_pk(&entry.tenant, &entry.wallet)));
    }
    Ok(item)
}

impl Store {
    /// What is settled for a job, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_ledger(&self, tenant: &TenantId, job: &JobId) -> Result<JobLedger, StoreError> {
        let mut ledger = JobLedger::default();
        for item in self.query_range(&self.names.ledger, &keys::job_pk(tenant, job), None).await? {
            match text(&item, "sk") {
                Some(keys::CLOSE) => ledger.close = Some(decode("close", item)?),
                Some(sk) if sk.starts_with("l|") => ledger.late.push(decode("late capture", item)?),
                _ => {}
            }
        }
        Ok(ledger)
    }

    /// Commits a settlement: entry, balance, and the transition where none exists yet. All or nothing.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the entry's key to find out.
    pub async fn commit_settlement(&self, settlement: &Settlement) -> Result<Commit, StoreError> {
        let entry = &settlement.entry;
        let Some(job) = &entry.job else { return Err(StoreError::Corrupt { what: "settlement" }) };
        let pk = keys::job_pk(&entry.tenant, job);
        let mut actions = vec![
            self.put_action(&self.names.ledger, entry_item(entry, &pk, &settlement.sort_key)?)?,
            self.balance_action(&entry.tenant, &entry.wallet, &settlement.delta)?,
        ];
        if let Some(transition) = &settlement.transition {
            actions.push(self.put_action(&self.names.jobs, transition_item(&entry.tenant, job, transition)?)?);
        }
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge("settle", &error), |_| Ok(Commit::Committed))
    }

    /// A funding by its reference, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_funding(
        &self, tenant: &TenantId, wallet: &WalletId, reference: &Reference,
    ) -> Result<Option<Entry>, StoreError> {
        let pk = keys::wallet_pk(tenant, wallet);
        let item = self.get(&self.names.ledger, &pk, &keys::fund_sk(reference)).await?;
        item.map(|item| decode("funding", item)).transpose()
    }

    /// Commits a funding.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the funding to find out.
    pub async fn commit_funding(
        &self, reference: &Reference, entry: &Entry, delta: &BalanceDelta,
    ) -> Result<Funded, StoreError> {
        let pk = keys::wallet_pk(&entry.tenant, &entry.wallet);
        let actions = vec![
            self.put_action(&self.names.ledger, entry_item(entry, &pk, &keys::fund_sk(reference))?)?,
            self.balance_action(&entry.tenant, &entry.wallet, delta)?,
        ];
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        let Err(error) = result else { return Ok(Funded::Committed) };
        judge("fund", &error).map(|_| Funded::Again)
    }

    /// A balance's update: deltas only, each under its own condition, `rev` always one more.
    /// DynamoDB conditions have no arithmetic, so the credit limit is folded into `:least`.
    pub(crate) fn balance_action(
        &self, tenant: &TenantId, wallet: &WalletId, delta: &BalanceDelta,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut set = "SET av = av + :av, he = he + :he, rev = rev + :one".to_owned();
        let mut when = "cu = :cu".to_owned(); // also false when the wallet does not exist
        let mut update = Update::builder()
            .table_name(&self.names.balances)
            .key("pk", s(keys::wallet_pk(tenant, wallet)))
            .expression_attribute_values(":av", n(delta.available.get()))
            .expression_attribute_values(":he", n(delta.held.get()))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":cu", s(delta.currency.code()));
        if let Some(advance) = &delta.advance {
            set.push_str(", seq = :next, hd = :head");
            when.push_str(" AND seq = :from");
            update = update
                .expression_attribute_values(":next", n(advance.from + 1))
                .expression_attribute_values(":from", n(advance.from))
                .expression_attribute_values(":head", s(&advance.head));
        }
        if delta.need.get() > 0 {
            let least = delta.need.minus(delta.credit_limit);
            let least = least.map_err(|_| StoreError::Corrupt { what: "credit limit" })?;
            when.push_str(" AND av >= :least AND cl = :cl");
            update = update
                .expression_attribute_values(":least", n(least.get()))
                .expression_attribute_values(":cl", n(delta.credit_limit.get()));
        }
        if delta.held.get() < 0 {
            when.push_str(" AND he >= :open");
            update = update.expression_attribute_values(":open", n(delta.held.negated().get()));
        }
        let built = |_| StoreError::Permanent { operation: "transaction", code: "construction".to_owned() };
        let update = update.update_expression(set).condition_expression(when).build().map_err(built)?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}
