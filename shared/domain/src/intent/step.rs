//! The one place that says what follows for an intent: [`next`] from what is stored, [`observed`] from an answer,
//! [`looked`] from a look-up, [`accepted`] from the destination's own list.
//!
//! States go forward only: pending, submitted, uncertain, then settled or failed. `submitted` is committed before the
//! bytes leave, so a try without a result is an unknown outcome, whatever became of the process. An unknown outcome is
//! sent again with the same bytes under the same key while the destination surely knows that key, else looked up, else a
//! person's. What came late changes no end; it is counted.

use super::{Intent, IntentResult, IntentState, Told};
use crate::limits::IN_FLIGHT_MS;
use crate::operation::Class;
use crate::outcome::{Answer, KeyLife, LookUp, Rules, Seen, Verdict, read};

/// What is to be done for an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing: the effect exists.
    Done,
    /// Commit `submitted`, then send the stored bytes.
    Send,
    /// Ask the destination whether the effect exists.
    LookUp,
    /// Nothing before this time, Unix milliseconds: somebody may be at work on it.
    Wait(i64, String),
    /// A person decides.
    Review(Class, String),
}

/// What follows a look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Commit this.
    Change(Box<Intent>),
    /// It surely does not exist: send the stored bytes.
    Send,
    /// Nothing can be said before this time, Unix milliseconds.
    Wait(i64, String),
    /// No usable answer: look again later.
    Unclear(String),
    /// A person decides.
    Review(Class, String),
}

/// What follows from what is stored. `approved_ms` is when a person allowed one more sending in spite of an unknown
/// outcome.
pub fn next(intent: &Intent, rules: &Rules, now_ms: i64, approved_ms: Option<i64>) -> Step {
    match intent.state {
        IntentState::Settled => return Step::Done,
        IntentState::Failed => return Step::Review(Class::Declined, declined(intent)),
        IntentState::Pending => return Step::Send,
        IntentState::Submitted | IntentState::Uncertain => {}
    }
    // One approval is one sending: the one that follows it.
    if approved_ms.is_some_and(|at| intent.last_sent_ms.is_none_or(|sent| sent < at)) {
        return Step::Send;
    }
    let told = intent.last_told();
    let busy_ms = intent.last_sent_ms.unwrap_or(intent.created_ms).saturating_add(IN_FLIGHT_MS);
    if told.is_none() && now_ms < busy_ms {
        return Step::Wait(busy_ms, "a try is under way, or ended without a word".to_owned());
    }
    match told {
        Some(Told::KeyReused) => {
            let note = "the destination knows this key with other parameters: nothing is sent under another one; \
                        look there for what has this key, then close";
            Step::Review(Class::Conflict, note.to_owned())
        }
        // Nothing of any try was done.
        Some(Told::NotDone) if intent.state == IntentState::Submitted => Step::Send,
        told => unknown(intent, rules, now_ms, told == Some(Told::Stored)),
    }
}

/// What follows while nobody knows whether the effect exists.
fn unknown(intent: &Intent, rules: &Rules, now_ms: i64, stored: bool) -> Step {
    if key_holds(intent, rules, now_ms) && !stored {
        return Step::Send;
    }
    if rules.lookup.is_some() {
        return Step::LookUp;
    }
    let why = if stored {
        "the destination repeats a stored error"
    } else if rules.key == KeyLife::None {
        "the destination keeps no keys"
    } else {
        "the life of the key is over"
    };
    Step::Review(Class::UnknownOutcome, format!("it may or may not have been done ({}), and {why}", last_note(intent)))
}

fn key_holds(intent: &Intent, rules: &Rules, now_ms: i64) -> bool {
    if crate::planted::on("resend-past-key-life") && rules.key != KeyLife::None {
        return true; // PLANTED
    }
    intent.first_sent_ms.is_some_and(|first| rules.key.holds(first, now_ms))
}

fn last_note(intent: &Intent) -> String {
    intent.last_result().map_or("no answer was recorded", |result| result.note.as_str()).to_owned()
}

fn declined(intent: &Intent) -> String {
    let note = intent.result.as_ref().map(|result| result.note.as_str()).unwrap_or_default();
    let late = if intent.late_settled { "; a later answer said that it was done" } else { "" };
    format!("the destination will not do it: {note}{late}")
}

impl Intent {
    /// The revision under which bytes leave: committed before they do.
    #[must_use]
    pub fn submitted(&self, now_ms: i64, token: String) -> Self {
        // A try whose end nobody recorded stays unknown whatever the next one says.
        let unsure = self.attempts > 0 && self.last_told() != Some(Told::NotDone);
        let state = if unsure || self.state == IntentState::Uncertain {
            IntentState::Uncertain
        } else {
            IntentState::Submitted
        };
        Self {
            state,
            attempts: self.attempts + 1,
            first_sent_ms: self.first_sent_ms.or(Some(now_ms)),
            last_sent_ms: Some(now_ms),
            revision: self.revision + 1,
            token,
            ..self.clone()
        }
    }

    /// The end of the last try; none where it is not recorded.
    pub fn last_result(&self) -> Option<&IntentResult> {
        self.result.as_ref().filter(|result| result.attempt == self.attempts)
    }

    /// What the last try was told; none where no end of it is recorded.
    pub fn last_told(&self) -> Option<Told> {
        self.last_result().map(|result| result.told)
    }

