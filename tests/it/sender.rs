//! Providers other than acme for the scenarios: a profile written in the test, a signer for it, and hooks that count
//! and fail the calls of one function.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::limits::{BUCKET_MS, SHARDS};
use local::clock::Clock;
use local::hook::{Call, CallHook, CallLog, CallRecord, Fault, HookDecision, Service};
use local::stack::Function;
use local::world::{Hooks, World, WorldConfig, answer};
use runtime::gateway::{GatewayEvent, path_part};
use runtime::lambda::PROVIDERS_TOML;
use serde_json::Value;
use signature::{Headers, Recipe, Request, Secret, Verifier};
use store::Cursor;

/// A secret in the form of Standard Webhooks; it protects nothing.
pub(crate) const WHSEC: &str = "whsec_dGVzdHMtb25seS1zZWNyZXQtb2YtYS1wcm92aWRlcg==";

/// acme's places and types, for a profile that differs from acme's in something else.
pub(crate) const LIKE_ACME: &str = r#"
event_type = "body:/type"
first_sent = { at = "body:/timestamp", unit = "rfc3339" }
fields = { tenant = "body:/data/tenant", job = "body:/data/job_id", ref = "body:/data/id", model = "body:/data/model", wallet = "body:/data/wallet", currency = "body:/data/currency", sequence = "body:/data/sequence", usage = "body:/data/usage" }
events."job.progress" = { operations = ["record-progress"] }
events."job.completed" = { outcome = "success", operations = ["complete-job", "settle-usage"] }
"#;

