//! Payment providers that postpaid wallets are charged at: `[charges.NAME]`.
//!
//! The table joins what is configured elsewhere: the destinations that charges and refunds leave by, each with its own
//! rules, and the endpoint whose webhooks tell of payments, whose minor units hold for charges too.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::Profiles;
use super::forward::is_name;
use crate::config::Problem;
use crate::config::shape::{Field, Kind};
use crate::money::Currency;

/// Whose requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChargeForm {
    /// Stripe's PaymentIntents and refunds.
    Stripe,
}

/// One payment provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charges {
    /// Its name, as a postpaid wallet has it.
    pub name: String,
    /// Whose requests.
    pub form: ChargeForm,
    /// The destination of charges.
    pub to: String,
    /// The destination of refunds.
    pub refunds: String,
    /// The destinations of what is authorised before; none where nothing can be.
    pub authorise: Option<Authorise>,
    /// The endpoint whose webhooks tell of payments.
    pub provider: String,
    /// The type of the payment methods that are charged.
    pub method: String,
}

impl Charges {
    /// Every destination that it names.
    pub fn destinations(&self) -> impl Iterator<Item = &str> {
        let steps = self.authorise.iter().flat_map(|steps| [&steps.to, &steps.capture, &steps.void]);
        [&self.to, &self.refunds].into_iter().chain(steps).map(String::as_str)
    }
}

/// The destinations of an authorisation's steps.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authorise {
    /// Of the authorisation.
    pub to: String,
    /// Of its capture.
    pub capture: String,
    /// Of its cancellation.
    pub void: String,
}

pub(super) static AUTHORISE: &[Field] = &[
    Field::must("to", Kind::Text, "the table [destinations.NAME] of authorisations"),
    Field::must("capture", Kind::Text, "the table [destinations.NAME] of their captures"),
    Field::must("void", Kind::Text, "the table [destinations.NAME] of their cancellations, which has no look-up"),
];

pub(super) static CHARGES: Kind = Kind::Table(&[
    Field::must("form", Kind::Choice(|| vec!["stripe"]), "whose requests"),
    Field::must("to", Kind::Text, "the table [destinations.NAME] of charges"),
    Field::must("refunds", Kind::Text, "the table [destinations.NAME] of refunds, which has no look-up"),
    Field::may("authorise", Kind::Table(AUTHORISE), "where jobs are authorised that their wallets want authorised"),
    Field::must("provider", Kind::Text, "the endpoint whose webhooks tell of payments; its minor_digits hold here too"),
    Field::may("method", Kind::Text, "the type of the payment methods that are charged; card without it"),
]);

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(rename = "form")]
    _form: String,
    to: String,
    refunds: String,
    authorise: Option<Authorise>,
    provider: String,
    method: Option<String>,
}

impl Profiles {
    /// The payment provider of a name.
    pub fn charges(&self, name: &str) -> Option<&Charges> {
        self.charges.get(name)
    }

    /// All of them, by name.
    pub fn all_charges(&self) -> impl Iterator<Item = &Charges> {
        self.charges.values()
    }

    /// Decimals of a currency's minor unit at a payment provider: ISO 4217's, or its own.
    pub fn minor_digits(&self, charges: &Charges, currency: Currency) -> u32 {
        let own = self.get(&charges.provider).and_then(|profile| profile.minor_digits.get(currency.code()).copied());
        own.unwrap_or_else(|| currency.minor_digits())
    }
}

/// Reads the tables of a file whose form was checked, once its destinations and endpoints were read; one whose form is
/// wrong is passed.
pub(super) fn read(
    root: &Spanned<DeValue<'_>>, profiles: &Profiles, problems: &mut Vec<Problem>,
) -> BTreeMap<String, Charges> {
    let tables = root.get_ref().get("charges").and_then(|value| value.get_ref().as_table());
    let mut all = BTreeMap::new();
    for (name, value) in tables.into_iter().flatten() {
        let name = name.get_ref().as_ref();
        if problems.iter().any(|p| p.path.starts_with(&["charges", name].map(str::to_owned))) {
            continue;
        }
        match build(name, value, profiles) {
            Ok(one) => drop(all.insert(name.to_owned(), one)),
            Err(problem) => problems.push(problem.below(&["charges", name])),
        }
    }
    all
}

fn build(name: &str, value: &Spanned<DeValue<'_>>, profiles: &Profiles) -> Result<Charges, Problem> {
    if !is_name(name) {
        let cause = "this is no name of a payment provider";
        return Err(Problem::new(&[], cause, "use up to 64 lower-case letters, digits, - and _"));
    }
    let raw = Raw::deserialize(ValueDeserializer::from(value.clone()))
        .map_err(|error| Problem::new(&[], error.message(), "see \"Postpaid tenants\" in README.md"))?;
    tables(&raw, profiles)?;
    if profiles.get(&raw.provider).is_none() {
        let cause = format!("there is no table [providers.{}]", raw.provider);
        return Err(Problem::new(&["provider"], cause, "add it, or correct the name"));
    }
    let method = raw.method.unwrap_or_else(|| "card".to_owned());
    if !is_name(&method) {
        return Err(Problem::new(&["method"], "this is no type of a payment method", "write such as \"card\""));
    }
    let Raw { to, refunds, authorise, provider, .. } = raw;
    Ok(Charges { name: name.to_owned(), form: ChargeForm::Stripe, to, refunds, authorise, provider, method })
}

/// The destinations that it names: each is there, says the payment's id where that is needed, and has no look-up where one
/// would find something else.
fn tables(raw: &Raw, profiles: &Profiles) -> Result<(), Problem> {
    let steps = raw.authorise.iter().flat_map(|steps| {
        [
            (&["authorise", "to"][..], &steps.to),
            (&["authorise", "capture"], &steps.capture),
            (&["authorise", "void"], &steps.void),
        ]
    });
    let all: Vec<(&[&str], &String)> =
        [(&["to"][..], &raw.to), (&["refunds"], &raw.refunds)].into_iter().chain(steps).collect();
    for (field, to) in &all {
        let Some(table) = profiles.destination(to) else {
            let cause = format!("there is no table [destinations.{to}]");
            return Err(Problem::new(field, cause, "add it, or correct the name"));
        };
        let found_by_payment = matches!(field, ["refunds"] | ["authorise", "void"]);
        if found_by_payment {
            if table.rules.lookup.is_some() {
                let cause =
                    "a look-up finds payments: it would say of what is done to one that it was, or was not, done";
                return Err(Problem::new(field, cause, "name a table of its own without `lookup`"));
            }
            continue;
        }
        // Without it a step is settled and nobody could say which payment a capture or a refund is of.
        let missing = "a capture and a refund need the payment's id";
        if table.rules.id.is_none() {
            let cause = format!("[destinations.{to}] has no `id`, and {missing}");
            return Err(Problem::new(field, cause, "say where its answers have the id"));
        }
        if table.rules.lookup.as_ref().is_some_and(|lookup| lookup.id.is_none()) {
            let cause = format!("[destinations.{to}.lookup] has no `id`, and {missing}");
            return Err(Problem::new(field, cause, "say where the look-up's answer has the id"));
        }
    }
    Ok(())
}
