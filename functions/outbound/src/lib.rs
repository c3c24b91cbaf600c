//! The outbound consumer: what leaves the system.
//!
//! The order of steps is the promise: the intent with its exact bytes is written first; that it is submitted is written
//! before a byte leaves; then it is sent; then what came back is written. Dying between any two of them, or losing an
//! answer, is an unknown outcome, and the destination's rules say what follows: the identical bytes under the same key, a
//! look-up, or a person. It has a queue of its own, so a slow destination blocks no job and no wallet.
//! Only `fetch` has no intent: it reads, and what it reads is frozen once (`fetch.rs`).

mod board;
mod carry;
mod fetch;
mod http;
mod order;
mod void;
mod way;

use domain::decide::NoEffect;
use domain::decide::forward::{self, Decision};
use domain::ids::ItemId;
use domain::intent::Intent;
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::message::group;
use domain::operation::{Class, OperationName};
use domain::own::is_own;
use domain::profile::{Destination, Forward};
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
        if work.key.name == OperationName::Fetch {
            return fetch::run(app, work).await;
        }
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

/// One round; `None` means that something was just written, and what stands is read again.
async fn round(app: &App, work: &Work) -> Result<Option<NoEffect>, StoreError> {
    if let Some(step) = work.receipt.board() {
        return board::round(app, work, step).await;
    }
    let group = group(&work.key, &work.receipt.envelope);
    let configured = configured(app, work);
    // What was written down leaves as it was written, whatever the profile says by now: it is asked for a new intent only.
    let to = configured.map(|forward| forward.to.to_string()).unwrap_or_default();
    let charge = domain::charge::is_of(&work.key.event);
    let void = domain::authorisation::is_void(&work.key.event); // its request is made when it is known whose
    let charged = if charge && !void { app.charge_intent(&work.key, &work.receipt) } else { None };
    let without_tables = charge && charged.is_none();
    let asked = charged.unwrap_or_else(|| Intent::forward(&work.key, &work.receipt, &to, group, app.clock.now_ms()));
    let ask = work.ask(app);
    let stands = app.store.get_intent(&asked.key).await?;
    match (forward::decide(&ask, &asked, stands.as_ref()), stands) {
        // Told before, and a replay asked for it once more: the same bytes under the same key.
        (Decision::None(NoEffect::Done), Some(intent)) if again(work) && !charge => {
            carry::once_more(app, &intent).await.map(Some)
        }
        (Decision::None(verdict), _) => Ok(Some(verdict)),
        (Decision::Carry, Some(intent)) => {
            Ok(carry::carry(app, &ask, intent).await?.map(|verdict| advised(work, verdict)))
        }
        (Decision::Put | Decision::Carry, _) if void => void::put(app, work).await,
        (Decision::Put | Decision::Carry, _) if without_tables => Ok(Some(no_charges(&work.key.item))),
        (Decision::Put | Decision::Carry, _) if charge => app.store.put_intent(&asked).await.map(|()| None),
        (Decision::Put | Decision::Carry, _) => match configured {
            Some(forward) => put(app, asked, &forward.to).await,
            None => {
                let note = "the profile no longer says where events of this type are forwarded to".to_owned();
                Ok(Some(NoEffect::Review(Class::NotPossible, note)))
            }
        },
    }
}

/// The review of a step of an authorisation: what to do is not what it is for a charge.
pub(crate) fn advised(work: &Work, verdict: NoEffect) -> NoEffect {
    let NoEffect::Review(class, note) = verdict else { return verdict };
    match domain::authorisation::advice(&work.receipt.event_type, class) {
        Some(advice) => NoEffect::Review(class, format!("{note}. {advice}")),
        None => NoEffect::Review(class, note),
    }
}

/// The file has not the tables of a payment provider any more, or not yet.
pub(crate) fn no_charges(name: &ItemId) -> NoEffect {
    let note = format!(
        "providers.toml has no table [charges.{name}], or not the destinations that it names: add them and deploy"
    );
    NoEffect::Wait(Class::Refused, note)
}

/// Writes a new intent down, with all of the request that is frozen.
async fn put(app: &App, asked: Intent, to: &Destination) -> Result<Option<NoEffect>, StoreError> {
    let call = match to {
        Destination::Http(name) => match app.profiles.destination(name) {
            Some(destination) => Some(destination.call(&asked.deduplication_id())),
            None => return Ok(Some(way::no_table(name))),
        },
        Destination::Sqs(_) | Destination::EventBridge(_) => None,
    };
    app.store.put_intent(&asked.over_http(call)).await.map(|()| None)
}
