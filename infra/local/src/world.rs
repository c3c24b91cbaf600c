//! A small world for drills, tests and the simulator: the whole stack in memory, a clock that stands
//! until it is moved, seeded randomness, and a provider that signs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::limits::{BUCKET_MS, EXPIRY_BUCKET_MS, RetryPolicy, SHARDS};
use domain::price::PriceBook;
use domain::profile::Profiles;
use receiver::fetch::{KeyFetch, NoFetch};
use runtime::call::{Caller, NoCaller};
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::lambda::{PRICES_TOML, PROVIDERS_TOML};
use runtime::random::SharedRandom;
use serde_json::{Value, json};
use signature::{Headers, Recipe, Request, Secret, Verifier};
use store::Cursor;

use crate::aws::{EmbeddedAws, OpenError};
use crate::clock::{Clock, ManualClock};
use crate::hook::CallHook;
use crate::provider::ProviderSimulator;
use crate::provider_list::{LIST_URL, SimulatorFetch};
use crate::stack::{Function, Stack, StackConfig, StackError};
use crate::usage::Usage;

/// acme's secret in every world; it protects nothing.
pub const ACME_SECRET: &str = "whsec_d29ybGQtb25seS1zZWNyZXQtb2YtYWNtZQ==";
/// When a world begins: 2026-11-29T12:00:00Z.
pub const BEGINS_MS: i64 = 1_795_953_600_000;
/// Rounds after which a world that does not come to rest is given up.
const MAX_ROUNDS: usize = 2_000;
/// One relay interval.
const MINUTE_MS: i64 = 60_000;

/// Why a world does not work.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The embedded AWS.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The stack.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A file that ships with the project is refused.
    #[error("{0}")]
    Configuration(String),
}

/// Hooks on each function's AWS calls, which may be added while the world runs.
#[derive(Debug, Clone, Default)]
pub struct Hooks(Arc<Mutex<HookList>>);

type HookList = Vec<(Function, Arc<dyn CallHook>)>;

impl Hooks {
    /// Adds a hook on one function's calls; takes effect for worlds built afterwards.
    pub fn add(&self, function: Function, hook: Arc<dyn CallHook>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((function, hook));
    }

    fn of(&self, function: Function) -> Vec<Arc<dyn CallHook>> {
        // What is handed to a handler by hand goes through the onlooker's client, and meets the same hooks.
        let function = if function == Function::Onlooker { Function::Control } else { function };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(name, _)| *name == function).map(|(_, hook)| hook.clone()).collect()
    }
}

/// The stack in memory with everything that drives it.
pub struct World {
    /// The embedded AWS: its database, queues and hooks.
    pub aws: EmbeddedAws,
    /// The one clock of handlers, queues and database.
    pub clock: ManualClock,
    /// The wired system.
    pub stack: Arc<Stack>,
    /// acme's own side: what it knows of its jobs, delivered or not. Nothing steps it.
    pub provider: Arc<ProviderSimulator>,
    signer: Verifier,
}

/// What a world is made with.
#[derive(Clone)]
pub struct WorldConfig {
    /// Seeds tokens, jitter and message ids.
    pub seed: u64,
    /// Provider profiles as TOML.
    pub providers: String,
    /// Prices as TOML.
    pub prices: String,
    /// Secrets by environment variable name.
    pub secrets: BTreeMap<String, String>,
    /// Limits and waits.
    pub policy: RetryPolicy,
    /// Addresses that events are forwarded to, and the secrets of HTTP destinations, by environment variable name.
    pub addresses: BTreeMap<String, String>,
    /// Hooks on each function's AWS calls.
    pub hooks: Hooks,
    /// Sends to HTTP destinations.
    pub caller: Arc<dyn Caller>,
    /// Where secrets come from that are not in `secrets`.
    pub keys: Arc<dyn KeyFetch>,
    /// The clock that signatures are judged by, Unix milliseconds; `None` is the time of arrival.
    pub judge_at_ms: Option<i64>,
    /// The public base URL, for schemes that sign the URL.
    pub base_url: Option<String>,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            providers: PROVIDERS_TOML.to_owned(),
            prices: PRICES_TOML.to_owned(),
            secrets: BTreeMap::from(
                [("ACME_WEBHOOK_SECRET", ACME_SECRET), ("ACME_LIST_URL", LIST_URL)]
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
            ),
            policy: RetryPolicy::default(),
            addresses: BTreeMap::new(),
            hooks: Hooks::default(),
            caller: Arc::new(NoCaller),
            keys: Arc::new(NoFetch),
            judge_at_ms: None,
            base_url: None,
        }
    }
}

