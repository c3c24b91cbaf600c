//! `job submit` and `job show`.

use std::process::ExitCode;

use domain::submit::SubmitJob;
use serde_json::Value;

use crate::api::Api;
use crate::args::{JobShowArgs, JobSubmitArgs};
use crate::error::CliError;
use crate::output::{self, amount, card, cell, plain, table};
use crate::wallet::first_time;

/// Submits a job with its hold.
pub fn submit(args: JobSubmitArgs) -> Result<ExitCode, CliError> {
    let body = SubmitJob {
        provider: args.provider,
        provider_job_ref: args.provider_job_ref,
        model: args.model,
        wallet: args.wallet,
        hold: args.hold,
        request_id: args.request_id,
        metadata: args.metadata.into_iter().collect(),
    };
    let answer = Api::new(&args.common.server.url)?.control(
        "PUT",
        &["tenants", &args.tenant, "jobs", &args.job],
        Some(&body),
    )?;
    output::answer(&answer, args.common.format.json, |answer| {
        let again = "the job was submitted before with this content; no second hold was placed";
        let first = match &answer.body["authorised"] {
            Value::String(_) => "job submitted; its authorisation is sent to the payment provider",
            _ => "job submitted, hold placed",
        };
        format!("{}\n{}", submission(&answer.body), first_time(answer, first, again))
    })
}

/// Shows a job.
pub fn show(args: JobShowArgs) -> Result<ExitCode, CliError> {
    let answer = Api::new(&args.common.server.url)?.get(&["tenants", &args.tenant, "jobs", &args.job])?;
    output::answer(&answer, args.common.format.json, |answer| page(&answer.body))
}

fn submission(body: &Value) -> String {
    let header = ["tenant", "job", "provider", "ref", "model", "wallet", "hold", "expires"];
    let names = ["tenant", "job", "provider", "provider_job_ref", "model", "wallet"].map(|name| cell(&body[name]));
    let [tenant, job, provider, reference, model, wallet] = names;
    table(header, [[tenant, job, provider, reference, model, wallet, hold(body), cell(&body["expires_at"])]])
}

/// What is reserved, or, of a postpaid wallet that authorises, what is authorised.
fn hold(body: &Value) -> String {
    match &body["authorised"] {
        asked @ Value::String(_) => format!("{} {}, authorised", amount(asked), cell(&body["currency"])),
        _ => format!("{} {}", amount(&body["hold"]), cell(&body["currency"])),
    }
}

/// What became of a job's authorisation; `-`, which a card leaves out, where there is none.
fn authorisation(value: &Value) -> String {
    match value {
        Value::Object(known) => {
            let void = match &known["void"] {
                Value::Object(one) if one["state"].is_null() && one["done"] == true => {
                    format!("; nothing to give up ({})", cell(&one["event"]))
                }
                void @ Value::Object(one) => format!("; given up: {} ({})", state(void), cell(&one["event"])),
                _ => String::new(),
            };
            format!("{}, {} ({}){void}", state(value), cell(&known["payment"]), cell(&known["event"]))
        }
        other => cell(other),
    }
}

/// How far something at the payment provider is.
fn state(asked: &Value) -> String {
    let later = if asked["contradicted"] == true { ", and later said to be done: look there" } else { "" };
    format!("{}{later}", cell(&asked["state"]))
}

