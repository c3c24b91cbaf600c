//! Everything a handler needs, passed in from outside.

use std::sync::Arc;
use std::time::Duration;

use domain::event::EventRef;
use domain::limits::RetryPolicy;
use domain::price::PriceBook;
use domain::profile::Profiles;
use queue::Queues;
use store::Store;

use crate::call::Caller;
use crate::clock::Clock;
use crate::destinations::Destinations;
use crate::random::Random;

/// The shared context of all handlers.
#[derive(Debug, Clone)]
pub struct App {
    /// The four tables.
    pub store: Store,
    /// The consumers' queues.
    pub queues: Queues,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Tokens and jitter.
    pub random: Arc<dyn Random>,
    /// The configured endpoints.
    pub profiles: Arc<Profiles>,
    /// The price book.
    pub prices: Arc<PriceBook>,
    /// Limits and waits of operations.
    pub policy: RetryPolicy,
    /// What effects leave by: addresses, secrets, client, gates; the outbound function has them, and the reconciler, which reads.
    pub destinations: Arc<Destinations>,
}

/// How often a conflict with another transaction is tried again within one invocation.
pub const CONFLICT_RETRIES: u32 = 3;
/// The longest wait before such a try.
const CONFLICT_PAUSE_MS: u64 = 100;

impl App {
    /// With a client that effects leave by, or are looked at, over HTTP; the outbound function and the reconciler have one.
    #[must_use]
    pub fn calling(self, caller: Arc<dyn Caller>) -> Self {
        Self { destinations: Arc::new(Destinations::clone(&self.destinations).calling(caller)), ..self }
    }

    /// A short wait with full jitter before another try within the same invocation.
    pub async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(self.random.next_u64() % CONFLICT_PAUSE_MS)).await;
    }

    /// The profile's business expiry for an event; a profile that is gone lets nothing expire.
    pub fn expire_after_ms(&self, event: &EventRef) -> i64 {
        self.profiles.get(event.provider.as_str()).map_or(i64::MAX, |p| p.expire_after_ms)
    }
}
