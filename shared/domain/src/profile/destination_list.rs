//! Where a destination lists the effects that it has, for the reconciler: `[destinations.NAME.list]`. Path, paging, and where
//! an entry carries what. Base address, headers and secret are the destination's own.

use serde::Deserialize;

use super::TimeUnit;
use super::destination::path;
use super::destination_shape::{LIST_PATH, PARAM};
use super::shape::POINTER;
use crate::config::shape::{Field, Kind};
use crate::json::Pointer;
use crate::time::rfc3339;

/// Where the beginning of the window stands in the path.
const SINCE: &str = "{since}";
/// How far back a daily run looks where the file does not say, and the most that it may say, in hours.
const WINDOW_HOURS: u32 = 48;
const MAX_WINDOW_HOURS: u32 = 168;
/// Pages read where the file does not say, and the most that it may say.
const PAGES: u32 = 100;
const MAX_PAGES: u32 = 1_000;
const HOUR_MS: i64 = 3_600_000;

/// How the next page is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Paging {
    /// The page names it.
    Named {
        /// The query parameter that takes its name.
        param: String,
        /// Where in the page.
        next: Pointer,
    },
    /// It begins behind the last entry, while the page says that there are more.
    BehindLast {
        /// The query parameter that takes what names the entry.
        param: String,
        /// Where in the entry.
        last: Pointer,
        /// Where in the page: `true` while there are more.
        more: Pointer,
    },
}

/// A destination's own list of the effects that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectList {
    /// Path and query of the first page; `{since}` is the time from which entries are wanted.
    pub path: String,
    /// How the next page is asked for; none: there is one page.
    pub paging: Option<Paging>,
    /// Where a page's entries are.
    pub items: Pointer,
    /// In an entry: our key. One without it is not ours.
    pub key: Pointer,
    /// In an entry: the id of the event of our own that asked, which finds it whatever its age.
    pub event: Option<Pointer>,
    /// In an entry: the destination's id of the effect.
    pub id: Pointer,
    /// In an entry: its status; without it whatever is listed is settled.
    pub status: Option<Pointer>,
    /// Statuses of an effect that exists.
    pub settled: Vec<String>,
    /// Statuses of one that never will.
    pub failed: Vec<String>,
    /// In an entry: what it is worth, in minor units, and its currency.
    pub money: Option<(Pointer, Pointer)>,
    /// Of payments: the statuses in which the money has come, and where its amount stands, in minor units.
    pub paid: Option<(Vec<String>, Pointer)>,
    /// Of payments: what went back of it in all, in minor units, and when the last of it did.
    pub refunded: Option<(Pointer, Pointer)>,
    /// In an entry: when it was made.
    pub created: (Pointer, TimeUnit),
    /// How far back a daily run looks, in milliseconds.
    pub window_ms: i64,
    /// Pages at most.
    pub max_pages: u32,
}

impl EffectList {
    /// Path and query of the first page of what was made since then, Unix milliseconds.
    pub fn first_page(&self, since_ms: i64) -> String {
        let since = match self.created.1 {
            TimeUnit::Seconds => since_ms.div_euclid(1_000).to_string(),
            TimeUnit::Milliseconds => since_ms.to_string(),
            TimeUnit::Rfc3339 => crate::ids::percent(&rfc3339(since_ms), b"-._"),
        };
        self.path.replace(SINCE, &since)
    }

    /// The same of the page behind a cursor.
    pub fn page_behind(&self, since_ms: i64, cursor: &str) -> String {
        let first = self.first_page(since_ms);
        let Some(Paging::Named { param, .. } | Paging::BehindLast { param, .. }) = &self.paging else { return first };
        let separator = if first.contains('?') { '&' } else { '?' };
        format!("{first}{separator}{param}={}", crate::ids::percent(cursor, b"-._"))
    }
}

pub(super) static LIST: &[Field] = &[
    Field::must("path", Kind::Form(&LIST_PATH), "a GET behind the base address; {since} is the time that it begins at"),
    Field::may("page", Kind::Table(PAGE), "how the next page is asked for; without it there is one page"),
    Field::must("items", Kind::Form(&POINTER), "where a page's entries are"),
    Field::must("key", Kind::Form(&POINTER), "in an entry: our key; one without it is passed"),
    Field::may("event", Kind::Form(&POINTER), "in an entry: the id of the event of our own that asked"),
    Field::must("id", Kind::Form(&POINTER), "in an entry: the destination's id"),
    Field::may("status", Kind::Form(&POINTER), "in an entry: its status; without it what is listed is settled"),
    Field::may("settled", Kind::List(&Kind::Text, 1), "statuses of an effect that exists"),
    Field::may("failed", Kind::List(&Kind::Text, 1), "statuses of one that never will"),
    Field::may("amount", Kind::Form(&POINTER), "in an entry: its amount in minor units"),
    Field::may("currency", Kind::Form(&POINTER), "in an entry: its currency"),
    Field::may("paid", Kind::List(&Kind::Text, 1), "statuses of a payment whose money has come"),
    Field::may("paid_amount", Kind::Form(&POINTER), "in an entry: what has come, in minor units"),
    Field::may("refunded", Kind::Form(&POINTER), "in an entry: what went back of it in all, in minor units"),
    Field::may(
        "refunded_at",
        Kind::Form(&POINTER),
        "in an entry: when the last of it went back, written as `created` is",
    ),
    Field::must("created", Kind::Table(CREATED), "in an entry: when it was made"),
    Field::may(
        "window_hours",
        Kind::Integer(1, MAX_WINDOW_HOURS as i64),
        "how far back a daily run looks; 48 without it",
    ),
    Field::may("max_pages", Kind::Integer(1, MAX_PAGES as i64), "pages at most; 100 without it"),
];

