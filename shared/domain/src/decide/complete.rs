//! complete-job: the job's one terminal transition per version.

use super::{Ask, NoEffect, Standing, standing};
use crate::job::{JobRecords, Transition};
use crate::operation::Class;

/// What the job consumer may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Put this transition, if its version does not exist.
    Put(Transition),
    /// Nothing to write.
    None(NoEffect),
}

/// Decides from the job's records; `None` when the job is not known yet.
pub fn decide(ask: &Ask<'_>, job: Option<&JobRecords>) -> Decision {
    let own = job.is_some_and(|j| j.transitions.iter().any(|t| t.by == *ask.by));
    if own {
        return Decision::None(NoEffect::Done);
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
    let Some(outcome) = ask.envelope.outcome else {
        return Decision::None(NoEffect::Review(Class::Unreadable, "the receipt has no outcome".to_owned()));
    };
    match standing(ask.by, ask.envelope, outcome, &records.job, &records.transitions) {
        Standing::Next(version) => Decision::Put(Transition {
            version,
            outcome,
            usage: ask.envelope.usage.clone(),
            by: ask.by.clone(),
            created_ms: ask.now_ms,
        }),
        // Unreachable through `own` above, and harmless: the effect exists.
        Standing::Owns(_) | Standing::Overtaken(_) => Decision::None(NoEffect::Done),
        Standing::Settled(class, note) => Decision::None(NoEffect::Noop(class, note)),
        Standing::Contested(class, note) if ask.settles => {
            Decision::None(NoEffect::Noop(class, format!("{note}; the review is settle-usage's")))
        }
        Standing::Contested(class, note) => Decision::None(NoEffect::Review(class, note)),
    }
}
