//! The ledger: append-only, double-entry, and hash-chained per wallet.
//!
//! A wallet is ONE account in the entries; available and held are a split of it that the balance and
//! the open holds keep. Only entries that move money into or out of the wallet (fund, capture, late
//! capture) advance its sequence and chain. A pure release moves nothing and has no chain fields.

use serde::{Deserialize, Serialize};

use crate::event::By;
use crate::ids::{JobId, TenantId, WalletId};
use crate::money::{Currency, Micros, MoneyError, as_number};
use crate::operation::hex_sha256;
use crate::price::Usage;

/// The other side of a wallet's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// The tenant's prepaid money.
    Wallet,
    /// What was earned.
    Revenue,
    /// Where fundings come from.
    ExternalFunding,
}

/// One line of an entry; the lines of an entry sum to zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Which account.
    #[serde(rename = "ac")]
    pub account: Account,
    /// Positive into the account, negative out of it.
    #[serde(rename = "am", with = "as_number")]
    pub amount: Micros,
}

/// What an entry records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// Money came in.
    Fund,
    /// The hold was closed: part captured, the rest released.
    Capture,
    /// The hold was closed: all released.
    Release,
    /// A charge after the hold was closed, from the available balance.
    LateCapture,
}

/// The chain fields of an entry that moves the wallet's money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// 1, 2, ... without a gap.
    #[serde(rename = "seq")]
    pub sequence: u64,
    /// Hash of the entry before; empty for the first.
    #[serde(rename = "ph", default, skip_serializing_if = "String::is_empty")]
    pub previous: String,
    /// Hash over content, sequence and previous hash.
    #[serde(rename = "hh")]
    pub hash: String,
}

/// One item of the ledger table; inserted, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What it records.
    #[serde(rename = "kd")]
    pub kind: EntryKind,
    /// Whose wallet.
    #[serde(rename = "tn")]
    pub tenant: TenantId,
    /// Which wallet.
    #[serde(rename = "wl")]
    pub wallet: WalletId,
    /// Which job, for settlements.
    #[serde(rename = "jb", default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The version of the transition that is settled.
    #[serde(rename = "vn", default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The caller's key of a funding.
    #[serde(rename = "rn", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// What moved: captured, funded.
    #[serde(rename = "am", with = "as_number")]
    pub amount: Micros,
    /// What the close gave back to the available balance.
    #[serde(rename = "rl", with = "as_number", default, skip_serializing_if = "is_zero")]
    pub released: Micros,
    /// What the price says beyond what was captured, where the policy caps the charge at the hold.
    #[serde(rename = "uc", with = "as_number", default, skip_serializing_if = "is_zero")]
    pub uncharged: Micros,
    /// The wallet's currency.
    #[serde(rename = "cu")]
    pub currency: Currency,
    /// Debits and credits; they sum to zero.
    #[serde(rename = "ln", default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
    /// The charged usage.
    #[serde(rename = "us", default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The version of the price that was applied.
    #[serde(rename = "pv", default, skip_serializing_if = "Option::is_none")]
    pub price_version: Option<String>,
    /// Who asked.
    #[serde(rename = "by")]
    pub by: String,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
    /// Place in the wallet's chain; none for a pure release.
    #[serde(flatten)]
    pub link: Option<Link>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(amount: &Micros) -> bool {
    *amount == Micros::ZERO
}

impl Entry {
    /// Hash of what the entry says, apart from its place in the chain.
    pub fn content_hash(&self) -> String {
        let content = Self { link: None, ..self.clone() };
        let text = serde_json::to_string(&content).unwrap_or_default(); // plain fields: cannot fail
        hex_sha256(&text)
    }

    /// Links the entry behind a wallet's head.
    #[must_use]
    pub fn linked(mut self, balance: &Balance) -> Self {
        let sequence = balance.sequence + 1;
        let hash = chain_hash(sequence, &balance.head, &self.content_hash());
        self.link = Some(Link { sequence, previous: balance.head.clone(), hash });
        self
    }

    /// True when this operation's event wrote it.
    pub fn is_by(&self, by: &By) -> bool {
        self.by == by.to_string()
    }
}

/// The hash of one link: over its sequence, the hash before and the entry's content hash.
pub fn chain_hash(sequence: u64, previous: &str, content_hash: &str) -> String {
    hex_sha256(&format!("1|{sequence}|{previous}|{content_hash}"))
}

/// Two lines that move an amount out of the wallet into another account.
pub fn lines_out(amount: Micros, to: Account) -> Vec<Line> {
    vec![Line { account: Account::Wallet, amount: amount.negated() }, Line { account: to, amount }]
}

/// A wallet's balance: the one mutable money item, changed by deltas only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// What can be reserved or spent.
    #[serde(rename = "av", with = "as_number")]
    pub available: Micros,
    /// The sum of the open holds.
    #[serde(rename = "he", with = "as_number")]
    pub held: Micros,
    /// The wallet's currency, for good.
    #[serde(rename = "cu")]
    pub currency: Currency,
    /// How far available may fall below zero.
    #[serde(rename = "cl", with = "as_number")]
    pub credit_limit: Micros,
    /// Sequence of the last entry.
    #[serde(rename = "seq")]
    pub sequence: u64,
    /// Hash of the last entry; empty before the first.
    #[serde(rename = "hd", default)]
    pub head: String,
    /// Bumped by every write.
    #[serde(rename = "rev")]
    pub rev: u64,
    /// When the wallet was created, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

impl Balance {
    /// An empty wallet.
    pub fn new(currency: Currency, credit_limit: Micros, now_ms: i64) -> Self {
        let (available, held) = (Micros::ZERO, Micros::ZERO);
        Self { available, held, currency, credit_limit, sequence: 0, head: String::new(), rev: 1, created_ms: now_ms }
    }

    /// The least available balance that covers `need` within the credit limit.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when the arithmetic leaves the limits.
    pub fn least_for(&self, need: Micros) -> Result<Micros, MoneyError> {
        need.minus(self.credit_limit)
    }

    /// True when `need` can be taken from the available balance.
    pub fn covers(&self, need: Micros) -> bool {
        self.least_for(need).is_ok_and(|least| self.available >= least)
    }
}

/// What one settlement, funding or hold does to a balance, and under which conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalanceDelta {
    /// Added to available.
    pub available: Micros,
    /// Added to held.
    pub held: Micros,
    /// Taken from available under a funds condition; zero when nothing is.
    pub need: Micros,
    /// For entries: the sequence that was read, and the new head.
    pub advance: Option<Advance>,
    /// Must still hold: the currency and the credit limit that were read.
    pub currency: Currency,
    /// See `currency`.
    pub credit_limit: Micros,
}

/// A step of a wallet's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// The sequence that was read and must still stand.
    pub from: u64,
    /// The hash of the new entry.
    pub head: String,
}

/// What is in the ledger for one job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobLedger {
    /// The one close of the hold.
    pub close: Option<Entry>,
    /// Late captures by version.
    pub late: Vec<Entry>,
}

impl JobLedger {
    /// What this event has settled, if it has.
    pub fn own(&self, by: &By) -> Option<&Entry> {
        self.close.iter().chain(&self.late).find(|entry| entry.is_by(by))
    }

    /// The sum of all captures.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when the sum leaves the limits.
    pub fn captured(&self) -> Result<Micros, MoneyError> {
        self.close.iter().chain(&self.late).try_fold(Micros::ZERO, |sum, entry| sum.plus(entry.amount))
    }
}
