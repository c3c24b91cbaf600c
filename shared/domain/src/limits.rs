//! Every limit and every wait, in one place, with its default.

/// Largest webhook body in bytes (256 KiB); a larger one is answered 413 before anything is written.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// Largest control request in bytes.
pub const MAX_CONTROL_BODY_BYTES: usize = 64 * 1024;
/// Items of one delivery at most; more are quarantined as a whole.
pub const MAX_ITEMS: usize = 100;
/// Items and plan of one receipt at most, as JSON: below DynamoDB's 400 KB for an item, with room for the
/// rest of the receipt and for the attribute names that JSON and DynamoDB count differently.
pub const MAX_PLAN_BYTES: usize = 300_000;
/// Named values that an event type may add to its envelope, and bytes of one of them.
pub const MAX_DATA: usize = 20;
/// See [`MAX_DATA`].
pub const MAX_DATA_BYTES: usize = 1_000;
/// Calls side by side for one delivery: look-ups of its items, sends of its operations.
pub const SIDE_BY_SIDE: usize = 25;
/// A message at this receive count or above is deferred before anything else is tried.
pub const DEFER_FIRST_AT_RECEIVE: u32 = 4;
/// Tries of a transaction within one invocation while another writer wins.
pub const DECIDE_AGAIN_LIMIT: u32 = 10;
/// Shards of the receipt-bucket, due and review indexes.
pub const SHARDS: u32 = 4;
/// Length of one receipt bucket.
pub const BUCKET_MS: i64 = 60_000;
/// Length of one bucket of expiring holds: a hold is given back at most this long, and one run of the
/// relay, after its expiry.
pub const EXPIRY_BUCKET_MS: i64 = 10 * 60_000;
/// A bucket is examined when its end is this old, so that every receipt in it is written and indexed.
pub const RELAY_GRACE_MS: i64 = 120_000;
/// The largest difference assumed between two functions' clocks.
pub const CLOCK_SKEW_MS: i64 = 30_000;
/// The receiver's Lambda timeout, and with it the longest life of a receipt's write.
pub const RECEIVER_TIMEOUT_MS: i64 = 10_000;
/// The most that the SDK spends on one call, all its own retries included.
pub const SDK_OPERATION_TIMEOUT_MS: i64 = 8_000;

// A receipt written at the last moment by a receiver whose clock runs behind must still be in its
// bucket's index when the relay examines that bucket.
const _: () = assert!(CLOCK_SKEW_MS + RECEIVER_TIMEOUT_MS + SDK_OPERATION_TIMEOUT_MS < RELAY_GRACE_MS);

/// The longest that a try of the outbound consumer can be under way: its Lambda timeout and the difference of clocks. Until
/// then a try without a recorded end is somebody's who is at work.
pub const IN_FLIGHT_MS: i64 = 30_000 + CLOCK_SKEW_MS;
/// Largest answer of a destination that is read, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Reviews of one page, and decisions of one bulk request, at most.
pub const REVIEWS_PER_PAGE: usize = 100;
/// Rows of the review index that one page looks at, so that a narrow filter stays bounded.
pub const REVIEWS_EXAMINED: usize = 200;
/// Events of one part of a replay: each costs a few reads and one transaction, within the function's timeout.
pub const REPLAY_EVENTS: usize = 250;
/// Operations of one part of a replay, less those of its first event: a delivery of many items has hundreds.
pub const REPLAY_OPERATIONS: usize = 1_000;
/// Minutes of receipts that one part of a replay looks through.
pub const REPLAY_MINUTES: i64 = 600;
/// Time between the due times of two replayed events of one tenant: five a second. This is the rate limit of
/// replays; it is recorded with each.
pub const REPLAY_SPACING_MS: i64 = 200;
/// Operations of one switch that one run of the relay resumes.
pub const RESUMED_PER_RUN: usize = 1_000;
/// For so long after a resumption the relay looks for what a consumer parked at the last moment: longer than
/// a consumer's timeout and an index's lag.
pub const RESUME_GRACE_MS: i64 = 10 * 60_000;
/// Rows per shard and state that `status` looks at; beyond it its numbers are lower bounds.
pub const STATUS_ROWS: usize = 100;
/// A due operation that was not sent for so long is overdue: two runs of the relay.
pub const OVERDUE_MS: i64 = 120_000;

/// How waiting operations are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The first ceiling of the wait.
    pub base_ms: i64,
    /// The largest ceiling of the wait.
    pub cap_ms: i64,
    /// A consumer's own tries before a person is asked.
    pub max_attempts: u32,
    /// Age since arrival after which a person is asked.
    pub max_age_ms: i64,
    /// A sent operation that shows no progress is sent again after this.
    pub resend_ms: i64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            base_ms: 5_000,
            cap_ms: 15 * 60_000,
            max_attempts: 20,
            max_age_ms: 24 * 3_600_000,
            resend_ms: 5 * 60_000,
        }
    }
}

impl RetryPolicy {
    /// The wait before try `attempt + 1`: exponential, capped, with full jitter, at least one second.
    /// `random` is any 64-bit random value.
    pub fn backoff_ms(&self, attempt: u32, random: u64) -> i64 {
        let ceiling = self.base_ms.saturating_mul(1_i64 << attempt.min(30)).min(self.cap_ms);
        let span = u64::try_from(ceiling.max(1)).unwrap_or(1);
        let jitter = i64::try_from(random % span).unwrap_or(0);
        jitter.max(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_never_vanish() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.backoff_ms(0, 4_999), 4_999);
        assert_eq!(policy.backoff_ms(0, 5_000), 1_000);
        assert_eq!(policy.backoff_ms(2, 19_999), 19_999);
        assert_eq!(policy.backoff_ms(40, 899_999), 899_999);
        assert_eq!(policy.backoff_ms(40, 900_000), 1_000);
    }
}
