//! A booking's job on a board of others: an event of our own for each version that was taken in while a board was named.
//!
//! It is put in the transaction of the version, so the two exist together or not at all, and its id is made from tenant,
//! booking and version, so it exists once. The events of one booking are one line (see [`crate::told`]): the one that
//! opens it creates the job on the board, each later one updates that job, and none leaves before the one before it is
//! over. A line's end moves under a condition, so of two versions at one moment only one opens it, and an older version
//! never stands behind a newer one. From there on relay, deferral, reviews and `explain` serve it as any event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::booking::BookingVersion;
use crate::envelope::Envelope;
use crate::event::{EventId, EventRef};
use crate::ids::{IdError, ItemId, escape, segment};
use crate::intent::{Intent, IntentState, forward_key};
use crate::json::Pointer;
use crate::keys;
use crate::operation::{OperationKey, OperationName};
use crate::own;
use crate::profile::{Board, HttpDestination};
use crate::receipt::{Planned, Receipt};
use crate::told::{Step, Told};

/// The one item of such an event, and the name of its line.
pub const ITEM: &str = "board";
/// The type of such an event. Nobody can subscribe to it.
pub const EVENT_TYPE: &str = "board.job";

/// Where a version goes, as it was committed: a later change of the profile does not move it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardStep {
    /// The destination's name.
    #[serde(rename = "to")]
    pub to: String,
    /// Set where the job is there already.
    #[serde(rename = "up", default, skip_serializing_if = "Option::is_none")]
    pub update: Option<JobUpdate>,
    /// True where the board's id becomes our job's `provider_job_ref`.
    #[serde(rename = "ah", default, skip_serializing_if = "std::ops::Not::not")]
    pub attach: bool,
}

/// How the job that an earlier version created is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobUpdate {
    /// The event of our own that created it.
    #[serde(rename = "of")]
    pub of: EventId,
    /// The method.
    #[serde(rename = "m")]
    pub method: String,
    /// Path and query; `{id}` is the board's id of the job.
    #[serde(rename = "p")]
    pub path: String,
}

/// The event before a version in its booking's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// Its id.
    pub id: EventId,
    /// Where it went.
    pub step: BoardStep,
}

/// The id of the event for a version: `board.job|t1|b1|2`. What is longer than a key part is named by its hash.
pub fn event_id(version: &BookingVersion) -> EventId {
    let [tenant, booking] = [version.tenant.as_str(), version.booking.as_str()].map(escape);
    own::id_of(EVENT_TYPE, &format!("{tenant}|{booking}|{}", version.version))
}

/// True for the event of a version.
pub fn is_of(event: &EventRef) -> bool {
    own::is_of_type(event, EVENT_TYPE)
}

/// What the line of a booking is about.
pub fn subject(version: &BookingVersion) -> String {
    keys::booking_pk(&version.tenant, &version.booking)
}

/// The one operation of the event with this id.
///
/// # Errors
/// [`IdError`] never: slug and item are ours.
pub fn operation(id: &EventId) -> Result<OperationKey, IdError> {
    Ok(OperationKey { event: own::event(id.clone())?, item: ItemId::new(ITEM)?, name: OperationName::Forward })
}

/// The key of the intent by which the event with this id leaves.
///
/// # Errors
/// [`IdError`] never, as [`operation`].
pub fn intent_key(id: &EventId) -> Result<String, IdError> {
    Ok(forward_key(&operation(id)?, &Envelope::default()))
}

