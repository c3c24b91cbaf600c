//! Reconciliation: what the records say of each other, compared again from outside the path.
//!
//! Every comparison is a pure function from what was read to findings. A finding is a fact with a class, its evidence
//! and ONE action; the same fact has the same id in every run, so a second run, or one beside it, opens nothing new.
//! Nothing here reads, and nothing here decides what may be written: an action goes through the ordinary path with the
//! ordinary keys and conditions, or as a delta under the `rev` that was read, and is re-checked when it is applied.
//!
//! Rows younger than [`GRACE_MS`] are still being worked on and are nobody's finding (REC-03).

mod case;
mod effects;
mod intents;
mod jobs;
mod listing;
mod receipts;
mod run;
#[cfg(test)]
mod tests;
mod wallets;

pub use case::{Action, Case, CaseClass, CaseState, Decision, Finding, Resolution, Subject};
pub use effects::{EffectPage, EffectState, ListedEffect, read_effects};
pub use intents::{ChargeView, IntentView, Posted, compare_intent, decisive, unknown_here};
pub use jobs::{Compensation, JobView, compare_job, compensation, lacks_charge};
pub use listing::{ListPage, Listed, ListedEntry, compare_listed, missing_at_provider, read_page};
pub use receipts::compare_receipt;
pub use run::{ClassCount, Kind, Part, PartKey, PartMessage, PartResult, PartState, Run, Window};
pub use wallets::{Rebuild, compare_wallet, rebuild};

/// Rows younger than this are still on their way: above the relay's grace, its bucket, one run of it and the queue's
/// visibility together.
pub const GRACE_MS: i64 = 15 * 60_000;
/// A hold is the expiry sweep's until it is this long past its expiry.
pub const EXPIRY_MARGIN_MS: i64 = 3_600_000;
/// A job must be this old before its absence from the provider's own list means anything.
pub const LIST_GRACE_MS: i64 = 2 * 3_600_000;
/// An intent must be this old before it is stuck, however nobody is on it.
pub const STUCK_MS: i64 = 6 * 3_600_000;
/// A review or conflict that is open for longer is told again.
pub const OLD_REVIEW_MS: i64 = 24 * 3_600_000;
/// A fact that the automatic action did not cure so many times is a person's.
pub const MAX_AUTOMATIC: u32 = 2;
/// Characters of a case's evidence at most.
pub const MAX_EVIDENCE_CHARS: usize = 500;
/// The longest time range of one run, in milliseconds: 31 days.
pub const MAX_RANGE_MS: i64 = 31 * 24 * 3_600_000;
/// What a run without a range looks back over, in milliseconds: 48 hours.
pub const DEFAULT_RANGE_MS: i64 = 48 * 3_600_000;
/// Minutes of receipts in one part.
pub const PART_MINUTES: i64 = 60;
/// Wallets found by one part of a scan.
pub const SCAN_PAGE: usize = 100;
/// A run whose parts are not done after this is dispatched again, in milliseconds: messages may be lost.
pub const REDISPATCH_MS: i64 = 30 * 60_000;
/// Receives of a part's message after which the part is given up and says so.
pub const MAX_PART_RECEIVES: u32 = 5;

const _: () = assert!(GRACE_MS > crate::limits::RELAY_GRACE_MS + crate::limits::BUCKET_MS + 2 * 180_000);
