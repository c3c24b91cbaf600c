//! The receiver: profile, size, signature over the exact bytes, parse, identity, one look-up, the
//! durable receipt, one message per planned operation, and only then the answer.
//!
//! A 2xx is given only after the receipt is durable. Nothing is spawned past the response.

mod answer;
mod aws_keys;
mod duplicate;
pub mod fetch;
mod keyring;
mod rejections;

use std::pin::Pin;
use std::sync::Arc;

use domain::envelope::{Intake, Lookup, read};
use domain::job::JobRef;
use domain::limits::{MAX_BODY_BYTES, SIDE_BY_SIDE};
use domain::profile::Profile;
use domain::receipt::Receipt;
use domain::rejected::Rejected;
use futures_util::future::join_all;
use runtime::App;
use runtime::dispatch::message;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use signature::{Headers, Rejection, Request, Verified, Verifier};
use store::{ReceiptPut, StoreError};

use crate::rejections::Rejections;
pub use aws_keys::AwsKeys;
use fetch::KeyFetch;
use keyring::Keyring;
pub use keyring::{DEFAULT_LIFE_MS, MAX_STALE_MS, REFRESH_MS};

/// The receiver with its keys parsed once.
#[derive(Debug)]
pub struct Receiver {
    app: App,
    keys: Keyring,
    judge_at_ms: Option<i64>,
    base_url: Option<String>,
    rejections: Rejections,
}

impl Receiver {
    /// Parses every profile's secrets, read by name through `secret`. A mistake is logged here, and
    /// requests for that endpoint get 500 so that the provider tries again (never 401).
    pub fn new(app: App, secret: impl Fn(&str) -> Option<String>) -> Self {
        let keys = Keyring::new(&app.profiles, app.clock.now_ms(), secret);
        Self { app, keys, judge_at_ms: None, base_url: None, rejections: Rejections::default() }
    }

    /// Fetches keys that are not in the environment, and uses them for so long before it fetches them again.
    #[must_use]
    pub fn fetching(mut self, fetch: Arc<dyn KeyFetch>, life_ms: i64) -> Self {
        self.keys.set_fetch(fetch);
        self.keys.set_life_ms(life_ms);
        self
    }

    /// Fetches keys before the first delivery, so that a mistake is told at start.
    pub async fn warm(&self) {
        self.keys.warm(self.app.clock.now_ms()).await;
    }

    /// Judges signatures by a fixed clock, for published deliveries.
    #[must_use]
    pub fn judging_at(mut self, now_ms: Option<i64>) -> Self {
        self.judge_at_ms = now_ms;
        self
    }

    /// The public base URL for schemes that sign the URL.
    #[must_use]
    pub fn with_base_url(mut self, base_url: Option<String>) -> Self {
        self.base_url = base_url;
        self
    }

    /// Handles one delivery.
    pub async fn handle(&self, event: &GatewayEvent) -> GatewayResponse {
        // Boxed, so that a caller's future stays small.
        let receive: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(self.receive(event));
        match receive.await {
            Ok(response) => response,
            // RFC 9110, 15.5.6: a 405 names what is allowed.
            Err(problem) if problem.status == 405 => problem.response().with_header("allow", "POST"),
            Err(problem) => problem.response(),
        }
    }

    async fn receive(&self, event: &GatewayEvent) -> Result<GatewayResponse, Problem> {
        let profile = self.endpoint(event)?;
        let body = match event.body_bytes() {
            Ok(body) => body,
            Err(error) => {
                let bytes = event.body.as_ref().map_or(0, String::len);
                self.refused(profile, event, (400, "bad-base64"), bytes).await;
                return Err(Problem::bad_request(error.to_string()));
            }
        };
        if body.len() > MAX_BODY_BYTES {
            self.refused(profile, event, (413, "too-large"), body.len()).await;
            let detail = format!("the body has {} bytes; at most {MAX_BODY_BYTES} are taken", body.len());
            return Err(Problem::new(413, "too-large", "The body is too large", detail));
        }
        let headers = Headers::new(event.headers.iter());
        let arrival_ms = self.arrival_ms(event);
        let url = self.base_url.as_ref().map(|base| full_url(base, event));
        let request =
            Request { method: &event.request_context.http.method, url: url.as_deref(), headers: &headers, body: &body };
        let now_ms = self.judge_at_ms.unwrap_or(arrival_ms);
        let (verifier, verified) = match self.verify(profile, &request, now_ms).await? {
            Ok(verified) => verified,
            Err(rejection) => {
                self.refused(profile, event, (401, rejection.as_str()), body.len()).await;
                return Err(answer::rejected());
            }
        };
        if let Some(reply) = verifier.challenge_reply(&body, now_ms) {
            return Ok(answer::challenge(reply));
        }
        if domain::planted::on("body-in-a-log-line") {
            tracing::info!(body = %String::from_utf8_lossy(&body), "received"); // PLANTED
        }
        let intake = self.take_in(profile, &headers, &body, &verified).await?;
        self.record(profile, intake, &verified, arrival_ms, event.trace()).await
    }

    /// Counts a refused delivery in the log and keeps what its owner may see of it. What is asked of no
    /// configured endpoint (404) is not kept: anybody can make up names.
    async fn refused(&self, profile: &Profile, event: &GatewayEvent, answer: (u16, &str), bytes: usize) {
        let (status, reason) = answer;
        tracing::warn!(provider = %profile.slug, outcome = "rejected", status, reason, bytes, "delivery");
        let source = &event.request_context.http.source_ip;
        let rejected = Rejected::new(self.arrival_ms(event), status, reason, source, bytes);
        self.rejections.keep(&self.app, &profile.slug, rejected.with_headers(&event.headers)).await;
    }

