//! What a profile's parts must say of each other: found when the file is read, not at the first event.

use std::collections::BTreeMap;

use super::{EventRule, IdSource, Items, Profile, Source};
use crate::json::Pointer;
use crate::limits::MAX_DATA;
use crate::operation::OperationName;

/// The named values of an event type.
pub(super) fn data(named: BTreeMap<String, String>) -> Result<BTreeMap<String, Source>, String> {
    if named.len() > MAX_DATA {
        return Err(format!("`data` names {} values: at most {MAX_DATA}", named.len()));
    }
    let one = |(name, text): (String, String)| {
        if !(1..=64).contains(&name.len()) {
            return Err(format!("`data`: {name:?} must have 1 to 64 bytes"));
        }
        text.parse().map(|source| (name, source))
    };
    named.into_iter().map(one).collect()
}

/// The parts of a rule that its operations need.
pub(super) fn operations(rule: &EventRule) -> Result<(), String> {
    let has = |name| rule.operations.contains(&name);
    if has(OperationName::Forward) && rule.forward.is_none() {
        return Err("forward needs `forward = { to = \"sqs:VARIABLE\" }`, here or in the profile".to_owned());
    }
    if has(OperationName::CreateJob) {
        let fields = &rule.known_fields();
        let needed = [
            ("tenant", fields.tenant.is_some()),
            ("wallet", fields.wallet.is_some()),
            ("booking", fields.booking.is_some()),
            ("version", fields.version.is_some()),
            ("model", fields.model.is_some()),
            ("amount", fields.amount.is_some() || fields.minor_amount.is_some()),
        ];
        if let Some((name, _)) = needed.into_iter().find(|(_, set)| !set) {
            return Err(format!("create-job needs the field `{name}`: add it to `fields`, here or in the profile"));
        }
    }
    Ok(())
}

/// Where a delivery's items stand, and their ids.
pub(super) fn list_of_items(at: Option<String>, id: Option<String>) -> Result<Option<Items>, String> {
    let Some(at) = at else {
        return id.map_or(Ok(None), |_| Err("`item_id` needs `items`: where the list stands".to_owned()));
    };
    let at = at.parse::<Pointer>().map_err(|e| format!("{at:?}: {e}; the empty text is the body itself"))?;
    let id = match id.as_deref().map(str::parse::<Source>).transpose()? {
        None => None,
        Some(Source::Item(pointer)) => Some(pointer),
        Some(other) => return Err(format!("`item_id` stands in the item: write \"item:/...\", not {other}")),
    };
    Ok(Some(Items { at, id }))
}

/// `item:` stands for something only where a delivery carries items; an event's own id, its attempt and
/// what is true of the whole delivery do not stand in one of them.
pub(super) fn items(profile: &Profile) -> Result<(), String> {
    let in_item = |source: &&Source| matches!(source, Source::Item(_));
    let whole = [
        match &profile.event_id {
            IdSource::At(source) => Some(source),
            _ => None,
        },
        profile.attempt.as_ref(),
    ];
    if let Some(source) = whole.into_iter().flatten().find(in_item) {
        return Err(format!("{source} stands in one item, and `event_id` and `attempt` are the delivery's"));
    }
    if profile.items.is_some() {
        return Ok(());
    }
    let common = std::iter::once(&profile.event_type).chain(profile.first_sent.as_ref().map(|time| &time.at));
    let common = common.chain(profile.only_if.iter().map(|only| &only.at));
    match common.chain(profile.events.values().flat_map(sources)).find(in_item) {
        Some(source) => Err(format!("{source} needs `items`: the pointer to the list, such as \"/events\"")),
        None => Ok(()),
    }
}

/// Every source of a rule.
fn sources(rule: &EventRule) -> Vec<&Source> {
    let named = rule.fields.named().into_iter().map(|(_, source)| source);
    let named = named.chain(rule.only_if.iter().map(|only| &only.at));
    let keyed = rule.forward.iter().flat_map(|forward| &forward.action_key);
    let board = rule.board.iter().flat_map(|board| board.body.values());
    named.chain(rule.data.values()).chain(keyed).chain(board).collect()
}
