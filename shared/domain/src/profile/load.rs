//! Reads `providers.toml`: every mistake is refused with its place, the field and the remedy.
//!
//! First the form, by [`shape::SHAPE`](super::shape), which finds every departure; then, per provider, what the fields
//! say. The two tables of fields (there and here) are held together by a test.

use std::collections::BTreeMap;

use serde::Deserialize;

use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::board::{RawBoard, settle, unfit};
use super::destination::HttpDestination;
use super::destination_load::{destination, unknown_destinations, unknown_of_subscriptions};
use super::fetch::{RawFetch, unknown_of_fetches};
use super::fields::{RawFields, fields};
use super::forward::RawForward;
use super::list::RawList;
use super::secret::{RawSecret, SecretRef};
use super::{BodyForm, Charges, EventRule, Fields, IdSource, OnlyIf, Profile, Source, Subscription, TimeAt, TimeUnit};
use super::{checks, shape, strict};
use crate::config::{Document, FileError, Finding, Problem};
use crate::event::CONTROL_PROVIDER;
use crate::ids::{Provider, TenantId};
use crate::job::{Outcome, Overage, Policies};
use crate::json::Pointer;
use crate::operation::{Consumer, OperationName};
use crate::own::OWN_PROVIDER;

const HOUR_MS: i64 = 3_600_000;
/// How long a run is assumed to take at most where a profile does not say, in hours.
pub(super) const DEFAULT_RUN_LIMIT_HOURS: u32 = 48;

/// All configured endpoints by slug, the HTTP destinations by name, and who is told of what happened here.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    pub(super) providers: BTreeMap<String, Profile>,
    pub(super) destinations: BTreeMap<String, HttpDestination>,
    pub(super) subscriptions: BTreeMap<String, Subscription>,
    pub(super) charges: BTreeMap<String, Charges>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    signature: signature::Recipe,
    secrets: Vec<RawSecret>,
    owner: String,
    retry_window_hours: u32,
    run_limit_hours: Option<u32>,
    retention_days: Option<u32>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    body: BodyForm,
    #[serde(default = "accepted")]
    accept_status: u16,
    tenants: Vec<String>,
    event_id: RawIdSource,
    #[serde(default = "yes")]
    id_signed: bool,
    #[serde(default)]
    number_ids_as_text: bool,
    event_type: String,
    items: Option<String>,
    item_id: Option<String>,
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
    data: BTreeMap<String, String>,
    forward: Option<RawForward>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvent {
    outcome: Option<Outcome>,
    operations: Vec<OperationName>,
    unbilled: Option<String>,
    #[serde(default)]
    fields: RawFields,
    #[serde(default)]
    only_if: Vec<RawOnlyIf>,
    #[serde(default)]
    data: BTreeMap<String, String>,
    forward: Option<RawForward>,
    board: Option<RawBoard>,
    fetch: Option<RawFetch>,
}

fn accepted() -> u16 {
    202
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
    /// [`FileError`] with every mistake, its place and the remedy.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let (profiles, _, findings) = read(text);
        if findings.is_empty() { Ok(profiles) } else { Err(FileError { file: "providers.toml", findings }) }
    }

    /// Every mistake that [`Profiles::parse`] finds, and beyond them what no endpoint should go live with: an unfilled
    /// handoff field, a completion that nothing settles, an id that no signature covers and is said to be signed.
    pub fn check(text: &str) -> Vec<Finding> {
        let (profiles, document, mut findings) = read(text);
        for profile in profiles.iter() {
            let problems = strict::problems(profile).into_iter();
            let below = ["providers", profile.slug.as_str()];
            findings.extend(problems.map(|problem| document.finding(problem.below(&below))));
        }
        findings.sort();
        findings
    }
}

