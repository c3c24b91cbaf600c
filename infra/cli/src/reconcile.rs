//! `reconcile`: starts a run, waits for its end, and tells what it found as a table with a summary; applies or dismisses a
//! case. Exit code 1 when a case is open, a part failed or something could not be compared.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::api::Api;
use crate::args::ReconcileArgs;
use crate::error::CliError;
use crate::output::{self, amount, card, cell, plain, table};
use crate::pages::{self, Source};

/// Between the first two looks at a run; twice as long after each, up to [`LOOK_AT_LEAST_EVERY`].
const LOOK_FIRST: Duration = Duration::from_millis(500);
/// Between two looks at most: each reads every part of the run.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// Does what the arguments ask for.
pub fn run(args: ReconcileArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.common.server.url)?;
    let decided =
        args.apply.as_ref().map(|case| (case, "apply")).or(args.dismiss.as_ref().map(|case| (case, "dismiss")));
    if let Some((case, action)) = decided {
        let run = args.reference.as_deref().unwrap_or_default(); // required with both
        let body = json!({"action": action, "reason": args.reason});
        let answer = api.control("POST", &["reconciliations", run, "cases", case], Some(&body))?;
        return output::answer(&answer, args.common.format.json, |answer| case_page(&answer.body));
    }
    let id = match &args.show {
        Some(id) => id.clone(),
        None => start(&api, &args)?,
    };
    let waited = wait(&api, &id, Duration::from_secs(args.wait))?;
    let (mut shown, mut cases) = (waited, Vec::new());
    pages::each(&api, &["reconciliations", &id], &[], "cases", |case| {
        cases.push(case);
        Ok(())
    })?;
    shown["cases"] = Value::Array(cases);
    shown["next"] = Value::Null;
    output::print(&if args.common.format.json { shown.to_string() } else { page(&shown) })?;
    Ok(if clean(&shown) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn start(api: &Api, args: &ReconcileArgs) -> Result<String, CliError> {
    let fresh = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("cli-{}-{:08x}", since.as_secs(), fastrand::u32(..))
    };
    let reference = args.reference.clone().unwrap_or_else(fresh);
    let mut body = json!({"reference": reference, "reason": args.reason});
    let more = [("from", &args.from), ("to", &args.to), ("provider", &args.provider)];
    for (name, value) in more {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    if !args.kinds.is_empty() {
        body["kinds"] = json!(args.kinds);
    }
    if let Some([tenant, wallet]) = args.wallet.as_deref() {
        (body["tenant"], body["wallet"]) = (json!(tenant), json!(wallet));
    }
    let answer = api.control("POST", &["reconciliations"], Some(&body))?;
    answer.problem().map_or(Ok(reference), |problem| Err(CliError::Refused(problem)))
}

/// Looks at the run until it is done.
fn wait(api: &impl Source, id: &str, limit: Duration) -> Result<Value, CliError> {
    let (begun, mut pause) = (Instant::now(), LOOK_FIRST);
    loop {
        let shown = pages::read(api, &["reconciliations", id], &[("limit", "1")])?;
        if shown["state"] == "done" || begun.elapsed() >= limit {
            output::progress("");
            return Ok(shown);
        }
        output::progress(&format!("{} of {} parts", cell(&shown["parts"]["done"]), cell(&shown["parts"]["total"])));
        std::thread::sleep(pause.min(limit.saturating_sub(begun.elapsed())));
        pause = longer(pause);
    }
}

/// The next pause between two looks.
fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LOOK_AT_LEAST_EVERY)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Done, everything compared, and no case open.
fn clean(run: &Value) -> bool {
    let open = list(&run["cases"]).iter().any(|case| case["state"] == "open");
    run["state"] == "done" && run["parts"]["failed"] == 0 && list(&run["skipped"]).is_empty() && !open
}

fn subject(subject: &Value) -> String {
    let Some((kind, what)) = subject.as_object().and_then(|map| map.iter().next()) else { return cell(subject) };
    let named = |name: &str| what[name].as_str().map(plain).unwrap_or_default();
    match kind.as_str() {
        "job" => format!("job {} of {}", named("job"), named("tenant")),
        "wallet" => format!("wallet {} of {}", named("wallet"), named("tenant")),
        "operation" => format!("{} of {}", named("name"), named("event")),
        "effect" => format!("{} at destination {}", named("id"), named("destination")),
        "conflict" => format!("conflict of {}", named("event")),
        _ => cell(what),
    }
}

fn money(case: &Value) -> String {
    match &case["amount"] {
        Value::Null => "-".to_owned(),
        value => format!("{} {}", amount(value), cell(&case["currency"])),
    }
}

