//! The Lambda entry point of the control API.

use std::sync::Arc;

use runtime::gateway::GatewayEvent;
use runtime::lambda::{Error, app, serve};
use runtime::settings::{
    BALANCES_TABLE, BILLING_QUEUE_URL, EVENTS_TABLE, JOB_QUEUE_URL, JOBS_TABLE, LEDGER_TABLE, OUTBOUND_QUEUE_URL,
    RECONCILE_QUEUE_URL,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let tables = [EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, BALANCES_TABLE];
    let queues = [JOB_QUEUE_URL, BILLING_QUEUE_URL, OUTBOUND_QUEUE_URL, RECONCILE_QUEUE_URL];
    let app = Arc::new(app(&[tables, queues].concat()).await?);
    serve(move |event: GatewayEvent| {
        let app = app.clone();
        async move { Ok(hookledger_control::handle(&app, &event).await) }
    })
    .await
}
