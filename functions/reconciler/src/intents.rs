//! What was sent to a destination against its own list: the list first, then each intent whose event arrived in the window,
//! then the entries of other ones that name their event, then the cases that were open before.
//!
//! Nothing scans a table: the intents are found by the arrival index of receipts, of which only those are read that can
//! have sent something there; an entry that names its event is found by that. Only a list that was read to its end says that
//! something is missing, and of intents only that are not older than it.

mod before;
mod list;
mod look;

use std::collections::BTreeSet;

use domain::event::{EventId, EventRef};
use domain::intent::Intent;
use domain::intent::step::{Step, next};
use domain::keys;
use domain::limits::{BUCKET_MS, SHARDS};
use domain::outcome::{LookUp, Seen};
use domain::own;
use domain::profile::{EffectList, HttpDestination};
use domain::reconcile::{Action, CaseClass, Finding, LIST_GRACE_MS, ListedEffect, Run, Subject, Window, unknown_here};
use futures_util::future::join_all;
use store::StoreError;

use crate::record::Recorder;
use crate::{PartError, Reconciler, SIDE_BY_SIDE, TIME_BUDGET_MS};

use list::{Desk, Listing};
pub(crate) use look::{Sent, findings, of_key, stands};

/// The list is asked for from so long before the window: clocks differ.
const BEFORE_MS: i64 = 3_600_000;
/// Look-ups of one part at most.
const MAX_LOOKS: usize = 200;
/// Cases of entries that nothing here knows, in one part at most: the account may serve another deployment.
const MAX_UNKNOWN: usize = 100;

/// One part's work.
struct Pass<'p, 'a> {
    recorder: &'p mut Recorder<'a>,
    table: &'p HttpDestination,
    desk: Desk<'p>,
    window: Window,
    stop_ms: i64,
    listing: Listing,
    /// The keys of the list whose intents were seen.
    known: BTreeSet<String>,
    /// The cases whose fact was seen.
    found: BTreeSet<String>,
    looks: usize,
    /// Whether each entry of the list was compared, or is none of ours.
    all_seen: bool,
}

/// What of receipts is compared: the run's window, or of a run without one as much as the table says.
fn window(run: &Run, list: &EffectList, now_ms: i64) -> Window {
    match run.window.from_ms < run.window.to_ms {
        true => run.window,
        false => Window { from_ms: now_ms - list.window_ms, to_ms: now_ms },
    }
}

impl Reconciler {
    pub(crate) async fn compare_intents(&self, recorder: &mut Recorder<'_>, name: &str) -> Result<(), PartError> {
        let Some(table) = self.app.profiles.destination(name) else { return Ok(()) };
        let Some(list) = &table.list else { return Ok(()) };
        let desk = match Desk::open(&self.app, table, list) {
            Ok(desk) => desk,
            Err(missing) => {
                recorder.result.skipped.push(format!("list of destination {name}: {missing}"));
                return Ok(());
            }
        };
        let now_ms = self.app.clock.now_ms();
        let (window, stop_ms) = (window(recorder.run, list, now_ms), now_ms + TIME_BUDGET_MS);
        let listing = match desk.read(window.from_ms - BEFORE_MS, stop_ms).await {
            Ok(listing) => listing,
            Err(error) if error.is_transient() => return Err(error.into()),
            Err(error) => {
                recorder.result.skipped.push(format!("list of destination {name}: {error}"));
                return Ok(());
            }
        };
        recorder.result.skipped.extend(listing.problem.iter().map(|why| format!("list of destination {name}: {why}")));
        recorder.result.examined += listing.count();
        let (known, found) = (BTreeSet::new(), BTreeSet::new());
        let mut pass =
            Pass { recorder, table, desk, window, stop_ms, listing, known, found, looks: 0, all_seen: false };
        Box::pin(pass.sent_in_window()).await?;
        Box::pin(pass.other_entries()).await?;
        Box::pin(pass.open_before()).await?;
        Ok(())
    }
}

impl Pass<'_, '_> {
    fn late(&mut self, what: &str) -> bool {
        let late = self.recorder.app.clock.now_ms() > self.stop_ms;
        if late {
            let name = &self.table.name;
            self.recorder.result.skipped.push(format!("destination {name}: {what}: there was no time for all of them"));
        }
        late
    }

    /// Every intent whose event arrived in the window.
    async fn sent_in_window(&mut self) -> Result<(), StoreError> {
        let app = self.recorder.app;
        let (first, end) = (self.window.from_ms.div_euclid(BUCKET_MS), self.window.to_ms.div_euclid(BUCKET_MS));
        let senders = look::Senders::of(&app.profiles, &self.table.name);
        let buckets: Vec<(i64, u32)> = (first..end).flat_map(|minute| (0..SHARDS).map(move |s| (minute, s))).collect();
        for chunk in buckets.chunks(SIDE_BY_SIDE) {
            if self.late("what was sent") {
                return Ok(());
            }
            let read = join_all(chunk.iter().map(|(minute, shard)| app.store.receipts_in(*minute, *shard))).await;
            let mut events = Vec::new();
            for bucket in read {
                events.extend(bucket?.into_iter().filter(|event| senders.has(event)));
            }
            for chunk in events.chunks(SIDE_BY_SIDE) {
                let sent = join_all(chunk.iter().map(|event| look::of_event(app, event))).await;
                for (event, sent) in chunk.iter().zip(sent) {
                    Box::pin(self.compare_all(event, sent)).await?;
                }
            }
        }
        Ok(())
    }

