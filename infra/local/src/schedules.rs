//! The schedules of the stack, as in the template: the relay every minute, the reconciler's passes over receipts, and its
//! daily run.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::lambda::Stop;
use crate::scheduler::run_every;
use crate::stack::Stack;

/// The relay's schedule, as in the template.
const RELAY_EVERY: Duration = Duration::from_secs(60);
/// The reconciler's schedules, as in the template.
const PASSES_EVERY: Duration = Duration::from_secs(15 * 60);
const DAILY: Duration = Duration::from_secs(24 * 3_600);

impl Stack {
    /// The schedules: each repeats what a failed run left, and logs its own errors.
    pub(crate) fn schedule(self: &Arc<Self>, tasks: &mut JoinSet<()>, stop: &Stop) {
        let (relay, passes, daily) = (self.clone(), self.clone(), self.clone());
        tasks.spawn(run_every(RELAY_EVERY, stop.clone(), move || {
            let stack = relay.clone();
            async move {
                let _ = stack.relay().await; // the relay logs its own errors; the next run repeats
            }
        }));
        tasks.spawn(run_every(PASSES_EVERY, stop.clone(), move || {
            let stack = passes.clone();
            async move { told(stack.passes().await) }
        }));
        tasks.spawn(run_every(DAILY, stop.clone(), move || {
            let stack = daily.clone();
            async move { told(stack.daily().await) }
        }));
    }
}

fn told(result: Result<(), store::StoreError>) {
    if let Err(error) = result {
        tracing::error!(%error, "reconciliation not started; the next schedule goes on");
    }
}
