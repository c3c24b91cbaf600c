//! The Lambda entry point of the outbound consumer.

use std::sync::Arc;

use runtime::call::HttpsCaller;
use runtime::lambda::{Error, app_with_bus, serve};
use runtime::settings::{EVENTS_TABLE, JOBS_TABLE, OUTBOUND_QUEUE_URL};
use runtime::sqs::SqsEvent;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let app = app_with_bus(&[EVENTS_TABLE, JOBS_TABLE, OUTBOUND_QUEUE_URL]).await?;
    // The certificates of the whole world are read only where something goes there.
    let calls = app.profiles.destinations().next().is_some();
    let app = if calls { app.calling(Arc::new(HttpsCaller::new()?)) } else { app };
    let app = Arc::new(app);
    serve(move |event: SqsEvent| {
        let app = app.clone();
        async move { Ok(hookledger_outbound::handle(&app, event).await) }
    })
    .await
}
