//! Expiry: a hold whose job never ended is given back. The sweep asks; a success after it is a late
//! capture.

use super::posting::{Change, Check, Posting};
use super::settle::whole_hold;
use crate::job::JobRecords;
use crate::keys;
use crate::ledger::{Balance, Entry, EntryKind, JobLedger};

/// Who closed the hold, in the entry; no endpoint can have this slug.
pub const BY_EXPIRY: &str = "control/expiry";

/// The close, if the hold is past its expiry, open, and its job has no terminal transition.
pub fn decide(records: &JobRecords, ledger: &JobLedger, balance: &Balance, now_ms: i64) -> Option<Posting> {
    let open = ledger.close.is_none() && records.transitions.is_empty();
    if !open || now_ms <= records.expires_ms() {
        return None;
    }
    let hold = records.hold().ok()?;
    let entry = Entry::of_job(EntryKind::Expire, &records.job, BY_EXPIRY.to_owned(), now_ms);
    let change = Change { available: hold, held: hold.negated(), ..Change::default() };
    let posting = Posting::unchained(keys::CLOSE.to_owned(), Entry { released: hold, ..entry }, balance, change);
    let posting = posting.giving_up(&records.job);
    if crate::planted::on("expiry-without-the-transition-check") {
        return Some(posting.with_checks(whole_hold(records))); // PLANTED
    }
    Some(posting.with_checks([Check::NoTransition(1)]).with_checks(whole_hold(records)))
}
