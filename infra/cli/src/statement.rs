//! `wallet statement`: every entry of a wallet with its running total, and beside it the open holds.
//!
//! The total is what the entries say, which is available + held. JSON and CSV are written page by page;
//! the table needs all of it.

use std::process::ExitCode;

use domain::money::Micros;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::WalletStatementArgs;
use crate::error::CliError;
use crate::output::{self, amount, cell, table};
use crate::pages::{self, Source};

/// The columns of the CSV.
const CSV_HEADER: &str = "sequence,at,kind,job,reference,amount,total,currency,by,reason";

/// Prints a statement.
pub fn run(args: &WalletStatementArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.server.url)?;
    let wallet = ["tenants", &args.tenant, "wallets", &args.wallet];
    // Of a wallet that does not exist the statement would be empty.
    let shown = pages::read(&api, &wallet, &[])?;
    if args.csv {
        output::print(CSV_HEADER)?;
        entries(&api, &wallet, |entry| output::print(&csv_line(entry)))?;
    } else if args.json {
        entries(&api, &wallet, |entry| output::print(&json_line("entry", entry.clone())))?;
        pages::each(&api, &path(&wallet, "holds"), &[], "holds", |hold| output::print(&json_line("hold", hold)))?;
    } else {
        let (mut lines, mut holds) = (Vec::new(), Vec::new());
        entries(&api, &wallet, |entry| {
            lines.push(row(entry));
            Ok(())
        })?;
        pages::each(&api, &path(&wallet, "holds"), &[], "holds", |hold| {
            holds.push(hold);
            Ok(())
        })?;
        output::print(&page(&shown, lines, &holds))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn path<'a>(wallet: &[&'a str], list: &'a str) -> Vec<&'a str> {
    [wallet, &[list]].concat()
}

/// Each entry in order, with the running `total` added.
fn entries(
    source: &impl Source, wallet: &[&str], mut each: impl FnMut(&Value) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut total = Micros::ZERO;
    pages::each(source, &path(wallet, "statement"), &[], "entries", |mut entry| {
        let moved = entry["amount"].as_str().ok_or_else(|| unreadable(&entry))?;
        total = Micros::parse(moved).and_then(|moved| total.plus(moved)).map_err(|_| unreadable(&entry))?;
        entry["total"] = json!(total);
        each(&entry)
    })
}

fn unreadable(entry: &Value) -> CliError {
    CliError::Failed(format!(
        "entry {}: its amount cannot be added up; run `hookledger audit`",
        cell(&entry["sequence"])
    ))
}

/// The server's own object, told apart from the others by `line`.
fn json_line(kind: &str, mut object: Value) -> String {
    object["line"] = json!(kind);
    object.to_string()
}

fn csv_line(entry: &Value) -> String {
    let names = ["sequence", "at", "kind", "job", "reference", "amount", "total", "currency", "by", "reason"];
    names.map(|name| if absent(&entry[name]) { String::new() } else { csv_field(&cell(&entry[name])) }).join(",")
}

fn absent(value: &Value) -> bool {
    value.is_null() || value == ""
}

/// One field by RFC 4180; control characters were escaped before.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn row(entry: &Value) -> [String; 6] {
    let subject: Vec<String> =
        ["job", "reference"].into_iter().map(|name| &entry[name]).filter(|v| !absent(v)).map(cell).collect();
    let subject = if subject.is_empty() { "-".to_owned() } else { subject.join(" / ") };
    let [sequence, at, kind] = ["sequence", "at", "kind"].map(|name| cell(&entry[name]));
    [sequence, at, kind, subject, amount(&entry["amount"]), amount(&entry["total"])]
}

