//! The HTTP gateway: what API Gateway's HTTP API does between a caller and a function.
//!
//! An HTTP/1.1 server on 127.0.0.1 that turns each request into an event of payload format 2.0 ([`event`]), runs the
//! routing handler, and turns its answer back ([`response`]). The function runs as a task of its own: a caller that
//! hangs up does not stop it, as on AWS.

pub mod event;
pub mod response;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::lambda::{Handler, Stop, invoke, stopped};
use event::RequestFacts;

/// Longest request body: 10 MB (API Gateway quotas for HTTP APIs).
pub const MAX_BODY_BYTES: usize = 10 * 1_024 * 1_024;

/// The settings of one gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// The port on 127.0.0.1; 0 lets the system choose one.
    pub port: u16,
    /// How long a function may run.
    pub function_timeout: Duration,
    /// Who every caller is taken for, as the ARN of an IAM user: there is no IAM here. Absent: nobody.
    pub local_actor: Option<String>,
}

/// A gateway that listens.
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    service: Arc<Service>,
}

struct Service {
    config: GatewayConfig,
    domain_name: String,
    started_ms: i64,
    requests: AtomicU64,
    clock: Arc<dyn Clock>,
    handler: Handler,
}

impl Gateway {
    /// Listens on the configured port of 127.0.0.1; connections are served once [`Gateway::run`] is called.
    ///
    /// # Errors
    /// The system's, e.g. if the port is taken.
    pub async fn bind(config: GatewayConfig, clock: Arc<dyn Clock>, handler: Handler) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, config.port)).await?;
        let address = listener.local_addr()?;
        let service = Service {
            config,
            domain_name: address.to_string(),
            started_ms: clock.now_ms(),
            requests: AtomicU64::new(0),
            clock,
            handler,
        };
        Ok(Self { listener, address, service: Arc::new(service) })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the stop is given, then lets the requests in progress end.
    pub async fn run(self, mut stop: Stop) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let service = Arc::clone(&self.service);
                    connections.spawn(serve(service, stream, peer, stop.clone()));
                }
                Err(error) => {
                    // E.g. no file descriptor left: one refused connection must not end the server.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
    }
}

async fn serve(service: Arc<Service>, stream: TcpStream, peer: SocketAddr, mut stop: Stop) {
    let answer = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(request, peer).await) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

impl Service {
    async fn answer(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let refused = || response::message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
        // An announced length is enough; a body without one is counted as it comes.
        if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
            return refused();
        }
        let body = match Limited::new(body, MAX_BODY_BYTES).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => return refused(),
            Err(_) => return response::message(StatusCode::BAD_REQUEST, "Bad Request"),
        };
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let facts = RequestFacts {
            source_ip: peer.ip().to_string(),
            domain_name: self.domain_name.clone(),
            request_id: format!("{:x}-{number:06}", self.started_ms),
            time_ms: self.clock.now_ms(),
            local_actor: self.config.local_actor.clone(),
        };
        let event = event::payload_v2(&head, &body, &facts);
        let (handler, limit) = (Arc::clone(&self.handler), self.config.function_timeout);
        let invocation = tokio::spawn(async move { invoke(&handler, event, limit).await });
        match invocation.await {
            Ok(Ok(answer)) => response::from_proxy(&answer),
            Ok(Err(error)) => {
                tracing::warn!(%error, request_id = facts.request_id, "invocation failed");
                response::internal_server_error()
            }
            Err(_) => response::internal_server_error(),
        }
    }
}

#[cfg(test)]
mod tests;
