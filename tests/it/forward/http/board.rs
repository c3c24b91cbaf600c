//! A destination at the network's edge with idempotency keys as destinations have them, and the faults of real ones.
//!
//! It keeps what really exists there, apart from what it says: that is what the scenarios judge by.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use local::Clock;
use local::clock::ManualClock;
use runtime::call::{Call, CallError, Called, Caller, Reply};
use serde_json::{Value, json};

/// One fault; what is not one is the ordinary answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It does it, and the answer never arrives.
    SavesThenTimesOut,
    /// The request is lost on its way.
    LostBefore,
    /// The request is a minute and a half on its way, and the sender gives up long before.
    ArrivesLate,
    /// It does it, and says 409: in progress.
    InProgress,
    /// It fails with 500 and keeps that answer under the key.
    StoredError,
    /// It does it, fails with 500 and keeps that answer under the key.
    StoredErrorAfterEffect,
    /// It does it, and answers 200 with something that is no JSON.
    Garbage,
    /// A proxy answers 502 before it.
    GarbageBefore,
    /// Too many requests: nothing is done.
    Throttled,
    /// Refuses connections for four hours.
    Down,
    /// The process of the sender dies while it waits: the answer is never read. It did it.
    SavesThenSilence,
}

#[derive(Debug, Default)]
struct Kept {
    first_ms: i64,
    body: Vec<u8>,
    status: u16,
    answer: String,
}

#[derive(Debug, Default)]
struct State {
    scripts: BTreeMap<String, VecDeque<Fault>>,
    down_until: BTreeMap<String, i64>,
    keys: BTreeMap<String, Kept>,
    effects: Vec<(String, String)>,
    /// Requests on their way, and when they arrive.
    late: Vec<(i64, Call)>,
    sent: Vec<Call>,
    looked_up: usize,
}

/// The destination.
#[derive(Debug, Clone)]
pub struct Board {
    state: Arc<Mutex<State>>,
    clock: ManualClock,
    /// How long it knows a key; 0: it keeps none.
    life_ms: i64,
}

fn key_of(call: &Call) -> String {
    let header = |(name, value): &(String, String)| (name == "idempotency-key").then(|| value.clone());
    call.headers.iter().find_map(header).expect("every request bears a key")
}

fn event_of(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    body["event"].as_str().unwrap().to_owned()
}

fn reply(status: u16, body: &str) -> Result<Reply, CallError> {
    Ok(Reply { status, body: Some(body.as_bytes().to_vec()), retry_after_s: None })
}

impl Board {
    pub fn new(clock: ManualClock, life_ms: i64) -> Self {
        Self { state: Arc::default(), clock, life_ms }
    }

    /// What happens to the requests for an event, in this order; afterwards nothing out of the ordinary.
    pub fn script(&self, event: &str, faults: &[Fault]) {
        self.state.lock().unwrap().scripts.insert(event.to_owned(), faults.iter().copied().collect());
    }

    /// How many effects exist for an event.
    pub fn effects(&self, event: &str) -> usize {
        let mut state = self.state.lock().unwrap();
        self.arrive(&mut state);
        state.effects.iter().filter(|(_, of)| of == event).count()
    }

    /// Every request for an event that reached the network, oldest first.
    pub fn sent(&self, event: &str) -> Vec<Call> {
        self.state.lock().unwrap().sent.iter().filter(|call| event_of(&call.body) == event).cloned().collect()
    }

    pub fn looked_up(&self) -> usize {
        self.state.lock().unwrap().looked_up
    }

    /// What never changes between tries, of every request for an event; that all are the same.
    pub fn same(&self, event: &str) -> usize {
        let frozen = |call: &Call| {
            let kept: Vec<_> = call.headers.iter().filter(|(name, _)| !name.starts_with("webhook-")).cloned().collect();
            let kept: Vec<_> = kept.into_iter().filter(|(name, _)| name != "hookledger-attempt").collect();
            (call.method.clone(), call.url.clone(), call.body.clone(), kept)
        };
        let sent = self.sent(event);
        assert!(sent.iter().all(|one| frozen(one) == frozen(&sent[0])), "{event}: not the same request");
        sent.len()
    }

