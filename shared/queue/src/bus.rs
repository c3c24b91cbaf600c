//! Forwarding to an EventBridge bus: one entry, whose own result is read.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};
use domain::intent::Intent;

use crate::{BUSY, QueueError, Queues, queue_error};

/// `source` of every forwarded event.
pub const SOURCE: &str = "hookledger";
/// `detail-type` of every forwarded event; rules choose by the members of `detail`.
pub const DETAIL_TYPE: &str = "hookledger event";

impl Queues {
    /// With a client for EventBridge; only the outbound function has one.
    #[must_use]
    pub fn with_bus(mut self, bus: Client) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Puts an intent's bytes on a bus, by its name or ARN, as the `detail` of one event. EventBridge
    /// recognises no repetition: the `key` in the bytes is the reader's.
    ///
    /// # Errors
    /// [`QueueError`]; the event may or may not have arrived.
    pub async fn put_event(&self, bus: &str, intent: &Intent) -> Result<(), QueueError> {
        const OPERATION: &str = "put event";
        let Some(client) = &self.bus else { return Err(QueueError::refusal(OPERATION, "no client for EventBridge")) };
        let entry = PutEventsRequestEntry::builder()
            .event_bus_name(bus)
            .source(SOURCE)
            .detail_type(DETAIL_TYPE)
            .detail(&intent.request)
            .build();
        let put = client.put_events().entries(entry).send().await;
        let put = put.map_err(|error| queue_error(OPERATION, &error))?;
        // A call that succeeds may have taken none of its entries.
        match put.entries.as_deref().and_then(<[PutEventsResultEntry]>::first) {
            Some(one) if one.event_id.is_some() => Ok(()),
            Some(one) => {
                let code = one.error_code().unwrap_or("unknown");
                let refused = !BUSY.contains(&code) && !code.starts_with("Internal");
                Err(QueueError { operation: OPERATION, reason: code.to_owned(), refused })
            }
            None => Err(QueueError { operation: OPERATION, reason: "no usable answer".to_owned(), refused: false }),
        }
    }
}