impl World {
    /// A fresh world.
    ///
    /// # Errors
    /// [`WorldError`].
    pub async fn new(config: WorldConfig) -> Result<Self, WorldError> {
        let clock = ManualClock::new(BEGINS_MS);
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let aws = EmbeddedAws::memory_seeded(shared.clone(), config.seed)?;
        let refused = |error: &dyn std::fmt::Display| WorldError::Configuration(error.to_string());
        let (secrets, hooks, addresses, usage) = (config.secrets, config.hooks, config.addresses, Usage::default());
        let recipe = Recipe::named("standard-webhooks").ok_or_else(|| refused(&"no standard-webhooks recipe"))?;
        let signer = || {
            let secret = vec![Secret::new("world", ACME_SECRET)];
            Verifier::new(recipe.clone(), secret).map_err(|e| refused(&e))
        };
        let provider = ProviderSimulator::open(BTreeMap::from([("acme".to_owned(), signer()?)]), None);
        let provider = Arc::new(provider.map_err(|e| refused(&e))?);
        let stack_config = StackConfig {
            clock: shared,
            random: Arc::new(SharedRandom::seeded(config.seed)),
            secret: Arc::new(move |name| secrets.get(name).cloned()),
            keys: config.keys,
            judge_at_ms: config.judge_at_ms,
            base_url: config.base_url,
            profiles: Arc::new(Profiles::parse(&config.providers).map_err(|e| refused(&e))?),
            prices: Arc::new(PriceBook::parse(&config.prices).map_err(|e| refused(&e))?),
            policy: config.policy,
            address: Arc::new(move |name| addresses.get(name).cloned()),
            fetch: Arc::new(SimulatorFetch { provider: provider.clone(), other: None }),
            caller: config.caller,
            hooks: Arc::new(move |function| usage.of(function).into_iter().chain(hooks.of(function)).collect()),
        };
        let stack = Arc::new(Box::pin(Stack::embedded(&aws, stack_config)).await?);
        begin_sweeps(&stack).await?;
        let signer = signer()?;
        Ok(Self { aws, clock, stack, provider, signer })
    }

    /// The event that API Gateway would make of acme sending `body` as event `id` now.
    pub fn acme(&self, id: &str, body: &str) -> GatewayEvent {
        let headers = Headers::default();
        let request = Request { method: "POST", url: None, headers: &headers, body: body.as_bytes() };
        let signed = self.signer.sign(id, self.clock.now_ms(), &request).unwrap_or_default(); // unsigned is answered 401
        self.event("POST", "/webhooks/acme", signed, Some(body))
    }

    /// Any request, as API Gateway would hand it on now.
    pub fn event(
        &self, method: &str, path: &str, headers: impl IntoIterator<Item = (String, String)>, body: Option<&str>,
    ) -> GatewayEvent {
        let mut event =
            GatewayEvent { raw_path: path.to_owned(), body: body.map(str::to_owned), ..GatewayEvent::default() };
        event.headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        event.request_context.http.method = method.to_owned();
        event.request_context.time_epoch = self.clock.now_ms();
        event
    }

    /// acme sends `body` as event `id`; the status and the answer's `status` member.
    pub async fn send(&self, id: &str, body: &str) -> (u16, String) {
        answer(&self.stack.webhook(&self.acme(id, body)).await)
    }

    /// One control request; its status and body.
    pub async fn control(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let text = body.map(|b| b.to_string());
        let response = self.stack.control(&self.event(method, path, [], text.as_deref())).await;
        (response.status_code, serde_json::from_str(&response.body).unwrap_or(Value::Null))
    }

    /// Creates wallet `wallet` of tenant t1 in USD and funds it.
    pub async fn fund(&self, wallet: &str, amount: &str) -> (u16, Value) {
        let path = format!("/control/tenants/t1/wallets/{wallet}");
        let (status, body) = self.control("PUT", &path, Some(json!({"currency": "USD"}))).await;
        if status >= 300 {
            return (status, body);
        }
        self.control("POST", &format!("{path}/fund"), Some(json!({"amount": amount, "reference": "first"}))).await
    }