/// Everything about one job.
pub fn page(body: &Value) -> String {
    let mut page =
        format!("Job {} of tenant {}: {}\n", cell(&body["job"]), cell(&body["tenant"]), cell(&body["status"]));
    page += &card([
        ("provider", cell(&body["provider"])),
        ("provider's ref", cell(&body["provider_job_ref"])),
        ("model", format!("{}, price {}", cell(&body["model"]), cell(&body["price_version"]))),
        ("wallet", cell(&body["wallet"])),
        ("hold", format!("{}, until {}", hold(body), cell(&body["expires_at"]))),
        ("authorisation", authorisation(&body["authorisation"])),
        ("submitted", cell(&body["submitted_at"])),
        ("request", cell(&body["request_id"])),
        ("labels", labels(&body["metadata"])),
        ("progress", progress(&body["progress"])),
    ]);
    page += &section("Outcome", ["version", "outcome", "usage", "by", "at"], &body["transitions"], |row| {
        [cell(&row["version"]), cell(&row["outcome"]), labels(&row["usage"]), by(row), cell(&row["at"])]
    });
    if body["extensions"].as_array().is_some_and(|extensions| !extensions.is_empty()) {
        page += &section("Extensions of the hold", ["amount", "reference", "at"], &body["extensions"], |row| {
            [amount(&row["amount"]), cell(&row["reference"]), cell(&row["at"])]
        });
    }
    let header = ["kind", "version", "captured", "released", "reversed", "entry", "by", "at"];
    page += &section("Money", header, &body["settlements"], |row| {
        let [kind, version, entry, at] = ["kind", "version", "sequence", "at"].map(|name| cell(&row[name]));
        let reversed = if row["kind"] == "reverse" { amount(&row["amount"]) } else { "-".to_owned() };
        [kind, version, amount(&row["captured"]), amount(&row["released"]), reversed, entry, by(row), at]
    });
    let charged: Vec<Value> = charges(body).cloned().collect();
    if !charged.is_empty() {
        let header = ["amount", "state", "payment", "event"];
        page += &section("At the payment provider", header, &Value::Array(charged), |row| {
            let [payment, event] = ["payment", "event"].map(|name| cell(&row["charge"][name]));
            [amount(&row["charged"]), state(&row["charge"]), payment, event]
        });
    }
    page
}

/// The settlements of a job that led to a charge or refund.
pub fn charges(body: &Value) -> impl Iterator<Item = &Value> {
    body["settlements"].as_array().into_iter().flatten().filter(|row| row["charge"].is_object())
}

/// Who asked: an event; or a person, by the reference where it is recorded, else by the hash that stands for it.
fn by(row: &Value) -> String {
    let name = cell(&row["by"]);
    let Some(kind) = name.strip_prefix("control/").and_then(|id| id.split('.').next()) else { return name };
    match &row["reference"] {
        Value::String(reference) => format!("{kind} {}", plain(reference)),
        _ => format!("a person's {kind}"),
    }
}

/// A table under a title; nothing for an empty list.
fn section<const N: usize>(
    title: &str, header: [&str; N], rows: &Value, row: impl Fn(&Value) -> [String; N],
) -> String {
    match rows.as_array() {
        Some(rows) if !rows.is_empty() => format!("\n{title}\n{}\n", table(header, rows.iter().map(row))),
        _ => format!("\n{title}: none yet\n"),
    }
}

