//! The job consumer: terminal transitions and progress.
//!
//! Reads the job, asks the pure decision, and commits it with one conditional put. A failed
//! condition means: decide again from the first read. It never touches money, so a failing billing
//! side neither blocks nor undoes it. Where somebody subscribed, what is told of a transition is put with it.

use domain::decide::{NoEffect, complete, progress};
use domain::job::JobRecords;
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::operation::{Class, OperationName};
use domain::own::OwnEvent;
use runtime::App;
use runtime::consumer::{Operate, Work, handle_batch};
use runtime::retry::Again;
use runtime::sqs::{BatchResponse, SqsEvent};
use store::{ProgressPut, StoreError, TransitionPut};

/// Handles one batch of the job queue.
pub async fn handle(app: &App, event: SqsEvent) -> BatchResponse {
    handle_batch(app, &event, &JobConsumer).await
}

struct JobConsumer;

impl Operate for JobConsumer {
    async fn operate(&self, app: &App, work: &Work) -> Result<NoEffect, StoreError> {
        let mut again = Again::new(app);
        for _ in 0..DECIDE_AGAIN_LIMIT {
            let tried = match work.key.name {
                OperationName::CompleteJob => complete_once(app, work).await,
                OperationName::RecordProgress => progress_once(app, work).await,
                _ => {
                    let note = "this operation belongs to another consumer".to_owned();
                    return Ok(NoEffect::Review(Class::Unreadable, note));
                }
            };
            match tried {
                Ok(Some(verdict)) => return Ok(verdict),
                Ok(None) => {}
                Err(_) if domain::planted::on("any-error-taken-for-done") => return Ok(NoEffect::Done), // PLANTED
                Err(error) => again.after(error).await?,
            }
        }
        Ok(NoEffect::Wait(Class::Transient, "other writers won every time".to_owned()))
    }
}

async fn load_job(app: &App, work: &Work) -> Result<Option<JobRecords>, StoreError> {
    match app.store.find_job(&work.key.event.provider, &work.receipt.envelope).await? {
        Some((tenant, job)) => app.store.load_job(&tenant, &job).await,
        None => Ok(None),
    }
}

/// One round of complete-job; `None` means that another writer won and the round begins anew.
async fn complete_once(app: &App, work: &Work) -> Result<Option<NoEffect>, StoreError> {
    let records = load_job(app, work).await?;
    let (transition, job) = match (complete::decide(&work.ask(app), records.as_ref()), &records) {
        (complete::Decision::Put(transition), Some(records)) => (transition, &records.job),
        (complete::Decision::Put(_), None) => return Ok(None), // decide puts nothing without a job
        (complete::Decision::None(verdict), _) => return Ok(Some(verdict)),
    };
    let told = app.tell([OwnEvent::transition(&job.tenant, &job.job, &job.wallet, &transition)]).await?;
    match app.store.put_transition_telling(&job.tenant, &job.job, &transition, &told).await? {
        TransitionPut::Written => {
            app.send_told(&told).await;
            Ok(Some(NoEffect::Done))
        }
        TransitionPut::Exists => Ok(None),
    }
}

/// One round of record-progress.
async fn progress_once(app: &App, work: &Work) -> Result<Option<NoEffect>, StoreError> {
    let records = load_job(app, work).await?;
    let stored = match &records {
        Some(records) => app.store.get_progress(&records.job.tenant, &records.job.job).await?,
        None => None,
    };
    let decision = progress::decide(&work.ask(app), &work.receipt.event_type, records.as_ref(), stored.as_ref());
    let (update, job) = match (decision, &records) {
        (progress::Decision::Put(update), Some(records)) => (update, &records.job),
        (progress::Decision::Put(_), None) => return Ok(None),
        (progress::Decision::None(verdict), _) => return Ok(Some(verdict)),
    };
    match app.store.put_progress(&job.tenant, &job.job, &update).await? {
        ProgressPut::Written => Ok(Some(NoEffect::Done)),
        ProgressPut::Passed => Ok(None),
    }
}
