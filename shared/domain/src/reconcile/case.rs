//! Cases: one fact that needs an action, with its history. A fact that comes back opens the next occurrence.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Listed, ListedEffect, MAX_AUTOMATIC, MAX_EVIDENCE_CHARS};
use crate::event::EventRef;
use crate::ids::{JobId, TenantId, WalletId};
use crate::keys;
use crate::money::{Currency, Micros, as_number};
use crate::operation::{OperationKey, hex_sha256};

/// What kind of fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseClass {
    /// A planned operation has neither effect nor record.
    NotDispatched,
    /// A record says wait or review, and the effect exists.
    StaleRecord,
    /// A stored record cannot be read.
    Unreadable,
    /// The job ended, its hold is open, and nobody is on it.
    Unsettled,
    /// The hold was closed, or charged late, for a version that no transition has.
    CloseWithoutTransition,
    /// A success without usage whose hold is open.
    NoUsage,
    /// The charge is not the price of the recorded usage.
    UsageMismatch,
    /// available + held is not the sum of the wallet's entries.
    BalanceDrift,
    /// held is not the sum of the open holds.
    HeldDrift,
    /// The wallet's chain of entries is broken.
    ChainBroken,
    /// A hold is open long past its expiry.
    HoldExpired,
    /// A review is open for long.
    OldReview,
    /// A conflict is open for long.
    OldConflict,
    /// The provider says that the job ended, and no event of it was decided here.
    NeverDelivered,
    /// The provider's list says another outcome.
    StatusDiffers,
    /// The provider's list says other usage.
    UsageDiffers,
    /// A running job is not in the provider's list.
    MissingAtProvider,
    /// What was to be done exists at its destination, and here it is not settled.
    SettledThere,
    /// Settled here, and its destination says that it failed.
    FailedThere,
    /// Settled here, and its destination does not have it.
    UnknownThere,
    /// Its destination has it for another amount.
    AmountDiffers,
    /// Its destination has it more than once.
    DoneTwice,
    /// Not at an end for long, nobody is on it, and its destination does not have it.
    Stuck,
    /// A payment of a charge has come, and nothing was posted of it.
    PaymentUntold,
    /// More of a payment went back than was posted.
    RefundUntold,
    /// A destination has an effect of ours that was never sent from here.
    UnknownHere,
}

impl CaseClass {
    /// Those that compare an intent with what its destination lists.
    pub const OF_INTENTS: [Self; 9] = [
        Self::SettledThere,
        Self::FailedThere,
        Self::UnknownThere,
        Self::AmountDiffers,
        Self::DoneTwice,
        Self::Stuck,
        Self::PaymentUntold,
        Self::RefundUntold,
        Self::UnknownHere,
    ];

    /// What is left to do where the automatic action did not cure it.
    fn worn(self) -> Action {
        match self {
            Self::SettledThere => Action::AcceptFromAuthority,
            _ => Action::Person,
        }
    }

    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotDispatched => "not-dispatched",
            Self::StaleRecord => "stale-record",
            Self::Unreadable => "unreadable",
            Self::Unsettled => "unsettled",
            Self::CloseWithoutTransition => "close-without-transition",
            Self::NoUsage => "no-usage",
            Self::UsageMismatch => "usage-mismatch",
            Self::BalanceDrift => "balance-drift",
            Self::HeldDrift => "held-drift",
            Self::ChainBroken => "chain-broken",
            Self::HoldExpired => "hold-expired",
            Self::OldReview => "old-review",
            Self::OldConflict => "old-conflict",
            Self::NeverDelivered => "never-delivered",
            Self::StatusDiffers => "status-differs",
            Self::UsageDiffers => "usage-differs",
            Self::MissingAtProvider => "missing-at-provider",
            Self::SettledThere => "settled-there",
            Self::FailedThere => "failed-there",
            Self::UnknownThere => "unknown-there",
            Self::AmountDiffers => "amount-differs",
            Self::DoneTwice => "done-twice",
            Self::Stuck => "stuck",
            Self::PaymentUntold => "payment-untold",
            Self::RefundUntold => "refund-untold",
            Self::UnknownHere => "unknown-here",
        }
    }
}

impl fmt::Display for CaseClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The one action of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The operation is made due now, or the expiry is tried again: the ordinary path decides. Done at once.
    Retry,
    /// The record is closed, since its effect exists. Done at once.
    Close,
    /// The deciding event's settlement is committed with the usage that the provider's list has.
    AskAuthority,
    /// The provider's list becomes an event of its own, on the ordinary path.
    AcceptFromAuthority,
    /// An adjustment under a named key makes up the difference.
    Compensate,
    /// The balance is moved to what its entries and open holds say.
    Rebuild,
    /// A person looks; nothing is proposed.
    Person,
}

