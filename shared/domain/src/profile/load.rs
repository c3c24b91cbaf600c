//! Reads `providers.toml`: every mistake is refused with the profile, the field and the remedy.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::list::RawList;
use super::{EventRule, Fields, IdSource, OnlyIf, Profile, Source, TimeAt, TimeUnit};
use crate::event::CONTROL_PROVIDER;
use crate::ids::{Provider, TenantId};
use crate::job::{Outcome, Overage, Policies};
use crate::json::Pointer;
use crate::operation::OperationName;

const HOUR_MS: i64 = 3_600_000;

/// Why `providers.toml` is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// TOML or a field's form; the message carries line and column.
    #[error("providers.toml: {0}")]
    Syntax(String),
    /// A value that parses and makes no sense.
    #[error("providers.toml: provider {provider:?}, `{field}`: {problem}")]
    Invalid {
        /// The slug.
        provider: String,
        /// The field.
        field: &'static str,
        /// What is wrong and what to do.
        problem: String,
    },
}

/// All configured endpoints by slug.
#[derive(Debug, Clone, Default)]
pub struct Profiles(BTreeMap<String, Profile>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    providers: BTreeMap<String, Raw>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    signature: signature::Recipe,
    secrets: Vec<String>,
    owner: String,
    retry_window_hours: u32,
    tenants: Vec<String>,
    event_id: RawIdSource,
    #[serde(default = "yes")]
    id_signed: bool,
    #[serde(default)]
    number_ids_as_text: bool,
    event_type: String,
    first_sent: Option<RawTime>,
    attempt: Option<String>,
    #[serde(default)]
    hash_ignore: Vec<String>,
    #[serde(default = "day")]
    expire_after_hours: u32,
    hold_hours: Option<u32>,
    #[serde(default = "ok")]
    quarantine_status: u16,
    #[serde(default)]
    fields: RawFields,
    #[serde(default)]
    only_if: Vec<RawOnlyIf>,
    #[serde(default)]
    minor_digits: BTreeMap<String, u32>,
    #[serde(default)]
    policies: RawPolicies,
    #[serde(default)]
    models: BTreeMap<String, RawPolicies>,
    #[serde(default)]
    events: BTreeMap<String, RawEvent>,
    list: Option<RawList>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawIdSource {
    One(String),
    Derived(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTime {
    at: String,
    unit: TimeUnit,
}

/// The file's form of [`Policies`], in which an unknown field is refused.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(deny_unknown_fields, default)]
struct RawPolicies {
    overage: Overage,
    bill_partial: bool,
    provisional_failure: bool,
    extendable: bool,
}

impl From<RawPolicies> for Policies {
    fn from(raw: RawPolicies) -> Self {
        let RawPolicies { overage, bill_partial, provisional_failure, extendable } = raw;
        Self { overage, bill_partial, provisional_failure, extendable }
    }
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct RawOnlyIf {
    at: String,
    is: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawFields {
    tenant: Option<String>,
    job: Option<String>,
    #[serde(rename = "ref")]
    provider_ref: Option<String>,
    model: Option<String>,
    wallet: Option<String>,
    currency: Option<String>,
    sequence: Option<String>,
    reference: Option<String>,
    usage: Option<String>,
    amount: Option<String>,
    minor_amount: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvent {
    outcome: Option<Outcome>,
    operations: Vec<OperationName>,
    #[serde(default)]
    fields: RawFields,
    #[serde(default)]
    only_if: Vec<RawOnlyIf>,
}

fn yes() -> bool {
    true
}

fn day() -> u32 {
    24
}

fn ok() -> u16 {
    200
}

impl Profiles {
    /// Reads and checks `providers.toml`.
    ///
    /// # Errors
    /// [`ProfileError`] naming the profile, the field and the remedy.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let file: File = toml::from_str(text).map_err(|e| ProfileError::Syntax(e.to_string()))?;
        let profile = |(slug, raw): (String, Raw)| build(&slug, raw).map(|p| (slug, p));
        file.providers.into_iter().map(profile).collect::<Result<_, _>>().map(Self)
    }

    /// The profile of a slug.
    pub fn get(&self, slug: &str) -> Option<&Profile> {
        self.0.get(slug)
    }

    /// All profiles, by slug.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.0.values()
    }
}

/// Builds one profile; `at` makes the error for a field.
fn build(slug: &str, raw: Raw) -> Result<Profile, ProfileError> {
    let at = |field: &'static str| {
        move |problem: String| ProfileError::Invalid { provider: slug.to_owned(), field, problem }
    };
    let source = |field: &'static str, text: &str| text.parse::<Source>().map_err(at(field));
    let optional = |field: &'static str, text: &Option<String>| text.as_deref().map(|t| source(field, t)).transpose();
    let pointer = |field: &'static str, text: &str| text.parse::<Pointer>().map_err(|e| at(field)(e.to_string()));
    if slug == CONTROL_PROVIDER {
        return Err(at("slug")("this name is reserved for what operators ask: choose another".to_owned()));
    }
    if raw.secrets.is_empty() {
        return Err(at("secrets")("name at least one environment variable that holds a live secret".to_owned()));
    }
    if raw.owner.trim().is_empty() {
        return Err(at("owner")("name who answers for this provider".to_owned()));
    }
    if ![200, 400, 409, 422].contains(&raw.quarantine_status) {
        return Err(at("quarantine_status")("must be 200, 400, 409 or 422".to_owned()));
    }
    for policies in std::iter::once(&raw.policies).chain(raw.models.values()) {
        check_policies((*policies).into()).map_err(at("policies"))?;
    }
    let expire_after_ms = i64::from(raw.expire_after_hours) * HOUR_MS;
    // The life of a hold must outlast the run and every late delivery of its outcome.
    let hold_hours = raw.hold_hours.unwrap_or(raw.retry_window_hours + 48);
    if hold_hours <= raw.retry_window_hours {
        return Err(at("hold_hours")(format!("must exceed the retry window of {} hours", raw.retry_window_hours)));
    }
    let common = fields(&raw.fields, &Fields::default()).map_err(at("fields"))?;
    let only_if = |only: RawOnlyIf| source("only_if", &only.at).map(|at| OnlyIf { at, is: only.is });
    let events = raw.events.into_iter().map(|(name, event)| rule(event, &common).map(|r| (name, r)));
    let first_sent = match raw.first_sent {
        Some(time) => Some(TimeAt { at: source("first_sent", &time.at)?, unit: time.unit }),
        None => None,
    };
    Ok(Profile {
        slug: Provider::new(slug).map_err(|e| at("slug")(e.to_string()))?,
        recipe: raw.signature,
        secret_names: raw.secrets,
        owner: raw.owner,
        retry_window_hours: raw.retry_window_hours,
        tenants: tenants(&raw.tenants).map_err(at("tenants"))?,
        event_id: id_source(&raw.event_id).map_err(at("event_id"))?,
        id_signed: raw.id_signed,
        number_ids_as_text: raw.number_ids_as_text,
        event_type: source("event_type", &raw.event_type)?,
        first_sent,
        attempt: optional("attempt", &raw.attempt)?,
        hash_ignore: raw.hash_ignore.iter().map(|t| pointer("hash_ignore", t)).collect::<Result<_, _>>()?,
        expire_after_ms,
        hold_life_ms: i64::from(hold_hours) * HOUR_MS,
        quarantine_status: raw.quarantine_status,
        only_if: raw.only_if.into_iter().map(only_if).collect::<Result<_, _>>()?,
        minor_digits: raw.minor_digits,
        policies: raw.policies.into(),
        model_policies: raw.models.into_iter().map(|(model, policies)| (model, policies.into())).collect(),
        events: events.collect::<Result<_, _>>().map_err(at("events"))?,
        list: raw.list.map(RawList::build).transpose().map_err(at("list"))?,
    })
}

fn tenants(names: &[String]) -> Result<Option<Vec<TenantId>>, String> {
    match names {
        [] => Err("list the tenants this provider may speak for, or \"*\" for all".to_owned()),
        [all] if all == "*" => Ok(None),
        _ => names
            .iter()
            .map(|t| TenantId::new(t.as_str()).map_err(|e| e.to_string()))
            .collect::<Result<_, _>>()
            .map(Some),
    }
}

fn check_policies(policies: Policies) -> Result<(), String> {
    if policies.provisional_failure && policies.bill_partial {
        let problem = "a provisional failure may not also bill partial usage: the later success would charge it again";
        return Err(problem.to_owned());
    }
    Ok(())
}

/// The fields of a table, with `base` where it names none.
fn fields(raw: &RawFields, base: &Fields) -> Result<Fields, String> {
    let source = |text: &Option<String>, base: &Option<Source>| match text {
        Some(text) => text.parse().map(Some),
        None => Ok(base.clone()),
    };
    let usage = match &raw.usage {
        Some(text) => match text.parse()? {
            Source::Body(pointer) => Some(pointer),
            Source::Header(_) => return Err("usage is an object of the body".to_owned()),
        },
        None => base.usage.clone(),
    };
    Ok(Fields {
        tenant: source(&raw.tenant, &base.tenant)?,
        job: source(&raw.job, &base.job)?,
        provider_ref: source(&raw.provider_ref, &base.provider_ref)?,
        model: source(&raw.model, &base.model)?,
        wallet: source(&raw.wallet, &base.wallet)?,
        currency: source(&raw.currency, &base.currency)?,
        sequence: source(&raw.sequence, &base.sequence)?,
        reference: source(&raw.reference, &base.reference)?,
        amount: source(&raw.amount, &base.amount)?,
        minor_amount: source(&raw.minor_amount, &base.minor_amount)?,
        usage,
    })
}

fn rule(event: RawEvent, common: &Fields) -> Result<EventRule, String> {
    let terminal = |name: &OperationName| matches!(name, OperationName::CompleteJob | OperationName::SettleUsage);
    if event.operations.iter().any(terminal) && event.outcome.is_none() {
        return Err(
            "complete-job and settle-usage need `outcome = \"success\" | \"failure\" | \"canceled\"`".to_owned()
        );
    }
    for (index, name) in event.operations.iter().enumerate() {
        if event.operations[..index].contains(name) {
            return Err(format!("{name} is listed twice"));
        }
    }
    let fields = fields(&event.fields, common)?;
    let only = |only: RawOnlyIf| only.at.parse().map(|at| OnlyIf { at, is: only.is });
    let only_if = event.only_if.into_iter().map(only).collect::<Result<_, _>>()?;
    Ok(EventRule { outcome: event.outcome, operations: event.operations, fields, only_if })
}

fn id_source(raw: &RawIdSource) -> Result<IdSource, String> {
    match raw {
        RawIdSource::One(text) if text == "signed-id" => Ok(IdSource::SignedId),
        RawIdSource::One(text) => text.parse().map(IdSource::At),
        RawIdSource::Derived(parts) if parts.is_empty() => Err("name at least one stable field".to_owned()),
        RawIdSource::Derived(parts) => {
            let pointer = |text: &String| match text.parse()? {
                Source::Body(pointer) => Ok(pointer),
                Source::Header(_) => Err("a derived id is made of body fields".to_owned()),
            };
            parts.iter().map(pointer).collect::<Result<_, _>>().map(IdSource::Derived)
        }
    }
}

impl std::str::FromStr for Source {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("header", name)) if !name.is_empty() => Ok(Self::Header(name.to_ascii_lowercase())),
            Some(("body", pointer)) => pointer.parse().map(Self::Body).map_err(|e| format!("{pointer:?}: {e}")),
            _ => Err(format!("{text:?} is no source: write \"header:NAME\" or \"body:/json/pointer\"")),
        }
    }
}
