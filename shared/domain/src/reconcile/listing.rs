//! A provider's own list of jobs: read by the pointers of its profile, compared with ours.
//!
//! Of an entry only the reference, the status, the usage and the time are kept. What cannot be read is counted and
//! passed; an entry never stands for more than it says.

use serde::{Deserialize, Serialize};

use super::jobs::difference;
use super::{Action, CaseClass, Finding, JobView, LIST_GRACE_MS, Subject};
use crate::decide::settle::{above_cap, is_capped};
use crate::ids::ProviderRef;
use crate::job::{JobRecords, Outcome};
use crate::json::{self, Value};
use crate::ledger::JobLedger;
use crate::money::Micros;
use crate::operation::hex_sha256;
use crate::price::{Usage, usage_from_json};
use crate::profile::{ListProfile, ListStatus, TimeUnit};
use crate::time::{parse_rfc3339, rfc3339};

/// What the list says of a job that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The provider's name for the job.
    #[serde(rename = "rf")]
    pub reference: ProviderRef,
    /// How it ended.
    #[serde(rename = "oc")]
    pub outcome: Outcome,
    /// What it used.
    #[serde(rename = "us", default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// When the provider last changed it, Unix milliseconds, if it says so.
    #[serde(rename = "ut", default, skip_serializing_if = "Option::is_none")]
    pub updated_ms: Option<i64>,
}

impl Listed {
    /// The stable identity of what the list says: the same entry makes the same event, whoever accepts it.
    pub fn identity(&self) -> String {
        let usage: Vec<String> =
            self.usage.iter().flatten().map(|(unit, quantity)| format!("{unit}={}", String::from(*quantity))).collect();
        hex_sha256(&format!("{}|{:?}|{}", self.reference, self.outcome, usage.join(",")))
    }
}

/// One entry of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// The provider's name for the job.
    pub reference: ProviderRef,
    /// What it says, once the job ended; `None` while it runs.
    pub ended: Option<Listed>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListPage {
    /// What could be read.
    pub entries: Vec<ListedEntry>,
    /// Entries that could not be read.
    pub unreadable: usize,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Reads a page by the profile's pointers.
///
/// # Errors
/// A sentence without content when the page is not what the profile says.
pub fn read_page(profile: &ListProfile, body: &[u8]) -> Result<ListPage, String> {
    let page = json::parse(body).map_err(|error| format!("the list is not acceptable JSON: {error}"))?;
    let items = page.pointer(&profile.items).and_then(Value::as_array);
    let items = items.ok_or_else(|| format!("the list has no array at {}", profile.items))?;
    let mut read =
        ListPage { next: profile.next.as_ref().and_then(|at| scalar(page.pointer(at))), ..ListPage::default() };
    for item in items {
        match entry(profile, item) {
            Some(entry) => read.entries.push(entry),
            None => read.unreadable += 1,
        }
    }
    Ok(read)
}

pub(super) fn scalar(value: Option<&Value<'_>>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.to_string()),
        Value::Number(number) => Some(number.text().to_owned()),
        _ => None,
    }
}

fn entry(profile: &ListProfile, item: &Value<'_>) -> Option<ListedEntry> {
    let reference = ProviderRef::new(scalar(item.pointer(&profile.reference))?).ok()?;
    let status = profile.statuses.get(&scalar(item.pointer(&profile.status))?)?;
    let ListStatus::Ended(outcome) = status else { return Some(ListedEntry { reference, ended: None }) };
    let usage = match profile.usage.as_ref().and_then(|at| item.pointer(at)).filter(|value| !value.is_null()) {
        Some(value) => Some(usage_from_json(value).ok()?),
        None => None,
    };
    let updated_ms = profile.updated.as_ref().and_then(|(at, unit)| time(*unit, &scalar(item.pointer(at))?));
    let ended = Listed { reference: reference.clone(), outcome: *outcome, usage, updated_ms };
    Some(ListedEntry { reference, ended: Some(ended) })
}