/// The profile `[providers.slug]` with its secret in the variable `SLUG_SECRET`; `more` holds the id, the type and
/// whatever else it takes.
pub(crate) fn profile(slug: &str, scheme: &str, more: &str) -> String {
    profile_of(slug, scheme, r#"["*"]"#, &format!("[{:?}]", secret_name(slug)), more)
}

/// [`profile`] with its `tenants` and `secrets`.
pub(crate) fn profile_of(slug: &str, scheme: &str, tenants: &str, secrets: &str, more: &str) -> String {
    format!(
        "[providers.{slug}]\nowner = \"tests\"\nsignature = {{ scheme = \"{scheme}\" }}\nsecrets = {secrets}\n\
         retry_window_hours = 72\ntenants = {tenants}\n{more}\n"
    )
}

fn secret_name(slug: &str) -> String {
    format!("{}_SECRET", slug.to_uppercase().replace('-', "_"))
}

/// A world that knows these profiles beside the shipped ones, with these secrets by slug.
pub(crate) fn config(profiles: &[String], secrets: &[(&str, &str)]) -> WorldConfig {
    let providers = format!("{PROVIDERS_TOML}\n{}", profiles.join("\n"));
    let mut config = WorldConfig { providers, ..WorldConfig::default() };
    config.secrets.extend(secrets.iter().map(|(slug, value)| (secret_name(slug), (*value).to_owned())));
    config
}

/// [`config`], built.
pub(crate) async fn world_with(profiles: &[String], secrets: &[(&str, &str)]) -> World {
    World::new(config(profiles, secrets)).await.unwrap()
}

/// One provider that signs by a scheme known by name.
pub(crate) struct Sender {
    slug: String,
    verifier: Verifier,
}

impl Sender {
    pub(crate) fn new(slug: &str, scheme: &str, secret: &str) -> Self {
        let verifier = Verifier::new(Recipe::named(scheme).unwrap(), vec![Secret::new("sender", secret)]).unwrap();
        Self { slug: slug.to_owned(), verifier }
    }

    /// The headers for `body` as event `id`, signed for the world's present time.
    pub(crate) fn headers(&self, world: &World, id: &str, body: &[u8]) -> Vec<(String, String)> {
        let headers = Headers::default();
        let request = Request { method: "POST", url: None, headers: &headers, body };
        self.verifier.sign(id, world.clock.now_ms(), &request).unwrap()
    }

    /// `body` as event `id`, signed now, handed on in base64 as the gateway does with binary bodies.
    pub(crate) fn event(&self, world: &World, id: &str, body: impl AsRef<[u8]>) -> GatewayEvent {
        let headers = self.headers(world, id, body.as_ref());
        binary(world, &self.slug, headers, body.as_ref())
    }

    /// Sends `body` as event `id`; the status and the answer's `status` member or code.
    pub(crate) async fn send(&self, world: &World, id: &str, body: impl AsRef<[u8]>) -> (u16, String) {
        deliver(world, &self.event(world, id, body)).await
    }
}

/// A POST of exact bytes to `/webhooks/slug`.
pub(crate) fn binary(world: &World, slug: &str, headers: Vec<(String, String)>, body: &[u8]) -> GatewayEvent {
    let encoded = STANDARD.encode(body);
    let event = world.event("POST", &format!("/webhooks/{slug}"), headers, Some(&encoded));
    GatewayEvent { is_base64_encoded: true, ..event }
}

/// Delivers; the status and the answer's `status` member or code.
pub(crate) async fn deliver(world: &World, event: &GatewayEvent) -> (u16, String) {
    answer(&world.stack.webhook(event).await)
}

/// What `deliver` gives.
pub(crate) fn said(status: u16, name: &str) -> (u16, String) {
    (status, name.to_owned())
}

/// The event as the control API shows it, with its status code; `id` is in the text form that answers name.
pub(crate) async fn explain(world: &World, provider: &str, id: &str) -> (u16, Value) {
    world.control("GET", &format!("/control/events/{provider}/{}", path_part(id)), None).await
}

/// Saves the relay's cursors at the present minute: else its first run looks a whole day back, minute by minute.
pub(crate) async fn relay_begins_now(world: &World) {
    for shard in 0..SHARDS {
        world.stack.app.store.advance_cursor(Cursor::Receipts, shard, world.clock.now_ms() / BUCKET_MS).await.unwrap();
    }
}

/// Counts one function's calls.
pub(crate) fn counting(config: &WorldConfig, function: Function) -> Arc<CallLog> {
    let calls = Arc::new(CallLog::default());
    config.hooks.add(function, calls.clone());
    calls
}

/// The writes that a service applied.
pub(crate) fn applied_writes(calls: &[CallRecord]) -> Vec<&str> {
    let reads = ["GetItem", "Query", "BatchGetItem", "TransactGetItems", "Scan", "GetQueueUrl"];
    let applied = calls.iter().filter(|c| c.status == Some(200) && !reads.contains(&c.operation.as_str()));
    applied.map(|c| c.operation.as_str()).collect()
}

/// The names of the calls, sorted.
pub(crate) fn names(calls: &[CallRecord]) -> Vec<&str> {
    let mut names: Vec<&str> = calls.iter().map(|c| c.operation.as_str()).collect();
    names.sort_unstable();
    names
}

/// A fault on every call of one operation (or of a whole service) while it is switched on.
#[derive(Debug)]
pub(crate) struct Trouble {
    service: Service,
    operation: Option<&'static str>,
    decision: HookDecision,
    on: AtomicBool,
}

impl Trouble {
    /// The service answers 500 and applies nothing.
    pub(crate) fn down(
        hooks: &Hooks, function: Function, service: Service, operation: Option<&'static str>,
    ) -> Arc<Self> {
        Self::failing(hooks, function, service, operation, Fault::internal_server_error(service))
    }

    /// The caller sees this fault and nothing is applied.
    pub(crate) fn failing(
        hooks: &Hooks, function: Function, service: Service, operation: Option<&'static str>, fault: Fault,
    ) -> Arc<Self> {
        let decision = HookDecision::FailBefore(fault);
        Self::add(hooks, function, Self { service, operation, decision, on: AtomicBool::new(true) })
    }

    /// The call is applied, its answer is lost; only once.
    pub(crate) fn lost_once(hooks: &Hooks, function: Function, operation: &'static str) -> Arc<Self> {
        let (service, decision) = (Service::DynamoDb, HookDecision::lost_answer());
        Self::add(hooks, function, Self { service, operation: Some(operation), decision, on: AtomicBool::new(true) })
    }

    fn add(hooks: &Hooks, function: Function, trouble: Self) -> Arc<Self> {
        let trouble = Arc::new(trouble);
        hooks.add(function, trouble.clone());
        trouble
    }

    pub(crate) fn begin(&self) {
        self.on.store(true, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.on.store(false, Ordering::SeqCst);
    }
}

impl CallHook for Trouble {
    fn on_call(&self, call: &Call) -> HookDecision {
        let concerns = call.service == self.service && self.operation.is_none_or(|name| call.operation == name);
        let on = match self.decision {
            HookDecision::FailAfter(_) if concerns => self.on.swap(false, Ordering::SeqCst),
            _ => self.on.load(Ordering::SeqCst),
        };
        if on && concerns { self.decision.clone() } else { HookDecision::Pass }
    }
}

/// One of Stripe's events of this time, signed with the secret and handed to the endpoint; the answer.
pub(crate) async fn stripe(
    world: &World, endpoint: (&str, &str), event: (&str, &str), created_s: i64, livemode: bool, object: &Value,
) -> (u16, String) {
    let ((slug, secret), (id, kind)) = (endpoint, event);
    let body = serde_json::json!({
        "id": id, "object": "event", "type": kind, "created": created_s, "livemode": livemode,
        "data": {"object": object},
    })
    .to_string();
    let signer = Verifier::new(Recipe::named("stripe").unwrap(), vec![Secret::new("test", secret)]).unwrap();
    let headers = Headers::default();
    let request = Request { method: "POST", url: None, headers: &headers, body: body.as_bytes() };
    let signed = signer.sign(id, world.stack.app.clock.now_ms(), &request).unwrap();
    let event = world.event("POST", &format!("/webhooks/{slug}"), signed, Some(&body));
    answer(&world.stack.webhook(&event).await)
}