impl Action {
    /// True for what is done as soon as it is found; everything else an operator applies.
    pub fn is_automatic(self) -> bool {
        matches!(self, Self::Retry | Self::Close)
    }
}

/// What a fact is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// An operation of an event.
    Operation(OperationKey),
    /// Other content under an event's id.
    Conflict {
        /// The event.
        event: EventRef,
        /// Hash of the other content.
        payload_hash: String,
    },
    /// An event.
    Event(EventRef),
    /// A job.
    Job {
        /// Whose.
        tenant: TenantId,
        /// Which.
        job: JobId,
    },
    /// A wallet.
    Wallet {
        /// Whose.
        tenant: TenantId,
        /// Which.
        wallet: WalletId,
    },
    /// An effect at a destination that no operation here is known of.
    Effect {
        /// The table [destinations.NAME].
        destination: String,
        /// The destination's id.
        id: String,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(key) => write!(f, "O|{key}"),
            Self::Conflict { event, payload_hash } => write!(f, "X|{}|{payload_hash}", keys::event_pk(event)),
            Self::Event(event) => f.write_str(&keys::event_pk(event)),
            Self::Job { tenant, job } => f.write_str(&keys::job_pk(tenant, job)),
            Self::Wallet { tenant, wallet } => f.write_str(&keys::wallet_pk(tenant, wallet)),
            Self::Effect { destination, id } => write!(f, "D|{destination}|{id}"),
        }
    }
}

/// A fact as one comparison sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind.
    pub class: CaseClass,
    /// What is to be done.
    pub action: Action,
    /// About what.
    pub subject: Subject,
    /// Tells two facts of one class and subject apart; empty where there can be one only.
    pub fact: String,
    /// Money at risk, in micros, as far as it is known.
    pub amount: Option<Micros>,
    /// Its currency.
    pub currency: Option<Currency>,
    /// For people: numbers, owners, times. Never payload.
    pub evidence: String,
    /// What the provider's list says.
    pub listed: Option<Listed>,
    /// What the destination's list says.
    pub effect: Option<ListedEffect>,
}

impl Finding {
    /// A finding without money.
    pub fn new(class: CaseClass, action: Action, subject: Subject, evidence: impl Into<String>) -> Self {
        let evidence: String = evidence.into();
        let evidence = evidence.chars().take(MAX_EVIDENCE_CHARS).collect();
        let (fact, amount, currency) = (String::new(), None, None);
        Self { class, action, subject, fact, amount, currency, evidence, listed: None, effect: None }
    }

    /// With the money at risk.
    #[must_use]
    pub fn with_money(mut self, amount: Micros, currency: Currency) -> Self {
        (self.amount, self.currency) = (Some(amount), Some(currency));
        self
    }

    /// With what the provider's list says.
    #[must_use]
    pub fn with_listed(mut self, listed: Listed) -> Self {
        self.listed = Some(listed);
        self
    }

    /// With what the destination's list says.
    #[must_use]
    pub fn with_effect(mut self, effect: ListedEffect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// The same fact has the same id in every run.
    pub fn case_id(&self) -> String {
        let hash = hex_sha256(&format!("{}|{}|{}", self.class, self.subject, self.fact));
        format!("{}.{}", self.class, &hash[..24])
    }
}

/// Where a case stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseState {
    /// Something is to be done.
    Open,
    /// It is done, or decided.
    Resolved,
}

/// One occurrence of a case (`Q·case·id`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The stable id of the fact.
    #[serde(rename = "id")]
    pub id: String,
    /// 1, 2, ...: a fact that comes back opens the next one.
    #[serde(rename = "on")]
    pub occurrence: u32,
    /// What kind.
    #[serde(rename = "cl")]
    pub class: CaseClass,
    /// What is to be done.
    #[serde(rename = "ac")]
    pub action: Action,
    /// About what.
    #[serde(rename = "su")]
    pub subject: Subject,
    /// Money at risk.
    #[serde(rename = "am", default, with = "optional_number", skip_serializing_if = "Option::is_none")]
    pub amount: Option<Micros>,
    /// Its currency.
    #[serde(rename = "cu", default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// For people.
    #[serde(rename = "ev")]
    pub evidence: String,
    /// What the provider's list says.
    #[serde(rename = "li", default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<Listed>,
    /// What the destination's list says.
    #[serde(rename = "le", default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<ListedEffect>,
    /// Where it stands.
    #[serde(rename = "st")]
    pub state: CaseState,
    /// The run that opened it.
    #[serde(rename = "or")]
    pub opened_by: String,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub opened_ms: i64,
    /// Since when a person is needed, Unix milliseconds; only while open.
    #[serde(rename = "rt", default, skip_serializing_if = "Option::is_none")]
    pub review_since_ms: Option<i64>,
    /// How it ended, once it did.
    #[serde(rename = "rl", default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// Bumped by every change, under a condition.
    #[serde(rename = "rv")]
    pub revision: u64,
}

