//! The handoff worksheet of one provider: what the team that runs the endpoint, the team that uses it and the provider
//! have agreed on, written from the profile so that it cannot drift from what runs. Names of secrets, never values.

use std::fmt::Write as _;

use super::{ANY_TYPE, IdSource, Profile, Source};
use crate::limits::RetryPolicy;
use crate::operation::OperationName;

const HOUR_MS: i64 = 3_600_000;

/// The worksheet in Markdown.
pub(super) fn markdown(profile: &Profile) -> String {
    let mut out = format!("# Handoff worksheet: {}\n\n", profile.slug);
    table(&mut out, &endpoint(profile));
    section(&mut out, "Identity and order", &identity(profile));
    section(&mut out, "Time and limits", &limits(profile));
    section(&mut out, "Answers", &answers(profile));
    out.push_str("\n## Operations\n\n| event type | outcome | operations | needs |\n|---|---|---|---|\n");
    for (name, rule) in &profile.events {
        let outcome = rule.outcome.map_or_else(String::new, |outcome| format!("{outcome:?}").to_lowercase());
        let names: Vec<&str> = rule.operations.iter().map(|name| name.as_str()).collect();
        let only: Vec<String> = rule.only_if.iter().map(|only| format!("{} = {:?}", only.at, only.is)).collect();
        let why = rule.unbilled.as_deref().map_or_else(String::new, |why| format!(" (not billed: {why})"));
        let row = [name.clone(), outcome, names.join(", ") + &why, only.join(", ")].map(|cell| escaped(&cell));
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    if !profile.events.contains_key(ANY_TYPE) {
        out.push_str("\nEvery other type is recorded and answered `ignored`.\n");
    }
    leaving(&mut out, profile);
    boards(&mut out, profile);
    fetches(&mut out, profile);
    out.push_str(REPLAY);
    if !profile.notes.is_empty() {
        out.push_str("\n## Notes\n\n");
        for note in &profile.notes {
            let _ = writeln!(out, "- {note}");
        }
    }
    out
}

/// Which types are forwarded where and under which key, and the further values that each carries; nothing where none is.
fn leaving(out: &mut String, profile: &Profile) {
    let mut rows = Vec::new();
    for (name, rule) in &profile.events {
        let forward = rule.forward.as_ref().filter(|_| rule.operations.contains(&OperationName::Forward));
        if forward.is_none() && rule.data.is_empty() {
            continue;
        }
        let to = forward.map_or_else(String::new, |forward| format!("`{}`", forward.to));
        let key = match forward.map(|forward| forward.action_key.as_slice()) {
            None => String::new(),
            Some([]) => "one per event and item".to_owned(),
            Some(parts) => format!("the type, {}", listed(parts.iter())),
        };
        let data: Vec<String> = rule.data.iter().map(|(name, source)| format!("{name} = `{source}`")).collect();
        rows.push([name.clone(), to, key, data.join(", ")].map(|cell| escaped(&cell)).join(" | "));
    }
    if rows.is_empty() {
        return;
    }
    out.push_str("\n## Forwards and further values\n\n| event type | destination | key | data |\n|---|---|---|---|\n");
    for row in rows {
        let _ = writeln!(out, "| {row} |");
    }
}

/// Which types make a job on a job board, with what in its body; nothing where none does.
fn boards(out: &mut String, profile: &Profile) {
    let named = profile.events.iter().filter_map(|(name, rule)| Some((name, rule.board.as_ref()?)));
    let rows: Vec<String> = named
        .map(|(name, board)| {
            let body: Vec<String> = board.body.iter().map(|(at, source)| format!("`{at}` = `{source}`")).collect();
            let update = format!("`{} {}`", board.update_method, board.update_path);
            let cells = [name.clone(), format!("`http:{}`", board.to), body.join(", "), update];
            cells.map(|cell| escaped(&cell)).join(" | ")
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("\n## Jobs on a board\n\n| event type | destination | body | a later version |\n|---|---|---|---|\n");
    for row in rows {
        let _ = writeln!(out, "| {row} |");
    }
}

/// Which types are completed from the provider's API, with what of its answer; nothing where none is.
fn fetches(out: &mut String, profile: &Profile) {
    let named = profile.events.iter().filter_map(|(name, rule)| Some((name, rule.fetch.as_ref()?)));
    let rows: Vec<String> = named
        .map(|(name, fetch)| {
            let fields = fetch.fields.named();
            let fields: Vec<String> = fields.iter().map(|(name, source)| format!("{name} = `{source}`")).collect();
            let from = format!("`http:{}`, `GET {}`", fetch.from, fetch.path());
            let cells = [name.clone(), fetch.when.name().to_owned(), from, fields.join(", ")];
            cells.map(|cell| escaped(&cell)).join(" | ")
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("\n## Fetched\n\n| event type | when | from | fields of the answer |\n|---|---|---|---|\n");
    for row in rows {
        let _ = writeln!(out, "| {row} |");
    }
}

fn listed<T: std::fmt::Display>(all: impl Iterator<Item = T>) -> String {
    all.map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ")
}

type Row = (&'static str, String);

fn endpoint(profile: &Profile) -> Vec<Row> {
    let secrets: Vec<String> = profile
        .secrets
        .iter()
        .map(|secret| match secret.not_after_s.and_then(|s| jiff::Timestamp::from_second(s).ok()) {
            Some(last) => format!("`{}` (until {last})", secret.id),
            None => format!("`{}`", secret.id),
        })
        .collect();
    let recipe = &profile.recipe;
    let signs = match (recipe.signs_body(), recipe.needs_url()) {
        (true, true) => "the whole body and the public URL (PublicBaseUrl must be set)",
        (true, false) => "the whole body",
        (false, _) => "NOT the whole body: see the notes",
    };
    let tenants = match &profile.tenants {
        None => "all".to_owned(),
        Some(names) => names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    vec![
        ("owner", profile.owner.clone()),
        ("endpoint", format!("`POST /webhooks/{}`", profile.slug)),
        ("signature scheme", recipe.name().to_owned()),
        ("the signature covers", signs.to_owned()),
        ("secrets, by name", secrets.join(", ")),
        ("tenants it may speak for", tenants),
    ]
}

fn identity(profile: &Profile) -> Vec<Row> {
    let place = |source: &Option<Source>| source.as_ref().map_or_else(|| "none".to_owned(), |s| format!("`{s}`"));
    let id = match &profile.event_id {
        IdSource::SignedId => "the id that the signature covers".to_owned(),
        IdSource::At(source) => format!("`{source}`"),
        IdSource::Derived(parts) => {
            let parts: Vec<String> = parts.iter().map(|pointer| format!("`body:{pointer}`")).collect();
            format!("derived from {}", parts.join(", "))
        }
    };
    let mut orders: Vec<String> =
        profile.events.values().filter_map(|rule| rule.fields.sequence.as_ref()).map(|s| format!("`{s}`")).collect();
    orders.sort();
    orders.dedup();
    let order = if orders.is_empty() { "none".to_owned() } else { orders.join(", ") };
    let ignored: Vec<String> = profile.hash_ignore.iter().map(|pointer| format!("`{pointer}`")).collect();
    let ignored = if ignored.is_empty() { "none".to_owned() } else { ignored.join(", ") };
    let items = match &profile.items {
        None => "one event".to_owned(),
        Some(items) => match &items.id {
            Some(id) => format!("the items at `body:{}`, each named by `item:{id}`", items.at),
            None => format!("the items at `body:{}`, each named by its place", items.at),
        },
    };
    vec![
        ("a delivery carries", items),
        ("event id", id),
        ("id covered by the signature", if profile.id_signed { "yes" } else { "NO" }.to_owned()),
        ("event type", format!("`{}`", profile.event_type)),
        ("order signal", order),
        ("first sent", place(&profile.first_sent.as_ref().map(|time| time.at.clone()))),
        ("attempt number", place(&profile.attempt)),
        ("members that change between deliveries", ignored),
    ]
}

fn limits(profile: &Profile) -> Vec<Row> {
    let hours = |ms: i64| format!("{} h", ms / HOUR_MS);
    let tolerance = profile.recipe.tolerance_s().map_or_else(|| "not checked".to_owned(), |s| format!("{s} s"));
    let retention = match profile.retention_days {
        None => "NOT DECIDED".to_owned(),
        Some(0) => "bodies are not kept; receipts stay".to_owned(),
        Some(days) => format!("bodies for {days} days; receipts stay"),
    };
    let policy = RetryPolicy::default();
    vec![
        ("the provider tries again for", format!("{} h", profile.retry_window_hours)),
        ("age of a signed timestamp", tolerance),
        ("older events go to a person after", hours(profile.expire_after_ms)),
        ("a hold lives", hours(profile.hold_life_ms)),
        ("retention", retention),
        ("tries of an operation", format!("{}, or {}", policy.max_attempts, hours(policy.max_age_ms))),
    ]
}

fn answers(profile: &Profile) -> Vec<Row> {
    vec![
        ("new and taken", format!("{} `accepted`", profile.accept_status)),
        ("received before", "200 `duplicate`".to_owned()),
        ("not acted on", "200 `ignored`".to_owned()),
        ("cannot be processed", format!("{} `quarantined`", profile.quarantine_status)),
        ("signature refused", "401, without a reason; the reason is in the log".to_owned()),
        ("no usable secret", "500: the provider tries again; an alarm is raised".to_owned()),
        ("store not available", "503 with Retry-After".to_owned()),
    ]
}

const REPLAY: &str = "
## Replay worksheet

| case | what happens |
|---|---|
| the same event again | counted; what is not final is sent to its consumer again, what is in review is tried again |
| the same id with other content | a conflict for a person, without effect |
| another event for the same effect | a no-op that names the owner, or a conflict |
| an event older than the limit above | received; a person decides |
| the provider's own redelivery | the same path, keys and conditions as the first delivery |
";

fn section(out: &mut String, title: &str, rows: &[Row]) {
    let _ = write!(out, "\n## {title}\n\n");
    table(out, rows);
}

fn table(out: &mut String, rows: &[Row]) {
    out.push_str("| | |\n|---|---|\n");
    for (name, value) in rows {
        let _ = writeln!(out, "| {name} | {} |", escaped(value));
    }
}

/// A bar would end the cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use crate::profile::Profiles;

    const PROFILE: &str = r#"
[providers.mine]
owner = "team"
signature = { scheme = "stripe" }
secrets = ["MINE"]
retry_window_hours = 72
retention_days = 0
tenants = ["*"]
event_id = "body:/id"
items = "/list"
item_id = "item:/id"
event_type = "item:/type"
forward = { to = "sqs:QUEUE_URL" }
data = { action = "item:/action" }
[providers.mine.events]
"ping" = { operations = [] }
"closed" = { operations = ["forward"], forward = { to = "eventbridge:BUS", action_key = ["item:/number", "item:/action"] } }
"opened" = { operations = ["forward"], data = { title = "item:/title" } }
"#;

    #[test]
    fn it_says_what_leaves_and_what_a_delivery_carries() {
        let sheet = |text: &str| Profiles::parse(text).unwrap().get("mine").unwrap().worksheet();
        let some = sheet(PROFILE);
        let ignored = "Every other type is recorded and answered `ignored`.";
        for row in [
            "| a delivery carries | the items at `body:/list`, each named by `item:/id` |",
            "| closed | `eventbridge:BUS` | the type, `item:/number`, `item:/action` | action = `item:/action` |",
            "| opened | `sqs:QUEUE_URL` | one per event and item | action = `item:/action`, title = `item:/title` |",
            "| ping |  |  | action = `item:/action` |",
            ignored,
        ] {
            assert_eq!(some.lines().filter(|line| *line == row).count(), 1, "{row}\n{some}");
        }
        let any = sheet(&format!("{PROFILE}\"*\" = {{ operations = [\"forward\"] }}\n"));
        assert!(!any.contains(ignored), "{any}");
        assert!(
            any.lines()
                .any(|line| line == "| * | `sqs:QUEUE_URL` | one per event and item | action = `item:/action` |")
        );
        let plain = PROFILE.replace("items = \"/list\"\nitem_id = \"item:/id\"\n", "").replace("item:/", "body:/");
        assert!(sheet(&plain).lines().any(|line| line == "| a delivery carries | one event |"));
    }
}