    /// True when nothing more happens to it.
    pub fn is_final(&self) -> bool {
        matches!(self.state, IntentState::Settled | IntentState::Failed)
    }

    fn ended(&self, state: IntentState, result: IntentResult, now_ms: i64) -> Self {
        let sent_ms = (state == IntentState::Settled).then_some(now_ms).or(self.sent_ms);
        Self { state, result: Some(result), sent_ms, revision: self.revision + 1, ..self.clone() }
    }

    /// An answer that changes nothing any more: it is counted, and one that contradicts a failure is noted.
    fn late(&self, settled: bool) -> Self {
        let late_settled = self.late_settled || (settled && self.state == IntentState::Failed);
        Self { late: self.late.saturating_add(1), late_settled, revision: self.revision + 1, ..self.clone() }
    }
}

/// The revision that takes what the destination's own list says for the answer: the effect exists, under this id. None where
/// that is known. A failure stays one; that the effect exists all the same is noted.
pub fn accepted(intent: &Intent, id: &str, now_ms: i64) -> Option<Intent> {
    match intent.state {
        IntentState::Settled => None,
        IntentState::Failed => (!intent.late_settled).then(|| intent.late(true)),
        _ => {
            let result = IntentResult {
                attempt: intent.attempts,
                told: Told::Settled,
                refused: false,
                status: None,
                id: Some(id.to_owned()),
                note: "found in the destination's list".to_owned(),
                at_ms: now_ms,
            };
            Some(intent.ended(IntentState::Settled, result, now_ms))
        }
    }
}

/// The revision that records what try `attempt` was answered. An end stays; what an older try is told matters only where
/// it says that the effect exists.
pub fn observed(intent: &Intent, rules: &Rules, attempt: u32, answer: &Answer, now_ms: i64) -> Intent {
    let (told, id, refused) = match read(rules, answer) {
        Verdict::Settled(id) => (Told::Settled, id, false),
        Verdict::Failed => (Told::Failed, None, false),
        Verdict::NotDone { refused } => (Told::NotDone, None, refused),
        Verdict::InProgress => (Told::InProgress, None, false),
        Verdict::KeyReused => (Told::KeyReused, None, false),
        Verdict::Unknown { stored: true } => (Told::Stored, None, false),
        Verdict::Unknown { stored: false } => (Told::Unknown, None, false),
    };
    let settled = told == Told::Settled;
    if intent.is_final() || (attempt != intent.attempts && !settled) {
        return intent.late(settled);
    }
    let status = match answer {
        Answer::Status { status, .. } => Some(*status),
        _ => None,
    };
    let result = IntentResult { attempt, told, refused, status, id, note: note(told, answer), at_ms: now_ms };
    let state = match told {
        Told::Settled => IntentState::Settled,
        Told::Failed => IntentState::Failed,
        Told::NotDone => intent.state,
        Told::InProgress | Told::KeyReused | Told::Stored | Told::Unknown => IntentState::Uncertain,
    };
    intent.ended(state, result, now_ms)
}

/// For people: what happened, in fixed words and a status code.
fn note(told: Told, answer: &Answer) -> String {
    let came = match answer {
        Answer::NotSent(why) | Answer::Lost(why) | Answer::Refused(why) => why.clone(),
        Answer::Taken => "taken".to_owned(),
        Answer::Status { status, body: None } => format!("status {status}, and the answer broke off"),
        Answer::Status { status, .. } => format!("status {status}"),
    };
    match told {
        Told::InProgress => format!("{came}: another request with this key is in progress"),
        Told::KeyReused => format!("{came}: the key was used with other parameters"),
        Told::Stored => format!("{came}, which is repeated under this key"),
        _ => came,
    }
}

/// What follows from what a look-up saw that was asked at `now_ms`: a miss says nothing of what came after.
pub fn looked(intent: &Intent, rules: &Rules, lookup: &LookUp, seen: Seen, now_ms: i64) -> Found {
    let result = |told: Told, id: Option<String>, note: &str| IntentResult {
        attempt: intent.attempts,
        told,
        refused: false,
        status: None,
        id,
        note: note.to_owned(),
        at_ms: now_ms,
    };
    let sent_ms = intent.last_sent_ms.unwrap_or(intent.created_ms);
    let settles_ms = sent_ms.saturating_add(lookup.settles_after_ms);
    match seen {
        Seen::Settled(id) => {
            let result = result(Told::Settled, id, "found by look-up");
            Found::Change(Box::new(intent.ended(IntentState::Settled, result, now_ms)))
        }
        Seen::Failed => {
            let result = result(Told::Failed, None, "found by look-up as failed");
            Found::Change(Box::new(intent.ended(IntentState::Failed, result, now_ms)))
        }
        Seen::Pending => Found::Unclear("the destination has it, not yet at an end".to_owned()),
        Seen::Unclear(why) => Found::Unclear(why),
        // The last request may still be on its way: a miss proves nothing yet.
        Seen::Absent if now_ms < settles_ms && !crate::planted::on("look-up-miss-taken-for-not-done") => {
            Found::Wait(settles_ms, "not found, and it may still be on its way".to_owned())
        }
        Seen::Absent if intent.last_told() == Some(Told::Stored) && key_holds(intent, rules, now_ms) => {
            let note = "the destination repeats a stored error under this key and knows nothing of the effect";
            Found::Review(Class::UnknownOutcome, note.to_owned())
        }
        Seen::Absent => Found::Send,
    }
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