    /// Submits job `job` of tenant t1 at acme, with reference `p-{job}`.
    pub async fn submit(&self, job: &str, wallet: &str, hold: &str) -> (u16, Value) {
        let body = json!({
            "provider": "acme", "provider_job_ref": format!("p-{job}"), "model": "small-1", "wallet": wallet, "hold": hold,
        });
        self.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await
    }

    /// The wallet as the control API shows it.
    pub async fn wallet(&self, wallet: &str) -> Value {
        self.control("GET", &format!("/control/tenants/t1/wallets/{wallet}"), None).await.1
    }

    /// The job as the control API shows it.
    pub async fn job(&self, job: &str) -> Value {
        self.control("GET", &format!("/control/tenants/t1/jobs/{job}"), None).await.1
    }

    /// The event of acme as the control API shows it.
    pub async fn explain(&self, id: &str) -> Value {
        self.control("GET", &format!("/control/events/acme/{id}"), None).await.1
    }

    /// Starts a reconciliation under `reference`, lets it work, and gives back what it found (the first page of cases).
    ///
    /// # Errors
    /// [`StackError`].
    pub async fn reconcile(&self, reference: &str, more: Value) -> Result<Value, StackError> {
        let mut body = json!({"reference": reference, "reason": "to see"});
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        let (status, answer) = self.control("POST", "/control/reconciliations", Some(body)).await;
        if status >= 300 {
            return Ok(answer);
        }
        self.drain().await?;
        Ok(self.control("GET", &format!("/control/reconciliations/{reference}"), None).await.1)
    }

    /// Applies or dismisses a case that a reconciliation found; status and body.
    pub async fn decide_case(&self, run: &str, case: &str, action: &str) -> (u16, Value) {
        let path = format!("/control/reconciliations/{run}/cases/{case}");
        self.control("POST", &path, Some(json!({"action": action, "reason": "as it should be"}))).await
    }

    /// Lets the event sources work until they have nothing to give.
    ///
    /// # Errors
    /// [`StackError`].
    pub async fn drain(&self) -> Result<usize, StackError> {
        self.stack.drain(MAX_ROUNDS).await
    }

    /// Lets `minutes` pass: each one the relay runs and the event sources work. A relay run that
    /// fails is the next run's, as on AWS.
    ///
    /// # Errors
    /// [`StackError`].
    pub async fn minutes(&self, minutes: u32) -> Result<(), StackError> {
        for _ in 0..minutes {
            self.drain().await?;
            self.clock.advance(MINUTE_MS);
            let _ = self.stack.relay().await;
        }
        self.drain().await.map(|_| ())
    }
}

/// Sets the cursors of relay and reconciler to the world's beginning, as if it had run until then: its first run would
/// otherwise look through a day of empty buckets.
async fn begin_sweeps(stack: &Stack) -> Result<(), StackError> {
    for shard in 0..SHARDS {
        let minute = BEGINS_MS.div_euclid(BUCKET_MS) - 5;
        stack.app.store.advance_cursor(Cursor::Receipts, shard, minute).await?;
        stack.app.store.advance_cursor(Cursor::Expiry, shard, BEGINS_MS.div_euclid(EXPIRY_BUCKET_MS) - 1).await?;
    }
    for hours in [2, 26] {
        stack.app.store.advance_cursor(Cursor::Pass(hours), 0, BEGINS_MS.div_euclid(BUCKET_MS) - 5).await?;
    }
    Ok(())
}

/// The status code and the `status` member of an answer, or its `code` when it is a problem.
pub fn answer(response: &GatewayResponse) -> (u16, String) {
    let body: Value = serde_json::from_str(&response.body).unwrap_or(Value::Null);
    let name = body["code"].as_str().or(body["status"].as_str()).unwrap_or_default();
    (response.status_code, name.to_owned())
}

/// acme's sample event for a job of tenant t1: 1200 and 340 tokens, worth 0.008700.
pub fn completed(job: &str) -> String {
    event_body("job.completed", job, json!({"usage": {"input_tokens": 1200, "output_tokens": 340}}))
}

/// An event of acme for a job of tenant t1, first sent when the world begins.
pub fn event_body(kind: &str, job: &str, more: Value) -> String {
    let mut data = json!({"tenant": "t1", "job_id": job, "id": format!("p-{job}"), "model": "small-1", "sequence": 3});
    if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
        data.extend(more);
    }
    json!({"type": kind, "timestamp": "2026-11-29T12:00:00Z", "data": data}).to_string()
}
