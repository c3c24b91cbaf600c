//! `pause` and `resume`: one switch per consumer and per provider.

use std::process::ExitCode;

use serde_json::json;

use crate::api::Api;
use crate::args::PauseArgs;
use crate::error::CliError;
use crate::output::{self, cell};

/// Turns a switch on or off.
pub fn run(args: &PauseArgs, paused: bool) -> Result<ExitCode, CliError> {
    let body = json!({ "paused": paused, "reason": args.reason });
    let answer = Api::new(&args.common.server.url)?.control("PUT", &["pauses", &args.name], Some(&body))?;
    output::answer(&answer, args.common.format.json, |answer| {
        let body = &answer.body;
        match body["paused"].as_bool() {
            Some(true) => format!(
                "{} is paused since {} by {}: {}. Receipts go on; effects wait.",
                cell(&body["name"]),
                cell(&body["since"]),
                cell(&body["actor"]),
                cell(&body["reason"])
            ),
            _ => format!("{} is not paused; what it held back is sent in order of arrival.", cell(&body["name"])),
        }
    })
}
