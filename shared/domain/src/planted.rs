//! Planted mistakes: the simulator's own test. Each names a place where the product could be wrong; the
//! simulator switches one on and must find it.
//!
//! Without the feature `planted`, which only the simulator's build sets, [`on`] is a constant `false` and
//! the compiler removes every place. With it, nothing is on until [`plant`] says so, for this thread only.

/// Every mistake that can be planted.
pub const MISTAKES: [&str; 40] = [
    "ack-before-the-put",
    "plan-dropped-when-a-send-fails",
    "condition-dropped-on-the-close",
    "balance-read-last",
    "sequence-not-checked",
    "any-error-taken-for-done",
    "ours-taken-for-done",
    "version-computed-as-maximum-plus-one",
    "deduplication-id-without-generation",
    "cursor-advanced-before-the-writes",
    "expiry-without-the-transition-check",
    "adjust-without-key",
    "reversal-without-its-sum",
    "batch-cancellation-taken-for-done",
    "deferral-consumed-before-it-is-written",
    "mismatch-stored-as-planned",
    "release-counted-twice",
    "claim-token-ignored",
    "older-progress-overwrites",
    "other-content-taken-for-a-duplicate",
    "funds-condition-dropped",
    "stale-generation-acts",
    "extension-not-checked-by-the-close",
    "review-not-listed",
    "funding-keyed-by-the-event",
    "refund-taken-for-new",
    "body-in-a-log-line",
    "decision-not-recorded",
    "replay-not-recorded",
    "later-told-first",
    "new-key-on-retry",
    "resend-past-key-life",
    "request-rebuilt-on-retry",
    "result-recorded-before-the-answer",
    "look-up-miss-taken-for-not-done",
    "charge-left-out-of-its-settlement",
    "carried-rest-forgotten",
    "refund-beyond-its-charge",
    "authorisation-left-standing",
    "charge-beside-an-authorisation",
];

/// True in a build that can plant mistakes: no function starts from one.
pub const COMPILED_IN: bool = cfg!(feature = "planted");

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Plants one mistake on this thread, or none.
    pub fn plant(mistake: Option<&'static str>) {
        PLANTED.set(mistake);
    }

    /// True while this mistake is planted on this thread.
    pub fn on(mistake: &str) -> bool {
        debug_assert!(super::MISTAKES.contains(&mistake), "{mistake} is not listed");
        PLANTED.get() == Some(mistake)
    }
}

#[cfg(feature = "planted")]
pub use switch::{on, plant};

/// Always false in a build for production.
#[cfg(not(feature = "planted"))]
pub const fn on(_mistake: &str) -> bool {
    false
}
