//! A provider's profile: where its events carry what, which types lead to which operations, and
//! which limits and policies hold. Profiles are data (`infra/providers.toml`), not code.

/// A provider that a loader takes, in nine lines, with what a test adds.
#[cfg(test)]
macro_rules! mine {
    ($rest:literal) => {
        concat!(
            "[providers.mine]\nowner = \"team\"\nsignature = { scheme = \"stripe\" }\nsecrets = [\"MINE_SECRET\"]\n",
            "retry_window_hours = 72\ntenants = [\"*\"]\nevent_id = \"body:/id\"\nevent_type = \"body:/type\"\n",
            "retention_days = 0\n",
            $rest
        )
    };
}

mod board;
mod charges;
mod checks;
mod destination;
mod destination_list;
mod destination_load;
mod destination_shape;
mod fetch;
mod fields;
mod forward;
mod list;
mod load;
mod secret;
mod shape;
mod strict;
mod subscription;
mod worksheet;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{ModelId, Provider, TenantId};
use crate::job::{Outcome, Policies};
use crate::json::Pointer;
use crate::operation::{OperationName, hex_sha256};

pub use board::Board;
pub use charges::{ChargeForm, Charges};
pub use destination::{Auth, AuthForm, Breaker, HttpDestination};
pub use destination_list::{EffectList, Paging};
pub use fetch::Fetch;
pub use forward::{Destination, Forward};
pub use list::{ListHeader, ListProfile, ListStatus, ListUrl};
pub use load::Profiles;
pub use secret::{SecretPlace, SecretRef};
pub use shape::SHAPE;
pub use subscription::{MAX_SUBSCRIPTIONS, Subscription};

/// Where a text stands in a delivery: `header:NAME`, `body:/json/pointer`, or `item:/json/pointer` in one
/// item of a delivery that carries several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A request header.
    Header(String),
    /// A member of the JSON body.
    Body(Pointer),
    /// A member of the item.
    Item(Pointer),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Body(pointer) => write!(f, "body:{pointer}"),
            Self::Item(pointer) => write!(f, "item:{pointer}"),
        }
    }
}

impl FromStr for Source {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("header", name)) if !name.is_empty() => Ok(Self::Header(name.to_ascii_lowercase())),
            Some(("body", pointer)) => pointer.parse().map(Self::Body).map_err(|e| format!("{pointer:?}: {e}")),
            Some(("item", pointer)) => pointer.parse().map(Self::Item).map_err(|e| format!("{pointer:?}: {e}")),
            _ => Err(format!(
                "{text:?} is no source: write \"header:NAME\", \"body:/json/pointer\" or, with `items`, \"item:/json/pointer\""
            )),
        }
    }
}

/// Where the event id stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdSource {
    /// The id that the signature scheme itself covers (`webhook-id` of Standard Webhooks).
    SignedId,
    /// A header or a body member.
    At(Source),
    /// No id is supplied: derived from stable fields, never from the time of receipt.
    Derived(Vec<Pointer>),
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyForm {
    /// JSON.
    #[default]
    Json,
    /// `application/x-www-form-urlencoded`; its fields are read as the members of one object of texts.
    Form,
}

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// `2026-11-29T12:00:00Z`.
    Rfc3339,
    /// Unix seconds.
    Seconds,
    /// Unix milliseconds.
    Milliseconds,
}

/// Where and how a time stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeAt {
    /// Where.
    pub at: Source,
    /// How.
    pub unit: TimeUnit,
}

/// Where the business fields stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields {
    /// Whose job.
    pub tenant: Option<Source>,
    /// Our job id.
    pub job: Option<Source>,
    /// The provider's name for the job.
    pub provider_ref: Option<Source>,
    /// The model that ran.
    pub model: Option<Source>,
    /// Who pays.
    pub wallet: Option<Source>,
    /// The currency.
    pub currency: Option<Source>,
    /// The order signal.
    pub sequence: Option<Source>,
    /// The key of a correction, payment or refund.
    pub reference: Option<Source>,
    /// The usage object.
    pub usage: Option<Source>,
    /// An amount as a decimal in major units.
    pub amount: Option<Source>,
    /// An amount as a whole number of the currency's minor unit (cents).
    pub minor_amount: Option<Source>,
    /// What a payment was authorised for, in the minor unit: where less was captured, `minor_amount` counts the rest as
    /// refunded.
    pub minor_authorised: Option<Source>,
    /// What of it was captured.
    pub minor_captured: Option<Source>,
    /// What a job of our own is made from.
    pub booking: Option<Source>,
    /// The booking's version, a whole number.
    pub version: Option<Source>,
}

/// Where the items of a delivery stand that carries several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items {
    /// The list in the body; the empty pointer where the body itself is the list.
    pub at: Pointer,
    /// An item's own id, read in the item; without one its place in the list is its id.
    pub id: Option<Pointer>,
}

/// A value that every event of this endpoint carries: live mode, the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlyIf {
    /// Where.
    pub at: Source,
    /// The text of the value; `true` and `false` for booleans.
    pub is: String,
}

