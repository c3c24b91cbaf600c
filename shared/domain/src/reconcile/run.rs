//! Runs and their parts. A run is a record; a part is one message's work: an hour of receipts of one shard, a wallet, a
//! page of wallets, the open reviews of one shard, a provider's or a
//! destination's list. A part counts once, however often its message
//! comes, and a part whose message was lost is sent again: nothing depends on what the queue remembers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CaseClass, PART_MINUTES};
use crate::ids::{Provider, Reference, TenantId, WalletId, escape};
use crate::keys;
use crate::limits::{BUCKET_MS, SHARDS};
use crate::operation::hex_sha256;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Receipts against effects.
    Receipts,
    /// Wallets: entries, balances, chains, holds, and each of their jobs.
    Wallets,
    /// Conflicts and reviews by age; open cases are looked at again.
    Reviews,
    /// Our jobs against the providers' own lists.
    ProviderList,
    /// What was sent out against the destinations' own lists.
    Intents,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Receipts, Self::Wallets, Self::Reviews, Self::ProviderList, Self::Intents];
}

/// A range of arrival times, Unix milliseconds; `to` is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The first.
    pub from_ms: i64,
    /// The first that is not in it.
    pub to_ms: i64,
}

/// One run (`Q·recon·id`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id is the caller's reference: the same reference is the same run.
    #[serde(rename = "id")]
    pub id: Reference,
    /// What is compared.
    #[serde(rename = "ki")]
    pub kinds: Vec<Kind>,
    /// Whose receipts: by arrival.
    #[serde(rename = "wi")]
    pub window: Window,
    /// This wallet alone.
    #[serde(rename = "wl", default, skip_serializing_if = "Option::is_none")]
    pub wallet: Option<(TenantId, WalletId)>,
    /// This provider's list alone.
    #[serde(rename = "pr", default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// The caller's identity, or `schedule`.
    #[serde(rename = "ac")]
    pub actor: String,
    /// Why.
    #[serde(rename = "rs")]
    pub reason: String,
    /// Tells the same request from another one.
    #[serde(rename = "hs")]
    pub content_hash: String,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

impl Run {
    /// The parts of a run that are known from its record alone. Wallets are found by the scan's parts.
    pub fn parts(&self, listed: &[Provider], destinations: &[String]) -> Vec<PartKey> {
        let mut parts = Vec::new();
        for kind in &self.kinds {
            match kind {
                Kind::Receipts => parts.extend(receipt_parts(self.window)),
                Kind::Wallets => parts.push(match &self.wallet {
                    Some((tenant, wallet)) => PartKey::Wallet { tenant: tenant.clone(), wallet: wallet.clone() },
                    None => PartKey::Scan { after: None },
                }),
                Kind::Reviews => parts.extend((0..SHARDS).map(|shard| PartKey::Reviews { shard })),
                Kind::ProviderList => {
                    let wanted = listed.iter().filter(|p| self.provider.as_ref().is_none_or(|only| only == *p));
                    parts.extend(wanted.map(|provider| PartKey::List { provider: provider.clone() }));
                }
                Kind::Intents => {
                    let part = |name: &String| PartKey::Intents { destination: name.clone() };
                    parts.extend(destinations.iter().map(part));
                }
            }
        }
        parts
    }
}

fn receipt_parts(window: Window) -> Vec<PartKey> {
    let (first, end) = (window.from_ms.div_euclid(BUCKET_MS), window.to_ms.div_euclid(BUCKET_MS));
    let mut parts = Vec::new();
    let mut minute = first;
    while minute < end {
        let until = (minute.div_euclid(PART_MINUTES) + 1) * PART_MINUTES;
        let minutes = until.min(end) - minute;
        parts.extend((0..SHARDS).map(|shard| PartKey::Receipts { minute, minutes, shard }));
        minute += minutes;
    }
    parts
}

