//! Stripe's lists of payments and refunds, in front of the Stripe of the postpaid tests: newest first, by pages, with what a
//! test says of an entry over it (docs.stripe.com/api/payment_intents/list). It shares no code with what reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use local::Clock;
use local::clock::ManualClock;
use runtime::call::{Call, CallError, Called, Caller, Reply};
use serde_json::{Value, json};

use crate::postpaid::stripe::{Edge, Stripe};

/// How lists are answered.
#[derive(Debug, Clone, Default)]
pub enum Mood {
    #[default]
    Well,
    /// No connection.
    Down,
    /// This status and body.
    Says(u16, String),
}

#[derive(Debug)]
struct State {
    /// When each was made, Unix seconds.
    created: BTreeMap<String, i64>,
    changes: BTreeMap<String, Value>,
    /// Not in the list; those of `lost` are not found by a search either.
    unlisted: BTreeSet<String>,
    lost: BTreeSet<String>,
    extra: Vec<Value>,
    page: usize,
    mood: Mood,
    asked: Vec<String>,
}

#[derive(Debug)]
pub struct Desk {
    pub stripe: Arc<Stripe>,
    pub clock: OnceLock<ManualClock>,
    state: Mutex<State>,
}

impl Desk {
    pub fn new() -> Arc<Self> {
        let (created, changes, extra, asked) = (BTreeMap::new(), BTreeMap::new(), Vec::new(), Vec::new());
        let (unlisted, lost, page, mood) = (BTreeSet::new(), BTreeSet::new(), 100, Mood::Well);
        let state = State { created, changes, unlisted, lost, extra, page, mood, asked };
        Arc::new(Self { stripe: Arc::default(), clock: OnceLock::new(), state: Mutex::new(state) })
    }

    fn now_s(&self) -> i64 {
        self.clock.get().unwrap().now_ms() / 1_000
    }

    /// The list says this of an entry, over what is so.
    pub fn says(&self, id: &str, change: Value) {
        self.state.lock().unwrap().changes.insert(id.to_owned(), change);
    }

    /// An entry that nobody here asked for, made now.
    pub fn adds(&self, entry: Value) {
        let mut whole = json!({"created": self.now_s()});
        whole.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        self.state.lock().unwrap().extra.push(whole);
    }

    /// The list lacks it, and with `lost` a search does too.
    pub fn hides(&self, id: &str, lost: bool) {
        let mut state = self.state.lock().unwrap();
        state.unlisted.insert(id.to_owned());
        if lost {
            state.lost.insert(id.to_owned());
        }
    }

    /// A search does not find it, though the list has it.
    pub fn misses(&self, id: &str) {
        self.state.lock().unwrap().lost.insert(id.to_owned());
    }

    pub fn shows_again(&self) {
        let mut state = self.state.lock().unwrap();
        (state.unlisted, state.lost) = (BTreeSet::new(), BTreeSet::new());
    }

    pub fn pages_of(&self, entries: usize) {
        self.state.lock().unwrap().page = entries;
    }

    pub fn is(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    /// Paths and queries of the lists that were asked for.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().asked)
    }

    fn list(&self, path: &str, query: &str) -> Result<Reply, CallError> {
        let mut state = self.state.lock().unwrap();
        state.asked.push(format!("{path}?{query}"));
        match &state.mood {
            Mood::Well => {}
            Mood::Down => return Err(CallError::NotSent("no connection")),
            Mood::Says(status, body) => {
                return Ok(Reply { status: *status, body: Some(body.clone().into_bytes()), retry_after_s: None });
            }
        }
        let param = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let since: i64 = param("created%5Bgte%5D").unwrap().parse().unwrap();
        let mut all: Vec<Value> = self.stripe.kept().iter().filter(|kept| kept.path == path).map(|kept| {
            let minor: i64 = kept.field("amount").parse().unwrap();
            let currency = if path == "/v1/refunds" { "usd" } else { kept.field("currency") };
            let mut entry = json!({
                "id": kept.id, "status": "succeeded", "amount": minor, "amount_received": minor, "currency": currency,
                "created": state.created[&kept.id], "metadata": kept.metadata(),
                "latest_charge": {"amount_refunded": 0, "refunds": {"data": []}},
            });
            let change = state.changes.get(&kept.id).and_then(Value::as_object).cloned().unwrap_or_default();
            entry.as_object_mut().unwrap().extend(change);
            entry
        }).collect();
        all.extend(state.extra.iter().filter(|_| path == "/v1/payment_intents").cloned());
        all.retain(|entry| entry["created"].as_i64().unwrap() >= since);
        all.retain(|entry| !state.unlisted.contains(entry["id"].as_str().unwrap()));
        all.reverse(); // they were made one after the other
        let after = param("starting_after").map(|id| all.iter().position(|entry| entry["id"] == id).unwrap() + 1);
        let rest = all.split_off(after.unwrap_or(0));
        let (page, more) = (rest.iter().take(state.page).collect::<Vec<_>>(), rest.len() > state.page);
        let body = json!({"object": "list", "data": page, "has_more": more});
        Ok(Reply { status: 200, body: Some(body.to_string().into_bytes()), retry_after_s: None })
    }

    fn search_finds(&self, call: &Call) -> bool {
        let state = self.state.lock().unwrap();
        let kept = self.stripe.kept();
        !kept.iter().any(|kept| state.lost.contains(&kept.id) && call.url.contains(kept.field("metadata[key]")))
    }
}

/// Hands calls on to the one that tests look at.
#[derive(Debug, Clone)]
pub struct At(pub Arc<Desk>);

impl Caller for At {
    fn call(&self, call: Call) -> Called<'_> {
        Box::pin(async move {
            let path = call.url.strip_prefix("https://stripe.example").unwrap().to_owned();
            if call.method == "GET" {
                let secret = call.headers.iter().any(|(_, value)| value == "Bearer sk_of_the_tests");
                assert!(secret && call.headers.iter().any(|(name, _)| name == "stripe-version"), "{call:?}");
            }
            if let ("GET", Some((path @ ("/v1/payment_intents" | "/v1/refunds"), query))) =
                (call.method.as_str(), path.split_once('?'))
            {
                return self.0.list(path, query);
            }
            if call.method == "GET" && !self.0.search_finds(&call) {
                return Ok(Reply { status: 200, body: Some(br#"{"data":[]}"#.to_vec()), retry_after_s: None });
            }
            let answer = Edge(self.0.stripe.clone()).call(call).await;
            let now_s = self.0.now_s();
            let mut state = self.0.state.lock().unwrap();
            for kept in self.0.stripe.kept() {
                state.created.entry(kept.id).or_insert(now_s);
            }
            answer
        })
    }
}
