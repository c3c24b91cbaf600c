//! The Lambda entry point of the receiver.

use std::sync::Arc;

use hookledger_receiver::Receiver;
use runtime::gateway::GatewayEvent;
use runtime::lambda::{Error, app, serve};
use runtime::settings::{
    BILLING_QUEUE_URL, EVENTS_TABLE, JOB_QUEUE_URL, JOBS_TABLE, LEDGER_TABLE, OUTBOUND_QUEUE_URL, PUBLIC_URL,
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let needed = [EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, JOB_QUEUE_URL, BILLING_QUEUE_URL, OUTBOUND_QUEUE_URL];
    let receiver = Receiver::new(app(&needed).await?, |name| std::env::var(name).ok())
        .with_base_url(std::env::var(PUBLIC_URL).ok().filter(|url| !url.is_empty()));
    let receiver = Arc::new(receiver);
    serve(move |event: GatewayEvent| {
        let receiver = receiver.clone();
        async move { Ok(receiver.handle(&event).await) }
    })
    .await
}