/// The profiles that could be built, and every mistake.
fn read(text: &str) -> (Profiles, Document<'_>, Vec<Finding>) {
    let (document, mut findings) = Document::parse(text);
    let mut profiles = Profiles::default();
    // What a syntax error leaves behind would only be told twice.
    if findings.is_empty() {
        let mut problems = Vec::new();
        crate::config::shape::check(&shape::SHAPE, document.root(), &mut Vec::new(), &mut problems);
        let tables = |name: &str| document.root().get_ref().get(name).and_then(|value| value.get_ref().as_table());
        for (name, value) in tables("destinations").into_iter().flatten() {
            let name = name.get_ref().as_ref();
            let path = ["destinations", name];
            if problems.iter().any(|problem| problem.path.starts_with(&path.map(str::to_owned))) {
                continue;
            }
            match destination(name, value) {
                Ok(destination) => drop(profiles.destinations.insert(name.to_owned(), destination)),
                Err(found) => problems.extend(found.into_iter().map(|problem| problem.below(&path))),
            }
        }
        for (slug, value) in tables("providers").into_iter().flatten() {
            let slug = slug.get_ref().as_ref();
            if problems.iter().any(|problem| problem.path.starts_with(&["providers", slug].map(str::to_owned))) {
                continue;
            }
            match profile(slug, value) {
                Ok(profile) => {
                    problems.extend(unknown_destinations(&profile, value, tables("destinations")));
                    problems.extend(unfit(&profile, &profiles.destinations, tables("destinations")));
                    problems.extend(unknown_of_fetches(&profile, tables("destinations")));
                    profiles.providers.insert(slug.to_owned(), profile);
                }
                Err(found) => problems.extend(found.into_iter().map(|problem| problem.below(&["providers", slug]))),
            }
        }
        profiles.subscriptions = super::subscription::read(document.root(), &mut problems);
        problems.extend(unknown_of_subscriptions(profiles.subscriptions.values(), tables("destinations")));
        profiles.charges = super::charges::read(document.root(), &profiles, &mut problems);
        findings = problems.into_iter().map(|problem| document.finding(problem)).collect();
    }
    findings.sort();
    (profiles, document, findings)
}

/// One provider's table, which has the right form.
fn profile(slug: &str, value: &Spanned<DeValue<'_>>) -> Result<Profile, Vec<Problem>> {
    // By itself first, so that a wrong recipe is told at its own line.
    if let Some(recipe) = value.get_ref().get("signature") {
        signature::Recipe::deserialize(ValueDeserializer::from(recipe.clone())).map_err(|error| {
            vec![Problem::new(&["signature"], error.message(), "see \"Add a provider\" in README.md")]
        })?;
    }
    let raw = Raw::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| {
        vec![Problem::new(&[], error.message(), "correct the value; README.md has an example of every field")]
    })?;
    build(slug, raw)
}

/// Gathers what is wrong with one profile.
#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn add(&mut self, path: &[&str], cause: impl Into<String>, remedy: impl Into<String>) {
        self.0.push(Problem::new(path, cause, remedy));
    }

    /// The value, or its problem noted.
    fn take<T>(&mut self, path: &[&str], read: Result<T, String>) -> Option<T> {
        read.map_err(|cause| self.add(path, cause, "correct the value")).ok()
    }
}

