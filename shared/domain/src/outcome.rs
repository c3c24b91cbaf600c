//! What a destination's answer means: data of its profile, read by one pure function.
//!
//! What it promises: an answer is final, failed or "not done" only where the rules say so. Everything else, and every
//! silence after bytes may have left, is [`Verdict::Unknown`], and nobody guesses what it hides. Whether the same bytes may
//! then go out again is [`KeyLife`]'s to say, and what a look-up that finds nothing proves is [`LookUp`]'s.

use crate::json::{Pointer, Value, parse};

/// Longest id of a destination that is kept, in bytes.
pub const MAX_ID_BYTES: usize = 200;
/// Statuses that refuse the caller and not the request: never "failed", whatever the rules say, since another secret, right
/// or moment changes them (RFC 9110 sections 15.5.2, 15.5.4 and 15.5.8; RFC 6585 section 4).
pub const CALLERS: [u16; 4] = [401, 403, 407, 429];

/// How long the destination knows a key again, counted from the first sending under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyLife {
    /// Not at all: a repetition would be a second effect.
    #[default]
    None,
    /// For so many milliseconds, of which the last `margin_ms` are not relied on.
    For {
        /// What the destination promises.
        life_ms: i64,
        /// What is left unused of it: clocks, and the time that a request takes.
        margin_ms: i64,
    },
    /// For good: its reader remembers every key (queues, buses, and receivers that say so).
    ForGood,
}

impl KeyLife {
    /// Whether a key that was first sent then is surely known now.
    pub fn holds(self, first_sent_ms: i64, now_ms: i64) -> bool {
        match self {
            Self::None => false,
            Self::For { life_ms, margin_ms } => now_ms.saturating_sub(first_sent_ms) < life_ms - margin_ms,
            Self::ForGood => true,
        }
    }
}

/// What an answer can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// The effect exists.
    Final,
    /// It does not, and never will under this key.
    Failed,
    /// It was not even tried: later.
    Retryable,
    /// A request with this key is being worked on.
    InProgress,
    /// The key was used before with other parameters.
    KeyReused,
}

/// One status or range of them, and what must stand in the answer's body, if anything must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The first status.
    pub from: u16,
    /// The last status.
    pub to: u16,
    /// A place in the JSON body, and the text that must stand there.
    pub body: Option<(Pointer, String)>,
}

impl Match {
    /// A status, or a range of them.
    pub fn statuses(from: u16, to: u16) -> Self {
        Self { from, to, body: None }
    }

    fn takes(&self, status: u16, body: Option<&Value<'_>>) -> bool {
        let named = |(at, text): &(Pointer, String)| text_at(body, at).as_deref() == Some(text.as_str());
        (self.from..=self.to).contains(&status) && self.body.as_ref().is_none_or(named)
    }

    /// What is said of fewer answers goes before what is said of more.
    fn width(&self) -> (bool, u16) {
        (self.body.is_none(), self.to - self.from)
    }
}

