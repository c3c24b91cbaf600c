//! From exact bytes to business fields: the type, the identity, the content hash and the plan.
//!
//! [`read`] never fails for an authentic delivery. What cannot be processed becomes an [`Intake`]
//! with an empty plan and its reason, so that the evidence is durable and the provider is answered 200.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use signature::{Headers, Verified};

use crate::event::{EventId, EventRef};
use crate::ids::{IdError, ItemId, JobId, ModelId, Provider, ProviderRef, Reference, TenantId, WalletId};
use crate::job::{Job, JobRef, Outcome};
use crate::json::{self, JsonError, Value};
use crate::money::{Currency, Micros, MoneyError};
use crate::operation::OperationName;
use crate::price::{Usage, usage_from_json};
use crate::profile::{BodyForm, EventRule, Fields, IdSource, OnlyIf, Profile, Source, TimeUnit};
use crate::receipt::{EmptyPlan, Planned};

/// The business fields of an event: what operations need, and nothing else of the payload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Envelope {
    /// Whose job; from the event, or from the job that its reference names.
    #[serde(rename = "tn", default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// Our job id.
    #[serde(rename = "jb", default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The provider's name for the job.
    #[serde(rename = "rf", default, skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<ProviderRef>,
    /// The model that ran.
    #[serde(rename = "mo", default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// Who pays.
    #[serde(rename = "wl", default, skip_serializing_if = "Option::is_none")]
    pub wallet: Option<WalletId>,
    /// The currency that the event speaks of.
    #[serde(rename = "cu", default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// The profile's order signal.
    #[serde(rename = "sq", default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// What was used.
    #[serde(rename = "us", default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the event's usage cannot be read. It keeps the money from moving, not the job from completing.
    #[serde(rename = "up", default, skip_serializing_if = "String::is_empty")]
    pub usage_problem: String,
    /// How the run ended, by the profile's reading of the event type.
    #[serde(rename = "oc", default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The provider's own key for a correction, payment or refund.
    #[serde(rename = "rn", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// An amount of money that the event speaks of, in micros.
    #[serde(rename = "am", default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<i64>,
}

impl Envelope {
    /// True when both say the same of job, usage, amount and outcome; the wallet may have been looked up
    /// for one of them only.
    pub fn same_content(&self, other: &Self) -> bool {
        let told =
            |e: &Self| (e.provider_ref.clone(), e.usage.clone(), e.amount, e.outcome, e.reference.clone(), e.sequence);
        told(self) == told(other)
    }
}

/// What one authentic delivery says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intake {
    /// Which event.
    pub event: EventRef,
    /// Its type; empty when the body could not be read.
    pub event_type: String,
    /// Version-prefixed hash of the canonical payload, or of the raw bytes.
    pub payload_hash: String,
    /// The business fields.
    pub envelope: Envelope,
    /// The planned operations.
    pub plan: Vec<Planned>,
    /// Why there are none.
    pub empty: Option<EmptyPlan>,
    /// What exactly, for people; never payload.
    pub note: String,
    /// When the provider first sent it, Unix milliseconds.
    pub first_sent_ms: Option<i64>,
    /// The provider's attempt number.
    pub attempt: Option<u32>,
}

/// Where to look the event's job up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// By the provider's reference.
    Reference(ProviderRef),
    /// By our own id.
    Job(TenantId, JobId),
}

struct Refusal(EmptyPlan, String);

/// Reads an authentic delivery by its profile.
pub fn read(profile: &Profile, headers: &Headers, body: &[u8], verified: &Verified) -> Intake {
    // Filled in at the end where nothing better was found: the hash is another pass over the body.
    let unnamed = EventId::raw("");
    let mut intake = Intake {
        event: EventRef { provider: profile.slug.clone(), id: unnamed.clone() },
        event_type: String::new(),
        payload_hash: String::new(),
        envelope: Envelope::default(),
        plan: Vec::new(),
        empty: None,
        note: String::new(),
        first_sent_ms: None,
        attempt: None,
    };
    let parsed = match profile.body {
        BodyForm::Json => json::parse(body),
        BodyForm::Form => json::parse_form(body),
    };
    match parsed {
        Ok(value) => {
            if let Err(Refusal(reason, note)) = fill(&mut intake, profile, headers, &value, verified) {
                intake.empty = Some(reason);
                intake.note = note;
                intake.plan = Vec::new();
            }
        }
        Err(error) => {
            let ambiguous = matches!(error, JsonError::DuplicateMember { .. });
            intake.empty = Some(if ambiguous { EmptyPlan::Ambiguous } else { EmptyPlan::Unparsable });
            intake.note = error.to_string();
        }
    }
    if intake.event.id == unnamed || intake.payload_hash.is_empty() {
        let raw = hex::encode(Sha256::digest(body));
        if intake.event.id == unnamed {
            intake.event.id = EventId::raw(&raw);
        }
        if intake.payload_hash.is_empty() {
            intake.payload_hash = format!("raw:{raw}");
        }
    }
    intake
}

