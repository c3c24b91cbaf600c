//! Effects with what is told of them: where somebody subscribed, a conditional put becomes a transaction with the
//! receipts of our own events. Where nobody did, every write here is the plain one.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use domain::event::EventRef;
use domain::ids::{JobId, TenantId};
use domain::job::Transition;
use domain::keys;
use domain::operation::OperationRecord;
use domain::receipt::Conflict;
use domain::told::{Step, Told};

use crate::error::{Commit, judge};
use crate::events::{conflict_item, receipt_item};
use crate::item::{Item, n, s, text};
use crate::jobs::transition_item;
use crate::{OperationPut, Store, StoreError, TransitionPut};

/// Another writer moved a line, or an item of the transaction: nothing is written.
fn in_conflict(operation: &'static str) -> StoreError {
    StoreError::Busy { operation, code: "TransactionConflictException".to_owned() }
}

impl Store {
    /// The id of the event that ends a line, strongly consistent; `None` before its first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn line_end(&self, subscription: &str, subject: &str) -> Result<Option<String>, StoreError> {
        // A query, since every function may query this table and not every one may get an item.
        let items = self.query_range(&self.names.events, &keys::line_pk(subscription, subject), None).await?;
        Ok(items.first().and_then(|item| text(item, "ev")).map(str::to_owned))
    }

    /// The writes of what is told, behind those of its effect.
    pub(crate) fn told_actions(&self, told: &Told, actions: &mut Vec<TransactWriteItem>) -> Result<(), StoreError> {
        for receipt in &told.receipts {
            let Some(event) = &receipt.event else { return Err(StoreError::Corrupt { what: "receipt" }) };
            actions.push(self.put_action(&self.names.events, receipt_item(event, receipt)?)?);
        }
        for step in &told.steps {
            actions.push(self.step_action(step)?);
        }
        Ok(())
    }

    fn step_action(&self, step: &Step) -> Result<TransactWriteItem, StoreError> {
        let named =
            [("pk", s(step.pk())), ("sk", s(keys::LINE)), ("ev", s(&step.to)), ("sv", n(domain::SCHEMA_VERSION))];
        let item: Item = named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let Some(from) = &step.from else { return self.put_action(&self.names.events, item) };
        let put = Put::builder()
            .table_name(&self.names.events)
            .set_item(Some(item))
            .condition_expression("ev = :before")
            .expression_attribute_values(":before", s(from));
        let built = |_| StoreError::Permanent { operation: "transaction", code: "construction".to_owned() };
        Ok(TransactWriteItem::builder().put(put.build().map_err(built)?).build())
    }

    pub(crate) async fn commit_telling(
        &self, operation: &'static str, effect: TransactWriteItem, told: &Told,
    ) -> Result<Commit, StoreError> {
        let mut actions = vec![effect];
        self.told_actions(told, &mut actions)?;
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge(operation, &error), |_| Ok(Commit::Committed))
    }

    /// As [`Store::put_transition`], with what is told of it.
    ///
    /// # Errors
    /// [`StoreError`]; busy when another writer told something of the same job.
    pub async fn put_transition_telling(
        &self, tenant: &TenantId, job: &JobId, transition: &Transition, told: &Told,
    ) -> Result<TransitionPut, StoreError> {
        if told.is_empty() {
            return self.put_transition(tenant, job, transition).await;
        }
        let effect = self.put_action(&self.names.jobs, transition_item(tenant, job, transition)?)?;
        match self.commit_telling("put transition", effect, told).await? {
            Commit::Committed => Ok(TransitionPut::Written),
            Commit::ConditionFailed(failed) if failed.contains(&0) => Ok(TransitionPut::Exists),
            Commit::ConditionFailed(_) | Commit::Conflict => Err(in_conflict("put transition")),
        }
    }

    /// As [`Store::put_operation`], with what is told of it.
    ///
    /// # Errors
    /// [`StoreError`]; busy when another writer told something of the same event.
    pub async fn put_operation_telling(
        &self, record: &OperationRecord, told: &Told,
    ) -> Result<OperationPut, StoreError> {
        if told.is_empty() {
            return self.put_operation(record).await;
        }
        let effect = self.operation_action(record)?;
        match self.commit_telling("put operation record", effect, told).await? {
            Commit::Committed => Ok(OperationPut::Written),
            // The plain put says who stands, or that it was our own whose answer was lost.
            Commit::ConditionFailed(failed) if failed.contains(&0) => self.put_operation(record).await,
            Commit::ConditionFailed(_) | Commit::Conflict => Err(in_conflict("put operation record")),
        }
    }

    /// As [`Store::put_conflict`], with what is told of it; true when something was told now.
    ///
    /// # Errors
    /// [`StoreError`]; busy when another writer told something of the same event.
    pub async fn put_conflict_telling(
        &self, event: &EventRef, conflict: &Conflict, told: &Told,
    ) -> Result<bool, StoreError> {
        if told.is_empty() {
            return self.put_conflict(event, conflict).await.map(|()| false);
        }
        let effect = self.put_action(&self.names.events, conflict_item(event, conflict)?)?;
        match self.commit_telling("put conflict", effect, told).await? {
            Commit::Committed => Ok(true),
            Commit::ConditionFailed(failed) if failed.contains(&0) => Ok(false), // recorded before, and told then
            Commit::ConditionFailed(_) | Commit::Conflict => Err(in_conflict("put conflict")),
        }
    }
}
