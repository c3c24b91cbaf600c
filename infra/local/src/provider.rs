//! A provider simulator: it sends as real ones do, at least once, and can be asked to send again.
//!
//! An event keeps its id for good; each delivery carries its attempt number, and the body its time of
//! first sending. Failed deliveries wait, capped, with full jitter, until the retry window is over. In one
//! subscription an event waits for the one before it. The event store is a file of JSON lines, so that
//! `dev --data` keeps it, and any event can be replayed by id or by time.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use domain::limits::RetryPolicy;
use runtime::gateway::GatewayEvent;
use runtime::random::Random;
use serde::{Deserialize, Serialize};
use signature::{Headers, Request, Verifier};

/// How long a delivery is tried, in milliseconds: 3 days.
pub const RETRY_WINDOW_MS: i64 = 72 * 3_600_000;
/// Largest event in bytes; the receiver takes no larger one.
pub const MAX_EVENT_BYTES: usize = domain::limits::MAX_BODY_BYTES;
/// Waits between deliveries: 5 s doubling to 15 min, the wait itself anywhere below.
const BACKOFF: RetryPolicy =
    RetryPolicy { base_ms: 5_000, cap_ms: 900_000, max_attempts: u32::MAX, max_age_ms: i64::MAX, resend_ms: 0 };

/// The status that a delivery is answered with, some time.
pub type Answer = Pin<Box<dyn Future<Output = u16> + Send>>;

/// Where a sent event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Waits for its next attempt, or for the event before it.
    Pending,
    /// Answered with 2xx.
    Delivered,
    /// The retry window is over.
    GivenUp,
}

/// One event of the provider's own store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentEvent {
    /// Stable over all deliveries.
    pub id: String,
    /// The endpoint's slug: one subscription, in whose order events are delivered.
    pub subscription: String,
    /// The exact body.
    pub body: String,
    /// When it was first offered, Unix milliseconds.
    pub first_sent_ms: i64,
    /// From when the retry window counts; a replay begins a new one.
    pub window_from_ms: i64,
    /// Deliveries so far.
    pub attempts: u32,
    /// When the next one is due, Unix milliseconds.
    pub due_ms: i64,
    /// Where it stands.
    pub delivery: Delivery,
    /// The last answer's status; 0 before the first.
    pub last_status: u16,
}

/// The simulator: a store of events, and a signer for each subscription.
#[derive(Debug)]
pub struct ProviderSimulator {
    signers: BTreeMap<String, Verifier>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// In the order of their first sending.
    events: Vec<SentEvent>,
    file: Option<File>,
}

impl Inner {
    /// Keeps the event's new state: the last line of an id is what holds.
    fn keep(&mut self, place: usize) -> io::Result<()> {
        let (Some(file), Some(event)) = (&mut self.file, self.events.get(place)) else { return Ok(()) };
        let line = serde_json::to_string(event).map_err(io::Error::other)?;
        writeln!(file, "{line}")
    }
}

