//! The system under simulation: the real handlers over the real SDK, the embedded AWS, one virtual clock.
//!
//! The wiring is that of [`local::Stack`], function by function, with three differences: each function's calls
//! pass through [`Wire`], each has a clock of its own that may be wrong by a little, and each invocation can die.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_smithy_runtime::client::retries::RetryPartition;
use domain::limits::RetryPolicy;
use domain::operation::Consumer;
use domain::price::PriceBook;
use domain::profile::Profiles;
use futures_util::future::BoxFuture;
use local::EmbeddedAws;
use local::clock::Clock;
use local::fifo::QueueAttributes;
use local::lambda::{BoxError, Handler, handler};
use local::poller::{Poller, PollerConfig};
use local::stack::Function;
use local::world::{ACME_SECRET, BEGINS_MS};
use queue::{
    QueueUrls, Queues, create_queues, dead_letter_name, queue_name, reconcile_dead_letter_name, reconcile_queue_name,
};
use receiver::Receiver;
use reconciler::Reconciler;
use runtime::App;
use runtime::destinations::Destinations;
use runtime::fetch::{Fetch, FetchError, Fetched, Get};
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::lambda::{PRICES_TOML, PROVIDERS_TOML};
use runtime::random::SharedRandom;
use runtime::sqs::{BatchResponse, SqsEvent};
use serde_json::Value;
use signature::{Headers, Recipe, Request, Secret, Verifier};
use store::{Cursor, Store, TableNames};
use tokio::time::Instant;

use crate::net::Net;
use crate::oracle::told::QUEUE;
use crate::secrecy::{MARK, STRIPE_SECRET, leak, leaked};
use crate::there::{There, table};
use crate::till;
use crate::wire::Wire;

/// Prefix of tables and queues.
pub const PREFIX: &str = "hookledger";
/// The consumers' timeout, as in the template.
const CONSUMER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the gateway waits for the receiver or control.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(10);
/// The relay's timeout.
const RELAY_TIMEOUT: Duration = Duration::from_secs(55);

/// The runtime's virtual time as Unix milliseconds, wrong by `skew_ms`.
#[derive(Debug, Clone)]
pub struct SimClock {
    begin: Instant,
    skew_ms: i64,
}

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        BEGINS_MS + i64::try_from(self.begin.elapsed().as_millis()).unwrap_or(i64::MAX / 2) + self.skew_ms
    }
}

/// What differs from scenario to scenario.
#[derive(Debug, Clone)]
pub struct Knobs {
    /// The most that one way of a call takes, in ms.
    pub latency_ms: u64,
    /// Invocations side by side, per queue.
    pub concurrency: usize,
    /// Messages per invocation.
    pub batch: usize,
    /// The queues' visibility timeout; below the consumers' 30 s it expires under a running handler.
    pub visibility_s: i64,
    /// Receives before the dead-letter queue.
    pub max_receives: u32,
    /// How wrong each function's clock is: receiver, job, billing, relay, deadletter, control, reconciler.
    pub skew_ms: [i64; 7],
    /// Limits and waits.
    pub policy: RetryPolicy,
    /// Who subscribed to everything.
    pub tells: Tells,
}

/// Who is told of everything, if anybody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Nobody.
    Nobody,
    /// A queue, in order.
    Queue,
    /// A destination over HTTP, `board` or `desk`, in whatever order.
    Http(&'static str),
    /// Nobody; but every wallet is postpaid, and what its jobs cost is charged at `till`.
    Charges {
        /// What a job may cost is authorised when it is submitted.
        authorised: bool,
        /// Micros below which nothing is charged.
        minimum: i64,
    },
}

impl Tells {
    /// True when anybody is.
    pub fn somebody(self) -> bool {
        matches!(self, Self::Queue | Self::Http(_))
    }

    /// The item under which an event of our own plans what leaves.
    pub fn item(self) -> &'static str {
        if matches!(self, Self::Charges { .. }) { "till" } else { "books" }
    }
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            latency_ms: 20,
            concurrency: 4,
            batch: 10,
            visibility_s: 180,
            max_receives: 100,
            skew_ms: [0; 7],
            policy: quick_policy(),
            tells: Tells::Nobody,
        }
    }
}

