//! A provider's profile: where its events carry what, which types lead to which operations, and
//! which limits and policies hold. Profiles are data (`infra/providers.toml`), not code.

mod load;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{Provider, TenantId};
use crate::job::{Outcome, Policies};
use crate::json::Pointer;
use crate::operation::OperationName;

pub use load::{ProfileError, Profiles};

/// Where a text stands in a delivery: `header:NAME` or `body:/json/pointer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A request header.
    Header(String),
    /// A member of the JSON body.
    Body(Pointer),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Body(pointer) => write!(f, "body:{pointer}"),
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
    pub usage: Option<Pointer>,
}

/// What one event type leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRule {
    /// How the run ended, for terminal events.
    pub outcome: Option<Outcome>,
    /// The operations, in the order in which they are planned.
    pub operations: Vec<OperationName>,
}

/// One configured endpoint.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its slug: the last part of `/webhooks/{provider}`.
    pub slug: Provider,
    /// How its signatures are made.
    pub recipe: signature::Recipe,
    /// Names of the environment variables that hold its live secrets.
    pub secret_names: Vec<String>,
    /// Who answers for it.
    pub owner: String,
    /// How long the provider tries again, in hours.
    pub retry_window_hours: u32,
    /// How long kept bodies live, in days; 0 keeps none.
    pub body_retention_days: u32,
    /// The tenants it may speak for; `None` is all.
    pub tenants: Option<Vec<TenantId>>,
    /// Where the event id stands.
    pub event_id: IdSource,
    /// False when the provider signs no id.
    pub id_signed: bool,
    /// True when the number 5 and the text "5" are one id to this provider; else they never are.
    pub number_ids_as_text: bool,
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
    /// Status for what cannot be processed: 200, or 400, 409, 422 where the provider wants it.
    pub quarantine_status: u16,
    /// Where the business fields stand.
    pub fields: Fields,
    /// Pinned in each job at submission.
    pub policies: Policies,
    /// By event type.
    pub events: BTreeMap<String, EventRule>,
}

impl Profile {
    /// True when the profile may speak for this tenant.
    pub fn serves(&self, tenant: &TenantId) -> bool {
        self.tenants.as_ref().is_none_or(|tenants| tenants.contains(tenant))
    }
}
