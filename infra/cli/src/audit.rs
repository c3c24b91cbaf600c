//! `audit`: recomputes a wallet from its entries and names the first broken link.
//!
//! Each reading is bracketed by the wallet's `rev`: if the wallet was written meanwhile, what the balance
//! says and what was read need not agree, and the reading is repeated. Whatever is wrong must be seen in
//! two readings, since the index behind the statement may lag a moment behind the ledger; that a chain of
//! entries, which only grows, is broken holds even while the wallet is written.

use std::process::ExitCode;
use std::time::Duration;

use domain::audit::{Audit, Broken, Clean, Hold, Place, Wallet};
use domain::ledger::Entry;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::AuditArgs;
use crate::error::CliError;
use crate::output::{self, amount, plain};
use crate::pages::{self, Source, read};

/// Readings of one wallet at most.
const READINGS: usize = 5;
/// Between two readings: an index of DynamoDB lags less than that, commonly.
const BETWEEN_READINGS: Duration = Duration::from_secs(1);
/// Entries of one page: the most that the server gives.
const PAGE: &str = "200";
/// Where a page cannot be read, the entry that is at fault is looked for one by one.
const ONE: &str = "1";

/// What came of a wallet.
#[derive(Debug)]
enum Verdict {
    Clean(Box<Wallet>, Clean),
    Broken(Broken),
    /// It was written during every reading, or no two readings agreed.
    Moving,
}

/// What one reading gave.
struct Reading {
    wallet: Wallet,
    moved: bool,
    found: Result<Clean, Broken>,
}

/// Audits each wallet.
pub fn run(args: &AuditArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.server.url)?;
    let mut sound = true;
    for wallet in &args.wallets {
        let verdict = audit(&api, &args.tenant, wallet, &|| std::thread::sleep(BETWEEN_READINGS));
        output::progress("");
        let verdict = verdict?;
        sound &= matches!(verdict, Verdict::Clean(..));
        let json = args.format.json;
        output::print(&if json { line(&args.tenant, wallet, &verdict) } else { say(&args.tenant, wallet, &verdict) })?;
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn audit(source: &impl Source, tenant: &str, wallet: &str, pause: &dyn Fn()) -> Result<Verdict, CliError> {
    let mut seen: Option<Broken> = None;
    for reading in 0..READINGS {
        if reading > 0 {
            pause();
        }
        match read_once(source, &["tenants", tenant, "wallets", wallet])? {
            Reading { moved: false, found: Ok(clean), wallet } => return Ok(Verdict::Clean(Box::new(wallet), clean)),
            Reading { moved, found: Err(broken), .. } if !moved || broken.fault.is_of_chain() => {
                if seen.as_ref() == Some(&broken) {
                    return Ok(Verdict::Broken(broken));
                }
                seen = Some(broken);
            }
            Reading { .. } => {}
        }
    }
    Ok(Verdict::Moving)
}

/// The wallet, its statement, its open holds, and the wallet again.
fn read_once(source: &impl Source, path: &[&str]) -> Result<Reading, CliError> {
    let wallet: Wallet = typed("wallet", read(source, path, &[])?)?;
    let mut audit = Audit::of(&wallet);
    let found = match chain(source, path, &mut audit)? {
        Ok(()) => {
            let mut holds: Vec<Hold> = Vec::new();
            pages::each(source, &[path, &["holds"]].concat(), &[], "holds", |hold| {
                holds.push(typed("hold", hold)?);
                output::progress(&format!("{}: {} open holds", plain(path.last().unwrap_or(&"")), holds.len()));
                Ok(())
            })?;
            audit.finish(&holds)
        }
        Err(broken) => Err(broken),
    };
    let again: Wallet = typed("wallet", read(source, path, &[])?)?;
    Ok(Reading { moved: again.rev != wallet.rev, found, wallet })
}

/// Checks the statement page by page.
fn chain(source: &impl Source, path: &[&str], audit: &mut Audit<'_>) -> Result<Result<(), Broken>, CliError> {
    let statement = [path, &["statement"]].concat();
    let mut limit = PAGE;
    let mut after = "0".to_owned();
    loop {
        let answer = source.read(&statement, &[("after", &after), ("limit", limit)])?;
        match answer.problem() {
            // A stored entry that the server cannot read fails its whole page: which one it is shows alone.
            Some(problem) if problem.status == 500 && limit == ONE => {
                return Ok(Err(audit.unreadable(problem.to_string())));
            }
            Some(problem) if problem.status == 500 => {
                limit = ONE;
                continue;
            }
            Some(problem) => return Err(CliError::Refused(problem)),
            None => {}
        }
        for shown in answer.body["entries"].as_array().into_iter().flatten() {
            let checked = match serde_json::from_value::<Entry>(shown["record"].clone()) {
                Ok(entry) => audit.entry(&entry),
                Err(_) => Err(audit.unreadable("its record has not the form of an entry")),
            };
            if let Err(broken) = checked {
                return Ok(Err(broken));
            }
        }
        output::progress(&format!("{}: {} entries", plain(path.last().unwrap_or(&"")), audit.checked()));
        let Some(next) = pages::next(&answer.body) else { return Ok(Ok(())) };
        if next == after {
            return Err(CliError::Failed("the server answers the same page again; its log may say why".to_owned()));
        }
        after = next;
    }
}

fn typed<T: DeserializeOwned>(what: &str, shown: Value) -> Result<T, CliError> {
    serde_json::from_value(shown)
        .map_err(|error| CliError::Failed(format!("the server's {what} is not of the expected form: {error}")))
}

/// The verdict for people.
fn say(tenant: &str, wallet: &str, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Clean(shown, clean) => {
            let [available, held] = [shown.available, shown.held].map(|micros| amount(&json!(micros)));
            format!(
                "clean   wallet {} of tenant {}: entries {}, open holds {}; available {available} + held {held} {} is what the entries say",
                plain(wallet),
                plain(tenant),
                clean.entries,
                clean.open_holds,
                shown.currency
            )
        }
        Verdict::Broken(broken) => format!("BROKEN  {}", plain(&broken.to_string())),
        Verdict::Moving => format!(
            "MOVING  wallet {} of tenant {} was written during each of {READINGS} readings: audit it again at a quieter time",
            plain(wallet),
            plain(tenant)
        ),
    }
}

/// The verdict for machines, on one line.
fn line(tenant: &str, wallet: &str, verdict: &Verdict) -> String {
    let mut line = json!({"tenant": tenant, "wallet": wallet});
    match verdict {
        Verdict::Clean(shown, clean) => {
            line["verdict"] = json!("clean");
            line["entries"] = json!(clean.entries);
            line["open_holds"] = json!(clean.open_holds);
            line["available"] = json!(shown.available);
            line["held"] = json!(shown.held);
            line["head"] = json!(shown.head);
            line["rev"] = json!(shown.rev);
        }
        Verdict::Broken(broken) => {
            line["verdict"] = json!("broken");
            line["at"] = json!(if broken.place == Place::Balance { "balance" } else { "entry" });
            line["sequence"] = json!(broken.sequence());
            line["code"] = json!(broken.fault.code());
            line["detail"] = json!(broken.fault.to_string());
        }
        Verdict::Moving => line["verdict"] = json!("moving"),
    }
    line.to_string()
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
