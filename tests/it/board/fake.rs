//! A job board at the network's edge: jobs that are made by POST under a key and replaced by PUT under their id. It keeps
//! what really exists there, apart from what it says: that is what the scenarios judge by.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};

use local::Clock;
use local::clock::ManualClock;
use runtime::call::{Call, CallError, Called, Caller, Reply};
use serde_json::{Value, json};

/// What happens to the next request; what is not one is the ordinary answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is done, and the answer never arrives.
    SavesThenTimesOut,
    /// The request is lost on its way.
    LostBefore,
    /// Nothing out of the ordinary.
    None,
    /// It refuses for good.
    Declines,
}

#[derive(Debug, Default)]
struct State {
    faults: VecDeque<Fault>,
    down: bool,
    /// First sight, body and id, by key.
    keys: BTreeMap<String, (i64, Vec<u8>, usize)>,
    /// Each job's key and contents, oldest first.
    jobs: Vec<(String, Vec<Value>)>,
    sent: Vec<Call>,
}

/// The board.
#[derive(Debug, Clone)]
pub struct JobBoard {
    state: Arc<Mutex<State>>,
    clock: ManualClock,
    /// How long it knows a key; 0: it keeps none.
    life_ms: i64,
}

/// The board, once there is one: the world has a clock of its own, which the board is given when it is known.
#[derive(Debug, Default)]
pub struct Later(pub Arc<OnceLock<JobBoard>>);

impl Caller for Later {
    fn call(&self, call: Call) -> Called<'_> {
        self.0.get().unwrap().call(call)
    }
}

fn reply(status: u16, body: &Value) -> Result<Reply, CallError> {
    Ok(Reply { status, body: Some(body.to_string().into_bytes()), retry_after_s: None })
}

pub fn header(call: &Call, name: &str) -> String {
    call.headers.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no header {name}")).1.clone()
}

impl JobBoard {
    pub fn new(clock: ManualClock, life_ms: i64) -> Self {
        Self { state: Arc::default(), clock, life_ms }
    }

    /// What happens to the next requests, in this order.
    pub fn script(&self, faults: &[Fault]) {
        self.state.lock().unwrap().faults = faults.iter().copied().collect();
    }

    pub fn down(&self, down: bool) {
        self.state.lock().unwrap().down = down;
    }

    /// What each job says now, oldest first.
    pub fn jobs(&self) -> Vec<Value> {
        self.state.lock().unwrap().jobs.iter().map(|(_, said)| said.last().unwrap().clone()).collect()
    }

    /// What each job has said, in order, by its `/version`.
    pub fn versions(&self) -> Vec<Vec<i64>> {
        let state = self.state.lock().unwrap();
        let said = |(_, said): &(String, Vec<Value>)| said.iter().map(|one| one["version"].as_i64().unwrap()).collect();
        state.jobs.iter().map(said).collect()
    }

    /// Every request but look-ups that reached the network, oldest first.
    pub fn sent(&self) -> Vec<Call> {
        self.state.lock().unwrap().sent.clone()
    }

    /// The same as `METHOD PATH`.
    pub fn lines(&self) -> Vec<String> {
        let line = |call: &Call| format!("{} {}", call.method, call.url.trim_start_matches("https://board.example"));
        self.sent().iter().map(line).collect()
    }

    fn take(&self, call: Call) -> Result<Reply, CallError> {
        let mut state = self.state.lock().unwrap();
        if state.down {
            return Err(CallError::NotSent("no connection"));
        }
        if let Some((_, key)) = call.url.split_once("?ref=") {
            let found = state.jobs.iter().position(|(of, _)| of == key);
            let row = |at: usize| json!([{"id": format!("job/{at}"), "reference": key}]);
            return reply(200, &json!({ "data": found.map_or(json!([]), row) }));
        }
        state.sent.push(call.clone());
        let fault = state.faults.pop_front().unwrap_or(Fault::None);
        match fault {
            Fault::LostBefore => return Err(CallError::Lost("no answer in time")),
            Fault::Declines => return reply(410, &json!({})),
            Fault::SavesThenTimesOut | Fault::None => {}
        }
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        let answer = match call.method.as_str() {
            "POST" => self.create(&mut state, &call, body),
            _ => {
                let (_, at) = call.url.split_once("/v1/jobs/job%2F").expect("the id that this board gave, escaped");
                state.jobs[at.parse::<usize>().unwrap()].1.push(body);
                Ok(Reply { status: 204, body: Some(Vec::new()), retry_after_s: None })
            }
        };
        if fault == Fault::SavesThenTimesOut { Err(CallError::Lost("no answer in time")) } else { answer }
    }

    fn create(&self, state: &mut State, call: &Call, body: Value) -> Result<Reply, CallError> {
        let (key, now_ms) = (header(call, "idempotency-key"), self.clock.now_ms());
        let known = state.keys.get(&key).filter(|(first_ms, ..)| now_ms - first_ms < self.life_ms);
        match known {
            Some((_, before, _)) if *before != call.body => return reply(422, &json!({})),
            Some((_, _, at)) => return reply(201, &json!({"id": format!("job/{at}")})),
            None => {}
        }
        let at = state.jobs.len();
        state.jobs.push((key.clone(), vec![body]));
        state.keys.insert(key, (now_ms, call.body.clone(), at));
        reply(201, &json!({"id": format!("job/{at}")}))
    }
}

impl Caller for JobBoard {
    fn call(&self, call: Call) -> Called<'_> {
        Box::pin(async move { self.take(call) })
    }
}