/// Waits short enough that a scenario comes to rest within minutes.
pub fn quick_policy() -> RetryPolicy {
    RetryPolicy { base_ms: 2_000, cap_ms: 60_000, max_attempts: 6, max_age_ms: 1_800_000, resend_ms: 180_000 }
}

/// The system. Clones share it.
#[derive(Clone)]
pub struct World {
    /// Database and queues.
    pub aws: EmbeddedAws,
    /// The network.
    pub net: Net,
    /// True time.
    pub clock: SimClock,
    /// The control function's context.
    pub control: App,
    receiver: Arc<Receiver>,
    relay: App,
    reconciler: App,
    pollers: Vec<Poller>,
    signers: Arc<[Verifier; 2]>,
    /// Told the body of each message that a consumer took off its queue.
    pub consumed: Consumed,
    /// The destination outside, if there is one.
    pub there: Option<There>,
}

/// Somebody who wants to know which messages were consumed.
pub type Consumed = Arc<OnceLock<Box<dyn Fn(&str) + Send + Sync>>>;

/// Profiles with models of every policy, and holds that live two hours, so that expiry can be seen.
fn configuration(tells: Tells) -> (Profiles, PriceBook) {
    let providers = PROVIDERS_TOML.replacen("retry_window_hours = 72", "retry_window_hours = 1\nhold_hours = 2", 1);
    let models = r#"
[providers.acme.models]
small-1 = { overage = "review", extendable = true }
cap-1 = { overage = "cap", extendable = true }
available-1 = { overage = "available", extendable = true }
provisional-1 = { overage = "review", provisional_failure = true, extendable = true }
partial-1 = { overage = "cap", bill_partial = true }

[providers.acme.events]"#;
    let providers = providers.replacen("[providers.acme.events]", models, 1);
    let providers = match tells {
        Tells::Nobody => providers,
        Tells::Queue => format!("{providers}{SUBSCRIPTION}"),
        Tells::Http(name) => {
            let subscription = SUBSCRIPTION.replace("sqs:HOOKLEDGER_TOLD_QUEUE_URL", &format!("http:{name}"));
            format!("{providers}{}{}", subscription.replace("ordered = true\n", ""), table(name))
        }
        Tells::Charges { .. } => format!("{providers}{}", till::tables()),
    };
    let mut prices = PRICES_TOML.to_owned();
    let small = PRICES_TOML.split("[[price]]").find(|price| price.contains("\"small-1\"")).unwrap();
    for model in ["cap-1", "available-1", "provisional-1", "partial-1"] {
        prices.push_str("\n[[price]]");
        prices.push_str(&small.replace("small-1", model));
    }
    (Profiles::parse(&providers).unwrap(), PriceBook::parse(&prices).unwrap())
}

/// Who is told of everything, in a scenario that tells.
const SUBSCRIPTION: &str = r#"
[subscriptions.books]
to = "sqs:HOOKLEDGER_TOLD_QUEUE_URL"
types = ["job.settled", "job.completed", "job.failed", "job.canceled", "wallet.low-balance", "review.opened", "event.conflict"]
tenants = ["*"]
ordered = true
low_balance = { USD = "1.00" }
"#;

type Consume = fn(App, SqsEvent) -> BoxFuture<'static, BatchResponse>;

