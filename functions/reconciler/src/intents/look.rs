//! Reads what was sent for an event, and what is posted of its payment.

use std::collections::BTreeSet;

use domain::authorisation::{self, AUTHORISE};
use domain::charge::{self, CHARGE};
use domain::event::EventRef;
use domain::ids::{JobId, Provider, Reference, TenantId};
use domain::intent::{Intent, IntentState, forward_key};
use domain::money::Micros;
use domain::operation::{OperationKey, OperationName, OperationRecord};
use domain::outcome::Rules;
use domain::own::is_own;
use domain::profile::{Destination, Profiles};
use domain::receipt::Receipt;
use domain::reconcile::{
    Case, CaseClass, ChargeView, Finding, IntentView, LIST_GRACE_MS, ListedEffect, Posted, Subject, compare_intent,
    decisive,
};
use runtime::App;
use store::{EventRecords, StoreError};

/// What an operation sent, or is to send.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) key: OperationKey,
    pub(crate) receipt: Receipt,
    pub(crate) record: Option<OperationRecord>,
    pub(crate) intent: Intent,
}

/// How an intent names a destination.
pub(super) fn address(name: &str) -> String {
    Destination::Http(name.to_owned()).to_string()
}

/// Whose events can have sent anything to a destination, by the file as it is: of others the records need not be read.
#[derive(Debug, Default)]
pub(super) struct Senders {
    providers: BTreeSet<Provider>,
    charges: bool,
    told: bool,
}

impl Senders {
    pub(super) fn of(profiles: &Profiles, name: &str) -> Self {
        let mut senders = Self::default();
        for profile in profiles.iter() {
            for rule in profile.events.values() {
                if rule.forward.as_ref().is_some_and(|forward| is_to(&forward.to, name)) {
                    senders.providers.insert(profile.slug.clone());
                }
                senders.told |= rule.board.as_ref().is_some_and(|board| board.to == name);
            }
        }
        senders.told |= profiles.subscriptions().any(|one| is_to(&one.forward.to, name));
        senders.charges = profiles.all_charges().any(|charges| charges.destinations().any(|to| to == name));
        senders
    }

    pub(super) fn has(&self, event: &EventRef) -> bool {
        match is_own(event) {
            false => self.providers.contains(&event.provider),
            true if charge::is_of(event) => self.charges,
            true => self.told,
        }
    }
}

fn is_to(to: &Destination, name: &str) -> bool {
    matches!(to, Destination::Http(own) if own == name)
}

/// Whether a list is the one to say that an event is not known here, where two tables list the same account.
pub(super) fn is_responsible(profiles: &Profiles, name: &str, event: &EventRef) -> bool {
    let authorises = authorisation::is_of(event);
    profiles.all_charges().all(|charges| match &charges.authorise {
        Some(steps) if steps.to == name => authorises,
        Some(_) if charges.to == name => !authorises,
        _ => true,
    })
}

/// What an event sent, wherever to; what changes an effect there is no effect of its own.
pub(super) async fn of_event(app: &App, event: &EventRef) -> Result<Vec<Sent>, StoreError> {
    let Some(records) = app.store.load_event(event).await? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for key in records.receipt.operations() {
        let sent = if key.name == OperationName::Forward { sent(app, &records, key).await? } else { None };
        all.extend(sent);
    }
    Ok(all)
}

impl Sent {
    pub(super) fn is_to(&self, name: &str) -> bool {
        self.intent.to == address(name)
    }
}

/// What an operation sent.
pub(crate) async fn of_key(app: &App, key: &OperationKey) -> Result<Option<Sent>, StoreError> {
    match app.store.load_event(&key.event).await? {
        Some(records) => sent(app, &records, key.clone()).await,
        None => Ok(None),
    }
}

async fn sent(app: &App, records: &EventRecords, key: OperationKey) -> Result<Option<Sent>, StoreError> {
    let intent = app.store.get_intent(&forward_key(&key, records.receipt.envelope_of(&key.item))).await?;
    let own = |intent: &Intent| intent.by == key.by() && intent.call.as_ref().is_some_and(|call| !call.updates);
    let Some(intent) = intent.filter(own) else { return Ok(None) };
    let record = records.operation(&key).cloned();
    Ok(Some(Sent { receipt: records.receipt.of_item(&key.item), record, intent, key }))
}

