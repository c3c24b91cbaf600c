//! `explain`: everything known of one event (or of what a job, a booking or a payment led to), and one sentence on what happens next. No payload: the server keeps none here.

use std::process::ExitCode;

use domain::event::{By, CONTROL_PROVIDER, EventRef};
use serde_json::Value;

use crate::api::{Answer, Api};
use crate::args::ExplainArgs;
use crate::error::CliError;
use crate::output::{self, card, cell, plain, table};

/// Events of a job or payment that are shown at most.
const EVENTS: usize = 20;

/// Shows an event, or what a job or a payment leads to.
pub fn run(args: &ExplainArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.server.url)?;
    match (&args.event, &args.job, &args.payment, &args.booking) {
        (Some(event), ..) => one(&api, args, event),
        (None, Some(job), ..) => {
            let [tenant, job] = parts(job, "--job TENANT/JOB")?;
            let shown = api.get(&["tenants", tenant, "jobs", job])?;
            let by = events_of(&shown.body);
            several(&api, args, "job", &shown, &by, crate::job::page)
        }
        (None, None, Some(payment), _) => {
            let [tenant, wallet, reference] = parts(payment, "--payment TENANT/WALLET/REFERENCE")?;
            let shown = api.get(&["tenants", tenant, "wallets", wallet, "fundings", reference])?;
            let by = std::iter::once(&shown.body).chain(list(&shown.body["reversals"])).map(|row| row["by"].clone());
            let by: Vec<Value> = by.collect();
            several(&api, args, "funding", &shown, &by, funding)
        }
        (None, None, None, Some(booking)) => {
            let [tenant, booking] = parts(booking, "--booking TENANT/BOOKING")?;
            let shown = api.get(&["tenants", tenant, "bookings", booking])?;
            let by: Vec<Value> = list(&shown.body["versions"]).iter().map(|row| row["by"].clone()).collect();
            several(&api, args, "booking", &shown, &by, versions)
        }
        (None, None, None, None) => Err(CliError::Misuse("give an event, --job, --booking or --payment".to_owned())),
    }
}

/// The events of a job: those that ended it, those by which it asks a payment provider for something, and all others that had
/// an effect on it. Of many the last ones are left out.
fn events_of(job: &Value) -> Vec<Value> {
    let by = |member: &str| list(&job[member]).iter().map(|row| row["by"].clone()).collect::<Vec<_>>();
    let authorisation = &job["authorisation"];
    let asked = [&authorisation["event"], &authorisation["void"]["event"]].map(Value::clone);
    let charged = crate::job::charges(job).map(|row| row["charge"]["event"].clone());
    let effects = ["settlements", "extensions"].map(by).concat();
    by("transitions")
        .into_iter()
        .chain(charged)
        .chain(asked)
        .chain(effects)
        .chain([job["progress"]["by"].clone()])
        .collect()
}

/// The parts of an id; the last one may hold slashes itself.
fn parts<'a, const N: usize>(text: &'a str, form: &str) -> Result<[&'a str; N], CliError> {
    let found: Vec<&str> = text.splitn(N, '/').filter(|part| !part.is_empty()).collect();
    found.try_into().map_err(|_| CliError::Misuse(format!("{text:?}: write {form}")))
}

/// A job or funding with the events that had an effect on it, and those that it led to at a payment provider, each once.
fn several(
    api: &Api, args: &ExplainArgs, name: &str, shown: &Answer, by: &[Value], page_of: fn(&Value) -> String,
) -> Result<ExitCode, CliError> {
    let mut names: Vec<EventRef> = Vec::new();
    for by in by.iter().filter_map(|by| By::try_from(by.as_str()?.to_owned()).ok()) {
        if by.event.provider.as_str() != CONTROL_PROVIDER && !names.contains(&by.event) {
            names.push(by.event);
        }
    }
    let mut events = Vec::new();
    for event in names.iter().take(EVENTS) {
        let answer = api.get(&["events", event.provider.as_str(), event.id.as_str()])?;
        if answer.status != 404 {
            events.push(answer.problem().map_or(Ok(answer.body), |problem| Err(CliError::Refused(problem)))?);
        }
    }
    let left = names.len().saturating_sub(EVENTS);
    let body = match shown.problem() {
        Some(_) => shown.body.clone(),
        None => serde_json::json!({ name: shown.body, "events": events, "events_left_out": left }),
    };
    output::answer(&Answer { status: shown.status, body }, args.format.json, |answer| {
        let mut whole = page_of(&answer.body[name]);
        for event in &events {
            whole += &format!("\n{}", page(event));
        }
        if left > 0 {
            whole += &format!("\n{left} more events belong to it; `explain EVENT` shows each.\n");
        }
        whole
    })
}

