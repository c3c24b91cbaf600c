//! Intents: what is to leave the system, frozen before it leaves, under a key that never changes.
//!
//! An external call stands between two commits: the intent with the exact bytes, then the call, then its
//! result. Whoever repeats it, after a crash or an answer that was lost, sends the same bytes under the
//! same key, so that the receiver can tell a repetition from something new. What follows when is [`step`]'s.

pub mod step;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::envelope::Envelope;
use crate::event::By;
use crate::ids::escape;
use crate::money::Micros;
use crate::operation::{OperationKey, hex_sha256};
use crate::receipt::Receipt;
use crate::time::rfc3339;

/// Longest key that stands as it is; a longer one is named by its hash (a partition key has 2,048 bytes).
const MAX_KEY_BYTES: usize = 1_800;
/// Version of the forwarded form.
const FORM: u32 = 1;

/// Where an intent stands; forward only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntentState {
    /// It is written down, and nothing has left.
    #[serde(alias = "prepared")]
    Pending,
    /// Bytes have left or are about to.
    Submitted,
    /// A try had no usable end: the effect may or may not exist.
    Uncertain,
    /// The effect exists.
    #[serde(alias = "sent")]
    Settled,
    /// It does not and never will.
    Failed,
}

impl IntentState {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Submitted => "submitted",
            Self::Uncertain => "uncertain",
            Self::Settled => "settled",
            Self::Failed => "failed",
        }
    }
}

/// What a try was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// The effect exists.
    Settled,
    /// It never will.
    Failed,
    /// This try did nothing.
    NotDone,
    /// A request with this key is in progress.
    InProgress,
    /// The key is taken by other parameters.
    KeyReused,
    /// An error that comes back to every further try under this key.
    Stored,
    /// Nothing usable.
    Unknown,
}

/// The end of the newest try that has one. Never a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentResult {
    /// Which try, from 1.
    #[serde(rename = "at")]
    pub attempt: u32,
    /// What it was told.
    #[serde(rename = "td")]
    pub told: Told,
    /// True where somebody has to repair something first: a secret, a right, an address.
    #[serde(rename = "rf", default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// The HTTP status.
    #[serde(rename = "sc", default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The destination's id of the effect.
    #[serde(rename = "id", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// For people, in fixed words.
    #[serde(rename = "nt", default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// When, Unix milliseconds.
    #[serde(rename = "ms")]
    pub at_ms: i64,
}

/// What of an HTTP request is frozen beside its body. The host, and what authorises, are the deployment's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpCall {
    /// `POST`, `PUT` or `PATCH`.
    #[serde(rename = "m")]
    pub method: String,
    /// Path and query behind the destination's base address.
    #[serde(rename = "p")]
    pub path: String,
    /// Headers that say how the bytes are to be understood; the content type among them. Never a secret.
    #[serde(rename = "h")]
    pub headers: BTreeMap<String, String>,
    /// True where it changes what exists there under an id of its own, and makes nothing new.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub updates: bool,
}

