//! What effects leave by: the addresses and secrets that profiles name by their environment variables, the client, and
//! the gates.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use domain::profile::Profiles;

use crate::call::{Caller, NoCaller};
use crate::gate::Gates;

/// Addresses and secrets by variable. One that is not set is absent, and what would go there waits.
#[derive(Clone)]
pub struct Destinations {
    values: BTreeMap<String, String>,
    /// Sends over HTTP.
    pub caller: Arc<dyn Caller>,
    /// Rate limits and breakers, of this process.
    pub gates: Arc<Gates>,
}

impl Default for Destinations {
    fn default() -> Self {
        Self { values: BTreeMap::new(), caller: Arc::new(NoCaller), gates: Arc::default() }
    }
}

impl fmt::Debug for Destinations {
    /// Names only: the values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destinations").field("set", &self.values.keys()).finish_non_exhaustive()
    }
}

impl Destinations {
    /// Reads the variable of every destination that a profile or a subscription names. Without a client nothing leaves over HTTP.
    pub fn read(profiles: &Profiles, var: impl Fn(&str) -> Option<String>) -> Self {
        let rules = profiles.iter().flat_map(|profile| profile.events.values());
        let forwards = rules.filter_map(|rule| rule.forward.as_ref());
        let told = profiles.subscriptions().map(|one| &one.forward);
        let queues = forwards.chain(told).filter_map(|forward| forward.to.variable());
        let named = queues.chain(profiles.destinations().flat_map(|destination| destination.variables()));
        let set = |name: &str| var(name).filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value));
        Self { values: named.filter_map(set).collect(), ..Self::default() }
    }

    /// With a client.
    #[must_use]
    pub fn calling(self, caller: Arc<dyn Caller>) -> Self {
        Self { caller, ..self }
    }

    /// What an environment variable that a profile names holds.
    pub fn value(&self, variable: &str) -> Option<&str> {
        self.values.get(variable).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn what_is_named_is_read_and_not_shown() {
        let text =
            "[destinations.board]\nurl = \"env:BOARD_URL\"\nauth = { as = \"bearer\", secret = \"env:BOARD_TOKEN\" }\n";
        let read = Destinations::read(&Profiles::parse(text).unwrap(), |name| Some(format!("canary of {name}")));
        assert_eq!(read.value("BOARD_TOKEN"), Some("canary of BOARD_TOKEN"));
        assert_eq!(read.value("OTHER"), None);
        assert!(!format!("{read:?}").contains("canary"), "{read:?}");
    }
}