    /// What was on its way arrives: done, unless its key is known by then.
    fn arrive(&self, state: &mut State) {
        let now_ms = self.clock.now_ms();
        let (here, later) = std::mem::take(&mut state.late).into_iter().partition(|(at, _)| *at <= now_ms);
        state.late = later;
        for (at, call) in here {
            let key = key_of(&call);
            if state.keys.get(&key).is_none_or(|kept| at - kept.first_ms >= self.life_ms) {
                self.execute(state, call, at, false);
            }
        }
    }

    /// Does it, unless it errs before, and keeps the answer under the key.
    fn execute(&self, state: &mut State, call: Call, at_ms: i64, errs_before: bool) -> (u16, String) {
        let key = key_of(&call);
        let id = state.effects.len();
        if errs_before {
            state.keys.insert(key, Kept { first_ms: at_ms, body: call.body, status: 500, answer: "{}".to_owned() });
            return (500, "{}".to_owned());
        }
        state.effects.push((key.clone(), event_of(&call.body)));
        let answer = json!({"id": format!("job-{id}")}).to_string();
        state.keys.insert(key, Kept { first_ms: at_ms, body: call.body, status: 200, answer: answer.clone() });
        (200, answer)
    }

    fn look(&self, url: &str) -> Result<Reply, CallError> {
        let mut state = self.state.lock().unwrap();
        self.arrive(&mut state);
        state.looked_up += 1;
        let key = url.rsplit_once("ref=").unwrap().1;
        let found = state.effects.iter().position(|(of, _)| of == key);
        let entry = |at: usize| json!([{"id": format!("job-{at}"), "reference": key}]);
        reply(200, &json!({ "data": found.map_or(json!([]), entry) }).to_string())
    }

    fn post(&self, call: Call) -> Result<Reply, CallError> {
        let mut state = self.state.lock().unwrap();
        self.arrive(&mut state);
        let (key, event, now_ms) = (key_of(&call), event_of(&call.body), self.clock.now_ms());
        if state.down_until.get(&event).is_some_and(|until| now_ms < *until) {
            return Err(CallError::NotSent("no connection"));
        }
        let fault = state.scripts.get_mut(&event).and_then(VecDeque::pop_front);
        if fault == Some(Fault::Down) {
            state.down_until.insert(event, now_ms + 4 * 3_600_000);
            return Err(CallError::NotSent("no connection"));
        }
        state.sent.push(call.clone());
        match fault {
            Some(Fault::LostBefore) => return Err(CallError::Lost("no answer in time")),
            Some(Fault::ArrivesLate) => {
                state.late.push((now_ms + 90_000, call));
                return Err(CallError::Lost("no answer in time"));
            }
            Some(Fault::GarbageBefore) => return reply(502, "<html>answer-canary"),
            Some(Fault::Throttled) => return reply(429, ""),
            _ => {}
        }
        let known = state.keys.get(&key).filter(|kept| now_ms - kept.first_ms < self.life_ms);
        let (status, answer) = match known {
            Some(kept) if kept.body != call.body => (422, String::new()),
            Some(kept) => (kept.status, kept.answer.clone()),
            None => {
                let done = self.execute(&mut state, call, now_ms, fault == Some(Fault::StoredError));
                if fault == Some(Fault::StoredErrorAfterEffect) {
                    let kept = state.keys.get_mut(&key).unwrap();
                    (kept.status, kept.answer) = (500, "{}".to_owned());
                    (500, "{}".to_owned())
                } else {
                    done
                }
            }
        };
        match fault {
            Some(Fault::SavesThenTimesOut | Fault::SavesThenSilence) => Err(CallError::Lost("no answer in time")),
            Some(Fault::InProgress) => reply(409, "{}"),
            Some(Fault::Garbage) => reply(200, "<html>answer-canary"),
            _ => reply(status, &answer),
        }
    }
}

impl Caller for Board {
    fn call(&self, call: Call) -> Called<'_> {
        Box::pin(async move {
            if call.method == "GET" {
                return self.look(&call.url);
            }
            let event = event_of(&call.body);
            let silent = {
                let state = self.state.lock().unwrap();
                state.scripts.get(&event).and_then(VecDeque::front) == Some(&Fault::SavesThenSilence)
            };
            let answer = self.post(call);
            if silent {
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}
