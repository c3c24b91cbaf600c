//! The ledger: append-only, double-entry, and hash-chained per wallet.
//!
//! A wallet is ONE account in the entries; available and held are a split of it that the balance and
//! the open holds keep. Only entries that move money into or out of the wallet (fund, capture, late
//! capture) advance its sequence and chain. A pure release moves nothing and has no chain fields.

use serde::{Deserialize, Serialize};

use crate::event::By;
use crate::ids::{JobId, TenantId, WalletId};
use crate::job::Job;
use crate::keys;
use crate::money::{Currency, Micros, MoneyError, as_number};
use crate::operation::hex_sha256;
use crate::own::Within;
use crate::postpaid::Postpaid;
use crate::price::Usage;
use crate::told::Told;

/// The other side of a wallet's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// The tenant's prepaid money.
    Wallet,
    /// What was earned.
    Revenue,
    /// Where fundings come from, and where their reversals go.
    ExternalFunding,
    /// What a postpaid tenant was charged and has not paid, as a negative amount: it stands in the wallet's place.
    Receivable,
    /// What a postpaid wallet carries until it comes to whole minor units of its payment provider.
    Rounding,
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
    /// Money that a wallet brought along from another system.
    OpeningBalance,
    /// A funding, or part of it, went back to where it came from.
    FundingReversal,
    /// The hold was closed: part captured, the rest released.
    Capture,
    /// The hold was closed: all released.
    Release,
    /// The hold was closed by its expiry: all released.
    Expire,
    /// A charge after the hold was closed, from the available balance.
    LateCapture,
    /// A correction of what was captured, up or down, under its own key.
    Adjust,
    /// Captured money went back to the wallet, under its own key.
    Reverse,
}

impl EntryKind {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fund => "fund",
            Self::OpeningBalance => "opening-balance",
            Self::FundingReversal => "funding-reversal",
            Self::Capture => "capture",
            Self::Release => "release",
            Self::Expire => "expire",
            Self::LateCapture => "late-capture",
            Self::Adjust => "adjust",
            Self::Reverse => "reverse",
        }
    }

    /// What the entry does to the wallet, by its amount: money in, or a charge out.
    pub fn wallet_sign(self) -> i64 {
        match self {
            Self::Fund | Self::OpeningBalance | Self::Reverse => 1,
            Self::FundingReversal | Self::Capture | Self::LateCapture | Self::Adjust => -1,
            Self::Release | Self::Expire => 0,
        }
    }
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
    /// The order signal of a correction.
    #[serde(rename = "sq", default, skip_serializing_if = "Option::is_none")]
    pub order: Option<i64>,
    /// Why, where a person or a caller asked.
    #[serde(rename = "rs", default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What moved, with its sign as seen by the charge: captured, funded, reversed; a correction down
    /// is negative.
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
    /// Of what goes back at a payment provider: the sort key of the entry whose charge it goes back from.
    #[serde(rename = "ch", default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<String>,
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
pub(crate) fn is_zero(amount: &Micros) -> bool {
    *amount == Micros::ZERO
}

impl Entry {
    /// An entry of a job's settlement, with nothing moved yet.
    pub fn of_job(kind: EntryKind, job: &Job, by: String, now_ms: i64) -> Self {
        let entry = Self::of_wallet(kind, &job.tenant, &job.wallet, job.currency(), by, now_ms);
        Self { job: Some(job.job.clone()), ..entry }
    }

    /// An entry of a wallet, with nothing moved yet.
    pub fn of_wallet(
        kind: EntryKind, tenant: &TenantId, wallet: &WalletId, currency: Currency, by: String, now_ms: i64,
    ) -> Self {
        Self {
            kind,
            tenant: tenant.clone(),
            wallet: wallet.clone(),
            job: None,
            version: None,
            reference: None,
            order: None,
            reason: String::new(),
            amount: Micros::ZERO,
            released: Micros::ZERO,
            uncharged: Micros::ZERO,
            currency,
            lines: Vec::new(),
            usage: None,
            price_version: None,
            charge: None,
            by,
            created_ms: now_ms,
            link: None,
        }
    }

    /// The partition of the ledger table that holds it: the job's, or the wallet's where no job is concerned.
    pub fn partition(&self) -> String {
        match &self.job {
            Some(job) => keys::job_pk(&self.tenant, job),
            None => keys::wallet_pk(&self.tenant, &self.wallet),
        }
    }

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

/// Two lines that move an amount out of the wallet into another account; none for nothing.
pub fn lines_out(amount: Micros, to: Account) -> Vec<Line> {
    if amount == Micros::ZERO {
        return Vec::new();
    }
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
    /// How a postpaid wallet is charged; none: it is paid in advance. Of a postpaid wallet available is what is owed, as
    /// a negative amount.
    #[serde(rename = "pp", default, skip_serializing_if = "Option::is_none")]
    pub postpaid: Option<Postpaid>,
    /// What a postpaid wallet used and was not charged yet, since it is less than the provider takes; negative where more
    /// went back than could be refunded.
    #[serde(rename = "ca", with = "as_number", default, skip_serializing_if = "is_zero")]
    pub carried: Micros,
}

impl Balance {
    /// An empty wallet.
    pub fn new(currency: Currency, credit_limit: Micros, now_ms: i64) -> Self {
        let (available, held) = (Micros::ZERO, Micros::ZERO);
        let (head, carried) = (String::new(), Micros::ZERO);
        Self {
            available,
            held,
            currency,
            credit_limit,
            sequence: 0,
            head,
            rev: 1,
            created_ms: now_ms,
            postpaid: None,
            carried,
        }
    }

