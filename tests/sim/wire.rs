//! The HTTP client that every function's real SDK is given: it carries out the faults that [`Net`] decides.
//!
//! What was sent runs as a task of its own, so a caller that dies or gives up does not recall it.

use std::io::ErrorKind;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use local::hook::{Fault as AwsFault, Service};
use local::wire::WireResponse;
use serde_json::Value;
use tokio::time::sleep;

use crate::faults::Kind;
use crate::net::{INVOCATION, Net};
use crate::trace::unordered_hash;

/// How far an index may lag: what the relay's grace leaves beside clocks, timeouts and retries.
const INDEX_LAG_MS: u64 = 50_000;

/// The client of one function.
#[derive(Debug, Clone)]
pub struct Wire {
    inner: SharedHttpClient,
    function: &'static str,
    net: Net,
}

impl Wire {
    /// A client of `function` over the embedded AWS.
    pub fn client(inner: SharedHttpClient, function: &'static str, net: Net) -> SharedHttpClient {
        SharedHttpClient::new(Self { inner, function, net })
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, settings: &HttpConnectorSettings, parts: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, parts);
        SharedHttpConnector::new(Connector { inner, function: self.function, net: self.net.clone() })
    }
}

#[derive(Debug, Clone)]
struct Connector {
    inner: SharedHttpConnector,
    function: &'static str,
    net: Net,
}

type Answer = Result<HttpResponse, ConnectorError>;

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Ok(invocation) = INVOCATION.try_with(Clone::clone) else {
            return self.inner.call(request); // setting up and looking, not part of the scenario
        };
        let site = site(self.function, &request);
        let (number, fault) = self.net.decide(&site);
        let body = request.body().bytes().unwrap_or_default();
        let (hash, actions) = (unordered_hash(body), actions(body));
        self.net.lock().trace.mix(hash);
        let way = Way { net: self.net.clone(), inner: self.inner.clone(), site, number };
        HttpConnectorFuture::new(async move {
            let answer = way.carry(request, fault, actions, &invocation).await;
            way.net.tell(|| {
                let status = match &answer {
                    Ok(response) => response.status().as_u16().to_string(),
                    Err(_) => "no answer".to_owned(),
                };
                let met = fault.map(|kind| format!(" [{kind}]")).unwrap_or_default();
                format!("  {} {}:{number}{met} -> {status}", invocation.name, way.site)
            });
            answer
        })
    }
}

/// One call on its way.
struct Way {
    net: Net,
    inner: SharedHttpConnector,
    site: String,
    number: u32,
}

impl Way {
    async fn carry(
        &self, request: HttpRequest, fault: Option<Kind>, actions: usize, invocation: &crate::net::Invocation,
    ) -> Answer {
        let Some(kind) = fault else { return self.sent(request, 0).await };
        match kind {
            Kind::Refused => self.broken(ErrorKind::ConnectionRefused).await,
            Kind::Reset => self.broken(ErrorKind::ConnectionReset).await,
            Kind::Throttled | Kind::Conflict | Kind::Internal => {
                self.way(4).await;
                status(&self.refusal(kind, actions))
            }
            Kind::InternalApplied => {
                let _ = self.sent(request, 0).await;
                status(&self.refusal(Kind::Internal, actions))
            }
            Kind::LostReply => {
                let _ = self.sent(request, 0).await;
                Err(broken(ErrorKind::ConnectionReset))
            }
            Kind::Silence => std::future::pending().await,
            Kind::AppliedLate => {
                let late_ms = 2_600 + self.net.dice(&self.site, self.number, 5) % 12_000;
                self.send(request, late_ms);
                std::future::pending().await
            }
            Kind::Twice => {
                let later_ms = self.net.dice(&self.site, self.number, 6) % 8_000;
                if let Some(copy) = request.try_clone() {
                    self.send(copy, later_ms);
                }
                self.sent(request, 0).await
            }
            Kind::KilledBefore => self.killed(invocation).await,
            Kind::KilledInFlight => {
                self.send(request, 0);
                self.killed(invocation).await
            }
            Kind::KilledAfter => {
                let _ = self.sent(request, 0).await;
                self.killed(invocation).await
            }
            Kind::StaleIndex => self.stale(self.sent(request, 0).await),
            // Of destinations only: none of them fits a call of AWS.
            Kind::InProgress | Kind::StoredError | Kind::Garbage | Kind::Down | Kind::Declined => {
                self.sent(request, 0).await
            }
        }
    }

    async fn killed(&self, invocation: &crate::net::Invocation) -> Answer {
        self.net.tell(|| format!("  {} {}:{} the sandbox dies", invocation.name, self.site, self.number));
        invocation.kill();
        std::future::pending().await
    }