impl World {
    /// A fresh system whose relay has run until now. Seeds this thread's randomness, which the SDK uses.
    pub async fn new(net: Net, knobs: &Knobs) -> Self {
        let seed = net.seed;
        fastrand::seed(seed);
        let begin = Instant::now();
        let clock = SimClock { begin, skew_ms: 0 };
        let aws = EmbeddedAws::memory_seeded(Arc::new(clock.clone()), seed).unwrap();
        let (profiles, prices) = configuration(knobs.tells);
        let random = Arc::new(SharedRandom::seeded(seed));
        let there = match knobs.tells {
            Tells::Http(name) => Some(There::new(net.clone(), name)),
            Tells::Charges { .. } => Some(There::new(net.clone(), "till")),
            Tells::Nobody | Tells::Queue => None,
        };
        let address = |name: &str| match name {
            "THERE_URL" => Some("https://there.invalid".to_owned()),
            _ => Some(format!("https://sqs.invalid/1/{QUEUE}")),
        };
        let destinations = Destinations::read(&profiles, address);
        let destinations = match &there {
            Some(there) => destinations.calling(Arc::new(there.clone())),
            None => destinations,
        };
        let app = App {
            store: store(&aws, &net, "control", seed).await,
            queues: queues(&aws, &net, "control", seed, QueueUrls::default()).await,
            clock: Arc::new(clock.clone()),
            random,
            destinations: Arc::new(destinations),
            profiles: Arc::new(profiles),
            prices: Arc::new(prices),
            policy: knobs.policy,
        };
        app.store.create_tables().await.unwrap();
        let config = runtime::clients::local_config(aws.http_client(), "https://embedded.invalid").await;
        let urls = create_queues(&aws_sdk_sqs::Client::new(&config), PREFIX).await.unwrap();
        tune_queues(&aws, knobs);
        if knobs.tells == Tells::Queue {
            aws.queues().create_queue(QUEUE, QueueAttributes::default()).unwrap();
        }
        let mut apps = Vec::new();
        let names = ["receiver", "job", "billing", "relay", "deadletter", "control", "reconciler"];
        for (name, skew_ms) in names.into_iter().zip(knobs.skew_ms) {
            let clock: Arc<dyn Clock> = Arc::new(SimClock { begin, skew_ms });
            let store = store(&aws, &net, name, seed).await;
            let queues = queues(&aws, &net, name, seed, given(name, &urls)).await;
            apps.push(App { store, queues, clock, ..app.clone() });
        }
        // A function of its own only where something leaves, so that every other scenario is what it was.
        let outbound = match knobs.tells {
            Tells::Queue | Tells::Http(_) | Tells::Charges { .. } => {
                let store = store(&aws, &net, "outbound", seed).await;
                let queues = queues(&aws, &net, "outbound", seed, urls.clone()).await;
                let clock: Arc<dyn Clock> = Arc::new(SimClock { begin, skew_ms: knobs.skew_ms[1] });
                Some(App { store, queues, clock, ..app.clone() })
            }
            Tells::Nobody => None,
        };
        let [receiver, job, billing, relay, deadletter, control, reconciler] = <[App; 7]>::try_from(apps).unwrap();
        let receiver = Receiver::new(receiver, |name| match name {
            "ACME_WEBHOOK_SECRET" => Some(ACME_SECRET.to_owned()),
            "STRIPE_WEBHOOK_SECRET" => Some(STRIPE_SECRET.to_owned()),
            _ => None,
        });
        let consumed = Consumed::default();
        let pollers = pollers(&aws, &net, knobs, [job, billing, deadletter, reconciler.clone()], outbound, &consumed);
        let signers = [("standard-webhooks", ACME_SECRET), ("stripe", STRIPE_SECRET)];
        let signers = signers.map(|(recipe, secret)| {
            Verifier::new(Recipe::named(recipe).unwrap(), vec![Secret::new("sim", secret)]).unwrap()
        });
        let signers = Arc::new(signers);
        let receiver = Arc::new(receiver);
        let world = Self { aws, net, clock, control, receiver, relay, reconciler, pollers, signers, consumed, there };
        world.skip_relay().await;
        world
    }

    /// Leaves the relay's cursors where its runs over quiet hours would have left them.
    pub async fn skip_relay(&self) {
        let now_ms = self.clock.now_ms();
        let store = &self.control.store;
        for shard in 0..domain::limits::SHARDS {
            let minute = (now_ms - domain::limits::RELAY_GRACE_MS).div_euclid(domain::limits::BUCKET_MS) - 1;
            store.advance_cursor(Cursor::Receipts, shard, minute).await.unwrap();
            let bucket = now_ms.div_euclid(domain::limits::EXPIRY_BUCKET_MS) - 1;
            store.advance_cursor(Cursor::Expiry, shard, bucket).await.unwrap();
        }
    }

    /// The event sources, as [`Poller`]s that run until they are dropped.
    pub fn pollers(&self) -> Vec<Poller> {
        self.pollers.clone()
    }

    /// A delivery of `acme` or `stripe`; `None` when the receiver died or took longer than the gateway waits.
    pub async fn deliver(&self, slug: &str, id: &str, body: &str) -> Option<GatewayResponse> {
        let headers = Headers::default();
        let request = Request { method: "POST", url: None, headers: &headers, body: body.as_bytes() };
        let signer = &self.signers[usize::from(slug == "stripe")];
        let mut headers = signer.sign(id, self.clock.now_ms(), &request).unwrap_or_default();
        headers.push(("x-note".to_owned(), MARK.to_owned()));
        let event = self.event("POST", &format!("/webhooks/{slug}"), headers, body);
        let run = self.net.invoke("receiver", self.receiver.handle(&event));
        let response = tokio::time::timeout(GATEWAY_TIMEOUT, run).await.ok().flatten();
        self.secret(response.as_ref());
        response
    }

