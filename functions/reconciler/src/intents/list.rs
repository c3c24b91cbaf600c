//! Reads a destination's list page by page, and looks an effect up: with the destination's own address, headers, secret, rate
//! and breaker, and a limit on pages, bytes, entries and time. It follows no redirect.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::intent::Intent;
use domain::limits::MAX_ANSWER_BYTES;
use domain::outcome::{LookUp, Seen, look};
use domain::profile::{EffectList, HttpDestination};
use domain::reconcile::{ListedEffect, read_effects};
use runtime::App;
use runtime::call::{CallError, Reply, answer};
use runtime::fetch::FetchError;
use runtime::gate::Admission;
use runtime::opened::{Opened, Request};

use crate::{MAX_ENTRIES, MAX_PAGE_BYTES};

/// The longest wait for a turn.
const MAX_PAUSE_MS: i64 = 10_000;

/// A destination that can be asked.
pub(super) struct Desk<'p> {
    app: &'p App,
    table: &'p HttpDestination,
    list: &'p EffectList,
    opened: Opened<'p>,
}

/// What a list says.
#[derive(Debug, Default)]
pub(super) struct Listing {
    by_key: BTreeMap<String, Vec<ListedEffect>>,
    /// Whether it was read to its end, and every entry of ours could be read.
    pub(super) whole: bool,
    /// Why it was not.
    pub(super) problem: Option<String>,
}

impl Listing {
    /// The entries under a key.
    pub(super) fn under(&self, key: &str) -> &[ListedEffect] {
        self.by_key.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn count(&self) -> u64 {
        self.by_key.values().map(|entries| entries.len() as u64).sum()
    }

    /// One entry of each other key.
    pub(super) fn besides(&self, known: &BTreeSet<String>) -> Vec<ListedEffect> {
        let others = self.by_key.iter().filter(|(key, _)| !known.contains(*key));
        others.filter_map(|(_, entries)| domain::reconcile::decisive(entries).cloned()).collect()
    }
}

impl<'p> Desk<'p> {
    /// Else which variable is to be set to what.
    pub(super) fn open(app: &'p App, table: &'p HttpDestination, list: &'p EffectList) -> Result<Self, String> {
        let opened = app.destinations.open(table, "reconciler")?;
        Ok(Self { app, table, list, opened })
    }

    /// Reads the list from that time on.
    pub(super) async fn read(&self, since_ms: i64, stop_ms: i64) -> Result<Listing, FetchError> {
        let (mut listing, mut cursor, mut all, mut unreadable) = (Listing::default(), None::<String>, 0, 0);
        for _ in 0..self.list.max_pages {
            let path = match &cursor {
                None => self.list.first_page(since_ms),
                Some(cursor) => self.list.page_behind(since_ms, cursor),
            };
            let page = match self.page(&path).await? {
                Some(body) => read_effects(self.list, &body),
                None => Err(format!("a page has more than {MAX_PAGE_BYTES} bytes, or did not come whole")),
            };
            let page = match page {
                Ok(page) => page,
                Err(why) => return Ok(Listing { problem: Some(why), ..listing }),
            };
            (all, unreadable) = (all + page.all, unreadable + page.unreadable);
            for effect in page.entries {
                listing.by_key.entry(effect.key.clone()).or_default().push(effect);
            }
            let circle = page.next.is_some() && page.next == cursor;
            cursor = page.next;
            if cursor.is_none() {
                listing.whole = unreadable == 0;
                listing.problem = (unreadable > 0).then(|| format!("{unreadable} entries could not be read"));
                return Ok(listing);
            }
            if circle || all >= MAX_ENTRIES || self.app.clock.now_ms() > stop_ms {
                break;
            }
        }
        Ok(Listing { problem: Some("not read to its end".to_owned()), ..listing })
    }

    /// The body of a 200, where it came whole.
    async fn page(&self, path: &str) -> Result<Option<Vec<u8>>, FetchError> {
        match self.get(path, MAX_PAGE_BYTES).await {
            Ok(Reply { status: 200, body, .. }) => Ok(body),
            Ok(Reply { status, .. }) => Err(FetchError::Status(status)),
            Err(_) => Err(FetchError::Unreachable),
        }
    }

    /// Asks by an intent's key.
    pub(super) async fn look_up(&self, lookup: &LookUp, intent: &Intent) -> Seen {
        let key = intent.deduplication_id();
        let Some(path) = &self.table.lookup_path else { return Seen::Unclear("there is no look-up".to_owned()) };
        look(lookup, &key, &answer(self.get(&path.replace("{key}", &key), MAX_ANSWER_BYTES).await))
    }

    async fn get(&self, path: &str, max_bytes: usize) -> Result<Reply, CallError> {
        let (gates, clock) = (&self.app.destinations.gates, &self.app.clock);
        match gates.admit(self.table, clock.now_ms()) {
            Admission::Go(0) => {}
            Admission::Go(pause_ms) => pause(pause_ms).await,
            Admission::Busy(due_ms) if due_ms - clock.now_ms() <= MAX_PAUSE_MS => pause(due_ms - clock.now_ms()).await,
            Admission::Busy(_) => return Err(CallError::NotSent("its rate of requests leaves no turn for so long")),
            Admission::Down(_) => return Err(CallError::NotSent("it did not answer several times in a row")),
        }
        let headers = self.opened.reading(self.table);
        let request = Request { method: "GET", path, headers, body: Vec::new(), max_bytes };
        self.opened.call(self.app, self.table, request).await
    }
}

async fn pause(pause_ms: i64) {
    tokio::time::sleep(Duration::from_millis(u64::try_from(pause_ms).unwrap_or(0))).await;
}
