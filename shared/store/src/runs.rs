//! Reconciliation runs: their records, parts and what they found. A part is counted once, by a conditional put.

use domain::ids::{Reference, TenantId, WalletId};
use domain::keys;
use domain::reconcile::{Part, PartKey, PartResult, PartState, Run};

use crate::error::classify;
use crate::item::{Item, decode, encode, n, s, text};
use crate::{Store, StoreError, tables};

/// Runs that are not done, in one read at most.
const OPEN_RUNS: i32 = 100;

/// A page of what a run found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPage {
    /// Cases with their occurrence, in order of their id.
    pub cases: Vec<(String, u32)>,
    /// True when more may follow.
    pub more: bool,
}

impl Store {
    /// Puts a run if its id is free, and lists it as open; what stands when it is not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn put_run(&self, run: &Run, due_ms: i64) -> Result<Option<Run>, StoreError> {
        let mut item = encode("run", run, &keys::run_pk(&run.id), keys::REQUEST)?;
        item.extend([("ds".to_owned(), s(keys::OPEN_RUNS)), ("due".to_owned(), n(due_ms))]);
        let put = self.put_if_absent(&self.names.events, item).await;
        let old = put.map_err(|error| classify("put run", &error))?;
        old.map(|old| decode("run", old)).transpose()
    }

    /// A run by its id, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_run(&self, id: &Reference) -> Result<Option<Run>, StoreError> {
        let item = self.get(&self.names.events, &keys::run_pk(id), keys::REQUEST).await?;
        item.map(|item| decode("run", item)).transpose()
    }

    /// The runs that are not done and due to be looked at, oldest first, a bounded number.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due_runs(&self, now_ms: i64) -> Result<Vec<Reference>, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.names.events)
            .index_name(tables::BY_DUE)
            .key_condition_expression("ds = :open AND due <= :now")
            .expression_attribute_values(":open", s(keys::OPEN_RUNS))
            .expression_attribute_values(":now", n(now_ms))
            .limit(OPEN_RUNS);
        let output = query.send().await.map_err(|error| classify("query index", &error))?;
        let items = output.items.unwrap_or_default();
        Ok(items.iter().filter_map(|item| keys::run_of_pk(text(item, "pk")?)).collect())
    }

    /// Says when an open run is looked at again; `None` takes it off the list, since it is done.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn push_run(&self, id: &Reference, due_ms: Option<i64>) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.names.events)
            .key("pk", s(keys::run_pk(id)))
            .key("sk", s(keys::REQUEST))
            .condition_expression("attribute_exists(pk)");
        let update = match due_ms {
            Some(due) => update.update_expression("SET due = :due").expression_attribute_values(":due", n(due)),
            None => update.update_expression("REMOVE ds, due"),
        };
        update.send().await.map(|_| ()).map_err(|error| classify("push run", &error))
    }

    /// Puts an open part, once; true when this call did.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn put_part(&self, run: &Reference, key: &PartKey) -> Result<bool, StoreError> {
        let part = Part { key: key.clone(), state: PartState::Open, result: PartResult::default() };
        let item = encode("part", &part, &keys::run_pk(run), &keys::part_sk(&key.id()))?;
        let put = self.put_if_absent(&self.names.events, item).await;
        put.map(|old| old.is_none()).map_err(|error| classify("put part", &error))
    }

    /// A part by its id, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_part(&self, run: &Reference, id: &str) -> Result<Option<Part>, StoreError> {
        let item = self.get(&self.names.events, &keys::run_pk(run), &keys::part_sk(id)).await?;
        item.map(|item| decode("part", item)).transpose()
    }

    /// Every part of a run, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_parts(&self, run: &Reference) -> Result<Vec<Part>, StoreError> {
        let items = self.query_range(&self.names.events, &keys::run_pk(run), Some(("p|", "p~"))).await?;
        items.into_iter().map(|item| decode("part", item)).collect()
    }

    /// Ends an open part with its result; a part that has ended keeps its first result.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn finish_part(&self, run: &Reference, part: &Part) -> Result<(), StoreError> {
        let item = encode("part", part, &keys::run_pk(run), &keys::part_sk(&part.key.id()))?;
        let put = self
            .client
            .put_item()
            .table_name(&self.names.events)
            .set_item(Some(item))
            .condition_expression("st = :open")
            .expression_attribute_values(":open", s("open"));
        match put.send().await {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => Ok(()),
            Err(error) => Err(classify("finish part", &error)),
        }
    }

    /// Notes that a run found an occurrence of a case.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn put_found(&self, run: &Reference, case: &str, occurrence: u32) -> Result<(), StoreError> {
        let item = Item::from([
            ("pk".to_owned(), s(keys::run_pk(run))),
            ("sk".to_owned(), s(keys::found_sk(case, occurrence))),
            ("id".to_owned(), s(case)),
            ("on".to_owned(), n(occurrence)),
            ("sv".to_owned(), n(domain::SCHEMA_VERSION)),
        ]);
        let put = self.client.put_item().table_name(&self.names.events).set_item(Some(item));
        put.send().await.map(|_| ()).map_err(|error| classify("put found", &error))
    }

    /// A page of what a run found, after a case.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn found(&self, run: &Reference, after: Option<&str>, limit: usize) -> Result<FoundPage, StoreError> {
        let from = after.map_or_else(|| "f|".to_owned(), |case| format!("f|{case}|~"));
        let query = self
            .client
            .query()
            .table_name(&self.names.events)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(":pk", s(keys::run_pk(run)))
            .expression_attribute_values(":from", s(from))
            .expression_attribute_values(":to", s("f~"))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX));
        let output = query.send().await.map_err(|error| classify("query found", &error))?;
        let more = output.last_evaluated_key.is_some();
        let items = output.items.unwrap_or_default();
        let case = |item: &Item| Some((text(item, "id")?.to_owned(), item.get("on")?.as_n().ok()?.parse().ok()?));
        Ok(FoundPage { cases: items.iter().filter_map(case).collect(), more })
    }

    /// A page of all wallets, by a scan of the balances; the key of the last one when more may follow.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn scan_wallets(
        &self, after: Option<&str>, limit: usize,
    ) -> Result<(Vec<(TenantId, WalletId)>, Option<String>), StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&self.names.balances)
            .projection_expression("pk")
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(after.map(|pk| Item::from([("pk".to_owned(), s(pk))])));
        let output = scan.send().await.map_err(|error| classify("scan balances", &error))?;
        let next = output.last_evaluated_key.as_ref().and_then(|key| text(key, "pk").map(str::to_owned));
        let items = output.items.unwrap_or_default();
        Ok((items.iter().filter_map(|item| keys::wallet_of_pk(text(item, "pk")?)).collect(), next))
    }
}
