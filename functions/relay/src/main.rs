//! The Lambda entry point of the relay: one run per scheduled event.

use std::sync::Arc;

use runtime::lambda::{Error, app, serve};
use runtime::settings::{
    BALANCES_TABLE, BILLING_QUEUE_URL, EVENTS_TABLE, JOB_QUEUE_URL, JOBS_TABLE, LEDGER_TABLE, OUTBOUND_QUEUE_URL,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let tables = [EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, BALANCES_TABLE];
    let needed = [&tables[..], &[JOB_QUEUE_URL, BILLING_QUEUE_URL, OUTBOUND_QUEUE_URL]].concat();
    let app = Arc::new(app(&needed).await?);
    serve(move |_schedule: serde_json::Value| {
        let app = app.clone();
        async move { Ok(hookledger_relay::run(&app).await?) }
    })
    .await
}
