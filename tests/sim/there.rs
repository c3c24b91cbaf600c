//! A destination outside of everything, over HTTP, with the faults of real ones: it saves and then times out, says 409 while
//! it works, stores an error under the key and repeats it, forgets keys, answers garbage, is away for a day.
//!
//! What really exists there is kept apart from what it says: by that it is judged. `board` knows a key again for a set time;
//! `desk` knows none and can be asked; `till` is a payment provider that knows keys as `board` does. Its faults come from the
//! same plan as those of AWS's calls, by the same names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtime::call::{Call, CallError, Called, Caller, Reply};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::faults::Kind;
use crate::net::{INVOCATION, Invocation, Net};
use crate::till::{Made, field, minor, step, text_of};
use crate::trace::unordered_hash;

/// Every destination outside.
pub const NAMES: [&str; 3] = ["board", "desk", "till"];
/// How long `board` and `till` really know a key. Its profile promises an hour of which 59 minutes are margin, so that a sender
/// relies on one minute; a request may be on its way for as long again.
const LIFE_MS: u64 = 120_000;
/// How long it is away.
const AWAY_MS: u64 = 86_400_000;

/// What a sender may rely on.
pub const KEEPS_KEYS: &str = "key_life_hours = 1\nkey_margin_minutes = 59\nreplays_errors = true\n";

/// The sender's table for `board` or `desk`.
pub fn table(name: &str) -> String {
    let keys = if name == "board" { KEEPS_KEYS } else { "" };
    format!("{}{}", destination(name, "/v1/jobs", keys), lookup("/v1/jobs"))
}

/// A destination's table.
pub fn destination(name: &str, path: &str, more: &str) -> String {
    format!(
        "\n[destinations.{name}]\nurl = \"env:THERE_URL\"\npath = \"{path}\"\nid = \"/id\"\n\
         retryable = [\"401\", \"403\", \"429\", \"503\"]\n{more}"
    )
}

/// How it is asked for what it did.
pub fn lookup(path: &str) -> String {
    format!(
        "lookup = {{ path = \"{path}?ref={{key}}\", found = \"/data/0\", reference = \"/data/0/reference\", \
         id = \"/data/0/id\", settles_after_s = 60 }}\n"
    )
}

/// What is kept under a key.
#[derive(Debug)]
enum Answer {
    Busy,
    Done(String),
    Error,
    Declined,
}

#[derive(Debug)]
struct Kept {
    since_ms: u64,
    body: Vec<u8>,
    answer: Answer,
}

/// How a request is worked on when it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Plain,
    /// It is done after so many ms, and said to be in progress until then.
    Slow(u64),
    /// It fails, and the error is kept.
    ErrsBefore,
    /// It is done, fails then, and the error is kept.
    ErrsAfter,
    /// It is declined, and that is kept.
    Declines,
}

#[derive(Debug, Default)]
struct State {
    keys: BTreeMap<String, Kept>,
    /// What exists, by key.
    effects: BTreeMap<String, Vec<String>>,
    /// The same in the order in which it came to be: keys and ids.
    made: Vec<(String, String)>,
    /// The first request of each key: method, URL, body, headers.
    first: BTreeMap<String, Call>,
    /// The key under which each event was told.
    told: BTreeMap<String, String>,
    away_until_ms: u64,
}

impl State {
    /// The request that made a payment or refund.
    fn request(&self, id: &str) -> Option<&Call> {
        let made = self.made.iter().find(|(_, made)| made == id);
        made.and_then(|(key, _)| self.first.get(key))
    }

    /// Every request behind what exists, with its id.
    fn requests(&self) -> impl Iterator<Item = (&str, &Call)> {
        self.made.iter().filter_map(|(key, id)| Some((id.as_str(), self.first.get(key)?)))
    }

