//! `job cancel`, `extend`, `adjust` and `reverse`: what a person may do to a job, each under its own reference.

use std::process::ExitCode;

use serde::Serialize;

use crate::api::Api;
use crate::args::{Common, JobActionArgs, JobCancelArgs};
use crate::error::CliError;
use crate::job::page;
use crate::output;
use crate::wallet::first_time;

/// The body of the request.
#[derive(Serialize)]
struct Body {
    reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    reason: String,
}

/// Cancels a job.
pub fn cancel(args: JobCancelArgs) -> Result<ExitCode, CliError> {
    let body = Body { reference: args.reference, amount: None, reason: args.reason };
    call("cancel", &args.tenant, &args.job, &body, &args.common)
}

/// Extends, adjusts or reverses a job.
pub fn run(action: &str, args: JobActionArgs) -> Result<ExitCode, CliError> {
    let body = Body { reference: args.reference, amount: Some(args.amount), reason: args.reason };
    call(action, &args.tenant, &args.job, &body, &args.common)
}

fn call(action: &str, tenant: &str, job: &str, body: &Body, common: &Common) -> Result<ExitCode, CliError> {
    let path = ["tenants", tenant, "jobs", job, action];
    let answer = Api::new(&common.server.url)?.control("POST", &path, Some(body))?;
    output::answer(&answer, common.format.json, |answer| {
        let again = "this reference did so before; nothing changed";
        format!("{}\n{}", page(&answer.body), first_time(answer, done(action), again))
    })
}

/// What was done.
fn done(action: &str) -> &'static str {
    match action {
        "cancel" => "job cancelled",
        "extend" => "hold extended",
        "adjust" => "charge adjusted",
        _ => "charge reversed",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn a_cancellation_has_no_amount_and_the_others_keep_theirs_as_written() {
        let body = |amount: Option<&str>| {
            let (reference, reason) = ("r-1".to_owned(), "asked for".to_owned());
            serde_json::to_string(&Body { reference, amount: amount.map(str::to_owned), reason }).unwrap()
        };
        assert_eq!(body(None), r#"{"reference":"r-1","reason":"asked for"}"#);
        assert_eq!(body(Some("-0.50")), r#"{"reference":"r-1","amount":"-0.50","reason":"asked for"}"#);
    }
}