/// The page of a run.
fn page(run: &Value) -> String {
    let mut page = format!("Reconciliation {}: {}\n", cell(&run["id"]), cell(&run["state"]));
    let parts = &run["parts"];
    page += &card([
        ("receipts from", cell(&run["from"])),
        ("to", cell(&run["to"])),
        ("reason", cell(&run["reason"])),
        (
            "parts",
            format!("{} of {} done, {} failed", cell(&parts["done"]), cell(&parts["total"]), cell(&parts["failed"])),
        ),
        ("examined", cell(&run["examined"])),
    ]);
    let cases = list(&run["cases"]);
    if !cases.is_empty() {
        page += "\n";
        let row = |case: &Value| {
            let state = if case["state"] == "open" { &case["state"] } else { &case["resolution"] };
            [
                cell(&case["case"]),
                subject(&case["subject"]),
                money(case),
                cell(&case["action"]),
                cell(state),
                cell(&case["evidence"]),
            ]
        };
        page += &table(["case", "about", "amount", "action", "state", "evidence"], cases.iter().map(row));
        page += "\n";
    }
    if let Some(classes) = run["classes"].as_object().filter(|classes| !classes.is_empty()) {
        page += "\n";
        let row = |(class, count): (&String, &Value)| {
            [plain(class), cell(&count["found"]), cell(&count["new"]), cell(&count["applied"])]
        };
        page += &table(["class", "found", "new", "done at once"], classes.iter().map(row));
        page += "\n";
    }
    for skipped in list(&run["skipped"]) {
        page += &format!("not compared: {}\n", cell(skipped));
    }
    let open = cases.iter().filter(|case| case["state"] == "open").count();
    page + &match open {
        _ if run["state"] != "done" => format!("\nStill running: hookledger reconcile --show {}\n", cell(&run["id"])),
        0 => "\nNo case is open.\n".to_owned(),
        n => format!(
            "\n{n} open: hookledger reconcile --reference {} --apply CASE --reason ... (or --dismiss CASE)\n",
            cell(&run["id"])
        ),
    }
}

/// The page of one case with its decisions.
fn case_page(case: &Value) -> String {
    let mut page = format!("Case {}: {} {}\n", cell(&case["case"]), cell(&case["state"]), cell(&case["resolution"]));
    page += &card([
        ("about", subject(&case["subject"])),
        ("amount", money(case)),
        ("action", cell(&case["action"])),
        ("evidence", cell(&case["evidence"])),
    ]);
    let row = |d: &Value| ["at", "actor", "resolution", "reason", "note"].map(|name| cell(&d[name]));
    page + &table(["decided at", "by", "as", "reason", "done"], list(&case["decisions"]).iter().map(row))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::pages::fake::Fake;

    fn shown(state: &str, case: &str) -> Value {
        json!({
            "id": "r1", "state": state, "parts": {"total": 2, "done": 2, "failed": 0}, "skipped": [], "examined": 9,
            "classes": {"balance-drift": {"found": 1, "new": 1, "applied": 0}},
            "cases": [{
                "case": "balance-drift.0a", "class": "balance-drift", "action": "rebuild", "state": case,
                "subject": {"wallet": {"tenant": "t1", "wallet": "w\u{1b}1"}}, "amount": "5.000000", "currency": "USD",
                "evidence": "told",
            }],
        })
    }

    #[test]
    fn an_open_case_is_no_clean_run_and_tells_what_to_do() {
        let open = shown("done", "open");
        assert!(!clean(&open) && clean(&shown("done", "resolved")) && !clean(&shown("running", "resolved")));
        let page = page(&open);
        assert!(page.contains("1 open: hookledger reconcile --reference r1 --apply CASE"), "{page}");
        assert!(page.contains("5.00 USD") && page.contains("w\\u{1b}1"), "{page}");
    }

    #[test]
    fn what_was_not_compared_is_not_clean() {
        let mut run = shown("done", "resolved");
        run["skipped"] = json!(["list of acme: not read to its end"]);
        assert!(!clean(&run));
        assert!(page(&run).contains("not compared: list of acme"));
    }

    #[test]
    fn a_long_run_is_looked_at_every_five_seconds() {
        let pauses = std::iter::successors(Some(LOOK_FIRST), |pause| Some(longer(*pause)));
        let millis: Vec<u128> = pauses.take(6).map(|pause| pause.as_millis()).collect();
        assert_eq!(millis, [500, 1_000, 2_000, 4_000, 5_000, 5_000]);
    }

    #[test]
    fn a_run_is_waited_for() {
        let server = Fake::default()
            .answer("reconciliations/r1?limit=1", 200, json!({"state": "running", "parts": {}}))
            .answer("reconciliations/r1?limit=1", 200, json!({"state": "done"}));
        assert_eq!(wait(&server, "r1", Duration::from_secs(60)).unwrap()["state"], "done");
    }
}
