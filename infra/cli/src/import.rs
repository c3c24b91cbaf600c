//! `import`: wallets with their opening balances, from a file of JSON lines.
//!
//! Each line is a wallet to create and one booking under the line's reference. Both are idempotent, so
//! the same file again changes nothing. A wallet named twice in one file is refused at its second line:
//! it would be opened twice.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use domain::money::{Micros, MoneyError};
use domain::submit::{CreateWallet, Fund};
use serde::Deserialize;
use serde_json::json;

use crate::api::{Answer, Api};
use crate::args::ImportArgs;
use crate::error::CliError;
use crate::output::{self, plain};

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Opening {
    tenant: String,
    wallet: String,
    currency: String,
    #[serde(default = "zero")]
    credit_limit: String,
    opening_balance: String,
    reference: String,
}

fn zero() -> String {
    "0.00".to_owned()
}

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// Something new was written.
    Opened,
    /// It was there before.
    Unchanged,
    /// Nothing, or not all of it, was written.
    Refused(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened => f.write_str("opened"),
            Self::Unchanged => f.write_str("unchanged"),
            Self::Refused(why) => write!(f, "REFUSED: {why}"),
        }
    }
}

/// Imports a file, line by line.
pub fn run(args: &ImportArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.server.url)?;
    let unreadable = |error: std::io::Error| CliError::Misuse(format!("{}: {error}", args.file.display()));
    let mut named = BTreeMap::new();
    let mut counts = [0_usize; 3];
    for (number, text) in (1..).zip(open(&args.file).map_err(unreadable)?.lines()) {
        let text = text.map_err(unreadable)?;
        if text.trim().is_empty() {
            continue;
        }
        let read = opening(&text);
        let name = read.as_ref().map_or_else(|_| "-".to_owned(), |o| format!("{}/{}", o.tenant, o.wallet));
        let outcome = match read.and_then(|opening| named_once(&opening, number, &mut named).map(|()| opening)) {
            Ok(opening) => import(&api, &opening)?,
            Err(why) => Outcome::Refused(why),
        };
        let counted = match outcome {
            Outcome::Opened => 0,
            Outcome::Unchanged => 1,
            Outcome::Refused(_) => 2,
        };
        counts[counted] += 1;
        output::print(&report(number, &name, &outcome, args.format.json))?;
    }
    let [opened, unchanged, refused] = counts;
    if !args.format.json {
        output::print(&format!("{opened} opened, {unchanged} unchanged, {refused} refused"))?;
    }
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(std::fs::File::open(path)?)))
}

/// Reads one line.
fn opening(text: &str) -> Result<Opening, String> {
    let opening: Opening = serde_json::from_str(text).map_err(|error| format!("not of the expected form: {error}"))?;
    balance(&opening).map_err(|error| format!("opening_balance: {error}"))?;
    Ok(opening)
}

/// Refuses a wallet that an earlier line named.
fn named_once(opening: &Opening, number: usize, named: &mut BTreeMap<(String, String), usize>) -> Result<(), String> {
    match *named.entry((opening.tenant.clone(), opening.wallet.clone())).or_insert(number) {
        first if first == number => Ok(()),
        first => Err(format!("line {first} names this wallet already: a wallet is opened once")),
    }
}

/// The opening balance; zero is none to book.
fn balance(opening: &Opening) -> Result<Micros, MoneyError> {
    Micros::parse(&opening.opening_balance)?.non_negative()
}

/// Creates the wallet, then books its opening balance.
fn import(api: &Api, opening: &Opening) -> Result<Outcome, CliError> {
    let path = ["tenants", &opening.tenant, "wallets", &opening.wallet];
    let wallet = CreateWallet {
        currency: opening.currency.clone(),
        credit_limit: Some(opening.credit_limit.clone()),
        postpaid: None,
    };
    let created = api.control("PUT", &path, Some(&wallet))?;
    if created.problem().is_some() || balance(opening) == Ok(Micros::ZERO) {
        return Ok(outcome(&created, None));
    }
    let (amount, reference) = (opening.opening_balance.clone(), opening.reference.clone());
    let fund = Fund { amount, reference, opening_balance: true };
    let booked = api.control("POST", &[&path[..], &["fund"]].concat(), Some(&fund))?;
    Ok(outcome(&created, Some(&booked)))
}

