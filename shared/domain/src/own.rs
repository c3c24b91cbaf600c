//! Events of our own: what happened here, told to whoever subscribed to it.
//!
//! An effect that somebody wants to hear of becomes a receipt under a slug that no provider can have, with one
//! `forward` for each subscription (the item is the subscription's name). It is put in the transaction of the
//! effect, so the two exist together or not at all; its id is made from the effect's own key, so it exists once.
//! From there on everything that serves a provider's event serves it: relay, deferral, reviews, replay, `explain`.
//!
//! What is told of an event of our own is never an event again ([`OwnEvent::review`]): a forward that cannot leave
//! would else tell of itself for ever.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::decide::posting::Posting;
use crate::envelope::Envelope;
use crate::event::{EventId, EventRef};
use crate::ids::{IdError, ItemId, JobId, Provider, TenantId, WalletId, escape};
use crate::job::{Outcome, Transition};
use crate::keys;
use crate::ledger::{Balance, BalanceDelta, Entry};
use crate::money::{Currency, Micros};
use crate::operation::{OperationName, OperationRecord, OperationState, hex_sha256};
use crate::profile::Subscription;
use crate::receipt::{Conflict, Planned, Receipt};
use crate::time::rfc3339;

/// The slug under which our own events appear beside the providers'.
pub const OWN_PROVIDER: &str = "own";

/// What can be subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnType {
    /// Money of a job moved: a close of its hold, a late capture, a correction or a reversal.
    JobSettled,
    /// A job's terminal transition: success.
    JobCompleted,
    /// A job's terminal transition: failure.
    JobFailed,
    /// A job's terminal transition: canceled.
    JobCanceled,
    /// A wallet's available balance fell below a threshold.
    LowBalance,
    /// An operation waits for a person.
    ReviewOpened,
    /// Other content came under a known event id.
    EventConflict,
}

impl OwnType {
    /// Every type.
    pub const ALL: [Self; 7] = [
        Self::JobSettled,
        Self::JobCompleted,
        Self::JobFailed,
        Self::JobCanceled,
        Self::LowBalance,
        Self::ReviewOpened,
        Self::EventConflict,
    ];

    /// The stable name in files and bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JobSettled => "job.settled",
            Self::JobCompleted => "job.completed",
            Self::JobFailed => "job.failed",
            Self::JobCanceled => "job.canceled",
            Self::LowBalance => "wallet.low-balance",
            Self::ReviewOpened => "review.opened",
            Self::EventConflict => "event.conflict",
        }
    }
}

impl std::str::FromStr for OwnType {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| format!("unknown type {text:?}"))
    }
}

/// What happened, before anybody is asked who wants to hear of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnEvent {
    /// What.
    pub kind: OwnType,
    /// The event's id, from the effect's own key.
    pub id: EventId,
    /// What it is about: within it an ordered subscription keeps the order of commit. The partition of a job, a
    /// wallet, or of the event that has a review.
    pub subject: String,
    /// When, Unix milliseconds.
    pub at_ms: i64,
    /// What it says.
    pub envelope: Envelope,
    /// Of [`OwnType::LowBalance`]: the threshold that was passed.
    pub threshold: Option<(Currency, Micros)>,
}

/// The id of an event of our own: its type and the effect's key, whose parts are escaped already. What is longer than
/// a key part is named by its hash, behind the type all the same.
pub(crate) fn id_of(event_type: &str, key: &str) -> EventId {
    let hash = || hex_sha256(&format!("{event_type}|{key}"));
    let short = EventId::text(&format!("{event_type}|{key}"));
    let short = short.or_else(|_| EventId::text(&format!("{event_type}|sha256:{}", hash())));
    short.unwrap_or_else(|_| EventId::derived(&hash())) // types are short: never
}

fn of_job(tenant: &TenantId, job: &JobId) -> String {
    format!("{}|{}", escape(tenant.as_str()), escape(job.as_str()))
}

fn amount(micros: Micros) -> String {
    micros.to_string()
}

