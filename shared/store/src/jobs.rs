//! Jobs, references, transitions and progress.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use domain::charge::Outgoing;
use domain::decide::posting::Check;
use domain::ids::{JobId, Provider, ProviderRef, TenantId};
use domain::job::{Extension, Job, JobRecords, JobRef, Progress, Transition};
use domain::keys;
use domain::ledger::BalanceDelta;
use domain::limits::EXPIRY_BUCKET_MS;
use domain::told::Told;

use crate::error::{Commit, classify, judge};
use crate::item::{Item, decode, encode, n, s, text};
use crate::requests::ControlRequest;
use crate::{Store, StoreError};

/// What became of a transition's conditional put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransitionPut {
    /// It is written, or an earlier try of ours was.
    Written,
    /// The version exists, by another event: decide again.
    Exists,
}

/// What became of a progress update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressPut {
    /// It is written.
    Written,
    /// An equal or greater sequence stands: decide again.
    Passed,
}

/// What became of a submission's transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// Job, reference and hold are written.
    Created,
    /// A condition failed: read again and classify.
    ConditionFailed {
        /// The job exists.
        job: bool,
        /// The provider's reference is taken.
        reference: bool,
        /// The balance did not cover the hold, or changed its terms.
        balance: bool,
    },
    /// Another transaction was at work: try again a little later.
    Conflict,
}

/// What became of attaching a provider's reference to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attached {
    /// It leads to this job.
    Ours,
    /// It leads to another job.
    Taken,
    /// The job has another reference.
    Other,
}

fn attached_ref(item: &Item) -> Option<ProviderRef> {
    text(item, "rf").and_then(|rf| ProviderRef::new(rf).ok())
}