/// The page of a funding.
fn funding(body: &Value) -> String {
    let row = |row: &Value| ["kind", "amount", "currency", "by", "at"].map(|member| cell(&row[member]));
    let rows = std::iter::once(body).chain(list(&body["reversals"])).map(row);
    let title = ["reference", "tenant", "wallet"].map(|member| cell(&body[member]));
    let [reference, tenant, wallet] = title;
    format!(
        "Payment {reference} of wallet {wallet}, tenant {tenant}\n{}\n",
        table(["kind", "amount", "currency", "by", "at"], rows)
    )
}

/// The page of a booking.
fn versions(body: &Value) -> String {
    let row = |row: &Value| ["version", "by", "at"].map(|member| cell(&row[member]));
    let [booking, tenant, job] = ["booking", "tenant", "job"].map(|member| cell(&body[member]));
    let title = format!("Booking {booking} of tenant {tenant}: job {job}");
    let versions = list(&body["versions"]);
    if versions.iter().all(|version| version["board"].is_null()) {
        return format!("{title}\n{}\n", table(["version", "by", "at"], versions.iter().map(row)));
    }
    let rows = versions.iter().map(|version| {
        let [number, by, at] = row(version);
        let [state, id, event] = ["state", "id", "event"].map(|member| cell(&version["board"][member]));
        [number, by, at, state, id, event]
    });
    format!("{title}\n{}\n", table(["version", "by", "at", "on the board", "job there", "sent by"], rows))
}

/// Shows one event.
fn one(api: &Api, args: &ExplainArgs, name: &str) -> Result<ExitCode, CliError> {
    let event: EventRef = name.parse().map_err(|error| {
        CliError::Misuse(format!("{name:?} names no event ({error}): write PROVIDER/ID, such as acme/msg_1"))
    })?;
    let answer = api.get(&["events", event.provider.as_str(), event.id.as_str()])?;
    if answer.status == 404 && !args.format.json {
        let name = plain(&event.to_string());
        return Err(CliError::Failed(format!(
            "event {name} was never received by {}: if the provider shows it as delivered, check the provider's name, the id and --url",
            args.server.url
        )));
    }
    output::answer(&answer, args.format.json, |answer| page(&answer.body))
}

