//! `fetch` of a rule: where the provider is asked for what an event lacks, and what is taken from its answer.

use std::fmt;

use serde::Deserialize;
use toml::de::DeTable;

use super::destination::path;
use super::fields::{RawFields, fields};
use super::shape::{DESTINATION, FIELDS};
use super::{Destination, EventRule, Fields, Profile, Source};
use crate::config::Problem;
use crate::config::shape::{Field, Form, Kind};
use crate::envelope::Envelope;
use crate::fetch::When;
use crate::ids::segment;
use crate::job::Outcome;
use crate::operation::OperationName;

/// Longest path with its values in it, in bytes: what every server takes (RFC 9110, 4.1 asks for 8,000 of the whole).
const MAX_PATH_BYTES: usize = 4_000;

/// The file's form.
pub(super) static FETCH: &[Field] = &[
    Field::must("from", Kind::Form(&DESTINATION), "\"http:NAME\" of a table [destinations.NAME]"),
    Field::must("path", Kind::Form(&FETCH_PATH), "behind the base address, as \"/v1/runs/{ref}\""),
    Field::must(
        "when",
        Kind::Choice(|| vec!["usage-missing", "always"]),
        "\"usage-missing\", or \"always\" for thin events",
    ),
    Field::must("fields", Kind::Table(FIELDS), "where the business fields stand in the answer, as \"body:/usage\""),
];

static FETCH_PATH: Form = Form {
    is: "a path with {ref} or another field's name",
    pattern: r"^/([!$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]|\{(tenant|job|ref|model|wallet|reference|booking|data\.[^{}]{1,64})\})*\{(tenant|job|ref|model|wallet|reference|booking|data\.[^{}]{1,64})\}([!$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]|\{(tenant|job|ref|model|wallet|reference|booking|data\.[^{}]{1,64})\})*$",
    check: |text| {
        let remedy = "write \"/v1/runs/{ref}\": {tenant}, {job}, {ref}, {model}, {wallet}, {reference}, {booking} or {data.NAME}";
        template(text).map(|_| ()).map_err(|cause| (cause, remedy.to_owned()))
    },
};

/// A business field in a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Tenant,
    Job,
    Ref,
    Model,
    Wallet,
    Reference,
    Booking,
    Data(String),
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tenant => "tenant",
            Self::Job => "job",
            Self::Ref => "ref",
            Self::Model => "model",
            Self::Wallet => "wallet",
            Self::Reference => "reference",
            Self::Booking => "booking",
            Self::Data(name) => return write!(f, "data.{name}"),
        })
    }
}

impl Named {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "tenant" => Self::Tenant,
            "job" => Self::Job,
            "ref" => Self::Ref,
            "model" => Self::Model,
            "wallet" => Self::Wallet,
            "reference" => Self::Reference,
            "booking" => Self::Booking,
            _ => Self::Data(text.strip_prefix("data.").filter(|name| (1..=64).contains(&name.len()))?.to_owned()),
        })
    }

    fn value<'a>(&self, envelope: &'a Envelope) -> Option<&'a str> {
        match self {
            Self::Tenant => envelope.tenant.as_ref().map(|id| id.as_str()),
            Self::Job => envelope.job.as_ref().map(|id| id.as_str()),
            Self::Ref => envelope.provider_ref.as_ref().map(|id| id.as_str()),
            Self::Model => envelope.model.as_ref().map(|id| id.as_str()),
            Self::Wallet => envelope.wallet.as_ref().map(|id| id.as_str()),
            Self::Reference => envelope.reference.as_ref().map(|id| id.as_str()),
            Self::Booking => envelope.booking.as_ref().map(|id| id.as_str()),
            Self::Data(name) => envelope.data.get(name).map(String::as_str),
        }
    }

    /// Whether a delivery of the rule can carry it. A job that is looked up brings its own.
    fn is_read(&self, rule: &EventRule) -> bool {
        let fields = &rule.fields;
        let job = fields.names_job();
        match self {
            Self::Tenant => job || fields.tenant.is_some(),
            Self::Job | Self::Ref => job,
            Self::Model => job || fields.model.is_some(),
            Self::Wallet => job || fields.wallet.is_some(),
            Self::Reference => fields.reference.is_some(),
            Self::Booking => fields.booking.is_some(),
            Self::Data(name) => rule.data.contains_key(name),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Named),
}

