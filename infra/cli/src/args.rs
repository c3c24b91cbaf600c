//! The command line. Every help text is what the verb does, no more.

mod ledger;
mod reconcile;

use std::path::PathBuf;

pub use ledger::{AuditArgs, ExportArgs, ImportArgs, JobActionArgs, JobCancelArgs, WalletStatementArgs};
pub use reconcile::ReconcileArgs;

use clap::{Args, Parser, Subcommand};

/// Unix seconds of the year 9999's end: later times are slips of the unit.
const MAX_UNIX_S: i64 = 253_402_300_799;
/// Threads of `send` at most.
pub const MAX_CONCURRENCY: u16 = 64;
/// Deliveries of one `send` at most.
const MAX_TIMES: i64 = 1_000_000;

fn unix_seconds() -> clap::builder::RangedI64ValueParser<i64> {
    clap::value_parser!(i64).range(0..=MAX_UNIX_S)
}

/// Takes webhooks and makes each business effect happen once.
///
/// Exit codes: 0 done, 1 found something wrong or refused by the server, 2 misuse.
#[derive(Debug, Parser)]
#[command(name = "hookledger", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run the whole system on this machine
    Dev(DevArgs),
    /// Demonstrate recovery on a fresh embedded stack, expected and observed effects side by side
    Drill(DrillArgs),
    /// Sign a webhook and send it as the provider would
    Send(SendArgs),
    /// Judge one webhook request offline and say why it is refused
    ///
    /// Without options the request is read from stdin as one JSON object: scheme, secret, headers, body (or body_b64),
    /// and where the scheme needs them method, url, now and tolerance_s. The answer is always JSON,
    /// {"result":"valid"|"invalid","reason":...}; on a terminal a line of help follows on stderr. Exit codes: 0 valid,
    /// 1 invalid, 2 misuse.
    Verify(VerifyArgs),
    /// Show everything known of one event, and what happens next
    Explain(ExplainArgs),
    /// Create, fund and show wallets, and print their statements
    #[command(subcommand)]
    Wallet(WalletVerb),
    /// Submit jobs with a hold, show what became of them, cancel, extend, adjust and reverse them
    #[command(subcommand)]
    Job(JobVerb),
    /// Recompute the chain, the balance and the holds of wallets from their entries
    ///
    /// Reads each wallet, its whole statement, its open holds and the wallet again; if the wallet was written meanwhile
    /// it starts over, five readings at most. What is wrong must be seen twice. Exit codes: 0 every wallet is clean,
    /// 1 one is broken (its first broken link is named by wallet and sequence) or was written during every reading.
    Audit(AuditArgs),
    /// Compare receipts, effects, wallets and the providers' own lists; apply or dismiss what was found
    ///
    /// Starts a run, waits for its end and prints each case with its one action and a summary by class. What is
    /// harmless is done at once; what moves money waits for --apply. A run may be started at any time and finds nothing
    /// new once the actions were applied. Exit codes: 0 nothing is open, 1 a case is open, a part failed, something was
    /// not compared or the run is not done.
    Reconcile(ReconcileArgs),
    /// Print a wallet's entries as JSON lines, each with its job's model, request id and metadata
    Export(ExportArgs),
    /// Create wallets with their opening balances from a file of JSON lines
    ///
    /// One object a line: {"tenant":"t1","wallet":"w1","currency":"USD","credit_limit":"0.00","opening_balance":"25.00",
    /// "reference":"opening-1"}. credit_limit is "0.00" when absent; an opening balance of "0.00" books nothing. The same
    /// file again changes nothing: the reference is the key of the booking. A refused line stops no other; with any
    /// refused line the exit code is 1.
    Import(ImportArgs),
}

/// Which server is asked.
#[derive(Debug, Args)]
pub struct Server {
    /// The server's base URL; calls to one that is not on this machine are signed with your AWS identity
    #[arg(long, env = "HOOKLEDGER_URL", default_value = "http://127.0.0.1:9000", value_name = "URL")]
    pub url: String,
}

/// For people or for machines.
#[derive(Debug, Clone, Copy, Args)]
pub struct Format {
    /// Print JSON on one line instead of tables
    #[arg(long)]
    pub json: bool,
}