/// What the transaction of a version tells a board: one receipt, and the line that it goes on. `values` are what the
/// delivery said, frozen when it was received; `before` is the end of the line, none where this version opens it.
///
/// # Errors
/// [`IdError`] never: slug and item are ours.
pub fn told(
    version: &BookingVersion, values: &BTreeMap<String, String>, board: &Board, before: Option<&Before>,
) -> Result<Told, IdError> {
    let update = before.map(|before| JobUpdate {
        of: before.step.update.as_ref().map_or_else(|| before.id.clone(), |update| update.of.clone()),
        method: board.update_method.clone(),
        path: board.update_path.clone(),
    });
    let (id, from) = (event_id(version), before.map(|before| before.id.as_str().to_owned()));
    let step = BoardStep {
        // The job stands where it was created, whatever the profile names by now.
        to: before.map_or_else(|| board.to.clone(), |before| before.step.to.clone()),
        attach: board.attach_ref && update.is_none(),
        update,
    };
    let envelope = Envelope {
        tenant: Some(version.tenant.clone()),
        job: Some(version.job.clone()),
        booking: Some(version.booking.clone()),
        version: Some(version.version),
        board: values.clone(),
        step: Some(step),
        ordered: [(ITEM.to_owned(), from.clone().unwrap_or_default())].into(),
        ..Envelope::default()
    };
    let operation = operation(&id)?;
    let plan = vec![Planned { item: operation.item, name: operation.name }];
    let receipt = own::receipt(operation.event, EVENT_TYPE, envelope, plan, version.created_ms);
    let step = Step { subscription: ITEM.to_owned(), subject: subject(version), from, to: id.as_str().to_owned() };
    Ok(Told { receipts: vec![receipt], steps: vec![step] })
}

/// The members of a body: texts of JSON at their places.
#[derive(Default)]
struct Members(BTreeMap<String, Node>);

enum Node {
    Value(String),
    Object(Members),
}

impl Members {
    fn put(&mut self, tokens: &[String], value: &str) {
        let Some((name, below)) = tokens.split_first() else { return };
        if below.is_empty() {
            self.0.insert(name.clone(), Node::Value(value.to_owned()));
            return;
        }
        let node = self.0.entry(name.clone()).or_insert_with(|| Node::Object(Self::default()));
        // The profile's check lets no place stand below a value.
        if let Node::Object(members) = node {
            members.put(below, value);
        }
    }

    fn text(&self) -> String {
        let value = |node: &Node| match node {
            Node::Value(text) => text.clone(),
            Node::Object(members) => members.text(),
        };
        own::object(&self.0.iter().map(|(name, node)| (name.clone(), value(node))).collect())
    }
}

/// The body that leaves: each value at its place, numbers by the digits that they came with.
pub fn body(values: &BTreeMap<String, String>) -> String {
    let mut members = Members::default();
    for (at, value) in values {
        if let Ok(pointer) = at.parse::<Pointer>() {
            members.put(pointer.tokens(), value);
        }
    }
    members.text()
}

/// What follows for an update from what is known of the create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The job has this id on the board.
    As(String),
    /// Not yet: the update waits.
    NotYet,
    /// It was given up, or has no usable id: there is nothing to update.
    Never,
}

/// Judges the create of a booking: its intent, and whether its operation is over.
pub fn created(intent: Option<&Intent>, over: bool) -> Created {
    let settled = intent.filter(|intent| intent.state == IntentState::Settled);
    let id = settled.and_then(|intent| intent.result.as_ref()).and_then(|result| result.id.as_deref());
    match (id, settled.is_some() || over) {
        (Some(id), _) if segment(id).is_some() => Created::As(id.to_owned()),
        (None, false) => Created::NotYet,
        _ => Created::Never,
    }
}

impl JobUpdate {
    /// What is frozen of the request beside its body. `id` is the board's id of the job, `key` the key's hash.
    pub fn call(&self, destination: &HttpDestination, id: &str, key: &str) -> crate::intent::HttpCall {
        let call = destination.call(key);
        let path = self.path.replace("{key}", key).replace("{id}", &segment(id).unwrap_or_default());
        crate::intent::HttpCall { method: self.method.clone(), path, updates: true, ..call }
    }
}

impl Receipt {
    /// Where the version of a booking goes that this event is about; none for any other event.
    pub fn board(&self) -> Option<&BoardStep> {
        self.envelope.step.as_ref()
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
