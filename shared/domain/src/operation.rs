//! An operation: one piece of work that one event asks of one consumer, and the record of what did
//! not go straight.
//!
//! On the straight path the effect item (a transition, a close) is the operation's only record. An
//! [`OperationRecord`] exists from the first deferral, review or no-op on; every change bumps its
//! revision under a condition, and a message of an older generation never changes it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::event::{By, EventRef};
use crate::ids::{ItemId, escape};
use crate::job::Overage;

/// Which queue and function carries an operation out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consumer {
    /// The job consumer: transitions and progress.
    Job,
    /// The billing consumer: settlements.
    Billing,
    /// The outbound consumer: what leaves the system.
    Outbound,
}

impl Consumer {
    /// Every consumer.
    pub const ALL: [Self; 3] = [Self::Job, Self::Billing, Self::Outbound];

    /// The stable name in keys and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Billing => "billing",
            Self::Outbound => "outbound",
        }
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The operations that exist. Adding one is adding a variant here, its file under `decide/`, and a
/// line in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationName {
    /// Writes the job's progress, by sequence.
    RecordProgress,
    /// Writes the job's terminal transition.
    CompleteJob,
    /// Closes the hold: captures the priced usage, releases the rest.
    SettleUsage,
    /// Corrects what was captured to what the provider says now.
    AdjustUsage,
    /// Extends the hold of a running job.
    ExtendHold,
    /// Funds a wallet by a payment, once per payment.
    FundWallet,
    /// Takes a funding back as far as its payment was refunded.
    ReverseFunding,
    /// Asks a person about a payment of a postpaid wallet that failed, unless its charge said so itself.
    PaymentFailed,
    /// Makes a job of our own from a booking, once per booking; a later version of it is an update.
    CreateJob,
    /// Delivers the event's envelope to a queue, under a stable key.
    Forward,
    /// Asks for what the event lacks, once; planned by a rule's `fetch`, never named in `operations`.
    Fetch,
}

impl OperationName {
    /// Every operation.
    pub const ALL: [Self; 11] = [
        Self::RecordProgress,
        Self::CompleteJob,
        Self::SettleUsage,
        Self::AdjustUsage,
        Self::ExtendHold,
        Self::FundWallet,
        Self::ReverseFunding,
        Self::PaymentFailed,
        Self::CreateJob,
        Self::Forward,
        Self::Fetch,
    ];

    /// The stable name in keys, messages and profiles.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RecordProgress => "record-progress",
            Self::CompleteJob => "complete-job",
            Self::SettleUsage => "settle-usage",
            Self::AdjustUsage => "adjust-usage",
            Self::ExtendHold => "extend-hold",
            Self::FundWallet => "fund-wallet",
            Self::ReverseFunding => "reverse-funding",
            Self::PaymentFailed => "payment-failed",
            Self::CreateJob => "create-job",
            Self::Forward => "forward",
            Self::Fetch => "fetch",
        }
    }

    /// True when it works on a job that exists.
    pub fn needs_job(self) -> bool {
        !self.needs_wallet() && self.consumer() != Consumer::Outbound
    }

    /// True when it works on a wallet that the event itself names.
    pub fn needs_wallet(self) -> bool {
        matches!(self, Self::FundWallet | Self::ReverseFunding | Self::PaymentFailed | Self::CreateJob)
    }

    /// Who carries it out.
    pub fn consumer(self) -> Consumer {
        match self {
            Self::RecordProgress | Self::CompleteJob => Consumer::Job,
            Self::SettleUsage
            | Self::AdjustUsage
            | Self::ExtendHold
            | Self::FundWallet
            | Self::ReverseFunding
            | Self::PaymentFailed
            | Self::CreateJob => Consumer::Billing,
            Self::Forward | Self::Fetch => Consumer::Outbound,
        }
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for OperationName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|name| name.as_str() == text).ok_or_else(|| format!("unknown operation {text:?}"))
    }
}

/// `(provider, event id, item, consumer, operation)`: has this event's work for this consumer been done?
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OperationKey {
    /// The event.
    pub event: EventRef,
    /// Its item.
    pub item: ItemId,
    /// The operation, which implies the consumer.
    pub name: OperationName,
}

impl OperationKey {
    /// What an effect item carries when this operation wrote it.
    pub fn by(&self) -> By {
        By { event: self.event.clone(), item: self.item.clone() }
    }