    /// When the gateway took the delivery, Unix milliseconds.
    fn arrival_ms(&self, event: &GatewayEvent) -> i64 {
        match event.request_context.time_epoch {
            0 => self.app.clock.now_ms(),
            arrival => arrival,
        }
    }

    /// Verifies with the keys as they are known, and once more where newer ones turn up.
    async fn verify(
        &self, profile: &Profile, request: &Request<'_>, now_ms: i64,
    ) -> Result<Result<(Arc<Verifier>, Verified), Rejection>, Problem> {
        let (slug, clock_ms) = (profile.slug.as_str(), self.app.clock.now_ms());
        let unusable = |unusable| answer::unusable(profile, unusable);
        let verifier = self.keys.verifier(slug, clock_ms).await.map_err(unusable)?;
        let rejection = match verifier.verify(request, now_ms) {
            Ok(verified) => return Ok(Ok((verifier, verified))),
            Err(rejection) => rejection,
        };
        // Only these three can be a matter of the keys.
        let of_keys = matches!(rejection, Rejection::WrongSecretOrBody | Rejection::UnknownKey | Rejection::BadSecret);
        if of_keys
            && let Some(newer) = self.keys.newer(slug, &verifier, clock_ms).await.map_err(unusable)?
            && let Ok(verified) = newer.verify(request, now_ms)
        {
            return Ok(Ok((newer, verified)));
        }
        if rejection.is_configuration() || (of_keys && self.keys.incomplete(slug, now_ms)) {
            return Err(answer::not_configured(profile));
        }
        Ok(Err(rejection))
    }

    /// The profile, by the last part of the path.
    fn endpoint(&self, event: &GatewayEvent) -> Result<&Profile, Problem> {
        let parts = event.path_parts().unwrap_or_default();
        let slug = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["webhooks", slug] => slug.to_owned(),
            _ => return Err(Problem::not_found("webhooks are taken at POST /webhooks/{provider}")),
        };
        let profile = self.app.profiles.get(&slug);
        let profile = profile.ok_or_else(|| Problem::not_found("no provider of this name is configured"))?;
        if event.request_context.http.method != "POST" {
            let detail = "webhooks are sent by POST";
            return Err(Problem::new(405, "method-not-allowed", "Use POST", detail));
        }
        Ok(profile)
    }

    /// Reads the event and completes it from the job that it names, if that is known already.
    async fn take_in(
        &self, profile: &Profile, headers: &Headers, body: &[u8], verified: &Verified,
    ) -> Result<Intake, Problem> {
        let mut intake = read(profile, headers, body, verified);
        let lookups = intake.lookups();
        for some in lookups.chunks(SIDE_BY_SIDE) {
            let found = join_all(some.iter().map(|(_, lookup)| self.look_up(profile, lookup))).await;
            for ((item, _), found) in some.iter().zip(found) {
                if let Some(job) = found.map_err(|error| unavailable(&error))?
                    && !domain::planted::on("mismatch-stored-as-planned")
                // PLANTED
                {
                    intake.resolve(profile, item, &job);
                }
            }
        }
        Ok(intake)
    }

    async fn look_up(&self, profile: &Profile, lookup: &Lookup) -> Result<Option<JobRef>, StoreError> {
        match lookup {
            Lookup::Reference(reference) => self.app.store.get_ref(&profile.slug, reference).await,
            Lookup::Job(tenant, job) => {
                self.app.store.get_job(tenant, job).await.map(|job| job.as_ref().map(JobRef::from))
            }
        }
    }

    /// Puts the receipt and dispatches its plan.
    async fn record(
        &self, profile: &Profile, intake: Intake, verified: &Verified, arrival_ms: i64, trace: Option<String>,
    ) -> Result<GatewayResponse, Problem> {
        let event = intake.event.clone();
        let receipt = Receipt {
            event: Some(event.clone()),
            event_type: intake.event_type,
            payload_hash: intake.payload_hash,
            envelope: intake.envelope,
            plan: intake.plan,
            items: intake.items,
            empty: intake.empty,
            note: intake.note,
            arrival_ms,
            first_sent_ms: intake.first_sent_ms,
            attempt: intake.attempt,
            id_signed: profile.id_signed,
            key_id: verified.key_id.clone(),
            claim_token: self.app.random.token(),
            trace,
        };
        match self.app.store.put_receipt(&event, &receipt).await {
            Ok(ReceiptPut::Stored) => {}
            Ok(ReceiptPut::Exists(stored)) => return duplicate::answer(&self.app, profile, &stored, &receipt).await,
            Err(_) if domain::planted::on("ack-before-the-put") => {} // PLANTED
            Err(error) => return Err(unavailable(&error)),
        }
        let operations = receipt.operations();
        let messages: Vec<_> = operations.into_iter().map(|key| message(&receipt, key, 0)).collect();
        let sent = self.app.dispatch(&messages).await;
        Ok(answer::received(profile, &receipt, messages.len(), sent, self.app.clock.now_ms()))
    }
}

fn full_url(base: &str, event: &GatewayEvent) -> String {
    let query = &event.raw_query_string;
    let path = format!("{}{}", base.trim_end_matches('/'), event.raw_path);
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

fn unavailable(error: &StoreError) -> Problem {
    tracing::error!(%error, outcome = "unavailable", "delivery");
    Problem::unavailable()
}
