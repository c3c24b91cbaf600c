//! `reviews` and `reviews resolve`: what waits for a person, and what a person decides.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::api::Api;
use crate::args::{OverageAlternative, ResolveArgs, ReviewAction, ReviewFilter, ReviewsArgs, ReviewsVerb};
use crate::error::CliError;
use crate::output::{self, amount, cell, table};
use crate::pages;

/// Lists reviews, or decides on some.
pub fn run(args: ReviewsArgs) -> Result<ExitCode, CliError> {
    match args.verb {
        Some(ReviewsVerb::Resolve(args)) => resolve(&args),
        None => list(&args),
    }
}

fn list(args: &ReviewsArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.common.server.url)?;
    let ReviewFilter { provider, tenant, class, older_than } = &args.filter;
    let filter = [("provider", provider), ("tenant", tenant), ("class", class), ("older_than", older_than)];
    let query: Vec<(&str, &str)> =
        filter.iter().filter_map(|(name, value)| value.as_deref().map(|value| (*name, value))).collect();
    let mut reviews = Vec::new();
    pages::each(&api, &["reviews"], &query, "reviews", |review| {
        reviews.push(review);
        Ok(())
    })?;
    output::print(&if args.common.format.json { json!({ "reviews": reviews }).to_string() } else { page(&reviews) })?;
    Ok(ExitCode::SUCCESS)
}

fn page(reviews: &[Value]) -> String {
    if reviews.is_empty() {
        return "Nothing waits for a person.".to_owned();
    }
    let header = ["id", "reason", "age", "tenant / job", "at risk", "evidence", "actions"];
    let rows = reviews.iter().map(|review| {
        let id = match &review["id"] {
            Value::Null => cell(&review["evidence"]["row"]),
            id => cell(id),
        };
        let whose = match (&review["tenant"], &review["job"]) {
            (tenant, Value::Null) => cell(tenant),
            (tenant, job) => format!("{} / {}", cell(tenant), cell(job)),
        };
        let note = cell(&review["evidence"]["note"]);
        [id, cell(&review["reason"]), age(&review["age_s"]), whose, risk(&review["at_risk"]), note, actions(review)]
    });
    format!("{}\nDecide with: hookledger reviews resolve ID --action ACTION --reason TEXT", table(header, rows))
}

fn actions(review: &Value) -> String {
    let names = review["actions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |action: &Value| match action.as_str() {
        Some("close") if review["close_needs_release"] == true => "close --release".to_owned(),
        _ => cell(action),
    };
    if names.is_empty() { "-".to_owned() } else { names.iter().map(name).collect::<Vec<_>>().join(", ") }
}

/// An amount with its currency; `-` for none.
pub fn risk(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        known => format!("{} {}", amount(&known["amount"]), cell(&known["currency"])),
    }
}

/// Seconds for people: the largest unit that fits, and the next one.
pub fn age(seconds: &Value) -> String {
    let Some(seconds) = seconds.as_i64() else { return "-".to_owned() };
    let (days, hours, minutes) = (seconds / 86_400, seconds % 86_400 / 3_600, seconds % 3_600 / 60);
    match () {
        () if days > 0 => format!("{days}d {hours}h"),
        () if hours > 0 => format!("{hours}h {minutes}m"),
        () if minutes > 0 => format!("{minutes}m"),
        () => format!("{seconds}s"),
    }
}

fn action_name(action: ReviewAction) -> &'static str {
    match action {
        ReviewAction::Retry => "retry",
        ReviewAction::Approve => "approve",
        ReviewAction::Close => "close",
    }
}

fn body(args: &ResolveArgs) -> Value {
    let mut body = json!({ "action": action_name(args.action), "reason": args.reason });
    if let Some(alternative) = args.alternative {
        let name = match alternative {
            OverageAlternative::Cap => "cap",
            OverageAlternative::Available => "available",
            OverageAlternative::Resend => "resend",
        };
        body["alternative"] = json!(name);
    }
    if args.release {
        body["release"] = json!(true);
    }
    if let Some(reference) = &args.reference {
        body["reference"] = json!(reference);
    }
    body
}

fn resolve(args: &ResolveArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.common.server.url)?;
    if let Some(id) = &args.id {
        let answer = api.control("POST", &["reviews", id], Some(&body(args)))?;
        return output::answer(&answer, args.common.format.json, |answer| decided(&answer.body));
    }
    let ReviewFilter { provider, tenant, class, older_than } = &args.filter;
    let filter = json!({ "provider": provider, "tenant": tenant, "class": class, "older_than": older_than });
    let (mut results, mut refused, mut after) = (Vec::new(), 0, None::<String>);
    loop {
        let mut body = body(args);
        body["filter"] = filter.clone();
        body["dry_run"] = json!(args.dry_run);
        if let Some(after) = &after {
            body["after"] = json!(after);
        }
        let answer = api.control("POST", &["reviews"], Some(&body))?;
        if let Some(problem) = answer.problem() {
            return Err(CliError::Refused(problem));
        }
        refused += answer.body["refused"].as_u64().unwrap_or_default();
        results.extend(answer.body["results"].as_array().cloned().unwrap_or_default());
        after = pages::next(&answer.body);
        if after.is_none() {
            break;
        }
    }
    let shown = if args.common.format.json {
        json!({ "dry_run": args.dry_run, "refused": refused, "results": results }).to_string()
    } else {
        report(&results)
    };
    output::print(&shown)?;
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(results: &[Value]) -> String {
    if results.is_empty() {
        return "No open review is taken by this filter.".to_owned();
    }
    let rows = results.iter().map(|row| [cell(&row["id"]), cell(&row["result"]), cell(&row["detail"])]);
    table(["id", "result", "why not"], rows)
}

fn decided(body: &Value) -> String {
    let again = if body["again"] == true { "decided before; nothing changed: " } else { "" };
    let waived = body["waived"].as_array().map(Vec::as_slice).unwrap_or_default();
    let waived: Vec<String> = waived.iter().map(cell).collect();
    let mut told = format!("{again}{} of {} by {}", cell(&body["action"]), cell(&body["id"]), cell(&body["actor"]));
    if !waived.is_empty() {
        told += &format!("; waived: {}", waived.join(", "));
    }
    if body["released"] == true {
        told += "; the hold was released";
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_who_what_and_how_much() {
        let review = json!({
            "id": "settle-usage:acme/msg_1", "reason": "overage", "age_s": 7_300, "tenant": "t1", "job": "j1",
            "at_risk": {"amount": "5.000000", "currency": "USD", "of": "hold"}, "close_needs_release": true,
            "evidence": {"note": "above"}, "actions": ["retry", "approve", "close"]
        });
        let unknown = json!({
            "id": null, "reason": "unknown", "age_s": 59, "tenant": null, "job": null, "at_risk": null,
            "evidence": {"note": "", "row": ["Z|1", "z"]}, "actions": []
        });
        let shown = page(&[review, unknown]);
        for part in ["settle-usage:acme/msg_1", "2h 1m", "t1 / j1", "5.00 USD", "close --release", "59s", "Z|1"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(page(&[]), "Nothing waits for a person.");
    }

    #[test]
    fn an_age_has_its_two_largest_units() {
        let ages = [(0, "0s"), (59, "59s"), (60, "1m"), (3_661, "1h 1m"), (90_000, "1d 1h")];
        for (seconds, shown) in ages {
            assert_eq!(age(&json!(seconds)), shown);
        }
    }
}
