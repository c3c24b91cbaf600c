//! Where a provider lists its own jobs, for the reconciler: URL, paging, and where an entry carries what.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::TimeUnit;
use crate::job::Outcome;
use crate::json::Pointer;

/// What a status of the list means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListStatus {
    /// Not over yet.
    Running,
    /// Over.
    Ended(Outcome),
}

/// Where the list's base URL stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListUrl {
    /// In the profile.
    Fixed(String),
    /// In an environment variable; without it the provider has no list.
    Variable(String),
}

/// A header that opens the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListHeader {
    /// Its name, such as `authorization`.
    pub name: String,
    /// The environment variable that holds the secret.
    pub secret: String,
    /// What stands before the secret, such as `Bearer `.
    #[serde(default)]
    pub prefix: String,
}

/// A provider's own list of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListProfile {
    /// Where it is.
    pub url: ListUrl,
    /// What opens it.
    pub header: Option<ListHeader>,
    /// The query parameter that takes the next page's cursor.
    pub page_param: Option<String>,
    /// Where a page names the next one.
    pub next: Option<Pointer>,
    /// Where a page's entries are.
    pub items: Pointer,
    /// In an entry: the provider's name for the job.
    pub reference: Pointer,
    /// In an entry: the status.
    pub status: Pointer,
    /// What each status means; an entry with another one is passed.
    pub statuses: BTreeMap<String, ListStatus>,
    /// In an entry: the usage object.
    pub usage: Option<Pointer>,
    /// In an entry: when it was last changed.
    pub updated: Option<(Pointer, TimeUnit)>,
    /// Pages at most.
    pub max_pages: u32,
}

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawList {
    url: String,
    header: Option<ListHeader>,
    page: Option<RawPage>,
    items: String,
    #[serde(rename = "ref")]
    reference: String,
    status: String,
    statuses: BTreeMap<String, String>,
    usage: Option<String>,
    updated: Option<RawUpdated>,
    #[serde(default = "pages")]
    max_pages: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPage {
    param: String,
    next: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUpdated {
    at: String,
    unit: TimeUnit,
}

/// Pages read without a limit of the profile's own, and the most that one may name.
const PAGES: u32 = 100;
const MAX_PAGES: u32 = 1_000;

fn pages() -> u32 {
    PAGES
}

impl RawList {
    /// Checks the table.
    pub(super) fn build(self) -> Result<ListProfile, String> {
        let pointer = |text: &str| text.parse::<Pointer>().map_err(|error| format!("{text:?}: {error}"));
        let url = match self.url.strip_prefix("env:") {
            Some(name) if !name.is_empty() => ListUrl::Variable(name.to_owned()),
            None if self.url.starts_with("https://") => ListUrl::Fixed(self.url.clone()),
            _ => return Err("`url` is \"https://...\" or \"env:NAME\" of the variable that holds it".to_owned()),
        };
        let header_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') && !name.is_empty();
        if self.header.as_ref().is_some_and(|h| !header_name(&h.name) || h.secret.is_empty()) {
            return Err("`header` needs a name of letters, digits and '-' and the variable of its secret".to_owned());
        }
        if !(1..=MAX_PAGES).contains(&self.max_pages) {
            return Err(format!("`max_pages` must be 1 to {MAX_PAGES}"));
        }
        let meaning = |(status, means): (String, String)| match means.as_str() {
            "running" => Ok((status, ListStatus::Running)),
            "success" => Ok((status, ListStatus::Ended(Outcome::Success))),
            "failure" => Ok((status, ListStatus::Ended(Outcome::Failure))),
            "canceled" => Ok((status, ListStatus::Ended(Outcome::Canceled))),
            other => Err(format!("`statuses`: {other:?} is none of running, success, failure, canceled")),
        };
        let statuses: BTreeMap<_, _> = self.statuses.into_iter().map(meaning).collect::<Result<_, _>>()?;
        if !statuses.values().any(|status| matches!(status, ListStatus::Ended(_))) {
            return Err("`statuses` names none that ends a job".to_owned());
        }
        Ok(ListProfile {
            url,
            header: self.header,
            next: self.page.as_ref().map(|page| pointer(&page.next)).transpose()?,
            page_param: self.page.map(|page| page.param),
            items: pointer(&self.items)?,
            reference: pointer(&self.reference)?,
            status: pointer(&self.status)?,
            statuses,
            usage: self.usage.as_deref().map(pointer).transpose()?,
            updated: self.updated.map(|u| Ok::<_, String>((pointer(&u.at)?, u.unit))).transpose()?,
            max_pages: self.max_pages,
        })
    }
}