impl Store {
    /// The job that a provider's reference leads to, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_ref(&self, provider: &Provider, reference: &ProviderRef) -> Result<Option<JobRef>, StoreError> {
        let item = self.get(&self.names.jobs, &keys::ref_pk(provider, reference), keys::REF).await?;
        item.map(|item| decode("job reference", item)).transpose()
    }

    /// The job's immutable record, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_job(&self, tenant: &TenantId, job: &JobId) -> Result<Option<Job>, StoreError> {
        let item = self.get(&self.names.jobs, &keys::job_pk(tenant, job), keys::JOB).await?;
        item.map(|item| decode("job", item)).transpose()
    }

    /// The provider's reference that was attached to the job after its submission, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_attached(&self, tenant: &TenantId, job: &JobId) -> Result<Option<ProviderRef>, StoreError> {
        let item = self.get(&self.names.jobs, &keys::job_pk(tenant, job), keys::ATTACHED).await?;
        Ok(item.as_ref().and_then(attached_ref))
    }

    pub(crate) async fn get(&self, table: &str, pk: &str, sk: &str) -> Result<Option<Item>, StoreError> {
        let get = self.client.get_item().table_name(table).key("pk", s(pk)).key("sk", s(sk));
        let get = get.consistent_read(self.consistent);
        get.send().await.map(|output| output.item).map_err(|error| classify("get", &error))
    }

    /// The job and its transitions, strongly consistent, in one query.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_job(&self, tenant: &TenantId, job: &JobId) -> Result<Option<JobRecords>, StoreError> {
        let (mut found, mut attached, mut extensions, mut transitions) = (None, None, Vec::new(), Vec::new());
        for item in self.query_range(&self.names.jobs, &keys::job_pk(tenant, job), None).await? {
            match text(&item, "sk") {
                Some(keys::JOB) => found = Some(decode::<Job>("job", item)?),
                Some(keys::ATTACHED) => attached = attached_ref(&item),
                Some(sk) if sk.starts_with("h|") => extensions.push(decode::<Extension>("hold extension", item)?),
                Some(sk) if sk.starts_with("t|") => transitions.push(decode::<Transition>("transition", item)?),
                _ => {}
            }
        }
        let with_ref = |job: Job| Job { provider_ref: job.provider_ref.or(attached), ..job };
        Ok(found.map(|job| JobRecords { job: with_ref(job), extensions, transitions }))
    }

    /// Puts a transition if its version does not exist.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn put_transition(
        &self, tenant: &TenantId, job: &JobId, transition: &Transition,
    ) -> Result<TransitionPut, StoreError> {
        let item = transition_item(tenant, job, transition)?;
        match self.put_if_absent(&self.names.jobs, item).await {
            Ok(None) => Ok(TransitionPut::Written),
            Ok(Some(old)) => {
                let ours = decode::<Transition>("transition", old)?.by == transition.by;
                Ok(if ours { TransitionPut::Written } else { TransitionPut::Exists })
            }
            Err(error) => Err(classify("put transition", &error)),
        }
    }

    /// The job's progress, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_progress(&self, tenant: &TenantId, job: &JobId) -> Result<Option<Progress>, StoreError> {
        let item = self.get(&self.names.jobs, &keys::progress_pk(tenant, job), keys::PROGRESS).await?;
        item.map(|item| decode("progress", item)).transpose()
    }

    /// Puts progress if none or a lower sequence stands: older never overwrites newer.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn put_progress(
        &self, tenant: &TenantId, job: &JobId, progress: &Progress,
    ) -> Result<ProgressPut, StoreError> {
        let item = encode("progress", progress, &keys::progress_pk(tenant, job), keys::PROGRESS)?;
        let put = self
            .client
            .put_item()
            .table_name(&self.names.jobs)
            .set_item(Some(item))
            .condition_expression(match domain::planted::on("older-progress-overwrites") {
                true => "attribute_not_exists(pk) OR sq <> :sq", // PLANTED
                false => "attribute_not_exists(pk) OR sq < :sq",
            })
            .expression_attribute_values(":sq", n(progress.sequence));
        match put.send().await {
            Ok(_) => Ok(ProgressPut::Written),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(_)) => Ok(ProgressPut::Passed),
                _ => Err(classify("put progress", &error)),
            },
        }
    }

    /// Submits a job: its record, its reference, its hold and what is asked of a payment provider, in one transaction.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the job to find out.
    pub async fn submit_job(
        &self, job: &Job, delta: &BalanceDelta, outgoing: &[Outgoing],
    ) -> Result<Submitted, StoreError> {
        self.submit_with(job, delta, outgoing, None).await
    }

    pub(crate) async fn submit_with(
        &self, job: &Job, delta: &BalanceDelta, outgoing: &[Outgoing], more: Option<TransactWriteItem>,
    ) -> Result<Submitted, StoreError> {
        let put = |item| self.put_action(&self.names.jobs, item);
        let mut actions = vec![put(job_item(job)?)?, self.balance_action(&job.tenant, &job.wallet, delta)?];
        if let Some(reference) = &job.provider_ref {
            let pk = keys::ref_pk(&job.provider, reference);
            actions.push(put(encode("job reference", &JobRef::from(job), &pk, keys::REF)?)?);
        }
        actions.extend(more);
        self.outgoing_actions(outgoing, &mut actions)?;
        self.told_actions(&delta.low.told, &mut actions)?;
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        let Err(error) = result else { return Ok(Submitted::Created) };
        match judge("submit job", &error)? {
            Commit::Committed => Ok(Submitted::Created),
            Commit::Conflict => Ok(Submitted::Conflict),
            Commit::ConditionFailed(failed) => Ok(Submitted::ConditionFailed {
                job: failed.contains(&0),
                balance: failed.contains(&1),
                reference: job.provider_ref.is_some() && failed.contains(&2),
            }),
        }
    }

    /// Extends a hold: the extension, the balance, and that the job still runs with an open hold.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the job to find out.
    pub async fn commit_extension(
        &self, job: &Job, extension: &Extension, delta: &BalanceDelta, request: Option<&ControlRequest>,
    ) -> Result<Commit, StoreError> {
        let pk = keys::job_pk(&job.tenant, &job.job);
        let mut item = encode("hold extension", extension, &pk, &keys::extension_sk(extension.number))?;
        item.insert("xb".to_owned(), s(expiry_bucket(extension.expires_ms, &pk)));
        let mut actions = vec![
            self.put_action(&self.names.jobs, item)?,
            self.balance_action(&job.tenant, &job.wallet, delta)?,
            self.check_action(&job.tenant, &job.job, Check::NoTransition(1))?,
            self.check_action(&job.tenant, &job.job, Check::NoClose)?,
        ];
        if let Some(request) = request {
            actions.push(self.request_action(request)?);
        }
        self.told_actions(&delta.low.told, &mut actions)?;
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge("extend hold", &error), |_| Ok(Commit::Committed))
    }

    /// Puts a transition together with the control request that asked for it, and what is told of it.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the request to find out.
    pub async fn commit_transition(
        &self, job: &Job, transition: &Transition, request: &ControlRequest, told: &Told,
    ) -> Result<Commit, StoreError> {
        let item = transition_item(&job.tenant, &job.job, transition)?;
        let mut actions = vec![self.put_action(&self.names.jobs, item)?, self.request_action(request)?];
        self.told_actions(told, &mut actions)?;
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        result.map_or_else(|error| judge("cancel", &error), |_| Ok(Commit::Committed))
    }

    /// Attaches a provider's reference that came after submission, once: the reference leads to the job,
    /// and the job's partition says which reference it is.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] the same call finds out.
    pub async fn attach_ref(&self, job: &Job, reference: &ProviderRef) -> Result<Attached, StoreError> {
        let (found, pk) = (JobRef::from(job), keys::job_pk(&job.tenant, &job.job));
        let leads = encode("job reference", &found, &keys::ref_pk(&job.provider, reference), keys::REF)?;
        let mut says = Item::from([("rf".to_owned(), s(reference.as_str()))]);
        says.extend([("pk".to_owned(), s(&pk)), ("sk".to_owned(), s(keys::ATTACHED))]);
        says.insert("sv".to_owned(), n(domain::SCHEMA_VERSION));
        let actions = vec![self.put_action(&self.names.jobs, leads)?, self.put_action(&self.names.jobs, says)?];
        let result = self.client.transact_write_items().set_transact_items(Some(actions)).send().await;
        let Err(error) = result else { return Ok(Attached::Ours) };
        match judge("attach reference", &error)? {
            Commit::Committed => Ok(Attached::Ours),
            Commit::Conflict => {
                Err(StoreError::Busy { operation: "attach reference", code: "TransactionConflictException".to_owned() })
            }
            Commit::ConditionFailed(_) => {
                let stands = self.get(&self.names.jobs, &pk, keys::ATTACHED).await?;
                match stands.as_ref().and_then(|item| text(item, "rf")) {
                    Some(before) if before == reference.as_str() => Ok(Attached::Ours),
                    Some(_) => Ok(Attached::Other),
                    None => Ok(Attached::Taken),
                }
            }
        }
    }

    /// An insert of a transaction: never overwrites.
    pub(crate) fn put_action(&self, table: &str, item: Item) -> Result<TransactWriteItem, StoreError> {
        let mut put =
            Put::builder().table_name(table).set_item(Some(item)).condition_expression("attribute_not_exists(pk)");
        if table == self.names.ledger && domain::planted::on("condition-dropped-on-the-close") {
            put = put.set_condition_expression(None); // PLANTED
        }
        let built = |_| StoreError::Permanent { operation: "transaction", code: "construction".to_owned() };
        Ok(TransactWriteItem::builder().put(put.build().map_err(built)?).build())
    }
}

fn expiry_bucket(expires_ms: i64, pk: &str) -> String {
    keys::bucket(expires_ms.div_euclid(EXPIRY_BUCKET_MS), keys::shard_of(pk))
}

fn job_item(job: &Job) -> Result<Item, StoreError> {
    let pk = keys::job_pk(&job.tenant, &job.job);
    let mut item = encode("job", job, &pk, keys::JOB)?;
    item.insert("w".to_owned(), s(keys::wallet_pk(&job.tenant, &job.wallet)));
    item.insert("xb".to_owned(), s(expiry_bucket(job.expires_ms, &pk)));
    if let Some(request) = &job.request_id {
        item.insert("q".to_owned(), s(keys::request_key(&job.tenant, request)));
    }
    Ok(item)
}

pub(crate) fn transition_item(tenant: &TenantId, job: &JobId, transition: &Transition) -> Result<Item, StoreError> {
    encode("transition", transition, &keys::job_pk(tenant, job), &keys::transition_sk(transition.version))
}