    async fn compare_all(&mut self, event: &EventRef, sent: Result<Vec<Sent>, StoreError>) -> Result<(), StoreError> {
        let sent = match sent {
            Ok(sent) => sent,
            Err(StoreError::Corrupt { what }) => {
                self.recorder.unreadable(&keys::event_pk(event), what);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for one in sent.into_iter().filter(|one| one.is_to(&self.table.name)) {
            self.recorder.result.examined += 1;
            self.compare(&one, None).await?;
        }
        Ok(())
    }

    /// Compares one intent with its entries; `before` is what the list said of it when it still reached back so far. False
    /// where a record of it cannot be read.
    async fn compare(&mut self, sent: &Sent, before: Option<&ListedEffect>) -> Result<bool, StoreError> {
        let key = sent.intent.deduplication_id();
        let listed = self.listing.under(&key);
        let listed = if listed.is_empty() { before.map(std::slice::from_ref).unwrap_or_default() } else { listed };
        let whole = self.covers(&sent.intent);
        let found = match findings(self.recorder.app, sent, listed, whole, &self.table.rules).await {
            Ok(found) => found,
            Err(StoreError::Corrupt { what }) => {
                self.recorder.unreadable(&sent.key.to_string(), what);
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.known.insert(key);
        for finding in found {
            match finding.class {
                CaseClass::UnknownThere if !self.surely_absent(sent).await => {}
                CaseClass::SettledThere => {
                    let action = self.settles_by(sent, finding.action).await;
                    self.record(&Finding { action, ..finding }).await?;
                }
                _ => self.record(&finding).await?,
            }
        }
        Ok(true)
    }

    /// A retry that would look up is one only where the look-up surely finds it: a miss would be taken for "not done".
    async fn settles_by(&mut self, sent: &Sent, action: Action) -> Action {
        let now_ms = self.recorder.app.clock.now_ms();
        let looks = matches!(next(&sent.intent, &self.table.rules, now_ms, None), Step::LookUp);
        let Some(lookup) = self.table.rules.lookup.as_ref().filter(|_| looks && action == Action::Retry) else {
            return action;
        };
        match self.look_up(lookup, &sent.intent).await {
            Seen::Settled(_) => Action::Retry,
            _ => Action::AcceptFromAuthority,
        }
    }

    async fn look_up(&mut self, lookup: &LookUp, intent: &Intent) -> Seen {
        self.looks += 1;
        match self.looks {
            n if n > MAX_LOOKS => Seen::Unclear(format!("there were more than {MAX_LOOKS} look-ups to make")),
            _ if self.recorder.app.clock.now_ms() > self.stop_ms => {
                Seen::Unclear("there was no time for it".to_owned())
            }
            _ => self.desk.look_up(lookup, intent).await,
        }
    }

    async fn record(&mut self, finding: &Finding) -> Result<(), StoreError> {
        self.found.insert(finding.case_id());
        self.recorder.record(finding).await
    }

    /// A list may lack what a look-up finds.
    async fn surely_absent(&mut self, sent: &Sent) -> bool {
        let Some(lookup) = &self.table.rules.lookup else { return true };
        let seen = self.look_up(lookup, &sent.intent).await;
        if let Seen::Unclear(why) = &seen {
            let line = format!("{} is not in the list of destination {}: {why}", sent.key.event, self.table.name);
            self.recorder.result.skipped.push(line);
            // What is not known to be gone stays as it was.
            let subject = Subject::Operation(sent.key.clone());
            self.found.insert(Finding::new(CaseClass::UnknownThere, Action::Person, subject, "").case_id());
        }
        seen == Seen::Absent
    }

    /// The entries of intents that are not of the window, found by the event that they name.
    async fn other_entries(&mut self) -> Result<(), StoreError> {
        let entries: Vec<ListedEffect> = self.listing.besides(&self.known);
        let (mut unknown, mut all_read) = (0, true);
        for effect in entries {
            if self.late("entries of older events") {
                return Ok(());
            }
            let Some(event) = effect.event.as_deref().and_then(own_event) else { continue };
            let sent = match look::of_event(self.recorder.app, &event).await {
                Err(StoreError::Corrupt { what }) => {
                    self.recorder.unreadable(&keys::event_pk(&event), what);
                    all_read = false;
                    continue;
                }
                sent => sent?,
            };
            match sent.iter().find(|one| one.intent.deduplication_id() == effect.key) {
                Some(one) if one.is_to(&self.table.name) => {
                    self.compare(one, None).await?;
                }
                Some(_) => {} // another table of the same account, whose list it is compared by
                None if !look::is_responsible(&self.recorder.app.profiles, &self.table.name, &event) => {}
                None if self.recorder.app.clock.now_ms() - effect.created_ms < LIST_GRACE_MS => {}
                None if unknown == MAX_UNKNOWN => {
                    let line = format!(
                        "list of destination {}: more than {MAX_UNKNOWN} entries of events that are not here: it may be \
                         another deployment's account",
                        self.table.name
                    );
                    self.recorder.result.skipped.push(line);
                    return Ok(());
                }
                None => {
                    unknown += 1;
                    self.record(&unknown_here(&self.table.name, &effect)).await?;
                }
            }
        }
        self.all_seen = all_read;
        Ok(())
    }

    /// Whether an intent that the list does not have is surely not there.
    fn covers(&self, intent: &Intent) -> bool {
        self.listing.whole && intent.created_ms >= self.window.from_ms
    }
}

fn own_event(id: &str) -> Option<EventRef> {
    own::event(EventId::try_from(id.to_owned()).ok()?).ok()
}
