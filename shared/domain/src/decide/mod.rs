//! The decisions: pure functions from what was read to what may be written.
//!
//! Both consumers ask the same question first: where does this event stand among the job's
//! transitions ([`standing`])? So the event that decided the job's outcome is the event that is
//! settled, whichever consumer comes first. Only the operation's OWN effect says "done", and each
//! `decide` checks that before every limit of age, attempts or funds.

pub mod adjust;
pub mod cancel;
pub mod complete;
pub mod create;
pub mod dismiss;
pub mod expire;
pub mod extend;
pub mod forward;
pub mod fund;
pub mod payment;
pub mod posting;
pub mod progress;
pub mod reverse;
pub mod settle;

use crate::envelope::{Envelope, mismatch};
use crate::event::By;
use crate::job::{Job, JobRef, Outcome, Overage, Transition};
use crate::limits::RetryPolicy;
use crate::operation::{Class, OperationRecord};

/// The operation's side of the view: what the event asks, and its limits.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The event and item.
    pub by: &'a By,
    /// What it says.
    pub envelope: &'a Envelope,
    /// First sent, else arrival, Unix milliseconds.
    pub business_time_ms: i64,
    /// The profile's business expiry in milliseconds.
    pub expire_after_ms: i64,
    /// The operation's record, if it did not go straight.
    pub record: Option<&'a OperationRecord>,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
    /// The limits of attempts and age.
    pub policy: &'a RetryPolicy,
    /// True when this event also plans settle-usage: then the review of a contested outcome is the
    /// settlement's, so that a person sees it once.
    pub settles: bool,
}

/// What becomes of an operation that has no effect to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoEffect {
    /// Its own effect exists.
    Done,
    /// Final, with the reason.
    Noop(Class, String),
    /// Try again later.
    Wait(Class, String),
    /// Look again at this time, Unix milliseconds: nothing was tried, so no try is counted.
    Until(Class, String, i64),
    /// A person decides.
    Review(Class, String),
}

impl Ask<'_> {
    /// The limits that end in review. Called only after the operation's own effect was found absent.
    pub fn over_limit(&self) -> Option<NoEffect> {
        let age_ms = self.now_ms.saturating_sub(self.business_time_ms);
        let waived = self.record.is_some_and(|record| record.waivers.expiry);
        if age_ms > self.expire_after_ms && !waived {
            let hours = age_ms / 3_600_000;
            let note =
                format!("sent {hours} h ago; the profile lets events act for {} h", self.expire_after_ms / 3_600_000);
            return Some(NoEffect::Review(Class::Expired, note));
        }
        self.exhausted()
    }

    /// How this job's charge above its hold is settled: as a person decided for this operation, else as pinned.
    pub fn overage(&self, job: &Job) -> Overage {
        self.record.and_then(|record| record.waivers.overage).unwrap_or(job.policies.overage)
    }

    /// The limits of attempts and age alone.
    pub fn exhausted(&self) -> Option<NoEffect> {
        exhausted(self.record?, self.policy, self.now_ms)
    }

    /// The receiver's checks, repeated where the job was not known at receipt: of what the event told, and of what was
    /// fetched for it beside that.
    pub fn contradicts(&self, job: &Job) -> Option<NoEffect> {
        let known = JobRef::from(job);
        let differs = |said: &Envelope| mismatch(&self.by.event.provider, said, &known, job.provider_ref.as_ref());
        let with_fetched = || {
            let fetched = self.envelope.fetched.as_ref()?;
            let note = differs(&self.envelope.clone().filled_by(&fetched.envelope))?;
            Some(format!("with what {} answered, {note}", fetched.from))
        };
        let note = differs(self.envelope).or_else(with_fetched)?;
        Some(NoEffect::Review(Class::Mismatch, note))
    }
}

/// The limits of attempts and age of a waiting operation; consumers, relay and dead letters share them.
pub fn exhausted(record: &OperationRecord, policy: &RetryPolicy, now_ms: i64) -> Option<NoEffect> {
    let waited_ms = now_ms - record.waiting_since_ms;
    if record.attempts < policy.max_attempts && waited_ms <= policy.max_age_ms {
        return None;
    }
    let (attempts, class) = (record.attempts, record.class);
    let note = format!("{attempts} tries in {} min; the last: {class:?}: {}", waited_ms / 60_000, record.note);
    Some(NoEffect::Review(Class::AttemptsExhausted, note))
}

/// Where an event stands among a job's transitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It owns this version, and no later one exists.
    Owns(u32),
    /// It owns a version, and a later one exists.
    Overtaken(String),
    /// It may write this version.
    Next(u32),
    /// Another event decided, and that is fine.
    Settled(Class, String),
    /// Another event decided, and a person must look.
    Contested(Class, String),
}

/// The rules of DESIGN's table: which event decides a job's outcome.
pub fn standing(by: &By, envelope: &Envelope, outcome: Outcome, job: &Job, transitions: &[Transition]) -> Standing {
    let Some(last) = transitions.last() else { return Standing::Next(1) };
    if let Some(own) = transitions.iter().find(|t| t.by == *by) {
        if own.version == last.version {
            return Standing::Owns(own.version);
        }
        return Standing::Overtaken(format!("version {} by {} came after it", last.version, last.by));
    }
    let owner = format!("{:?} decided by {}", last.outcome, last.by).to_lowercase();
    let billable = envelope.usage.as_ref().is_some_and(|usage| usage.values().any(|q| q.scaled() > 0));
    let partial = billable && job.policies.bill_partial && outcome != Outcome::Success;
    match (last.outcome, outcome) {
        (Outcome::Success, Outcome::Success) if last.usage == envelope.usage => {
            Standing::Settled(Class::AlreadyDone, owner)
        }
        (Outcome::Success, Outcome::Success) => {
            Standing::Contested(Class::Conflict, format!("{owner}, with other usage"))
        }
        // Usage that somebody would pay for is never dropped in silence.
        (_, _) if partial && (last.outcome == Outcome::Success || last.usage != envelope.usage) => {
            Standing::Contested(Class::Conflict, format!("{owner}; this event says otherwise and has usage"))
        }
        (Outcome::Failure, Outcome::Success) if job.policies.provisional_failure => Standing::Next(last.version + 1),
        (Outcome::Failure | Outcome::Canceled, Outcome::Success) => Standing::Contested(Class::LateSuccess, owner),
        (a, b) if a == b => Standing::Settled(Class::AlreadyDone, owner),
        _ => Standing::Settled(Class::OutcomeDecided, owner),
    }
}
