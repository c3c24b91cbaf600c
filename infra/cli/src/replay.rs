//! `replay`: events by name, or of a provider's window, part by part until the server names no next one.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use domain::limits::REPLAY_EVENTS;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::ReplayArgs;
use crate::error::CliError;
use crate::output::{self, cell, progress, table};
use crate::pages;

/// Events in the table; the counts below it cover all.
const SHOWN: usize = 100;

/// Replays.
pub fn run(args: &ReplayArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.common.server.url)?;
    let reference = args.reference.clone().unwrap_or_else(fresh);
    let mut events = Vec::new();
    let (mut left, mut number) = (args.events.clone(), 0);
    while !left.is_empty() {
        let body = list(args, &reference, number, &mut left);
        let (done, later) = later(part(&api, &body)?.0);
        if done.is_empty() {
            return Err(CliError::Failed("the server put every event of a part off to the next part".to_owned()));
        }
        events.extend(done);
        left.splice(0..0, later);
        number += 1;
    }
    if args.provider.is_some() {
        let mut after = None::<String>;
        loop {
            let mut body = base(args, &reference);
            body["provider"] = json!(args.provider);
            body["from"] = json!(args.from);
            body["to"] = json!(args.to);
            if !args.states.is_empty() {
                body["states"] = json!(args.states);
            }
            if let Some(after) = &after {
                body["after"] = json!(after);
            }
            let (found, next) = part(&api, &body)?;
            events.extend(found);
            progress(&format!("{} events", events.len()));
            if next.is_none() || next == after {
                break;
            }
            after = next;
        }
        progress("");
    }
    let counts = counts(&events);
    let failed = events.iter().any(|event| event["result"] != "replayed");
    let shown = if args.common.format.json {
        json!({ "reference": reference, "dry_run": args.dry_run, "counts": counts, "events": events }).to_string()
    } else {
        page(&events, &counts, &reference, args.dry_run)
    };
    output::print(&shown)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A reference that nobody used: this machine's time.
fn fresh() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("replay-{}", since.as_nanos())
}

fn base(args: &ReplayArgs, reference: &str) -> Value {
    json!({ "reason": args.reason, "reference": reference, "dry_run": args.dry_run })
}

/// The body of the next part of a replay by names; takes its events off `left`.
fn list(args: &ReplayArgs, reference: &str, number: u32, left: &mut Vec<String>) -> Value {
    let events: Vec<String> = left.drain(..left.len().min(REPLAY_EVENTS)).collect();
    let mut body = base(args, reference);
    body["events"] = json!(events);
    body["part"] = json!(number);
    body
}

/// What a part did, and the names of those for which it had no room: the next part's.
fn later(events: Vec<Value>) -> (Vec<Value>, Vec<String>) {
    let (later, done): (Vec<Value>, Vec<Value>) = events.into_iter().partition(|e| e["result"] == "next-part");
    let later = later.iter().filter_map(|event| event["event"].as_str()).map(str::to_owned).collect();
    (done, later)
}

/// One part; its events, and where the next one begins.
fn part(api: &Api, body: &Value) -> Result<(Vec<Value>, Option<String>), CliError> {
    let answer = api.control("POST", &["replays"], Some(body))?;
    if let Some(problem) = answer.problem() {
        return Err(CliError::Refused(problem));
    }
    let events = answer.body["events"].as_array().cloned().unwrap_or_default();
    Ok((events, pages::next(&answer.body)))
}

/// What became of how many operations, and of the events that have none.
fn counts(events: &[Value]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for event in events {
        let operations = event["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
        let none = operations.is_empty().then(|| cell(&event["result"]));
        for name in operations.iter().map(|operation| cell(&operation["became"])).chain(none) {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

fn page(events: &[Value], counts: &BTreeMap<String, u64>, reference: &str, dry: bool) -> String {
    let mut rows = Vec::new();
    for event in events.iter().take(SHOWN) {
        let operations = event["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
        if operations.is_empty() {
            rows.push([
                cell(&event["event"]),
                "-".to_owned(),
                cell(&event["result"]),
                cell(&event["detail"]),
                "-".to_owned(),
            ]);
        }
        for o in operations {
            let [name, became, result, due] =
                ["operation", "became", "result", "due_at"].map(|member| cell(&o[member]));
            rows.push([cell(&event["event"]), name, became, result, due]);
        }
    }
    let would = if dry { "would become" } else { "became" };
    let mut page = table(["event", "operation", would, "before", "due"], rows);
    if events.len() > SHOWN {
        page += &format!("\n... and {} more events; --json has all", events.len() - SHOWN);
    }
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let closing = match dry {
        true => "Nothing was changed.".to_owned(),
        false => format!("Recorded as {}; `explain EVENT` tells how it goes on.", output::plain(reference)),
    };
    format!("{page}\n{} events: {}. {closing}", events.len(), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_part_had_no_room_for_is_asked_for_again() {
        let row = |event: &str, result: &str| json!({"event": event, "result": result, "operations": []});
        let part = vec![row("acme/a", "replayed"), row("acme/c", "not-received"), row("acme/b", "next-part")];
        let (done, names) = later(part);
        assert_eq!((done.len(), names), (2, vec!["acme/b".to_owned()]));
    }

    #[test]
    fn a_page_tells_what_became_of_each_operation() {
        let events = [
            json!({"event": "acme/a", "result": "replayed", "operations": [
                {"operation": "complete-job", "became": "finished", "result": "transition 1", "due_at": null},
                {"operation": "settle-usage", "became": "from-review", "result": "overage: x", "due_at": "T"}]}),
            json!({"event": "acme/b", "result": "not-received", "operations": []}),
        ];
        let shown = page(&events, &counts(&events), "r-1", false);
        for part in
            ["transition 1", "from-review", "not-received", "2 events: 1 finished, 1 from-review, 1 not-received."]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(page(&events, &counts(&events), "r-1", true).ends_with("Nothing was changed."));
    }
}
