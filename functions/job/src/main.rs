//! The Lambda entry point of the job consumer.

use std::sync::Arc;

use runtime::lambda::{Error, app, serve};
use runtime::settings::{EVENTS_TABLE, JOBS_TABLE, OUTBOUND_QUEUE_URL};
use runtime::sqs::SqsEvent;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let app = Arc::new(app(&[EVENTS_TABLE, JOBS_TABLE, OUTBOUND_QUEUE_URL]).await?);
    serve(move |event: SqsEvent| {
        let app = app.clone();
        async move { Ok(hookledger_job::handle(&app, event).await) }
    })
    .await
}
