//! `hookledger drill`: what a team wants to see before it trusts a webhook with money, on a fresh
//! embedded stack for each case and on virtual time.
//!
//! Each case states the business effects that must be, does the worst, and counts the effects that
//! are. It exits 1 if any differs.

mod cases;
mod faults;
mod operator;
mod reconcile_cases;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

use crate::args::DrillArgs;
use crate::error::CliError;

/// Width of the table in columns: it also goes into logs and READMEs, where no terminal has a say.
const WIDTH: u16 = 132;

/// One line of the drill.
#[derive(Debug, Serialize)]
struct Line {
    case: &'static str,
    expected: &'static str,
    observed: String,
    same: bool,
}

/// Runs every case.
pub fn run(args: &DrillArgs) -> Result<ExitCode, CliError> {
    // Paused time: waits cost nothing, and the order of events is the same in every run.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|e| CliError::Failed(format!("no async runtime: {e}")))?;
    let mut cases = cases::all();
    cases.extend(reconcile_cases::all());
    let mut lines = Vec::with_capacity(cases.len());
    for (done, case) in cases.iter().enumerate() {
        progress(done, cases.len(), case.name);
        let observed =
            runtime.block_on((case.run)()).unwrap_or_else(|error| format!("the case could not run: {error}"));
        lines.push(Line { case: case.name, expected: case.expected, same: observed == case.expected, observed });
    }
    progress(cases.len(), cases.len(), "");
    let differing = lines.iter().filter(|line| !line.same).count();
    show(&lines, differing, args.format.json)?;
    Ok(if differing == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A line that is overwritten, on a person's terminal only.
fn progress(done: usize, all: usize, name: &str) {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        let _ = write!(terminal, "\r\x1b[K{}", if done < all { format!("{done}/{all} {name}") } else { String::new() });
        let _ = terminal.flush(); // a progress line that is lost costs nothing
    }
}

fn show(lines: &[Line], differing: usize, json: bool) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let written = if json {
        let all = serde_json::json!({ "cases": lines, "differing": differing });
        writeln!(out, "{all:#}")
    } else {
        let mut table = Table::new();
        table.load_preset(UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
        table.set_header(["", "case", "expected business effects", "observed"]);
        for line in lines {
            let mark = if line.same { "ok" } else { "DIFFERS" };
            table.add_row([mark, line.case, line.expected, &line.observed]);
        }
        let verdict = match differing {
            0 => format!("{} cases, every one as expected.", lines.len()),
            n => format!("{n} of {} cases differ: please report them with this table.", lines.len()),
        };
        writeln!(out, "{table}\n{verdict}")
    };
    written.map_err(|e| CliError::Failed(format!("stdout: {e}")))
}