/// What is wrong with what was sent, by the entries under its key.
pub(crate) async fn findings(
    app: &App, sent: &Sent, listed: &[ListedEffect], whole: bool, rules: &Rules,
) -> Result<Vec<Finding>, StoreError> {
    let charge = match charge::is_of(&sent.key.event) {
        true => asked_for(app, sent, decisive(listed)).await?,
        false => None,
    };
    Ok(compare_intent(&IntentView {
        key: &sent.key,
        intent: &sent.intent,
        record: sent.record.as_ref(),
        rules,
        listed,
        whole,
        charge: charge.as_ref(),
        now_ms: app.clock.now_ms(),
    }))
}

async fn asked_for(app: &App, sent: &Sent, there: Option<&ListedEffect>) -> Result<Option<ChargeView>, StoreError> {
    let envelope = &sent.receipt.envelope;
    let minor = envelope.data.get("minor_amount").and_then(|minor| minor.parse().ok());
    let amount = envelope.amount.and_then(|amount| Micros::new(amount).ok());
    let (Some(minor), Some(amount), Some(currency)) = (minor, amount, envelope.currency) else { return Ok(None) };
    let (Some(tenant), Some(wallet)) = (&envelope.tenant, &envelope.wallet) else { return Ok(None) };
    let Some(charges) = app.profiles.charges(sent.key.item.as_str()) else { return Ok(None) };
    let digits = app.profiles.minor_digits(charges, currency);
    let authorises = sent.receipt.event_type == AUTHORISE;
    let job = envelope.job.as_ref().filter(|_| authorises);
    // A captured authorisation is a payment as well, under the id of the authorisation.
    let is_payment = match job {
        Some(job) => !is_being_captured(app, sent, tenant, job).await?,
        None => sent.receipt.event_type == CHARGE,
    };
    let over = match job {
        Some(job) => app.store.load_ledger(tenant, job).await?.close.is_some(),
        None => false,
    };
    let payment = there.filter(|there| is_payment && there.paid.is_some());
    let posted = match payment.and_then(|there| Reference::new(there.id.as_str()).ok()) {
        None => None,
        Some(payment) => {
            let funded = app.store.get_funding(tenant, wallet, &payment).await?.is_some();
            let back = app.store.load_funding_reversals(tenant, wallet, &payment).await?;
            let reversed = back.iter().try_fold(Micros::ZERO, |sum, entry| sum.plus(entry.amount));
            Some(Posted { funded, reversed: reversed.map_err(|_| StoreError::Corrupt { what: "amount" })? })
        }
    };
    Ok(Some(ChargeView { minor, amount, currency, digits, posted, over }))
}

/// Whether a capture is on its way, or so young that its payment's webhook may still come: the list knows only when the
/// payment was authorised.
async fn is_being_captured(app: &App, sent: &Sent, tenant: &TenantId, job: &JobId) -> Result<bool, StoreError> {
    let corrupt = |_| StoreError::Corrupt { what: "capture" };
    let event = authorisation::capture_of(tenant, job).map_err(corrupt)?;
    let key = OperationKey { event, item: sent.key.item.clone(), name: OperationName::Forward };
    let Some(capture) = app.store.get_intent(&key.to_string()).await? else { return Ok(false) };
    let young = capture.sent_ms.is_none_or(|sent_ms| app.clock.now_ms() - sent_ms < LIST_GRACE_MS);
    Ok(young && capture.state != IntentState::Failed)
}

/// Whether a case's fact still stands by our own records and by what the list said of it.
pub(crate) async fn stands(app: &App, case: &Case) -> Result<bool, StoreError> {
    let Subject::Operation(key) = &case.subject else { return Ok(true) };
    let Some(sent) = of_key(app, key).await? else { return Ok(false) };
    if case.class == CaseClass::DoneTwice {
        return Ok(true); // only the list can say otherwise
    }
    let Ok(Destination::Http(name)) = sent.intent.to.parse() else { return Ok(false) };
    let Some(table) = app.profiles.destination(&name) else { return Ok(true) };
    let listed = case.effect.as_slice();
    let found = findings(app, &sent, listed, listed.is_empty(), &table.rules).await?;
    Ok(found.iter().any(|finding| finding.case_id() == case.id))
}