    /// What speaks against a step of a payment: it does not exist, it was ended before, or less is there.
    fn wrong(&self, call: &Call) -> Option<String> {
        let form = text_of(call);
        if let Some((payment, _)) = step(&call.url) {
            let ended = self.requests().filter(|(id, _)| *id == payment).find_map(|(_, other)| step(&other.url));
            if let Some((_, before)) = ended {
                return Some(format!("there: {payment} is ended a second time, after its {before}"));
            }
            let held = self.request(payment).filter(|call| field(&text_of(call), "capture_method").is_some());
            let (held, taken) = (held.map(|call| minor(&text_of(call), "amount")), minor(&form, "amount_to_capture"));
            return (held.is_none_or(|held| taken > held))
                .then(|| format!("there: {taken} of {payment}, which holds {held:?}"));
        }
        let payment = field(&form, "payment_intent")?;
        let paid: i64 = self.requests().filter(|(id, _)| *id == payment).map(|(_, call)| taken(call)).sum();
        let of = |call: &Call| field(&text_of(call), "payment_intent").is_some_and(|of| of == payment);
        let back: i64 =
            self.requests().filter(|(_, call)| of(call)).map(|(_, call)| minor(&text_of(call), "amount")).sum();
        let all = back + minor(&form, "amount");
        (all > paid).then(|| format!("there: {all} refunded of {payment}, which took {paid}"))
    }
}

/// What a request takes from the customer.
fn taken(call: &Call) -> i64 {
    let form = text_of(call);
    match field(&form, "capture_method") {
        Some(_) => 0,
        None => minor(&form, "amount") + minor(&form, "amount_to_capture"),
    }
}

/// The destination. Clones share it.
#[derive(Debug, Clone)]
pub struct There {
    state: Arc<Mutex<State>>,
    net: Net,
    name: &'static str,
}

fn reply(status: u16, body: &Value) -> Result<Reply, CallError> {
    Ok(Reply { status, body: Some(body.to_string().into_bytes()), retry_after_s: None })
}

fn key_of(call: &Call) -> String {
    let key = call.headers.iter().find(|(name, _)| name == "idempotency-key");
    key.map(|(_, value)| value.clone()).unwrap_or_default()
}