pub(super) fn time(unit: TimeUnit, text: &str) -> Option<i64> {
    match unit {
        TimeUnit::Rfc3339 => parse_rfc3339(text),
        TimeUnit::Seconds => text.parse::<i64>().ok()?.checked_mul(1000),
        TimeUnit::Milliseconds => text.parse().ok(),
    }
}

/// Compares what the list says of an ended job with what is recorded. A job has one case of a class: what the list says
/// by now takes the place of what it said before, so that nothing but the newest is ever applied.
pub fn compare_listed(listed: &Listed, records: &JobRecords, ledger: &JobLedger, now_ms: i64) -> Option<Finding> {
    let subject = Subject::Job { tenant: records.job.tenant.clone(), job: records.job.job.clone() };
    let (outcome, currency) = (listed.outcome, records.job.currency());
    let Some(last) = records.transitions.last() else {
        // Its event may be on the way for as long as the provider keeps trying; the list's own time is the better sign.
        let since_ms = listed.updated_ms.unwrap_or(records.job.created_ms);
        if now_ms - since_ms < LIST_GRACE_MS {
            return None;
        }
        let at = listed.updated_ms.map(|ms| format!(" since {}", rfc3339(ms))).unwrap_or_default();
        let evidence =
            format!("the provider lists {} as {outcome:?}{at}, and no event of it was decided here", listed.reference);
        let finding = Finding::new(CaseClass::NeverDelivered, Action::AcceptFromAuthority, subject, evidence);
        let finding = finding.with_listed(listed.clone());
        return Some(records.hold().map_or(finding.clone(), |hold| finding.with_money(hold, currency)));
    };
    if last.outcome != outcome {
        let evidence =
            format!("the provider lists {outcome:?}; {:?} was decided by {}", last.outcome, last.by).to_lowercase();
        let finding = Finding::new(CaseClass::StatusDiffers, Action::Person, subject, evidence);
        return Some(finding.with_listed(listed.clone()));
    }
    let usage = listed.usage.as_ref()?;
    let view = JobView { records, ledger, decider: None, has_list: true, now_ms };
    if outcome == Outcome::Success && last.usage.is_none() && ledger.close.is_none() {
        let evidence = format!("success decided by {} without usage; the provider's list has it", last.by);
        let finding = Finding::new(CaseClass::NoUsage, Action::AskAuthority, subject, evidence);
        let finding = finding.with_listed(listed.clone());
        return Some(records.hold().map_or(finding.clone(), |hold| finding.with_money(hold, currency)));
    }
    let (charged, entry) = super::jobs::charged_usage(&view, last)?;
    if charged == usage {
        return None;
    }
    let uncharged =
        above_cap(records, is_capped(records, ledger), records.job.price.charge_for(last.outcome, usage).ok()?);
    let difference = difference(&view, last, usage, uncharged).filter(|difference| *difference != Micros::ZERO)?;
    let evidence =
        format!("the provider lists other usage than was charged by {}: {difference} more (negative: less)", entry.by);
    let finding = Finding::new(CaseClass::UsageDiffers, Action::Compensate, subject, evidence);
    Some(finding.with_listed(listed.clone()).with_money(difference, currency))
}

/// A running job that a list read to its end does not have.
pub fn missing_at_provider(records: &JobRecords, ledger: &JobLedger, now_ms: i64) -> Option<Finding> {
    let running = records.transitions.is_empty() && ledger.close.is_none();
    if !running || now_ms - records.job.created_ms < LIST_GRACE_MS {
        return None;
    }
    let reference = records.job.provider_ref.as_ref()?;
    let subject = Subject::Job { tenant: records.job.tenant.clone(), job: records.job.job.clone() };
    let at = rfc3339(records.job.created_ms);
    let evidence = format!("submitted at {at} as {reference}, and the provider's list does not have it");
    let finding = Finding::new(CaseClass::MissingAtProvider, Action::Person, subject, evidence);
    Some(records.hold().map_or(finding.clone(), |hold| finding.with_money(hold, records.job.currency())))
}
