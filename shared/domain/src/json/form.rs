//! A form body as a JSON value, so that profiles read both alike.

use std::borrow::Cow;

use super::{JsonError, Value};

/// Reads `application/x-www-form-urlencoded` as one object of texts; a name without `=` has the empty text.
///
/// # Errors
///
/// [`JsonError::NotUtf8`] where a decoded name or value is no text, [`JsonError::DuplicateMember`] where a name stands
/// twice (two readers could read two values), [`JsonError::Empty`] where there is no field. Offsets are of the pair.
pub fn parse_form(body: &[u8]) -> Result<Value<'static>, JsonError> {
    let mut members = Vec::new();
    for (offset, name, value) in signature::form_fields(body) {
        let text = |bytes| String::from_utf8(bytes).map(Cow::<str>::Owned).map_err(|_| JsonError::NotUtf8 { offset });
        members.push((offset, text(name)?, text(value)?));
    }
    if members.is_empty() {
        return Err(JsonError::Empty);
    }
    let mut names: Vec<(&str, usize)> = members.iter().map(|(offset, name, _)| (name.as_ref(), *offset)).collect();
    names.sort_unstable();
    let repeat = names.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min();
    match repeat {
        Some(offset) => Err(JsonError::DuplicateMember { offset }),
        None => Ok(Value::Object(members.into_iter().map(|(_, name, value)| (name, Value::String(value))).collect())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test's failure is its report")]

    use super::parse_form;
    use crate::json::{JsonError, canonical};

    #[test]
    fn fields_become_members_of_one_object() {
        let value = parse_form(b"To=%2B1555&Body=a+b%26c&Empty=&Bare").unwrap();
        let form = String::from_utf8(canonical(&value, &[])).unwrap();
        assert_eq!(form, r#"{"Bare":"","Body":"a b&c","Empty":"","To":"+1555"}"#);
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        assert_eq!(parse_form(b"a=1&b=2&%61=3"), Err(JsonError::DuplicateMember { offset: 8 }));
        assert_eq!(parse_form(b"x=1&a=%FF"), Err(JsonError::NotUtf8 { offset: 4 }));
        assert_eq!(parse_form(b""), Err(JsonError::Empty));
        assert_eq!(parse_form(b"&&"), Err(JsonError::Empty));
    }
}
