//! A person gives up a settlement: its open hold is released, in the transaction that records the decision.
//!
//! The release is a person's, as a cancellation or an expiry is: it names no version, so it claims no
//! outcome. A success that is settled after it is a late capture.

use super::posting::{Change, Posting};
use super::settle::whole_hold;
use crate::job::JobRecords;
use crate::keys;
use crate::ledger::{Balance, Entry, EntryKind, JobLedger};

/// What `by` of a person's release begins with.
pub const BY_REVIEW: &str = "control/review.";

/// The close of an open hold by a person; `None` when there is no hold to release.
pub fn release(
    by: String, reason: &str, records: &JobRecords, ledger: &JobLedger, balance: &Balance, now_ms: i64,
) -> Option<Posting> {
    if ledger.close.is_some() {
        return None;
    }
    let hold = records.hold().ok()?;
    let entry = Entry::of_job(EntryKind::Release, &records.job, by, now_ms);
    let entry = Entry { released: hold, reason: reason.to_owned(), ..entry };
    let change = Change { available: hold, held: hold.negated(), ..Change::default() };
    let posting = Posting::unchained(keys::CLOSE.to_owned(), entry, balance, change);
    Some(posting.with_checks(whole_hold(records)).giving_up(&records.job))
}