    /// Nothing marked stands in an answer, or in a log line since the last one.
    fn secret(&self, answer: Option<&GatewayResponse>) {
        let answered = answer.and_then(|a| leak(&a.body)).map(|word| format!("{word:?} in an answer"));
        if let Some(leak) = answered.or_else(leaked) {
            self.net.violation(format!("10: {leak}"));
        }
    }

    /// A control request; `None` when the function died or took too long.
    pub async fn ask(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let response = {
            let event = self.event(method, path, Vec::new(), &body.to_string());
            let run = self.net.invoke("control", control::handle(&self.control, &event));
            tokio::time::timeout(GATEWAY_TIMEOUT, run).await.ok().flatten()
        };
        self.secret(response.as_ref());
        let response = response?;
        Some((response.status_code, serde_json::from_str(&response.body).unwrap_or(Value::Null)))
    }

    /// One run of the relay.
    pub async fn relay(&self) {
        let run = self.net.invoke("relay", relay::run(&self.relay));
        let done = tokio::time::timeout(RELAY_TIMEOUT, Box::pin(run)).await;
        self.net.tell(|| match done {
            Ok(Some(Ok(report))) if report == relay::Report::default() => "relay: nothing to do".to_owned(),
            Ok(Some(Ok(report))) => format!("relay: {report:?}"),
            Ok(Some(Err(error))) => format!("relay: {error}"),
            Ok(None) => "relay: died".to_owned(),
            Err(_) => "relay: timed out".to_owned(),
        });
    }

    /// The reconciler's schedule: what got lost of a run is sent again.
    pub async fn redispatch(&self) {
        let run = self.net.invoke("reconciler", reconciler::redispatch(&self.reconciler));
        let _ = tokio::time::timeout(RELAY_TIMEOUT, Box::pin(run)).await; // the next schedule goes on
    }

    fn event(&self, method: &str, path: &str, headers: Vec<(String, String)>, body: &str) -> GatewayEvent {
        let mut event =
            GatewayEvent { raw_path: path.to_owned(), body: Some(body.to_owned()), ..GatewayEvent::default() };
        event.headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        event.request_context.http.method = method.to_owned();
        event.request_context.time_epoch = self.clock.now_ms();
        event
    }
}

/// Nothing can be fetched.
#[derive(Debug)]
struct NoNetwork;

impl Fetch for NoNetwork {
    fn get(&self, _: Get) -> Fetched<'_> {
        Box::pin(std::future::ready(Err(FetchError::Unreachable)))
    }
}

/// A retry partition that no other scenario of this process has, not even an earlier run of the same one: the
/// SDK keeps their tokens for the whole process.
fn partition(seed: u64, function: &str, service: &str) -> RetryPartition {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    RetryPartition::new(format!("{seed}-{function}-{service}-{number}"))
}

async fn store(aws: &EmbeddedAws, net: &Net, function: &'static str, seed: u64) -> Store {
    let client = Wire::client(aws.http_client(), function, net.clone());
    let config = runtime::clients::local_config(client, "https://embedded.invalid").await;
    let config = aws_sdk_dynamodb::config::Builder::from(&config).retry_partition(partition(seed, function, "db"));
    Store::new(aws_sdk_dynamodb::Client::from_conf(config.build()), TableNames::with_prefix(PREFIX))
}

/// The queues that a function is given.
fn given(name: &str, urls: &QueueUrls) -> QueueUrls {
    match name {
        "deadletter" => local::stack::queues_of(Function::DeadLetter, urls),
        "reconciler" => local::stack::queues_of(Function::Reconciler, urls),
        _ => urls.clone(),
    }
}

async fn queues(aws: &EmbeddedAws, net: &Net, function: &'static str, seed: u64, urls: QueueUrls) -> Queues {
    let client = Wire::client(aws.http_client(), function, net.clone());
    let config = runtime::clients::local_config(client, "https://embedded.invalid").await;
    let config = aws_sdk_sqs::config::Builder::from(&config).retry_partition(partition(seed, function, "sqs"));
    Queues::new(aws_sdk_sqs::Client::from_conf(config.build()), urls)
}

