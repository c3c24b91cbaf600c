//! The job's records: what was asked for and on what terms, what became of it, how far it is.

use serde::{Deserialize, Serialize};

use crate::event::By;
use crate::ids::{JobId, ModelId, Provider, ProviderRef, TenantId, WalletId};
use crate::money::{Currency, Micros, MoneyError, as_number};
use crate::price::{Snapshot, Usage};

/// What happens when the charge is above the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overage {
    /// A person decides.
    #[default]
    Review,
    /// The hold is the most that is captured.
    Cap,
    /// What is above the hold comes from the available balance.
    Available,
}

/// The terms pinned at submission; a later change of the profile never reaches an open job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policies {
    /// A charge above the hold.
    #[serde(default, rename = "overage")]
    pub overage: Overage,
    /// Usage of a failed or cancelled run is charged.
    #[serde(default, rename = "bill_partial")]
    pub bill_partial: bool,
    /// A failure may be followed by a success.
    #[serde(default, rename = "provisional_failure")]
    pub provisional_failure: bool,
    /// The hold may be extended while the job runs.
    #[serde(default, rename = "extendable")]
    pub extendable: bool,
}

/// A job as submitted; immutable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Whose job.
    #[serde(rename = "tn")]
    pub tenant: TenantId,
    /// Its id within the tenant.
    #[serde(rename = "id")]
    pub job: JobId,
    /// Who runs it.
    #[serde(rename = "pr")]
    pub provider: Provider,
    /// The provider's own name for it, if it was known at submission.
    #[serde(rename = "rf", default, skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<ProviderRef>,
    /// Who pays.
    #[serde(rename = "wl")]
    pub wallet: WalletId,
    /// What was reserved.
    #[serde(rename = "hd", with = "as_number")]
    pub hold: Micros,
    /// What is authorised at the payment provider, in whole minor units; zero where nothing is.
    #[serde(rename = "au", with = "as_number", default, skip_serializing_if = "crate::ledger::is_zero")]
    pub authorised: Micros,
    /// The price, pinned.
    #[serde(rename = "px")]
    pub price: Snapshot,
    /// The policies, pinned.
    #[serde(rename = "po")]
    pub policies: Policies,
    /// When it was submitted, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
    /// When an open hold is released by itself, Unix milliseconds.
    #[serde(rename = "ex")]
    pub expires_ms: i64,
    /// Tells the same submission from another one.
    #[serde(rename = "hs")]
    pub request_hash: String,
    /// One request of the caller that led to several jobs.
    #[serde(rename = "rq", default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The caller's own bounded labels.
    #[serde(rename = "md", default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub metadata: std::collections::BTreeMap<String, String>,
}

impl Job {
    /// The model, as priced.
    pub fn model(&self) -> &ModelId {
        &self.price.model
    }

    /// The currency, as priced.
    pub fn currency(&self) -> Currency {
        self.price.currency
    }
}

/// What a provider's reference leads to, with copies of the fields that the receiver checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRef {
    /// Who runs it: only its own provider's events may speak of a job.
    #[serde(rename = "pr")]
    pub provider: Provider,
    /// Whose job.
    #[serde(rename = "tn")]
    pub tenant: TenantId,
    /// The job.
    #[serde(rename = "id")]
    pub job: JobId,
    /// Who pays; groups the billing messages.
    #[serde(rename = "wl")]
    pub wallet: WalletId,
    /// The model of the submission.
    #[serde(rename = "mo")]
    pub model: ModelId,
    /// The currency of the pinned price.
    #[serde(rename = "cu")]
    pub currency: Currency,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It did what was asked.
    Success,
    /// It did not.
    Failure,
    /// It was stopped.
    Canceled,
}

/// One terminal transition of a job; immutable, and its usage IS the usage record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// 1, 2, ...: known as `(tenant, job, version)`.
    #[serde(rename = "vn")]
    pub version: u32,
    /// How the run ended.
    #[serde(rename = "oc")]
    pub outcome: Outcome,
    /// What the provider says it used.
    #[serde(rename = "us", default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The event that decided.
    #[serde(rename = "by")]
    pub by: By,
    /// When it was written, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

/// A later, larger and longer hold (`h·n`), under its own reference; immutable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// 1, 2, ...
    #[serde(rename = "vn")]
    pub number: u32,
    /// The key of the request that asked for it.
    #[serde(rename = "rn")]
    pub reference: String,
    /// What was reserved on top.
    #[serde(rename = "hd", with = "as_number")]
    pub amount: Micros,
    /// The new expiry, Unix milliseconds.
    #[serde(rename = "ex")]
    pub expires_ms: i64,
    /// Who asked.
    #[serde(rename = "by")]
    pub by: String,
    /// When it was written, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

/// How far a job is; the one mutable item of a job, guarded by its sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The provider's order signal: only a greater one overwrites.
    #[serde(rename = "sq")]
    pub sequence: i64,
    /// The event type that said so.
    #[serde(rename = "ty")]
    pub event_type: String,
    /// The event.
    #[serde(rename = "by")]
    pub by: By,
    /// When it was written, Unix milliseconds.
    #[serde(rename = "cr")]
    pub changed_ms: i64,
}

/// Everything in a job's partition, read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecords {
    /// The submission.
    pub job: Job,
    /// In order of number.
    pub extensions: Vec<Extension>,
    /// In order of version.
    pub transitions: Vec<Transition>,
}

impl JobRecords {
    /// The outcome that usage is priced for: that of the last transition, and a success's until there is one.
    pub fn priced_outcome(&self) -> Outcome {
        self.transitions.last().map_or(Outcome::Success, |last| last.outcome)
    }

    /// The whole hold, extensions included.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when the sum leaves the limits.
    pub fn hold(&self) -> Result<Micros, MoneyError> {
        self.extensions.iter().try_fold(self.job.hold, |sum, extension| sum.plus(extension.amount))
    }

    /// When the hold expires, extensions included, Unix milliseconds.
    pub fn expires_ms(&self) -> i64 {
        self.extensions.iter().map(|extension| extension.expires_ms).fold(self.job.expires_ms, i64::max)
    }

    /// The number that the next extension would have.
    pub fn next_extension(&self) -> u32 {
        self.extensions.last().map_or(1, |extension| extension.number + 1)
    }
}
