//! `check`: every mistake of the two files, offline, and the settings that are in effect.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use domain::config::Finding;
use domain::config::shape::json_schema;
use domain::limits::{
    DECIDE_AGAIN_LIMIT, DEFER_FIRST_AT_RECEIVE, MAX_BODY_BYTES, MAX_CONTROL_BODY_BYTES, RELAY_GRACE_MS, RetryPolicy,
    SDK_OPERATION_TIMEOUT_MS,
};
use domain::price::{BOOK_SHAPE, PriceBook};
use domain::profile::{Profiles, SHAPE};
use receiver::{DEFAULT_LIFE_MS, MAX_STALE_MS, REFRESH_MS};
use runtime::lambda::{PRICES_TOML, PROVIDERS_TOML};
use serde_json::{Value, json};

use crate::args::{CheckArgs, FileForm};
use crate::error::CliError;
use crate::{files, output};

/// What was checked.
struct Checked {
    file: String,
    form: FileForm,
    findings: Vec<Finding>,
    text: String,
}

/// Checks, prints, and exits with 1 if anything was found.
pub fn run(args: &CheckArgs) -> Result<ExitCode, CliError> {
    if let Some(form) = args.schema {
        output::print(&format!("{:#}", schema(form)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let checked: Vec<Checked> = if args.files.is_empty() {
        [("infra/providers.toml", PROVIDERS_TOML), ("infra/prices.toml", PRICES_TOML)]
            .map(|(file, built_in)| {
                let text = std::fs::read_to_string(file);
                let name = if text.is_ok() { file.to_owned() } else { format!("{file} (built in)") };
                check(name, text.unwrap_or_else(|_| built_in.to_owned()))
            })
            .into()
    } else {
        let read = |file: &PathBuf| files::text(file).map(|text| check(shown(file), text));
        args.files.iter().map(read).collect::<Result<_, _>>()?
    };
    let clean = checked.iter().all(|checked| checked.findings.is_empty());
    output::print(&if args.format.json { as_json(&checked).to_string() } else { as_text(&checked) })?;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The published schema of a form.
fn schema(form: FileForm) -> Value {
    match form {
        FileForm::Providers => json_schema("hookledger: providers.toml", &SHAPE),
        FileForm::Prices => json_schema("hookledger: prices.toml", &BOOK_SHAPE),
    }
}

fn shown(file: &Path) -> String {
    output::plain(&file.display().to_string())
}

fn check(file: String, text: String) -> Checked {
    let prices = text.lines().any(|line| line.trim_start().starts_with("[[price]]"));
    let form = if prices || file.ends_with("prices.toml") { FileForm::Prices } else { FileForm::Providers };
    let findings = match form {
        FileForm::Providers => Profiles::check(&text),
        FileForm::Prices => PriceBook::parse(&text).err().map(|error| error.findings).unwrap_or_default(),
    };
    Checked { file, form, findings, text }
}

/// The limits and waits that hold for every provider: name, value with its unit, meaning.
fn settings() -> Vec<(&'static str, String, &'static str)> {
    let policy = RetryPolicy::default();
    let seconds = |ms: i64| format!("{} s", ms / 1000);
    vec![
        ("backoff_base", seconds(policy.base_ms), "first ceiling of the wait before an operation is tried again"),
        ("backoff_cap", seconds(policy.cap_ms), "largest ceiling of that wait"),
        ("max_attempts", policy.max_attempts.to_string(), "tries of an operation before a person is asked"),
        ("max_age", seconds(policy.max_age_ms), "age of a waiting operation after which a person is asked"),
        ("resend_after", seconds(policy.resend_ms), "a sent operation without progress is sent again"),
        ("relay_grace", seconds(RELAY_GRACE_MS), "age of receipts that the relay examines"),
        (
            "defer_first_at_receive",
            DEFER_FIRST_AT_RECEIVE.to_string(),
            "from this receive on a message is deferred first",
        ),
        ("decide_again_limit", DECIDE_AGAIN_LIMIT.to_string(), "tries within one invocation while another writer wins"),
        ("sdk_call_timeout", seconds(SDK_OPERATION_TIMEOUT_MS), "one AWS call with its own retries"),
        ("max_body", format!("{MAX_BODY_BYTES} bytes"), "largest webhook"),
        ("max_control_body", format!("{MAX_CONTROL_BODY_BYTES} bytes"), "largest control request"),
        ("secret_cache", seconds(DEFAULT_LIFE_MS), "fetched secrets are used so long (HOOKLEDGER_SECRET_CACHE_S)"),
        ("secret_refresh", seconds(REFRESH_MS), "least time between two fetches of one provider's secrets"),
        ("secret_max_stale", seconds(MAX_STALE_MS), "fetched secrets are used so long while their source is down"),
    ]
}

/// What each profile of a file comes to, defaults included.
fn profiles_of(checked: &Checked) -> Vec<Value> {
    let profiles = match checked.form {
        FileForm::Providers => Profiles::parse(&checked.text).unwrap_or_default(),
        FileForm::Prices => Profiles::default(),
    };
    let hours = |ms: i64| ms / 3_600_000;
    let effective = profiles.iter().map(|profile| {
        json!({
            "provider": profile.slug.as_str(), "scheme": profile.recipe.name(),
            "tolerance_s": profile.recipe.tolerance_s(), "retry_window_hours": profile.retry_window_hours,
            "expire_after_hours": hours(profile.expire_after_ms), "hold_hours": hours(profile.hold_life_ms),
            "accept_status": profile.accept_status, "quarantine_status": profile.quarantine_status,
            "id_signed": profile.id_signed, "needs_public_url": profile.recipe.needs_url(),
            "secrets": profile.secret_names(), "events": profile.events.keys().collect::<Vec<_>>(),
        })
    });
    effective.collect()
}

/// Who is told what, by each subscription of a file.
fn subscriptions_of(checked: &Checked) -> Vec<Value> {
    let profiles = match checked.form {
        FileForm::Providers => Profiles::parse(&checked.text).unwrap_or_default(),
        FileForm::Prices => Profiles::default(),
    };
    let effective = profiles.subscriptions().map(|one| {
        json!({
            "subscription": one.name, "to": one.forward.to.to_string(), "ordered": one.ordered, "tenants": one.tenants,
            "types": one.types.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(), "low_balance": one.low_balance,
        })
    });
    effective.collect()
}

fn as_json(checked: &[Checked]) -> Value {
    let files: Vec<Value> = checked
        .iter()
        .map(|checked| {
            let form = if checked.form == FileForm::Prices { "prices" } else { "providers" };
            json!({
                "file": checked.file, "form": form, "findings": checked.findings, "profiles": profiles_of(checked),
                "subscriptions": subscriptions_of(checked)
            })
        })
        .collect();
    let settings = settings().into_iter().map(|(name, value, _)| (name.to_owned(), json!(value)));
    json!({"files": files, "settings": settings.collect::<serde_json::Map<_, _>>()})
}

fn as_text(checked: &[Checked]) -> String {
    let mut lines = Vec::new();
    for checked in checked {
        if checked.findings.is_empty() {
            lines.push(format!("{}: nothing found", checked.file));
        }
        for f in &checked.findings {
            let at = format!("{}:{}:{}", checked.file, f.line, f.column);
            lines.push(format!("{at}: {}: {}", output::plain(&f.field), output::plain(&f.cause)));
            lines.push(format!("    {}", output::plain(&f.remedy)));
        }
    }
    lines.push("\nsettings in effect".to_owned());
    for (name, value, meaning) in settings() {
        lines.push(format!("  {name:<24}{value:<14}{meaning}"));
    }
    let rows: Vec<Value> = checked.iter().flat_map(profiles_of).collect();
    if !rows.is_empty() {
        lines.push("\nprofiles: scheme, tolerance, retry window, business expiry, life of a hold".to_owned());
    }
    for row in rows {
        let text = |name: &str| output::cell(&row[name]);
        lines.push(format!(
            "  {:<18}{:<20}{:>5} s {:>5} h {:>5} h {:>5} h",
            text("provider"),
            text("scheme"),
            text("tolerance_s"),
            text("retry_window_hours"),
            text("expire_after_hours"),
            text("hold_hours")
        ));
    }
    for row in checked.iter().flat_map(subscriptions_of) {
        let order = if row["ordered"] == json!(true) { "in order" } else { "in any order" };
        let types: Vec<&str> = row["types"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (name, to) = (output::cell(&row["subscription"]), output::cell(&row["to"]));
        lines.push(format!("  {name} is told {} at {to}, {order}", types.join(", ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn the_published_schemas_are_those_of_the_loader() {
        for (form, published) in [
            (FileForm::Providers, include_str!("../../schema/providers.schema.json")),
            (FileForm::Prices, include_str!("../../schema/prices.schema.json")),
        ] {
            let published: Value = serde_json::from_str(published).unwrap();
            assert_eq!(schema(form), published, "write it anew: hookledger check --schema");
        }
    }
}
