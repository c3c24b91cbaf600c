//! Which event is this: `(provider, event id)`, and the text form that people and keys use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{IdError, ItemId, Provider, Reference, check};
use crate::json::{Number, Value};

/// A provider's event id in its text form.
///
/// Ids are opaque. A string id stands as it is (with `%` and `#` escaped); a number, a derived key
/// and a raw body hash carry a tag with `#`, so that `5` and `"5"` are different events.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventId(String);

/// Why a JSON value cannot be an event id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventIdError {
    /// Neither a string nor a number.
    #[error("the event id is neither a string nor a number")]
    WrongType,
    /// A number with a fraction or exponent (DED-05): its text is not an identity.
    #[error("the event id is a number with a fraction or an exponent")]
    NotAPlainInteger,
    /// Empty or too long.
    #[error(transparent)]
    Id(#[from] IdError),
}

impl EventId {
    /// An id that the provider gave as text.
    ///
    /// # Errors
    /// [`IdError`] when empty or too long.
    pub fn text(id: &str) -> Result<Self, IdError> {
        check("event id", id)?;
        let escaped = id.replace('%', "%25").replace('#', "%23");
        check("event id", &escaped)?;
        Ok(Self(escaped))
    }

    /// An id that the provider gave as a JSON number, taken from its text, never through a float.
    ///
    /// # Errors
    /// [`EventIdError::NotAPlainInteger`] for a fraction or exponent.
    pub fn number(number: &Number<'_>) -> Result<Self, EventIdError> {
        if !number.is_plain_integer() {
            return Err(EventIdError::NotAPlainInteger);
        }
        let tagged = format!("num#{}", number.text());
        check("event id", &tagged)?;
        Ok(Self(tagged))
    }

    /// An id from a JSON member.
    ///
    /// # Errors
    /// [`EventIdError`] when the value has no usable identity.
    pub fn from_json(value: &Value<'_>) -> Result<Self, EventIdError> {
        match value {
            Value::String(text) => Ok(Self::text(text)?),
            Value::Number(number) => Self::number(number),
            _ => Err(EventIdError::WrongType),
        }
    }

    /// The identity of an authentic body that could not be parsed or has no id: its SHA-256.
    pub fn raw(body_sha256_hex: &str) -> Self {
        Self(format!("raw#{body_sha256_hex}"))
    }

    /// A key derived from the stable fields that a profile names.
    pub fn derived(sha256_hex: &str) -> Self {
        Self(format!("derived#{sha256_hex}"))
    }

    /// An entry of the provider's own list that was accepted in place of an event that never came.
    pub fn listed(sha256_hex: &str) -> Self {
        Self(format!("list#{sha256_hex}"))
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for EventId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        check("event id", &text)?;
        Ok(Self(text))
    }
}

impl From<EventId> for String {
    fn from(id: EventId) -> String {
        id.0
    }
}

/// One event of one endpoint; shown as `acme/msg_1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventRef {
    /// The endpoint's slug.
    pub provider: Provider,
    /// The event's id.
    pub id: EventId,
}

impl fmt::Display for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.id.0)
    }
}

impl FromStr for EventRef {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let (provider, id) = text.split_once('/').ok_or_else(|| IdError::NotASlug(text.to_owned()))?;
        Ok(Self { provider: Provider::new(provider)?, id: EventId::try_from(id.to_owned())? })
    }
}

impl TryFrom<String> for EventRef {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<EventRef> for String {
    fn from(event: EventRef) -> String {
        event.to_string()
    }
}

/// Who wrote an effect: the event and the item of it that asked (`-` when it carries one).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct By {
    /// The event, or for an operator's request the pseudo-event that recorded it.
    pub event: EventRef,
    /// Its item.
    pub item: ItemId,
}

/// The slug under which operators' and callers' requests appear beside the providers' events.
pub const CONTROL_PROVIDER: &str = "control";

impl By {
    /// An operator's or caller's request, by its kind and reference. The reference is the caller's, so
    /// its hash names it: it fits whatever its length.
    ///
    /// # Errors
    /// [`IdError`] never in practice: the parts are short.
    pub fn control(kind: &str, reference: &Reference) -> Result<Self, IdError> {
        let hash = crate::operation::hex_sha256(reference.as_str());
        let id = EventId::text(&format!("{kind}.{}", &hash[..32]))?;
        Ok(Self::event(EventRef { provider: Provider::new(CONTROL_PROVIDER)?, id }))
    }

    /// The only item of an event.
    pub fn event(event: EventRef) -> Self {
        Self { event, item: ItemId::only() }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The item is escaped so that its end, the '@' before the first '/', stays unambiguous.
        if self.item == ItemId::only() {
            write!(f, "{}", self.event)
        } else {
            let item = self.item.as_str().replace('%', "%25").replace('@', "%40").replace('/', "%2F");
            write!(f, "{item}@{}", self.event)
        }
    }
}

impl TryFrom<String> for By {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        // A provider slug has no '@', so one before the first '/' ends the item.
        let head = text.find('/').unwrap_or(text.len());
        match text[..head].rfind('@') {
            Some(at) => {
                let item = text[..at].replace("%40", "@").replace("%2F", "/").replace("%25", "%");
                Ok(Self { event: text[at + 1..].parse()?, item: ItemId::new(item)? })
            }
            None => Ok(Self::event(text.parse()?)),
        }
    }
}

impl From<By> for String {
    fn from(by: By) -> String {
        by.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::json::parse;

    fn id(json: &str) -> Result<EventId, EventIdError> {
        EventId::from_json(&parse(json.as_bytes()).unwrap())
    }

    #[test]
    fn ded_05_big_integers_stay_apart_and_apart_from_strings() {
        let a = id("8202522731445525542").unwrap();
        let b = id("8202522731445525543").unwrap();
        let text = id("\"8202522731445525542\"").unwrap();
        assert_ne!(a, b);
        assert_ne!(a, text);
        assert_eq!(id("8.202522731445525542e18"), Err(EventIdError::NotAPlainInteger));
    }

    #[test]
    fn a_string_cannot_pretend_to_be_a_number_or_a_raw_body() {
        assert_ne!(id("\"num#5\"").unwrap(), id("5").unwrap());
        assert_ne!(EventId::text("raw#00").unwrap(), EventId::raw("00"));
    }

    #[test]
    fn by_survives_its_text_form() {
        let event: EventRef = "acme/a/b@c".parse().unwrap();
        for item in ["-", "x@y/z%", "acme/1"] {
            let by = By { event: event.clone(), item: ItemId::new(item).unwrap() };
            assert_eq!(By::try_from(by.to_string()).unwrap(), by);
        }
    }
}
