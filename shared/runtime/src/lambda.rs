//! The Lambda entry points: a function's `main.rs` names its settings and its handler, no more.

use std::env;
use std::future::Future;
use std::sync::Arc;

use aws_config::SdkConfig;
use domain::limits::RetryPolicy;
use domain::price::PriceBook;
use domain::profile::Profiles;
pub use lambda_http::lambda_runtime::Error;
use lambda_http::lambda_runtime::{LambdaEvent, run, service_fn};
use queue::Queues;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::Store;

use crate::clock::SystemClock;
use crate::destinations::Destinations;
use crate::random::SharedRandom;
use crate::settings::Settings;
use crate::{App, clients, telemetry};

/// `infra/providers.toml`, as it was when the function was built.
pub const PROVIDERS_TOML: &str = include_str!("../../../infra/providers.toml");
/// `infra/prices.toml`, as it was when the function was built.
pub const PRICES_TOML: &str = include_str!("../../../infra/prices.toml");

/// Builds the context from the environment, once per process.
///
/// # Errors
/// A missing setting, or a file that is refused, with what to do.
pub async fn app(needed: &[&'static str]) -> Result<App, Error> {
    app_and_config(needed).await.map(|(app, _)| app)
}

/// As [`app`], with the SDK's configuration, for a function that has a client of its own: one configuration is one
/// HTTP client and one parsing of certificates.
///
/// # Errors
/// As [`app`].
pub async fn app_and_config(needed: &[&'static str]) -> Result<(App, SdkConfig), Error> {
    if domain::planted::COMPILED_IN {
        return Err("built with the simulator's planted mistakes: build this function's package alone".into());
    }
    let settings = Settings::read(needed, |name| env::var(name).ok())?;
    telemetry::start_json(&settings.log);
    telemetry::quiet_panics();
    let config = clients::lambda_config().await?;
    let profiles = Profiles::parse(PROVIDERS_TOML)?;
    let app = App {
        store: Store::new(aws_sdk_dynamodb::Client::new(&config), settings.tables),
        queues: Queues::new(aws_sdk_sqs::Client::new(&config), settings.queues),
        clock: Arc::new(SystemClock),
        random: Arc::new(SharedRandom::from_system()),
        destinations: Arc::new(Destinations::read(&profiles, |name| env::var(name).ok())),
        profiles: Arc::new(profiles),
        prices: Arc::new(PriceBook::parse(PRICES_TOML)?),
        policy: RetryPolicy::default(),
    };
    Ok((app, config))
}

#[cfg(feature = "bus")]
/// As [`app`], with a client for EventBridge: for the function that forwards.
///
/// # Errors
/// As [`app`].
pub async fn app_with_bus(needed: &[&'static str]) -> Result<App, Error> {
    let (app, config) = app_and_config(needed).await?;
    let bus = aws_sdk_eventbridge::Client::new(&config);
    Ok(App { queues: app.queues.clone().with_bus(bus), ..app })
}

/// Polls the Lambda runtime and hands each event to the handler.
///
/// # Errors
/// When the runtime API cannot be reached.
pub async fn serve<E, R, F, Fut>(handler: F) -> Result<(), Error>
where
    E: DeserializeOwned,
    R: Serialize,
    F: Fn(E) -> Fut,
    Fut: Future<Output = Result<R, Error>>,
{
    run(service_fn(|event: LambdaEvent<E>| handler(event.payload))).await
}
