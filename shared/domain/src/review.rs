//! Reviews: what waits for a person, its one kind of id, and what a person decided.
//!
//! A review has no record of its own. An operation in state `review`, a conflict beside a receipt and an
//! open reconciliation case ARE the reviews; [`ReviewId`] names each of them in one text that people copy
//! and a path carries. A [`Decision`] is written in the transaction that changes what was reviewed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::event::{By, EventRef};
use crate::ids::{escape, unescape};
use crate::job::Overage;
use crate::keys;
use crate::operation::{Class, OperationKey, OperationRecord, Waivers};

/// Longest id in bytes: three id parts of 200 bytes, escaped, with their names.
const MAX_ID_BYTES: usize = 2_000;

/// What waits for a person. Its text is `settle-usage:acme/msg_1` for an operation (with an item as an
/// effect's `by` has it: `settle-usage:ITEM@acme/msg_1`), `conflict:HASH@acme/msg_1`, or `case:ID`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReviewId {
    /// An operation in review.
    Operation(OperationKey),
    /// Other content under a known event id, by its payload hash; `unreadable` for records that cannot be read.
    Conflict(EventRef, String),
    /// A reconciliation case, by its id: what its partition key has behind `Q|case|`.
    Case(String),
}

/// A text that names no review.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no review: write OPERATION:PROVIDER/EVENT, conflict:HASH@PROVIDER/EVENT or case:ID, as the list shows it"
)]
pub struct NotAReview(String);

impl ReviewId {
    /// The review of a row of the index; `None` for a row that this program does not know.
    pub fn of_keys(pk: &str, sk: &str) -> Option<Self> {
        if let Some(case) = pk.strip_prefix(keys::CASE_PREFIX) {
            return Some(Self::Case(unescape(case)));
        }
        if let Some(hash) = sk.strip_prefix("x|") {
            return Some(Self::Conflict(keys::event_of_pk(pk)?, hash.to_owned()));
        }
        keys::operation_of(pk, sk).map(Self::Operation)
    }

    /// The event that it is about.
    pub fn event(&self) -> Option<&EventRef> {
        match self {
            Self::Operation(key) => Some(&key.event),
            Self::Conflict(event, _) => Some(event),
            Self::Case(_) => None,
        }
    }

    /// Partition and sort key of what is in review; a case's sort key is its own room's business.
    pub fn keys(&self) -> (String, Option<String>) {
        match self {
            Self::Operation(key) => (keys::event_pk(&key.event), Some(keys::operation_sk(key))),
            Self::Conflict(event, hash) => (keys::event_pk(event), Some(keys::conflict_sk(hash))),
            Self::Case(id) => (format!("{}{}", keys::CASE_PREFIX, escape(id)), None),
        }
    }
}

impl fmt::Display for ReviewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(key) => write!(f, "{}:{}", key.name, key.by()),
            Self::Conflict(event, hash) => write!(f, "conflict:{hash}@{event}"),
            Self::Case(id) => write!(f, "case:{id}"),
        }
    }
}

impl FromStr for ReviewId {
    type Err = NotAReview;
    fn from_str(text: &str) -> Result<Self, NotAReview> {
        let wrong = || NotAReview(text.chars().take(80).collect());
        let (kind, rest) = text.split_once(':').filter(|_| text.len() <= MAX_ID_BYTES).ok_or_else(wrong)?;
        match kind {
            "case" if !rest.is_empty() => Ok(Self::Case(rest.to_owned())),
            "conflict" => {
                // A hash has no '@', so the first one ends it.
                let (hash, event) = rest.split_once('@').filter(|(hash, _)| !hash.is_empty()).ok_or_else(wrong)?;
                Ok(Self::Conflict(event.parse().map_err(|_| wrong())?, hash.to_owned()))
            }
            _ => {
                let name = kind.parse().map_err(|_| wrong())?;
                let By { event, item } = By::try_from(rest.to_owned()).map_err(|_| wrong())?;
                Ok(Self::Operation(OperationKey { event, item, name }))
            }
        }
    }
}

/// What a person may do with a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Try it again: fresh attempts, and the business expiry is waived where it stands in the way.
    Retry,
    /// Try it again with another rule: for a charge above the hold, or for a sending whose outcome is unknown.
    Approve,
    /// Nothing is to be done any more.
    Close,
}

impl Action {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Approve => "approve",
            Self::Close => "close",
        }
    }
}

/// What an approval puts in the place of the rule that stands: for a charge the job's overage policy, for a sending that
/// nothing of unknown outcome is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alternative {
    /// The hold is the most that is charged.
    Cap,
    /// What is above the hold comes from the available balance.
    Available,
    /// The same bytes are sent once more under the same key: a person has looked, and the effect is not there.
    Resend,
}

impl Alternative {
    /// The overage policy that it is.
    fn overage(self) -> Option<Overage> {
        match self {
            Self::Cap => Some(Overage::Cap),
            Self::Available => Some(Overage::Available),
            Self::Resend => None,
        }
    }

    /// Whether it is an alternative for this review.
    pub fn fits(self, record: &OperationRecord) -> bool {
        (self == Self::Resend) == (record.class == Class::UnknownOutcome)
    }
}