pub(super) static PAGE: &[Field] = &[
    Field::must("param", Kind::Form(&PARAM), "the query parameter that names the next page"),
    Field::may("next", Kind::Form(&POINTER), "where a page names the next one"),
    Field::may("last", Kind::Form(&POINTER), "in a page's last entry: what the next one begins behind"),
    Field::may("more", Kind::Form(&POINTER), "with `last`: where a page says `true` while there are more"),
];

pub(super) static CREATED: &[Field] = &[
    Field::must("at", Kind::Form(&POINTER), "where"),
    Field::must("unit", Kind::Choice(|| vec!["rfc3339", "seconds", "milliseconds"]), "how it is written"),
];

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEffectList {
    path: String,
    page: Option<RawPage>,
    items: String,
    key: String,
    event: Option<String>,
    id: String,
    status: Option<String>,
    #[serde(default)]
    settled: Vec<String>,
    #[serde(default)]
    failed: Vec<String>,
    amount: Option<String>,
    currency: Option<String>,
    #[serde(default)]
    paid: Vec<String>,
    paid_amount: Option<String>,
    refunded: Option<String>,
    refunded_at: Option<String>,
    created: RawCreated,
    window_hours: Option<u32>,
    max_pages: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPage {
    param: String,
    next: Option<String>,
    last: Option<String>,
    more: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCreated {
    at: String,
    unit: TimeUnit,
}

/// A path behind a base address, in which `{since}` may stand and nothing else that is filled in.
pub(super) fn list_path(text: &str) -> Result<(), String> {
    if text.contains("{key}") {
        return Err("a list is of all keys: {since} may stand here, and {key} belongs to `lookup`".to_owned());
    }
    path(&text.replace(SINCE, "0"))
}

type Told = (&'static str, String);

fn pointer(field: &'static str, text: &str) -> Result<Pointer, Told> {
    text.parse().map_err(|error| (field, format!("{text:?}: {error}")))
}

fn optional(field: &'static str, text: Option<&String>) -> Result<Option<Pointer>, Told> {
    text.map(|text| pointer(field, text)).transpose()
}

impl RawPage {
    fn checked(&self) -> Result<Paging, Told> {
        let param = self.param.clone();
        match (&self.next, &self.last, &self.more) {
            (Some(next), None, None) => Ok(Paging::Named { param, next: pointer("page", next)? }),
            (None, Some(last), Some(more)) => {
                Ok(Paging::BehindLast { param, last: pointer("page", last)?, more: pointer("page", more)? })
            }
            _ => Err(("page", "write `next`, where a page names the next one, or both `last` and `more`".to_owned())),
        }
    }
}

impl RawEffectList {
    /// Checks what the fields say; the form was checked before.
    pub(super) fn checked(&self) -> Result<EffectList, Told> {
        list_path(&self.path).map_err(|cause| ("path", cause))?;
        if self.status.is_some() == self.settled.is_empty() {
            return Err(("settled", "`status` and `settled` belong together".to_owned()));
        }
        if self.status.is_none() && !(self.failed.is_empty() && self.paid.is_empty()) {
            return Err(("status", "`failed` and `paid` name statuses, and there is none".to_owned()));
        }
        if let Some(both) = self.failed.iter().find(|status| self.settled.contains(status)) {
            return Err(("failed", format!("{both:?} is settled too: an effect exists or it never will")));
        }
        if let Some(unpaid) = self.paid.iter().find(|status| !self.settled.contains(status)) {
            return Err(("paid", format!("{unpaid:?} is not among `settled`: what is paid exists")));
        }
        let money = match (&self.amount, &self.currency) {
            (Some(amount), Some(currency)) => Some((pointer("amount", amount)?, pointer("currency", currency)?)),
            (None, None) => None,
            _ => return Err(("currency", "`amount` and `currency` belong together".to_owned())),
        };
        let paid = match (&self.paid[..], &self.paid_amount) {
            ([], None) => None,
            ([], Some(_)) | ([_, ..], None) => {
                return Err(("paid_amount", "`paid` and `paid_amount` belong together".to_owned()));
            }
            (_, Some(at)) => Some((self.paid.clone(), pointer("paid_amount", at)?)),
        };
        if paid.is_some() && (money.is_none() || self.event.is_none()) {
            let cause = "a payment is posted by its currency to the wallet of its event: add `currency` and `event`";
            return Err(("paid", cause.to_owned()));
        }
        let refunded = match (&self.refunded, &self.refunded_at) {
            (None, None) => None,
            (Some(_), Some(_)) if paid.is_none() => {
                return Err(("refunded", "what goes back goes back of a payment: add `paid`".to_owned()));
            }
            (Some(amount), Some(at)) => Some((pointer("refunded", amount)?, pointer("refunded_at", at)?)),
            _ => return Err(("refunded_at", "`refunded` and `refunded_at` belong together".to_owned())),
        };
        Ok(EffectList {
            path: self.path.clone(),
            paging: self.page.as_ref().map(RawPage::checked).transpose()?,
            items: pointer("items", &self.items)?,
            key: pointer("key", &self.key)?,
            event: optional("event", self.event.as_ref())?,
            id: pointer("id", &self.id)?,
            status: optional("status", self.status.as_ref())?,
            settled: self.settled.clone(),
            failed: self.failed.clone(),
            money,
            paid,
            refunded,
            created: (pointer("created", &self.created.at)?, self.created.unit),
            window_ms: i64::from(self.window_hours.unwrap_or(WINDOW_HOURS)) * HOUR_MS,
            max_pages: self.max_pages.unwrap_or(PAGES),
        })
    }
}

#[cfg(test)]
#[path = "destination_list_tests.rs"]
mod tests;
