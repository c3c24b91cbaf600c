//! What each run sees of the system's health on its way, for the alarms: how far behind the relay is, how long the
//! oldest operation that came due has waited, how many reviews are open and for how long.

use domain::limits::BUCKET_MS;
use runtime::App;
use store::StoreError;

/// Open reviews of a shard that are counted; more than that is more than anyone needs to know to act.
const REVIEWS_PER_SHARD: usize = 1_000;

/// Seconds and counts; absent where nothing was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Health {
    /// From the first receipts that are not examined to now; two to three minutes when all is well.
    pub lag_s: Option<i64>,
    /// How long the oldest operation that this run sent has waited; nothing where none was sent.
    pub oldest_waiting_s: Option<i64>,
    /// Open reviews; at most 1,000 of each shard are counted.
    pub reviews_open: usize,
    /// The age of the oldest of them.
    pub oldest_review_s: Option<i64>,
}

impl Health {
    /// Adds what another shard saw.
    pub(crate) fn add(&mut self, other: Self) {
        self.lag_s = self.lag_s.max(other.lag_s);
        self.oldest_waiting_s = self.oldest_waiting_s.max(other.oldest_waiting_s);
        self.reviews_open += other.reviews_open;
        self.oldest_review_s = self.oldest_review_s.max(other.oldest_review_s);
    }

    /// An operation that has waited since then was sent.
    pub(crate) fn waits_since(&mut self, since_ms: i64, now_ms: i64) {
        self.oldest_waiting_s = self.oldest_waiting_s.max(Some(age_s(since_ms, now_ms)));
    }

    /// The sweep of receipts stands at this minute.
    pub(crate) fn stands_at(&mut self, minute: i64, now_ms: i64) {
        self.lag_s = Some(age_s(minute * BUCKET_MS, now_ms));
    }

    /// Looks at a shard's open reviews.
    pub(crate) async fn look(&mut self, app: &App, shard: u32) -> Result<(), StoreError> {
        let now_ms = app.clock.now_ms();
        let reviews = app.store.open_reviews(shard, REVIEWS_PER_SHARD).await?;
        self.reviews_open = reviews.len();
        self.oldest_review_s = reviews.iter().map(|review| age_s(review.since_ms, now_ms)).max();
        Ok(())
    }
}

fn age_s(since_ms: i64, now_ms: i64) -> i64 {
    (now_ms - since_ms).max(0) / 1_000
}
