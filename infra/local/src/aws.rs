//! The embedded AWS as the SDK sees it: an HTTP client that never opens a socket.
//!
//! [`EmbeddedAws`] holds the database and the queues. Its client reads `X-Amz-Target`, asks the hooks, applies the call
//! and gives the answer back, so that everything above the transport (serialisation, retries, timeouts, parsing of
//! errors) is the real SDK's. Every request runs as a task of its own: a caller that is dropped, as a killed Lambda
//! invocation is, does not recall what it sent.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use dynoxide::Database;
use thiserror::Error;

use crate::bus_api::Buses;
use crate::clock::{Clock, DatabaseClock};
use crate::fifo::{QueueEngine, QueueError};
use crate::hook::{Call, CallHook, Fault, HookDecision, Service};
use crate::wire::WireResponse;
use crate::{dynamo_api, sqs_api};

/// Why an embedded AWS could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The data directory cannot be made.
    #[error("the data directory cannot be made ({0}); check its path and permissions")]
    Directory(std::io::Error),
    /// The database's file.
    #[error(
        "the database file cannot be opened ({0}); check the data directory, and that no other process has it open"
    )]
    Database(dynoxide::DynoxideError),
    /// The queues' file.
    #[error(transparent)]
    Queues(#[from] QueueError),
}

type Hooks = Vec<Arc<dyn CallHook>>;

struct Shared {
    database: Database,
    queues: Arc<QueueEngine>,
    buses: Buses,
    hooks: RwLock<Hooks>,
    sequence: AtomicU64,
    report_capacity: AtomicBool,
}

/// DynamoDB, SQS and the receiving end of EventBridge in this process. Clones share one state.
#[derive(Clone)]
pub struct EmbeddedAws(Arc<Shared>);

impl fmt::Debug for EmbeddedAws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedAws").finish_non_exhaustive()
    }
}

impl EmbeddedAws {
    /// An empty AWS in memory.
    ///
    /// # Errors
    /// [`OpenError::Database`] if SQLite refuses to start.
    pub fn memory(clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::memory_seeded(clock, 0)
    }

    /// An empty AWS in memory whose SQS message ids follow from `seed`: for the simulator.
    ///
    /// # Errors
    /// [`OpenError::Database`] if SQLite refuses to start.
    pub fn memory_seeded(clock: Arc<dyn Clock>, seed: u64) -> Result<Self, OpenError> {
        let database = Database::memory_with_clock(Arc::new(DatabaseClock(Arc::clone(&clock))));
        Ok(Self::new(database.map_err(OpenError::Database)?, QueueEngine::memory(clock, seed)))
    }

    /// An AWS that is kept in the directory `dir`, which is made if it is absent. What was answered survives a kill -9.
    /// The database's own clock (time to live, table ages) is the machine's: dynoxide lends it to memory only.
    ///
    /// # Errors
    /// [`OpenError`] for each of the directory and the two files.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        std::fs::create_dir_all(dir).map_err(OpenError::Directory)?;
        let file = dir.join("dynamodb.sqlite");
        let database = Database::new(&file.to_string_lossy()).map_err(OpenError::Database)?;
        let queues = QueueEngine::open(&dir.join("sqs.sqlite"), clock, 0)?;
        queues.release_in_flight();
        Ok(Self::new(database, queues))
    }

    fn new(database: Database, queues: QueueEngine) -> Self {
        Self(Arc::new(Shared {
            database,
            queues: Arc::new(queues),
            buses: Buses::default(),
            hooks: RwLock::default(),
            sequence: AtomicU64::new(0),
            report_capacity: AtomicBool::new(false),
        }))
    }

    /// The database, for looking at it without the SDK.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.0.database
    }

    /// The queues, for the poller and for looking at them without the SDK.
    #[must_use]
    pub fn queues(&self) -> &Arc<QueueEngine> {
        &self.0.queues
    }

    /// What was put on EventBridge's buses; in memory only.
    #[must_use]
    pub fn buses(&self) -> &Buses {
        &self.0.buses
    }

    /// Lets DynamoDB report the capacity that each call consumed, as if every request asked for it: for hooks that read
    /// the answers. The SDK passes over what it did not ask for.
    pub fn report_capacity(&self) {
        self.0.report_capacity.store(true, Ordering::Relaxed);
    }

    /// Answers a DynamoDB call.
    fn dynamo(&self, call: &Call) -> WireResponse {
        let asked = self.0.report_capacity.load(Ordering::Relaxed) && !call.operation.ends_with("Table");
        let request = if asked { serde_json::from_slice::<serde_json::Value>(&call.body).ok() } else { None };
        match request {
            Some(mut request) => {
                request["ReturnConsumedCapacity"] = "TOTAL".into();
                dynamo_api::call(&self.0.database, &call.operation, request.to_string().as_bytes())
            }
            None => dynamo_api::call(&self.0.database, &call.operation, &call.body),
        }
    }

    /// Adds a hook that sees the calls of every client of this AWS.
    pub fn add_hook(&self, hook: Arc<dyn CallHook>) {
        let mut hooks = self.0.hooks.write().unwrap_or_else(PoisonError::into_inner);
        hooks.push(hook);
    }

    /// Removes all hooks that were added by [`EmbeddedAws::add_hook`].
    pub fn clear_hooks(&self) {
        let mut hooks = self.0.hooks.write().unwrap_or_else(PoisonError::into_inner);
        hooks.clear();
    }

    /// An HTTP client for the SDK's configuration.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        self.http_client_with(Vec::new())
    }

    /// An HTTP client with hooks of its own, which are asked before the common ones: e.g. one per simulated sandbox.
    #[must_use]
    pub fn http_client_with(&self, hooks: Vec<Arc<dyn CallHook>>) -> SharedHttpClient {
        SharedHttpClient::new(EmbeddedClient { aws: self.clone(), hooks })
    }

    /// Answers one request, hooks included. `target` is the value of `X-Amz-Target`.
    async fn request(&self, target: &str, body: Bytes, own_hooks: &Hooks) -> Result<WireResponse, Fault> {
        let Some((service, operation)) = route(target) else {
            let body = r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;
            return Ok(WireResponse::json(400, body));
        };
        let sequence = self.0.sequence.fetch_add(1, Ordering::SeqCst) + 1;
        let call = Call::new(service, operation, sequence, body);
        let hooks: Hooks = {
            let common = self.0.hooks.read().unwrap_or_else(PoisonError::into_inner);
            own_hooks.iter().chain(common.iter()).cloned().collect()
        };
        let mut decision = HookDecision::Pass;
        for hook in &hooks {
            let said = hook.on_call(&call);
            if decision == HookDecision::Pass {
                decision = said;
            }
        }
        while let HookDecision::Delay(wait, then) = decision {
            tokio::time::sleep(wait).await;
            decision = *then;
        }
        if let HookDecision::FailBefore(fault) = decision {
            return answer_with(fault);
        }
        let answer = match service {
            Service::DynamoDb => self.dynamo(&call),
            Service::Sqs => sqs_api::call_waiting(&self.0.queues, &call.operation, &call.body).await,
            Service::EventBridge => self.0.buses.call(&call.operation, &call.body),
        };
        for hook in &hooks {
            hook.on_answer(&call, &answer);
        }
        match decision {
            HookDecision::FailAfter(fault) => answer_with(fault),
            _ => Ok(answer),
        }
    }
}

