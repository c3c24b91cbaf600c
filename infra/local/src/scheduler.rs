//! The scheduler: calls a closure at a fixed interval, as an EventBridge schedule calls the relay and the reconciler.
//!
//! The first call comes one interval after the start. A run that takes longer than the interval delays the next one;
//! runs never overlap here, though on AWS they may.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::lambda::{Stop, stopped};

/// Calls `task` every `every` until the stop is given; a run in progress is waited for. A run that panics is logged,
/// and the next one comes as planned.
pub async fn run_every<F, Fut>(every: Duration, mut stop: Stop, task: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = ()>,
{
    // Tokio's interval cannot be zero long.
    let every = every.max(Duration::from_millis(1));
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            _ = ticks.tick() => {}
        }
        let run = AssertUnwindSafe(async { task().await }).catch_unwind();
        if run.await.is_err() {
            tracing::error!("a scheduled run panicked; the next one comes as planned");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::panic,
        clippy::unwrap_used,
        reason = "a test fails by panicking, and one of these runs panics on purpose"
    )]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::watch;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn the_first_run_comes_after_one_interval_and_a_panic_stops_nothing() {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let (stop, stopped) = watch::channel(false);
        let scheduler = tokio::spawn(run_every(MINUTE, stopped, move || {
            let run = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                if run == 0 {
                    panic!("on purpose");
                }
            }
        }));
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        tokio::time::sleep(MINUTE).await;
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        stop.send(true).unwrap();
        scheduler.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_in_progress_is_waited_for() {
        let ended = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ended);
        let (stop, stopped) = watch::channel(false);
        let scheduler = tokio::spawn(run_every(MINUTE, stopped, move || {
            let counted = Arc::clone(&counted);
            async move {
                tokio::time::sleep(MINUTE).await;
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }));
        tokio::time::sleep(Duration::from_secs(61)).await;
        drop(stop);
        scheduler.await.unwrap();
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }
}
