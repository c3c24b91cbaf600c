//! Deliveries that carry several items: each is read by itself, and a bad one does not stop the others.
//!
//! The receipt is one item of DynamoDB, so the number of items and their size together are limited; a
//! delivery beyond that is quarantined as a whole, with the evidence that it came.

use std::collections::BTreeMap;

use super::place::Place;
use super::{Intake, Refusal, read_one};
use crate::event::EventId;
use crate::ids::ItemId;
use crate::json::{self, Value};
use crate::limits::{MAX_ITEMS, MAX_PLAN_BYTES};
use crate::profile::{Items, Profile};
use crate::receipt::{EmptyPlan, Item, Planned};

/// Fills an intake from the list that the profile names.
pub(super) fn fill(intake: &mut Intake, profile: &Profile, items: &Items, place: Place<'_>) -> Result<(), Refusal> {
    let no_list = || Refusal(EmptyPlan::MissingField, format!("no list of items at body:{}", items.at));
    let list = place.body.pointer(&items.at).and_then(Value::as_array).ok_or_else(no_list)?;
    if list.is_empty() {
        return Err(Refusal(EmptyPlan::NoItems, "the delivery carries no item".to_owned()));
    }
    if list.len() > MAX_ITEMS {
        let note = format!("the delivery carries {} items, at most {MAX_ITEMS} are taken", list.len());
        return Err(Refusal(EmptyPlan::TooLarge, note));
    }
    let mut seen = BTreeMap::new();
    for (index, element) in list.iter().enumerate() {
        let place = Place { item: Some(element), ..place };
        let named = item_id(items, element, index).and_then(|id| only_once(&mut seen, id, element, index));
        let mut item = Item::new(named.as_ref().map_or_else(|_| by_index(index), Clone::clone));
        match named.and_then(|_| read_one(profile, place, &mut item)) {
            Ok(names) => intake.plan.extend(names.into_iter().map(|name| Planned { item: item.id.clone(), name })),
            Err(Refusal(reason, note)) => (item.empty, item.note) = (Some(reason), note),
        }
        intake.items.push(item);
    }
    let first = intake.items[0].event_type.clone();
    let one_type = intake.items.iter().all(|item| item.event_type == first);
    intake.event_type = if one_type { first } else { "several".to_owned() };
    within_limits(intake)?;
    conclude(intake);
    Ok(())
}

/// The name of an item that has no usable one of its own; a text id never has a bare `#`.
fn by_index(index: usize) -> ItemId {
    ItemId::new(format!("index#{index}")).unwrap_or_else(|_| ItemId::only()) // never empty, never long
}

/// An item's id within its delivery: the profile's member, else its place in the list.
fn item_id(items: &Items, element: &Value<'_>, index: usize) -> Result<ItemId, Refusal> {
    let bad = |problem: String| Refusal(EmptyPlan::MissingField, format!("item {index}: {problem}"));
    let Some(pointer) = &items.id else { return ItemId::new(index.to_string()).map_err(|e| bad(e.to_string())) };
    let value = element.pointer(pointer).ok_or_else(|| bad(format!("no item id at item:{pointer}")))?;
    let id = EventId::from_json(value).map_err(|e| bad(format!("item id at item:{pointer}: {e}")))?;
    // A hyphen alone is the item of a delivery that carries one.
    let text = if id.as_str() == ItemId::only().as_str() { "%2D" } else { id.as_str() };
    ItemId::new(text).map_err(|e| bad(e.to_string()))
}

/// The second item of an id is refused: as a repetition if it says the same, else as ambiguous.
fn only_once<'a>(
    seen: &mut BTreeMap<ItemId, (usize, &'a Value<'a>)>, id: ItemId, element: &'a Value<'a>, index: usize,
) -> Result<ItemId, Refusal> {
    let Some((first, before)) = seen.get(&id) else {
        seen.insert(id.clone(), (index, element));
        return Ok(id);
    };
    let same = json::canonical(before, &[]) == json::canonical(element, &[]);
    let (reason, note) = match same {
        true => (EmptyPlan::Repeated, format!("item {index} is item {first} again")),
        false => (EmptyPlan::Ambiguous, format!("item {index} has the id of item {first} and other content")),
    };
    Err(Refusal(reason, note))
}

/// A receipt must fit one item of DynamoDB.
fn within_limits(intake: &mut Intake) -> Result<(), Refusal> {
    let written = (&intake.items, &intake.plan);
    let bytes = serde_json::to_vec(&written).map_or(usize::MAX, |json| json.len());
    if bytes <= MAX_PLAN_BYTES {
        return Ok(());
    }
    intake.items = Vec::new();
    let note = format!("the fields of the items have {bytes} bytes together, at most {MAX_PLAN_BYTES} are taken");
    Err(Refusal(EmptyPlan::TooLarge, note))
}

/// A delivery none of whose items leads to anything says why: as the first item that a person should see,
/// else as the first.
pub(super) fn conclude(intake: &mut Intake) {
    if !intake.plan.is_empty() || intake.items.is_empty() {
        return;
    }
    let refused = || intake.items.iter().filter_map(|item| item.empty.map(|reason| (item, reason)));
    let worst = refused().find(|(_, reason)| reason.answer() != "ignored").or_else(|| refused().next());
    let Some((item, reason)) = worst else { return };
    let note = format!("no item leads to anything; item {:?}: {}", item.id.as_str(), item.note);
    (intake.empty, intake.note) = (Some(reason), note);
}
