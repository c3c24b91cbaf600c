//! The handoff worksheet of one provider: what the team that runs the endpoint, the team that uses it and the provider
//! have agreed on, written from the profile so that it cannot drift from what runs. Names of secrets, never values.

use std::fmt::Write as _;

use super::{IdSource, Profile, Source};
use crate::limits::RetryPolicy;

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
    out.push_str("\nEvery other type is recorded and answered `ignored`.\n");
    out.push_str(REPLAY);
    if !profile.notes.is_empty() {
        out.push_str("\n## Notes\n\n");
        for note in &profile.notes {
            let _ = writeln!(out, "- {note}");
        }
    }
    out
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
    vec![
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
