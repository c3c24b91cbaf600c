//! Each endpoint's keys: parsed once where they are fixed, cached for a short life where they are fetched.
//!
//! What it promises:
//!
//! - One endpoint's mistake stops no other. A missing or unusable secret is an error line and a 500 for its own endpoint,
//!   a secret that cannot be reached now a 503: both are tried again by the provider, as a 401 would not be.
//! - Where one of several secrets is missing, the others serve; a request that matches none of them may be signed with
//!   the missing one, so it is a 500 too, until that one's last moment.
//! - A rotated secret is noticed at once: where nothing matches, fetched keys are fetched anew, at most once in
//!   [`REFRESH_MS`] per endpoint, so that forged requests cannot hammer Secrets Manager or a key server.
//! - Keys that were good stay in use while their source is down, for [`MAX_STALE_MS`] at most.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::profile::{Profile, Profiles, SecretPlace, SecretRef};
use futures_util::future::join_all;
use signature::{Recipe, Secret, Verifier};
use tokio::sync::Mutex;

use crate::fetch::{FetchError, KeyFetch, NoFetch, PREVIOUS};

/// How long fetched keys are used before they are fetched again, unless set otherwise.
pub const DEFAULT_LIFE_MS: i64 = 300_000;
/// The least time between two fetches for one endpoint.
pub const REFRESH_MS: i64 = 10_000;
/// How long fetched keys are used while they cannot be fetched again.
pub const MAX_STALE_MS: i64 = 24 * 3_600_000;

/// Why an endpoint cannot verify anything now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Somebody must repair it.
    NotConfigured,
    /// Its keys cannot be reached.
    Unavailable,
}

/// The keys of all endpoints.
#[derive(Debug)]
pub(crate) struct Keyring {
    slots: BTreeMap<String, Slot>,
    /// By slug, the last Unix seconds of the secrets that are not there; `None` is for ever.
    missing: BTreeMap<String, Vec<Option<i64>>>,
    fetch: Arc<dyn KeyFetch>,
    life_ms: i64,
}

#[derive(Debug)]
enum Slot {
    /// Every secret is in the environment.
    Fixed(Option<Arc<Verifier>>),
    /// Some are fetched.
    Fetched(Box<Fetched>),
}

#[derive(Debug)]
struct Fetched {
    slug: String,
    recipe: Recipe,
    sources: Vec<(SecretRef, Source)>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum Source {
    Value(String),
    Place(SecretPlace),
}

#[derive(Debug, Default)]
struct State {
    verifier: Option<Arc<Verifier>>,
    /// When `verifier` was fetched.
    loaded_ms: Option<i64>,
    /// When it was last tried.
    tried_ms: Option<i64>,
    /// What the last try ended in.
    trouble: Option<Unusable>,
}

impl Keyring {
    /// Reads the environment through `variable` and parses what is there; each mistake is one error line.
    pub(crate) fn new(profiles: &Profiles, now_ms: i64, variable: impl Fn(&str) -> Option<String>) -> Self {
        let (mut slots, mut missing) = (BTreeMap::new(), BTreeMap::new());
        for profile in profiles.iter() {
            let (sources, lacking) = sources(profile, &variable);
            // Where none is there, one line says so of the whole endpoint.
            for secret in lacking.iter().filter(|secret| !sources.is_empty() && tried(secret.not_after_s, now_ms)) {
                let variable = secret.place.variable();
                tracing::error!(provider = %profile.slug, secret = %secret.id, variable, "a secret is missing");
            }
            slots.insert(profile.slug.to_string(), slot(profile, sources));
            missing.insert(profile.slug.to_string(), lacking.iter().map(|secret| secret.not_after_s).collect());
        }
        Self { slots, missing, fetch: Arc::new(NoFetch), life_ms: DEFAULT_LIFE_MS }
    }

    pub(crate) fn set_fetch(&mut self, fetch: Arc<dyn KeyFetch>) {
        self.fetch = fetch;
    }

