//! The one source of time of the embedded stack.
//!
//! The queue engine, the gateway, the tests and the simulator all ask a [`Clock`] and never the operating system, so
//! that a test can move five minutes ahead without waiting. Times are milliseconds since the Unix epoch, as SQS gives
//! them in its message attributes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

pub use runtime::clock::{Clock, SystemClock};

/// A clock that stands still until it is told to move: for tests and the simulator. Clones share one time.
#[derive(Debug, Default, Clone)]
pub struct ManualClock {
    now_ms: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that stands at `now_ms` milliseconds since the Unix epoch.
    #[must_use]
    pub fn new(now_ms: i64) -> Self {
        Self { now_ms: Arc::new(AtomicI64::new(now_ms)) }
    }

    /// Sets the time, forwards or backwards: real clocks are corrected in both directions.
    pub fn set(&self, now_ms: i64) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }

    /// Moves the time forward by `by_ms` milliseconds.
    pub fn advance(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }
}

/// Lends a [`Clock`] to dynoxide, which counts in seconds.
pub(crate) struct DatabaseClock(pub(crate) Arc<dyn Clock>);

impl DatabaseClock {
    fn since_epoch(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.now_ms()).unwrap_or(0))
    }
}

impl dynoxide::storage_backend::Clock for DatabaseClock {
    fn now_unix_secs(&self) -> u64 {
        self.since_epoch().as_secs()
    }

    fn now_unix_secs_f64(&self) -> f64 {
        self.since_epoch().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_manual_clock_share_one_time() {
        let clock = ManualClock::new(1_000);
        let other = clock.clone();
        clock.advance(500);
        assert_eq!(other.now_ms(), 1_500);
        other.set(10);
        assert_eq!(clock.now_ms(), 10);
    }

    #[test]
    fn the_database_reads_the_same_clock_in_seconds() {
        use dynoxide::storage_backend::Clock as _;
        let clock = ManualClock::new(1_999);
        let lent = DatabaseClock(Arc::new(clock.clone()));
        assert_eq!(lent.now_unix_secs(), 1);
        clock.set(-5);
        assert_eq!(lent.now_unix_secs(), 0);
    }
}
