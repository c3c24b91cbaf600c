//! The addresses that profiles forward events to, by the environment variable that holds each.

use std::collections::BTreeMap;

use domain::profile::{Destination, Profiles};

/// Addresses by variable. One that is not set is absent, and what would go there waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Destinations(BTreeMap<String, String>);

impl Destinations {
    /// Reads the variable of every destination that a profile or a subscription names.
    pub fn read(profiles: &Profiles, var: impl Fn(&str) -> Option<String>) -> Self {
        let rules = profiles.iter().flat_map(|profile| profile.events.values());
        let forwards = rules.filter_map(|rule| rule.forward.as_ref());
        let forwards = forwards.chain(profiles.subscriptions().map(|one| &one.forward));
        let named = forwards.map(|forward| forward.to.variable());
        let set = |name: &str| var(name).filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value));
        Self(named.filter_map(set).collect())
    }

    /// The address of a destination.
    pub fn get(&self, to: &Destination) -> Option<&str> {
        self.0.get(to.variable()).map(String::as_str)
    }
}
