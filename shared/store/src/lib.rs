//! The only room that speaks DynamoDB: real condition expressions, and every outcome classified.
//!
//! A caller never sees an SDK error. It sees an answer that means something (stored, exists, lost to
//! another writer) or a [`StoreError`] that carries the decision: try again, unknown, permanent. An
//! SDK error's Debug can hold a stored item, so it is converted here and dropped.

mod balances;
mod bookings;
mod cases;
mod error;
mod events;
mod fetched;
mod intents;
mod item;
mod jobs;
mod ledger;
mod operations;
mod pauses;
mod rejected;
mod replays;
mod requests;
mod reviews;
mod runs;
mod statements;
mod sweep;
pub mod tables;
mod told;
mod view;

use aws_sdk_dynamodb::Client;

pub use bookings::Recorded;
pub use error::{Commit, StoreError};
pub use events::{EventRecords, ReceiptPut};
pub use intents::IntentPut;
pub use jobs::{Attached, ProgressPut, Submitted, TransitionPut};
pub use ledger::WalletCreated;
pub use operations::OperationPut;
pub use pauses::Parked;
pub use replays::ReplayPart;
pub use requests::ControlRequest;
pub use reviews::{OpenRow, ReviewRow, Reviewed};
pub use runs::FoundPage;
pub use statements::{EntryKey, StatementPage};
pub use sweep::{Cursor, OpenReview};

/// Names of the four tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    /// Receipts, operations, conflicts, cursors.
    pub events: String,
    /// Jobs, transitions, references, progress.
    pub jobs: String,
    /// Settlements and fundings; append-only.
    pub ledger: String,
    /// Balances.
    pub balances: String,
}

impl TableNames {
    /// The four names with a common prefix: `{prefix}-events` and so on.
    pub fn with_prefix(prefix: &str) -> Self {
        let name = |table: &str| format!("{prefix}-{table}");
        Self { events: name("events"), jobs: name("jobs"), ledger: name("ledger"), balances: name("balances") }
    }
}

/// The four tables behind one client.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    names: TableNames,
    consistent: bool,
}

impl Store {
    /// A store over a configured client.
    pub fn new(client: Client, names: TableNames) -> Self {
        Self { client, names, consistent: true }
    }

    /// The same store, its reads at half the price: what they show has been written, what they do not show may have been
    /// as well. Since history is append-only, an effect that is seen stands; one that is not seen has to be read again.
    #[must_use]
    pub fn at_a_glance(&self) -> Self {
        Self { consistent: false, ..self.clone() }
    }
}