impl ProviderSimulator {
    /// A simulator in memory, or kept in a file of JSON lines.
    ///
    /// # Errors
    /// When the file cannot be read or holds something else; a last line cut off by a crash is passed.
    pub fn open(signers: BTreeMap<String, Verifier>, file: Option<&Path>) -> io::Result<Self> {
        let mut inner = Inner::default();
        if let Some(path) = file {
            let kept = File::open(path).map(|f| BufReader::new(f).lines().collect::<Result<Vec<_>, _>>());
            for line in kept.unwrap_or_else(|_| Ok(Vec::new()))? {
                let Ok(event) = serde_json::from_str::<SentEvent>(&line) else { continue };
                match inner.events.iter_mut().find(|e| e.id == event.id && e.subscription == event.subscription) {
                    Some(stands) => *stands = event,
                    None => inner.events.push(event),
                }
            }
            inner.file = Some(OpenOptions::new().create(true).append(true).open(path)?);
        }
        Ok(Self { signers, inner: Mutex::new(inner) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event to be sent. The same id again is the same event: its body stays.
    ///
    /// # Errors
    /// A sentence for the caller: no such subscription, or too large.
    pub fn emit(&self, subscription: &str, id: &str, body: &str, now_ms: i64) -> Result<SentEvent, String> {
        if !self.signers.contains_key(subscription) {
            let known: Vec<&String> = self.signers.keys().collect();
            return Err(format!("{subscription:?} is no subscription with a secret; there are {known:?}"));
        }
        if body.len() > MAX_EVENT_BYTES {
            return Err(format!("the event has {} bytes; at most {MAX_EVENT_BYTES} are sent", body.len()));
        }
        let mut inner = self.lock();
        if let Some(event) = inner.events.iter().find(|e| e.id == id && e.subscription == subscription) {
            return Ok(event.clone());
        }
        let event = SentEvent {
            id: id.to_owned(),
            subscription: subscription.to_owned(),
            body: body.to_owned(),
            first_sent_ms: now_ms,
            window_from_ms: now_ms,
            attempts: 0,
            due_ms: now_ms,
            delivery: Delivery::Pending,
            last_status: 0,
        };
        inner.events.push(event.clone());
        let place = inner.events.len() - 1;
        inner.keep(place).map_err(|error| format!("the event store cannot be written: {error}"))?;
        Ok(event)
    }

    /// Every event, in the order of first sending.
    pub fn events(&self) -> Vec<SentEvent> {
        self.lock().events.clone()
    }

    /// Sends again, under the same ids, what `wanted` picks; how many there are.
    ///
    /// # Errors
    /// When the event store cannot be written.
    pub fn replay(&self, now_ms: i64, wanted: impl Fn(&SentEvent) -> bool) -> io::Result<usize> {
        let mut inner = self.lock();
        let places: Vec<usize> = (0..inner.events.len()).filter(|place| wanted(&inner.events[*place])).collect();
        for place in &places {
            let event = &mut inner.events[*place];
            event.delivery = Delivery::Pending;
            (event.due_ms, event.window_from_ms) = (now_ms, now_ms);
            inner.keep(*place)?;
        }
        Ok(places.len())
    }

    /// The deliveries that are due: the first pending event of each subscription, if its time has come.
    fn due(&self, now_ms: i64) -> Vec<SentEvent> {
        let inner = self.lock();
        let first = |subscription: &String| {
            let mut pending = inner.events.iter().filter(|e| e.delivery == Delivery::Pending);
            pending.find(|e| e.subscription == *subscription).filter(|e| e.due_ms <= now_ms).cloned()
        };
        self.signers.keys().filter_map(first).collect()
    }

    /// The request of one delivery, signed now. `None` when the scheme cannot sign.
    fn request(&self, event: &SentEvent, now_ms: i64) -> Option<GatewayEvent> {
        let headers = Headers::default();
        let unsigned = Request { method: "POST", url: None, headers: &headers, body: event.body.as_bytes() };
        let signed = self.signers.get(&event.subscription)?.sign(&event.id, now_ms, &unsigned).ok()?;
        let mut request = GatewayEvent {
            raw_path: format!("/webhooks/{}", event.subscription),
            body: Some(event.body.clone()),
            ..GatewayEvent::default()
        };
        request.headers = signed.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        request.headers.insert("webhook-attempt".to_owned(), (event.attempts + 1).to_string());
        request.request_context.http.method = "POST".to_owned();
        request.request_context.time_epoch = now_ms;
        Some(request)
    }

    /// Delivers what is due, one event of each subscription; how many deliveries were made.
    ///
    /// # Errors
    /// When the event store cannot be written.
    pub async fn step<F>(&self, now_ms: i64, random: &dyn Random, deliver: F) -> io::Result<usize>
    where
        F: Fn(GatewayEvent) -> Answer,
    {
        let due = self.due(now_ms);
        for event in &due {
            let status = match self.request(event, now_ms) {
                Some(request) => deliver(request).await,
                None => 0,
            };
            self.answered(event, status, now_ms, random.next_u64())?;
        }
        Ok(due.len())
    }

    fn answered(&self, event: &SentEvent, status: u16, now_ms: i64, random: u64) -> io::Result<()> {
        let mut inner = self.lock();
        let same = |e: &SentEvent| e.id == event.id && e.subscription == event.subscription;
        let Some(place) = inner.events.iter().position(same) else { return Ok(()) };
        let stands = &mut inner.events[place];
        stands.attempts += 1;
        stands.last_status = status;
        stands.due_ms = now_ms + BACKOFF.backoff_ms(stands.attempts, random);
        stands.delivery = match status {
            200..=299 => Delivery::Delivered,
            _ if stands.due_ms - stands.window_from_ms > RETRY_WINDOW_MS => Delivery::GivenUp,
            _ => Delivery::Pending,
        };
        inner.keep(place)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::world::ACME_SECRET;
    use runtime::random::SharedRandom;
    use signature::{Recipe, Secret};
    use std::sync::Mutex;

    fn signers() -> BTreeMap<String, Verifier> {
        let signer = || Verifier::new(Recipe::named("standard-webhooks").unwrap(), vec![Secret::new("s", ACME_SECRET)]);
        BTreeMap::from([("acme".to_owned(), signer().unwrap()), ("beta".to_owned(), signer().unwrap())])
    }

    /// Steps once at `now_ms`, answering `status`; what was delivered, as `subscription/id#attempt`.
    async fn step(simulator: &ProviderSimulator, now_ms: i64, status: u16) -> Vec<String> {
        let seen = Mutex::new(Vec::new());
        let random = SharedRandom::seeded(7);
        let deliver = |request: GatewayEvent| -> Answer {
            let (id, attempt) = (&request.headers["webhook-id"], &request.headers["webhook-attempt"]);
            let slug = request.raw_path.trim_start_matches("/webhooks/");
            seen.lock().unwrap().push(format!("{slug}/{id}#{attempt}"));
            Box::pin(std::future::ready(status))
        };
        simulator.step(now_ms, &random, deliver).await.unwrap();
        seen.into_inner().unwrap()
    }

    #[tokio::test]
    async fn failed_deliveries_are_repeated_under_the_same_id_and_keep_their_subscriptions_order() {
        let simulator = ProviderSimulator::open(signers(), None).unwrap();
        for (subscription, id) in [("acme", "a1"), ("acme", "a2"), ("beta", "b1")] {
            simulator.emit(subscription, id, "{}", 0).unwrap();
        }
        assert_eq!(step(&simulator, 0, 503).await, ["acme/a1#1", "beta/b1#1"], "a2 waits for a1");
        assert_eq!(step(&simulator, 0, 200).await, [""; 0], "nothing is due yet");
        assert_eq!(step(&simulator, 900_000, 202).await, ["acme/a1#2", "beta/b1#2"]);
        assert_eq!(step(&simulator, 900_000, 200).await, ["acme/a2#1"]);
        assert!(simulator.events().iter().all(|e| e.delivery == Delivery::Delivered));
        assert_eq!(simulator.replay(1_000_000, |e| e.id == "a1").unwrap(), 1);
        assert_eq!(step(&simulator, 1_000_000, 200).await, ["acme/a1#3"]);
    }

    #[tokio::test]
    async fn the_retry_window_ends_and_the_store_outlives_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("provider.jsonl");
        let simulator = ProviderSimulator::open(signers(), Some(&path)).unwrap();
        simulator.emit("acme", "a1", "{\"n\":1}", 0).unwrap();
        assert_eq!(step(&simulator, 0, 500).await, ["acme/a1#1"]);
        drop(simulator);
        let simulator = ProviderSimulator::open(signers(), Some(&path)).unwrap();
        assert_eq!(
            simulator.emit("acme", "a1", "other", 5).unwrap().body,
            "{\"n\":1}",
            "the same id is the same event"
        );
        assert_eq!(step(&simulator, RETRY_WINDOW_MS, 500).await, ["acme/a1#2"]);
        assert_eq!(simulator.events()[0].delivery, Delivery::GivenUp);
        assert!(simulator.emit("nobody", "x", "{}", 0).is_err());
    }
}
