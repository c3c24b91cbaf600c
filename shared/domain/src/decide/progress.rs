//! record-progress: how far a job is, by the profile's order signal. A tie or an older update never
//! overwrites.

use super::{Ask, NoEffect};
use crate::job::{JobRecords, Progress};
use crate::operation::Class;

/// What the job consumer may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Put this progress, if the stored sequence is absent or lower.
    Put(Progress),
    /// Nothing to write.
    None(NoEffect),
}

/// Decides from the job's records and its stored progress.
pub fn decide(ask: &Ask<'_>, event_type: &str, job: Option<&JobRecords>, stored: Option<&Progress>) -> Decision {
    if stored.is_some_and(|p| p.by == *ask.by) {
        return Decision::None(NoEffect::Done);
    }
    let Some(sequence) = ask.envelope.sequence else {
        return Decision::None(NoEffect::Review(Class::Unreadable, "the receipt has no sequence".to_owned()));
    };
    if let Some(newer) = stored.filter(|p| p.sequence >= sequence) {
        let note = format!("sequence {sequence} is not above {} of {}", newer.sequence, newer.by);
        return Decision::None(NoEffect::Noop(Class::Superseded, note));
    }
    if let Some(limit) = ask.over_limit() {
        return Decision::None(limit);
    }
    let Some(records) = job else {
        return Decision::None(NoEffect::Wait(Class::JobUnknown, "the job was not submitted yet".to_owned()));
    };
    if let Some(review) = ask.contradicts(&records.job) {
        return Decision::None(review);
    }
    if let Some(last) = records.transitions.last() {
        let note = format!("the job ended before: {:?} by {}", last.outcome, last.by).to_lowercase();
        return Decision::None(NoEffect::Noop(Class::Superseded, note));
    }
    Decision::Put(Progress { sequence, event_type: event_type.to_owned(), by: ask.by.clone(), changed_ms: ask.now_ms })
}
