//! Taking a destination's list for the answer that never came: the intent is settled with the id that the list has, and a
//! payment or refund that nobody told us of becomes an event of its own, on the ordinary path.

use domain::envelope::Envelope;
use domain::ids::{Provider, Reference};
use domain::intent::step::accepted;
use domain::money::Micros;
use domain::operation::{Class, OperationName};
use domain::reconcile::{Case, CaseClass, Decision, ListedEffect, Resolution, Subject};
use runtime::App;
use store::{IntentPut, StoreError};

use super::{ListEntry, ResolveError, Round, closed, not_possible};
use crate::intents::{Sent, of_key, stands};

pub(super) async fn accept(
    app: &App, case: &Case, effect: &ListedEffect, decision: Decision,
) -> Result<Round, ResolveError> {
    let Subject::Operation(key) = &case.subject else { return Err(not_possible("the case names no operation")) };
    let Some(sent) = of_key(app, key).await? else { return Err(not_possible("what was sent is not here any more")) };
    if !stands(app, case).await? {
        if case.class == CaseClass::SettledThere {
            close(app, &sent).await?; // an earlier try of ours may have got no further
        }
        let note = "the fact is gone; nothing was done".to_owned();
        let decision = Decision { resolution: Resolution::Gone, note, ..decision };
        return Ok(app.store.resolve_case(case, &decision).await?.into());
    }
    let told = (case, decision.actor.as_str());
    let note = match case.class {
        CaseClass::SettledThere => match settle(app, sent, effect).await? {
            Some(note) => note,
            None => return Ok(Round::Again),
        },
        CaseClass::PaymentUntold => tell(app, told, &sent, effect, OperationName::FundWallet).await?,
        CaseClass::RefundUntold => tell(app, told, &sent, effect, OperationName::ReverseFunding).await?,
        _ => return Err(not_possible("nothing of this case can be taken from the list")),
    };
    Ok(app.store.resolve_case(case, &Decision { note, ..decision }).await?.into())
}

/// The intent is settled by the list; `None` when another writer came first.
async fn settle(app: &App, sent: Sent, effect: &ListedEffect) -> Result<Option<String>, ResolveError> {
    let Some(next) = accepted(&sent.intent, &effect.id, app.clock.now_ms()) else { return Ok(None) };
    match app.store.update_intent(&next).await? {
        IntentPut::Lost(_) => Ok(None),
        IntentPut::Written => {
            let note = format!("{} with the id {} of the list", next.state.as_str(), effect.id);
            close(app, &Sent { intent: next, ..sent }).await?;
            Ok(Some(note))
        }
    }
}

/// The operation of an intent whose effect exists: over, or tried again where our job has still to get the id.
async fn close(app: &App, sent: &Sent) -> Result<(), StoreError> {
    let (now_ms, token) = (app.clock.now_ms(), app.random.token());
    let Some(record) = sent.record.as_ref().filter(|record| !record.is_final()) else { return Ok(()) };
    let next = match sent.intent.state {
        domain::intent::IntentState::Settled if sent.intent.is_done() => {
            Some(closed(sent.key.clone(), record, now_ms, token))
        }
        domain::intent::IntentState::Settled => {
            record.retried(Class::Retried, "its effect was found in the destination's list".to_owned(), now_ms, token)
        }
        _ => None, // it failed here, and its review says so
    };
    match next {
        Some(next) => app.store.put_operation(&next).await.map(|_| ()), // losing to another writer is fine: it knew more
        None => Ok(()),
    }
}

/// A receipt under an id made of what the list says, with the operation that its webhook would have asked for, due now. A
/// webhook that comes after all meets the posting under the payment's id.
async fn tell(
    app: &App, (case, actor): (&Case, &str), sent: &Sent, effect: &ListedEffect, name: OperationName,
) -> Result<String, ResolveError> {
    let (key, charged) = (&sent.key, &sent.receipt.envelope);
    let no_table = || not_possible(format!("providers.toml has no table [charges.{}]", key.item));
    let charges = app.profiles.charges(key.item.as_str()).ok_or_else(no_table)?;
    let currency = charged.currency.ok_or_else(|| not_possible("the charge has no currency"))?;
    if effect.currency.as_deref() != Some(currency.code()) {
        let listed = effect.currency.as_deref().unwrap_or("no currency");
        return Err(not_possible(format!("the charge is in {}, and the list says {listed}", currency.code())));
    }
    let minor = if name == OperationName::FundWallet { effect.paid } else { effect.refunded };
    let amount = minor.and_then(|minor| Micros::from_minor(minor, app.profiles.minor_digits(charges, currency)).ok());
    let amount = amount.ok_or_else(|| not_possible("the list has no amount that can be posted"))?;
    let named = |_| not_possible("the list's id of the payment is too long");
    let reference = Reference::new(effect.id.as_str()).map_err(named)?;
    let provider = Provider::new(charges.provider.as_str()).map_err(named)?;
    let identity = domain::operation::hex_sha256(&format!("{name}|{}|{}|{amount}", key.item, effect.id));
    let envelope = Envelope {
        tenant: charged.tenant.clone(),
        wallet: charged.wallet.clone(),
        currency: Some(currency),
        reference: Some(reference),
        amount: Some(amount.get()),
        ..Envelope::default()
    };
    let entry = ListEntry { whose: "destination", provider, identity, envelope, names: &[name] };
    Ok(entry.accepted(app, case, actor).await?)
}
