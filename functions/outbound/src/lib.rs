//! The outbound consumer: what leaves the system.
//!
//! The order of steps is the promise: the intent with its exact bytes is written first, then it is sent,
//! then it is marked as sent. Dying between any two of them, or losing an answer, repeats the identical
//! bytes under the same key: at least once to the destination, which tells a repetition by the key. It
//! has a queue of its own, so a slow destination blocks no job and no wallet.

mod order;

use domain::decide::NoEffect;
use domain::decide::forward::{self, Decision};
use domain::intent::Intent;
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::message::group;
use domain::operation::{Class, OperationName};
use domain::own::is_own;
use domain::profile::{Destination, Forward};
use queue::QueueError;
use runtime::App;
use runtime::consumer::{Operate, Work, handle_batch};
use runtime::retry::Again;
use runtime::sqs::{BatchResponse, SqsEvent};
use store::StoreError;

/// Handles one batch of the outbound queue.
pub async fn handle(app: &App, event: SqsEvent) -> BatchResponse {
    handle_batch(app, &event, &OutboundConsumer).await
}

struct OutboundConsumer;

impl Operate for OutboundConsumer {
    async fn operate(&self, app: &App, work: &Work) -> Result<NoEffect, StoreError> {
        if work.key.name != OperationName::Forward {
            let note = "this operation belongs to another consumer".to_owned();
            return Ok(NoEffect::Review(Class::Unreadable, note));
        }
        if let Some(wait) = order::held_back(app, work).await? {
            return Ok(wait);
        }
        let mut again = Again::new(app);
        for _ in 0..DECIDE_AGAIN_LIMIT {
            match round(app, work).await {
                Ok(Some(verdict)) => return Ok(verdict),
                Ok(None) => {}
                Err(error) => again.after(error).await?,
            }
        }
        Ok(NoEffect::Wait(Class::Transient, "other writers won every time".to_owned()))
    }
}

fn configured<'a>(app: &'a App, work: &Work) -> Option<&'a Forward> {
    if is_own(&work.key.event) {
        return app.profiles.subscription(&work.key.item).map(|one| &one.forward);
    }
    let profile = app.profiles.get(work.key.event.provider.as_str())?;
    profile.rule(&work.receipt.event_type)?.forward.as_ref()
}

fn again(work: &Work) -> bool {
    work.record.as_ref().is_some_and(|record| record.waivers.again)
}

/// One round; `None` means that the intent was just written, and what stands is read again.
async fn round(app: &App, work: &Work) -> Result<Option<NoEffect>, StoreError> {
    let group = group(&work.key, &work.receipt.envelope);
    let configured = configured(app, work);
    // What was written down leaves as it was written, whatever the profile says by now: it is asked for a new intent only.
    let to = configured.map(|forward| forward.to.to_string()).unwrap_or_default();
    let asked = Intent::forward(&work.key, &work.receipt, &to, group, app.clock.now_ms());
    let stands = app.store.get_intent(&asked.key).await?;
    match (forward::decide(&work.ask(app), &asked, stands.as_ref()), &stands) {
        // Told before, and a replay asked for it once more: the same bytes under the same key.
        (Decision::None(NoEffect::Done), Some(intent)) if again(work) => send(app, intent).await.map(Some),
        (Decision::None(verdict), _) => Ok(Some(verdict)),
        (Decision::Send, Some(intent)) => send(app, intent).await.map(Some),
        (Decision::Put | Decision::Send, _) if configured.is_none() => {
            let note = "the profile no longer says where events of this type are forwarded to".to_owned();
            Ok(Some(NoEffect::Review(Class::NotPossible, note)))
        }
        (Decision::Put | Decision::Send, _) => app.store.put_intent(&asked).await.map(|()| None),
    }
}

/// Sends what stands, to where it says, and marks it.
async fn send(app: &App, intent: &Intent) -> Result<NoEffect, StoreError> {
    let Ok(to) = intent.to.parse::<Destination>() else {
        let note = "a stored intent names a destination that this version does not know".to_owned();
        return Ok(NoEffect::Review(Class::Unreadable, note));
    };
    let Some(address) = app.destinations.get(&to) else {
        let variable = to.variable();
        let note =
            format!("set the environment variable {variable} of the outbound function, and name it in a profile");
        return Ok(NoEffect::Wait(Class::Refused, note));
    };
    let sent = match &to {
        Destination::Sqs(_) => app.queues.forward(address, intent).await,
        Destination::EventBridge(_) => app.queues.put_event(address, intent).await,
    };
    match sent {
        Ok(()) => app.store.mark_sent(&intent.key, app.clock.now_ms()).await.map(|()| NoEffect::Done),
        Err(error) => Ok(NoEffect::Wait(class(&error), format!("{to}: {error}"))),
    }
}

/// A refusal waits as well, since a right or a queue may be repaired; only its class says so.
fn class(error: &QueueError) -> Class {
    if error.refused { Class::Refused } else { Class::Transient }
}
