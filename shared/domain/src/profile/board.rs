//! `board` of a rule with create-job: the job board on which a booking's job is made, and what stands in its body.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::de::DeTable;

use super::destination::{HttpDestination, path};
use super::{Destination, EventRule, Fields, Profile, Source};
use crate::config::Problem;
use crate::json::Pointer;
use crate::limits::MAX_DATA;
use crate::operation::OperationName;

/// Where a booking's job is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// The table `[destinations.NAME]`.
    pub to: String,
    /// Members of the body by their pointer, and where each value stands in the delivery.
    pub body: BTreeMap<String, Source>,
    /// The method of an update.
    pub update_method: String,
    /// Path and query of an update; `{id}` is the board's id of the job.
    pub update_path: String,
    /// True where the board's id becomes our job's `provider_job_ref`.
    pub attach_ref: bool,
}

/// The file's form.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBoard {
    to: String,
    body: BTreeMap<String, String>,
    update: RawUpdate,
    #[serde(default)]
    attach_ref: bool,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(super) struct RawUpdate {
    method: Option<String>,
    path: String,
}

/// A path with the place of an id in it.
pub(super) fn update_path(text: &str) -> Result<(), String> {
    if !text.contains("{id}") {
        return Err("it must hold {id}, the board's id of the job".to_owned());
    }
    path(&text.replace("{id}", "id"))
}

impl RawBoard {
    pub(super) fn checked(self) -> Result<Board, String> {
        let to = match self.to.parse::<Destination>()? {
            Destination::Http(name) => name,
            other => return Err(format!("a board is reached over HTTP: write \"http:NAME\", not \"{other}\"")),
        };
        if !(1..=MAX_DATA).contains(&self.body.len()) {
            return Err(format!("`body` names {} values: 1 to {MAX_DATA}", self.body.len()));
        }
        let mut places: Vec<Vec<String>> = Vec::new();
        let mut body = BTreeMap::new();
        for (at, source) in self.body {
            let pointer: Pointer = at.parse().map_err(|error| format!("`body`: {at:?}: {error}"))?;
            let tokens = pointer.tokens().to_vec();
            if tokens.is_empty() {
                return Err("`body`: name a member, such as \"/title\"".to_owned());
            }
            if places.iter().any(|other| other.starts_with(&tokens) || tokens.starts_with(other)) {
                return Err(format!("`body`: {at:?} stands above or below another member"));
            }
            places.push(tokens);
            body.insert(at, source.parse()?);
        }
        update_path(&self.update.path).map_err(|cause| format!("`update`: {cause}"))?;
        Ok(Board {
            to,
            body,
            update_method: self.update.method.unwrap_or_else(|| "PUT".to_owned()),
            update_path: self.update.path,
            attach_ref: self.attach_ref,
        })
    }
}

/// What a rule must have beside its board. With `attach_ref` the board gives the job's reference, so what the profile names
/// as `ref` for every type is not read in this one.
pub(super) fn settle(rule: &mut EventRule, common: &Fields) -> Result<(), String> {
    let Some(board) = &rule.board else { return Ok(()) };
    if !rule.operations.contains(&OperationName::CreateJob) {
        return Err("it belongs to a rule with create-job".to_owned());
    }
    if board.attach_ref {
        if rule.fields.provider_ref != common.provider_ref {
            let cause = "`attach_ref` gives the job the board's id as its reference, and `fields` of this type names \
                         another `ref`: keep one of them";
            return Err(cause.to_owned());
        }
        rule.fields.provider_ref = None;
    }
    Ok(())
}

/// Each board whose destination is not in the file, or does not say where its ids stand.
pub(super) fn unfit(
    profile: &Profile, known: &BTreeMap<String, HttpDestination>, tables: Option<&DeTable<'_>>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, rule) in &profile.events {
        let Some(board) = &rule.board else { continue };
        let to = board.to.as_str();
        let path = ["providers", profile.slug.as_str(), "events", name, "board", "to"];
        if tables.is_none_or(|all| !all.contains_key(to)) {
            let cause = format!("there is no table [destinations.{to}]");
            problems.push(Problem::new(&path, cause, "add it, or correct the name"));
        }
        let Some(rules) = known.get(to).map(|destination| &destination.rules) else { continue };
        if rules.id.is_none() {
            let cause = format!("[destinations.{to}] has no `id`, by which a later version finds its job");
            problems.push(Problem::new(&path, cause, "add where an answer has it, such as `id = \"/id\"`"));
        }
        if rules.lookup.as_ref().is_some_and(|lookup| lookup.id.is_none()) {
            let cause = format!("`lookup` of [destinations.{to}] has no `id`, by which a later version finds its job");
            problems.push(Problem::new(&path, cause, "add where the look-up's answer has it"));
        }
    }
    problems
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