/// What is to leave the system (`I·key`). What is sent never changes; state, tries and result go forward under a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The key that the destination sees.
    #[serde(rename = "k")]
    pub key: String,
    /// Who asked.
    #[serde(rename = "by")]
    pub by: By,
    /// Where to, as the profile names it.
    #[serde(rename = "to")]
    pub to: String,
    /// The exact bytes.
    #[serde(rename = "rq")]
    pub request: String,
    /// The rest of the request, for HTTP.
    #[serde(rename = "cl", default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HttpCall>,
    /// The destination's group, for queues that keep an order.
    #[serde(rename = "gr")]
    pub group: String,
    /// Tells the same content from another one under the same key, whichever event brought it.
    #[serde(rename = "hs")]
    pub content_hash: String,
    /// Where it stands.
    #[serde(rename = "st")]
    pub state: IntentState,
    /// When it was written, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
    /// When it was known to be settled, Unix milliseconds.
    #[serde(rename = "se", default, skip_serializing_if = "Option::is_none")]
    pub sent_ms: Option<i64>,
    /// Tries that were submitted.
    #[serde(rename = "at", default)]
    pub attempts: u32,
    /// When the first of them was, Unix milliseconds: the life of the key counts from here.
    #[serde(rename = "fs", default, skip_serializing_if = "Option::is_none")]
    pub first_sent_ms: Option<i64>,
    /// When the last of them was, Unix milliseconds.
    #[serde(rename = "ls", default, skip_serializing_if = "Option::is_none")]
    pub last_sent_ms: Option<i64>,
    /// Bumped by every change, under a condition.
    #[serde(rename = "rv", default)]
    pub revision: u64,
    /// Who submitted the last try: tells our own lost answer from another writer.
    #[serde(rename = "tk", default, skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The end of the newest try that has one.
    #[serde(rename = "ou", default, skip_serializing_if = "Option::is_none")]
    pub result: Option<IntentResult>,
    /// Answers that came after the end, or after a newer try's.
    #[serde(rename = "lt", default)]
    pub late: u32,
    /// True when one of them said of a failed effect that it exists.
    #[serde(rename = "lx", default, skip_serializing_if = "std::ops::Not::not")]
    pub late_settled: bool,
    /// Set where the destination's id is to become our job's `provider_job_ref`: whether it has.
    #[serde(rename = "ah", default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<bool>,
}

impl Intent {
    /// An intent that nothing was done for yet. `content_hash` tells the same content from another under the same key.
    pub fn new(
        key: String, by: By, to: &str, request: String, group: String, content_hash: String, now_ms: i64,
    ) -> Self {
        Self {
            key,
            by,
            to: to.to_owned(),
            request,
            call: None,
            group,
            content_hash,
            state: IntentState::Pending,
            created_ms: now_ms,
            sent_ms: None,
            attempts: 0,
            first_sent_ms: None,
            last_sent_ms: None,
            revision: 1,
            token: String::new(),
            result: None,
            late: 0,
            late_settled: false,
            attached: None,
        }
    }

    /// The forward of one item of an event.
    pub fn forward(operation: &OperationKey, receipt: &Receipt, to: &str, group: String, now_ms: i64) -> Self {
        let key = forward_key(operation, &receipt.envelope);
        let content = content(receipt);
        let content_hash = hex_sha256(&text(&told(&content)));
        let request = request(&key, operation, receipt, content);
        Self::new(key, operation.by(), to, request, group, content_hash, now_ms)
    }

    /// The same, as an HTTP request.
    #[must_use]
    pub fn over_http(self, call: Option<HttpCall>) -> Self {
        Self { call, ..self }
    }

    /// The same, whose settled id is then attached to our job.
    #[must_use]
    pub fn attaching(self, attach: bool) -> Self {
        Self { attached: attach.then_some(false), ..self }
    }

    /// The revision that says that it was.
    #[must_use]
    pub fn with_attached(&self) -> Self {
        Self { attached: Some(true), revision: self.revision + 1, ..self.clone() }
    }

    /// True once the effect exists, and our job has its id where it is to have it.
    pub fn is_done(&self) -> bool {
        self.state == IntentState::Settled && self.attached != Some(false)
    }

    /// The id by which the destination recognises a repetition: hex SHA-256 of the key, the same for every try.
    pub fn deduplication_id(&self) -> String {
        hex_sha256(&self.key)
    }
}

/// The key that an event is forwarded under: the action that the profile names (`@action|provider|type|...`),
/// else the operation's own key. A provider's slug never begins with `@`, so the two never meet.
pub fn forward_key(operation: &OperationKey, envelope: &Envelope) -> String {
    if envelope.action.is_empty() {
        return operation.to_string();
    }
    let provider = &operation.event.provider;
    let parts: Vec<String> = envelope.action.iter().map(|part| escape(part)).collect();
    let key = format!("@action|{provider}|{}", parts.join("|"));
    if key.len() <= MAX_KEY_BYTES { key } else { format!("@action|{provider}|sha256:{}", hex_sha256(&key)) }
}

