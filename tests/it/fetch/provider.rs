//! A provider's API of runs at the network's edge: what it says of each path, and what it was asked.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use runtime::call::{Call, CallError, Called, Caller, Reply};
use serde_json::Value;

/// One answer.
#[derive(Debug, Clone)]
pub enum Says {
    /// A status and a body.
    Status(u16, String),
    /// The status, and a body that broke off or was too large.
    Cut(u16),
    /// No connection.
    Down,
    /// The request left, and nothing came back in time.
    Silent,
}

pub fn says(status: u16, body: &Value) -> Says {
    Says::Status(status, body.to_string())
}

#[derive(Debug, Default)]
struct State {
    /// What comes first, in this order, whatever is asked.
    script: VecDeque<Says>,
    /// What stands at each path; 404 elsewhere.
    runs: BTreeMap<String, Says>,
    asked: Vec<Call>,
}

/// The API.
#[derive(Debug, Clone, Default)]
pub struct Runs(Arc<Mutex<State>>);

impl Runs {
    pub fn has(&self, path: &str, answer: Says) {
        self.0.lock().unwrap().runs.insert(path.to_owned(), answer);
    }

    /// What happens to the next requests.
    pub fn script(&self, answers: impl IntoIterator<Item = Says>) {
        self.0.lock().unwrap().script = answers.into_iter().collect();
    }

    /// Every request, oldest first.
    pub fn asked(&self) -> Vec<Call> {
        self.0.lock().unwrap().asked.clone()
    }

    /// The same as `METHOD PATH`.
    pub fn lines(&self) -> Vec<String> {
        let line = |call: &Call| format!("{} {}", call.method, call.url.trim_start_matches("https://runs.example"));
        self.asked().iter().map(line).collect()
    }

    fn take(&self, call: Call) -> Result<Reply, CallError> {
        let mut state = self.0.lock().unwrap();
        let path = call.url.trim_start_matches("https://runs.example").to_owned();
        state.asked.push(call);
        let known = state.runs.get(&path).cloned().unwrap_or(Says::Status(404, "{}".to_owned()));
        match state.script.pop_front().unwrap_or(known) {
            Says::Status(status, body) => Ok(Reply { status, body: Some(body.into_bytes()), retry_after_s: None }),
            Says::Cut(status) => Ok(Reply { status, body: None, retry_after_s: None }),
            Says::Down => Err(CallError::NotSent("no connection")),
            Says::Silent => Err(CallError::Lost("no answer in time")),
        }
    }
}

impl Caller for Runs {
    fn call(&self, call: Call) -> Called<'_> {
        Box::pin(async move { self.take(call) })
    }
}