    /// The SQS deduplication id of one generation: hex SHA-256, since SQS allows 128 ASCII characters.
    /// A retry is a new generation and is not swallowed by the five-minute window (SQS-07).
    pub fn deduplication_id(&self, generation: u32) -> String {
        if crate::planted::on("deduplication-id-without-generation") {
            return hex_sha256(&self.to_string()); // PLANTED
        }
        hex_sha256(&format!("{self}|{generation}"))
    }
}

impl fmt::Display for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = &self.event;
        let (item, consumer) = (escape(self.item.as_str()), self.name.consumer());
        write!(f, "{}|{}|{item}|{consumer}|{}", event.provider, escape(event.id.as_str()), self.name)
    }
}

/// Lower-case hex SHA-256 of a text.
pub fn hex_sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// Where an operation that did not go straight stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationState {
    /// Will be tried again when due.
    Wait,
    /// A person decides.
    Review,
    /// Final: nothing to do, and the note says why.
    Noop,
    /// Final: its effect exists, or a person closed it.
    Closed,
}

/// Why an operation waits, is a no-op or needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The relay found it without effect and without record.
    NotDispatched,
    /// A store or queue was busy, throttled or unreachable.
    Transient,
    /// The store refuses the request: a missing table or right, or a request that is wrong.
    Refused,
    /// The job is not known yet.
    JobUnknown,
    /// The handler panicked or was killed on it.
    Crashed,
    /// It came back from a dead-letter queue.
    DeadLetter,
    /// The provider sent it again, or a person asked for another try.
    Retried,
    /// Its consumer or its provider is paused: it waits until that is resumed.
    Paused,
    /// A person closed it: nothing is to be done any more.
    Dismissed,
    /// The same was asked before, with the same content.
    AlreadyDone,
    /// Something newer stands.
    Superseded,
    /// The outcome was decided otherwise before.
    OutcomeDecided,
    /// The same was asked before, with other content.
    Conflict,
    /// Older than the business expiry.
    Expired,
    /// Tried as often or as long as the limits allow.
    AttemptsExhausted,
    /// Fields of the event contradict the job.
    Mismatch,
    /// The charge is above the hold.
    Overage,
    /// The usage cannot be charged.
    InvalidUsage,
    /// A success without usage.
    NoUsage,
    /// The wallet has too little.
    FundsShort,
    /// A success that arrived after a cancellation or a final failure.
    LateSuccess,
    /// A correction before there is a charge to correct, or a refund before its funding.
    NotYet,
    /// The charge, hold or funding cannot be changed any more.
    NotPossible,
    /// It left, and nobody knows whether the destination did it.
    UnknownOutcome,
    /// The destination says that it will never do it.
    Declined,
    /// A stored record cannot be read.
    Unreadable,
}

impl Class {
    /// The stable name in records and answers.
    pub fn name(self) -> String {
        // A unit variant becomes a JSON string: neither step can fail.
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// The record of an operation that did not go straight (`o·item·consumer·operation`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// Which operation.
    #[serde(skip)]
    pub key: Option<OperationKey>,
    /// Where it stands.
    #[serde(rename = "st")]
    pub state: OperationState,
    /// Why.
    #[serde(rename = "cl")]
    pub class: Class,
    /// For people: owner, reason, numbers. Never payload.
    #[serde(rename = "nt", default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The newest generation that was dispatched or will be.
    #[serde(rename = "g")]
    pub generation: u32,
    /// The oldest generation whose messages may still act; older ones never write. A deferral moves it
    /// on, a mere resend does not: else a queue that lags behind the resends would never get to work.
    #[serde(rename = "lf", default)]
    pub live_from: u32,
    /// The consumer's own tries.
    #[serde(rename = "at")]
    pub attempts: u32,
    /// Bumped by every change, under a condition.
    #[serde(rename = "rv")]
    pub revision: u64,
    /// When to try again, Unix milliseconds; only while waiting.
    #[serde(rename = "due", default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<i64>,
    /// Since when a person is needed, Unix milliseconds; only in review.
    #[serde(rename = "rt", default, skip_serializing_if = "Option::is_none")]
    pub review_since_ms: Option<i64>,
    /// Since when it has been waiting, Unix milliseconds: the limit of age counts from here, so that
    /// a redelivery or a person's retry starts anew.
    #[serde(rename = "ws")]
    pub waiting_since_ms: i64,
    /// When the record was last changed, Unix milliseconds.
    #[serde(rename = "ts")]
    pub changed_ms: i64,
    /// Who wrote this revision: tells our own lost answer from another writer.
    #[serde(rename = "tk")]
    pub token: String,
    /// What a person's decision lets this operation do in spite of its limits; kept by every later change.
    #[serde(rename = "wv", default, skip_serializing_if = "Waivers::is_empty")]
    pub waivers: Waivers,
    /// The switch that holds it back, while one does; then `due` is its arrival, which orders the resuming.
    #[serde(rename = "pn", default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<String>,
}

/// What a person's recorded decision waives for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Waivers {
    /// It may act though its event is past the business expiry.
    #[serde(rename = "ex", default, skip_serializing_if = "std::ops::Not::not")]
    pub expiry: bool,
    /// How a charge above the hold is settled, in place of the job's pinned policy.
    #[serde(rename = "ov", default, skip_serializing_if = "Option::is_none")]
    pub overage: Option<Overage>,
    /// It sends what was sent before once more: a replay of an event of our own. Over once the record is final.
    #[serde(rename = "ag", default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// When a person allowed one more sending in spite of an unknown outcome, Unix milliseconds.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub resend_ms: Option<i64>,
}