impl There {
    /// A destination called `name`, in which nothing exists yet.
    pub fn new(net: Net, name: &'static str) -> Self {
        Self { state: Arc::default(), net, name }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of what exists under a key.
    pub fn id(&self, key: &str) -> Option<String> {
        self.lock().effects.get(key).and_then(|ids| ids.first().cloned())
    }

    /// How many effects exist under a key.
    pub fn effects(&self, key: &str) -> usize {
        self.lock().effects.get(key).map_or(0, Vec::len)
    }

    /// What was paid and refunded, in the order in which it was.
    pub fn made(&self) -> Vec<Made> {
        let state = self.lock();
        let wallet = |call: &Call| field(&text_of(call), "metadata[wallet]").unwrap_or_default();
        let made = |(key, id): &(String, String)| {
            let call = state.first.get(key)?;
            let (form, id) = (text_of(call), id.clone());
            match step(&call.url) {
                Some((_, "cancel")) => None,
                Some(_) => {
                    let (minor, wallet) = (minor(&form, "amount_to_capture"), state.request(&id).map(wallet)?);
                    Some(Made { id, minor, wallet, of: None })
                }
                None if field(&form, "capture_method").is_some() => None, // only authorised
                None => Some(Made {
                    id,
                    minor: minor(&form, "amount"),
                    wallet: wallet(call),
                    of: field(&form, "payment_intent"),
                }),
            }
        };
        state.made.iter().filter_map(made).collect()
    }

    /// Every key that was ever sent.
    pub fn keys(&self) -> Vec<String> {
        self.lock().first.keys().cloned().collect()
    }

    /// What leaves: one key for an event for ever, the identical request for a key.
    fn judge(&self, call: &Call) {
        let (key, mut state) = (key_of(call), self.lock());
        let body = text_of(call);
        let json: Value = serde_json::from_str(&body).unwrap_or_default();
        let event = json["id"].as_str().map(str::to_owned).or_else(|| field(&body, "metadata[charge]"));
        let event = event.unwrap_or_else(|| call.url.clone()); // a capture or cancellation, of which a payment has one
        let before = state.told.entry(event.clone()).or_insert_with(|| key.clone()).clone();
        let same = state.first.entry(key.clone()).or_insert_with(|| call.clone()) == call;
        drop(state);
        if key.is_empty() || before != key {
            self.net.violation(format!("there: {event} was sent under two keys, {before} and {key}"));
        }
        if !same {
            self.net.violation(format!("there: {event} was sent as two different requests under one key"));
        }
    }

    /// It is done now.
    fn execute(&self, state: &mut State, key: &str) -> String {
        let call = state.first.get(key);
        if let Some(wrong) = call.and_then(|call| state.wrong(call)) {
            self.net.violation(wrong);
        }
        let of_payment = call.and_then(|call| step(&call.url)).map(|(payment, _)| payment.to_owned());
        let id = of_payment.unwrap_or_else(|| format!("there-{}", state.made.len()));
        state.made.push((key.to_owned(), id.clone()));
        let all = state.effects.entry(key.to_owned()).or_default();
        all.push(id.clone());
        self.net.tell(|| format!("  {}: {id} exists under {:.8}", self.name, key));
        if all.len() > 1 {
            self.net.violation(format!("there: {} effects exist under one key", all.len()));
        }
        id
    }

    /// A request arrives.
    fn arrive(&self, call: &Call, manner: Manner) -> Result<Reply, CallError> {
        let (key, now_ms, mut state) = (key_of(call), self.net.elapsed_ms(), self.lock());
        let known = state.keys.get(&key).filter(|kept| self.name != "desk" && now_ms - kept.since_ms < LIFE_MS);
        match known {
            Some(kept) if kept.body != call.body => return reply(422, &json!({})),
            Some(Kept { answer: Answer::Busy, .. }) => return reply(409, &json!({})),
            Some(Kept { answer: Answer::Error, .. }) => return reply(500, &json!({})),
            Some(Kept { answer: Answer::Declined, .. }) => return reply(402, &json!({})),
            Some(Kept { answer: Answer::Done(id), .. }) => return reply(200, &json!({"id": id})),
            None => {}
        }
        let (answer, said) = match manner {
            Manner::Slow(for_ms) => {
                let (there, key) = (self.clone(), key.clone());
                tokio::spawn(async move {
                    sleep(Duration::from_millis(for_ms)).await;
                    let mut state = there.lock();
                    let id = there.execute(&mut state, &key);
                    if let Some(kept) = state.keys.get_mut(&key) {
                        kept.answer = Answer::Done(id);
                    }
                });
                (Answer::Busy, reply(409, &json!({})))
            }
            Manner::ErrsBefore => (Answer::Error, reply(500, &json!({}))),
            Manner::Declines => (Answer::Declined, reply(402, &json!({}))),
            Manner::ErrsAfter => {
                self.execute(&mut state, &key);
                (Answer::Error, reply(500, &json!({})))
            }
            Manner::Plain => {
                let id = self.execute(&mut state, &key);
                let said = reply(200, &json!({"id": id}));
                (Answer::Done(id), said)
            }
        };
        state.keys.insert(key, Kept { since_ms: now_ms, body: call.body.clone(), answer });
        said
    }

    /// Somebody asks whether something exists.
    fn look(&self, call: &Call) -> Result<Reply, CallError> {
        let key = call.url.rsplit_once("ref=").map_or("", |(_, key)| key);
        let state = self.lock();
        let found = state.effects.get(key).and_then(|all| all.first());
        let data: Vec<Value> = found.map(|id| json!({"id": id, "reference": key})).into_iter().collect();
        reply(200, &json!({ "data": data }))
    }
}

impl Caller for There {
    fn call(&self, call: Call) -> Called<'_> {
        let Ok(invocation) = INVOCATION.try_with(Clone::clone) else {
            return Box::pin(async { Err(CallError::NotSent("no function is running")) });
        };
        let site = format!("outbound {} {}", call.method, self.name);
        let (number, fault) = self.net.decide(&site);
        self.net.lock().trace.mix(unordered_hash(&call.body));
        if call.method != "GET" {
            self.judge(&call);
        }
        let way = Way { there: self.clone(), site, number };
        Box::pin(async move {
            let timeout = call.timeout;
            let answer = tokio::time::timeout(timeout, way.carry(call, fault, &invocation)).await;
            let answer = answer.unwrap_or(Err(CallError::Lost("no answer in time")));
            way.there.net.tell(|| {
                let told = match &answer {
                    Ok(reply) => reply.status.to_string(),
                    Err(error) => error.to_string(),
                };
                let met = fault.map(|kind| format!(" [{kind}]")).unwrap_or_default();
                format!("  {} {}:{number}{met} -> {told}", invocation.name, way.site)
            });
            answer
        })
    }
}