/// One message's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKey {
    /// Makes the other parts.
    Plan,
    /// Receipts of one shard, from a minute on.
    Receipts {
        /// Minutes since 1970.
        minute: i64,
        /// How many.
        minutes: i64,
        /// Which shard.
        shard: u32,
    },
    /// A page of wallets.
    Scan {
        /// The last key of the page before.
        after: Option<String>,
    },
    /// One wallet with its jobs.
    Wallet {
        /// Whose.
        tenant: TenantId,
        /// Which.
        wallet: WalletId,
    },
    /// Open reviews of one shard.
    Reviews {
        /// Which.
        shard: u32,
    },
    /// A provider's own list.
    List {
        /// Whose.
        provider: Provider,
    },
    /// What was sent to a destination, and its own list.
    Intents {
        /// The table [destinations.NAME].
        destination: String,
    },
}

impl PartKey {
    /// The part's id within its run.
    pub fn id(&self) -> String {
        match self {
            Self::Plan => "plan".to_owned(),
            Self::Receipts { minute, minutes, shard } => format!("receipts|{minute:012}|{minutes}|{shard}"),
            Self::Scan { after } => format!("scan|{}", hex_sha256(after.as_deref().unwrap_or_default())),
            Self::Wallet { tenant, wallet } => format!("wallet|{}", hex_sha256(&keys::wallet_pk(tenant, wallet))),
            Self::Reviews { shard } => format!("reviews|{shard}"),
            Self::List { provider } => format!("list|{}", escape(provider.as_str())),
            Self::Intents { destination } => format!("intents|{}", escape(destination)),
        }
    }
}

/// Where a part stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartState {
    /// Not done yet.
    Open,
    /// Done; its counts are final.
    Done,
    /// Given up: its result says why. The next run looks again.
    Failed,
}

/// A part's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What is to be done.
    #[serde(rename = "pt")]
    pub key: PartKey,
    /// Where it stands.
    #[serde(rename = "st")]
    pub state: PartState,
    /// What it found.
    #[serde(rename = "re", default)]
    pub result: PartResult,
}

/// What was found of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClassCount {
    /// Facts.
    pub found: u64,
    /// Those whose case this run opened.
    pub new: u64,
    /// Those that were done at once.
    pub applied: u64,
}

/// What a part found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartResult {
    /// Receipts, jobs, reviews or entries examined.
    #[serde(rename = "ex", default)]
    pub examined: u64,
    /// By class.
    #[serde(rename = "by", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<CaseClass, ClassCount>,
    /// What could not be compared, and why.
    #[serde(rename = "sk", default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

impl PartResult {
    /// Adds another part's counts.
    pub fn add(&mut self, other: &Self) {
        self.examined += other.examined;
        for (class, count) in &other.classes {
            let sum = self.classes.entry(*class).or_default();
            sum.found += count.found;
            sum.new += count.new;
            sum.applied += count.applied;
        }
        self.skipped.extend(other.skipped.iter().cloned());
    }
}

/// What travels through the reconciler's queue: names, never a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartMessage {
    /// Version of this form.
    #[serde(rename = "v")]
    pub version: u32,
    /// Which run.
    #[serde(rename = "r")]
    pub run: Reference,
    /// Which part, by its id.
    #[serde(rename = "p")]
    pub part: String,
}

impl PartMessage {
    /// The current form.
    pub const VERSION: u32 = 1;

    /// A dispatch of a part.
    pub fn new(run: Reference, part: &PartKey) -> Self {
        Self { version: Self::VERSION, run, part: part.id() }
    }

    /// The message body.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() // strings and an integer only: cannot fail
    }

    /// Reads a message body; `None` when it is not ours.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|message: &Self| message.version == Self::VERSION)
    }

    /// The FIFO group: each part is its own, so that parts run side by side.
    pub fn group(&self) -> String {
        hex_sha256(&format!("{}|{}", escape(self.run.as_str()), self.part))
    }

    /// The deduplication id of one dispatch.
    pub fn deduplication_id(&self, dispatch: i64) -> String {
        hex_sha256(&format!("{}|{}|{dispatch}", escape(self.run.as_str()), self.part))
    }
}