/// A recorded decision (`Q·review·id`, one per revision of what was in review); append-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The review's id.
    #[serde(rename = "id")]
    pub review: String,
    /// What was decided.
    #[serde(rename = "da")]
    pub action: Action,
    /// The rule that was approved.
    #[serde(rename = "al", default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<Alternative>,
    /// True when the open hold was released with it.
    #[serde(rename = "rl", default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// The caller's own key, if one was given.
    #[serde(rename = "rn", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The caller's identity.
    #[serde(rename = "ac")]
    pub actor: String,
    /// Why.
    #[serde(rename = "re")]
    pub reason: String,
    /// Tells the same request from another one.
    #[serde(rename = "hs")]
    pub content_hash: String,
    /// Why a person was needed: the class.
    #[serde(rename = "cl")]
    pub class: String,
    /// The evidence as it stood, for people; never payload.
    #[serde(rename = "nt", default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// Which limits the decision waives.
    #[serde(rename = "wv", default, skip_serializing_if = "Vec::is_empty")]
    pub waived: Vec<String>,
    /// The revision that was decided on; 0 for what has none.
    #[serde(rename = "rv")]
    pub revision: u64,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

/// The actions that a review of an operation allows. An approval is for a settlement whose charge is above
/// its hold, or that the wallet could not bear, or for a sending whose outcome is unknown.
pub fn allowed(record: &OperationRecord) -> Vec<Action> {
    use crate::operation::OperationName::SettleUsage;
    let settles = record.key.as_ref().is_some_and(|key| key.name == SettleUsage);
    let priced = settles && matches!(record.class, Class::Overage | Class::FundsShort);
    if priced || record.class == Class::UnknownOutcome {
        vec![Action::Retry, Action::Approve, Action::Close]
    } else {
        vec![Action::Retry, Action::Close]
    }
}

/// What another try of an operation is let do, and the names of what is waived for it, for the record. The
/// count of attempts and the time of waiting begin anew in any case; that is a waiver where one of them was
/// what ended in review. The business expiry is waived where the event is past it: a person looked at it.
pub fn waive(
    record: &OperationRecord, alternative: Option<Alternative>, past_expiry: bool, now_ms: i64,
) -> (Waivers, Vec<String>) {
    let before = record.waivers;
    let waivers = Waivers {
        expiry: before.expiry || past_expiry || record.class == Class::Expired,
        overage: alternative.and_then(Alternative::overage).or(before.overage),
        resend_ms: alternative.filter(|a| *a == Alternative::Resend).map(|_| now_ms).or(before.resend_ms),
    };
    let mut waived = Vec::new();
    if record.class == Class::AttemptsExhausted {
        waived.push(Class::AttemptsExhausted.name());
    }
    if waivers.expiry && !before.expiry {
        waived.push(Class::Expired.name());
    }
    if waivers.overage != before.overage {
        waived.push(Class::Overage.name());
    }
    if waivers.resend_ms != before.resend_ms {
        waived.push(Class::UnknownOutcome.name());
    }
    (waivers, waived)
}

/// A span of time: whole seconds, or a number with `s`, `m`, `h` or `d`, in milliseconds.
pub fn parse_span_ms(text: &str) -> Option<i64> {
    let (digits, unit_ms) = match text.char_indices().last()? {
        (at, 's') => (&text[..at], 1_000),
        (at, 'm') => (&text[..at], 60_000),
        (at, 'h') => (&text[..at], 3_600_000),
        (at, 'd') => (&text[..at], 86_400_000),
        _ => (text, 1_000),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<i64>().ok().filter(|_| plain)?.checked_mul(unit_ms)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::ids::ItemId;
    use crate::operation::OperationName;

    #[test]
    fn an_id_survives_its_text_whatever_the_event_is_called() {
        let events = ["acme/msg_1", "acme/a:b@c|d/e", "acme/conflict:x@y", "acme/num#5"];
        for event in events.map(|e| e.parse::<EventRef>().unwrap()) {
            for item in ["-", "a@b/c:d%"] {
                let (item, name) = (ItemId::new(item).unwrap(), OperationName::SettleUsage);
                let id = ReviewId::Operation(OperationKey { event: event.clone(), item, name });
                assert_eq!(id.to_string().parse::<ReviewId>().unwrap(), id);
                let (pk, sk) = id.keys();
                assert_eq!(ReviewId::of_keys(&pk, &sk.unwrap()), Some(id));
            }
            let id = ReviewId::Conflict(event, "5f0c91ab-1:00ff".to_owned());
            assert_eq!(id.to_string().parse::<ReviewId>().unwrap(), id);
            let (pk, sk) = id.keys();
            assert_eq!(ReviewId::of_keys(&pk, &sk.unwrap()), Some(id));
        }
        let case = ReviewId::Case("drift|w1".to_owned());
        assert_eq!(case.to_string().parse::<ReviewId>().unwrap(), case);
        assert_eq!(ReviewId::of_keys(&case.keys().0, "anything"), Some(case));
    }

    #[test]
    fn what_names_no_review_is_refused() {
        for text in
            ["", "settle-usage", "settle:acme/m", "settle-usage:acme", "conflict:acme/m", "case:", "conflict:@acme/m"]
        {
            assert!(text.parse::<ReviewId>().is_err(), "{text}");
        }
        assert_eq!(ReviewId::of_keys("E|acme|m", "z|later"), None);
        assert_eq!(ReviewId::of_keys("Z|acme", "o|-|billing|settle-usage"), None);
    }

    #[test]
    fn spans_are_whole_numbers_with_a_unit() {
        let spans = [("90", 90_000), ("45s", 45_000), ("30m", 1_800_000), ("2h", 7_200_000), ("1d", 86_400_000)];
        for (text, ms) in spans {
            assert_eq!(parse_span_ms(text), Some(ms), "{text}");
        }
        for text in ["", "h", "-1h", "+1h", "1.5h", "1w", "99999999999999999d"] {
            assert_eq!(parse_span_ms(text), None, "{text}");
        }
    }
}