impl OwnEvent {
    /// A job's terminal transition.
    pub fn transition(tenant: &TenantId, job: &JobId, wallet: &WalletId, transition: &Transition) -> Self {
        let kind = match transition.outcome {
            Outcome::Success => OwnType::JobCompleted,
            Outcome::Failure => OwnType::JobFailed,
            Outcome::Canceled => OwnType::JobCanceled,
        };
        let envelope = Envelope {
            tenant: Some(tenant.clone()),
            job: Some(job.clone()),
            wallet: Some(wallet.clone()),
            version: Some(transition.version),
            outcome: Some(transition.outcome),
            usage: transition.usage.clone(),
            data: [("by".to_owned(), transition.by.to_string())].into(),
            ..Envelope::default()
        };
        let id = id_of(kind.as_str(), &format!("{}|{}", of_job(tenant, job), transition.version));
        let subject = keys::job_pk(tenant, job);
        Self { kind, id, subject, at_ms: transition.created_ms, envelope, threshold: None }
    }

    /// What a posting does to its job: the transition that it puts, then the settlement. A funding is no job's.
    pub fn of_posting(posting: &Posting) -> Vec<Self> {
        let entry = &posting.entry;
        let Some(job) = &entry.job else { return Vec::new() };
        let ended = posting.transition.iter().map(|t| Self::transition(&entry.tenant, job, &entry.wallet, t));
        ended.chain([Self::settlement(entry, job, &posting.sort_key)]).collect()
    }

    fn settlement(entry: &Entry, job: &JobId, sort_key: &str) -> Self {
        let mut data = BTreeMap::from([
            ("kind".to_owned(), entry.kind.as_str().to_owned()),
            ("released".to_owned(), amount(entry.released)),
            ("by".to_owned(), entry.by.clone()),
        ]);
        if entry.uncharged != Micros::ZERO {
            data.insert("uncharged".to_owned(), amount(entry.uncharged));
        }
        data.extend(entry.reference.iter().map(|reference| ("reference".to_owned(), reference.clone())));
        let sequence = entry.link.as_ref().and_then(|link| i64::try_from(link.sequence).ok());
        let envelope = Envelope {
            tenant: Some(entry.tenant.clone()),
            job: Some(job.clone()),
            wallet: Some(entry.wallet.clone()),
            version: entry.version,
            usage: entry.usage.clone(),
            amount: Some(entry.amount.get()),
            currency: Some(entry.currency),
            sequence,
            data,
            ..Envelope::default()
        };
        let id = id_of(OwnType::JobSettled.as_str(), &format!("{}|{sort_key}", of_job(&entry.tenant, job)));
        let (subject, at_ms) = (keys::job_pk(&entry.tenant, job), entry.created_ms);
        Self { kind: OwnType::JobSettled, id, subject, at_ms, envelope, threshold: None }
    }

    /// A wallet whose available balance falls below `threshold`. Keyed by the balance's revision, which every write
    /// of it moves: a hold lowers the balance and advances no sequence.
    fn low(wallet: (&TenantId, &WalletId), balance: &Balance, after: Micros, threshold: Micros, now_ms: i64) -> Self {
        let (tenant, id) = wallet;
        let data = BTreeMap::from([
            ("available".to_owned(), amount(after)),
            ("threshold".to_owned(), amount(threshold)),
            ("revision".to_owned(), (balance.rev + 1).to_string()),
        ]);
        let envelope = Envelope {
            tenant: Some(tenant.clone()),
            wallet: Some(id.clone()),
            currency: Some(balance.currency),
            data,
            ..Envelope::default()
        };
        let (revision, limit) = (balance.rev + 1, amount(threshold));
        let key = format!("{}|{}|{revision}|{limit}", escape(tenant.as_str()), escape(id.as_str()));
        let event = id_of(OwnType::LowBalance.as_str(), &key);
        let (subject, threshold) = (keys::wallet_pk(tenant, id), Some((balance.currency, threshold)));
        Self { kind: OwnType::LowBalance, id: event, subject, at_ms: now_ms, envelope, threshold }
    }