fn fill(
    intake: &mut Intake, profile: &Profile, headers: &Headers, value: &Value<'_>, verified: &Verified,
) -> Result<(), Refusal> {
    intake.payload_hash = format!("{}{}", profile.hash_rule(), json::payload_hash(value, &profile.hash_ignore));
    intake.event.id = event_id(profile, headers, value, verified)?;
    intake.attempt = profile.attempt.as_ref().and_then(|s| text_at(s, headers, value)).and_then(|t| t.parse().ok());
    intake.first_sent_ms = profile.first_sent.as_ref().and_then(|f| time_at(&f.at, f.unit, headers, value));
    let event_type = text_at(&profile.event_type, headers, value)
        .ok_or_else(|| Refusal(EmptyPlan::MissingField, format!("no event type at {}", profile.event_type)))?;
    intake.event_type = event_type.chars().take(128).collect();
    let Some(rule) = profile.events.get(&event_type) else {
        return Err(Refusal(EmptyPlan::UnknownType, "the profile does not act on this event type".to_owned()));
    };
    for (only, reason) in only_ifs(profile, rule) {
        if scalar_at(&only.at, headers, value).as_deref() != Some(only.is.as_str()) {
            return Err(Refusal(reason, format!("only events with {} = {:?} lead to anything here", only.at, only.is)));
        }
    }
    intake.envelope = fields(profile, &rule.fields, headers, value)?;
    intake.envelope.outcome = rule.outcome;
    if let Some(tenant) = intake.envelope.tenant.as_ref().filter(|t| !profile.serves(t)) {
        return Err(Refusal(
            EmptyPlan::TenantNotAllowed,
            format!("tenant {:?} is not in the profile's `tenants`", tenant.as_str()),
        ));
    }
    for name in &rule.operations {
        missing_field(*name, &intake.envelope).map_or(Ok(()), |field| {
            Err(Refusal(EmptyPlan::MissingField, format!("{name} needs the field `{field}`")))
        })?;
    }
    intake.plan = rule.operations.iter().map(|name| Planned { item: ItemId::only(), name: *name }).collect();
    Ok(())
}

/// What the endpoint and the event type ask of an event, each with the reason of an empty plan.
fn only_ifs<'a>(profile: &'a Profile, rule: &'a EventRule) -> impl Iterator<Item = (&'a OnlyIf, EmptyPlan)> {
    let endpoint = profile.only_if.iter().map(|only| (only, EmptyPlan::OtherEndpoint));
    endpoint.chain(rule.only_if.iter().map(|only| (only, EmptyPlan::NotYetFinal)))
}

/// The field that an operation needs and the event lacks. Usage is not among them: a success without
/// usage is not zero, and a person or a fetch decides (see `decide::settle`).
fn missing_field(name: OperationName, envelope: &Envelope) -> Option<&'static str> {
    let job = envelope.provider_ref.is_some() || (envelope.tenant.is_some() && envelope.job.is_some());
    let wallet = envelope.tenant.is_some() && envelope.wallet.is_some();
    match name {
        _ if name.needs_job() && !job => Some("ref (or tenant and job)"),
        _ if !name.needs_job() && !wallet => Some("tenant and wallet"),
        OperationName::AdjustUsage if envelope.sequence.is_none() => Some("sequence"),
        OperationName::AdjustUsage if envelope.usage.is_none() && envelope.usage_problem.is_empty() => Some("usage"),
        OperationName::AdjustUsage
        | OperationName::ExtendHold
        | OperationName::FundWallet
        | OperationName::ReverseFunding
            if envelope.reference.is_none() =>
        {
            Some("reference")
        }
        OperationName::ExtendHold | OperationName::FundWallet | OperationName::ReverseFunding
            if envelope.amount.is_none_or(|amount| amount <= 0) =>
        {
            Some("amount (more than zero)")
        }
        OperationName::FundWallet | OperationName::ReverseFunding if envelope.currency.is_none() => Some("currency"),
        OperationName::RecordProgress if envelope.sequence.is_none() => Some("sequence"),
        OperationName::CompleteJob | OperationName::SettleUsage if envelope.outcome.is_none() => Some("outcome"),
        _ => None,
    }
}

