//! What Lambda does around a handler: one invocation has a time limit, and a panic ends that invocation only.

use std::error::Error;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::watch;

/// An error of a handler.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What a handler's call gives.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Value, BoxError>> + Send>>;

/// A function as Lambda sees it: an event in, an answer or an error out.
pub type Handler = Arc<dyn Fn(Value) -> HandlerFuture + Send + Sync>;

/// Makes a [`Handler`] of an async function.
pub fn handler<F, Fut, E>(function: F) -> Handler
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, E>> + Send + 'static,
    E: Into<BoxError> + 'static,
{
    Arc::new(move |event| {
        let running = function(event);
        Box::pin(async move { running.await.map_err(Into::into) })
    })
}

/// Why an invocation gave no answer.
#[derive(Debug, Error)]
pub enum InvokeError {
    /// The handler returned an error.
    #[error("the function failed: {0}")]
    Failed(BoxError),
    /// The handler did not end in time and was dropped where it stood, as a killed sandbox is.
    #[error("the function timed out after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The handler panicked.
    #[error("the function panicked")]
    Panicked,
}

/// Runs a handler once.
///
/// # Errors
/// [`InvokeError`]: whatever happened, the caller is not affected beyond it.
pub async fn invoke(handler: &Handler, event: Value, limit: Duration) -> Result<Value, InvokeError> {
    let handler = Arc::clone(handler);
    // The call itself is inside, since a handler may panic before its first await.
    let running = AssertUnwindSafe(async move { handler(event).await }).catch_unwind();
    match tokio::time::timeout(limit, running).await {
        Err(_) => Err(InvokeError::TimedOut(limit)),
        Ok(Err(_)) => Err(InvokeError::Panicked),
        Ok(Ok(Err(error))) => Err(InvokeError::Failed(error)),
        Ok(Ok(Ok(answer))) => Ok(answer),
    }
}

/// Tells the running loops to end: send `true`, or drop the sender.
pub type Stop = watch::Receiver<bool>;

/// Returns once the stop was given.
pub(crate) async fn stopped(stop: &mut Stop) {
    // An error means that the sender is gone, which is a stop as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::panic,
        clippy::unwrap_used,
        reason = "a test fails by panicking, and one of these handlers panics on purpose"
    )]
    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn lam_02_a_panic_a_timeout_and_an_error_end_one_invocation_only() {
        let function = handler(|event: Value| async move {
            match event.as_str() {
                Some("panic") => panic!("on purpose"),
                Some("sleep") => tokio::time::sleep(2 * LIMIT).await,
                Some("fail") => return Err("no"),
                _ => (),
            }
            Ok(event)
        });
        let run = |event: &str| {
            let event = Value::from(event);
            let function = Arc::clone(&function);
            async move { invoke(&function, event, LIMIT).await }
        };
        assert!(matches!(run("panic").await, Err(InvokeError::Panicked)));
        assert!(matches!(run("sleep").await, Err(InvokeError::TimedOut(limit)) if limit == LIMIT));
        assert!(matches!(run("fail").await, Err(InvokeError::Failed(_))));
        assert_eq!(run("fine").await.unwrap(), Value::from("fine"));
    }
}
