//! Randomness, passed in: claim tokens and jitter. Nothing secret is made of it.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

/// Gives random numbers.
pub trait Random: Send + Sync + Debug {
    /// Any 64 bits.
    fn next_u64(&self) -> u64;

    /// A token that no other writer has: 128 bits in hex.
    fn token(&self) -> String {
        format!("{:016x}{:016x}", self.next_u64(), self.next_u64())
    }
}

/// A generator behind a lock; seeded from the system, or by a test.
#[derive(Debug)]
pub struct SharedRandom(Mutex<fastrand::Rng>);

impl SharedRandom {
    /// Seeded from the system.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where the machine is asked")]
    pub fn from_system() -> Self {
        Self(Mutex::new(fastrand::Rng::new()))
    }

    /// The same sequence for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Random for SharedRandom {
    fn next_u64(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).u64(..)
    }
}