impl Waivers {
    /// True when nothing is waived.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How many characters of a note are kept.
pub const MAX_NOTE_CHARS: usize = 300;

/// The next revision of an operation's record, before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The new state.
    pub state: OperationState,
    /// Why.
    pub class: Class,
    /// For people.
    pub note: String,
    /// When it is due, for [`OperationState::Wait`].
    pub due_ms: Option<i64>,
    /// The new generation.
    pub generation: u32,
    /// True for a resend, which leaves the messages before it alive.
    pub resend: bool,
    /// The new count of own tries.
    pub attempts: u32,
}

impl OperationRecord {
    /// The record that results from a change at `now_ms`, following `old` if there is one.
    pub fn next(key: OperationKey, old: Option<&Self>, change: Change, now_ms: i64, token: String) -> Self {
        let in_review = change.state == OperationState::Review;
        let over = matches!(change.state, OperationState::Noop | OperationState::Closed);
        let since = old.and_then(|o| o.review_since_ms).filter(|_| in_review);
        // The time that a switch held it back is not its own waiting.
        let waited = old.filter(|o| o.state == OperationState::Wait && o.parked.is_none()).map(|o| o.waiting_since_ms);
        Self {
            key: Some(key),
            state: change.state,
            class: change.class,
            note: change.note.chars().take(MAX_NOTE_CHARS).collect(),
            generation: change.generation,
            live_from: old.filter(|_| change.resend).map_or(change.generation, |o| o.live_from),
            attempts: change.attempts,
            revision: old.map_or(1, |o| o.revision + 1),
            due_ms: change.due_ms.filter(|_| change.state == OperationState::Wait),
            review_since_ms: in_review.then(|| since.unwrap_or(now_ms)),
            waiting_since_ms: waited.unwrap_or(now_ms),
            changed_ms: now_ms,
            token,
            waivers: old.map(|o| Waivers { again: o.waivers.again && !over, ..o.waivers }).unwrap_or_default(),
            parked: None,
        }
    }

    /// The next revision that waits for a switch: no try is counted, and what was sent before is dead.
    /// `arrival_ms` is its place in the order in which it is resumed.
    pub fn parking(
        key: OperationKey, old: Option<&Self>, sent: u32, switch: &str, arrival_ms: i64, now_ms: i64, token: String,
    ) -> Self {
        let change = Change {
            state: OperationState::Wait,
            class: Class::Paused,
            note: format!("{switch} is paused"),
            due_ms: Some(arrival_ms),
            generation: old.map_or(sent, |o| o.generation.max(sent)) + 1,
            resend: false,
            attempts: old.map_or(0, |o| o.attempts),
        };
        Self { parked: Some(switch.to_owned()), ..Self::next(key, old, change, now_ms, token) }
    }

    /// The next revision that makes a record in review, or one that a person tries again, due now:
    /// a new generation with fresh limits. The same path, keys and conditions follow.
    pub fn retried(&self, class: Class, note: String, now_ms: i64, token: String) -> Option<Self> {
        let change = Change {
            state: OperationState::Wait,
            class,
            note,
            due_ms: Some(now_ms),
            generation: self.generation + 1,
            resend: false,
            attempts: 0,
        };
        Some(Self::next(self.key.clone()?, Some(self), change, now_ms, token))
    }

    /// The next revision with a person's decision on what it may do.
    #[must_use]
    pub fn waiving(self, waivers: Waivers) -> Self {
        Self { waivers, ..self }
    }

    /// True when nothing will happen any more by itself or by a person's list.
    pub fn is_final(&self) -> bool {
        matches!(self.state, OperationState::Noop | OperationState::Closed)
    }
}
