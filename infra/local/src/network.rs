//! What `dev` reaches over the network with the caller's own identity.

use std::sync::Arc;

use domain::profile::{Profiles, SecretPlace};
use receiver::AwsKeys;
use receiver::fetch::{KeyFetch, NoFetch};
use runtime::clients;

/// Fetches secrets over the network, with the AWS identity and region of the environment; only where a profile, or the
/// value of its environment variable, is a reference, since finding that identity may take seconds.
pub async fn network_keys(profiles: &Profiles, variable: impl Fn(&str) -> Option<String>) -> Arc<dyn KeyFetch> {
    let refers = |place: &SecretPlace| match place {
        SecretPlace::Env(name) => variable(name).is_some_and(|value| SecretPlace::reference(&value).is_some()),
        place => place.is_remote(),
    };
    if profiles.iter().flat_map(|profile| &profile.secrets).any(|secret| refers(&secret.place)) {
        Arc::new(AwsKeys::from_config(clients::caller_config().await))
    } else {
        Arc::new(NoFetch)
    }
}