/// Members by name, so that their order never depends on a feature of the JSON library.
type Members = BTreeMap<&'static str, Value>;

fn text(members: &Members) -> String {
    serde_json::to_string(members).unwrap_or_default() // JSON values under text names: cannot fail
}

/// What the event says, whichever delivery or event id brought it.
fn content(receipt: &Receipt) -> Members {
    let envelope = &receipt.envelope;
    let amount = envelope.amount.and_then(|micros| Micros::new(micros).ok());
    let members = [
        ("type", json!(receipt.event_type)),
        ("tenant", json!(envelope.tenant)),
        ("job", json!(envelope.job)),
        ("provider_job_ref", json!(envelope.provider_ref)),
        ("model", json!(envelope.model)),
        ("wallet", json!(envelope.wallet)),
        ("booking", json!(envelope.booking)),
        ("version", json!(envelope.version)),
        ("outcome", json!(envelope.outcome)),
        ("sequence", json!(envelope.sequence)),
        ("reference", json!(envelope.reference)),
        ("amount", json!(amount)),
        ("currency", json!(envelope.currency)),
        ("usage", json!(envelope.usage)),
        ("data", if envelope.data.is_empty() { Value::Null } else { json!(envelope.data) }),
    ];
    members.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// What of it is compared with another event of the same action: whose job it is and who pays may have been looked up for
/// one of the two only, and follow from what names the job.
fn told(content: &Members) -> Members {
    let mut told = content.clone();
    if told.contains_key("provider_job_ref") {
        told.remove("tenant");
        told.remove("job");
        told.remove("wallet");
    } else if told.contains_key("job") {
        told.remove("wallet");
    }
    told
}

fn request(key: &str, operation: &OperationKey, receipt: &Receipt, content: Members) -> String {
    if receipt.board().is_some() {
        return ascii(&crate::board::body(&receipt.envelope.board));
    }
    if crate::own::is_own(&operation.event) {
        return ascii(&crate::own::body(receipt));
    }
    let mut whole = content;
    whole.insert("form", json!(FORM));
    whole.insert("key", json!(key));
    whole.insert("event", json!(operation.event));
    whole.insert("item", json!(operation.item));
    whole.insert("received_at", json!(rfc3339(receipt.arrival_ms)));
    if let Some(sent_ms) = receipt.first_sent_ms {
        whole.insert("first_sent_at", json!(rfc3339(sent_ms)));
    }
    ascii(&text(&whole))
}

/// The same JSON in ASCII: SQS refuses some characters that JSON allows.
fn ascii(json: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && c != '\u{7f}' {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}"); // writing to a String cannot fail
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::ids::ItemId;
    use crate::operation::OperationName;

    fn operation(event: &str) -> OperationKey {
        OperationKey { event: event.parse().unwrap(), item: ItemId::only(), name: OperationName::Forward }
    }

    fn action(parts: &[&str]) -> Envelope {
        Envelope { action: parts.iter().map(|&p| p.to_owned()).collect(), ..Envelope::default() }
    }

    #[test]
    fn a_key_is_the_operations_or_the_actions_and_the_two_never_meet() {
        assert_eq!(forward_key(&operation("github/d-1"), &Envelope::default()), "github|d-1|-|outbound|forward");
        let key = |parts: &[&str]| forward_key(&operation("stripe/evt_1"), &action(parts));
        assert_eq!(key(&["invoice.paid", "in_1"]), "@action|stripe|invoice.paid|in_1");
        assert_ne!(key(&["a|b", "c"]), key(&["a", "b|c"]));
        let long = "|".repeat(200);
        assert_eq!(key(&["t", &long, &long, &long]).len(), "@action|stripe|sha256:".len() + 64);
    }

    #[test]
    fn what_leaves_is_ascii_and_still_the_same_json() {
        let text = ascii(&json!({"a": "é\u{fffe}😀\u{7f}\n"}).to_string());
        assert_eq!(text, r#"{"a":"\u00e9\ufffe\ud83d\ude00\u007f\n"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"a": "é\u{fffe}😀\u{7f}\n"}));
    }
}