/// The parts of a path: its own text, and the fields in braces.
fn template(text: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, after) = behind.split_once('}').ok_or("a brace is not closed")?;
        let named = Named::parse(name).ok_or_else(|| format!("{{{name}}} is no field of an event"))?;
        parts.extend([Part::Text(before.to_owned()), Part::Value(named)]);
        plain += before;
        plain.push('x');
        rest = after;
    }
    if parts.is_empty() {
        return Err("it names no field of the event, so every event would be answered alike".to_owned());
    }
    path(&(plain + rest))?;
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

/// Where the provider is asked for what an event lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The table `[destinations.NAME]`.
    pub from: String,
    path: Vec<Part>,
    /// For which events.
    pub when: When,
    /// Where the business fields stand in the answer.
    pub fields: Fields,
}

impl Fetch {
    /// True where this is to be fetched for an event that says so much.
    pub fn is_wanted(&self, envelope: &Envelope, operations: &[OperationName]) -> bool {
        let lacks_usage = envelope.lacks_usage() && operations.contains(&OperationName::SettleUsage);
        self.when == When::Always || lacks_usage
    }

    /// The path with the event's values in it, each as one part of it (RFC 3986, 2.3).
    ///
    /// # Errors
    /// Which field is missing, or leads elsewhere.
    pub fn path_for(&self, envelope: &Envelope) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.path {
            match part {
                Part::Text(text) => out += text,
                Part::Value(named) => match named.value(envelope) {
                    None => return Err(format!("the event has no `{named}`, which the path of its fetch names")),
                    Some(text) => {
                        let unfit = || format!("the event's `{named}` cannot stand in a path");
                        out += &segment(text).ok_or_else(unfit)?;
                    }
                },
            }
        }
        match out.len() {
            0..=MAX_PATH_BYTES => Ok(out),
            bytes => Err(format!("the path of the fetch has {bytes} bytes with its values, at most {MAX_PATH_BYTES}")),
        }
    }

    /// The names of the fields that an answer gave.
    pub fn gave(&self, found: &Envelope) -> Vec<String> {
        let there = |name: &str| match name {
            "tenant" => found.tenant.is_some(),
            "job" => found.job.is_some(),
            "ref" => found.provider_ref.is_some(),
            "model" => found.model.is_some(),
            "wallet" => found.wallet.is_some(),
            "currency" => found.currency.is_some(),
            "sequence" => found.sequence.is_some(),
            "reference" => found.reference.is_some(),
            "usage" => found.usage.is_some(),
            "booking" => found.booking.is_some(),
            "version" => found.version.is_some(),
            "amount" | "minor_amount" | "minor_authorised" | "minor_captured" => found.amount.is_some(),
            _ => false,
        };
        self.fields.named().into_iter().filter(|(name, _)| there(name)).map(|(name, _)| name.to_owned()).collect()
    }

    /// The path as the file has it.
    pub fn path(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Value(named) => format!("{{{named}}}"),
        };
        self.path.iter().map(part).collect()
    }
}

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFetch {
    from: String,
    path: String,
    when: When,
    fields: RawFields,
}