fn event_id(profile: &Profile, headers: &Headers, value: &Value<'_>, verified: &Verified) -> Result<EventId, Refusal> {
    let missing = |what: String| Refusal(EmptyPlan::MissingField, what);
    let bad = |source: &dyn std::fmt::Display, e: &dyn std::fmt::Display| {
        Refusal(EmptyPlan::MissingField, format!("event id at {source}: {e}"))
    };
    match &profile.event_id {
        IdSource::SignedId => {
            let id = verified.signed_id.as_deref().ok_or_else(|| missing("the signature covers no id".to_owned()))?;
            EventId::text(id).map_err(|e| bad(&"the signature", &e))
        }
        IdSource::At(source) => match source {
            Source::Header(name) => {
                let id = headers.get(name).ok_or_else(|| missing(format!("no event id at {source}")))?;
                EventId::text(id).map_err(|e| bad(source, &e))
            }
            Source::Body(pointer) => {
                let id = value.pointer(pointer).ok_or_else(|| missing(format!("no event id at {source}")))?;
                match id {
                    Value::Number(number) if profile.number_ids_as_text && number.is_plain_integer() => {
                        EventId::text(number.text()).map_err(|e| bad(source, &e))
                    }
                    id => EventId::from_json(id).map_err(|e| bad(source, &e)),
                }
            }
        },
        IdSource::Derived(pointers) => {
            let mut hash = Sha256::new();
            for pointer in pointers {
                let part =
                    value.pointer(pointer).ok_or_else(|| missing(format!("no event id part at body:{pointer}")))?;
                let canonical = json::canonical(part, &[]);
                hash.update(canonical.len().to_be_bytes()); // lengths keep the parts apart
                hash.update(&canonical);
            }
            Ok(EventId::derived(&hex::encode(hash.finalize())))
        }
    }
}

fn fields(profile: &Profile, names: &Fields, headers: &Headers, value: &Value<'_>) -> Result<Envelope, Refusal> {
    fn id<T: std::str::FromStr<Err = IdError>>(text: Option<String>) -> Result<Option<T>, Refusal> {
        let refuse = |e: IdError| Refusal(EmptyPlan::MissingField, e.to_string());
        text.map(|t| t.parse().map_err(refuse)).transpose()
    }
    let at = |source: &Option<Source>| source.as_ref().and_then(|s| text_at(s, headers, value));
    // Another type than text is not "absent": the event would escape the comparison with its job.
    let id_at = |source: &Option<Source>| match source.as_ref() {
        Some(s @ Source::Body(pointer)) => match value.pointer(pointer) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(_)) => Ok(text_at(s, headers, value)),
            Some(Value::Number(n)) if profile.number_ids_as_text && n.is_plain_integer() => {
                Ok(text_at(s, headers, value))
            }
            Some(Value::Number(_)) => {
                let note = format!("{s} is a number, and ids are text: set `number_ids_as_text` if they are the same");
                Err(Refusal(EmptyPlan::MissingField, note))
            }
            Some(_) => Err(Refusal(EmptyPlan::MissingField, format!("{s} is not text"))),
        },
        other => Ok(other.and_then(|s| text_at(s, headers, value))),
    };
    let currency = id_at(&names.currency)?.map(|code| Currency::parse(&code.to_ascii_uppercase())).transpose();
    let currency = currency.map_err(|e| Refusal(EmptyPlan::MissingField, e.to_string()))?;
    let amount = match (&names.amount, &names.minor_amount) {
        (Some(source), _) => at(&Some(source.clone())).map(|text| Micros::parse(&text).map(Micros::get)),
        (None, Some(source)) => {
            at(&Some(source.clone())).map(|text| minor_to_micros(&text, currency, &profile.minor_digits))
        }
        (None, None) => None,
    };
    let usage = names.usage.as_ref().and_then(|p| value.pointer(p)).filter(|v| !matches!(v, Value::Null));
    let usage = usage.map(usage_from_json);
    Ok(Envelope {
        tenant: id(id_at(&names.tenant)?)?,
        job: id(id_at(&names.job)?)?,
        provider_ref: id(id_at(&names.provider_ref)?)?,
        model: id(id_at(&names.model)?)?,
        wallet: id(id_at(&names.wallet)?)?,
        reference: id(id_at(&names.reference)?)?,
        currency,
        amount: amount.transpose().map_err(|e| Refusal(EmptyPlan::MissingField, format!("amount: {e}")))?,
        sequence: at(&names.sequence).and_then(|text| text.parse().ok()),
        usage: usage.clone().and_then(Result::ok),
        usage_problem: usage.and_then(Result::err).map(|e| e.to_string()).unwrap_or_default(),
        outcome: None,
    })
}