/// The page of one event.
fn page(body: &Value) -> String {
    let mut page = format!("Event {}: {}\n", cell(&body["event"]), cell(&body["status"]));
    page += &header(body);
    let operations = list(&body["operations"]);
    if !operations.is_empty() {
        page += "\nOperations\n";
        page += &table(["operation", "state", "effect", "attempts", "what next"], operations.iter().map(operation));
        page.push('\n');
    }
    page += &intents(operations);
    page += &fetched(list(&body["fetched"]));
    let decision = |operation: &Value| {
        let name = cell(&operation["operation"]);
        let row = move |d: &Value| {
            let [action, actor, reason, at] = ["action", "actor", "reason", "at"].map(|member| cell(&d[member]));
            [name.clone(), action, actor, reason, at]
        };
        list(&operation["decisions"]).iter().map(row).collect::<Vec<_>>()
    };
    let decisions: Vec<_> = operations.iter().flat_map(decision).collect();
    if !decisions.is_empty() {
        page += "\nDecisions\n";
        page += &table(["operation", "action", "by", "reason", "at"], decisions);
        page.push('\n');
    }
    let replays = list(&body["replays"]);
    if !replays.is_empty() {
        page += "\nReplays\n";
        let row = |replay: &Value| ["reference", "actor", "reason", "at"].map(|member| cell(&replay[member]));
        page += &table(["reference", "by", "reason", "at"], replays.iter().map(row));
        page.push('\n');
    }
    let refused: Vec<&Value> = list(&body["items"]).iter().filter(|item| !item["reason"].is_null()).collect();
    if !refused.is_empty() {
        page += "\nItems that lead to nothing\n";
        let names = ["item", "type", "reason", "note"];
        page += &table(names, refused.iter().map(|item| names.map(|name| cell(&item[name]))));
        page.push('\n');
    }
    let conflicts = list(&body["conflicts"]);
    if !conflicts.is_empty() {
        let names = ["received_at", "payload_hash", "effect", "in_review_since"];
        page += "\nConflicts: the same event id with other content\n";
        let row = |conflict: &Value| names.map(|name| cell(&conflict[name]));
        page += &table(["received", "content", "effect", "in review since"], conflicts.iter().map(row));
        page.push('\n');
    }
    page + "\n" + &closing(body, operations, conflicts) + "\n"
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn header(body: &Value) -> String {
    let deliveries = match body["deliveries"].as_u64() {
        Some(1) => "1".to_owned(),
        _ => format!("{}, the last at {}", cell(&body["deliveries"]), cell(&body["last_delivery_at"])),
    };
    let id =
        if body["id_signed"] == Value::Bool(false) { "does not cover the event id" } else { "covers the event id" };
    card([
        ("type", cell(&body["type"])),
        ("outcome", cell(&body["outcome"])),
        ("tenant", cell(&body["tenant"])),
        ("job", cell(&body["job"])),
        ("provider's ref", cell(&body["provider_job_ref"])),
        ("wallet", cell(&body["wallet"])),
        ("sequence", cell(&body["sequence"])),
        ("booking", cell(&body["booking"])),
        ("version", cell(&body["version"])),
        ("items", items(body)),
        ("first sent", cell(&body["first_sent_at"])),
        ("received", cell(&body["received_at"])),
        ("deliveries", deliveries),
        ("attempt", cell(&body["attempt"])),
        ("signature", format!("by {}, {id}", cell(&body["key_id"]))),
        ("content", cell(&body["payload_hash"])),
        ("reason", cell(&body["reason"])),
        ("note", cell(&body["note"])),
    ])
}

/// How many items the delivery carries; absent where it carries one event.
fn items(body: &Value) -> String {
    match list(&body["items"]).len() {
        0 => cell(&Value::Null),
        count => count.to_string(),
    }
}

/// What is to leave the system: where to, how far it is, and what came back.
fn intents(operations: &[Value]) -> String {
    let row = |intent: &Value| {
        let [to, state, attempts, first] = ["to", "state", "attempts", "first_sent_at"].map(|name| cell(&intent[name]));
        [to, state, attempts, first, cell(&intent["result"]["note"]), cell(&intent["result"]["id"])]
    };
    let rows: Vec<_> = operations.iter().map(|one| &one["intent"]).filter(|one| one.is_object()).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let titles = ["to", "state", "tries", "first sent", "last answer", "its id"];
    format!("\nLeaving the system\n{}\n", table(titles, rows.into_iter()))
}

/// What the event lacked and its provider was asked for: from where, when, and which fields.
fn fetched(found: &[Value]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let row = |one: &Value| {
        let gave: Vec<String> = list(&one["gave"]).iter().map(cell).collect();
        [cell(&one["item"]), gave.join(", "), cell(&one["from"]), cell(&one["at"])]
    };
    format!("\nFetched\n{}\n", table(["item", "what", "from", "at"], found.iter().map(row)))
}

/// One operation's row: its effect, or else why there is none.
fn operation(row: &Value) -> [String; 5] {
    let name = match row["item"].as_str() {
        None | Some("-") => cell(&row["operation"]),
        Some(item) => format!("{} of {}", cell(&row["operation"]), plain(item)),
    };
    let effect = match (&row["effect"], &row["class"]) {
        (Value::Null, Value::Null) => "-".to_owned(),
        (Value::Null, class) => match cell(&row["note"]) {
            note if note == "-" => format!("none: {}", cell(class)),
            note => format!("none: {}: {note}", cell(class)),
        },
        (effect, _) => cell(effect),
    };
    [name, cell(&row["state"]), effect, cell(&row["attempts"]), cell(&row["next"])]
}

/// What happens next, in one sentence.
fn closing(body: &Value, operations: &[Value], conflicts: &[Value]) -> String {
    let open = |state: &str| {
        let names = operations.iter().filter(|row| row["state"] == state).map(|row| cell(&row["operation"]));
        names.collect::<Vec<_>>().join(" and ")
    };
    let waiting = conflicts.iter().filter(|conflict| !conflict["in_review_since"].is_null()).count();
    match body["status"].as_str().unwrap_or_default() {
        "ignored" => "Nothing more happens: the profile has no operation for this type of event.".to_owned(),
        "quarantined" => {
            "Nothing happens by itself: the event was recorded and not processed, and a person should look at the reason.".to_owned()
        }
        "needs-review" | "partially-failed" => {
            format!("A person decides on {}; a redelivery by the provider also tries it again.", open("needs-review"))
        }
        "retrying" => retrying(operations),
        "billing-pending" => "The job is decided, and its money is on the way; nobody has to do anything.".to_owned(),
        "received" | "processing" => format!("{} is on its way; nobody has to do anything.", open("processing")),
        _ if waiting == 1 => {
            "Every operation is final; one delivery with other content had no effect and waits for a person.".to_owned()
        }
        _ if waiting > 1 => {
            format!("Every operation is final; {waiting} deliveries with other content had no effect and wait for a person.")
        }
        _ => "Nothing more happens: every operation is final.".to_owned(),
    }
}

/// Who lets the waiting operations go on: a person, where a pause holds them back, else the system itself.
fn retrying(operations: &[Value]) -> String {
    let waiting = || operations.iter().filter(|row| row["state"] == "retrying");
    let named = |rows: Vec<&Value>| rows.iter().map(|row| cell(&row["operation"])).collect::<Vec<_>>().join(" and ");
    let (held, free): (Vec<&Value>, Vec<&Value>) = waiting().partition(|row| row["paused_by"].is_string());
    let mut switches: Vec<String> = held.iter().map(|row| cell(&row["paused_by"])).collect();
    switches.sort();
    switches.dedup();
    let again = |rows: Vec<&Value>| format!("The system tries {} again by itself", named(rows));
    if switches.is_empty() {
        return format!("{}; nobody has to do anything.", again(free));
    }
    let resume: Vec<String> = switches.iter().map(|name| format!("`hookledger resume {name}`")).collect();
    let (verb, resume) = (if held.len() == 1 { "is" } else { "are" }, resume.join(" and "));
    let held = format!("{} {verb} held back by a pause until {resume}.", named(held));
    if free.is_empty() { held } else { format!("{held} {}.", again(free)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_events_of_a_job_begin_with_its_end_and_what_was_asked_of_the_payment_provider() {
        let charge = json!({"event": "own/charge|t1|j1|c", "state": "settled", "payment": "pi_1"});
        let job = json!({
            "transitions": [{"by": "acme/end"}], "extensions": [], "progress": {"by": "acme/p-1"},
            "settlements": [{"by": "acme/end", "charge": charge}, {"by": "acme/correction", "charge": null}],
            "authorisation": {"event": "own/authorise|t1|j1", "void": {"event": "own/void|t1|j1|c"}},
        });
        let named: Vec<Value> = events_of(&job).into_iter().filter(Value::is_string).collect();
        let by_hand = [
            "acme/end",
            "own/charge|t1|j1|c",
            "own/authorise|t1|j1",
            "own/void|t1|j1|c",
            "acme/end",
            "acme/correction",
            "acme/p-1",
        ];
        assert_eq!(named, by_hand);
    }

    fn event(status: &str, operations: Value, conflicts: Value) -> Value {
        json!({
            "event": "acme/msg_1", "type": "job.completed", "received_at": "2026-11-29T12:00:01Z",
            "first_sent_at": "2026-11-29T12:00:00Z", "attempt": 1, "payload_hash": "v1:ab", "id_signed": true,
            "key_id": "ACME_WEBHOOK_SECRET", "reason": null, "note": "", "tenant": "t1", "job": "j1",
            "provider_job_ref": "p-1", "wallet": null, "outcome": "success", "sequence": 3, "status": status,
            "deliveries": 2, "last_delivery_at": "2026-11-29T12:05:00Z", "operations": operations, "conflicts": conflicts
        })
    }

    #[test]
    fn a_page_reads_from_top_to_bottom() {
        let operations = json!([
            {"operation": "complete-job", "consumer": "job", "item": "-", "state": "done",
             "effect": "transition 1 (success)", "next": "", "class": null, "note": null, "attempts": null},
            {"operation": "settle-usage", "consumer": "billing", "item": "-", "state": "needs-review", "effect": null,
             "next": "a person decides", "class": "overage", "note": "6.00 USD, the hold is 5.00", "attempts": 1}
        ]);
        let by_hand = "\
Event acme/msg_1: needs-review
  type            job.completed
  outcome         success
  tenant          t1
  job             j1
  provider's ref  p-1
  sequence        3
  first sent      2026-11-29T12:00:00Z
  received        2026-11-29T12:00:01Z
  deliveries      2, the last at 2026-11-29T12:05:00Z
  attempt         1
  signature       by ACME_WEBHOOK_SECRET, covers the event id
  content         v1:ab

Operations
┌──────────────┬──────────────┬───────────────────────────────────────────┬──────────┬──────────────────┐
│ operation    ┆ state        ┆ effect                                    ┆ attempts ┆ what next        │
╞══════════════╪══════════════╪═══════════════════════════════════════════╪══════════╪══════════════════╡
│ complete-job ┆ done         ┆ transition 1 (success)                    ┆ -        ┆ -                │
│ settle-usage ┆ needs-review ┆ none: overage: 6.00 USD, the hold is 5.00 ┆ 1        ┆ a person decides │
└──────────────┴──────────────┴───────────────────────────────────────────┴──────────┴──────────────────┘

A person decides on settle-usage; a redelivery by the provider also tries it again.
";
        assert_eq!(page(&event("needs-review", operations, json!([]))), by_hand);
    }

    #[test]
    fn what_a_pause_holds_back_waits_for_a_person_and_not_for_the_system() {
        let row = |name: &str, switch: Value| json!({"operation": name, "state": "retrying", "paused_by": switch});
        let last = |rows: Value| {
            let shown = page(&event("retrying", rows, json!([])));
            shown.trim_end().lines().last().unwrap_or_default().to_owned()
        };
        assert_eq!(
            last(json!([row("settle-usage", json!("billing"))])),
            "settle-usage is held back by a pause until `hookledger resume billing`."
        );
        assert_eq!(
            last(json!([row("complete-job", json!(null)), row("settle-usage", json!("billing"))])),
            "settle-usage is held back by a pause until `hookledger resume billing`. The system tries complete-job again by itself."
        );
        assert_eq!(
            last(json!([row("settle-usage", json!(null))])),
            "The system tries settle-usage again by itself; nobody has to do anything."
        );
    }

    #[test]
    fn an_item_that_leads_to_nothing_is_shown_with_its_reason() {
        let mut body = event("completed", json!([]), json!([]));
        body["items"] = json!([
            {"item": "a", "type": "job.completed", "reason": null, "note": ""},
            {"item": "b", "type": "x", "reason": "unknown-type", "note": "the profile does not act on it"},
        ]);
        let shown = page(&body);
        let by_hand = "\
Items that lead to nothing
┌──────┬──────┬──────────────┬────────────────────────────────┐
│ item ┆ type ┆ reason       ┆ note                           │
╞══════╪══════╪══════════════╪════════════════════════════════╡
│ b    ┆ x    ┆ unknown-type ┆ the profile does not act on it │
└──────┴──────┴──────────────┴────────────────────────────────┘
";
        assert!(shown.contains(by_hand) && shown.contains("  items           2\n"), "{shown}");
    }

    #[test]
    fn what_was_fetched_is_shown_without_its_values() {
        let mut body = event("completed", json!([]), json!([]));
        body["fetched"] =
            json!([{"item": "-", "from": "http:acme-api", "at": "2026-11-29T12:00:01Z", "gave": ["ref", "usage"]}]);
        let by_hand = "\
Fetched
┌──────┬────────────┬───────────────┬──────────────────────┐
│ item ┆ what       ┆ from          ┆ at                   │
╞══════╪════════════╪═══════════════╪══════════════════════╡
│ -    ┆ ref, usage ┆ http:acme-api ┆ 2026-11-29T12:00:01Z │
└──────┴────────────┴───────────────┴──────────────────────┘
";
        assert!(page(&body).contains(by_hand), "{}", page(&body));
    }

    #[test]
    fn a_conflict_is_shown_and_outlives_a_completed_event() {
        let done =
            json!([{"operation": "complete-job", "item": "-", "state": "done", "effect": "transition 1 (success)"}]);
        let conflict = json!([{
            "payload_hash": "v1:cd", "received_at": "2026-11-29T12:06:00Z", "effect": "none",
            "in_review_since": "2026-11-29T12:06:00Z"
        }]);
        let shown = page(&event("completed", done.clone(), conflict));
        assert!(shown.contains("│ 2026-11-29T12:06:00Z ┆ v1:cd   ┆ none   ┆ 2026-11-29T12:06:00Z │"), "{shown}");
        assert!(shown.ends_with(
            "\nEvery operation is final; one delivery with other content had no effect and waits for a person.\n"
        ));
        assert!(
            page(&event("completed", done, json!([]))).ends_with("Nothing more happens: every operation is final.\n")
        );
    }
}
