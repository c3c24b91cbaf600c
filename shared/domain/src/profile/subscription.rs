//! Who is told of what happened here: `[subscriptions.NAME]` of `providers.toml`.
//!
//! A subscription is a name, a destination as a forward has one, the types that it wants, and whose. The name is part
//! of the key that its reader knows a repetition by, so a renamed subscription is another one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::load::tenants;
use super::{Forward, Profile, Profiles};
use crate::config::Problem;
use crate::ids::{ItemId, TenantId};
use crate::money::{Currency, Micros};
use crate::own::{OwnEvent, OwnType};

/// Subscriptions of one file at most: each is one more operation of every event that it wants.
pub const MAX_SUBSCRIPTIONS: usize = 20;
/// Longest name in bytes.
const MAX_NAME_BYTES: usize = 64;

/// One subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its name: the item of its operation.
    pub name: String,
    /// Where to.
    pub forward: Forward,
    /// What it wants.
    pub types: BTreeSet<OwnType>,
    /// Whose; `None` is everybody's, also what is nobody's in particular.
    pub tenants: Option<Vec<TenantId>>,
    /// True when the order of commit of one job, wallet or event is kept.
    pub ordered: bool,
    /// Below which available balance it is told, by currency.
    pub low_balance: BTreeMap<String, Micros>,
}

impl Subscription {
    /// True when it wants this event.
    pub fn wants(&self, event: &OwnEvent) -> bool {
        let threshold = event.threshold.is_none_or(|(currency, threshold)| self.threshold(currency) == Some(threshold));
        self.types.contains(&event.kind) && self.serves(event.envelope.tenant.as_ref()) && threshold
    }

    fn serves(&self, tenant: Option<&TenantId>) -> bool {
        self.tenants.as_ref().is_none_or(|all| tenant.is_some_and(|tenant| all.contains(tenant)))
    }

    fn threshold(&self, currency: Currency) -> Option<Micros> {
        let wanted = self.types.contains(&OwnType::LowBalance);
        self.low_balance.get(currency.code()).copied().filter(|_| wanted)
    }
}

impl Profiles {
    /// The profile of a slug.
    pub fn get(&self, slug: &str) -> Option<&Profile> {
        self.providers.get(slug)
    }

    /// All profiles, by slug.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.providers.values()
    }

    /// All subscriptions, by name.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        self.subscriptions.values()
    }

    /// The subscription that an item of an event of our own names.
    pub fn subscription(&self, item: &ItemId) -> Option<&Subscription> {
        self.subscriptions.get(item.as_str())
    }

    /// The subscriptions that want an event.
    pub fn wanting(&self, event: &OwnEvent) -> Vec<&Subscription> {
        self.subscriptions().filter(|one| one.wants(event)).collect()
    }

    /// The thresholds that somebody watches for a tenant's wallets of a currency.
    pub fn thresholds(&self, tenant: &TenantId, currency: Currency) -> BTreeSet<Micros> {
        let watching = self.subscriptions().filter(|one| one.serves(Some(tenant)));
        watching.filter_map(|one| one.threshold(currency)).collect()
    }
}

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    to: String,
    types: Vec<String>,
    tenants: Vec<String>,
    #[serde(default)]
    ordered: bool,
    #[serde(default)]
    low_balance: BTreeMap<String, String>,
}

/// Reads the subscriptions of a file whose form was checked; one whose form is wrong is passed.
pub(super) fn read(root: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> BTreeMap<String, Subscription> {
    let tables = root.get_ref().get("subscriptions").and_then(|value| value.get_ref().as_table());
    let wrong: Vec<String> = problems
        .iter()
        .filter(|p| p.path.first().is_some_and(|step| step == "subscriptions"))
        .filter_map(|problem| problem.path.get(1).cloned())
        .collect();
    let mut all = BTreeMap::new();
    for (name, value) in tables.into_iter().flatten() {
        let name = name.get_ref().as_ref();
        if wrong.iter().any(|broken| broken == name) {
            continue;
        }
        match build(name, value) {
            Ok(one) => drop(all.insert(name.to_owned(), one)),
            Err(problem) => problems.push(problem.below(&["subscriptions", name])),
        }
    }
    if all.len() > MAX_SUBSCRIPTIONS {
        let cause = format!("there are {} subscriptions", all.len());
        problems.push(Problem::new(&["subscriptions"], cause, format!("keep at most {MAX_SUBSCRIPTIONS}")));
    }
    all
}

fn build(name: &str, value: &Spanned<DeValue<'_>>) -> Result<Subscription, Problem> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    if !begins || name.len() > MAX_NAME_BYTES || !name.bytes().all(plain) {
        let remedy = format!("use a-z, 0-9 and '-', a letter first, at most {MAX_NAME_BYTES} characters");
        return Err(Problem::new(&[], "the name is part of keys", remedy));
    }
    let raw = Raw::deserialize(ValueDeserializer::from(value.clone()))
        .map_err(|error| Problem::new(&[], error.message(), "see \"Tell others\" in README.md"))?;
    let at = |field: &'static str| move |cause: String| Problem::new(&[field], cause, "correct the value");
    let types: BTreeSet<OwnType> =
        raw.types.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(at("types"))?;
    let mut low_balance = BTreeMap::new();
    for (code, text) in &raw.low_balance {
        let path = ["low_balance", code.as_str()];
        let told = |error: crate::money::MoneyError| Problem::new(&path, error.to_string(), "correct the value");
        let currency = Currency::parse(code).map_err(told)?;
        let threshold = Micros::parse(text).and_then(Micros::non_negative).map_err(told)?;
        low_balance.insert(currency.code().to_owned(), threshold);
    }
    match (types.contains(&OwnType::LowBalance), low_balance.is_empty()) {
        (true, true) => {
            let (cause, remedy) = ("wallet.low-balance needs a threshold", "add `low_balance = { USD = \"10.00\" }`");
            return Err(Problem::new(&["types"], cause, remedy));
        }
        (false, false) => {
            let (cause, remedy) = ("nobody is told of it", "add \"wallet.low-balance\" to `types`, or remove it");
            return Err(Problem::new(&["low_balance"], cause, remedy));
        }
        _ => {}
    }
    Ok(Subscription {
        name: name.to_owned(),
        forward: Forward { to: raw.to.parse().map_err(at("to"))?, action_key: Vec::new() },
        types,
        tenants: tenants(&raw.tenants).map_err(at("tenants"))?,
        ordered: raw.ordered,
        low_balance,
    })
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
