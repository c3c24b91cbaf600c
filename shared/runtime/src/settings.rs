//! Settings of a function, read once from its environment.

use queue::QueueUrls;
use store::TableNames;

/// A setting that is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {0} is not set; infra/template.yaml sets it for each function that needs it")]
pub struct MissingSetting(pub &'static str);

/// What a function needs beside its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names of the tables; one that a function does not use is empty.
    pub tables: TableNames,
    /// URLs of the queues; one that a function does not use is empty.
    pub queues: QueueUrls,
    /// Log level.
    pub log: String,
}

impl Settings {
    /// Reads the environment through `var`. A name in `needed` must be set; others may be empty.
    ///
    /// # Errors
    /// [`MissingSetting`] naming the first needed variable that is not set.
    pub fn read(needed: &[&'static str], var: impl Fn(&str) -> Option<String>) -> Result<Self, MissingSetting> {
        if let Some(name) = needed.iter().find(|name| var(name).is_none_or(|v| v.is_empty())) {
            return Err(MissingSetting(name));
        }
        let get = |name: &str| var(name).unwrap_or_default();
        Ok(Self {
            tables: TableNames {
                events: get(EVENTS_TABLE),
                jobs: get(JOBS_TABLE),
                ledger: get(LEDGER_TABLE),
                balances: get(BALANCES_TABLE),
            },
            queues: QueueUrls {
                job: get(JOB_QUEUE_URL),
                billing: get(BILLING_QUEUE_URL),
                outbound: get(OUTBOUND_QUEUE_URL),
                reconcile: get(RECONCILE_QUEUE_URL),
            },
            log: var(LOG).unwrap_or_else(|| "info".to_owned()),
        })
    }
}

/// A setting whose value makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {0} must be a whole number of seconds from 1 to 86400")]
pub struct BadSeconds(pub &'static str);

/// A time in seconds, from 1 to a day.
///
/// # Errors
/// [`BadSeconds`].
pub fn seconds(name: &'static str, default: i64, var: impl Fn(&str) -> Option<String>) -> Result<i64, BadSeconds> {
    let Some(text) = var(name) else { return Ok(default) };
    text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds)).ok_or(BadSeconds(name))
}

/// Name of the events table.
pub const EVENTS_TABLE: &str = "HOOKLEDGER_EVENTS_TABLE";
/// Name of the jobs table.
pub const JOBS_TABLE: &str = "HOOKLEDGER_JOBS_TABLE";
/// Name of the ledger table.
pub const LEDGER_TABLE: &str = "HOOKLEDGER_LEDGER_TABLE";
/// Name of the balances table.
pub const BALANCES_TABLE: &str = "HOOKLEDGER_BALANCES_TABLE";
/// URL of the job queue.
pub const JOB_QUEUE_URL: &str = "HOOKLEDGER_JOB_QUEUE_URL";
/// URL of the billing queue.
pub const BILLING_QUEUE_URL: &str = "HOOKLEDGER_BILLING_QUEUE_URL";
/// URL of the outbound queue.
pub const OUTBOUND_QUEUE_URL: &str = "HOOKLEDGER_OUTBOUND_QUEUE_URL";
/// URL of the queue that events are forwarded to, where a profile names this variable; optional.
pub const FORWARD_QUEUE_URL: &str = "HOOKLEDGER_FORWARD_QUEUE_URL";
/// URL of the reconciler's queue.
pub const RECONCILE_QUEUE_URL: &str = "HOOKLEDGER_RECONCILE_QUEUE_URL";
/// Public base URL of the webhooks, for schemes that sign the URL; optional.
pub const PUBLIC_URL: &str = "HOOKLEDGER_PUBLIC_URL";
/// For how many seconds fetched secrets are used before they are fetched again; optional.
pub const SECRET_CACHE_S: &str = "HOOKLEDGER_SECRET_CACHE_S";
/// Log level.
pub const LOG: &str = "HOOKLEDGER_LOG";
/// Certificate authorities of AWS endpoints: `amazon` (default) or `system`; optional.
pub const TLS_ROOTS: &str = "HOOKLEDGER_TLS_ROOTS";
/// A PEM file of certificate authorities for AWS endpoints, as other AWS clients take it; optional.
pub const CA_BUNDLE: &str = "AWS_CA_BUNDLE";