/// `dev`.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 9000)]
    pub port: u16,
    /// Keep tables and queues in this directory across restarts; without it everything is in memory
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Use another AWS endpoint (such as LocalStack) and create the tables and queues there
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Judge signatures as if it were this time, in Unix seconds: for published deliveries
    #[arg(long, value_name = "UNIX", value_parser = unix_seconds())]
    pub at: Option<i64>,
}

/// `drill`.
#[derive(Debug, Args)]
pub struct DrillArgs {
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}

/// `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The provider's name in providers.toml, such as acme
    pub provider: String,
    /// The body, sent byte for byte; `-` reads stdin
    pub file: PathBuf,
    /// The event id; without it a fresh msg_...
    #[arg(long)]
    pub id: Option<String>,
    /// The event type, for providers that name it in a header (GitHub)
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: Option<String>,
    /// How often to send the same event
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_TIMES))]
    pub times: u32,
    /// How many deliveries may be on their way at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_CONCURRENCY)))]
    pub concurrency: u16,
    /// The signing secret; without it the profile's environment variable, and for acme the secret that `dev` uses
    #[arg(long)]
    pub secret: Option<String>,
    /// Sign as if it were this time, in Unix seconds
    #[arg(long, value_name = "UNIX", value_parser = unix_seconds())]
    pub at: Option<i64>,
    /// Which server.
    #[command(flatten)]
    pub server: Server,
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}

/// `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The signature scheme, such as standard-webhooks, stripe or github
    #[arg(long, requires_all = ["secret", "body"])]
    pub scheme: Option<String>,
    /// The secret as the provider shows it
    #[arg(long, requires = "scheme")]
    pub secret: Option<String>,
    /// A header as it arrived, 'Name: value'; repeat for each
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "scheme")]
    pub headers: Vec<String>,
    /// A file with the exact bytes of the body; `-` reads stdin
    #[arg(long, value_name = "FILE", requires = "scheme")]
    pub body: Option<PathBuf>,
    /// The public URL with its query, for schemes that sign it
    #[arg(long, requires = "scheme")]
    pub url: Option<String>,
    /// The method, for schemes that sign it
    #[arg(long, default_value = "POST", requires = "scheme")]
    pub method: String,
    /// Judge as if it were this time, in Unix seconds; without it the time of this machine
    #[arg(long, value_name = "UNIX", value_parser = unix_seconds(), requires = "scheme")]
    pub now: Option<i64>,
    /// Accepted for uniformity: the answer is always JSON
    #[arg(long)]
    pub json: bool,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The event as `send` and the log name it, such as acme/msg_1
    pub event: String,
    /// Which server.
    #[command(flatten)]
    pub server: Server,
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}

/// What a call of the control API shares.
#[derive(Debug, Args)]
pub struct Common {
    /// Which server.
    #[command(flatten)]
    pub server: Server,
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}

/// `wallet ...`.
#[derive(Debug, Subcommand)]
pub enum WalletVerb {
    /// Create a wallet; the same content again changes nothing
    Create(WalletCreateArgs),
    /// Add money; the same reference again changes nothing
    Fund(WalletFundArgs),
    /// Show what is available and what is held
    Show(WalletShowArgs),
    /// Show every entry with its running total, and the open holds
    Statement(WalletStatementArgs),
}

