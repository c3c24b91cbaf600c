//! From exact bytes to business fields: the type, the identity, the content hash and the plan.
//!
//! [`read`] never fails for an authentic delivery. What cannot be processed becomes an [`Intake`]
//! with an empty plan and its reason, so that the evidence is durable and the provider is answered 200.

mod answer;
mod items;
mod minor;
mod place;
mod values;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use signature::{Headers, Verified};

use crate::board::BoardStep;
use crate::event::{EventId, EventRef};
use crate::fetch::{Fetched, When};
use crate::ids::{BookingId, IdError, ItemId, JobId, ModelId, Provider, ProviderRef, Reference, TenantId, WalletId};
use crate::job::{Job, JobRef, Outcome};
use crate::json::{self, JsonError, Value};
use crate::money::{Currency, Micros};
use crate::operation::OperationName;
use crate::price::{Usage, usage_from_json};
use crate::profile::{BodyForm, EventRule, Fields, IdSource, OnlyIf, Profile, Source};
use crate::receipt::{EmptyPlan, Item, Planned};

pub use answer::{Answered, read_answer};
use place::Place;

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
    /// What a job of our own is made from.
    #[serde(rename = "bk", default, skip_serializing_if = "Option::is_none")]
    pub booking: Option<BookingId>,
    /// The provider's version of the booking.
    #[serde(rename = "vn", default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Further values that the profile names: texts, numbers and booleans as their text.
    #[serde(rename = "da", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// The action that a forward is keyed by, where the profile names one: the event type first.
    #[serde(rename = "ac", default, skip_serializing_if = "Vec::is_empty")]
    pub action: Vec<String>,
    /// Of an event of our own: the subscriptions that keep an order, each with the id of the event that comes before
    /// this one (empty for the first).
    #[serde(rename = "od", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ordered: BTreeMap<String, String>,
    /// What goes to a job board: JSON texts by their place in its body.
    #[serde(rename = "bd", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub board: BTreeMap<String, String>,
    /// Of an event of our own that goes to a job board: where to.
    #[serde(rename = "bs", default, skip_serializing_if = "Option::is_none")]
    pub step: Option<BoardStep>,
    /// Set where something is fetched for the event: what waits for it.
    #[serde(rename = "fe", default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<When>,
    /// What was fetched; kept in a record of its own (see [`crate::fetch`]).
    #[serde(skip)]
    pub fetched: Option<Box<Fetched>>,
}

