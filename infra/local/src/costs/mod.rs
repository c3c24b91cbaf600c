//! What an event costs: counted on the embedded stack, with the real handlers under the real SDK.
//!
//! A [`Scenario`] sends signed events as a provider would, each through the receiver, and gives the messages to the
//! consumers in batches, as the event source does. Counted are AWS calls, round trips, capacity and log bytes of each
//! step; then what relay and reconciler spend on the same receipts later. [`prices`] turns it into dollars.
//!
//! Counts do not depend on the machine. What they leave out is said where they are priced.

mod destination;
pub mod prices;
mod run;

use domain::operation::Consumer;
use serde::Serialize;

use crate::meter::Counts;

/// How events are sent and taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// How many events, each of another job, at least one.
    pub events: usize,
    /// Over how many wallets they are spread, at least one. Settlements are committed together within one wallet.
    pub wallets: usize,
    /// Messages of one invocation at most: 1 to 10, as a FIFO event source allows.
    pub batch: usize,
    /// Which consumer comes first, and so writes the transition; the billing consumer pays double for it.
    pub first: Consumer,
}

/// The path of some deliveries: until the last consumer is done with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Path {
    /// Deliveries.
    pub events: u64,
    /// The receiver.
    pub receiver: Counts,
    /// The job consumer.
    pub job: Counts,
    /// The billing consumer.
    pub billing: Counts,
    /// The outbound consumer; its calls of a destination are no AWS calls, one for each invocation.
    pub outbound: Counts,
    /// Bytes of the functions' own log lines.
    pub log_bytes: u64,
    /// The functions' own log lines.
    pub log_lines: u64,
}

impl Path {
    /// Everything but the log.
    #[must_use]
    pub fn total(&self) -> Counts {
        let mut total = self.receiver;
        total.add(self.job);
        total.add(self.billing);
        total.add(self.outbound);
        total
    }
}

/// Bytes of the largest stored item of a kind, by DynamoDB's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Sizes {
    /// The receipt.
    pub receipt: usize,
    /// The transition.
    pub transition: usize,
    /// The close of the hold.
    pub close: usize,
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Measured {
    /// Messages of one invocation at most.
    pub batch: u64,
    /// Events with two operations that go straight: transition and settlement.
    pub straight: Path,
    /// What the relay spends on their receipts when their minute is over, beyond an idle run.
    pub relay: Counts,
    /// What one of the reconciler's two passes spends on them, beyond an idle pass.
    pub pass: Counts,
    /// The same deliveries again.
    pub duplicate: Path,
    /// Events whose charge exceeds the hold, so that a review is opened.
    pub review: Path,
    /// Events that are only sent on, each to an HTTP destination that takes it at once.
    pub forward: Path,
    /// Events with two operations whose settlement is charged at a payment provider, until the charge is answered.
    pub charge: Path,
    /// Of what the straight events stored.
    pub sizes: Sizes,
}

pub use run::measure;
