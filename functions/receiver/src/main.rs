//! The Lambda entry point of the receiver.

use std::sync::Arc;

use hookledger_receiver::{AwsKeys, DEFAULT_LIFE_MS, Receiver};
use runtime::gateway::GatewayEvent;
use runtime::lambda::{Error, app_and_config, serve};
use runtime::settings::{
    BILLING_QUEUE_URL, EVENTS_TABLE, JOB_QUEUE_URL, JOBS_TABLE, LEDGER_TABLE, OUTBOUND_QUEUE_URL, PUBLIC_URL,
    SECRET_CACHE_S, seconds,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let needed = [EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, JOB_QUEUE_URL, BILLING_QUEUE_URL, OUTBOUND_QUEUE_URL];
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let life_ms = seconds(SECRET_CACHE_S, DEFAULT_LIFE_MS / 1000, variable)? * 1000;
    let (app, config) = app_and_config(&needed).await?;
    let receiver = Receiver::new(app, |name| std::env::var(name).ok());
    let keys = AwsKeys::from_config(config);
    let receiver = Arc::new(receiver.fetching(Arc::new(keys), life_ms).with_base_url(variable(PUBLIC_URL)));
    receiver.warm().await;
    serve(move |event: GatewayEvent| {
        let receiver = receiver.clone();
        async move { Ok(receiver.handle(&event).await) }
    })
    .await
}
