//! The receipt: proof that a delivery was taken in, what it says, and what was planned because of it.

use serde::{Deserialize, Serialize};

use crate::envelope::Envelope;
use crate::event::EventRef;
use crate::ids::{ItemId, escape, unescape};
use crate::operation::{OperationKey, OperationName};

/// Why an authentic delivery has an empty plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyPlan {
    /// The profile does not act on this event type.
    UnknownType,
    /// The body is not what the profile parses.
    Unparsable,
    /// A member name occurs twice: two readers could read two different events.
    Ambiguous,
    /// A field that the planned operations need is missing or malformed.
    MissingField,
    /// The profile does not serve this tenant.
    TenantNotAllowed,
    /// A test-mode event on a live endpoint, or one of another account.
    OtherEndpoint,
    /// The event's own state says that it leads to nothing yet, such as an unpaid checkout.
    NotYetFinal,
    /// A field contradicts the job that the event names.
    Mismatch,
    /// The delivery carries an empty list of items.
    NoItems,
    /// More items than one delivery may carry, or too much in them for one receipt.
    TooLarge,
    /// The same item stands in the delivery before.
    Repeated,
}

impl EmptyPlan {
    /// `ignored` for what the profile does not act on, `quarantined` for what a person should see.
    pub fn answer(self) -> &'static str {
        match self {
            Self::UnknownType | Self::OtherEndpoint | Self::NotYetFinal | Self::NoItems | Self::Repeated => "ignored",
            _ => "quarantined",
        }
    }
}

/// One planned operation in the receipt's compact form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Planned {
    /// The item that asks.
    pub item: ItemId,
    /// The operation.
    pub name: OperationName,
}

impl TryFrom<String> for Planned {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let (item, name) = match text.rsplit_once('|') {
            Some((item, name)) => (ItemId::new(unescape(item)).map_err(|e| e.to_string())?, name),
            None => (ItemId::only(), text.as_str()),
        };
        Ok(Self { item, name: name.parse()? })
    }
}

impl From<Planned> for String {
    fn from(planned: Planned) -> String {
        if planned.item == ItemId::only() {
            return planned.name.to_string();
        }
        format!("{}|{}", escape(planned.item.as_str()), planned.name)
    }
}

/// The durable receipt of an event (`r`); written once, never changed, no TTL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which event.
    #[serde(skip)]
    pub event: Option<EventRef>,
    /// The event type; empty when the body could not be read.
    #[serde(rename = "ty", default, skip_serializing_if = "String::is_empty")]
    pub event_type: String,
    /// Version-prefixed hash of the canonical payload, or of the raw bytes.
    #[serde(rename = "ph")]
    pub payload_hash: String,
    /// The business fields that operations need.
    #[serde(rename = "en")]
    pub envelope: Envelope,
    /// The planned operations.
    #[serde(rename = "pl", default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<Planned>,
    /// The items of a delivery that carries several, in their order; the business fields are theirs then.
    #[serde(rename = "it", default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    /// The reason there are none.
    #[serde(rename = "em", default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<EmptyPlan>,
    /// What exactly, for people; never payload.
    #[serde(rename = "nt", default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Gateway arrival, Unix milliseconds.
    #[serde(rename = "ar")]
    pub arrival_ms: i64,
    /// When the provider first sent it, Unix milliseconds, if it says so.
    #[serde(rename = "fs", default, skip_serializing_if = "Option::is_none")]
    pub first_sent_ms: Option<i64>,
    /// The provider's attempt number, if it says so.
    #[serde(rename = "an", default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// False when the provider signs no id.
    #[serde(rename = "is", default = "yes", skip_serializing_if = "is_true")]
    pub id_signed: bool,
    /// Which secret matched.
    #[serde(rename = "ki")]
    pub key_id: String,
    /// Random: tells our own lost answer from another writer (DDB-01).
    #[serde(rename = "tk")]
    pub claim_token: String,
    /// The X-Ray trace of the delivery that brought the event; every message about it carries it on.
    #[serde(rename = "tr", default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

impl Receipt {
    /// The keys of the planned operations.
    pub fn operations(&self) -> Vec<OperationKey> {
        let Some(event) = &self.event else { return Vec::new() };
        let key = |p: &Planned| OperationKey { event: event.clone(), item: p.item.clone(), name: p.name };
        self.plan.iter().map(key).collect()
    }