    pub(crate) fn set_life_ms(&mut self, life_ms: i64) {
        self.life_ms = life_ms;
    }

    /// Fetches what is to be fetched, so that a mistake is told when the process starts and not with the first delivery.
    pub(crate) async fn warm(&self, now_ms: i64) {
        join_all(self.slots.keys().map(|slug| self.verifier(slug, now_ms))).await;
    }

    /// The endpoint's keys as they are known now.
    pub(crate) async fn verifier(&self, slug: &str, now_ms: i64) -> Result<Arc<Verifier>, Unusable> {
        let fetched = match self.slots.get(slug) {
            Some(Slot::Fetched(fetched)) => fetched,
            Some(Slot::Fixed(Some(verifier))) => return Ok(verifier.clone()),
            Some(Slot::Fixed(None)) | None => return Err(Unusable::NotConfigured),
        };
        let mut state = fetched.state.lock().await;
        let age = state.loaded_ms.map(|loaded| now_ms - loaded);
        if age.is_none_or(|age| age >= self.life_ms) && due(&state, now_ms) {
            fetched.load(&mut state, self.fetch.as_ref(), now_ms).await;
        }
        let age = state.loaded_ms.map(|loaded| now_ms - loaded);
        match &state.verifier {
            Some(verifier) if age.is_some_and(|age| age <= MAX_STALE_MS) => Ok(verifier.clone()),
            _ => Err(state.trouble.unwrap_or(Unusable::Unavailable)),
        }
    }

    /// Whether a secret is missing that would be tried at this time, so that a request that matches none of the others
    /// cannot be called forged.
    pub(crate) fn incomplete(&self, slug: &str, now_ms: i64) -> bool {
        self.missing.get(slug).is_some_and(|missing| missing.iter().any(|&last_s| tried(last_s, now_ms)))
    }

    /// After `used` matched nothing: keys that are newer, if there are any. An error where the last fetch failed, since
    /// then nobody can say that the request is not genuine.
    pub(crate) async fn newer(
        &self, slug: &str, used: &Arc<Verifier>, now_ms: i64,
    ) -> Result<Option<Arc<Verifier>>, Unusable> {
        let Some(Slot::Fetched(fetched)) = self.slots.get(slug) else { return Ok(None) };
        let mut state = fetched.state.lock().await;
        let same = state.verifier.as_ref().is_some_and(|known| Arc::ptr_eq(known, used));
        if same && due(&state, now_ms) {
            fetched.load(&mut state, self.fetch.as_ref(), now_ms).await;
        }
        match (state.trouble, &state.verifier) {
            (Some(trouble), _) => Err(trouble),
            (None, Some(known)) if !Arc::ptr_eq(known, used) => Ok(Some(known.clone())),
            _ => Ok(None),
        }
    }
}

/// Whether another fetch is allowed; a clock that went back does not forbid it for ever.
fn due(state: &State, now_ms: i64) -> bool {
    state.tried_ms.is_none_or(|tried| now_ms.abs_diff(tried) >= REFRESH_MS.unsigned_abs())
}

/// Whether a secret with this last moment is tried now.
fn tried(not_after_s: Option<i64>, now_ms: i64) -> bool {
    not_after_s.is_none_or(|last_s| last_s >= now_ms.div_euclid(1000))
}

type Sources = Vec<(SecretRef, Source)>;

/// Where each secret of a profile comes from, and those that are not there.
fn sources<'a>(profile: &'a Profile, variable: &impl Fn(&str) -> Option<String>) -> (Sources, Vec<&'a SecretRef>) {
    let (mut sources, mut missing) = (Vec::new(), Vec::new());
    for secret in &profile.secrets {
        let source = match &secret.place {
            SecretPlace::Env(name) => variable(name).and_then(|value| match SecretPlace::reference(&value) {
                Some(place) => Some(Source::Place(place)),
                None if SecretPlace::refers(&value) => {
                    tracing::error!(provider = %profile.slug, secret = %secret.id, "the reference is malformed");
                    None
                }
                None => Some(Source::Value(value)),
            }),
            place => Some(Source::Place(place.clone())),
        };
        match source {
            Some(source) => sources.push((secret.clone(), source)),
            None => missing.push(secret),
        }
    }
    (sources, missing)
}