impl Envelope {
    /// True when both say the same of job, usage, amount and outcome; the wallet may have been looked up
    /// for one of them only.
    pub fn same_content(&self, other: &Self) -> bool {
        let told =
            |e: &Self| (e.provider_ref.clone(), e.usage.clone(), e.amount, e.outcome, e.reference.clone(), e.sequence);
        let more = |e: &Self| (e.booking.clone(), e.version, e.data.clone(), e.board.clone());
        told(self) == told(other) && more(self) == more(other)
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
    /// The items of a delivery that carries several.
    pub items: Vec<Item>,
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
        items: Vec::new(),
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
    let place = Place { headers, body: value, item: None };
    intake.attempt = profile.attempt.as_ref().and_then(|s| place.text(s)).and_then(|t| t.parse().ok());
    if let Some(items) = &profile.items {
        return items::fill(intake, profile, items, place);
    }
    let mut one = Item::new(ItemId::only());
    let read = read_one(profile, place, &mut one);
    intake.event_type = one.event_type;
    intake.first_sent_ms = one.first_sent_ms;
    intake.envelope = one.envelope;
    intake.plan = read?.into_iter().map(|name| Planned { item: ItemId::only(), name }).collect();
    Ok(())
}

/// Reads one item, or the whole event where it carries one; the operations that it asks for.
fn read_one(profile: &Profile, place: Place<'_>, item: &mut Item) -> Result<Vec<OperationName>, Refusal> {
    item.first_sent_ms = profile.first_sent.as_ref().and_then(|f| place.time(&f.at, f.unit));
    let event_type = place
        .text(&profile.event_type)
        .ok_or_else(|| Refusal(EmptyPlan::MissingField, format!("no event type at {}", profile.event_type)))?;
    item.event_type = event_type.chars().take(128).collect();
    let Some(rule) = profile.rule(&event_type) else {
        // Kept where it can be read: a replay plans from it once the profile knows the type.
        item.envelope = fields(profile, &profile.fields, place).unwrap_or_default();
        return Err(Refusal(EmptyPlan::UnknownType, "the profile does not act on this event type".to_owned()));
    };
    for (only, reason) in only_ifs(profile, rule) {
        if place.scalar(&only.at).as_deref() != Some(only.is.as_str()) {
            item.envelope = fields(profile, &rule.fields, place).unwrap_or_default();
            return Err(Refusal(reason, format!("only events with {} = {:?} lead to anything here", only.at, only.is)));
        }
    }
    let known = fields(profile, &rule.fields, place)?;
    item.envelope = Envelope { outcome: rule.outcome, data: values::data(rule, place)?, ..known };
    item.envelope.board = values::board(rule, place)?;
    if let Some(tenant) = item.envelope.tenant.as_ref().filter(|t| !profile.serves(t)) {
        return Err(Refusal(
            EmptyPlan::TenantNotAllowed,
            format!("tenant {:?} is not in the profile's `tenants`", tenant.as_str()),
        ));
    }
    let (fetch, plan) = rule.plan_for(&item.envelope);
    item.envelope.fetch = fetch;
    answer::lacks_nothing(rule, &item.envelope)?;
    if rule.operations.contains(&OperationName::Forward) {
        item.envelope.action = action(rule, place, &item.event_type)?;
    }
    Ok(plan)
}

/// What a forward is keyed by: the type and the values that the profile names; nothing where it names none.
fn action(rule: &EventRule, place: Place<'_>, event_type: &str) -> Result<Vec<String>, Refusal> {
    let sources = rule.forward.iter().flat_map(|forward| &forward.action_key);
    let mut parts = Vec::new();
    for source in sources {
        let missing = || Refusal(EmptyPlan::MissingField, format!("no text for the action key at {source}"));
        let value = place.scalar(source).ok_or_else(missing)?;
        let part = Reference::new(value).map_err(|e| Refusal(EmptyPlan::MissingField, format!("{source}: {e}")))?;
        parts.push(String::from(part));
    }
    if !parts.is_empty() {
        parts.insert(0, event_type.to_owned());
    }
    Ok(parts)
}

/// What the endpoint and the event type ask of an event, each with the reason of an empty plan.
fn only_ifs<'a>(profile: &'a Profile, rule: &'a EventRule) -> impl Iterator<Item = (&'a OnlyIf, EmptyPlan)> {
    let endpoint = profile.only_if.iter().map(|only| (only, EmptyPlan::OtherEndpoint));
    endpoint.chain(rule.only_if.iter().map(|only| (only, EmptyPlan::NotYetFinal)))
}