/// A text, number or truth value of a body, as its text.
fn text_at(body: Option<&Value<'_>>, at: &Pointer) -> Option<String> {
    match body?.pointer(at)? {
        Value::String(text) => Some(text.to_string()),
        Value::Number(number) => Some(number.text().to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// How an effect is looked up by our own reference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LookUp {
    /// What must stand in the answer where the effect exists; none: any JSON answer of status 200 is it.
    pub found: Option<Pointer>,
    /// Where the answer repeats our key; another text there is another effect.
    pub reference: Option<Pointer>,
    /// The destination's id of the effect.
    pub id: Option<Pointer>,
    /// Its status; without it whatever is found is settled.
    pub status: Option<Pointer>,
    /// Statuses of an effect that exists.
    pub settled: Vec<String>,
    /// Statuses of one that never will.
    pub failed: Vec<String>,
    /// How long after the last sending a miss begins to mean "not done", in milliseconds: until then the request may still be
    /// on its way.
    pub settles_after_ms: i64,
}

/// What one destination's answers mean.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// How long it knows a key.
    pub key: KeyLife,
    /// True where an error that it stored comes back under the key: another try within the key's life learns nothing.
    pub replays_errors: bool,
    /// What its statuses mean; everything else is unknown.
    pub answers: Vec<(Meaning, Match)>,
    /// Where a final answer has the destination's id; an answer without it is not final.
    pub id: Option<Pointer>,
    /// How an effect is looked up.
    pub lookup: Option<LookUp>,
}

impl Rules {
    /// Those of a queue or bus: what it took is final, and its reader remembers keys.
    pub fn of_queue() -> Self {
        Self { key: KeyLife::ForGood, ..Self::default() }
    }

    /// Those of a change to what exists at the destination: no answer needs an id, and no look-up by the key finds it. A PUT
    /// does the same however often it arrives (RFC 9110, 9.2.2), so it is sent again whatever keys are known there; the
    /// order of what is sent is the caller's care.
    #[must_use]
    pub fn for_update(&self, method: &str) -> Self {
        let key = if method == "PUT" { KeyLife::ForGood } else { self.key };
        Self { key, id: None, lookup: None, ..self.clone() }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// No byte left: no connection, no name, no usable address.
    NotSent(String),
    /// Bytes may have left, and no answer came: time-out, reset.
    Lost(String),
    /// A queue or bus has taken it.
    Taken,
    /// A queue or bus refuses it: a right or the queue itself is missing.
    Refused(String),
    /// An HTTP answer; the body is absent where it broke off or was too large.
    Status {
        /// The status code.
        status: u16,
        /// The body.
        body: Option<Vec<u8>>,
    },
}

/// What an answer means for the effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It exists, under this id of the destination's.
    Settled(Option<String>),
    /// It does not and never will.
    Failed,
    /// This try did nothing. `refused` where somebody has to repair something first.
    NotDone {
        /// A right, a secret, an address.
        refused: bool,
    },
    /// Another request with this key is being worked on.
    InProgress,
    /// The key is taken by other parameters.
    KeyReused,
    /// Nobody knows. `stored` where the destination would answer the same to every further try.
    Unknown {
        /// A stored error.
        stored: bool,
    },
}

/// Reads an answer by a destination's rules.
pub fn read(rules: &Rules, answer: &Answer) -> Verdict {
    let (status, body) = match answer {
        Answer::NotSent(_) => return Verdict::NotDone { refused: false },
        Answer::Refused(_) => return Verdict::NotDone { refused: true },
        Answer::Taken => return Verdict::Settled(None),
        Answer::Lost(_) => return Verdict::Unknown { stored: false },
        Answer::Status { status, body } => (*status, body.as_deref()),
    };
    let json = body.and_then(|bytes| parse(bytes).ok());
    let fitting = rules.answers.iter().filter(|(_, rule)| rule.takes(status, json.as_ref()));
    // Of two that fit equally well the more careful one, which has the later place among the meanings.
    let best = fitting.min_by_key(|(meaning, rule)| (rule.width(), std::cmp::Reverse(*meaning)));
    let unknown = Verdict::Unknown { stored: rules.replays_errors && status >= 500 };
    match best.map(|(meaning, _)| *meaning) {
        Some(Meaning::Final) => match &rules.id {
            None => Verdict::Settled(None),
            Some(at) => id_at(json.as_ref(), at).map_or(unknown, |id| Verdict::Settled(Some(id))),
        },
        Some(Meaning::Failed) if CALLERS.contains(&status) => Verdict::NotDone { refused: status != 429 },
        Some(Meaning::Failed) => Verdict::Failed,
        Some(Meaning::Retryable) => Verdict::NotDone { refused: CALLERS.contains(&status) && status != 429 },
        Some(Meaning::InProgress) => Verdict::InProgress,
        Some(Meaning::KeyReused) => Verdict::KeyReused,
        None => unknown,
    }
}

/// An id that can be kept: short and printable.
fn id_at(body: Option<&Value<'_>>, at: &Pointer) -> Option<String> {
    let id = text_at(body, at)?;
    let usable = !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.chars().any(char::is_control);
    usable.then_some(id)
}

/// What a look-up saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The effect, under this id.
    Settled(Option<String>),
    /// An effect that never will be.
    Failed,
    /// The effect, not yet at an end.
    Pending,
    /// Nothing.
    Absent,
    /// No usable answer.
    Unclear(String),
}

/// Reads a look-up's answer; `key` is what the destination saw as our reference.
pub fn look(lookup: &LookUp, key: &str, answer: &Answer) -> Seen {
    let (status, body) = match answer {
        Answer::Status { status, body } => (*status, body.as_deref()),
        Answer::NotSent(why) | Answer::Lost(why) | Answer::Refused(why) => return Seen::Unclear(why.clone()),
        Answer::Taken => return Seen::Unclear("no answer to read".to_owned()),
    };
    if status == 404 {
        return Seen::Absent;
    }
    if status != 200 {
        return Seen::Unclear(format!("the look-up was answered with status {status}"));
    }
    let Some(json) = body.and_then(|bytes| parse(bytes).ok()) else {
        return Seen::Unclear("the look-up's answer is not readable".to_owned());
    };
    if lookup.found.as_ref().is_some_and(|at| json.pointer(at).is_none_or(Value::is_null)) {
        return Seen::Absent;
    }
    // A destination that does not know our query may show somebody else's effect.
    if lookup.reference.as_ref().is_some_and(|at| text_at(Some(&json), at).as_deref() != Some(key)) {
        return Seen::Unclear("what the look-up found does not bear our key".to_owned());
    }
    let id = lookup.id.as_ref().and_then(|at| id_at(Some(&json), at));
    if lookup.id.is_some() && id.is_none() {
        return Seen::Unclear("what the look-up found has no id".to_owned());
    }
    let Some(at) = &lookup.status else { return Seen::Settled(id) };
    match text_at(Some(&json), at) {
        Some(text) if lookup.settled.contains(&text) => Seen::Settled(id),
        Some(text) if lookup.failed.contains(&text) => Seen::Failed,
        Some(_) => Seen::Pending,
        None => Seen::Unclear("what the look-up found has no status".to_owned()),
    }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
