//! `status`: what is stuck, how old, whose money, whose turn.

use std::process::ExitCode;

use serde_json::Value;

use crate::api::Api;
use crate::args::StatusArgs;
use crate::error::CliError;
use crate::output::{self, cell, table};
use crate::reviews::{age, risk};

/// Shows everything that is not at rest. Exit code 1 when a person is needed or something is overdue.
pub fn run(args: &StatusArgs) -> Result<ExitCode, CliError> {
    let answer = Api::new(&args.common.server.url)?.get(&["status"])?;
    let code = output::answer(&answer, args.common.format.json, |answer| page(&answer.body))?;
    let wrong = list(&answer.body["states"]).iter().any(needs_somebody);
    Ok(if wrong { ExitCode::FAILURE } else { code })
}

fn needs_somebody(state: &Value) -> bool {
    state["state"].as_str().is_some_and(|name| name.starts_with("review:") || name == "overdue")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn money(sum: &Value) -> String {
    let amounts: Vec<String> = list(&sum["at_risk"]).iter().map(risk).collect();
    if amounts.is_empty() { "-".to_owned() } else { amounts.join(", ") }
}

fn page(body: &Value) -> String {
    let states = list(&body["states"]);
    let mut page = String::new();
    if states.is_empty() {
        page += "Nothing is stuck: every operation is final.\n";
    } else {
        let mut rows = Vec::new();
        for state in states {
            let least = if state["lower_bound"] == true { "at least " } else { "" };
            let count = format!("{least}{}", cell(&state["count"]));
            rows.push([cell(&state["state"]), count, age(&state["oldest_age_s"]), money(state), cell(&state["next"])]);
            for (member, parts) in [("provider", &state["providers"]), ("tenant", &state["tenants"])] {
                for part in list(parts) {
                    let name = format!("  {member} {}", cell(&part[member]));
                    rows.push([name, cell(&part["count"]), age(&part["oldest_age_s"]), money(part), String::new()]);
                }
            }
        }
        page += &table(["state", "count", "oldest", "at risk", "what next"], rows);
        page.push('\n');
    }
    for pause in list(&body["pauses"]["paused"]) {
        let [name, since, actor, reason] = ["name", "since", "actor", "reason"].map(|member| cell(&pause[member]));
        page += &format!("{name} is paused since {since} by {actor}: {reason}\n");
    }
    for name in list(&body["pauses"]["resuming"]) {
        page += &format!(
            "{} was resumed at {}; what it held back is being sent\n",
            cell(&name["name"]),
            cell(&name["since"])
        );
    }
    if body["relay"]["lag_s"].is_null() {
        return page + "The relay has not examined anything yet.";
    }
    let lag = age(&body["relay"]["lag_s"]);
    page + &format!("The relay has examined receipts up to {} ({lag} behind).", cell(&body["relay"]["examined_up_to"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_says_whose_and_what_next() {
        let sum = json!({"count": 2, "oldest_age_s": 120, "at_risk": [{"currency": "USD", "amount": "5.000000"}]});
        let mut state = sum.clone();
        state["state"] = json!("review:overage");
        state["next"] = json!("a person decides");
        state["lower_bound"] = json!(true);
        let mut tenant = sum;
        tenant["tenant"] = json!("t1");
        state["tenants"] = json!([tenant]);
        let body = json!({
            "states": [state], "relay": {"lag_s": 180, "examined_up_to": "T"},
            "pauses": {"paused": [{"name": "billing", "since": "S", "actor": "A", "reason": "R"}], "resuming": []}
        });
        let shown = page(&body);
        for part in ["at least 2", "2m", "5.00 USD", "tenant t1", "billing is paused since S by A: R", "3m behind"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(needs_somebody(&body["states"][0]) && !needs_somebody(&json!({"state": "waiting"})));
    }
}