/// The field that an operation needs and the event lacks. Usage is not among them: a success without
/// usage is not zero, and a person or a fetch decides (see `decide::settle`).
pub(crate) fn missing_field(name: OperationName, envelope: &Envelope) -> Option<&'static str> {
    let job = envelope.names_job();
    let wallet = envelope.tenant.is_some() && envelope.wallet.is_some();
    match name {
        _ if name.needs_job() && !job => Some("ref (or tenant and job)"),
        _ if name.needs_wallet() && !wallet => Some("tenant and wallet"),
        OperationName::CreateJob if envelope.booking.is_none() => Some("booking"),
        OperationName::CreateJob if envelope.version.is_none() => Some("version (a whole number from 0)"),
        OperationName::CreateJob if envelope.model.is_none() => Some("model"),
        OperationName::CreateJob if envelope.amount.is_none_or(|amount| amount < 0) => Some("amount (of the hold)"),
        OperationName::AdjustUsage if envelope.sequence.is_none() => Some("sequence"),
        OperationName::AdjustUsage if envelope.usage.is_none() && envelope.usage_problem.is_empty() => Some("usage"),
        OperationName::AdjustUsage
        | OperationName::ExtendHold
        | OperationName::FundWallet
        | OperationName::ReverseFunding
        | OperationName::PaymentFailed
            if envelope.reference.is_none() =>
        {
            Some("reference")
        }
        OperationName::ExtendHold | OperationName::FundWallet if envelope.amount.is_none_or(|amount| amount <= 0) => {
            Some("amount (more than zero)")
        }
        // Nothing is refunded of a payment whose rest was never captured.
        OperationName::ReverseFunding if envelope.amount.is_none_or(|amount| amount < 0) => {
            Some("amount (zero or more)")
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
            Source::Body(pointer) | Source::Item(pointer) => {
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

fn fields(profile: &Profile, names: &Fields, place: Place<'_>) -> Result<Envelope, Refusal> {
    fn id<T: std::str::FromStr<Err = IdError>>(text: Option<String>) -> Result<Option<T>, Refusal> {
        let refuse = |e: IdError| Refusal(EmptyPlan::MissingField, e.to_string());
        text.map(|t| t.parse().map_err(refuse)).transpose()
    }
    let at = |source: &Option<Source>| source.as_ref().and_then(|s| place.text(s));
    // Another type than text is not "absent": the event would escape the comparison with its job.
    let id_at = |source: &Option<Source>| match source.as_ref() {
        None => Ok(None),
        Some(s @ Source::Header(_)) => Ok(place.text(s)),
        Some(s) => match place.value(s) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(_)) => Ok(place.text(s)),
            Some(Value::Number(n)) if profile.number_ids_as_text && n.is_plain_integer() => Ok(place.text(s)),
            Some(Value::Number(_)) => {
                let note = format!("{s} is a number, and ids are text: set `number_ids_as_text` if they are the same");
                Err(Refusal(EmptyPlan::MissingField, note))
            }
            Some(_) => Err(Refusal(EmptyPlan::MissingField, format!("{s} is not text"))),
        },
    };
    let currency = id_at(&names.currency)?.map(|code| Currency::parse(&code.to_ascii_uppercase())).transpose();
    let currency = currency.map_err(|e| Refusal(EmptyPlan::MissingField, e.to_string()))?;
    let amount = match (&names.amount, &names.minor_amount) {
        (Some(source), _) => at(&Some(source.clone())).map(|text| Micros::parse(&text).map(Micros::get)),
        (None, Some(source)) => at(&Some(source.clone())).map(|text| {
            let micros = |text: String| minor::to_micros(&text, currency, &profile.minor_digits);
            let [authorised, captured] =
                [&names.minor_authorised, &names.minor_captured].map(|name| at(name).map(micros));
            minor::less_uncaptured(micros(text)?, authorised.transpose()?, captured.transpose()?)
        }),
        (None, None) => None,
    };
    let usage = names.usage.as_ref().and_then(|s| place.value(s)).filter(|v| !matches!(v, Value::Null));
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
        booking: id(id_at(&names.booking)?)?,
        version: at(&names.version).and_then(|text| text.parse().ok()),
        ..Envelope::default()
    })
}

impl Intake {
    /// The look-ups that the receiver makes, one for each item that works on a job: by reference where the
    /// event has one.
    pub fn lookups(&self) -> Vec<(ItemId, Lookup)> {
        let mut ids: Vec<&ItemId> = self.plan.iter().filter(|p| p.name.needs_job()).map(|p| &p.item).collect();
        ids.dedup(); // a plan holds each item's operations together
        ids.into_iter().filter_map(|id| Some((id.clone(), self.lookup(id)?))).collect()
    }

    fn lookup(&self, id: &ItemId) -> Option<Lookup> {
        let own = self.items.iter().find(|item| item.id == *id);
        let envelope = own.map_or(&self.envelope, |item| &item.envelope);
        match (&envelope.provider_ref, &envelope.tenant, &envelope.job) {
            (Some(reference), _, _) => Some(Lookup::Reference(reference.clone())),
            (None, Some(tenant), Some(job)) => Some(Lookup::Job(tenant.clone(), job.clone())),
            _ => None,
        }
    }

    /// Completes an item's envelope from the job that was found, or empties its plan on a contradiction.
    pub fn resolve(&mut self, profile: &Profile, id: &ItemId, found: &JobRef) {
        let own = self.items.iter_mut().find(|item| item.id == *id);
        let (envelope, empty, note) = match own {
            Some(item) => (&mut item.envelope, &mut item.empty, &mut item.note),
            None => (&mut self.envelope, &mut self.empty, &mut self.note),
        };
        if let Some(Refusal(reason, says)) = contradiction(profile, envelope, found) {
            *empty = Some(reason);
            *note = says;
            self.plan.retain(|planned| planned.item != *id);
            items::conclude(self);
            return;
        }
        envelope.tenant = Some(found.tenant.clone());
        envelope.job = Some(found.job.clone());
        envelope.wallet = Some(found.wallet.clone());
    }
}

fn contradiction(profile: &Profile, envelope: &Envelope, found: &JobRef) -> Option<Refusal> {
    if let Some(note) = mismatch(&profile.slug, envelope, found, None) {
        return Some(Refusal(EmptyPlan::Mismatch, note));
    }
    let note = || format!("tenant {:?} is not in the profile's `tenants`", found.tenant.as_str());
    (!profile.serves(&found.tenant)).then(|| Refusal(EmptyPlan::TenantNotAllowed, note()))
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