/// One request on its way.
struct Way {
    there: There,
    site: String,
    number: u32,
}

impl Way {
    async fn carry(&self, call: Call, fault: Option<Kind>, invocation: &Invocation) -> Result<Reply, CallError> {
        let away = !self.there.net.is_healed() && self.there.net.elapsed_ms() < self.there.lock().away_until_ms;
        if away {
            return Err(CallError::NotSent("no connection"));
        }
        let Some(kind) = fault else { return self.sent(call, Manner::Plain).await };
        match kind {
            Kind::Refused => Err(CallError::NotSent("no connection")),
            Kind::Down => {
                self.there.lock().away_until_ms = self.there.net.elapsed_ms() + AWAY_MS;
                Err(CallError::NotSent("no connection"))
            }
            Kind::Reset => Err(CallError::Lost("the connection broke")),
            Kind::Throttled => self.instead(429, "{}").await,
            Kind::Internal => self.instead(503, "{}").await,
            Kind::InternalApplied | Kind::Garbage => {
                let _ = self.sent(call, Manner::Plain).await;
                self.instead(if kind == Kind::Garbage { 200 } else { 502 }, "<html>").await
            }
            Kind::LostReply => {
                let _ = self.sent(call, Manner::Plain).await;
                Err(CallError::Lost("the connection broke"))
            }
            Kind::AppliedLate => {
                self.send(call, 2_600 + self.dice(5) % 12_000, Manner::Plain);
                std::future::pending().await
            }
            Kind::Twice => {
                self.send(call.clone(), self.dice(6) % 8_000, Manner::Plain);
                self.sent(call, Manner::Plain).await
            }
            Kind::InProgress => self.sent(call, Manner::Slow(1_000 + self.dice(9) % 11_000)).await,
            Kind::StoredError => {
                let manner = if self.dice(10).is_multiple_of(2) { Manner::ErrsBefore } else { Manner::ErrsAfter };
                self.sent(call, manner).await
            }
            Kind::Declined => self.sent(call, Manner::Declines).await,
            Kind::KilledBefore => self.killed(invocation).await,
            Kind::KilledInFlight => {
                self.send(call, 0, Manner::Plain);
                self.killed(invocation).await
            }
            Kind::KilledAfter => {
                let _ = self.sent(call, Manner::Plain).await;
                self.killed(invocation).await
            }
            Kind::Silence | Kind::Conflict | Kind::StaleIndex => std::future::pending().await,
        }
    }

    fn dice(&self, purpose: u64) -> u64 {
        self.there.net.dice(&self.site, self.number, purpose)
    }

    async fn killed(&self, invocation: &Invocation) -> Result<Reply, CallError> {
        self.there.net.tell(|| format!("  {} {}:{} the sandbox dies", invocation.name, self.site, self.number));
        invocation.kill();
        std::future::pending().await
    }

    async fn way(&self) {
        sleep(Duration::from_millis(self.there.net.way_ms(&self.site, self.number, 4))).await;
    }

    async fn instead(&self, status: u16, body: &str) -> Result<Reply, CallError> {
        self.way().await;
        Ok(Reply { status, body: Some(body.as_bytes().to_vec()), retry_after_s: None })
    }

    /// Puts a request on the wire: from here on it arrives, whatever becomes of the caller.
    fn send(&self, call: Call, late_ms: u64, manner: Manner) -> tokio::task::JoinHandle<Result<Reply, CallError>> {
        let way_ms = self.there.net.way_ms(&self.site, self.number, 3) + late_ms;
        let there = self.there.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(way_ms)).await;
            if call.method == "GET" { there.look(&call) } else { there.arrive(&call, manner) }
        })
    }

    async fn sent(&self, call: Call, manner: Manner) -> Result<Reply, CallError> {
        let answer = self.send(call, 0, manner).await;
        self.way().await;
        answer.unwrap_or(Err(CallError::Lost("the connection broke")))
    }
}
