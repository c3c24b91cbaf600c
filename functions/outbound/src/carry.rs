//! Carries one intent out, step by step; it does not know what is being sent. What follows when is
//! [`domain::intent::step`]'s to say; here is the order in which it is done and written.

use std::borrow::Cow;

use domain::decide::{Ask, NoEffect};
use domain::intent::step::{Found, Step, looked, next, observed};
use domain::intent::{Intent, IntentState};
use domain::operation::Class;
use domain::outcome::{Answer, Rules, Verdict, read};
use runtime::App;
use store::{IntentPut, StoreError};

use crate::way::Way;

/// Steps within one invocation: a look-up, a sending, another look-up, and what each of them leads to.
const STEPS: u32 = 8;
/// Writes of one answer: another writer may come between.
const WRITES: u32 = 5;

/// Carries out what stands. `None` means that another writer came first, and what stands is read again.
pub(crate) async fn carry(app: &App, ask: &Ask<'_>, mut intent: Intent) -> Result<Option<NoEffect>, StoreError> {
    let way = match Way::of(app, &intent) {
        Ok(way) => way,
        Err(NoEffect::Wait(class, note)) => return Ok(Some(held(ask, &intent, NoEffect::Wait(class, note)))),
        Err(verdict) => return Ok(Some(verdict)),
    };
    let rules = way.rules(&intent);
    let approved_ms = ask.record.and_then(|record| record.waivers.resend_ms);
    let (mut tried, mut absent) = (false, false);
    for _ in 0..STEPS {
        let now_ms = app.clock.now_ms();
        let step = if absent { Step::Send } else { next(&intent, &rules, now_ms, approved_ms) };
        match step {
            Step::Done => return Ok(Some(NoEffect::Done)),
            Step::Review(class, note) => return Ok(Some(NoEffect::Review(class, note))),
            Step::Wait(due_ms, note) => return Ok(Some(held(ask, &intent, until(note, due_ms)))),
            // One sending in one invocation: between two of them there is a wait.
            Step::Send if tried => return Ok(Some(later(&intent))),
            Step::Send => {
                if let Some(limit) = ask.over_limit() {
                    return Ok(Some(unsure(&intent, limit)));
                }
                if let Some(verdict) = way.admit(app).await {
                    return Ok(Some(verdict));
                }
                let Some(submitted) = submit(app, &intent).await? else { return Ok(None) };
                if domain::planted::on("result-recorded-before-the-answer") {
                    // PLANTED
                    let hoped = Answer::Status { status: 200, body: Some(br#"{"id":"hoped"}"#.to_vec()) };
                    record(app, submitted.clone(), &rules, &hoped).await?;
                }
                let answer = way.send(app, &leaves(&submitted)).await;
                intent = record(app, submitted, &rules, &answer).await?;
                (tried, absent) = (true, false);
            }
            Step::LookUp => {
                let Some(lookup) = &rules.lookup else { return Ok(Some(later(&intent))) };
                if let Some(verdict) = way.admit(app).await {
                    return Ok(Some(held(ask, &intent, verdict)));
                }
                // A miss is as old as the question, however long the answer took.
                let asked_ms = app.clock.now_ms();
                let seen = way.look_up(app, lookup, &intent).await;
                match looked(&intent, &rules, lookup, seen, asked_ms) {
                    Found::Change(next) => match app.store.update_intent(&next).await? {
                        IntentPut::Written => intent = *next,
                        IntentPut::Lost(_) => return Ok(None),
                    },
                    Found::Send => absent = true,
                    Found::Wait(due_ms, note) => return Ok(Some(held(ask, &intent, until(note, due_ms)))),
                    Found::Unclear(note) => {
                        return Ok(Some(held(ask, &intent, NoEffect::Wait(Class::Transient, note))));
                    }
                    Found::Review(class, note) => return Ok(Some(NoEffect::Review(class, note))),
                }
            }
        }
    }
    Ok(Some(later(&intent)))
}

/// What leaves: what is stored, whichever try it is.
fn leaves(submitted: &Intent) -> Cow<'_, Intent> {
    if submitted.attempts > 1 && domain::planted::on("new-key-on-retry") {
        // PLANTED
        return Cow::Owned(Intent { key: format!("{}|{}", submitted.key, submitted.attempts), ..submitted.clone() });
    }
    if submitted.attempts > 1 && domain::planted::on("request-rebuilt-on-retry") {
        // PLANTED
        return Cow::Owned(Intent { request: submitted.request.replacen(':', ": ", 1), ..submitted.clone() });
    }
    Cow::Borrowed(submitted)
}

/// Sends what has arrived once more, since a replay asked for it: the same bytes under the same key, and what stands
/// is not changed by it. To where it could be taken for something new, nothing is sent.
pub(crate) async fn once_more(app: &App, intent: &Intent) -> Result<NoEffect, StoreError> {
    let way = match Way::of(app, intent) {
        Ok(way) => way,
        Err(verdict) => return Ok(verdict),
    };
    let rules = way.rules(intent);
    let (first_ms, now_ms) = (intent.first_sent_ms.unwrap_or(intent.created_ms), app.clock.now_ms());
    if !rules.key.holds(first_ms, now_ms) {
        return Ok(NoEffect::Done);
    }
    if let Some(verdict) = way.admit(app).await {
        return Ok(verdict);
    }
    // A try of its own: a signature bears its time, and its reader refuses an old one.
    let once = Intent { last_sent_ms: Some(now_ms), attempts: intent.attempts + 1, ..intent.clone() };
    Ok(match read(&rules, &way.send(app, &once).await) {
        Verdict::Settled(_) => NoEffect::Done,
        Verdict::NotDone { refused: true } => NoEffect::Wait(Class::Refused, format!("{}: refused", intent.to)),
        _ => NoEffect::Wait(Class::Transient, format!("{}: not taken once more yet", intent.to)),
    })
}

fn until(note: String, due_ms: i64) -> NoEffect {
    NoEffect::Until(Class::Transient, note, due_ms)
}

/// A wait, unless the limits of attempts or age are reached.
fn held(ask: &Ask<'_>, intent: &Intent, wait: NoEffect) -> NoEffect {
    ask.over_limit().map_or(wait, |limit| unsure(intent, limit))
}

/// Another try after a wait, in the words of the last one.
fn later(intent: &Intent) -> NoEffect {
    let result = intent.last_result();
    let class = if result.is_some_and(|result| result.refused) { Class::Refused } else { Class::Transient };
    let note = result.map_or("no answer was recorded", |result| result.note.as_str());
    NoEffect::Wait(class, format!("{}: {note}", intent.to))
}

/// A limit ends the tries of what may have been done: whoever decides has to know.
fn unsure(intent: &Intent, limit: NoEffect) -> NoEffect {
    match limit {
        NoEffect::Review(class, note) if intent.state == IntentState::Uncertain => {
            NoEffect::Review(class, format!("it may or may not have been done; {note}"))
        }
        limit => limit,
    }
}

/// Commits that bytes are about to leave. `None`: another writer came first.
async fn submit(app: &App, intent: &Intent) -> Result<Option<Intent>, StoreError> {
    let next = intent.submitted(app.clock.now_ms(), app.random.token());
    match app.store.update_intent(&next).await {
        Ok(IntentPut::Written) => Ok(Some(next)),
        Ok(IntentPut::Lost(_)) => Ok(None),
        // A lost answer is resolved by reading: no byte has left yet, so that is no unknown outcome out there.
        Err(error @ StoreError::Unknown { .. }) => {
            let stands = app.store.get_intent(&next.key).await?;
            if stands.as_ref() == Some(&next) { Ok(Some(next)) } else { Err(error) }
        }
        Err(error) => Err(error),
    }
}

/// Writes down what a try was answered, on top of whatever stands by now.
async fn record(app: &App, submitted: Intent, rules: &Rules, answer: &Answer) -> Result<Intent, StoreError> {
    let (attempt, now_ms) = (submitted.attempts, app.clock.now_ms());
    let mut stands = submitted;
    let mut last = None;
    for _ in 0..WRITES {
        let next = observed(&stands, rules, attempt, answer, now_ms);
        match app.store.update_intent(&next).await {
            Ok(IntentPut::Written) => return Ok(next),
            Ok(IntentPut::Lost(newer)) => stands = *newer,
            // An answer is dear: the next try may not get it again.
            Err(error) if error.is_transient() => {
                last = Some(error);
                app.pause().await;
            }
            Err(error) => return Err(error),
        }
    }
    let busy = || StoreError::Busy { operation: "update intent", code: "other writers won every time".to_owned() };
    Err(last.unwrap_or_else(busy))
}
