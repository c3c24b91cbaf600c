//! The whole system on one machine: the real handlers over the real SDK, wired as the template wires
//! them.
//!
//! [`Stack::embedded`] runs on the embedded AWS, [`Stack::remote`] on any endpoint (LocalStack, AWS).
//! Each function has an SDK client of its own, so that its calls can be counted and failed apart.
//! [`Stack::drain`] steps deterministically for tests and the drill; [`Stack::serve`] runs for `dev`.

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime::client::retries::RetryPartition;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use domain::limits::{RECEIVER_TIMEOUT_MS, RetryPolicy};
use domain::operation::Consumer;
use domain::price::PriceBook;
use domain::profile::Profiles;
use queue::{QueueUrls, Queues, dead_letter_name, queue_name, reconcile_dead_letter_name, reconcile_queue_name};
use receiver::fetch::KeyFetch;
use receiver::{DEFAULT_LIFE_MS, Receiver};
use reconciler::Reconciler;
use runtime::App;
use runtime::call::Caller;
use runtime::clients;
use runtime::destinations::Destinations;
use runtime::fetch::Fetch;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::random::Random;
use runtime::sqs::SqsEvent;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::{Store, TableNames};

use crate::aws::EmbeddedAws;
use crate::clock::Clock;
use crate::forwarded;
use crate::hook::CallHook;
use crate::lambda::{BoxError, Handler, Stop, handler};
use crate::poller::{Poller, PollerConfig};
use crate::provider::{Answer, ProviderSimulator};
use crate::provider_api;
use crate::remote::RemotePoller;
use crate::scheduler::run_every;

/// Prefix of the local stack's tables and queues.
pub const PREFIX: &str = "hookledger";
/// Timeout of the consumers, as in the template.
const CONSUMER_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the reconciler, as in the template.
const RECONCILER_TIMEOUT: Duration = Duration::from_secs(120);
/// Batch size, as in the template; the reconciler takes one part at a time.
const BATCH_SIZE: usize = 10;
/// Invocations of one consumer side by side.
const CONCURRENCY: usize = 4;
/// How often the provider simulator looks for due deliveries, and how many rounds it then makes at most.
const PROVIDER_EVERY: Duration = Duration::from_millis(500);
const PROVIDER_ROUNDS: usize = 100;

/// The functions of the system, each with a client of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// Takes webhooks.
    Receiver,
    /// Consumes the job queue.
    Job,
    /// Consumes the billing queue.
    Billing,
    /// Consumes the outbound queue.
    Outbound,
    /// Runs every minute.
    Relay,
    /// Consumes the dead-letter queues.
    DeadLetter,
    /// Compares the records with each other.
    Reconciler,
    /// Serves the control API.
    Control,
    /// No function: whoever looks at the stores from outside, such as a test.
    Onlooker,
}

/// Hooks on the AWS calls of one function.
pub type HooksOf = Arc<dyn Fn(Function) -> Vec<Arc<dyn CallHook>> + Send + Sync>;
/// Reads a secret, or an address, by its name.
pub type SecretOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a stack is built with.
#[derive(Clone)]
pub struct StackConfig {
    /// Time of the handlers.
    pub clock: Arc<dyn Clock>,
    /// Tokens and jitter of the handlers.
    pub random: Arc<dyn Random>,
    /// Provider secrets by environment variable name.
    pub secret: SecretOf,
    /// Where secrets come from that are not in the environment.
    pub keys: Arc<dyn KeyFetch>,
    /// The clock that signatures are judged by, Unix milliseconds; `None` is the time of arrival.
    pub judge_at_ms: Option<i64>,
    /// The public base URL, for schemes that sign the URL.
    pub base_url: Option<String>,
    /// The endpoints.
    pub profiles: Arc<Profiles>,
    /// The prices.
    pub prices: Arc<PriceBook>,
    /// Limits and waits.
    pub policy: RetryPolicy,
    /// Addresses that events are forwarded to, and the secrets of HTTP destinations, by environment variable name.
    pub address: SecretOf,
    /// Reads the providers' own lists.
    pub fetch: Arc<dyn Fetch>,
    /// Sends to HTTP destinations.
    pub caller: Arc<dyn Caller>,
    /// Hooks on each function's AWS calls (embedded stacks only).
    pub hooks: HooksOf,
}

