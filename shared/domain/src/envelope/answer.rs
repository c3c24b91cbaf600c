//! What a provider's answer gives of an event's business fields: read as a delivery is, by the same notation.

use signature::Headers;

use super::place::Place;
use super::{Envelope, Refusal, fields, missing_field};
use crate::fetch::When;
use crate::json;
use crate::profile::{EventRule, Fields, Profile};
use crate::receipt::EmptyPlan;

/// What was read of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// The members that it gives.
    Members(Box<Envelope>),
    /// It is not JSON, or a member is not what it should be.
    Unreadable(String),
    /// Its usage cannot be read.
    BadUsage(String),
}

/// Reads the fields of an answer's body; what is absent there is left out.
pub fn read_answer(profile: &Profile, names: &Fields, body: &[u8]) -> Answered {
    let value = match json::parse(body) {
        Ok(value) => value,
        Err(error) => return Answered::Unreadable(format!("the answer is no JSON that can be read: {error}")),
    };
    let headers = Headers::default();
    match fields(profile, names, Place { headers: &headers, body: &value, item: None }) {
        Ok(found) if !found.usage_problem.is_empty() => Answered::BadUsage(found.usage_problem),
        Ok(found) => Answered::Members(Box::new(found)),
        Err(Refusal(_, note)) => Answered::Unreadable(format!("the answer: {note}")),
    }
}

/// Refuses an event that lacks what its operations need. What is fetched for a thin event is not known yet; but it must
/// say enough to be asked about.
pub(super) fn lacks_nothing(rule: &EventRule, envelope: &Envelope) -> Result<(), Refusal> {
    let refuse = |note: String| Err(Refusal(EmptyPlan::MissingField, note));
    if envelope.fetch == Some(When::Always) {
        let asked = rule.fetch.as_ref().map(|fetch| fetch.path_for(envelope));
        return match asked {
            Some(Err(note)) if !envelope.names_job() => refuse(format!("fetch: {note}")),
            _ => Ok(()),
        };
    }
    for name in &rule.operations {
        if let Some(field) = missing_field(*name, envelope) {
            return refuse(format!("{name} needs the field `{field}`"));
        }
    }
    Ok(())
}