    /// The balance after a delta, for deciding several settlements of one wallet in a row.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when an amount leaves the limits.
    pub fn after(&self, delta: &BalanceDelta) -> Result<Self, MoneyError> {
        let mut next = self.clone();
        next.available = self.available.plus(delta.available)?;
        next.held = self.held.plus(delta.held)?;
        next.carried = self.carried.plus(delta.carried)?;
        next.rev += 1;
        if let Some(advance) = &delta.advance {
            next.sequence = advance.to;
            next.head.clone_from(&advance.head);
        }
        Ok(next)
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
    /// Added to what a postpaid wallet carries.
    pub carried: Micros,
    /// Taken from available under a funds condition; zero when nothing is.
    pub need: Micros,
    /// For entries: the sequence that was read, the new one and its head.
    pub advance: Option<Advance>,
    /// Must still hold: the currency and the credit limit that were read.
    pub currency: Currency,
    /// See `currency`.
    pub credit_limit: Micros,
    /// What is told of the balance that falls, and what makes it exact; nothing unless somebody subscribed.
    pub low: Box<LowBalance>,
}

/// Thresholds that a delta takes the available balance below.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LowBalance {
    /// The bounds within which the delta passes just these thresholds.
    pub within: Within,
    /// What is told of them.
    pub told: Told,
}

/// A step of a wallet's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// The sequence that was read and must still stand.
    pub from: u64,
    /// The sequence after it.
    pub to: u64,
    /// The hash of the last new entry.
    pub head: String,
}

impl BalanceDelta {
    /// Several deltas of one wallet, decided one after the other, as one. Each debit's funds
    /// condition is restated against the balance before the first. What is told of the balance is the first's.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when an amount leaves the limits.
    pub fn merged(deltas: &[&Self]) -> Result<Option<Self>, MoneyError> {
        let Some(first) = deltas.first() else { return Ok(None) };
        let mut all = Self { advance: None, ..(*first).clone() };
        (all.available, all.held, all.carried, all.need) = (Micros::ZERO, Micros::ZERO, Micros::ZERO, Micros::ZERO);
        for delta in deltas {
            if delta.need > Micros::ZERO {
                all.need = all.need.max(delta.need.minus(all.available)?);
            }
            all.available = all.available.plus(delta.available)?;
            all.held = all.held.plus(delta.held)?;
            all.carried = all.carried.plus(delta.carried)?;
            all.advance = match (all.advance, &delta.advance) {
                (Some(before), Some(next)) => Some(Advance { from: before.from, ..next.clone() }),
                (before, next) => before.or_else(|| next.clone()),
            };
        }
        Ok(Some(all))
    }
}

/// What is in the ledger for one job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobLedger {
    /// The one close of the hold.
    pub close: Option<Entry>,
    /// Late captures by version.
    pub late: Vec<Entry>,
    /// Corrections by reference.
    pub adjusts: Vec<Entry>,
    /// Reversals by reference.
    pub reverses: Vec<Entry>,
}

impl JobLedger {
    /// What this event has settled, if it has: a close or a late capture.
    pub fn own(&self, by: &By) -> Option<&Entry> {
        self.close.iter().chain(&self.late).find(|entry| entry.is_by(by))
    }

    /// A correction by its reference.
    pub fn adjust(&self, reference: &str) -> Option<&Entry> {
        self.adjusts.iter().find(|entry| entry.reference.as_deref() == Some(reference))
    }

    /// True when something was captured, were it nothing at all: then a correction can build on it.
    pub fn has_capture(&self) -> bool {
        self.close.iter().any(|close| close.kind == EntryKind::Capture) || !self.late.is_empty()
    }

    /// The captures and every correction: what the job costs now, before reversals.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when the sum leaves the limits.
    pub fn captured(&self) -> Result<Micros, MoneyError> {
        sum(self.close.iter().chain(&self.late).chain(&self.adjusts))
    }

    /// The captures and the corrections that the provider's usage led to; a person's own adjustments
    /// are left out, so that a later correction does not undo them.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when the sum leaves the limits.
    pub fn captured_by_usage(&self) -> Result<Micros, MoneyError> {
        let corrections = self.adjusts.iter().filter(|entry| entry.usage.is_some());
        sum(self.close.iter().chain(&self.late).chain(corrections))
    }

    /// The number that the next correction or reversal has.
    pub fn next_change(&self) -> usize {
        self.adjusts.len() + self.reverses.len() + 1
    }

    /// The sum of all reversals.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] when the sum leaves the limits.
    pub fn reversed(&self) -> Result<Micros, MoneyError> {
        sum(self.reverses.iter())
    }
}

fn sum<'a>(mut entries: impl Iterator<Item = &'a Entry>) -> Result<Micros, MoneyError> {
    entries.try_fold(Micros::ZERO, |total, entry| total.plus(entry.amount))
}