/// `name=value` pairs of an object; `-` for an empty or absent one.
fn labels(object: &Value) -> String {
    match object.as_object() {
        Some(pairs) if !pairs.is_empty() => {
            let pair = |(name, value): (&String, &Value)| format!("{}={}", plain(name), cell(value));
            pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
        Some(_) => "-".to_owned(),
        None => cell(object),
    }
}

fn progress(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        known => format!("{} {} by {}", cell(&known["type"]), cell(&known["sequence"]), cell(&known["by"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job() -> Value {
        json!({
            "tenant": "t1", "job": "j1", "provider": "acme", "provider_job_ref": "p-1", "wallet": "w1", "hold": "5.000000",
            "currency": "USD", "model": "small-1", "price_version": "v1", "expires_at": "2026-12-04T12:00:00Z",
            "status": "submitted", "submitted_at": "2026-11-29T12:00:00Z", "request_id": null,
            "metadata": {"team": "a"}, "progress": null, "transitions": [], "settlements": []
        })
    }

    #[test]
    fn an_open_job_says_that_nothing_was_decided() {
        let by_hand = "\
Job j1 of tenant t1: submitted
  provider        acme
  provider's ref  p-1
  model           small-1, price v1
  wallet          w1
  hold            5.00 USD, until 2026-12-04T12:00:00Z
  submitted       2026-11-29T12:00:00Z
  labels          team=a

Outcome: none yet

Money: none yet
";
        assert_eq!(page(&job()), by_hand);
    }

    #[test]
    fn an_authorised_job_shows_what_is_authorised_in_place_of_the_hold() {
        let mut body = job();
        body["hold"] = json!("0.000000");
        body["authorised"] = json!("15.010000");
        body["authorisation"] =
            json!({"event": "own/authorise|t1|j1", "state": "settled", "payment": "pi_1", "void": null});
        let open = page(&body);
        assert!(open.contains("  hold            15.01 USD, authorised, until 2026-12-04T12:00:00Z\n"), "{open}");
        assert!(open.contains("  authorisation   settled, pi_1 (own/authorise|t1|j1)\n"), "{open}");
        body["authorisation"]["void"] = json!({"event": "own/void|t1|j1|c", "state": "uncertain", "done": false});
        let by_hand = "  authorisation   settled, pi_1 (own/authorise|t1|j1); given up: uncertain (own/void|t1|j1|c)\n";
        assert!(page(&body).contains(by_hand), "{}", page(&body));
        body["authorisation"]["void"] = json!({"event": "own/void|t1|j1|c", "state": null, "done": true});
        let by_hand = "  authorisation   settled, pi_1 (own/authorise|t1|j1); nothing to give up (own/void|t1|j1|c)\n";
        assert!(page(&body).contains(by_hand), "{}", page(&body));
    }

    #[test]
    fn a_settled_job_shows_its_capture() {
        let mut body = job();
        body["settlements"] = json!([{
            "kind": "capture", "version": 1, "amount": "0.008700", "captured": "0.008700", "released": "4.991300",
            "by": "acme/msg_1", "at": "2026-11-29T12:00:01Z", "sequence": 2
        }, {
            "kind": "reverse", "version": null, "amount": "0.002000", "captured": "0.000000", "released": "0.000000",
            "by": "control/reverse.0123456789abcdef", "reference": "r-1", "at": "2026-11-29T12:00:02Z", "sequence": 3
        }]);
        let by_hand = "
Money
┌─────────┬─────────┬──────────┬──────────┬──────────┬───────┬─────────────┬──────────────────────┐
│ kind    ┆ version ┆ captured ┆ released ┆ reversed ┆ entry ┆ by          ┆ at                   │
╞═════════╪═════════╪══════════╪══════════╪══════════╪═══════╪═════════════╪══════════════════════╡
│ capture ┆ 1       ┆ 0.0087   ┆ 4.9913   ┆ -        ┆ 2     ┆ acme/msg_1  ┆ 2026-11-29T12:00:01Z │
│ reverse ┆ -       ┆ 0.00     ┆ 0.00     ┆ 0.002    ┆ 3     ┆ reverse r-1 ┆ 2026-11-29T12:00:02Z │
└─────────┴─────────┴──────────┴──────────┴──────────┴───────┴─────────────┴──────────────────────┘
";
        let page = page(&body);
        assert!(page.ends_with(by_hand), "{page}");
    }

    #[test]
    fn a_charged_job_shows_what_became_of_its_charges() {
        let mut body = job();
        let of = |kind: &str, charged: &str, charge: Value| {
            json!({
                "kind": kind, "version": null, "amount": "1.234000", "captured": "1.234000", "released": "0.000000",
                "by": "acme/msg_1", "at": "2026-11-29T12:00:01Z", "sequence": 2, "charged": charged, "charge": charge,
            })
        };
        body["settlements"] = json!([
            of("capture", "1.230000", json!({"event": "own/charge|t1|j1|c", "state": "settled", "payment": "pi_1"})),
            of("adjust", "-0.500000", json!({"event": "own/refund|t1|j1|a|r-1", "state": null, "payment": null})),
            of("adjust", "0.000000", Value::Null),
            of(
                "late-capture",
                "2.000000",
                json!({"event": "e", "state": "failed", "payment": null, "contradicted": true})
            ),
        ]);
        let by_hand = "
At the payment provider
┌────────┬───────────────────────────────────────────────┬─────────┬────────────────────────┐
│ amount ┆ state                                         ┆ payment ┆ event                  │
╞════════╪═══════════════════════════════════════════════╪═════════╪════════════════════════╡
│ 1.23   ┆ settled                                       ┆ pi_1    ┆ own/charge|t1|j1|c     │
│ -0.50  ┆ -                                             ┆ -       ┆ own/refund|t1|j1|a|r-1 │
│ 2.00   ┆ failed, and later said to be done: look there ┆ -       ┆ e                      │
└────────┴───────────────────────────────────────────────┴─────────┴────────────────────────┘
";
        let page = page(&body);
        assert!(page.ends_with(by_hand), "{page}");
    }
}