/// What one event type leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRule {
    /// How the run ended, for terminal events.
    pub outcome: Option<Outcome>,
    /// The operations, in the order in which they are planned.
    pub operations: Vec<OperationName>,
    /// Why a completion of this type is not settled.
    pub unbilled: Option<String>,
    /// Where this type's business fields stand: the profile's, with this type's own in their place.
    pub fields: Fields,
    /// What an event of this type must carry to lead to anything, such as a payment's status.
    pub only_if: Vec<OnlyIf>,
    /// Further values of the envelope by name: for what is forwarded, and for a booking's versions.
    pub data: BTreeMap<String, Source>,
    /// Where events of this type are forwarded to, if they are.
    pub forward: Option<Forward>,
    /// The job board on which a booking's job is made, if it is.
    pub board: Option<Board>,
    /// Where its provider is asked for what the event lacks, if it is.
    pub fetch: Option<Fetch>,
}

/// The event type that stands for every other one.
pub const ANY_TYPE: &str = "*";

/// One configured endpoint.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its slug: the last part of `/webhooks/{provider}`.
    pub slug: Provider,
    /// How its signatures are made.
    pub recipe: signature::Recipe,
    /// Where its live secrets are.
    pub secrets: Vec<SecretRef>,
    /// Who answers for it.
    pub owner: String,
    /// What an operator should know of it.
    pub notes: Vec<String>,
    /// How long the provider tries again, in hours.
    pub retry_window_hours: u32,
    /// For how many days the bodies of its deliveries are kept; 0 is not at all, `None` is not decided.
    pub retention_days: Option<u32>,
    /// The tenants it may speak for; `None` is all.
    pub tenants: Option<Vec<TenantId>>,
    /// How its bodies are written.
    pub body: BodyForm,
    /// Where the event id stands.
    pub event_id: IdSource,
    /// False when the provider signs no id.
    pub id_signed: bool,
    /// True when the number 5 and the text "5" are one id to this provider; else they never are.
    pub number_ids_as_text: bool,
    /// Set where one delivery carries several items.
    pub items: Option<Items>,
    /// Where the event type stands.
    pub event_type: Source,
    /// Where the time of the first sending stands.
    pub first_sent: Option<TimeAt>,
    /// Where the attempt number stands.
    pub attempt: Option<Source>,
    /// Members that change between deliveries of one event.
    pub hash_ignore: Vec<Pointer>,
    /// Age in milliseconds after which an event is a person's, never automatic.
    pub expire_after_ms: i64,
    /// Life of a hold in milliseconds: above the run limit plus the provider's retry window.
    pub hold_life_ms: i64,
    /// Status of a new event that is taken: 202, or 200 for a provider that sends again on any other.
    pub accept_status: u16,
    /// Status for what cannot be processed: 200, or 400, 409, 422 where the provider wants it.
    pub quarantine_status: u16,
    /// What an event must carry to be this endpoint's at all.
    pub only_if: Vec<OnlyIf>,
    /// Decimal places of a currency's minor unit where this provider differs from ISO 4217.
    pub minor_digits: BTreeMap<String, u32>,
    /// Pinned in each job at submission.
    pub policies: Policies,
    /// In place of `policies` for some models.
    pub model_policies: BTreeMap<String, Policies>,
    /// By event type.
    pub events: BTreeMap<String, EventRule>,
    /// Where the business fields stand in every event, of types without a rule too: a receipt keeps them, so
    /// that a corrected profile can plan it later.
    pub fields: Fields,
    /// Where the provider lists its own jobs, for the reconciler.
    pub list: Option<ListProfile>,
}

impl Profile {
    /// What an event type leads to: its own rule, else the one of every other type.
    pub fn rule(&self, event_type: &str) -> Option<&EventRule> {
        self.events.get(event_type).or_else(|| self.events.get(ANY_TYPE))
    }

    /// The policies that a job of this model pins.
    pub fn policies_for(&self, model: &ModelId) -> Policies {
        self.model_policies.get(model.as_str()).copied().unwrap_or(self.policies)
    }

    /// Names the rule by which payloads are hashed, so that a changed `hash_ignore` makes no honest
    /// redelivery a conflict; empty when nothing is ignored.
    pub fn hash_rule(&self) -> String {
        if self.hash_ignore.is_empty() {
            return String::new();
        }
        let named: Vec<String> = self.hash_ignore.iter().map(ToString::to_string).collect();
        format!("{}-", &hex_sha256(&named.join("\n"))[..8])
    }

    /// The secrets' public names, for display. Where a secret is its [`SecretPlace`] says.
    pub fn secret_names(&self) -> Vec<&str> {
        self.secrets.iter().map(|secret| secret.id.as_str()).collect()
    }

    /// The environment variables that hold its secrets, or references to them.
    pub fn secret_variables(&self) -> Vec<&str> {
        self.secrets.iter().filter_map(|secret| secret.place.variable()).collect()
    }

    /// The handoff worksheet: what everybody who runs or uses this endpoint should know, in Markdown.
    pub fn worksheet(&self) -> String {
        worksheet::markdown(self)
    }

    /// True when the profile may speak for this tenant.
    pub fn serves(&self, tenant: &TenantId) -> bool {
        self.tenants.as_ref().is_none_or(|tenants| tenants.contains(tenant))
    }
}