/// What the two answers mean together.
fn outcome(created: &Answer, booked: Option<&Answer>) -> Outcome {
    if let Some(problem) = created.problem() {
        return Outcome::Refused(problem.to_string());
    }
    if let Some(problem) = booked.and_then(Answer::problem) {
        return Outcome::Refused(format!("the wallet exists, its opening balance is not booked: {problem}"));
    }
    let new = created.status == 201 || booked.is_some_and(|booked| booked.status == 201);
    if new { Outcome::Opened } else { Outcome::Unchanged }
}

fn report(number: usize, name: &str, outcome: &Outcome, as_json: bool) -> String {
    if !as_json {
        return format!("line {number}: {} {outcome}", plain(name));
    }
    let (result, reason) = match outcome {
        Outcome::Opened => ("opened", None),
        Outcome::Unchanged => ("unchanged", None),
        Outcome::Refused(why) => ("refused", Some(why)),
    };
    json!({"line": number, "wallet": name, "result": result, "reason": reason}).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use serde_json::Value;

    const LINE: &str = r#"{"tenant":"t1","wallet":"w1","currency":"USD","credit_limit":"5.00","opening_balance":"25.00","reference":"o-1"}"#;

    #[test]
    fn a_line_is_read_whole_and_a_strange_one_is_refused() {
        assert_eq!(balance(&opening(LINE).unwrap()), Micros::parse("25"));
        let without_limit = LINE.replace(r#""credit_limit":"5.00","#, "");
        assert_eq!(opening(&without_limit).unwrap().credit_limit, "0.00");
        for (from, to) in [
            (r#""25.00""#, "25.00"),       // a number may be a float
            (r#""25.00""#, r#""-25.00""#), // owed money is no opening balance
            (r#""25.00""#, r#""25.0000001""#),
            (r#""currency":"USD","#, ""),
            (r#""reference""#, r#""referenz""#),
            ("{", "["),
        ] {
            assert!(opening(&LINE.replacen(from, to, 1)).is_err(), "{from} -> {to}");
        }
    }

    #[test]
    fn a_wallet_is_opened_once_in_a_file() {
        let mut named = BTreeMap::new();
        let first = opening(LINE).unwrap();
        assert_eq!(named_once(&first, 4, &mut named), Ok(()));
        let again = Opening { reference: "o-2".to_owned(), ..first.clone() };
        let why = "line 4 names this wallet already: a wallet is opened once";
        assert_eq!(named_once(&again, 9, &mut named), Err(why.to_owned()));
        assert_eq!(named_once(&Opening { wallet: "w2".to_owned(), ..first }, 10, &mut named), Ok(()));
    }

    #[test]
    fn the_outcome_says_whether_anything_is_new() {
        let answer = |status| Answer { status, body: Value::Null };
        assert_eq!(outcome(&answer(201), Some(&answer(201))), Outcome::Opened);
        assert_eq!(outcome(&answer(200), Some(&answer(201))), Outcome::Opened);
        assert_eq!(outcome(&answer(200), Some(&answer(200))), Outcome::Unchanged);
        assert_eq!(outcome(&answer(200), None), Outcome::Unchanged);
        assert!(matches!(outcome(&answer(409), None), Outcome::Refused(_)));
        let half = outcome(&answer(201), Some(&answer(409)));
        assert!(matches!(half, Outcome::Refused(why) if why.contains("not booked")));
    }

    #[test]
    fn a_report_is_one_line() {
        assert_eq!(report(3, "t1/w1", &Outcome::Opened, false), "line 3: t1/w1 opened");
        let by_hand = r#"{"line":3,"reason":"why","result":"refused","wallet":"t1/w1"}"#;
        assert_eq!(report(3, "t1/w1", &Outcome::Refused("why".to_owned()), true), by_hand);
    }
}