    /// The receipt as one of its items sees it: with the item's own type, fields and plan. A delivery that
    /// carries one item is its own view.
    #[must_use]
    pub fn of_item(&self, id: &ItemId) -> Self {
        let Some(item) = self.items.iter().find(|item| item.id == *id) else { return self.clone() };
        Self {
            event: self.event.clone(),
            event_type: item.event_type.clone(),
            payload_hash: self.payload_hash.clone(),
            envelope: item.envelope.clone(),
            plan: self.plan.iter().filter(|planned| planned.item == *id).cloned().collect(),
            items: Vec::new(),
            empty: item.empty,
            note: item.note.clone(),
            arrival_ms: self.arrival_ms,
            first_sent_ms: item.first_sent_ms.or(self.first_sent_ms),
            attempt: self.attempt,
            id_signed: self.id_signed,
            key_id: self.key_id.clone(),
            claim_token: self.claim_token.clone(),
            trace: self.trace.clone(),
        }
    }

    /// The business fields of one item; of the event itself when it carries one.
    pub fn envelope_of(&self, id: &ItemId) -> &Envelope {
        self.items.iter().find(|item| item.id == *id).map_or(&self.envelope, |item| &item.envelope)
    }

    /// True when another delivery of this event says the same. Hashes that were made by different
    /// rules cannot be compared; then the business fields decide.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let rule = |receipt: &'_ Self| receipt.payload_hash.split_once(':').map(|(rule, _)| rule.to_owned());
        match rule(self) == rule(other) {
            true => self.payload_hash == other.payload_hash,
            false => {
                let same = |(a, b): (&Item, &Item)| a.id == b.id && a.envelope.same_content(&b.envelope);
                self.event_type == other.event_type
                    && self.envelope.same_content(&other.envelope)
                    && self.items.len() == other.items.len()
                    && self.items.iter().zip(&other.items).all(same)
            }
        }
    }

    /// True when this event plans the operation.
    pub fn plans(&self, name: OperationName) -> bool {
        self.plan.iter().any(|p| p.name == name)
    }

    /// From when the business expiry counts: first sent, else arrival. A time of sending after the
    /// arrival is a wrong clock and does not lengthen an event's life.
    pub fn business_time_ms(&self) -> i64 {
        self.first_sent_ms.map_or(self.arrival_ms, |sent| sent.min(self.arrival_ms))
    }
}

/// One item of a delivery that carries several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Which, within its delivery.
    #[serde(rename = "id")]
    pub id: ItemId,
    /// Its type, by the profile.
    #[serde(rename = "ty", default, skip_serializing_if = "String::is_empty")]
    pub event_type: String,
    /// Its business fields.
    #[serde(rename = "en")]
    pub envelope: Envelope,
    /// When the provider first sent it, Unix milliseconds, if the item says so.
    #[serde(rename = "fs", default, skip_serializing_if = "Option::is_none")]
    pub first_sent_ms: Option<i64>,
    /// Why it leads to nothing; the other items are not affected.
    #[serde(rename = "em", default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<EmptyPlan>,
    /// What exactly, for people; never payload.
    #[serde(rename = "nt", default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Item {
    /// An item of which nothing is read yet.
    pub fn new(id: ItemId) -> Self {
        let envelope = Envelope::default();
        Self { id, event_type: String::new(), envelope, first_sent_ms: None, empty: None, note: String::new() }
    }
}

/// The hash that a conflict has where it stands for records that cannot be read.
pub const UNREADABLE: &str = "unreadable";

/// The same event id with other content (`x·hash`); evidence, with no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// Hash of the other content.
    #[serde(rename = "ph")]
    pub payload_hash: String,
    /// When it arrived, Unix milliseconds.
    #[serde(rename = "ar")]
    pub arrival_ms: i64,
    /// What the other content says, in business fields.
    #[serde(rename = "en")]
    pub envelope: Envelope,
    /// Since when a person is needed, Unix milliseconds.
    #[serde(rename = "rt", default, skip_serializing_if = "Option::is_none")]
    pub review_since_ms: Option<i64>,
    /// When a person closed it, Unix milliseconds.
    #[serde(rename = "cd", default, skip_serializing_if = "Option::is_none")]
    pub closed_ms: Option<i64>,
}

/// How often the event came again (`d`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deliveries {
    /// Deliveries after the first.
    #[serde(rename = "n")]
    pub count: u64,
    /// The last one, Unix milliseconds.
    #[serde(rename = "la")]
    pub last_ms: i64,
}
