//! Many deliveries at the same time, and what was answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

use crate::api::Answer;
use crate::error::CliError;
use crate::output::{cell, table};

/// Answers by status and result.
#[derive(Debug, Default)]
pub struct Tally {
    /// A status of 0 is no answer.
    answers: BTreeMap<(u16, String), (u32, String)>,
    event: Option<String>,
}

impl Tally {
    fn add(&mut self, answer: &Answer) {
        let problem = answer.problem();
        let result = match &problem {
            Some(problem) => problem.code.clone(),
            None => cell(&answer.body["status"]),
        };
        if self.event.is_none() && problem.is_none() {
            self.event = answer.body["event"].as_str().map(|_| cell(&answer.body["event"]));
        }
        self.count(answer.status, result, problem.map(|problem| problem.to_string()).unwrap_or_default());
    }

    fn count(&mut self, status: u16, result: String, detail: String) {
        let (count, _) = self.answers.entry((status, result)).or_insert((0, detail));
        *count += 1; // at most the number of deliveries asked for
    }

    /// Whether every delivery was answered with 2xx.
    pub fn all_taken(&self) -> bool {
        self.answers.keys().all(|(status, _)| (200..300).contains(status))
    }

    /// Whether a signature was refused.
    pub fn refused_signatures(&self) -> bool {
        self.answers.keys().any(|(status, _)| *status == 401)
    }

    /// For people.
    pub fn table(&self) -> String {
        let shown = |status: u16| if status == 0 { "-".to_owned() } else { status.to_string() };
        let rows = self
            .answers
            .iter()
            .map(|((status, result), (count, _))| [shown(*status), result.clone(), count.to_string()]);
        let mut text = table(["HTTP", "answer", "count"], rows);
        for (_, detail) in self.answers.values().filter(|(_, detail)| !detail.is_empty()) {
            text += &format!("\n{detail}");
        }
        if let Some(event) = &self.event {
            text += &format!("\nevent {event}");
        }
        text
    }

    /// For machines.
    pub fn json(&self) -> Value {
        let one = |((status, result), (count, _)): (&(u16, String), &(u32, String))| json!({"status": (*status != 0).then_some(status), "result": result, "count": count});
        json!({"event": self.event, "answers": self.answers.iter().map(one).collect::<Vec<_>>()})
    }
}

/// Calls `deliver` with 1, 2, ... `times` from at most `concurrency` threads.
///
/// # Errors
/// Any error but a missing answer ends the volley at once; so does a missing answer before anybody was answered. A missing
/// answer after that is counted.
pub fn fire(
    times: u32, concurrency: u16, deliver: impl Fn(u32) -> Result<Answer, CliError> + Sync,
) -> Result<Tally, CliError> {
    let (sent, answered, stop) = (AtomicU32::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let tally = Mutex::new(Tally::default());
    let add = |change: &dyn Fn(&mut Tally)| change(&mut tally.lock().unwrap_or_else(PoisonError::into_inner));
    let work = || {
        // Reserved below `times` only, so the counter cannot run over.
        let next = || sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < times).then_some(n + 1)).ok();
        while let Some(before) = next().filter(|_| !stop.load(Ordering::Relaxed)) {
            match deliver(before + 1) {
                Ok(answer) => {
                    answered.store(true, Ordering::Relaxed);
                    add(&|tally| tally.add(&answer));
                }
                Err(error @ CliError::Unreachable { .. }) if answered.load(Ordering::Relaxed) => {
                    add(&|tally| tally.count(0, "no-answer".to_owned(), error.to_string()));
                }
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(())
    };
    let threads = u32::from(concurrency).min(times);
    let ends: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    for end in ends {
        end.map_err(|_| CliError::Failed("a sending thread ended by a defect of this program".to_owned()))??;
    }
    Ok(tally.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]
    use super::*;

    fn taken(status: u16, result: &str) -> Answer {
        Answer { status, body: json!({"status": result, "event": "acme/msg_1"}) }
    }

    fn gone() -> CliError {
        CliError::Unreachable { url: "http://127.0.0.1:9000".to_owned(), reason: "refused".to_owned() }
    }

    #[test]
    fn every_delivery_is_made_once_and_counted() {
        let seen = Mutex::new(Vec::new());
        let tally = fire(50, 8, |n| {
            seen.lock().unwrap().push(n);
            Ok(if n == 1 { taken(202, "accepted") } else { taken(200, "duplicate") })
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (1..=50).collect::<Vec<u32>>());
        let by_hand = "\
┌──────┬───────────┬───────┐
│ HTTP ┆ answer    ┆ count │
╞══════╪═══════════╪═══════╡
│ 200  ┆ duplicate ┆ 49    │
│ 202  ┆ accepted  ┆ 1     │
└──────┴───────────┴───────┘
event acme/msg_1";
        let tally = tally.unwrap();
        assert_eq!(tally.table(), by_hand);
        assert!(tally.all_taken());
    }

    #[test]
    fn a_refusal_is_shown_with_its_code_and_is_not_taken() {
        let body = json!({"code": "invalid-signature", "title": "The signature is not valid", "detail": "not taken"});
        let tally = fire(2, 1, |_| Ok(Answer { status: 401, body: body.clone() })).unwrap();
        assert!(!tally.all_taken() && tally.refused_signatures());
        let by_hand = r#"{"answers":[{"count":2,"result":"invalid-signature","status":401}],"event":null}"#;
        assert_eq!(tally.json().to_string(), by_hand);
        assert!(tally.table().ends_with("\nThe signature is not valid: not taken (401, invalid-signature)"));
    }

    #[test]
    fn a_server_that_never_answers_ends_it_and_one_that_stops_is_counted() {
        let calls = AtomicU32::new(0);
        let silent = fire(1000, 1, |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            Err(gone())
        });
        assert!(matches!(silent, Err(CliError::Unreachable { .. })));
        assert_eq!(calls.into_inner(), 1);
        let stopped = fire(3, 1, |n| if n == 1 { Ok(taken(202, "accepted")) } else { Err(gone()) }).unwrap();
        assert!(!stopped.all_taken());
        assert_eq!(stopped.json()["answers"][0], json!({"status": null, "result": "no-answer", "count": 2}));
    }
}
