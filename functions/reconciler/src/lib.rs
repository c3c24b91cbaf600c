//! The reconciler: compares, from outside the path, what the records say of each other and what the providers' and
//! destinations' own lists say.
//!
//! A run is cut into parts (an hour of receipts of one shard, a wallet with its jobs, the open reviews of one shard, a
//! provider's or a destination's list) that travel through a queue of their own, so it scales out. Each fact becomes one case with one
//! action; what is harmless under the ordinary conditions (a missing record, an expired hold) is done at once, what
//! moves money an operator applies. It promises: any number of runs, at the same time or again, find a fact once; a
//! message that comes twice counts once; a message that is lost is sent again; and rows younger than the grace are left
//! to those who are still at work on them.

mod apply;
mod intents;
mod jobs;
mod lists;
mod plan;
mod receipts;
mod record;
mod reviews;
mod wallets;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::profile::{ListUrl, Profiles, SecretPlace};
use domain::reconcile::{MAX_PART_RECEIVES, Part, PartKey, PartMessage, PartResult, PartState, Run};
use runtime::App;
use runtime::fetch::{Fetch, FetchError};
use runtime::sqs::{BatchResponse, ItemFailure, SqsEvent, SqsRecord};
use store::StoreError;

pub use apply::{Asked, ResolveError, resolve};
pub use plan::{SCHEDULED_NAMES, Started, redispatch, start};

use record::Recorder;

/// Reads side by side.
pub(crate) const SIDE_BY_SIDE: usize = 25;
/// Bytes of one page of a list at most: 4 MiB.
pub(crate) const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Entries of one list at most.
pub(crate) const MAX_ENTRIES: usize = 100_000;
/// After this no part reads anything further: the function's timeout is 120 s.
pub(crate) const TIME_BUDGET_MS: i64 = 80_000;

/// How a provider's list is opened.
#[derive(Clone)]
pub(crate) struct ListAccess {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// The function with what opens the providers' lists.
#[derive(Clone)]
pub struct Reconciler {
    pub(crate) app: App,
    pub(crate) fetch: Arc<dyn Fetch>,
    /// By slug; `Err` says which variable is missing or holds a reference.
    pub(crate) lists: BTreeMap<String, Result<ListAccess, String>>,
}

/// Why a part is not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the list: {0}")]
    Fetch(#[from] FetchError),
}

fn accesses(
    profiles: &Profiles, secret: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, Result<ListAccess, String>> {
    let mut lists = BTreeMap::new();
    let secret = |name: &str| secret(name).filter(|value| !value.is_empty());
    for profile in profiles.iter() {
        let Some(list) = &profile.list else { continue };
        let url = match &list.url {
            ListUrl::Fixed(url) => url.clone(),
            ListUrl::Variable(name) => match secret(name) {
                Some(url) => url,
                None => continue, // no list here: that is a deployment's choice
            },
        };
        let header = list.header.as_ref().map(|header| match secret(&header.secret) {
            Some(value) if SecretPlace::refers(&value) => Err(format!(
                "the environment variable {} holds a reference, which is not resolved here: put the value itself there",
                header.secret
            )),
            Some(value) => Ok((header.name.clone(), format!("{}{value}", header.prefix))),
            None => Err(format!("the environment variable {} is not set", header.secret)),
        });
        let access = header.transpose().map(|header| ListAccess { url, headers: header.into_iter().collect() });
        lists.insert(profile.slug.to_string(), access);
    }
    lists
}

impl Reconciler {
    /// The function over its context; `secret` reads environment variables by name.
    pub fn new(app: App, fetch: Arc<dyn Fetch>, secret: impl Fn(&str) -> Option<String>) -> Self {
        let lists = accesses(&app.profiles, secret);
        Self { app, fetch, lists }
    }

    /// Handles a batch of parts. A part that fails stays in the queue and no other with it: each is a group of its own.
    pub async fn handle(&self, event: &SqsEvent) -> BatchResponse {
        let mut failures = Vec::new();
        for record in &event.records {
            if let Err(error) = Box::pin(self.handle_record(record)).await {
                tracing::warn!(%error, "part not done; its message stays");
                failures.push(ItemFailure { item_identifier: record.message_id.clone() });
            }
        }
        BatchResponse { batch_item_failures: failures }
    }

    async fn handle_record(&self, record: &SqsRecord) -> Result<(), StoreError> {
        let Some(message) = PartMessage::from_json(&record.body) else {
            tracing::error!("not a part of a reconciliation run; passed");
            return Ok(());
        };
        let store = &self.app.store;
        let Some(run) = store.get_run(&message.run).await? else { return Ok(()) };
        let Some(part) = store.get_part(&run.id, &message.part).await? else { return Ok(()) };
        if part.state != PartState::Open {
            return Ok(());
        }
        let given_up = |why: &str| {
            tracing::error!(run = %run.id, part = %message.part, error = why, "part given up");
            (
                PartState::Failed,
                PartResult { skipped: vec![format!("{}: {why}", message.part)], ..PartResult::default() },
            )
        };
        let receives = record.receive_count();
        // A try that ran out of time or memory tells nothing of itself; that its message comes once more does.
        let executed = match receives > MAX_PART_RECEIVES {
            true => None,
            false => Some(self.execute(&run, &part.key).await),
        };
        let (state, result) = match executed {
            None => given_up(&format!("none of {MAX_PART_RECEIVES} tries came to an end")),
            Some(Ok(result)) => (PartState::Done, result),
            Some(Err(error)) if receives >= MAX_PART_RECEIVES || !is_transient(&error) => given_up(&error.to_string()),
            Some(Err(PartError::Store(error))) => return Err(error),
            Some(Err(PartError::Fetch(error))) => {
                return Err(StoreError::Unknown { operation: "provider list", reason: error.to_string() });
            }
        };
        tracing::info!(run = %run.id, part = %message.part, examined = result.examined, ?state, "reconciled");
        store.finish_part(&run.id, &Part { key: part.key, state, result }).await
    }

    async fn execute(&self, run: &Run, key: &PartKey) -> Result<PartResult, PartError> {
        let mut recorder = Recorder::new(&self.app, run);
        match key {
            PartKey::Plan => self.plan(run).await?,
            PartKey::Receipts { minute, minutes, shard } => {
                receipts::compare(&mut recorder, *minute, *minutes, *shard).await?;
            }
            PartKey::Scan { after } => plan::scan(&mut recorder, after.as_deref()).await?,
            PartKey::Wallet { tenant, wallet } => wallets::compare(&mut recorder, tenant, wallet).await?,
            PartKey::Reviews { shard } => reviews::compare(&mut recorder, *shard).await?,
            PartKey::List { provider } => self.compare_list(&mut recorder, provider).await?,
            PartKey::Intents { destination } => Box::pin(self.compare_intents(&mut recorder, destination)).await?,
        }
        recorder.tell();
        Ok(recorder.result)
    }
}

fn is_transient(error: &PartError) -> bool {
    match error {
        PartError::Store(error) => error.is_transient(),
        PartError::Fetch(error) => error.is_transient(),
    }
}
