//! Reconciliation cases: a case opens once however many runs find its fact, every change bumps its revision under a
//! condition, and a decision is inserted in the transaction of what it decides.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem, Update};
use domain::decide::posting::Posting;
use domain::event::EventRef;
use domain::keys;
use domain::ledger::Balance;
use domain::reconcile::{Case, CaseState, Decision, Finding, Rebuild};

use crate::error::{Commit, classify, judge};
use crate::item::{Item, decode, encode, n, s};
use crate::requests::ControlRequest;
use crate::{Store, StoreError};

/// Rounds of opening a case while other runs come first.
const ROUNDS: usize = 5;

fn case_item(case: &Case) -> Result<Item, StoreError> {
    let pk = keys::case_pk(&case.id);
    let mut item = encode("case", case, &pk, &keys::occurrence_sk(case.occurrence))?;
    if case.state == CaseState::Open {
        // In the index of open reviews, beside operations and conflicts.
        item.insert("rs".to_owned(), s(keys::review_shard(keys::shard_of(&pk))));
    }
    Ok(item)
}

impl Store {
    /// The newest occurrence of a case, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_case(&self, id: &str) -> Result<Option<Case>, StoreError> {
        let items = self.query_range(&self.names.events, &keys::case_pk(id), Some(("c|", "c~"))).await?;
        items.into_iter().next_back().map(|item| decode("case", item)).transpose()
    }

    /// One occurrence of a case, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_occurrence(&self, id: &str, occurrence: u32) -> Result<Option<Case>, StoreError> {
        let item = self.get(&self.names.events, &keys::case_pk(id), &keys::occurrence_sk(occurrence)).await?;
        item.map(|item| decode("case", item)).transpose()
    }

    /// The decisions on a case, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_decisions(&self, id: &str) -> Result<Vec<Decision>, StoreError> {
        let items = self.query_range(&self.names.events, &keys::case_pk(id), Some(("d|", "d~"))).await?;
        items.into_iter().map(|item| decode("decision", item)).collect()
    }

    /// Opens the case of a finding, or gives back the occurrence that covers it, with newer evidence if there is any.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_case(&self, finding: &Finding, run: &str, now_ms: i64) -> Result<Case, StoreError> {
        let id = finding.case_id();
        for _ in 0..ROUNDS {
            let before = self.get_case(&id).await?;
            if let Some(stands) = before.as_ref().filter(|case| case.covers(finding)) {
                let Some(newer) = stands.refreshed(finding) else { return Ok(stands.clone()) };
                if self.put_case(&newer).await? {
                    return Ok(newer);
                }
                continue; // another run refreshed or resolved it
            }
            let case = Case::open(finding, before.as_ref(), run, now_ms);
            let put = self.put_if_absent(&self.names.events, case_item(&case)?).await;
            if put.map_err(|error| classify("open case", &error))?.is_none() {
                return Ok(case);
            }
        }
        Err(StoreError::Busy { operation: "open case", code: "other writers won every time".to_owned() })
    }

    /// Writes a case at the revision before; false when another writer came first.
    async fn put_case(&self, case: &Case) -> Result<bool, StoreError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.names.events)
            .set_item(Some(case_item(case)?))
            .condition_expression("rv = :before")
            .expression_attribute_values(":before", n(case.revision - 1));
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {
                Ok(false)
            }
            Err(error) => Err(classify("put case", &error)),
        }
    }

    /// Resolves an open case with its decision, alone.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the case to find out.
    pub async fn resolve_case(&self, case: &Case, decision: &Decision) -> Result<Commit, StoreError> {
        let actions = self.resolve_actions(case, decision)?;
        self.transact("resolve case", actions).await
    }

    /// Resolves a case together with the posting that it asked for.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the case to find out.
    pub async fn resolve_with_posting(
        &self, case: &Case, decision: &Decision, posting: &Posting, request: Option<&ControlRequest>,
    ) -> Result<Commit, StoreError> {
        let mut actions = self.posting_of(posting)?;
        actions.extend(self.resolve_actions(case, decision)?);
        if let Some(request) = request {
            actions.push(self.request_action(request)?);
        }
        self.transact("resolve case", actions).await
    }

    /// Resolves a case together with the rebuild of a balance: deltas, under the `rev` that was read.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the case to find out.
    pub async fn resolve_with_rebuild(
        &self, case: &Case, decision: &Decision, pk: &str, balance: &Balance, delta: Rebuild,
    ) -> Result<Commit, StoreError> {
        let update = Update::builder()
            .table_name(&self.names.balances)
            .key("pk", s(pk))
            .update_expression("SET av = av + :av, he = he + :he, rev = rev + :one")
            .condition_expression("rev = :rev AND seq = :seq")
            .expression_attribute_values(":av", n(delta.available.get()))
            .expression_attribute_values(":he", n(delta.held.get()))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":rev", n(balance.rev))
            .expression_attribute_values(":seq", n(balance.sequence));
        let built = |_| StoreError::Permanent { operation: "rebuild balance", code: "construction".to_owned() };
        let mut actions = vec![TransactWriteItem::builder().update(update.build().map_err(built)?).build()];
        actions.extend(self.resolve_actions(case, decision)?);
        self.transact("rebuild balance", actions).await
    }

    async fn transact(&self, operation: &'static str, actions: Vec<TransactWriteItem>) -> Result<Commit, StoreError> {
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge(operation, &error), |_| Ok(Commit::Committed))
    }

    fn resolve_actions(&self, case: &Case, decision: &Decision) -> Result<Vec<TransactWriteItem>, StoreError> {
        let resolved = case.resolved(decision.resolution);
        let put = Put::builder()
            .table_name(&self.names.events)
            .set_item(Some(case_item(&resolved)?))
            .condition_expression("rv = :before")
            .expression_attribute_values(":before", n(case.revision));
        let built = |_| StoreError::Permanent { operation: "resolve case", code: "construction".to_owned() };
        let put = TransactWriteItem::builder().put(put.build().map_err(built)?).build();
        let (pk, sk) = (keys::case_pk(&case.id), keys::case_decision_sk(case.occurrence));
        Ok(vec![put, self.put_action(&self.names.events, encode("decision", decision, &pk, &sk)?)?])
    }

    /// True while a conflict waits for a person, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn conflict_is_open(&self, event: &EventRef, payload_hash: &str) -> Result<bool, StoreError> {
        let item = self.get(&self.names.events, &keys::event_pk(event), &keys::conflict_sk(payload_hash)).await?;
        Ok(item.is_some_and(|item| item.contains_key("rs")))
    }
}
