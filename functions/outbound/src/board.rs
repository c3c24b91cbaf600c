//! A version of a booking goes to a job board: the first creates the job there, each later one updates it under the id that
//! the board gave.
//!
//! What is sent is the delivery's, frozen when it was received; the path of an update is frozen in its intent when the
//! create is settled. The order of one booking is [`order`]'s: nothing leaves before the version before it is over, so an
//! older version never overwrites a newer one. A replay sends nothing: a second job, or an old version over a new one,
//! would be worse than a job that the board has lost.

use domain::board::{self, BoardStep, Created};
use domain::decide::NoEffect;
use domain::decide::forward::{self, Decision};
use domain::ids::ProviderRef;
use domain::intent::Intent;
use domain::message::group;
use domain::operation::Class;
use domain::profile::HttpDestination;
use runtime::App;
use runtime::consumer::Work;
use store::{Attached, IntentPut, StoreError};

use crate::{carry, order, way};

/// One round; `None` means that something was just written, and what stands is read again.
pub(crate) async fn round(app: &App, work: &Work, step: &BoardStep) -> Result<Option<NoEffect>, StoreError> {
    let group = group(&work.key, &work.receipt.envelope);
    let to = format!("http:{}", step.to);
    let asked = Intent::forward(&work.key, &work.receipt, &to, group, app.clock.now_ms());
    let ask = work.ask(app);
    let stands = app.store.get_intent(&asked.key).await?;
    match (forward::decide(&ask, &asked, stands.as_ref()), stands) {
        (Decision::None(NoEffect::Done), Some(intent)) if !intent.is_done() => attach(app, work, &intent).await,
        (Decision::None(verdict), _) => Ok(Some(verdict)),
        (Decision::Carry, Some(intent)) => {
            let attaches = intent.attached.is_some();
            let verdict = carry::carry(app, &ask, intent).await?;
            Ok(verdict.filter(|verdict| !attaches || *verdict != NoEffect::Done)) // settled now: attached next
        }
        (Decision::Put | Decision::Carry, _) => match app.profiles.destination(&step.to) {
            Some(destination) => put(app, step, asked, destination).await,
            None => Ok(Some(way::no_table(&step.to))),
        },
    }
}

/// Writes a new intent down, with all of the request that is frozen.
async fn put(
    app: &App, step: &BoardStep, asked: Intent, destination: &HttpDestination,
) -> Result<Option<NoEffect>, StoreError> {
    let key = asked.deduplication_id();
    let call = match &step.update {
        None => destination.call(&key),
        Some(update) => {
            let corrupt = |_| StoreError::Corrupt { what: "board event" };
            let (create, create_key) =
                (board::operation(&update.of).map_err(corrupt)?, board::intent_key(&update.of).map_err(corrupt)?);
            // What is over is read first: an intent that is read after it is the last word.
            let over = order::over(app, &create).await?;
            let intent = app.store.get_intent(&create_key).await?;
            match board::created(intent.as_ref(), over) {
                Created::As(id) => update.call(destination, &id, &key),
                Created::NotYet => {
                    let note = format!("{} has not made the job on the board yet", create.event);
                    return Ok(Some(NoEffect::Wait(Class::NotYet, note)));
                }
                Created::Never => {
                    let note = format!("{} made no job on the board: there is nothing to update", create.event);
                    return Ok(Some(NoEffect::Review(Class::NotPossible, note)));
                }
            }
        }
    };
    app.store.put_intent(&asked.over_http(Some(call)).attaching(step.attach)).await.map(|()| None)
}

/// Gives our job the board's id as its reference, once.
async fn attach(app: &App, work: &Work, intent: &Intent) -> Result<Option<NoEffect>, StoreError> {
    let envelope = &work.receipt.envelope;
    let id = intent.result.as_ref().and_then(|result| result.id.clone());
    let reference = id.and_then(|id| ProviderRef::new(id).ok());
    let (Some(tenant), Some(job), Some(reference)) = (&envelope.tenant, &envelope.job, reference) else {
        return Ok(Some(NoEffect::Review(Class::Unreadable, "the board's id of the job is not stored".to_owned())));
    };
    let Some(job) = app.store.get_job(tenant, job).await? else {
        return Ok(Some(NoEffect::Review(Class::Unreadable, "the booking's job is not there".to_owned())));
    };
    let attached = match &job.provider_ref {
        Some(own) if *own == reference => Attached::Ours,
        Some(_) => Attached::Other,
        None => app.store.attach_ref(&job, &reference).await?,
    };
    let conflict = |note: &str| Ok(Some(NoEffect::Review(Class::Conflict, note.to_owned())));
    match attached {
        Attached::Ours => match app.store.update_intent(&intent.with_attached()).await? {
            IntentPut::Written => Ok(Some(NoEffect::Done)),
            IntentPut::Lost(_) => Ok(None),
        },
        Attached::Other => conflict("the job was made on the board, and ours has another reference already"),
        Attached::Taken => conflict("the job was made on the board, and the board's id leads to another job of ours"),
    }
}
