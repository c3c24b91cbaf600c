//! `hookledger dev`: the whole system on this machine.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use domain::limits::RetryPolicy;
use domain::profile::{Profile, Profiles, SecretPlace};
use local::gateway::{Gateway, GatewayConfig};
use local::network::network_keys;
use local::provider::ProviderSimulator;
use local::provider_list::{LIST_URL, SimulatorFetch};
use local::stack::{SecretOf, Stack, StackConfig, gateway_timeout};
use local::{Clock, EmbeddedAws, SystemClock, forwarded};
use runtime::call::{Caller, HttpsCaller, NoCaller};
use runtime::fetch::{Fetch, HttpsFetch};
use runtime::random::SharedRandom;
use runtime::telemetry;
use signature::{Secret, Verifier};
use tokio::sync::watch;
use tracing_subscriber::layer::SubscriberExt;

use crate::args::DevArgs;
use crate::error::CliError;
use crate::files;
use crate::secrets::DEV_ACME_SECRET;

/// The environment variable that the sample profile reads.
const DEV_ACME_VARIABLE: &str = "ACME_WEBHOOK_SECRET";
/// The environment variable with the URL of its list of jobs.
const DEV_ACME_LIST: &str = "ACME_LIST_URL";

/// Runs until interrupted.
pub fn run(args: &DevArgs) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Runtime::new().map_err(|e| CliError::Failed(format!("no async runtime: {e}")))?;
    runtime.block_on(serve(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: &DevArgs) -> Result<(), CliError> {
    log_to_stderr();
    telemetry::quiet_panics();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let profiles = Arc::new(files::profiles(args.profiles.providers.as_deref())?);
    let provider = Arc::new(provider(args, &profiles)?);
    let config = StackConfig {
        clock: clock.clone(),
        random: Arc::new(SharedRandom::from_system()),
        secret: Arc::new(secret),
        keys: network_keys(&profiles, secret).await,
        judge_at_ms: args.at.map(|seconds| seconds.saturating_mul(1000)),
        base_url: Some(args.public_url.clone().unwrap_or_else(|| format!("http://127.0.0.1:{}", args.port))),
        address: address(args.endpoint.is_none(), profiles.clone()),
        profiles,
        prices: Arc::new(files::prices(args.prices.as_deref())?),
        policy: RetryPolicy::default(),
        fetch: Arc::new(SimulatorFetch { provider: provider.clone(), other: https() }),
        caller: caller(),
        hooks: Arc::new(|_| Vec::new()),
    };
    let stack = Arc::new(Box::pin(open(args, clock.clone(), config)).await?);
    let gateway = GatewayConfig { port: args.port, function_timeout: gateway_timeout(), local_actor: None };
    let gateway = Gateway::bind(gateway, clock, stack.http(provider.clone()))
        .await
        .map_err(|e| CliError::Failed(format!("port {} of 127.0.0.1: {e}; choose another with --port", args.port)))?;
    announce(args, gateway.local_addr().port());
    let (stopper, stop) = watch::channel(false);
    let served = tokio::spawn(gateway.run(stop.clone()));
    let consumed = tokio::spawn(stack.serve(provider, stop));
    let _ = tokio::signal::ctrl_c().await; // an error here means no signals: stop at once
    let _ = stopper.send(true);
    let _ = tokio::join!(served, consumed);
    Ok(())
}

/// The provider simulator: a subscription for each profile whose secret is set and whose scheme can sign.
fn provider(args: &DevArgs, profiles: &Profiles) -> Result<ProviderSimulator, CliError> {
    let signer = |profile: &Profile| {
        let verifier = Verifier::new(profile.recipe.clone(), signing(profile, secret)).ok()?;
        Some((profile.slug.to_string(), verifier))
    };
    let file = args.data.as_ref().map(|dir| dir.join("provider.jsonl"));
    if let Some(dir) = &args.data {
        std::fs::create_dir_all(dir).map_err(|e| CliError::Failed(format!("{}: {e}", dir.display())))?;
    }
    ProviderSimulator::open(profiles.iter().filter_map(signer).collect(), file.as_deref())
        .map_err(|e| CliError::Failed(format!("the provider simulator's event store: {e}")))
}

/// The secrets that the simulator signs with. A reference is left out: only the receiver fetches what it names.
fn signing(profile: &Profile, variable: impl Fn(&str) -> Option<String>) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for name in profile.secret_variables() {
        match variable(name) {
            Some(value) if SecretPlace::refers(&value) => tracing::warn!(
                provider = %profile.slug, variable = name,
                "it holds a reference, which the simulator cannot sign with: set it to the secret itself to simulate this \
                 provider"
            ),
            Some(value) => secrets.push(Secret::new(name, value)),
            None => {}
        }
    }
    secrets
}

