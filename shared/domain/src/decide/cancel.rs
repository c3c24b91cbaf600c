//! Cancel: one transaction over transition, close and balance. The loser of a race with a completion
//! records a no-op.

use super::posting::{Change, Posting};
use super::settle::whole_hold;
use crate::event::By;
use crate::job::{JobRecords, Outcome, Transition};
use crate::keys;
use crate::ledger::{Balance, Entry, EntryKind, JobLedger};

/// What a cancellation may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Transition and close, in one transaction.
    Commit(Box<Posting>),
    /// The hold expired before: the transition alone.
    Transition(Transition),
    /// The job ended before; this says how.
    Refuse(String),
}

/// Decides a cancellation that is not recorded yet.
pub fn decide(
    by: &By, reason: &str, records: &JobRecords, ledger: &JobLedger, balance: &Balance, now_ms: i64,
) -> Decision {
    if let Some(last) = records.transitions.last() {
        return Decision::Refuse(format!("the job ended before: {:?} by {}", last.outcome, last.by).to_lowercase());
    }
    let transition =
        Transition { version: 1, outcome: Outcome::Canceled, usage: None, by: by.clone(), created_ms: now_ms };
    if ledger.close.is_some() {
        return Decision::Transition(transition);
    }
    let Ok(hold) = records.hold() else { return Decision::Refuse("the hold is beyond the limit".to_owned()) };
    let entry = Entry::of_job(EntryKind::Release, &records.job, by.to_string(), now_ms);
    let entry = Entry { released: hold, version: Some(1), reason: reason.to_owned(), ..entry };
    let change = Change { available: hold, held: hold.negated(), ..Change::default() };
    let posting = Posting::unchained(keys::CLOSE.to_owned(), entry, balance, change);
    let posting = posting.with_transition(Some(transition)).with_checks(whole_hold(records)).giving_up(&records.job);
    Decision::Commit(Box::new(posting))
}
