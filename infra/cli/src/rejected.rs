//! `rejected`: the last refused deliveries. No body, no signature: the server keeps none.

use std::process::ExitCode;

use serde_json::Value;

use crate::api::Api;
use crate::args::RejectedArgs;
use crate::error::CliError;
use crate::output::{self, cell, table};

/// Shows them, the latest first.
pub fn run(args: &RejectedArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.common.server.url)?;
    let query: Vec<(&str, &str)> = args.provider.iter().map(|provider| ("provider", provider.as_str())).collect();
    let answer = api.get_with(&["rejected"], &query)?;
    output::answer(&answer, args.common.format.json, |answer| page(&answer.body))
}

fn page(body: &Value) -> String {
    let rejected = body["rejected"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rejected.is_empty() {
        return "Nothing was refused.\n".to_owned();
    }
    let header = ["at", "provider", "status", "reason", "source", "bytes", "headers"];
    let shown = table(header, rejected.iter().map(row));
    let kept = cell(&body["kept_per_provider"]);
    format!("{shown}\n\nThe last {kept} of each provider are kept, and not each one of a flood; the log counts all.\n")
}

fn row(rejected: &Value) -> [String; 7] {
    let names = rejected["headers"].as_array().into_iter().flatten().map(cell).collect::<Vec<_>>().join(" ");
    let [at, provider, status, reason, source, bytes] =
        ["at", "provider", "status", "reason", "source", "body_bytes"].map(|name| cell(&rejected[name]));
    [at, provider, status, reason, source, bytes, names]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refused_delivery_is_one_row_and_none_is_a_sentence() {
        let body = json!({"kept_per_provider": 50, "rejected": [{
            "provider": "acme", "at": "2026-11-29T12:00:00Z", "status": 401, "reason": "no-signature",
            "source": "192.0.2.7", "body_bytes": 7, "headers": ["host", "x-a"],
        }]});
        let by_hand = "\
┌──────────────────────┬──────────┬────────┬──────────────┬───────────┬───────┬──────────┐
│ at                   ┆ provider ┆ status ┆ reason       ┆ source    ┆ bytes ┆ headers  │
╞══════════════════════╪══════════╪════════╪══════════════╪═══════════╪═══════╪══════════╡
│ 2026-11-29T12:00:00Z ┆ acme     ┆ 401    ┆ no-signature ┆ 192.0.2.7 ┆ 7     ┆ host x-a │
└──────────────────────┴──────────┴────────┴──────────────┴───────────┴───────┴──────────┘

The last 50 of each provider are kept, and not each one of a flood; the log counts all.
";
        assert_eq!(page(&body), by_hand);
        assert_eq!(page(&json!({"kept_per_provider": 50, "rejected": []})), "Nothing was refused.\n");
    }
}