/// From the environment; only the sample provider has defaults: a secret, and the simulator's list of jobs.
fn secret(name: &str) -> Option<String> {
    let default = || match name {
        DEV_ACME_VARIABLE => Some(DEV_ACME_SECRET.to_owned()),
        DEV_ACME_LIST => Some(LIST_URL.to_owned()),
        _ => None,
    };
    std::env::var(name).ok().or_else(default)
}

/// Where events are forwarded to: the environment's address, else a queue or bus of the embedded AWS.
fn address(embedded: bool, profiles: Arc<Profiles>) -> SecretOf {
    Arc::new(move |name| {
        let own = || forwarded::address_of(&profiles, name).filter(|_| embedded);
        std::env::var(name).ok().filter(|set| !set.is_empty()).or_else(own)
    })
}

/// The network, for lists of providers that are not simulated; without the system's certificates there is none.
fn https() -> Option<Arc<dyn Fetch>> {
    match HttpsFetch::new() {
        Ok(fetch) => Some(Arc::new(fetch)),
        Err(error) => {
            tracing::warn!(%error, "no certificate roots: only the simulated provider's list can be read");
            None
        }
    }
}

/// The network, for HTTP destinations; without the system's certificates nothing is sent there.
fn caller() -> Arc<dyn Caller> {
    match HttpsCaller::new() {
        Ok(caller) => Arc::new(caller),
        Err(error) => {
            tracing::warn!(%error, "no certificate roots: nothing is sent to HTTP destinations");
            Arc::new(NoCaller)
        }
    }
}

async fn open(args: &DevArgs, clock: Arc<dyn Clock>, config: StackConfig) -> Result<Stack, CliError> {
    if let Some(endpoint) = &args.endpoint {
        let stack = Stack::remote(endpoint, config).await;
        return stack
            .map_err(|e| CliError::Failed(format!("{endpoint}: {e}; is it running, and reachable from here?")));
    }
    let aws = match &args.data {
        Some(dir) => EmbeddedAws::open(Path::new(dir), clock),
        None => EmbeddedAws::memory(clock),
    };
    let aws = aws.map_err(|e| CliError::Failed(format!("the embedded AWS does not start: {e}")))?;
    forwarded::create_queues(&aws, &config.profiles)
        .map_err(|e| CliError::Failed(format!("the queues that events are forwarded to: {e}")))?;
    Stack::embedded(&aws, config).await.map_err(|e| CliError::Failed(format!("the stack does not start: {e}")))
}

/// The first line is for scripts; the rest tells a person what to do next.
fn announce(args: &DevArgs, port: u16) {
    let kept = match (&args.endpoint, &args.data) {
        (Some(endpoint), _) => format!("state is kept at {endpoint}"),
        (None, Some(dir)) => format!("state is kept in {}", dir.display()),
        (None, None) => "state is in memory and ends with this process; keep it with --data DIR".to_owned(),
    };
    let mut out = std::io::stdout().lock();
    // A closed stdout is the reader's choice; the server runs on.
    let _ = writeln!(out, "ready http://127.0.0.1:{port}");
    let _ = writeln!(out, "webhooks   POST http://127.0.0.1:{port}/webhooks/{{provider}}");
    let _ = writeln!(
        out,
        "provider   POST http://127.0.0.1:{port}/provider/{{provider}}/events   (a provider that retries)"
    );
    let _ = writeln!(out, "control    http://127.0.0.1:{port}/control/...   ({kept})");
    if std::env::var(DEV_ACME_VARIABLE).is_err() {
        let _ = writeln!(out, "acme's secret, for development only: {DEV_ACME_SECRET}");
    }
    let _ = writeln!(out, "stop with Ctrl-C");
    let _ = out.flush();
}

fn log_to_stderr() {
    let level = std::env::var("HOOKLEDGER_LOG").unwrap_or_else(|_| "info".to_owned());
    let filter = telemetry::filter(&level);
    // A second start keeps the first subscriber.
    let lines = tracing_subscriber::fmt().with_target(false).with_writer(std::io::stderr);
    let lines = lines.with_max_level(tracing::level_filters::LevelFilter::TRACE).finish().with(filter);
    let _ = tracing::subscriber::set_global_default(lines);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn the_simulator_signs_with_values_of_variables_and_not_with_references() {
        let rolled = r#"[{ at = "OLD_SECRET", id = "2026-11" }, "NEW_SECRET", "secretsmanager:hooks/acme"]"#;
        let text = runtime::lambda::PROVIDERS_TOML.replacen(r#"["ACME_WEBHOOK_SECRET"]"#, rolled, 1);
        let profiles = Profiles::parse(&text).unwrap();
        let set = |name: &str| match name {
            "OLD_SECRET" => Some("old".to_owned()),
            "NEW_SECRET" => Some("secretsmanager:hooks/acme#NEW".to_owned()),
            _ => None,
        };
        assert_eq!(signing(profiles.get("acme").unwrap(), set), [Secret::new("OLD_SECRET", "old")]);
    }
}
