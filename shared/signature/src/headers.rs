//! The headers of one request, looked up without regard to case.
//!
//! Built once per request: gateways lower-case names, documentation capitalises them, and a look-up by the documented
//! spelling must find both (SIG-04). Values are kept as they came: nothing is trimmed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Case-insensitive headers. Several values of one name are joined with a comma, as API Gateway does.
///
/// `Debug` shows names only: values can be secrets (`X-Gitlab-Token`).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// Takes every `(name, value)` in order. A value that is not UTF-8 is kept with replacement characters: it can then
    /// never verify, and never panics (SIG-11).
    pub fn new<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        let mut map: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in pairs {
            let value = String::from_utf8_lossy(value.as_ref());
            map.entry(name.as_ref().to_ascii_lowercase())
                .and_modify(|joined| {
                    joined.push(',');
                    joined.push_str(&value);
                })
                .or_insert_with(|| value.clone().into_owned());
        }
        Self(map)
    }

    /// The value of `name`, in any spelling of its letters' case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let key = if name.bytes().any(|b| b.is_ascii_uppercase()) {
            Cow::Owned(name.to_ascii_lowercase())
        } else {
            Cow::Borrowed(name)
        };
        self.0.get(key.as_ref()).map(String::as_str)
    }

    /// The names present, in lower case and sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The first of several aliases that is present and not empty.
    pub(crate) fn first_of(&self, aliases: &[String]) -> Option<&str> {
        aliases.iter().find_map(|name| self.get(name).filter(|value| !value.is_empty()))
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self::new(pairs)
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