/// The page for people.
fn page(wallet: &Value, lines: Vec<[String; 6]>, holds: &[Value]) -> String {
    let [tenant, name, currency] = ["tenant", "wallet", "currency"].map(|name| cell(&wallet[name]));
    let mut page = format!("Wallet {name} of tenant {tenant}, in {currency}\n\nEntries");
    page += &match lines.is_empty() {
        true => ": none yet\n".to_owned(),
        false => format!("\n{}\n", table(["#", "when", "kind", "job / reference", "amount", "total"], lines)),
    };
    page += "\nOpen holds";
    page += &match holds.is_empty() {
        true => ": none\n".to_owned(),
        false => {
            let rows = holds.iter().map(|hold| [cell(&hold["job"]), amount(&hold["hold"]), cell(&hold["expires_at"])]);
            format!("\n{}\n", table(["job", "hold", "until"], rows))
        }
    };
    page + &format!("\nAvailable {}, held {}\n", amount(&wallet["available"]), amount(&wallet["held"]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::pages::fake::Fake;

    /// 10.00 funded, 0.0087 captured, 0.002 given back: 9.9933 by hand.
    fn server() -> Fake {
        let entry = |sequence: u64, kind: &str, job: Value, reference: Value, amount: &str| {
            json!({
                "sequence": sequence, "at": format!("2026-11-29T12:00:0{sequence}Z"), "kind": kind, "job": job,
                "reference": reference, "amount": amount, "currency": "USD", "by": "local", "reason": "", "record": {},
            })
        };
        let first = [
            entry(1, "fund", Value::Null, json!("inv \"7\", paid"), "10.000000"),
            entry(2, "capture", json!("j1"), Value::Null, "-0.008700"),
        ];
        let second = [entry(3, "reverse", json!("j1"), json!("r-1"), "0.002000")];
        Fake::default().answer("w/statement?", 200, json!({"entries": first, "next": 2})).answer(
            "w/statement?after=2",
            200,
            json!({"entries": second, "next": null}),
        )
    }

    fn lines(of: impl Fn(&Value) -> String) -> Vec<String> {
        let mut lines = Vec::new();
        entries(&server(), &["w"], |entry| {
            lines.push(of(entry));
            Ok(())
        })
        .unwrap();
        lines
    }

    #[test]
    fn csv_quotes_what_needs_it_and_leaves_empty_what_is_absent() {
        let by_hand = [
            "1,2026-11-29T12:00:01Z,fund,,\"inv \"\"7\"\", paid\",10.000000,10.000000,USD,local,",
            "2,2026-11-29T12:00:02Z,capture,j1,,-0.008700,9.991300,USD,local,",
            "3,2026-11-29T12:00:03Z,reverse,j1,r-1,0.002000,9.993300,USD,local,",
        ];
        assert_eq!(lines(csv_line), by_hand);
        assert_eq!(CSV_HEADER.split(',').count(), 10);
    }

    #[test]
    fn json_lines_carry_the_total_and_say_what_they_are() {
        let all = lines(|entry| json_line("entry", entry.clone()));
        let last: Value = serde_json::from_str(&all[2]).unwrap();
        assert_eq!(
            (&last["line"], &last["total"], &last["sequence"]),
            (&json!("entry"), &json!("9.993300"), &json!(3))
        );
    }

    #[test]
    fn a_statement_is_two_tables() {
        let mut rows = Vec::new();
        entries(&server(), &["w"], |entry| {
            rows.push(row(entry));
            Ok(())
        })
        .unwrap();
        rows.remove(0);
        let wallet =
            json!({"tenant": "t1", "wallet": "w1", "currency": "USD", "available": "4.993300", "held": "5.000000"});
        let holds = [json!({"job": "j2", "hold": "5.000000", "expires_at": "2026-12-04T12:00:00Z"})];
        let by_hand = "\
Wallet w1 of tenant t1, in USD

Entries
┌───┬──────────────────────┬─────────┬─────────────────┬─────────┬────────┐
│ # ┆ when                 ┆ kind    ┆ job / reference ┆ amount  ┆ total  │
╞═══╪══════════════════════╪═════════╪═════════════════╪═════════╪════════╡
│ 2 ┆ 2026-11-29T12:00:02Z ┆ capture ┆ j1              ┆ -0.0087 ┆ 9.9913 │
│ 3 ┆ 2026-11-29T12:00:03Z ┆ reverse ┆ j1 / r-1        ┆ 0.002   ┆ 9.9933 │
└───┴──────────────────────┴─────────┴─────────────────┴─────────┴────────┘

Open holds
┌─────┬──────┬──────────────────────┐
│ job ┆ hold ┆ until                │
╞═════╪══════╪══════════════════════╡
│ j2  ┆ 5.00 ┆ 2026-12-04T12:00:00Z │
└─────┴──────┴──────────────────────┘

Available 4.9933, held 5.00
";
        assert_eq!(page(&wallet, rows, &holds), by_hand);
        assert!(page(&wallet, Vec::new(), &[]).contains("Entries: none yet\n\nOpen holds: none\n"));
    }
}
