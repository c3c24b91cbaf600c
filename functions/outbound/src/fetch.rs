//! Fetches what an event lacks, and freezes it under the event.
//!
//! Asking changes nothing there, so it is simply repeated: after a lost answer, a death, another sandbox's try. The first
//! answer that has everything is put if nothing is; whatever stands is what everybody reads. Then what waits for it is
//! made due. A death before that costs time and nothing else: what waits looks again by itself.

use domain::decide::NoEffect;
use domain::envelope::Envelope;
use domain::fetch::{Decision, Fetched, Question};
use domain::job::Job;
use domain::operation::{Change, Class, OperationRecord, OperationState};
use domain::profile::{Fetch, Profile};
use runtime::App;
use runtime::consumer::Work;
use store::StoreError;

use crate::http::Http;
use crate::way;

/// One try.
pub(crate) async fn run(app: &App, work: &Work) -> Result<NoEffect, StoreError> {
    let envelope = &work.receipt.envelope;
    if envelope.fetched.is_some() {
        return wake(app, work).await.map(|()| NoEffect::Done);
    }
    let ask = work.ask(app);
    if let Some(limit) = ask.over_limit() {
        return Ok(limit);
    }
    let Some((profile, fetch)) = configured(app, work) else {
        let note = "the profile no longer says where what events of this type lack is fetched from".to_owned();
        return Ok(NoEffect::Review(Class::NotPossible, note));
    };
    let path = match path(app, work, fetch).await? {
        Ok(path) => path,
        Err(verdict) => return Ok(verdict),
    };
    let Some(table) = app.profiles.destination(&fetch.from) else { return Ok(way::no_table(&fetch.from)) };
    let http = match Http::open(app, table) {
        Ok(http) => http,
        Err(note) => return Ok(NoEffect::Wait(Class::Refused, note)),
    };
    if let Some(verdict) = way::admit(app, &http).await {
        return Ok(verdict);
    }
    let answer = http.get(app, &path).await;
    let question = Question { ask: &ask, plan: &work.receipt.plan, profile, fetch };
    let found = match question.read(&answer) {
        Decision::Freeze(found) => *found,
        Decision::None(verdict) => return Ok(verdict),
    };
    let gave = fetch.gave(&found);
    let whole = match job(app, work, &envelope.clone().filled_by(&found)).await? {
        None => found,
        Some(job) => match question.contradicts(&found, &job) {
            Some(verdict) => return Ok(verdict),
            None => found.filled_by(&whose(&job)),
        },
    };
    let fetched = Fetched { from: format!("http:{}", fetch.from), at_ms: app.clock.now_ms(), gave, envelope: whole };
    app.store.put_fetched(&work.key.event, &work.key.item, &fetched).await?;
    wake(app, work).await.map(|()| NoEffect::Done)
}

fn configured<'a>(app: &'a App, work: &Work) -> Option<(&'a Profile, &'a Fetch)> {
    let profile = app.profiles.get(work.key.event.provider.as_str())?;
    Some((profile, profile.rule(&work.receipt.event_type)?.fetch.as_ref()?))
}

/// The job that an envelope leads to, if it is known, with the reference that came after its submission.
async fn job(app: &App, work: &Work, envelope: &Envelope) -> Result<Option<Job>, StoreError> {
    let Some((tenant, id)) = app.store.find_job(&work.key.event.provider, envelope).await? else { return Ok(None) };
    match app.store.get_job(&tenant, &id).await? {
        Some(job) if job.provider_ref.is_none() => {
            let provider_ref = app.store.get_attached(&tenant, &id).await?;
            Ok(Some(Job { provider_ref, ..job }))
        }
        known => Ok(known),
    }
}

/// Whose a job is, as the receiver's look-up completes an event by it.
fn whose(job: &Job) -> Envelope {
    Envelope {
        tenant: Some(job.tenant.clone()),
        job: Some(job.job.clone()),
        wallet: Some(job.wallet.clone()),
        ..Envelope::default()
    }
}

/// The path, by the event's own members; what it lacks of them is its job's.
async fn path(app: &App, work: &Work, fetch: &Fetch) -> Result<Result<String, NoEffect>, StoreError> {
    let envelope = &work.receipt.envelope;
    if let Ok(path) = fetch.path_for(envelope) {
        return Ok(Ok(path));
    }
    let known = job(app, work, envelope).await?;
    let unknown = known.is_none();
    let known = known.map_or_else(Envelope::default, |job| Envelope {
        provider_ref: job.provider_ref.clone(),
        model: Some(job.model().clone()),
        ..whose(&job)
    });
    Ok(fetch.path_for(&envelope.clone().filled_by(&known)).map_err(|note| match unknown {
        true => NoEffect::Wait(Class::JobUnknown, format!("the job was not submitted yet, and {note}")),
        false => NoEffect::Wait(Class::NotYet, note),
    }))
}

/// Makes due what waits for this. Losing to another writer is fine: it reads the event anew.
async fn wake(app: &App, work: &Work) -> Result<(), StoreError> {
    let Some(when) = work.receipt.envelope.fetch else { return Ok(()) };
    let Some(records) = app.store.load_event(&work.key.event).await? else { return Ok(()) };
    let now_ms = app.clock.now_ms();
    for record in &records.operations {
        let Some(key) = record.key.as_ref().filter(|key| key.item == work.key.item && when.holds(key.name)) else {
            continue;
        };
        if waits(record, now_ms) {
            let due = Change {
                state: OperationState::Wait,
                class: record.class,
                note: "what the event lacked is fetched".to_owned(),
                due_ms: Some(now_ms),
                // A new one: a look that began before the answer came cannot push it back.
                generation: record.generation + 1,
                resend: false,
                attempts: record.attempts,
            };
            let next = OperationRecord::next(key.clone(), Some(record), due, now_ms, app.random.token());
            app.store.put_operation(&next).await?;
        }
    }
    Ok(())
}

fn waits(record: &OperationRecord, now_ms: i64) -> bool {
    let later = record.due_ms.is_some_and(|due_ms| due_ms > now_ms);
    record.state == OperationState::Wait && record.class == Class::NotYet && record.parked.is_none() && later
}