    /// An operation's record in review; `None` for any other, and for a review of an event of our own. `from` is the
    /// event's envelope, where it could be read.
    pub fn review(record: &OperationRecord, from: Option<&Envelope>) -> Option<Self> {
        let key = record.key.as_ref().filter(|key| !is_own(&key.event) || crate::charge::is_of(&key.event))?;
        if record.state != OperationState::Review {
            return None;
        }
        let mut envelope = named(from);
        envelope.data = BTreeMap::from([
            ("event".to_owned(), key.event.to_string()),
            ("item".to_owned(), key.item.to_string()),
            ("operation".to_owned(), key.name.to_string()),
            ("class".to_owned(), record.class.name()),
            ("revision".to_owned(), record.revision.to_string()),
        ]);
        let id = id_of(OwnType::ReviewOpened.as_str(), &format!("{key}|{}", record.revision));
        let subject = keys::event_pk(&key.event);
        let at_ms = record.changed_ms;
        Some(Self { kind: OwnType::ReviewOpened, id, subject, at_ms, envelope, threshold: None })
    }

    /// Other content under a known event id, or an event whose records cannot be read, which is a person's too.
    pub fn conflict(event: &EventRef, conflict: &Conflict) -> Option<Self> {
        if is_own(event) {
            return None;
        }
        let unreadable = conflict.payload_hash == crate::receipt::UNREADABLE;
        let kind = if unreadable { OwnType::ReviewOpened } else { OwnType::EventConflict };
        let mut envelope = named(Some(&conflict.envelope));
        envelope.data = BTreeMap::from([
            ("event".to_owned(), event.to_string()),
            ("class".to_owned(), if unreadable { "unreadable" } else { "conflict" }.to_owned()),
            ("payload_hash".to_owned(), conflict.payload_hash.clone()),
        ]);
        let id = id_of(
            kind.as_str(),
            &format!("{}|{}|{}", event.provider, escape(event.id.as_str()), conflict.payload_hash),
        );
        let (subject, at_ms) = (keys::event_pk(event), conflict.arrival_ms);
        Some(Self { kind, id, subject, at_ms, envelope, threshold: None })
    }

    /// The name under which it is known: `own/job.settled|t1|j1|c`.
    ///
    /// # Errors
    /// [`IdError`] never: the slug is ours.
    pub fn name(&self) -> Result<EventRef, IdError> {
        event(self.id.clone())
    }

    /// Its receipt, with one `forward` for each subscription. `steps` has those that keep an order, each with the
    /// id of the event before it, which is empty for the first.
    ///
    /// # Errors
    /// [`IdError`] never: names of subscriptions are checked when the file is read.
    pub fn receipt(&self, to: &[&Subscription], steps: BTreeMap<String, String>) -> Result<Receipt, IdError> {
        let planned =
            |one: &&Subscription| Ok(Planned { item: ItemId::new(one.name.as_str())?, name: OperationName::Forward });
        let envelope = Envelope { ordered: steps, ..self.envelope.clone() };
        let plan = to.iter().map(planned).collect::<Result<_, IdError>>()?;
        Ok(receipt(self.name()?, self.kind.as_str(), envelope, plan, self.at_ms))
    }
}

/// The receipt of an event of our own.
pub(crate) fn receipt(
    event: EventRef, event_type: &str, envelope: Envelope, plan: Vec<Planned>, at_ms: i64,
) -> Receipt {
    let claim_token = hex_sha256(event.id.as_str());
    let mut receipt = Receipt {
        event: Some(event),
        event_type: event_type.to_owned(),
        payload_hash: String::new(),
        envelope,
        plan,
        items: Vec::new(),
        empty: None,
        note: String::new(),
        arrival_ms: at_ms,
        first_sent_ms: None,
        attempt: None,
        id_signed: true,
        key_id: OWN_PROVIDER.to_owned(),
        claim_token,
        trace: None,
    };
    receipt.payload_hash = format!("own:{}", hex_sha256(&body(&receipt)));
    receipt
}

/// Whose job and wallet an event is about.
fn named(from: Option<&Envelope>) -> Envelope {
    let Some(from) = from else { return Envelope::default() };
    let (tenant, job, wallet) = (from.tenant.clone(), from.job.clone(), from.wallet.clone());
    Envelope { tenant, job, wallet, provider_ref: from.provider_ref.clone(), ..Envelope::default() }
}

/// The event of our own with this id.
///
/// # Errors
/// [`IdError`] never: the slug is ours.
pub fn event(id: EventId) -> Result<EventRef, IdError> {
    Ok(EventRef { provider: Provider::new(OWN_PROVIDER)?, id })
}

/// True for an event of our own of this type.
pub(crate) fn is_of_type(event: &EventRef, event_type: &str) -> bool {
    is_own(event) && event.id.as_str().strip_prefix(event_type).is_some_and(|rest| rest.starts_with('|'))
}

