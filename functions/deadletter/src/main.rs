//! The Lambda entry point of the dead-letter consumer.

use std::sync::Arc;

use runtime::lambda::{Error, app, serve};
use runtime::settings::EVENTS_TABLE;
use runtime::sqs::SqsEvent;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let app = Arc::new(app(&[EVENTS_TABLE]).await?);
    serve(move |event: SqsEvent| {
        let app = app.clone();
        async move { Ok(hookledger_deadletter::handle(&app, event).await) }
    })
    .await
}
