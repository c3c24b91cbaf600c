//! Where the sources of a profile are read: headers, the body, and one item of it.

use signature::Headers;

use crate::json::Value;
use crate::profile::{Source, TimeUnit};

/// One delivery, or one item of it.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) headers: &'a Headers,
    pub(super) body: &'a Value<'a>,
    /// Absent where the delivery carries one event: then nothing stands at `item:`.
    pub(super) item: Option<&'a Value<'a>>,
}

impl<'a> Place<'a> {
    /// The JSON value at a source; headers have none.
    pub(super) fn value(self, source: &Source) -> Option<&'a Value<'a>> {
        match source {
            Source::Header(_) => None,
            Source::Body(pointer) => self.body.pointer(pointer),
            Source::Item(pointer) => self.item?.pointer(pointer),
        }
    }

    /// The text at a source: a string as it is, a plain integer by its digits.
    pub(super) fn text(self, source: &Source) -> Option<String> {
        if let Source::Header(name) = source {
            return self.headers.get(name).map(str::to_owned);
        }
        match self.value(source)? {
            Value::String(text) => Some(text.to_string()),
            Value::Number(number) if number.is_plain_integer() => Some(number.text().to_owned()),
            _ => None,
        }
    }

    /// The text of a scalar, booleans included.
    pub(super) fn scalar(self, source: &Source) -> Option<String> {
        match self.value(source) {
            Some(Value::Bool(flag)) => Some(flag.to_string()),
            _ => self.text(source),
        }
    }

    /// The text of any scalar, a number by its own digits; `None` where nothing stands.
    ///
    /// # Errors
    /// What stands there, when it is no scalar.
    pub(super) fn named(self, source: &Source) -> Result<Option<String>, &'static str> {
        if let Source::Header(_) = source {
            return Ok(self.text(source));
        }
        match self.value(source) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.text().to_owned())),
            Some(Value::String(_) | Value::Bool(_)) => Ok(self.scalar(source)),
            Some(other) => Err(other.kind()),
        }
    }

    /// A scalar as JSON text, a number by its own digits; `None` where nothing stands.
    ///
    /// # Errors
    /// What stands there, when it is no scalar.
    pub(super) fn json(self, source: &Source) -> Result<Option<String>, &'static str> {
        let text = self.named(source)?;
        Ok(match self.value(source) {
            Some(Value::Number(_) | Value::Bool(_)) => text,
            _ => text.map(|text| serde_json::Value::String(text).to_string()),
        })
    }

    /// A time in Unix milliseconds.
    pub(super) fn time(self, source: &Source, unit: TimeUnit) -> Option<i64> {
        let text = self.text(source)?;
        match unit {
            TimeUnit::Rfc3339 => text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond),
            TimeUnit::Seconds => text.parse::<i64>().ok()?.checked_mul(1000),
            TimeUnit::Milliseconds => text.parse().ok(),
        }
    }
}