impl RawFetch {
    /// Checks what it says, against the rule that it stands in.
    pub(super) fn checked(self, rule: &EventRule) -> Result<Fetch, Problem> {
        let told = |field: &str, cause: String| {
            let path: &[&str] = if field.is_empty() { &["fetch"] } else { &["fetch", field] };
            Problem::new(path, cause, "correct the value; see \"Fetch what an event lacks\" in README.md")
        };
        let from = match self.from.parse::<Destination>() {
            Ok(Destination::Http(name)) => name,
            _ => return Err(told("from", "it is asked over HTTP: write \"http:NAME\"".to_owned())),
        };
        let path = template(&self.path).map_err(|cause| told("path", cause))?;
        let unread = path.iter().find_map(|part| match part {
            Part::Value(named) if !named.is_read(rule) => Some(named),
            _ => None,
        });
        if let Some(named) = unread {
            let cause = format!("events of this type have no `{named}`: name it in `fields`, or take another");
            return Err(told("path", cause));
        }
        let fields = fields(&self.fields, &Fields::default()).map_err(|cause| told("fields", cause))?;
        let named = fields.named();
        if let Some((name, _)) = named.iter().find(|(_, source)| !matches!(source, Source::Body(_))) {
            return Err(told("fields", format!("`{name}` is read in the answer's body: write \"body:/json/pointer\"")));
        }
        if self.when == When::UsageMissing {
            let settles = rule.operations.contains(&OperationName::SettleUsage);
            if !settles || rule.outcome != Some(Outcome::Success) {
                let cause = "usage-missing belongs to a rule with settle-usage and `outcome = \"success\"`";
                return Err(told("when", cause.to_owned()));
            }
            if fields.usage.is_none() {
                return Err(told("fields", "say where the answer has the `usage`".to_owned()));
            }
        }
        let known = rule.fields.clone().or(&fields);
        let job = known.names_job();
        let wallet = known.tenant.is_some() && known.wallet.is_some();
        let unmet = |name: &&OperationName| (name.needs_job() && !job) || (name.needs_wallet() && !wallet);
        if let Some(name) = rule.operations.iter().find(unmet).filter(|_| self.when == When::Always) {
            let needs = if name.needs_job() { "`ref`, or `tenant` and `job`" } else { "`tenant` and `wallet`" };
            return Err(told("fields", format!("{name} needs {needs}, of the event or of the answer")));
        }
        if named.is_empty() || rule.operations.is_empty() {
            return Err(told(
                "",
                "it needs `fields` that are taken from the answer, and operations for them".to_owned(),
            ));
        }
        Ok(Fetch { from, path, when: self.when, fields })
    }
}

impl EventRule {
    /// What is planned for an event that says so much, and what of it waits for a fetch.
    pub(crate) fn plan_for(&self, envelope: &Envelope) -> (Option<When>, Vec<OperationName>) {
        let fetch = self.fetch.as_ref().filter(|fetch| fetch.is_wanted(envelope, &self.operations));
        let plan = fetch.map(|_| OperationName::Fetch).into_iter().chain(self.operations.iter().copied());
        (fetch.map(|fetch| fetch.when), plan.collect())
    }

    /// The business fields that its operations can have: the delivery's, and for a thin event those of the answer.
    pub(super) fn known_fields(&self) -> Fields {
        match self.fetch.as_ref().filter(|fetch| fetch.when == When::Always) {
            Some(fetch) => self.fields.clone().or(&fetch.fields),
            None => self.fields.clone(),
        }
    }
}

/// Each fetch from an HTTP destination that the file does not have.
pub(super) fn unknown_of_fetches(profile: &Profile, destinations: Option<&DeTable<'_>>) -> Vec<Problem> {
    let named = profile.events.iter().filter_map(|(name, rule)| Some((name, rule.fetch.as_ref()?.from.as_str())));
    named
        .filter(|(_, from)| destinations.is_none_or(|all| !all.contains_key(*from)))
        .map(|(name, from)| {
            let path = ["providers", profile.slug.as_str(), "events", name, "fetch", "from"];
            Problem::new(&path, format!("there is no table [destinations.{from}]"), "add it, or correct the name")
        })
        .collect()
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