impl Case {
    /// The occurrence that a finding opens, after `before` if there was one. What the automatic action did not cure
    /// is a person's.
    pub fn open(finding: &Finding, before: Option<&Self>, run: &str, now_ms: i64) -> Self {
        let occurrence = before.map_or(1, |case| case.occurrence + 1);
        let worn = finding.action.is_automatic() && occurrence > MAX_AUTOMATIC;
        Self {
            id: finding.case_id(),
            occurrence,
            class: finding.class,
            action: if worn { finding.class.worn() } else { finding.action },
            subject: finding.subject.clone(),
            amount: finding.amount,
            currency: finding.currency,
            evidence: finding.evidence.clone(),
            listed: finding.listed.clone(),
            effect: finding.effect.clone(),
            state: CaseState::Open,
            opened_by: run.to_owned(),
            opened_ms: now_ms,
            review_since_ms: Some(now_ms),
            resolution: None,
            revision: 1,
        }
    }

    /// True when this finding is what this occurrence already says or said to a person who let it stand.
    pub fn covers(&self, finding: &Finding) -> bool {
        let identity = |listed: &Option<Listed>, effect: &Option<ListedEffect>| {
            listed.as_ref().map(Listed::identity).or_else(|| effect.as_ref().map(ListedEffect::identity))
        };
        let (before, now) = (identity(&self.listed, &self.effect), identity(&finding.listed, &finding.effect));
        let same = self.evidence == finding.evidence && (now.is_none() || before == now);
        self.state == CaseState::Open || (self.resolution == Some(Resolution::Dismissed) && same)
    }

    /// The open case with newer evidence of the same fact, or nothing where it says the same.
    pub fn refreshed(&self, finding: &Finding) -> Option<Self> {
        let listed = finding.listed.clone().or_else(|| self.listed.clone());
        let effect = finding.effect.clone().or_else(|| self.effect.clone());
        let said = self.listed == listed && self.effect == effect;
        let same = self.evidence == finding.evidence && said && self.amount == finding.amount;
        if self.state != CaseState::Open || same {
            return None;
        }
        let (evidence, amount, currency) = (finding.evidence.clone(), finding.amount, finding.currency);
        Some(Self { evidence, amount, currency, listed, effect, revision: self.revision + 1, ..self.clone() })
    }

    /// The case after a decision.
    #[must_use]
    pub fn resolved(&self, resolution: Resolution) -> Self {
        let (state, review_since_ms, revision) = (CaseState::Resolved, None, self.revision + 1);
        Self { state, review_since_ms, resolution: Some(resolution), revision, ..self.clone() }
    }

    /// The reference under which a compensation is posted: named after the occurrence, so that it exists once.
    pub fn reference(&self) -> String {
        format!("recon.{}.{}", self.id, self.occurrence)
    }
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    /// Its action was carried out.
    Applied,
    /// A person let it stand; it opens again only when its evidence changes.
    Dismissed,
    /// A later look did not find it any more.
    Gone,
}

impl Resolution {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Dismissed => "dismissed",
            Self::Gone => "gone",
        }
    }
}

/// A decision on one occurrence of a case; append-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was decided.
    #[serde(rename = "dc")]
    pub resolution: Resolution,
    /// The caller's identity, or `reconciler`.
    #[serde(rename = "ac")]
    pub actor: String,
    /// Why.
    #[serde(rename = "rs")]
    pub reason: String,
    /// The caller's own key, if one was given.
    #[serde(rename = "rn", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// What was done, in words.
    #[serde(rename = "nt", default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub decided_ms: i64,
}

/// An optional amount as a number of micros.
mod optional_number {
    use super::{Micros, as_number};
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde's `with` passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(amount: &Option<Micros>, serializer: S) -> Result<S::Ok, S::Error> {
        match amount {
            Some(amount) => as_number::serialize(amount, serializer),
            None => serializer.serialize_none(),
        }
    }

    #[derive(Deserialize)]
    struct Number(#[serde(with = "as_number")] Micros);

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Micros>, D::Error> {
        Ok(Option::<Number>::deserialize(deserializer)?.map(|number| number.0))
    }
}
