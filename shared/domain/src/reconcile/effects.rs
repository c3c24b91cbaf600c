//! A destination's own list of the effects that it has: read by the pointers of its table.
//!
//! Of an entry only what is compared is kept, and only of one that bears a key as ours are. What cannot be read is counted;
//! an entry never stands for more than it says.

use serde::{Deserialize, Serialize};

use super::listing::{scalar, time};
use crate::json::{self, Value};
use crate::operation::hex_sha256;
use crate::outcome::MAX_ID_BYTES;
use crate::profile::{EffectList, Paging};

/// What a destination says of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectState {
    /// It exists.
    Settled,
    /// It is not at an end.
    Pending,
    /// It never will be.
    Failed,
}

/// One effect as its destination lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedEffect {
    /// Our key, as it is repeated there.
    #[serde(rename = "ky")]
    pub key: String,
    /// The id of the event of our own that asked, as it is repeated there.
    #[serde(rename = "ev", default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The destination's id.
    #[serde(rename = "id")]
    pub id: String,
    /// Where it stands.
    #[serde(rename = "st")]
    pub state: EffectState,
    /// What it is worth, in minor units.
    #[serde(rename = "am", default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<i64>,
    /// Its currency, in upper case.
    #[serde(rename = "cu", default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// What has come of a payment, in minor units; none while nothing has.
    #[serde(rename = "pd", default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<i64>,
    /// What went back of it in all, in minor units; none where nothing did.
    #[serde(rename = "rd", default, skip_serializing_if = "Option::is_none")]
    pub refunded: Option<i64>,
    /// When the last of that went back, Unix milliseconds.
    #[serde(rename = "ra", default, skip_serializing_if = "Option::is_none")]
    pub refunded_ms: Option<i64>,
    /// When it was made, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

impl ListedEffect {
    /// What the list says, so that a decided case is told again only where that changed.
    pub fn identity(&self) -> String {
        let (state, currency) = (self.state, self.currency.as_deref().unwrap_or_default());
        let numbers = [self.amount, self.paid, self.refunded].map(|n| n.map(|n| n.to_string()).unwrap_or_default());
        hex_sha256(&format!("{}|{}|{state:?}|{currency}|{}", self.key, self.id, numbers.join("|")))
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EffectPage {
    /// The entries that bear a key.
    pub entries: Vec<ListedEffect>,
    /// Entries of any kind.
    pub all: usize,
    /// Entries with a key that could not be read.
    pub unreadable: usize,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Reads a page by the table's pointers.
///
/// # Errors
/// A sentence without content when the page is not what the table says.
pub fn read_effects(list: &EffectList, body: &[u8]) -> Result<EffectPage, String> {
    let page = json::parse(body).map_err(|error| format!("the list is not acceptable JSON: {error}"))?;
    let items = page.pointer(&list.items).and_then(Value::as_array);
    let items = items.ok_or_else(|| format!("the list has no array at {}", list.items))?;
    let mut read = EffectPage { all: items.len(), next: next(list, &page, items)?, ..EffectPage::default() };
    for item in items {
        let Some(key) = scalar(item.pointer(&list.key)).filter(|key| is_key(key)) else { continue };
        match entry(list, item, key) {
            Some(entry) => read.entries.push(entry),
            None => read.unreadable += 1,
        }
    }
    Ok(read)
}

/// Ours are hex SHA-256.
fn is_key(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn next(list: &EffectList, page: &Value<'_>, items: &[Value<'_>]) -> Result<Option<String>, String> {
    match &list.paging {
        None => Ok(None),
        Some(Paging::Named { next, .. }) => Ok(scalar(page.pointer(next))),
        Some(Paging::BehindLast { last, more, .. }) => match page.pointer(more) {
            Some(Value::Bool(true)) => match items.last().and_then(|item| scalar(item.pointer(last))) {
                Some(cursor) => Ok(Some(cursor)),
                None => Err(format!("the list says that there are more, and its last entry has nothing at {last}")),
            },
            Some(Value::Bool(false)) => Ok(None),
            _ => Err(format!("the list does not say at {more} whether there are more")),
        },
    }
}

/// Short and printable: it is kept.
fn is_plain(text: &str) -> bool {
    text.len() <= MAX_ID_BYTES && !text.chars().any(char::is_control)
}

/// Three letters, in upper case.
fn currency(text: &str) -> Option<String> {
    let code = text.len() == 3 && text.bytes().all(|b| b.is_ascii_alphabetic());
    code.then(|| text.to_ascii_uppercase())
}

fn entry(list: &EffectList, item: &Value<'_>, key: String) -> Option<ListedEffect> {
    let minor = |at| scalar(item.pointer(at)).map(|text| text.parse::<i64>().ok().filter(|amount| *amount >= 0));
    let at = |pointer| time(list.created.1, &scalar(item.pointer(pointer))?);
    let status = list.status.as_ref().map(|at| scalar(item.pointer(at)));
    let state = match &status {
        None => EffectState::Settled,
        Some(None) => return None,
        Some(Some(status)) if list.settled.contains(status) => EffectState::Settled,
        Some(Some(status)) if list.failed.contains(status) => EffectState::Failed,
        Some(Some(_)) => EffectState::Pending,
    };
    let (amount, currency) = match &list.money {
        Some((amount, at)) => (Some(minor(amount)??), Some(currency(&scalar(item.pointer(at))?)?)),
        None => (None, None),
    };
    let paid = match (&list.paid, &status) {
        (Some((paid, amount)), Some(Some(status))) if paid.contains(status) => Some(minor(amount)??),
        _ => None,
    };
    // Nothing went back of what was never charged: its place is not there then.
    let refunded = match list.refunded.as_ref().and_then(|(amount, _)| minor(amount)) {
        Some(amount) => Some(amount?).filter(|amount| *amount > 0),
        None => None,
    };
    let refunded_ms = list.refunded.as_ref().filter(|_| refunded.is_some()).and_then(|(_, when)| at(when));
    let id = scalar(item.pointer(&list.id)).filter(|id| is_plain(id))?;
    let event = list.event.as_ref().and_then(|at| scalar(item.pointer(at))).filter(|event| is_plain(event));
    let created_ms = at(&list.created.0)?;
    Some(ListedEffect { key, event, id, state, amount, currency, paid, refunded, refunded_ms, created_ms })
}