/// Sets the queues' attributes to what a scenario wants.
pub fn tune_queues(aws: &EmbeddedAws, knobs: &Knobs) {
    for name in aws.queues().queue_names() {
        let mut attributes = aws.queues().attributes(&name).unwrap();
        attributes.visibility_timeout_s = knobs.visibility_s;
        if let Some(redrive) = attributes.redrive.as_mut() {
            redrive.max_receive_count = knobs.max_receives;
        }
        aws.queues().set_attributes(&name, attributes).unwrap();
    }
}

fn pollers(
    aws: &EmbeddedAws, net: &Net, knobs: &Knobs, apps: [App; 4], outbound: Option<App>, consumed: &Consumed,
) -> Vec<Poller> {
    let [job_app, billing_app, dead_app, reconciler_app] = apps;
    let parts: Consume = |app, event| {
        // No provider has a list here: no variable names one.
        Box::pin(async move { Reconciler::new(app, Arc::new(NoNetwork), |_| None).handle(&event).await })
    };
    let dead: Consume = |app, event| Box::pin(async move { deadletter::handle(&app, event).await });
    let sources: [(String, &'static str, App, Consume); 6] = [
        (queue_name(PREFIX, Consumer::Job), "job", job_app, |app, event| {
            Box::pin(async move { job::handle(&app, event).await })
        }),
        (queue_name(PREFIX, Consumer::Billing), "billing", billing_app, |app, event| {
            Box::pin(async move { billing::handle(&app, event).await })
        }),
        (dead_letter_name(PREFIX, Consumer::Job), "deadletter", dead_app.clone(), dead),
        (dead_letter_name(PREFIX, Consumer::Billing), "deadletter", dead_app, dead),
        (reconcile_queue_name(PREFIX), "reconciler", reconciler_app.clone(), parts),
        (reconcile_dead_letter_name(PREFIX), "reconciler", reconciler_app, parts),
    ];
    let leaving = outbound.map(|app| {
        let handle: Consume = |app, event| Box::pin(async move { outbound::handle(&app, event).await });
        let dead_app = sources[2].2.clone();
        [
            (queue_name(PREFIX, Consumer::Outbound), "outbound", app, handle),
            (dead_letter_name(PREFIX, Consumer::Outbound), "deadletter", dead_app, dead),
        ]
    });
    let poller = |(queue, name, app, consume): (String, &'static str, App, Consume)| {
        let config = PollerConfig {
            queue,
            batch_size: knobs.batch,
            function_timeout: CONSUMER_TIMEOUT,
            concurrency: knobs.concurrency,
        };
        Poller::new(aws.queues().clone(), config, killable(net.clone(), name, app, consume, consumed.clone()))
    };
    sources.into_iter().chain(leaving.into_iter().flatten()).map(poller).collect()
}

/// A consumer's handler whose sandbox can die; then Lambda has no answer, and the messages stay hidden.
fn killable(net: Net, name: &'static str, app: App, consume: Consume, consumed: Consumed) -> Handler {
    handler(move |event: Value| {
        let (net, app, consumed) = (net.clone(), app.clone(), consumed.clone());
        async move {
            let event: SqsEvent = serde_json::from_value(event)?;
            let told = event.records.len();
            let bodies: Vec<_> = event.records.iter().map(|r| (r.message_id.clone(), r.body.clone())).collect();
            net.tell(|| format!("{name} is given {told} message(s)"));
            let answer = net.invoke(name, consume(app, event)).await;
            let answer = answer.ok_or_else(|| BoxError::from("the sandbox died"))?;
            if !answer.batch_item_failures.is_empty() {
                net.tell(|| format!("{name} leaves {} message(s) in the queue", answer.batch_item_failures.len()));
            }
            let left = |id: &String| answer.batch_item_failures.iter().any(|failure| failure.item_identifier == *id);
            for (_, body) in bodies.iter().filter(|(id, _)| !left(id)) {
                consumed.get().into_iter().for_each(|tell| tell(body));
            }
            Ok::<Value, BoxError>(serde_json::to_value(answer)?)
        }
    })
}