    async fn way(&self, purpose: u64) {
        sleep(Duration::from_millis(self.net.way_ms(&self.site, self.number, purpose))).await;
    }

    async fn broken(&self, kind: ErrorKind) -> Answer {
        self.way(4).await;
        Err(broken(kind))
    }

    /// Puts a request on the wire: from here on it is applied, whatever becomes of the caller.
    fn send(&self, request: HttpRequest, late_ms: u64) -> tokio::task::JoinHandle<Answer> {
        let way_ms = self.net.way_ms(&self.site, self.number, 3) + late_ms;
        let inner = self.inner.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(way_ms)).await;
            inner.call(request).await
        })
    }

    async fn sent(&self, request: HttpRequest, late_ms: u64) -> Answer {
        let answer = self.send(request, late_ms).await;
        self.way(4).await;
        answer.unwrap_or_else(|_| Err(broken(ErrorKind::ConnectionReset)))
    }

    fn refusal(&self, kind: Kind, actions: usize) -> AwsFault {
        let service = if self.site.contains("Message") { Service::Sqs } else { Service::DynamoDb };
        match kind {
            Kind::Throttled => AwsFault::throttled(service),
            Kind::Conflict if self.site.contains("Transact") => {
                let dice = usize::try_from(self.net.dice(&self.site, self.number, 7)).unwrap_or(0);
                AwsFault::transaction_conflict(actions, &[dice % actions.max(1)])
            }
            Kind::Conflict => AwsFault::item_in_transaction(),
            _ => AwsFault::internal_server_error(service),
        }
    }

    /// Takes out of an index's answer what was written a moment ago.
    fn stale(&self, answer: Answer) -> Answer {
        let response = answer?;
        let text = response.body().bytes().unwrap_or_default().to_vec();
        let Ok(mut json) = serde_json::from_slice::<Value>(&text) else { return Ok(response) };
        let lag_ms = self.net.dice(&self.site, self.number, 8) % INDEX_LAG_MS;
        let shows_from = self.net.elapsed_ms().saturating_sub(lag_ms);
        let state = self.net.lock();
        if let Some(items) = json["Items"].as_array_mut() {
            let key = |item: &Value| format!("{} {}", item["pk"]["S"], item["sk"]["S"]);
            items.retain(|item| state.written.get(&key(item)).is_none_or(|at_ms| *at_ms <= shows_from));
            let count = items.len();
            json["Count"] = count.into();
            json["ScannedCount"] = count.into();
        }
        drop(state);
        respond(200, None, json.to_string().into_bytes())
    }
}

fn broken(kind: ErrorKind) -> ConnectorError {
    ConnectorError::io(std::io::Error::from(kind).into())
}

fn status(fault: &AwsFault) -> Answer {
    let AwsFault::Status(WireResponse { status, query_error, body }) = fault else {
        return Err(broken(ErrorKind::ConnectionReset));
    };
    respond(*status, query_error.as_deref(), body.to_vec())
}

fn respond(status: u16, query_error: Option<&str>, body: Vec<u8>) -> Answer {
    let mut builder = http::Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    if let Some(code) = query_error {
        builder = builder.header("x-amzn-query-error", code);
    }
    let http = builder.body(SdkBody::from(body)).map_err(|error| ConnectorError::user(error.into()))?;
    HttpResponse::try_from(http).map_err(|error| ConnectorError::user(error.into()))
}

/// The call site's name: function, operation, and the tables or the queue.
fn site(function: &str, request: &HttpRequest) -> String {
    let target = request.headers().get("x-amz-target").unwrap_or_default();
    let operation = target.rsplit_once('.').map_or(target, |(_, operation)| operation);
    let body = std::str::from_utf8(request.body().bytes().unwrap_or_default()).unwrap_or_default();
    let mut names: Vec<&str> = values(body, "\"TableName\":\"hookledger-").collect();
    names.sort_unstable();
    names.dedup();
    if let Some(url) = values(body, "\"QueueUrl\":\"").next() {
        names.push(url.rsplit_once("hookledger-").map_or(url, |(_, name)| name).trim_end_matches(".fifo"));
    }
    let index = values(body, "\"IndexName\":\"").next().map(|name| format!("/{name}")).unwrap_or_default();
    format!("{function} {operation} {}{index}", names.join("+"))
}

fn values<'a>(body: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    body.split(name).skip(1).map(|rest| rest.split('"').next().unwrap_or_default())
}

/// How many actions a transaction has.
fn actions(body: &[u8]) -> usize {
    let text = std::str::from_utf8(body).unwrap_or_default();
    text.matches("\"TableName\":").count()
}
