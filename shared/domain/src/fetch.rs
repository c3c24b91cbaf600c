//! What an event lacks and its provider can be asked for: what waits for it, what an answer means, and how the event is
//! completed by it.
//!
//! What it promises: the first answer that has everything is frozen under the event (`f·item`), and from then on whoever
//! reads the event, a replay too, reads it completed by the same members. A member that the event itself gave is never
//! overwritten, and an answer about something else is a person's. A GET changes nothing, so it may be repeated freely: no
//! key and no intent are needed, and a death at any step costs one more question.

use serde::{Deserialize, Serialize};

use crate::decide::{Ask, NoEffect};
use crate::envelope::{Answered, Envelope, mismatch, missing_field, read_answer};
use crate::event::EventRef;
use crate::ids::ItemId;
use crate::job::{Job, JobRef, Outcome};
use crate::limits::MAX_ANSWER_BYTES;
use crate::operation::{Class, OperationKey, OperationName, OperationRecord, OperationState};
use crate::outcome::Answer;
use crate::price::Usage;
use crate::profile::{Fetch, Profile};
use crate::receipt::{Planned, Receipt};

/// Tries of an answer that cannot be read, before a person is asked: a proxy's page may pass, another form does not.
pub const UNREADABLE_TRIES: u32 = 3;

/// When something is fetched for an event, and what waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// For a success without usage: its settlement waits, and the job completes meanwhile.
    UsageMissing,
    /// For every event of the type, which says little more than that there is something: all its operations wait.
    Always,
}

impl When {
    /// The stable name in profiles and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::UsageMissing => "usage-missing",
            Self::Always => "always",
        }
    }

    /// Whether an operation of the event waits for what is fetched.
    pub fn holds(self, name: OperationName) -> bool {
        match self {
            Self::UsageMissing => name == OperationName::SettleUsage,
            Self::Always => name != OperationName::Fetch,
        }
    }
}

/// What was fetched for an item (`f·item`); written once, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// Where from, as the profile named it.
    #[serde(rename = "to")]
    pub from: String,
    /// When, Unix milliseconds.
    #[serde(rename = "at")]
    pub at_ms: i64,
    /// The members that the answer gave and the event lacked, by the profile's names.
    #[serde(rename = "gv")]
    pub gave: Vec<String>,
    /// Their values, and whose the job is that they lead to. Nothing else of the answer is kept.
    #[serde(rename = "en")]
    pub envelope: Envelope,
}

/// Does something with each member that both a body and an answer may give, but for the usage; so the list stands once.
macro_rules! each_member {
    ($apply:ident, $own:expr, $other:expr) => {
        $apply(&mut $own.tenant, &$other.tenant);
        $apply(&mut $own.job, &$other.job);
        $apply(&mut $own.provider_ref, &$other.provider_ref);
        $apply(&mut $own.model, &$other.model);
        $apply(&mut $own.wallet, &$other.wallet);
        $apply(&mut $own.currency, &$other.currency);
        $apply(&mut $own.sequence, &$other.sequence);
        $apply(&mut $own.reference, &$other.reference);
        $apply(&mut $own.amount, &$other.amount);
        $apply(&mut $own.booking, &$other.booking);
        $apply(&mut $own.version, &$other.version);
    };
}

/// The identity members on which two say different things: the first one's name. Its values stay out of the words.
fn differs(told: &Envelope, found: &Envelope) -> Option<&'static str> {
    fn two<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
        matches!((a, b), (Some(a), Some(b)) if a != b)
    }
    let members = [
        ("tenant", two(&told.tenant, &found.tenant)),
        ("job", two(&told.job, &found.job)),
        ("ref", two(&told.provider_ref, &found.provider_ref)),
        ("model", two(&told.model, &found.model)),
        ("wallet", two(&told.wallet, &found.wallet)),
        ("currency", two(&told.currency, &found.currency)),
        ("reference", two(&told.reference, &found.reference)),
        ("booking", two(&told.booking, &found.booking)),
        ("version", two(&told.version, &found.version)),
    ];
    members.into_iter().find_map(|(name, differs)| differs.then_some(name))
}

impl Envelope {
    /// A success without usage, which is not zero.
    pub(crate) fn lacks_usage(&self) -> bool {
        self.outcome == Some(Outcome::Success) && self.usage.is_none() && self.usage_problem.is_empty()
    }

    /// True where it leads to a job.
    pub(crate) fn names_job(&self) -> bool {
        self.provider_ref.is_some() || (self.tenant.is_some() && self.job.is_some())
    }

