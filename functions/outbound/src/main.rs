//! The Lambda entry point of the outbound consumer.

use std::sync::Arc;

use runtime::lambda::{Error, app_with_bus, serve};
use runtime::settings::EVENTS_TABLE;
use runtime::sqs::SqsEvent;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let app = Arc::new(app_with_bus(&[EVENTS_TABLE]).await?);
    serve(move |event: SqsEvent| {
        let app = app.clone();
        async move { Ok(hookledger_outbound::handle(&app, event).await) }
    })
    .await
}