fn build(slug: &str, raw: Raw) -> Result<Profile, Vec<Problem>> {
    let mut problems = Problems::default();
    if slug == CONTROL_PROVIDER
        || slug == OWN_PROVIDER
        || Consumer::ALL.iter().any(|consumer| consumer.as_str() == slug)
    {
        let cause = format!(
            "the slug `{slug}` is reserved for what operators ask, for events of our own and for the consumers' switches"
        );
        problems.add(&[], cause, "choose another");
    }
    for (path, policies) in std::iter::once((vec!["policies"], &raw.policies))
        .chain(raw.models.iter().map(|(model, policies)| (vec!["models", model.as_str()], policies)))
    {
        check_policies(&mut problems, &path, (*policies).into());
    }
    let hold_hours = hold_hours(&mut problems, &raw);
    let signed_id = matches!(&raw.event_id, RawIdSource::One(text) if text == "signed-id");
    if signed_id && !raw.signature.signs_id() {
        let cause = format!("scheme {} signs no id outside the body", raw.signature.name());
        problems.add(&["event_id"], cause, "say where the id stands: \"body:/...\" or \"header:...\"");
    }
    let slug = problems.take(&[], Provider::new(slug).map_err(|e| e.to_string()));
    let tenants = problems.take(&["tenants"], tenants(&raw.tenants));
    let event_id = problems.take(&["event_id"], id_source(&raw.event_id));
    let event_type = problems.take(&["event_type"], raw.event_type.parse());
    let first_sent = raw.first_sent.map(|time| (time.at.parse(), time.unit));
    let first_sent =
        first_sent.and_then(|(at, unit)| problems.take(&["first_sent", "at"], at).map(|at| TimeAt { at, unit }));
    let attempt = raw.attempt.and_then(|text| problems.take(&["attempt"], text.parse()));
    let pointer = |text: &String| text.parse::<Pointer>().map_err(|e| e.to_string());
    let hash_ignore: Result<_, _> = raw.hash_ignore.iter().map(pointer).collect();
    let hash_ignore = problems.take(&["hash_ignore"], hash_ignore).unwrap_or_default();
    let list = raw.list.map(RawList::build).transpose();
    let list = problems.take(&["list"], list).unwrap_or_default();
    let items = problems.take(&["items"], checks::list_of_items(raw.items, raw.item_id)).unwrap_or_default();
    let common = Common {
        fields: problems.take(&["fields"], fields(&raw.fields, &Fields::default())).unwrap_or_default(),
        data: raw.data,
        forward: raw.forward,
    };
    let only_if: Result<_, _> = raw.only_if.into_iter().map(only_if).collect();
    let only_if = problems.take(&["only_if"], only_if).unwrap_or_default();
    let events = events(&mut problems, raw.events, &common);
    let secrets = secrets(&mut problems, raw.secrets);
    let (Some(slug), Some(tenants), Some(event_id), Some(event_type)) = (slug, tenants, event_id, event_type) else {
        return Err(problems.0);
    };
    if !problems.0.is_empty() {
        return Err(problems.0);
    }
    let profile = Profile {
        slug,
        recipe: raw.signature,
        secrets,
        owner: raw.owner,
        notes: raw.notes,
        retry_window_hours: raw.retry_window_hours,
        retention_days: raw.retention_days,
        tenants,
        body: raw.body,
        event_id,
        id_signed: raw.id_signed,
        number_ids_as_text: raw.number_ids_as_text,
        items,
        event_type,
        first_sent,
        attempt,
        hash_ignore,
        expire_after_ms: i64::from(raw.expire_after_hours) * HOUR_MS,
        hold_life_ms: i64::from(hold_hours) * HOUR_MS,
        accept_status: raw.accept_status,
        quarantine_status: raw.quarantine_status,
        only_if,
        minor_digits: raw.minor_digits,
        policies: raw.policies.into(),
        model_policies: raw.models.into_iter().map(|(model, policies)| (model, policies.into())).collect(),
        events,
        fields: common.fields,
        list,
    };
    match checks::items(&profile) {
        Ok(()) => Ok(profile),
        Err(cause) => Err(vec![Problem::new(&["items"], cause, "correct the value")]),
    }
}

/// What an event type takes from its profile where it has nothing of its own.
struct Common {
    fields: Fields,
    data: BTreeMap<String, String>,
    forward: Option<RawForward>,
}

fn events(problems: &mut Problems, raw: BTreeMap<String, RawEvent>, common: &Common) -> BTreeMap<String, EventRule> {
    let mut events = BTreeMap::new();
    for (name, event) in raw {
        match rule(event, common) {
            Ok(rule) => drop(events.insert(name, rule)),
            Err(problem) => problems.0.push(problem.below(&["events", &name])),
        }
    }
    events
}

fn secrets(problems: &mut Problems, raw: Vec<RawSecret>) -> Vec<SecretRef> {
    let mut secrets = Vec::new();
    for (index, secret) in raw.into_iter().enumerate() {
        match SecretRef::try_from(secret) {
            Ok(secret) => secrets.push(secret),
            Err(problem) => problems.0.push(problem.below(&["secrets", &index.to_string()])),
        }
    }
    secrets
}

