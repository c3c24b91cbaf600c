//! Settlements and fundings: one put function, always `attribute_not_exists`, in one transaction with
//! the balance's deltas.

use aws_sdk_dynamodb::types::{ConditionCheck, TransactWriteItem, Update};
use domain::decide::posting::{Check, Posting};
use domain::ids::{JobId, Reference, TenantId, WalletId};
use domain::keys;
use domain::ledger::{Balance, BalanceDelta, Entry, JobLedger};
use domain::own::Within;

use crate::error::{Commit, judge};
use crate::item::{Item, decode, encode, n, s, text};
use crate::jobs::transition_item;
use crate::requests::ControlRequest;
use crate::{Store, StoreError};

/// What became of creating a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalletCreated {
    /// It is written.
    Created,
    /// It existed; this is what stands.
    Exists(Box<Balance>),
}

/// Actions of one transaction at most (a quota of DynamoDB).
pub(crate) const MAX_ACTIONS: usize = 100;

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
                Some(sk) if sk.starts_with("a|") => ledger.adjusts.push(decode("adjustment", item)?),
                Some(sk) if sk.starts_with("v|") => ledger.reverses.push(decode("reversal", item)?),
                _ => {}
            }
        }
        Ok(ledger)
    }

    /// Commits a posting: entry, balance, transition and checks. All or nothing.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the entry's key to find out.
    pub async fn commit(&self, posting: &Posting) -> Result<Commit, StoreError> {
        self.commit_all(&[posting], None).await
    }

    /// Commits several postings of ONE wallet, decided one after the other, as one transaction with one
    /// write of the balance; with the control request that asked, if one did.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Permanent`] for more actions than one transaction holds (100).
    pub async fn commit_all(
        &self, postings: &[&Posting], request: Option<&ControlRequest>,
    ) -> Result<Commit, StoreError> {
        let Some(first) = postings.first() else { return Ok(Commit::Committed) };
        let deltas: Vec<&BalanceDelta> = postings.iter().map(|posting| &posting.delta).collect();
        let merged = BalanceDelta::merged(&deltas).map_err(|_| StoreError::Corrupt { what: "amount" })?;
        let Some(delta) = merged else { return Ok(Commit::Committed) };
        let mut actions = vec![self.balance_action(&first.entry.tenant, &first.entry.wallet, &delta)?];
        for posting in postings {
            self.posting_actions(posting, &mut actions)?;
        }
        if let Some(request) = request {
            actions.push(self.request_action(request)?);
        }
        self.told_actions(&delta.low.told, &mut actions)?;
        if actions.len() > MAX_ACTIONS {
            return Err(StoreError::Permanent { operation: "post", code: "too many actions".to_owned() });
        }
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge("post", &error), |_| Ok(Commit::Committed))
    }

    /// A posting's actions, its balance among them.
    pub(crate) fn posting_of(&self, posting: &Posting) -> Result<Vec<TransactWriteItem>, StoreError> {
        let mut actions = vec![self.balance_action(&posting.entry.tenant, &posting.entry.wallet, &posting.delta)?];
        self.posting_actions(posting, &mut actions)?;
        self.told_actions(&posting.delta.low.told, &mut actions)?;
        Ok(actions)
    }

    /// Everything of a posting but its balance.
    pub(crate) fn posting_actions(
        &self, posting: &Posting, actions: &mut Vec<TransactWriteItem>,
    ) -> Result<(), StoreError> {
        let entry = &posting.entry;
        let item = entry_item(entry, &entry.partition(), &posting.sort_key)?;
        actions.push(self.put_action(&self.names.ledger, item)?);
        // PLANTED: read last, the balance guards nothing; the slot, which would guard all the same, is left out.
        if let Some(slot) = posting.slot.as_ref().filter(|_| !domain::planted::on("balance-read-last")) {
            let mut taken = Item::from([("pk".to_owned(), s(entry.partition())), ("sk".to_owned(), s(slot))]);
            taken.extend([("by".to_owned(), s(&entry.by)), ("sv".to_owned(), n(domain::SCHEMA_VERSION))]);
            actions.push(self.put_action(&self.names.ledger, taken)?);
        }
        self.told_actions(&posting.told, actions)?;
        self.outgoing_actions(&posting.outgoing, actions)?;
        let Some(job) = &entry.job else { return Ok(()) };
        if let Some(transition) = &posting.transition {
            actions.push(self.put_action(&self.names.jobs, transition_item(&entry.tenant, job, transition)?)?);
        }
        for check in &posting.checks {
            actions.push(self.check_action(&entry.tenant, job, *check)?);
        }
        Ok(())
    }

    /// A check that an item does not exist.
    pub(crate) fn check_action(
        &self, tenant: &TenantId, job: &JobId, check: Check,
    ) -> Result<TransactWriteItem, StoreError> {
        let (table, sk) = match check {
            Check::NoExtension(number) => (&self.names.jobs, keys::extension_sk(number)),
            Check::NoTransition(version) => (&self.names.jobs, keys::transition_sk(version)),
            Check::NoClose => (&self.names.ledger, keys::CLOSE.to_owned()),
        };
        let check = ConditionCheck::builder()
            .table_name(table)
            .key("pk", s(keys::job_pk(tenant, job)))
            .key("sk", s(sk))
            .condition_expression("attribute_not_exists(pk)");
        let built = |_| StoreError::Permanent { operation: "transaction", code: "construction".to_owned() };
        Ok(TransactWriteItem::builder().condition_check(check.build().map_err(built)?).build())
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

    /// The reversals of a funding, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_funding_reversals(
        &self, tenant: &TenantId, wallet: &WalletId, reference: &Reference,
    ) -> Result<Vec<Entry>, StoreError> {
        let pk = keys::wallet_pk(tenant, wallet);
        let (from, to) = (keys::funding_reversal_sk(reference, 0), keys::funding_reversal_sk(reference, i64::MAX));
        let items = self.query_range(&self.names.ledger, &pk, Some((&from, &to))).await?;
        items.into_iter().map(|item| decode("funding reversal", item)).collect()
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
        if delta.carried.get() != 0 {
            set.push_str(", ca = if_not_exists(ca, :zero) + :ca");
            update = update.expression_attribute_values(":zero", n(0));
            update = update.expression_attribute_values(":ca", n(delta.carried.get()));
        }
        if let Some(advance) = &delta.advance {
            set.push_str(", seq = :next, hd = :head");
            when.push_str(match domain::planted::on("sequence-not-checked") {
                true => " AND seq >= :from", // PLANTED
                false => " AND seq = :from",
            });
            update = update
                .expression_attribute_values(":next", n(advance.to))
                .expression_attribute_values(":from", n(advance.from))
                .expression_attribute_values(":head", s(&advance.head));
        }
        if delta.need.get() > 0 {
            let least = delta.need.minus(delta.credit_limit);
            let least = least.map_err(|_| StoreError::Corrupt { what: "credit limit" })?;
            when.push_str(match domain::planted::on("funds-condition-dropped") {
                true => " AND (av >= :least OR cl = :cl)", // PLANTED
                false => " AND av >= :least AND cl = :cl",
            });
            update = update
                .expression_attribute_values(":least", n(least.get()))
                .expression_attribute_values(":cl", n(delta.credit_limit.get()));
        }
        let Within { at_least, below } = delta.low.within;
        if let Some(at_least) = at_least {
            when.push_str(" AND av >= :above");
            update = update.expression_attribute_values(":above", n(at_least.get()));
        }
        if let Some(below) = below {
            when.push_str(" AND av < :below");
            update = update.expression_attribute_values(":below", n(below.get()));
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