    /// The usage that is billed: what the event told, else what was fetched.
    pub fn billed_usage(&self) -> Option<&Usage> {
        self.usage.as_ref().or_else(|| self.fetched.as_ref()?.envelope.usage.as_ref())
    }

    /// With the members of `found` where it has none of its own.
    #[must_use]
    pub fn filled_by(mut self, found: &Self) -> Self {
        fn fill<T: Clone>(own: &mut Option<T>, found: &Option<T>) {
            if own.is_none() {
                own.clone_from(found);
            }
        }
        each_member!(fill, self, found);
        if self.usage_problem.is_empty() {
            fill(&mut self.usage, &found.usage);
        }
        self
    }

    /// Without the members that `told` has itself: they are compared, and neither kept nor said to be fetched.
    #[must_use]
    fn beyond(mut self, told: &Self) -> Self {
        fn drop_told<T>(own: &mut Option<T>, told: &Option<T>) {
            if told.is_some() {
                *own = None;
            }
        }
        each_member!(drop_told, self, told);
        if told.usage.is_some() || !told.usage_problem.is_empty() {
            self.usage = None;
        }
        self
    }

    /// As the operations of its event see it once this was fetched. A usage that was missing stays beside what the event
    /// told, so that the job's transition says the same whether its consumer came before the fetch or after it.
    #[must_use]
    pub fn completed_by(self, fetched: Fetched) -> Self {
        let whole = match self.fetch {
            Some(When::Always) => self.filled_by(&fetched.envelope),
            Some(When::UsageMissing) | None => self,
        };
        Self { fetched: Some(Box::new(fetched)), ..whole }
    }
}

impl Receipt {
    /// The receipt as everybody reads it once these were fetched.
    #[must_use]
    pub fn with_fetched(mut self, fetched: Vec<(ItemId, Fetched)>) -> Self {
        for (id, fetched) in fetched {
            let own = self.items.iter_mut().find(|item| item.id == id);
            let envelope = own.map_or(&mut self.envelope, |item| &mut item.envelope);
            *envelope = std::mem::take(envelope).completed_by(fetched);
        }
        self
    }
}

/// The fetch of an item.
pub fn key(event: &EventRef, item: &ItemId) -> OperationKey {
    OperationKey { event: event.clone(), item: item.clone(), name: OperationName::Fetch }
}

/// What keeps an operation from being carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    /// It waits for what is fetched, and why that is not there.
    Fetch(String),
    /// A person gave the fetch up, and without it the event says too little: what a person is told.
    GivenUp(String),
}

/// What keeps an operation from being carried out while nothing was fetched for its item; none where that does not matter. A
/// fetch that a person gave up holds nothing back that the event itself says enough for. `receipt` is the item's view,
/// `fetch` the record of its fetch.
pub fn awaits(receipt: &Receipt, name: OperationName, fetch: Option<&OperationRecord>) -> Option<Awaited> {
    let when = receipt.envelope.fetch?;
    if receipt.envelope.fetched.is_some() || !when.holds(name) {
        return None;
    }
    let Some(record) = fetch else { return Some(Awaited::Fetch("what the event lacks is fetched first".to_owned())) };
    let last = format!("{}: {}", record.class.name(), record.note);
    let why = match (record.state, record.class) {
        (OperationState::Noop, _) | (OperationState::Closed, Class::Dismissed) => {
            let field = missing_field(name, &receipt.envelope)?;
            let note = format!("the event has no `{field}`, and its fetch was closed: close this too");
            return Some(Awaited::GivenUp(note));
        }
        // Done between the reading of the two records.
        (OperationState::Closed, _) => "what the event lacked was just fetched".to_owned(),
        (OperationState::Wait, _) => format!("what the event lacks is not fetched yet; {last}"),
        (OperationState::Review, _) => {
            format!("what the event lacks was not fetched, a person decides on `fetch`; {last}")
        }
    };
    Some(Awaited::Fetch(why))
}

/// The limit that ends a wait for a fetch says so.
pub fn with_reason(limit: NoEffect, awaited: &str) -> NoEffect {
    match limit {
        NoEffect::Review(class, note) => NoEffect::Review(class, format!("{note}; {awaited}")),
        other => other,
    }
}

/// What follows from an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Freeze this, if nothing was frozen before.
    Freeze(Box<Envelope>),
    /// Nothing was found: later, or a person.
    None(NoEffect),
}

