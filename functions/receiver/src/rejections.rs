//! Keeping the last refused deliveries, at a cost that no sender decides.
//!
//! A token bucket per provider and process lets the first few be written at once and one more every ten
//! seconds after that; the rest is only counted in the log. The store keeps a ring of a fixed number of
//! slots. So whoever floods an endpoint costs at most two small writes in ten seconds per process, and
//! fills nothing. The write stands before the answer, since nothing is spawned past it, and has a time of
//! its own: a slow or failing store delays a 401 by at most [`WRITE_LIMIT`] and never changes it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::ids::Provider;
use domain::rejected::Rejected;
use runtime::App;

/// Written at once, after a quiet time.
const BURST: i64 = 5;
/// One more is written after each.
const REFILL_MS: i64 = 10_000;
/// The longest that a refusal waits for its write.
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// The buckets of this process, by provider: as many as there are profiles.
#[derive(Debug, Default)]
pub(crate) struct Rejections(Mutex<BTreeMap<Provider, Bucket>>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: i64,
    filled_ms: i64,
}

impl Rejections {
    /// Keeps a refused delivery of a configured provider, if its bucket allows it.
    pub(crate) async fn keep(&self, app: &App, provider: &Provider, rejected: Rejected) {
        if !self.take(provider, app.clock.now_ms()) {
            return;
        }
        match tokio::time::timeout(WRITE_LIMIT, app.store.keep_rejected(provider, &rejected)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%provider, %error, "refused delivery not kept"),
            Err(_) => tracing::warn!(%provider, "refused delivery not kept in time"),
        }
    }

    fn take(&self, provider: &Provider, now_ms: i64) -> bool {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = Bucket { tokens: BURST, filled_ms: now_ms };
        let bucket = buckets.entry(provider.clone()).or_insert(full);
        let gained = (now_ms - bucket.filled_ms).max(0) / REFILL_MS;
        bucket.tokens = bucket.tokens.saturating_add(gained).min(BURST);
        bucket.filled_ms += gained * REFILL_MS;
        let allowed = bucket.tokens > 0;
        bucket.tokens -= i64::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn a_flood_is_written_five_times_and_then_once_in_ten_seconds() {
        let (rejections, acme) = (Rejections::default(), Provider::new("acme").unwrap());
        let taken = |from_ms: i64, to_ms: i64| {
            (from_ms..to_ms).step_by(10).filter(|now_ms| rejections.take(&acme, *now_ms)).count()
        };
        assert_eq!(taken(1_000_000, 1_009_990), 5, "the first ten seconds");
        assert_eq!(taken(1_010_000, 1_110_000), 10, "the next hundred");
        // Another provider has a bucket of its own, and a day's silence fills one no further than full.
        assert!(rejections.take(&Provider::new("other").unwrap(), 1_110_000));
        assert_eq!(taken(90_000_000, 90_009_990), 5);
    }
}
