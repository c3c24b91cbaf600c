//! The Lambda entry point of the control API.

use std::sync::Arc;

use runtime::gateway::GatewayEvent;
use runtime::lambda::{Error, app, serve};
use runtime::settings::{BALANCES_TABLE, EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, RECONCILE_QUEUE_URL};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let app = Arc::new(app(&[EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, BALANCES_TABLE, RECONCILE_QUEUE_URL]).await?);
    serve(move |event: GatewayEvent| {
        let app = app.clone();
        async move { Ok(hookledger_control::handle(&app, &event).await) }
    })
    .await
}