/// What an item asks, and of whom.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The operation's side.
    pub ask: &'a Ask<'a>,
    /// The item's operations.
    pub plan: &'a [Planned],
    /// The event's profile.
    pub profile: &'a Profile,
    /// What its rule says.
    pub fetch: &'a Fetch,
}

impl Question<'_> {
    fn wait(&self, class: Class, note: &str) -> Decision {
        Decision::None(NoEffect::Wait(class, format!("http:{}: {note}", self.fetch.from)))
    }

    fn review(&self, class: Class, note: &str) -> Decision {
        Decision::None(NoEffect::Review(class, format!("http:{}: {note}", self.fetch.from)))
    }

    /// Not readable: once more, in case it was a proxy's page or broke off, then a person's.
    fn unreadable(&self, note: &str) -> Decision {
        match self.ask.record.is_some_and(|record| record.attempts + 1 >= UNREADABLE_TRIES) {
            true => self.review(
                Class::Unreadable,
                &format!("{note}; correct `fetch` in the profile or the address, then retry"),
            ),
            false => self.wait(Class::Transient, note),
        }
    }

    /// Reads an answer.
    pub fn read(&self, answer: &Answer) -> Decision {
        let (status, body) = match answer {
            Answer::Status { status, body } => (*status, body.as_deref()),
            Answer::NotSent(why) | Answer::Lost(why) | Answer::Refused(why) => return self.wait(Class::Transient, why),
            Answer::Taken => return self.wait(Class::Transient, "no answer to read"),
        };
        match (status, body) {
            (404, _) => self.wait(Class::NotYet, "it has nothing there yet (status 404)"),
            (401 | 403 | 407, _) => {
                let note = format!("status {status}: put the right secret into the variable that `auth` names");
                self.wait(Class::Refused, &note)
            }
            (200..=299, Some([])) => {
                self.wait(Class::NotYet, &format!("it has nothing there yet (status {status}, no body)"))
            }
            (200..=299, Some(body)) => self.found(body),
            (200..=299, None) => {
                self.unreadable(&format!("the answer broke off, or has more than {MAX_ANSWER_BYTES} bytes"))
            }
            _ => self.wait(Class::Transient, &format!("status {status}")),
        }
    }

    fn found(&self, body: &[u8]) -> Decision {
        let found = match read_answer(self.profile, &self.fetch.fields, body) {
            Answered::Members(found) => found,
            Answered::Unreadable(note) => return self.unreadable(&note),
            Answered::BadUsage(note) => {
                let note = format!("its usage cannot be read: {note}; find it at the provider");
                return self.review(Class::InvalidUsage, &note);
            }
        };
        let told = self.ask.envelope;
        if let Some(member) = differs(told, &found) {
            return self.review(
                Class::Mismatch,
                &format!("the answer's {member} is not the event's: it speaks of something else"),
            );
        }
        let whole = told.clone().filled_by(&found);
        if let Some(tenant) = whole.tenant.as_ref().filter(|tenant| !self.profile.serves(tenant)) {
            let note = format!("tenant {:?} is not in the profile's `tenants`", tenant.as_str());
            return self.review(Class::Mismatch, &note);
        }
        match self.plan.iter().find_map(|planned| lacking(planned.name, &whole)) {
            Some((name, field)) => {
                self.wait(Class::NotYet, &format!("the answer has no `{field}` yet, which {name} needs"))
            }
            None => Decision::Freeze(Box::new(found.beyond(told))),
        }
    }

    /// The receiver's checks, repeated for the job that the completed event leads to.
    pub fn contradicts(&self, found: &Envelope, job: &Job) -> Option<NoEffect> {
        let whole = self.ask.envelope.clone().filled_by(found);
        let provider = &self.ask.by.event.provider;
        let note = mismatch(provider, &whole, &JobRef::from(job), job.provider_ref.as_ref()).or_else(|| {
            let note = || format!("tenant {:?} is not in the profile's `tenants`", job.tenant.as_str());
            (!self.profile.serves(&job.tenant)).then(note)
        })?;
        Some(NoEffect::Review(Class::Mismatch, format!("with what http:{} answered, {note}", self.fetch.from)))
    }
}

/// What an operation still lacks: what it always needs, and for a settlement of a success its usage.
fn lacking(name: OperationName, whole: &Envelope) -> Option<(OperationName, &'static str)> {
    let usage = name == OperationName::SettleUsage && whole.lacks_usage();
    missing_field(name, whole).or(usage.then_some("usage")).map(|field| (name, field))
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
