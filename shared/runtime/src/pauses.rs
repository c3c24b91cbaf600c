//! What a batch knows of the pause switches: read once, strongly consistent, when it is first asked.

use domain::operation::OperationRecord;
use domain::pause::Switches;
use store::{OperationPut, StoreError};
use tokio::sync::OnceCell;

use crate::App;
use crate::consumer::Work;

/// The switches of one batch. Not kept beyond it: the next invocation reads them anew.
#[derive(Debug, Default)]
pub struct BatchSwitches(OnceCell<Result<Switches, StoreError>>);

impl BatchSwitches {
    /// The switches, read at the first call.
    ///
    /// # Errors
    /// [`StoreError`] of that one read: then nobody knows what is paused, and nothing may act.
    pub async fn read(&self, app: &App) -> Result<&Switches, StoreError> {
        self.0.get_or_init(|| app.store.get_switches()).await.as_ref().map_err(Clone::clone)
    }
}

/// Puts an operation where its switch holds it back, in the place of its arrival. No try is counted. Losing
/// to another writer is fine: what stands is final, in review, or waits.
///
/// # Errors
/// [`StoreError`] when it cannot be written.
pub async fn park(app: &App, work: &Work, switch: &str) -> Result<OperationPut, StoreError> {
    let (arrival_ms, now_ms) = (work.receipt.arrival_ms, app.clock.now_ms());
    let (key, old) = (work.key.clone(), work.record.as_ref());
    let parked = OperationRecord::parking(key, old, work.generation, switch, arrival_ms, now_ms, app.random.token());
    tracing::info!(
        event = %work.key.event, operation = %work.key.name, generation = work.generation,
        outcome = "paused", switch, "operation"
    );
    app.store.put_operation(&parked).await
}
