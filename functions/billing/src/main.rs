//! The Lambda entry point of the billing consumer.

use std::sync::Arc;

use runtime::lambda::{Error, app, serve};
use runtime::settings::{BALANCES_TABLE, EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, OUTBOUND_QUEUE_URL};
use runtime::sqs::SqsEvent;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let app = Arc::new(app(&[EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, BALANCES_TABLE, OUTBOUND_QUEUE_URL]).await?);
    serve(move |event: SqsEvent| {
        let app = app.clone();
        async move { Ok(hookledger_billing::handle(&app, event).await) }
    })
    .await
}