fn slot(profile: &Profile, sources: Sources) -> Slot {
    if sources.iter().any(|(_, source)| matches!(source, Source::Place(_))) {
        let (slug, recipe) = (profile.slug.to_string(), profile.recipe.clone());
        return Slot::Fetched(Box::new(Fetched { slug, recipe, sources, state: Mutex::default() }));
    }
    let verifier = if sources.is_empty() {
        Err(format!("none of its secrets is set: {}", profile.secret_variables().join(", ")))
    } else {
        let secrets = sources.iter().filter_map(|(secret, source)| match source {
            Source::Value(value) => Some(named(secret, "", value)),
            Source::Place(_) => None,
        });
        Verifier::new(profile.recipe.clone(), secrets.collect()).map_err(|error| error.to_string())
    };
    if let Err(problem) = &verifier {
        tracing::error!(provider = %profile.slug, %problem, "endpoint is not configured");
    }
    Slot::Fixed(verifier.ok().map(Arc::new))
}

/// A secret under its public name, with what the profile says of it.
fn named(secret: &SecretRef, version: &str, value: &str) -> Secret {
    let id = if version.is_empty() { secret.id.clone() } else { format!("{}@{version}", secret.id) };
    let mut named = Secret::new(id, value);
    if let Some(not_after_s) = secret.not_after_s {
        named = named.with_not_after(not_after_s);
    }
    match &secret.public_key {
        Some(public_key) => named.with_public_key(public_key),
        None => named,
    }
}

impl Fetched {
    async fn load(&self, state: &mut State, fetch: &dyn KeyFetch, now_ms: i64) {
        state.tried_ms = Some(now_ms);
        match self.fetch_all(fetch).await {
            Ok(verifier) => {
                state.verifier = Some(Arc::new(verifier));
                state.loaded_ms = Some(now_ms);
                state.trouble = None;
            }
            Err((secret, problem, trouble)) => {
                tracing::error!(provider = %self.slug, %secret, %problem, "keys were not fetched");
                state.trouble = Some(trouble);
            }
        }
    }

    async fn fetch_all(&self, fetch: &dyn KeyFetch) -> Result<Verifier, (String, String, Unusable)> {
        let mut secrets = Vec::new();
        let fetches = self.sources.iter().map(|(secret, source)| async move {
            match source {
                Source::Value(value) => (secret, Ok(vec![("", value.clone())])),
                Source::Place(place) => {
                    let values = fetch.fetch(place).await;
                    (secret, values.map(|values| values.into_iter().map(|v| (v.version, v.value)).collect()))
                }
            }
        });
        for (secret, values) in join_all(fetches).await {
            let values: Vec<(&str, String)> = values.map_err(|error| {
                let trouble = match error {
                    FetchError::Unavailable(_) => Unusable::Unavailable,
                    FetchError::Refused(_) => Unusable::NotConfigured,
                };
                (secret.id.clone(), error.to_string(), trouble)
            })?;
            for (version, value) in values {
                let named = named(secret, version, &value);
                let usable = Verifier::new(self.recipe.clone(), vec![named.clone()]);
                match usable {
                    Ok(_) => secrets.push(named),
                    Err(error) if version == PREVIOUS => {
                        tracing::warn!(provider = %self.slug, %error, "the version before the last rotation is left out");
                    }
                    Err(error) => return Err((secret.id.clone(), error.to_string(), Unusable::NotConfigured)),
                }
            }
        }
        Verifier::new(self.recipe.clone(), secrets)
            .map_err(|error| (String::new(), error.to_string(), Unusable::NotConfigured))
    }
}