/// `wallet create`.
#[derive(Debug, Args)]
pub struct WalletCreateArgs {
    /// Whose wallet
    pub tenant: String,
    /// Its name, unique within the tenant
    pub wallet: String,
    /// ISO 4217 code, such as USD
    #[arg(long)]
    pub currency: String,
    /// How far available may fall below zero, in major units
    #[arg(long, value_name = "AMOUNT", default_value = "0.00")]
    pub credit_limit: String,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `wallet fund`.
#[derive(Debug, Args)]
pub struct WalletFundArgs {
    /// Whose wallet
    pub tenant: String,
    /// Its name
    pub wallet: String,
    /// How much, in major units, such as 100.00
    pub amount: String,
    /// The idempotency key, such as the invoice's number
    #[arg(long)]
    pub reference: String,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `wallet show`.
#[derive(Debug, Args)]
pub struct WalletShowArgs {
    /// Whose wallet
    pub tenant: String,
    /// Its name
    pub wallet: String,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `job ...`.
#[derive(Debug, Subcommand)]
pub enum JobVerb {
    /// Submit a job: pins the price and places the hold; the same content again changes nothing
    Submit(JobSubmitArgs),
    /// Show a job, its transitions and its settlements
    Show(JobShowArgs),
    /// Cancel a job and release its hold
    Cancel(JobCancelArgs),
    /// Reserve more for a running job and let its hold last longer, where the profile allows it
    Extend(JobActionArgs),
    /// Correct what was captured: a positive amount charges more, a negative one gives back
    Adjust(JobActionArgs),
    /// Give captured money back to the wallet, in part or whole, never more than was captured
    Reverse(JobActionArgs),
}

/// `job submit`.
#[derive(Debug, Args)]
pub struct JobSubmitArgs {
    /// Whose job
    pub tenant: String,
    /// Its id, unique within the tenant
    pub job: String,
    /// The provider that runs it, such as acme
    #[arg(long)]
    pub provider: String,
    /// The priced model, such as small-1
    #[arg(long)]
    pub model: String,
    /// The wallet that pays
    #[arg(long)]
    pub wallet: String,
    /// How much to reserve, in major units, such as 5.00
    #[arg(long, value_name = "AMOUNT")]
    pub hold: String,
    /// The provider's own name for the job; may also be added once, later
    #[arg(long = "ref", value_name = "REF")]
    pub provider_job_ref: Option<String>,
    /// The request of yours that led to this and perhaps other jobs
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// A label, NAME=VALUE; repeat for each
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    pub metadata: Vec<(String, String)>,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `job show`.
#[derive(Debug, Args)]
pub struct JobShowArgs {
    /// Whose job
    pub tenant: String,
    /// Its id
    pub job: String,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn misuse(args: &[&str]) -> bool {
        Cli::try_parse_from(args).is_err_and(|error| error.exit_code() == 2)
    }

    #[test]
    fn bounds_and_missing_parts_are_misuse() {
        assert!(misuse(&["hookledger", "send", "acme", "f.json", "--concurrency", "65"]));
        assert!(misuse(&["hookledger", "send", "acme", "f.json", "--times", "0"]));
        assert!(misuse(&["hookledger", "send", "acme", "f.json", "--at", "1764417600000"]));
        assert!(misuse(&["hookledger", "verify", "--scheme", "github"]));
        assert!(misuse(&["hookledger", "verify", "--header", "A: b"]));
        assert!(misuse(&["hookledger", "job", "submit", "t1", "j1", "--provider", "acme"]));
        assert!(misuse(&["hookledger", "nonsense"]));
        assert!(misuse(&["hookledger", "audit", "t1"]));
        assert!(misuse(&["hookledger", "wallet", "statement", "t1", "w1", "--json", "--csv"]));
        let cancel = ["hookledger", "job", "cancel", "t1", "j1", "--reference", "r", "--reason", "x", "--amount", "1"];
        assert!(misuse(&cancel) && !misuse(&cancel[..9]));
        let adjust =
            ["hookledger", "job", "adjust", "t1", "j1", "--reference", "r", "--reason", "x", "--amount", "-1.5"];
        assert!(!misuse(&adjust) && misuse(&adjust[..9]));
        assert!(!misuse(&["hookledger", "send", "acme", "-", "--concurrency", "64", "--times", "1000000"]));
    }

    #[test]
    fn labels_are_split_at_the_first_equals_sign() {
        assert_eq!(label("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(label("=b").is_err() && label("a").is_err());
    }

    #[test]
    fn a_job_is_read_from_the_command_line() {
        let line = "hookledger job submit t1 j1 --provider acme --model small-1 --wallet w1 --hold 5.00 --metadata a=1";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let Verb::Job(JobVerb::Submit(args)) = cli.verb else { panic!("another verb") };
        assert_eq!((args.hold.as_str(), args.metadata.len()), ("5.00", 1));
    }
}
