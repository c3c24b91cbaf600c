//! Where keys come from that are fetched while the receiver runs. The network is behind one trait, so that tests and
//! simulations pass a fake.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use domain::profile::SecretPlace;

/// One value of a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Which version it is, for the log: `AWSCURRENT`, `AWSPREVIOUS`; empty where there are no versions.
    pub version: &'static str,
    /// The value as stored.
    pub value: String,
}

impl Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetched").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The version that a rotation replaced; one that cannot be used spoils nothing.
pub const PREVIOUS: &str = "AWSPREVIOUS";

/// Why a secret could not be fetched. The texts are fixed words: never a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// It may be there in a moment: a delivery is answered 503.
    #[error("it cannot be reached now ({0}); it is tried again")]
    Unavailable(&'static str),
    /// Somebody must repair it: a delivery is answered 500.
    #[error("it cannot be used: {0}")]
    Refused(&'static str),
}

/// What a fetch gives.
pub type FetchFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<Fetched>, FetchError>> + Send + 'a>>;

/// Fetches the live values of a secret, newest first.
pub trait KeyFetch: Debug + Send + Sync {
    /// Fetches from Secrets Manager or a key set's address; bounded in time and size.
    fn fetch<'a>(&'a self, place: &'a SecretPlace) -> FetchFuture<'a>;
}

/// No network: every reference is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFetch;

impl KeyFetch for NoFetch {
    fn fetch<'a>(&'a self, _place: &'a SecretPlace) -> FetchFuture<'a> {
        Box::pin(async { Err(FetchError::Refused("secrets are not fetched here: set it in the environment")) })
    }
}
