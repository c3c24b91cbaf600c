//! The Lambda entry point of the reconciler: parts from its queue, and two schedules.

use std::sync::Arc;

use hookledger_reconciler::Reconciler;
use runtime::call::HttpsCaller;
use runtime::fetch::HttpsFetch;
use runtime::lambda::{Error, app, serve};
use runtime::settings::{BALANCES_TABLE, EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, RECONCILE_QUEUE_URL};
use runtime::sqs::SqsEvent;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let needed = [EVENTS_TABLE, JOBS_TABLE, LEDGER_TABLE, BALANCES_TABLE, RECONCILE_QUEUE_URL];
    let fetch = Arc::new(HttpsFetch::new()?);
    let app = app(&needed).await?;
    let lists = app.profiles.destinations().any(|destination| destination.list.is_some());
    let app = if lists { app.calling(Arc::new(HttpsCaller::new()?)) } else { app };
    let reconciler = Arc::new(Reconciler::new(app, fetch, |name| std::env::var(name).ok()));
    serve(move |event: Value| {
        let reconciler = reconciler.clone();
        async move {
            match event["schedule"].as_str() {
                Some("daily") => reconciler.daily().await?,
                Some(_) => reconciler.passes().await?,
                None => {
                    let batch: SqsEvent = serde_json::from_value(event)?;
                    return Ok(serde_json::to_value(reconciler.handle(&batch).await)?);
                }
            }
            Ok(Value::Null)
        }
    })
    .await
}
