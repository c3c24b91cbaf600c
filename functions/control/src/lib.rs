//! The control API: what operators and our own services ask for. IAM authorises; the actor is the
//! caller's identity from the request context.

mod actions;
mod bulk;
mod cases;
mod events;
mod jobs;
mod pauses;
mod reconciliations;
mod rejected;
mod replays;
mod resolve;
mod reviews;
mod risk;
mod statements;
mod status;
mod wallets;
mod window;

use std::future::Future;
use std::pin::Pin;

use domain::limits::MAX_CONTROL_BODY_BYTES;
use domain::submit::RequestError;
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use serde::de::DeserializeOwned;
use store::StoreError;

/// Handles one request.
pub async fn handle(app: &App, event: &GatewayEvent) -> GatewayResponse {
    let Some(parts) = event.path_parts() else {
        return Problem::bad_request("the path is not UTF-8 once it is decoded").response();
    };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let routed: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(route(app, event, &parts));
    let response = routed.await.unwrap_or_else(|problem: Problem| problem.response());
    tracing::info!(
        method = %event.request_context.http.method, path = %event.raw_path, actor = %event.actor(),
        status = response.status_code, "control"
    );
    response
}

async fn route(app: &App, event: &GatewayEvent, parts: &[&str]) -> Result<GatewayResponse, Problem> {
    let method = event.request_context.http.method.as_str();
    match (method, parts) {
        ("PUT", ["control", "tenants", tenant, "wallets", wallet]) => wallets::create(app, event, tenant, wallet).await,
        ("GET", ["control", "tenants", tenant, "wallets", wallet]) => wallets::show(app, tenant, wallet).await,
        ("POST", ["control", "tenants", tenant, "wallets", wallet, "fund"]) => {
            wallets::fund(app, event, tenant, wallet).await
        }
        ("GET", ["control", "tenants", tenant, "wallets", wallet, "statement"]) => {
            statements::statement(app, event, tenant, wallet).await
        }
        ("GET", ["control", "tenants", tenant, "wallets", wallet, "holds"]) => {
            statements::holds(app, event, tenant, wallet).await
        }
        ("GET", ["control", "rejected"]) => rejected::list(app, event).await,
        ("GET", ["control", "export"]) => statements::export(app, event).await,
        ("PUT", ["control", "tenants", tenant, "jobs", job]) => jobs::submit(app, event, tenant, job).await,
        ("GET", ["control", "tenants", tenant, "bookings", booking]) => jobs::booking(app, tenant, booking).await,
        ("GET", ["control", "tenants", tenant, "jobs", job]) => jobs::show(app, tenant, job).await,
        ("POST", ["control", "tenants", tenant, "jobs", job, action]) => match actions::Kind::parse(action) {
            Some(kind) => actions::act(app, event, tenant, job, kind).await,
            None => Err(Problem::not_found(format!(
                "a job can be cancelled, extended, adjusted or reversed, not {action:?}"
            ))),
        },
        ("GET", ["control", "events", provider, id @ ..]) if !id.is_empty() => {
            events::show(app, provider, &id.join("/")).await
        }
        ("GET", ["control", "status"]) => status::show(app).await,
        ("GET", ["control", "tenants", tenant, "wallets", wallet, "fundings", reference]) => {
            wallets::funding(app, tenant, wallet, reference).await
        }
        ("POST", ["control", "replays"]) => replays::replay(app, event).await,
        ("GET", ["control", "pauses"]) => pauses::list(app).await,
        ("PUT", ["control", "pauses", name]) => pauses::switch(app, event, name).await,
        ("GET", ["control", "reviews"]) => reviews::list(app, event).await,
        ("POST", ["control", "reviews"]) => bulk::resolve(app, event).await,
        ("POST", ["control", "reviews", review]) => resolve::resolve(app, event, review).await,
        ("POST", ["control", "reconciliations"]) => reconciliations::start(app, event).await,
        ("GET", ["control", "reconciliations", run]) => reconciliations::show(app, event, run).await,
        ("GET", ["control", "reconciliations", run, "cases", case]) => reconciliations::case(app, run, case).await,
        ("POST", ["control", "reconciliations", run, "cases", case]) => {
            reconciliations::decide(app, event, run, case).await
        }
        _ => Err(Problem::not_found(format!("no such call: {method} {}", event.raw_path))),
    }
}

/// Reads a JSON body; the error names the field, the line and the column, never the content.
fn body<T: DeserializeOwned>(event: &GatewayEvent) -> Result<T, Problem> {
    let bytes = event.body_bytes().map_err(|error| Problem::bad_request(error.to_string()))?;
    if bytes.is_empty() {
        return Err(Problem::bad_request("the body is empty: send a JSON object"));
    }
    if bytes.len() > MAX_CONTROL_BODY_BYTES {
        let detail = format!("the body has {} bytes; at most {MAX_CONTROL_BODY_BYTES} are taken", bytes.len());
        return Err(Problem::new(413, "too-large", "The body is too large", detail));
    }
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::bad_request("the body is not a JSON object: it must begin with '{'")); // serde takes arrays too
    }
    let mut reader = serde_json::Deserializer::from_slice(&bytes);
    let read = serde_path_to_error::deserialize(&mut reader);
    let read = read.map_err(|error| unreadable(&error.path().to_string(), error.inner()))?;
    reader.end().map_err(|error| unreadable(".", &error))?;
    Ok(read)
}

/// What serde found wrong, less the value that it found ("invalid type: string \"...\", expected ...").
fn unreadable(path: &str, error: &serde_json::Error) -> Problem {
    const LONGEST: usize = 200;
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    let what = match what.rsplit_once(", expected ") {
        Some((found, expected)) if found.starts_with("invalid ") => format!("expected {expected}"),
        _ => what.to_owned(),
    };
    let named = if path == "." { what } else { format!("{path}: {what}") };
    let named: String = named.chars().take(LONGEST).collect(); // a name is as long as the caller made it
    Problem::bad_request(format!("{named} (line {}, column {})", error.line(), error.column()))
}

/// Longest reason in characters.
const MAX_REASON_CHARS: usize = 300;

/// A reason that can be recorded.
fn check_reason(reason: &str) -> Result<(), Problem> {
    if reason.trim().is_empty() || reason.chars().count() > MAX_REASON_CHARS {
        return Err(Problem::invalid(format!("reason: say why in 1 to {MAX_REASON_CHARS} characters; it is recorded")));
    }
    Ok(())
}

/// An id from the path.
fn id<T: std::str::FromStr<Err = domain::ids::IdError>>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: domain::ids::IdError| Problem::invalid(error.to_string()))
}

#[expect(clippy::needless_pass_by_value, reason = "it is used as a map_err argument")]
fn refused(error: RequestError) -> Problem {
    match error {
        // A member too many or too few, which only the wallet tells.
        RequestError::HoldMissing | RequestError::HoldOnPostpaid(_) | RequestError::AuthoriseMissing(_) => {
            Problem::bad_request(error.to_string())
        }
        _ => Problem::invalid(error.to_string()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is used as a map_err argument")]
fn unavailable(error: StoreError) -> Problem {
    tracing::error!(%error, "control request not carried out");
    if error.is_transient() {
        return Problem::unavailable();
    }
    let detail = "the operator's log has the reason";
    Problem::new(500, "internal", "The request cannot be carried out", detail)
}
