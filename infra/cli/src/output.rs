//! How answers are shown: tables for people, the server's own JSON for machines.
//!
//! Texts that came from outside are shown with control characters escaped: an event id may not drive a terminal.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
use serde_json::Value;

use crate::api::Answer;
use crate::error::CliError;

/// Columns of a table at most; longer cells are wrapped.
const WIDTH: u16 = 120;

/// Writes to stdout. A reader that stopped reading (`| head`) is no error.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Failed(format!("cannot write the answer: {error}")))
        }
        _ => Ok(()),
    }
}

/// A line on a person's terminal that the next one overwrites; an empty one clears it. Elsewhere nothing is written.
pub fn progress(line: &str) {
    let mut terminal = io::stderr();
    if terminal.is_terminal() {
        // A progress line that is lost costs nothing.
        let _ = write!(terminal, "\r\x1b[K{line}").and_then(|()| terminal.flush());
    }
}

/// Shows an answer: with `json` the server's own JSON on one line, even where it is an error (exit code 1); else what
/// `render` makes of it, and an error as a sentence.
pub fn answer(answer: &Answer, json: bool, render: impl FnOnce(&Answer) -> String) -> Result<ExitCode, CliError> {
    match answer.problem() {
        Some(problem) if !json => Err(CliError::Refused(problem)),
        problem => {
            print(&if json { answer.body.to_string() } else { render(answer) })?;
            Ok(if problem.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
    }
}

/// A text with its control characters escaped.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// A JSON value as a cell: text without quotes, `-` for what is absent.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => plain(text),
        other => plain(&other.to_string()),
    }
}

/// An amount for people: zeros behind the second decimal are left out ("99.991300" is shown as 99.9913).
pub fn amount(value: &Value) -> String {
    let text = cell(value);
    let Some(point) = text.find('.') else { return text };
    let (needed, rest) = text.split_at(text.len().min(point + 3));
    needed.to_owned() + rest.trim_end_matches('0')
}

/// A framed table.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    table.trim_fmt()
}

/// Names and values below each other; what is absent is left out.
pub fn card<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<_> = pairs.into_iter().filter(|(_, value)| value != "-").collect();
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    pairs.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_has_a_frame_and_a_header() {
        let shown = table(["HTTP", "answer"], [["202".to_owned(), "accepted".to_owned()]]);
        let by_hand = "\
┌──────┬──────────┐
│ HTTP ┆ answer   │
╞══════╪══════════╡
│ 202  ┆ accepted │
└──────┴──────────┘";
        assert_eq!(shown, by_hand);
    }

    #[test]
    fn a_card_leaves_out_what_is_absent_and_aligns_the_rest() {
        let shown =
            card([("tenant", cell(&json!("t1"))), ("note", cell(&json!(""))), ("available", cell(&json!("1.00")))]);
        assert_eq!(shown, "  tenant     t1\n  available  1.00\n");
        assert_eq!(cell(&Value::Null), "-");
        assert_eq!(cell(&json!(3)), "3");
    }

    #[test]
    fn an_amount_keeps_two_decimals_and_what_is_not_zero_behind_them() {
        let pairs =
            [("5.000000", "5.00"), ("99.991300", "99.9913"), ("0.008700", "0.0087"), ("-1.5", "-1.5"), ("100", "100")];
        for (sent, shown) in pairs {
            assert_eq!(amount(&json!(sent)), shown);
        }
        assert_eq!(amount(&Value::Null), "-");
    }

    #[test]
    fn an_escape_sequence_is_shown_and_not_obeyed() {
        assert_eq!(cell(&json!("a\u{1b}[2Jb\n")), "a\\u{1b}[2Jb\\n");
    }
}
