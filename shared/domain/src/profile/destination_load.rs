//! Reads the destinations' tables, and finds the rules that name one that is not there.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::destination::{HttpDestination, RawDestination};
use super::forward::is_name;
use super::{Destination, Profile, Profiles, Subscription};
use crate::config::Problem;

impl Profiles {
    /// The HTTP destination of a name.
    pub fn destination(&self, name: &str) -> Option<&HttpDestination> {
        self.destinations.get(name)
    }

    /// All HTTP destinations, by name.
    pub fn destinations(&self) -> impl Iterator<Item = &HttpDestination> {
        self.destinations.values()
    }
}

fn unknown(path: &[&str], to: &str) -> Problem {
    Problem::new(path, format!("there is no table [destinations.{to}]"), "add it, or correct the name")
}

/// Each subscription that is sent to an HTTP destination that the file does not have.
pub(super) fn unknown_of_subscriptions<'a>(
    subscriptions: impl Iterator<Item = &'a Subscription>, destinations: Option<&DeTable<'_>>,
) -> Vec<Problem> {
    let absent = |to: &str| destinations.is_none_or(|all| !all.contains_key(to));
    subscriptions
        .filter_map(|one| match &one.forward.to {
            Destination::Http(to) if absent(to) => Some(unknown(&["subscriptions", &one.name, "to"], to)),
            _ => None,
        })
        .collect()
}

/// One destination's table, which has the right form.
pub(super) fn destination(name: &str, value: &Spanned<DeValue<'_>>) -> Result<HttpDestination, Vec<Problem>> {
    if !is_name(name) {
        let cause = "this is no name of a destination";
        return Err(vec![Problem::new(&[], cause, "use up to 64 lower-case letters, digits, - and _")]);
    }
    let raw = RawDestination::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| {
        vec![Problem::new(&[], error.message(), "correct the value; README.md has a table of the fields")]
    })?;
    raw.build(name)
}

/// Each rule that forwards to an HTTP destination that the file does not have.
pub(super) fn unknown_destinations(
    profile: &Profile, table: &Spanned<DeValue<'_>>, destinations: Option<&DeTable<'_>>,
) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    for (name, rule) in &profile.events {
        let Some(Destination::Http(to)) = rule.forward.as_ref().map(|forward| &forward.to) else { continue };
        if destinations.is_some_and(|all| all.contains_key(to.as_str())) {
            continue;
        }
        let own = table.get_ref().get("events").and_then(|events| events.get_ref().get(name.as_str()));
        let own = own.is_some_and(|event| event.get_ref().get("forward").is_some());
        let slug = profile.slug.as_str();
        let common = ["providers", slug, "forward", "to"];
        let specific = ["providers", slug, "events", name, "forward", "to"];
        let path: &[&str] = if own { &specific } else { &common };
        let problem = unknown(path, to);
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}