/// The life of a hold must outlast the run and every late delivery of its outcome.
fn hold_hours(problems: &mut Problems, raw: &Raw) -> u32 {
    let run_limit = raw.run_limit_hours.unwrap_or(DEFAULT_RUN_LIMIT_HOURS);
    let wanted = raw.retry_window_hours + run_limit;
    let hold_hours = raw.hold_hours.unwrap_or(wanted);
    // Without a stated run limit any run is assumed to take some time.
    let least = raw.retry_window_hours + raw.run_limit_hours.unwrap_or(1);
    if hold_hours < least {
        let cause = format!("a hold of {hold_hours} hours ends before the outcome is surely known");
        problems.add(&["hold_hours"], cause, format!("give at least {least}: the run limit plus the retry window"));
    }
    hold_hours
}

fn only_if(only: RawOnlyIf) -> Result<OnlyIf, String> {
    only.at.parse().map(|at| OnlyIf { at, is: only.is })
}

pub(super) fn tenants(names: &[String]) -> Result<Option<Vec<TenantId>>, String> {
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

fn check_policies(problems: &mut Problems, path: &[&str], policies: Policies) {
    if policies.provisional_failure && policies.bill_partial {
        let cause = "a provisional failure also bills partial usage, which the later success would charge again";
        problems.add(path, cause, "keep one of `provisional_failure` and `bill_partial`");
    }
}

fn rule(event: RawEvent, common: &Common) -> Result<EventRule, Problem> {
    let terminal = |name: &OperationName| matches!(name, OperationName::CompleteJob | OperationName::SettleUsage);
    if event.operations.iter().any(terminal) && event.outcome.is_none() {
        let cause = "complete-job and settle-usage need an outcome";
        return Err(Problem::new(&["outcome"], cause, "add `outcome = \"success\"`, \"failure\" or \"canceled\""));
    }
    for (index, name) in event.operations.iter().enumerate() {
        if event.operations[..index].contains(name) {
            return Err(Problem::new(&["operations"], format!("{name} is listed twice"), "remove one"));
        }
    }
    let told = |path: &'static str| move |cause: String| Problem::new(&[path], cause, "correct the value");
    let fields = fields(&event.fields, &common.fields).map_err(told("fields"))?;
    let only_if = event.only_if.into_iter().map(only_if).collect::<Result<_, _>>().map_err(told("only_if"))?;
    let mut named = common.data.clone();
    named.extend(event.data);
    let forward = event.forward.or_else(|| common.forward.clone()).map(RawForward::checked).transpose();
    let mut rule = EventRule {
        outcome: event.outcome,
        operations: event.operations,
        unbilled: event.unbilled,
        fields,
        only_if,
        data: checks::data(named).map_err(told("data"))?,
        forward: forward.map_err(told("forward"))?,
        board: event.board.map(RawBoard::checked).transpose().map_err(told("board"))?,
        fetch: None,
    };
    rule.fetch = event.fetch.map(|raw| raw.checked(&rule)).transpose()?;
    settle(&mut rule, &common.fields).map_err(told("board"))?;
    checks::operations(&rule).map_err(told("operations"))?;
    Ok(rule)
}

fn id_source(raw: &RawIdSource) -> Result<IdSource, String> {
    match raw {
        RawIdSource::One(text) if text == "signed-id" => Ok(IdSource::SignedId),
        RawIdSource::One(text) => text.parse().map(IdSource::At),
        RawIdSource::Derived(parts) if parts.is_empty() => Err("name at least one stable field".to_owned()),
        RawIdSource::Derived(parts) => {
            let pointer = |text: &String| match text.parse()? {
                Source::Body(pointer) => Ok(pointer),
                _ => Err("a derived id is made of body fields".to_owned()),
            };
            parts.iter().map(pointer).collect::<Result<_, _>>().map(IdSource::Derived)
        }
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