/// True for an event of our own that is told to subscribers; a charge, a refund and a version of a booking each cause an
/// effect elsewhere, and are told to nobody.
pub fn is_told(event: &EventRef) -> bool {
    is_own(event) && !crate::charge::is_of(event) && !crate::board::is_of(event)
}

/// True for an event of our own.
pub fn is_own(event: &EventRef) -> bool {
    event.provider.as_str() == OWN_PROVIDER
}

/// What must be true of the available balance when a delta is applied: within these bounds it passes exactly the
/// thresholds that were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Within {
    /// At least this.
    pub at_least: Option<Micros>,
    /// Below this.
    pub below: Option<Micros>,
}

/// The thresholds that `change` takes `before` below, and the bounds within which it passes just these.
pub fn crossing(thresholds: &BTreeSet<Micros>, before: Micros, change: Micros) -> (Vec<Micros>, Within) {
    if change >= Micros::ZERO {
        return (Vec::new(), Within::default());
    }
    // `t` is passed when t <= available < t - change.
    let bounds: Vec<Micros> = thresholds.iter().flat_map(|t| [Some(*t), t.minus(change).ok()]).flatten().collect();
    let at_least = bounds.iter().filter(|bound| **bound <= before).max().copied();
    let below = bounds.iter().filter(|bound| **bound > before).min().copied();
    let passed = |t: &&Micros| **t <= before && t.minus(change).is_ok_and(|above| above > before);
    (thresholds.iter().filter(passed).copied().collect(), Within { at_least, below })
}

/// The low-balance events of a delta that is applied to `balance`, and the bounds that make them exact.
pub fn low_balance(
    thresholds: &BTreeSet<Micros>, wallet: (&TenantId, &WalletId), balance: &Balance, delta: &BalanceDelta, now_ms: i64,
) -> (Vec<OwnEvent>, Within) {
    let (passed, within) = crossing(thresholds, balance.available, delta.available);
    let Ok(after) = balance.available.plus(delta.available) else { return (Vec::new(), within) };
    let event = |threshold: Micros| OwnEvent::low(wallet, balance, after, threshold, now_ms);
    (passed.into_iter().map(event).collect(), within)
}

/// Members as JSON text, by name, so that their order never depends on a feature of the JSON library.
type Members = BTreeMap<String, String>;

pub(crate) fn object(members: &Members) -> String {
    let one = |(name, value): (&String, &String)| format!("{}:{value}", json!(name));
    format!("{{{}}}", members.iter().map(one).collect::<Vec<_>>().join(","))
}

/// The body that leaves: type, id, time, and what happened. Amounts are decimal texts; quantities of usage are
/// numbers, as providers write them, so that a receiver of ours reads what a sender of ours wrote.
pub fn body(receipt: &Receipt) -> String {
    let envelope = &receipt.envelope;
    let id = receipt.event.as_ref().map_or("", |event| event.id.as_str());
    let micros = envelope.amount.and_then(|micros| Micros::new(micros).ok());
    let named = [
        ("tenant", json!(envelope.tenant)),
        ("job", json!(envelope.job)),
        ("provider_job_ref", json!(envelope.provider_ref)),
        ("wallet", json!(envelope.wallet)),
        ("version", json!(envelope.version)),
        ("outcome", json!(envelope.outcome)),
        ("sequence", json!(envelope.sequence)),
        ("amount", json!(micros)),
        ("currency", json!(envelope.currency)),
    ];
    let told = named.into_iter().filter(|(_, value)| *value != Value::Null);
    let mut data: Members = told.map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    data.extend(envelope.data.iter().map(|(name, value)| (name.clone(), json!(value).to_string())));
    if let Some(usage) = &envelope.usage {
        // A quantity's text is a plain decimal, which is a JSON number.
        let usage = usage.iter().map(|(unit, quantity)| (unit.clone(), String::from(*quantity))).collect();
        data.insert("usage".to_owned(), object(&usage));
    }
    let whole = [
        ("type", json!(receipt.event_type).to_string()),
        ("id", json!(id).to_string()),
        ("timestamp", json!(rfc3339(receipt.arrival_ms)).to_string()),
        ("data", object(&data)),
    ];
    object(&whole.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
