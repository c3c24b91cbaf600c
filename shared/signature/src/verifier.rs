//! A recipe with its keys: built once, used for every request.

use crate::key::NamedKey;
use crate::recipe::{Kind, Recipe};
use crate::rejection::{Rejection, SignError, Verified};
use crate::request::Request;
use crate::schemes::{Bench, adyen, braintree, gitlab_token, mailgun, signed, twilio};
use crate::secret::{ConfigError, Secret};

/// Verifies (and signs) for one endpoint. `Debug` shows ids, never keys.
#[derive(Debug)]
pub struct Verifier {
    pub(crate) recipe: Recipe,
    pub(crate) keys: Vec<NamedKey>,
}

impl Verifier {
    /// Parses every key once.
    ///
    /// # Errors
    /// No secret, or one that is empty, has whitespace, the wrong prefix or cannot be decoded. Until it is repaired,
    /// answer requests with 500 (the provider tries again), never with 401.
    pub fn new(recipe: Recipe, secrets: Vec<Secret>) -> Result<Self, ConfigError> {
        let form = recipe.key_form();
        let mut keys = Vec::new();
        for secret in &secrets {
            keys.extend(NamedKey::parse(secret, form)?);
        }
        if keys.is_empty() {
            return Err(ConfigError::NoSecret { scheme: recipe.name });
        }
        Ok(Self { recipe, keys })
    }

    /// The recipe.
    #[must_use]
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Sets the accepted age of the signed timestamp in seconds, both ways and inclusive; `None` checks no age.
    pub fn set_tolerance(&mut self, tolerance_s: Option<u32>) {
        self.recipe.tolerance_s = tolerance_s;
    }

    /// Verifies one request against the clock `now_ms` (Unix milliseconds; the gateway's arrival time, not the time at
    /// which a queued job runs).
    ///
    /// # Errors
    /// The reason, for the operator. Answer 401 without it, or 500 where [`Rejection::is_configuration`].
    pub fn verify(&self, req: &Request<'_>, now_ms: i64) -> Result<Verified, Rejection> {
        let keys = self.live(now_ms);
        if keys.is_empty() {
            return Err(Rejection::BadSecret);
        }
        let bench = Bench { keys: &keys, now_ms, tolerance_s: self.recipe.tolerance_s };
        match &self.recipe.kind {
            Kind::Signed(recipe) => signed::verify(&self.recipe, recipe, bench, req),
            Kind::Twilio => twilio::verify(bench, req),
            Kind::Adyen => adyen::verify(bench, req),
            Kind::Mailgun => mailgun::verify(bench, req),
            Kind::Braintree => braintree::verify(bench, req),
            Kind::GitlabToken => gitlab_token::verify(bench, req),
        }
    }

    /// The headers that the provider would add to this request, signed with the first live secret that can sign.
    /// `id` becomes the delivery's id where the scheme has a header for it. A timestamp that lives in the body (Linear)
    /// is the body's own affair.
    ///
    /// # Errors
    /// See [`SignError`]; schemes that sign inside the body add no header.
    pub fn sign(&self, id: &str, now_ms: i64, req: &Request<'_>) -> Result<Vec<(String, String)>, SignError> {
        let keys = self.live(now_ms);
        if keys.is_empty() {
            return Err(SignError::Expired);
        }
        let bench = Bench { keys: &keys, now_ms, tolerance_s: None };
        match &self.recipe.kind {
            Kind::Signed(recipe) => signed::sign(&self.recipe, recipe, bench, id, req),
            Kind::Twilio => twilio::sign(bench, req),
            Kind::GitlabToken => gitlab_token::sign(bench, id),
            Kind::Adyen | Kind::Mailgun | Kind::Braintree => Err(SignError::InBody(self.recipe.name.clone())),
        }
    }

    /// The keys that are not past their not-after.
    pub(crate) fn live(&self, now_ms: i64) -> Vec<&NamedKey> {
        self.keys.iter().filter(|key| key.is_live(now_ms)).collect()
    }
}
