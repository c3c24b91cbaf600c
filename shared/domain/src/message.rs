//! What travels through SQS: keys and a generation, never a payload.

use serde::{Deserialize, Serialize};

use crate::envelope::Envelope;
use crate::fetch::When;
use crate::ids::escape;
use crate::intent::forward_key;
use crate::keys;
use crate::operation::{Consumer, OperationKey, hex_sha256};

/// One dispatch of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Version of this form.
    #[serde(rename = "v")]
    pub version: u32,
    /// Which operation.
    #[serde(rename = "k")]
    pub key: OperationKey,
    /// Which dispatch of it; 0 is the receiver's.
    #[serde(rename = "g")]
    pub generation: u32,
    /// The SQS group, so that a later dispatch stays in the same order.
    #[serde(rename = "q")]
    pub group: String,
    /// The X-Ray trace of the delivery; it travels as SQS's own system attribute, not in the body.
    #[serde(skip)]
    pub trace: Option<String>,
}

impl Message {
    /// The current form.
    pub const VERSION: u32 = 1;

    /// A dispatch of `key`.
    pub fn new(key: OperationKey, generation: u32, group: String) -> Self {
        Self { version: Self::VERSION, key, generation, group, trace: None }
    }

    /// The same message as part of a trace.
    #[must_use]
    pub fn of_trace(self, trace: Option<String>) -> Self {
        Self { trace, ..self }
    }

    /// The message body.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() // strings and integers only: cannot fail
    }

    /// Reads a message body.
    ///
    /// # Errors
    /// A sentence without the content when it is not ours.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let message: Self = serde_json::from_str(text)
            .map_err(|e| format!("not a hookledger message (line {}, column {})", e.line(), e.column()))?;
        if message.version == Self::VERSION {
            Ok(message)
        } else {
            Err(format!("message version {} is not known", message.version))
        }
    }
}

/// The SQS group of an operation's messages: billing by wallet, everything else by job; where those
/// are not known yet, by what the event does name, so that its messages still keep their order. What is
/// only forwarded has no order to keep: it is grouped by the key that it is forwarded under. A thin event names nothing
/// before it is fetched, so each is a group of its own: one group for a provider's whole traffic would be serial.
pub fn group(operation: &OperationKey, envelope: &Envelope) -> String {
    let (provider, consumer) = (&operation.event.provider, operation.name.consumer());
    // A board keeps the order of one booking only, which its job's group does.
    if envelope.step.is_none() && envelope.ordered.contains_key(operation.item.as_str()) {
        return hex_sha256(&format!("{provider}|{}", operation.item)); // the subscription, which keeps an order
    }
    let key = match (envelope, consumer) {
        (Envelope { tenant: Some(tenant), wallet: Some(wallet), .. }, Consumer::Billing) => {
            keys::wallet_pk(tenant, wallet)
        }
        (Envelope { tenant: Some(tenant), job: Some(job), .. }, _) => keys::job_pk(tenant, job),
        (Envelope { provider_ref: Some(reference), .. }, _) => keys::ref_pk(provider, reference),
        (_, Consumer::Outbound) => forward_key(operation, envelope),
        (Envelope { fetch: Some(When::Always), .. }, _) => {
            format!("{}|{}", keys::event_pk(&operation.event), escape(operation.item.as_str()))
        }
        _ => provider.to_string(),
    };
    hex_sha256(&key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::ids::ItemId;
    use crate::operation::OperationName;

    #[test]
    fn a_message_survives_its_form_and_a_strange_one_is_refused_without_its_content() {
        let key =
            OperationKey { event: "acme/e|1".parse().unwrap(), item: ItemId::only(), name: OperationName::SettleUsage };
        let message = Message::new(key, 3, "group".to_owned());
        assert_eq!(Message::from_json(&message.to_json()).unwrap(), message);
        let error = Message::from_json(r#"{"secret":"canary"}"#).unwrap_err();
        assert!(!error.contains("canary"), "{error}");
    }

    /// Thin events of one provider do not wait for each other; once one is whole, its order is its job's and wallet's.
    #[test]
    fn each_thin_event_is_a_group_until_it_is_known_whose_it_is() {
        let thin = Envelope { fetch: Some(When::Always), ..Envelope::default() };
        let of = |event: &str, item: &str, name, envelope: &Envelope| {
            let item = ItemId::new(item).unwrap();
            group(&OperationKey { event: event.parse().unwrap(), item, name }, envelope)
        };
        let settle = OperationName::SettleUsage;
        let first = of("acme/e1", "-", settle, &thin);
        assert_ne!(first, of("acme/e2", "-", settle, &thin));
        assert_ne!(first, of("acme/e1", "b", settle, &thin), "the items of a delivery are of different jobs");
        assert_eq!(first, of("acme/e1", "-", OperationName::AdjustUsage, &thin));
        // Without a fetch nothing but the provider is known of it, as before.
        let bare = Envelope::default();
        assert_eq!(of("acme/e1", "-", settle, &bare), of("acme/e2", "-", settle, &bare));
        let whole = Envelope {
            tenant: Some("t1".parse().unwrap()),
            wallet: Some("w1".parse().unwrap()),
            provider_ref: Some("p-1".parse().unwrap()),
            ..thin
        };
        assert_eq!(of("acme/e1", "-", settle, &whole), hex_sha256("W|t1|w1"));
        let complete = OperationName::CompleteJob;
        assert_eq!(of("acme/e1", "-", complete, &whole), of("acme/e2", "-", complete, &whole));
    }

    #[test]
    fn sqs_07_a_new_generation_has_a_new_deduplication_id() {
        let key =
            OperationKey { event: "acme/e".parse().unwrap(), item: ItemId::only(), name: OperationName::CompleteJob };
        assert_eq!(key.deduplication_id(0), key.deduplication_id(0));
        assert_ne!(key.deduplication_id(0), key.deduplication_id(1));
        assert_eq!(key.deduplication_id(0).len(), 64);
    }
}