/// Why a stack does not start.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// A table could not be created.
    #[error("tables: {0}")]
    Tables(#[from] store::StoreError),
    /// A queue could not be created.
    #[error("queues: {0}")]
    Queues(#[from] queue::QueueError),
    /// The embedded queue does not answer.
    #[error("poller: {0}")]
    Poller(#[from] crate::fifo::QueueError),
}

enum Source {
    Embedded(Vec<Poller>),
    Remote(Vec<RemotePoller>),
}

/// The wired system.
pub struct Stack {
    /// The stores, for looking at them: with a client of its own, so that the functions' calls are theirs alone.
    pub app: App,
    control: App,
    receiver: Arc<Receiver>,
    relay: App,
    reconciler: Reconciler,
    source: Source,
    /// Embedded, for showing what was forwarded there.
    aws: Option<EmbeddedAws>,
}

impl Stack {
    /// Wires the system over the embedded AWS; creates its tables and queues.
    ///
    /// # Errors
    /// [`StackError`] when a table or queue cannot be created.
    pub async fn embedded(aws: &EmbeddedAws, config: StackConfig) -> Result<Self, StackError> {
        let client = |function| aws.http_client_with((config.hooks)(function));
        let mut wiring = Wiring::new(&config, "https://embedded.invalid", true, client);
        wiring.create().await?;
        let functions = wiring.functions().await;
        let poller = |source: EventSource| {
            let settings = PollerConfig {
                queue: source.queue,
                batch_size: source.batch_size,
                function_timeout: source.timeout,
                concurrency: CONCURRENCY,
            };
            Poller::new(aws.queues().clone(), settings, source.handler)
        };
        let pollers = functions.sources().into_iter().map(poller).collect();
        Ok(functions.stack(Source::Embedded(pollers), Some(aws.clone())))
    }

    /// Wires the system over an AWS endpoint, such as LocalStack; creates its tables and queues.
    ///
    /// # Errors
    /// [`StackError`] when a table or queue cannot be created.
    pub async fn remote(endpoint: &str, config: StackConfig) -> Result<Self, StackError> {
        let http = clients::https_client();
        let mut wiring = Wiring::new(&config, endpoint, false, |_| http.clone());
        wiring.create().await?;
        let sqs = aws_sdk_sqs::Client::new(&clients::endpoint_config(http.clone(), endpoint).await);
        let functions = wiring.functions().await;
        let poller = |s: EventSource| RemotePoller::new(sqs.clone(), s.queue, s.handler, s.timeout);
        let pollers = functions.sources().into_iter().map(poller).collect();
        Ok(functions.stack(Source::Remote(pollers), None))
    }

    /// One delivery, as API Gateway would hand it to the receiver.
    pub async fn webhook(&self, event: &GatewayEvent) -> GatewayResponse {
        self.receiver.handle(event).await
    }

    /// One control request.
    pub async fn control(&self, event: &GatewayEvent) -> GatewayResponse {
        control::handle(&self.control, event).await
    }

    /// One run of the relay.
    ///
    /// # Errors
    /// The store's error of the first shard that failed.
    pub async fn relay(&self) -> Result<relay::Report, store::StoreError> {
        relay::run(&self.relay).await
    }

    /// The reconciler's scheduled passes over receipts.
    ///
    /// # Errors
    /// The store's error; the next call goes on.
    pub async fn passes(&self) -> Result<(), store::StoreError> {
        self.reconciler.passes().await
    }

    /// The reconciler's daily run.
    ///
    /// # Errors
    /// The store's error; the same day's next call goes on.
    pub async fn daily(&self) -> Result<(), store::StoreError> {
        self.reconciler.daily().await
    }

    /// Lets each event source poll once; how many messages were handled. Embedded stacks only.
    ///
    /// # Errors
    /// [`StackError::Poller`].
    pub async fn step(&self) -> Result<usize, StackError> {
        let Source::Embedded(pollers) = &self.source else { return Ok(0) };
        let mut handled = 0;
        for poller in pollers {
            handled += poller.poll_once().await?;
        }
        Ok(handled)
    }

    /// Steps until the queues have nothing to give, at most `limit` times; how many were handled.
    ///
    /// # Errors
    /// [`StackError::Poller`].
    pub async fn drain(&self, limit: usize) -> Result<usize, StackError> {
        let mut total = 0;
        for _ in 0..limit {
            match self.step().await? {
                0 => break,
                handled => total += handled,
            }
        }
        Ok(total)
    }

    /// The HTTP routes: webhooks to the receiver, control to control, what a provider simulator is asked to
    /// it, and a look at what was forwarded to the embedded queues.
    pub fn http(self: &Arc<Self>, provider: Arc<ProviderSimulator>) -> Handler {
        let stack = self.clone();
        json_handler(move |event: GatewayEvent| {
            let (stack, provider) = (stack.clone(), provider.clone());
            async move {
                if event.raw_path.starts_with("/provider/") {
                    return provider_api::handle(&provider, &*stack.app.clock, &*stack.app.random, &event);
                }
                if let (Some(aws), true) = (&stack.aws, event.raw_path.starts_with("/forwarded/")) {
                    return forwarded::show(aws, &event);
                }
                if event.raw_path.starts_with("/control/") {
                    return stack.control(&event).await;
                }
                stack.webhook(&event).await
            }
        })
    }

    /// Lets the provider simulator deliver what is due, a bounded number of rounds.
    async fn provide(self: &Arc<Self>, provider: &ProviderSimulator) {
        for _ in 0..PROVIDER_ROUNDS {
            let deliver = |event: GatewayEvent| -> Answer {
                let stack = self.clone();
                Box::pin(async move { stack.webhook(&event).await.status_code })
            };
            match provider.step(self.app.clock.now_ms(), &*self.app.random, deliver).await {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => return tracing::error!(%error, "the provider simulator's event store cannot be written"),
            }
        }
    }

    /// Runs the event sources, the schedule and the provider simulator until the stop is given.
    pub async fn serve(self: Arc<Self>, provider: Arc<ProviderSimulator>, stop: Stop) {
        let mut tasks = tokio::task::JoinSet::new();
        let stack = self.clone();
        tasks.spawn(run_every(PROVIDER_EVERY, stop.clone(), move || {
            let (stack, provider) = (stack.clone(), provider.clone());
            async move { stack.provide(&provider).await }
        }));
        match &self.source {
            Source::Embedded(pollers) => {
                for poller in pollers.clone() {
                    let stop = stop.clone();
                    tasks.spawn(async move {
                        if let Err(error) = poller.run(stop).await {
                            tracing::error!(%error, "event source stopped");
                        }
                    });
                }
            }
            Source::Remote(pollers) => {
                for poller in pollers.clone() {
                    tasks.spawn(poller.run(stop.clone()));
                }
            }
        }
        self.schedule(&mut tasks, &stop);
        while tasks.join_next().await.is_some() {}
    }
}

/// A queue with the function that consumes it.
struct EventSource {
    queue: String,
    handler: Handler,
    batch_size: usize,
    timeout: Duration,
}

/// A handler of Lambda's JSON over typed events and answers.
fn json_handler<E, R, F, Fut>(function: F) -> Handler
where
    E: DeserializeOwned,
    R: Serialize,
    F: Fn(E) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
{
    handler(move |event: Value| {
        let typed = serde_json::from_value::<E>(event).map(&function);
        async move { Ok::<Value, BoxError>(serde_json::to_value(typed?.await)?) }
    })
}

/// Builds the clients and contexts of a stack.
struct Wiring<'a, C: Fn(Function) -> SharedHttpClient> {
    config: &'a StackConfig,
    endpoint: &'a str,
    client: C,
    embedded: bool,
    queues: QueueUrls,
}

impl<'a, C: Fn(Function) -> SharedHttpClient> Wiring<'a, C> {
    fn new(config: &'a StackConfig, endpoint: &'a str, embedded: bool, client: C) -> Self {
        Self { config, endpoint, client, embedded, queues: QueueUrls::default() }
    }

    async fn create(&mut self) -> Result<(), StackError> {
        self.app(Function::Onlooker).await.store.create_tables().await?;
        let config = self.sdk_config(Function::Onlooker).await;
        self.queues = queue::create_queues(&aws_sdk_sqs::Client::new(&config), PREFIX).await?;
        Ok(())
    }

    async fn sdk_config(&self, function: Function) -> aws_config::SdkConfig {
        let client = (self.client)(function);
        if self.embedded {
            return clients::local_config(client, self.endpoint).await;
        }
        clients::endpoint_config(client, self.endpoint).await
    }

    async fn app(&self, function: Function) -> App {
        // A partition of its own: the SDK's retry tokens are shared by the whole process otherwise.
        self.app_in(function, || RetryPartition::new(self.config.random.token())).await
    }

    /// Draws nothing of the functions' randomness: whoever looks changes no run.
    async fn onlooker(&self) -> App {
        self.app_in(Function::Onlooker, || RetryPartition::custom("onlooker").build()).await
    }

    async fn app_in(&self, function: Function, partition: impl Fn() -> RetryPartition) -> App {
        let config = self.sdk_config(function).await;
        let dynamodb = aws_sdk_dynamodb::config::Builder::from(&config).retry_partition(partition()).build();
        let sqs = aws_sdk_sqs::config::Builder::from(&config).retry_partition(partition()).build();
        App {
            store: Store::new(aws_sdk_dynamodb::Client::from_conf(dynamodb), TableNames::with_prefix(PREFIX)),
            queues: Queues::new(aws_sdk_sqs::Client::from_conf(sqs), queues_of(function, &self.queues)),
            clock: self.config.clock.clone(),
            random: self.config.random.clone(),
            profiles: self.config.profiles.clone(),
            prices: self.config.prices.clone(),
            policy: self.config.policy,
            destinations: Arc::new(Destinations::read(&self.config.profiles, |name| (self.config.address)(name))),
        }
    }

    async fn with_bus(&self, app: App) -> App {
        let config = self.sdk_config(Function::Outbound).await;
        let partition = RetryPartition::new(self.config.random.token());
        let bus = aws_sdk_eventbridge::config::Builder::from(&config).retry_partition(partition).build();
        let queues = app.queues.clone().with_bus(aws_sdk_eventbridge::Client::from_conf(bus));
        App { queues, ..app }.calling(self.config.caller.clone())
    }

    async fn functions(&self) -> Functions {
        let secret = self.config.secret.clone();
        let named = secret.clone();
        let reconciler = self.app(Function::Reconciler).await.calling(self.config.caller.clone());
        let receiver = Receiver::new(self.app(Function::Receiver).await, |name| secret(name))
            .fetching(self.config.keys.clone(), DEFAULT_LIFE_MS);
        Functions {
            receiver: receiver.judging_at(self.config.judge_at_ms).with_base_url(self.config.base_url.clone()),
            job: self.app(Function::Job).await,
            billing: self.app(Function::Billing).await,
            outbound: self.with_bus(self.app(Function::Outbound).await).await,
            relay: self.app(Function::Relay).await,
            deadletter: self.app(Function::DeadLetter).await,
            reconciler: Reconciler::new(reconciler, self.config.fetch.clone(), move |name| named(name)),
            control: self.app(Function::Control).await,
            onlooker: self.onlooker().await,
        }
    }
}

/// The functions before they have event sources.
struct Functions {
    receiver: Receiver,
    job: App,
    billing: App,
    outbound: App,
    relay: App,
    deadletter: App,
    reconciler: Reconciler,
    control: App,
    onlooker: App,
}

impl Functions {
    /// Each queue with the function that consumes it.
    fn sources(&self) -> Vec<EventSource> {
        let consume = |app: &App, function: fn(App, SqsEvent) -> BatchFuture| {
            let app = app.clone();
            json_handler(move |event: SqsEvent| function(app.clone(), event))
        };
        let dead =
            consume(&self.deadletter, |app, event| Box::pin(async move { deadletter::handle(&app, event).await }));
        let source = |queue: String, handler: Handler| EventSource {
            queue,
            handler,
            batch_size: BATCH_SIZE,
            timeout: CONSUMER_TIMEOUT,
        };
        let mut sources = vec![
            source(
                queue_name(PREFIX, Consumer::Job),
                consume(&self.job, |app, event| Box::pin(async move { job::handle(&app, event).await })),
            ),
            source(
                queue_name(PREFIX, Consumer::Billing),
                consume(&self.billing, |app, event| Box::pin(async move { billing::handle(&app, event).await })),
            ),
            EventSource {
                batch_size: 1,
                ..source(
                    queue_name(PREFIX, Consumer::Outbound),
                    consume(&self.outbound, |app, event| Box::pin(async move { outbound::handle(&app, event).await })),
                )
            },
        ];
        sources.extend(Consumer::ALL.map(|consumer| source(dead_letter_name(PREFIX, consumer), dead.clone())));
        let reconciler = Arc::new(self.reconciler.clone());
        let parts = json_handler(move |event: SqsEvent| {
            let reconciler = reconciler.clone();
            async move { reconciler.handle(&event).await }
        });
        sources.extend([reconcile_queue_name(PREFIX), reconcile_dead_letter_name(PREFIX)].map(|queue| EventSource {
            queue,
            handler: parts.clone(),
            batch_size: 1,
            timeout: RECONCILER_TIMEOUT,
        }));
        sources
    }

    fn stack(self, source: Source, aws: Option<EmbeddedAws>) -> Stack {
        let (receiver, relay, reconciler) = (Arc::new(self.receiver), self.relay, self.reconciler);
        Stack { app: self.onlooker, control: self.control, receiver, relay, reconciler, source, aws }
    }
}

type BatchFuture = std::pin::Pin<Box<dyn Future<Output = runtime::sqs::BatchResponse> + Send>>;

/// The queues that a function is given; the outbound one as in the template: these two seldom tell, and the relay sends.
pub fn queues_of(function: Function, all: &QueueUrls) -> QueueUrls {
    let seldom = matches!(function, Function::DeadLetter | Function::Reconciler);
    let outbound = if seldom { String::new() } else { all.outbound.clone() };
    QueueUrls { outbound, ..all.clone() }
}

/// How long the gateway lets a function answer.
pub fn gateway_timeout() -> Duration {
    Duration::from_millis(u64::try_from(RECEIVER_TIMEOUT_MS).unwrap_or(10_000))
}
