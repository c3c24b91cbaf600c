//! Values that a profile names beside the business fields: for what is forwarded, for a booking's versions, and for a job
//! board. They are read when the delivery is received, and kept as they were then.

use std::collections::BTreeMap;

use super::Refusal;
use super::place::Place;
use crate::limits::MAX_DATA_BYTES;
use crate::profile::{EventRule, Source};
use crate::receipt::EmptyPlan;

type Read = Result<Option<String>, &'static str>;

/// The value of one name; none where nothing stands.
fn one(what: &str, source: &Source, read: Read) -> Result<Option<String>, Refusal> {
    let refuse = |problem: String| Refusal(EmptyPlan::MissingField, format!("{what}: {problem}"));
    match read {
        Ok(Some(text)) if text.len() > MAX_DATA_BYTES => {
            Err(refuse(format!("{} bytes, at most {MAX_DATA_BYTES} are taken", text.len())))
        }
        Ok(found) => Ok(found),
        Err(kind) => Err(refuse(format!("{source} is {kind}: name a text, a number or a boolean"))),
    }
}

/// The further values that the profile names; an absent one is left out.
pub(super) fn data(rule: &EventRule, place: Place<'_>) -> Result<BTreeMap<String, String>, Refusal> {
    let mut found = BTreeMap::new();
    for (name, source) in &rule.data {
        let value = one(&format!("data.{name}"), source, place.named(source))?;
        found.extend(value.map(|text| (name.clone(), text)));
    }
    Ok(found)
}

/// What goes to a job board, as JSON; an absent value is left out, and all of them may not be absent.
pub(super) fn board(rule: &EventRule, place: Place<'_>) -> Result<BTreeMap<String, String>, Refusal> {
    let Some(board) = &rule.board else { return Ok(BTreeMap::new()) };
    let mut found = BTreeMap::new();
    for (at, source) in &board.body {
        let value = one(&format!("board.body {at}"), source, place.json(source))?;
        found.extend(value.map(|text| (at.clone(), text)));
    }
    if found.is_empty() {
        let note = "no value for the board: nothing stands where `board.body` says";
        return Err(Refusal(EmptyPlan::MissingField, note.to_owned()));
    }
    Ok(found)
}