fn answer_with(fault: Fault) -> Result<WireResponse, Fault> {
    match fault {
        Fault::Status(response) => Ok(response),
        other => Err(other),
    }
}

fn route(target: &str) -> Option<(Service, &str)> {
    if let Some(operation) = target.strip_prefix("DynamoDB_20120810.") {
        return Some((Service::DynamoDb, operation));
    }
    if let Some(operation) = target.strip_prefix("AWSEvents.") {
        return Some((Service::EventBridge, operation));
    }
    target.strip_prefix("AmazonSQS.").map(|operation| (Service::Sqs, operation))
}

#[derive(Debug, Clone)]
struct EmbeddedClient {
    aws: EmbeddedAws,
    hooks: Hooks,
}

impl HttpClient for EmbeddedClient {
    fn http_connector(&self, settings: &HttpConnectorSettings, _components: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(EmbeddedConnector { client: self.clone(), read_timeout: settings.read_timeout() })
    }
}

#[derive(Debug)]
struct EmbeddedConnector {
    client: EmbeddedClient,
    read_timeout: Option<Duration>,
}

impl HttpConnector for EmbeddedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let body = Bytes::copy_from_slice(request.body().bytes().unwrap_or_default());
        let client = self.client.clone();
        // Its own task: from here on the request is on the wire, whatever becomes of the caller.
        let sent = tokio::spawn(async move { client.aws.request(&target, body, &client.hooks).await });
        let read_timeout = self.read_timeout;
        HttpConnectorFuture::new(async move {
            let answer = async {
                match sent.await {
                    Ok(Ok(response)) => to_http(&response),
                    Ok(Err(Fault::Timeout)) => std::future::pending().await,
                    Ok(Err(_)) | Err(_) => {
                        Err(ConnectorError::io(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into()))
                    }
                }
            };
            match read_timeout {
                None => answer.await,
                Some(limit) => match tokio::time::timeout(limit, answer).await {
                    Ok(answered) => answered,
                    Err(elapsed) => Err(ConnectorError::timeout(elapsed.into())),
                },
            }
        })
    }
}

fn to_http(response: &WireResponse) -> Result<HttpResponse, ConnectorError> {
    let mut builder =
        http::Response::builder().status(response.status).header("content-type", "application/x-amz-json-1.0");
    if let Some(code) = &response.query_error {
        builder = builder.header("x-amzn-query-error", code);
    }
    let body = SdkBody::from(response.body.to_vec());
    let http = builder.body(body).map_err(|error| ConnectorError::user(error.into()))?;
    HttpResponse::try_from(http).map_err(|error| ConnectorError::user(error.into()))
}