/// A provider's minor units (cents) in micros: by the provider's own exponent where its profile names
/// one, else by the currency's ISO 4217 exponent (LED-01).
fn minor_to_micros(
    text: &str, currency: Option<Currency>, own: &std::collections::BTreeMap<String, u32>,
) -> Result<i64, MoneyError> {
    let currency = currency.ok_or_else(|| MoneyError::UnknownCurrency(String::new()))?;
    let digits = own.get(currency.code()).copied().unwrap_or_else(|| currency.minor_digits());
    let minor: i64 = text.parse().map_err(|_| MoneyError::NotDecimal(text.chars().take(40).collect()))?;
    let scale = 6_u32.checked_sub(digits).and_then(|zeros| 10_i64.checked_pow(zeros)).ok_or(MoneyError::TooLarge)?;
    minor.checked_mul(scale).ok_or(MoneyError::TooLarge).and_then(Micros::new).map(Micros::get)
}

/// The text of a scalar, booleans included.
fn scalar_at(source: &Source, headers: &Headers, value: &Value<'_>) -> Option<String> {
    match source {
        Source::Body(pointer) => match value.pointer(pointer)? {
            Value::Bool(flag) => Some(flag.to_string()),
            _ => text_at(source, headers, value),
        },
        Source::Header(_) => text_at(source, headers, value),
    }
}

/// The text at a source: a string as it is, a plain integer by its digits.
fn text_at(source: &Source, headers: &Headers, value: &Value<'_>) -> Option<String> {
    match source {
        Source::Header(name) => headers.get(name).map(str::to_owned),
        Source::Body(pointer) => match value.pointer(pointer)? {
            Value::String(text) => Some(text.to_string()),
            Value::Number(number) if number.is_plain_integer() => Some(number.text().to_owned()),
            _ => None,
        },
    }
}

fn time_at(source: &Source, unit: TimeUnit, headers: &Headers, value: &Value<'_>) -> Option<i64> {
    let text = text_at(source, headers, value)?;
    match unit {
        TimeUnit::Rfc3339 => text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond),
        TimeUnit::Seconds => text.parse::<i64>().ok()?.checked_mul(1000),
        TimeUnit::Milliseconds => text.parse().ok(),
    }
}

impl Intake {
    /// The one look-up that the receiver makes: by reference where the event has one.
    pub fn lookup(&self) -> Option<Lookup> {
        if !self.plan.iter().any(|planned| planned.name.needs_job()) {
            return None;
        }
        match (&self.envelope.provider_ref, &self.envelope.tenant, &self.envelope.job) {
            (Some(reference), _, _) => Some(Lookup::Reference(reference.clone())),
            (None, Some(tenant), Some(job)) => Some(Lookup::Job(tenant.clone(), job.clone())),
            _ => None,
        }
    }

    /// Completes the envelope from the job that was found, or empties the plan on a contradiction.
    pub fn resolve(&mut self, profile: &Profile, found: &JobRef) {
        if let Some(note) = mismatch(&profile.slug, &self.envelope, found, None) {
            self.empty = Some(EmptyPlan::Mismatch);
            self.note = note;
            self.plan = Vec::new();
            return;
        }
        if !profile.serves(&found.tenant) {
            self.empty = Some(EmptyPlan::TenantNotAllowed);
            self.note = format!("tenant {:?} is not in the profile's `tenants`", found.tenant.as_str());
            self.plan = Vec::new();
            return;
        }
        self.envelope.tenant = Some(found.tenant.clone());
        self.envelope.job = Some(found.job.clone());
        self.envelope.wallet = Some(found.wallet.clone());
    }
}

/// The first field of the event that contradicts the job, named without its value.
pub fn mismatch(
    provider: &Provider, envelope: &Envelope, job: &JobRef, known_ref: Option<&ProviderRef>,
) -> Option<String> {
    fn differs<T: PartialEq>(said: &Option<T>, known: &T) -> bool {
        said.as_ref().is_some_and(|said| said != known)
    }
    let ref_differs = match (&envelope.provider_ref, known_ref) {
        (Some(said), Some(known)) => said != known,
        _ => false,
    };
    let field = [
        ("provider", *provider != job.provider),
        ("tenant", differs(&envelope.tenant, &job.tenant)),
        ("job id", differs(&envelope.job, &job.job)),
        ("ref", ref_differs),
        ("wallet", differs(&envelope.wallet, &job.wallet)),
        ("model", differs(&envelope.model, &job.model)),
        ("currency", differs(&envelope.currency, &job.currency)),
    ]
    .into_iter()
    .find_map(|(name, differs)| differs.then_some(name))?;
    Some(format!("the event's {field} is not the job's"))
}

impl From<&Job> for JobRef {
    fn from(job: &Job) -> Self {
        Self {
            provider: job.provider.clone(),
            tenant: job.tenant.clone(),
            job: job.job.clone(),
            wallet: job.wallet.clone(),
            model: job.model().clone(),
            currency: job.currency(),
        }
    }
}
