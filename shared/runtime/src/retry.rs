//! What another round within the same invocation may repair: a conflict with another transaction,
//! and one unknown outcome, which the next round resolves by reading the effect.

use store::StoreError;

use crate::App;
use crate::app::CONFLICT_RETRIES;

/// Counts the rounds that errors have cost.
#[derive(Debug)]
pub struct Again<'a> {
    app: &'a App,
    conflicts: u32,
    unknown: u32,
}

impl<'a> Again<'a> {
    /// No round spent yet.
    pub fn new(app: &'a App) -> Self {
        Self { app, conflicts: 0, unknown: 0 }
    }

    /// Returns when another round makes sense.
    ///
    /// # Errors
    /// The error itself when the operation should be deferred instead.
    pub async fn after(&mut self, error: StoreError) -> Result<(), StoreError> {
        match &error {
            StoreError::Unknown { .. } if self.unknown == 0 => self.unknown += 1,
            error if error.is_conflict() => return self.after_conflict(error.clone()).await,
            _ => return Err(error),
        }
        Ok(())
    }

    /// A transaction was cancelled because another one was at work.
    ///
    /// # Errors
    /// Busy when the rounds are spent.
    pub async fn conflict(&mut self, operation: &'static str) -> Result<(), StoreError> {
        self.after_conflict(StoreError::Busy { operation, code: "TransactionConflict".to_owned() }).await
    }

    async fn after_conflict(&mut self, error: StoreError) -> Result<(), StoreError> {
        if self.conflicts >= CONFLICT_RETRIES {
            return Err(error);
        }
        self.conflicts += 1;
        self.app.pause().await;
        Ok(())
    }
}
