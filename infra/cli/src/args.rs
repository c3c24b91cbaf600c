//! The command line. Every help text is what the verb does, no more.

mod bench;
mod events;
mod ledger;
mod operations;
mod reconcile;

use std::path::PathBuf;

pub use bench::{BenchArgs, First};
pub use events::{ExplainArgs, RejectedArgs};
pub use ledger::{AuditArgs, ExportArgs, ImportArgs, JobActionArgs, JobCancelArgs, WalletStatementArgs};
pub use operations::{
    OverageAlternative, PauseArgs, ReplayArgs, ResolveArgs, ReviewAction, ReviewFilter, ReviewsArgs, ReviewsVerb,
    StatusArgs,
};
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
    /// {"result":"valid"|"invalid","reason":...}, with a "slip" where a known one explains the refusal (a trailing
    /// newline, CRLF, JSON written anew, a secret decoded or not, hexadecimal for base64, the SHA-1 header); on a terminal
    /// a line of help follows on stderr. Exit codes: 0 valid, 1 invalid, 2 misuse.
    Verify(VerifyArgs),
    /// Check providers.toml and prices.toml offline and name every mistake
    ///
    /// Each finding has file, line, column, field, cause and remedy. Without a FILE the files of infra/ below the present
    /// directory are checked, else those that this program was built with. A file is a price book if it has `price`
    /// tables, else it holds profiles. Beyond what the functions refuse at start, unfilled handoff fields (owner,
    /// retry_window_hours, retention_days, tenants), completions that nothing settles and unsigned ids that are said to
    /// be signed are refused. Then the settings in effect are printed. Exit codes: 0 nothing found, 1 something, 2 misuse.
    Check(CheckArgs),
    /// Print the handoff worksheet of one provider in Markdown, from its profile
    Worksheet(WorksheetArgs),
    /// Show everything known of one event, of a job's, a booking's or a payment's events, and what happens next
    Explain(ExplainArgs),
    /// Show what is stuck, how old it is, whose money hangs on it, and whose turn it is
    ///
    /// Exit codes: 0 nothing needs anybody, 1 a review is open or something due was not sent, 2 misuse.
    Status(StatusArgs),
    /// List what waits for a person, oldest first; `reviews resolve` decides
    Reviews(ReviewsArgs),
    /// Try events again over the ordinary path, each effect still once, spaced and recorded
    ///
    /// Finished events report their recorded result and are not sent, except events of our own (provider own): what was told
    /// is told once more; steps at a payment provider and jobs on a board never are. Events that were ignored or quarantined are planned
    /// anew by today's profile. Exit codes: 0 every event was replayed, 1 one was not received or cannot be planned, 2 misuse.
    Replay(ReplayArgs),
    /// Stop the effects of a consumer (job, billing, outbound) or a provider while receipts go on
    Pause(PauseArgs),
    /// Go on after a pause, in order of arrival
    Resume(PauseArgs),
    /// Show the last refused deliveries: when, why, from where, their size and the names of their headers
    ///
    /// Neither bodies nor signatures are kept. Of a flood only some are: the log counts each one.
    Rejected(RejectedArgs),
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
    /// Compare receipts, effects, wallets, what was sent, and the lists of providers and destinations; apply or dismiss
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
    /// Count what an event costs: AWS calls, round trips, capacity, and dollars for a million at list prices
    ///
    /// Runs the real handlers on an embedded stack, at batch sizes 1 and 10: events with two operations, the same again as
    /// duplicates, events that open a review, that are only sent on, and that charge a payment provider. Prices, arithmetic
    /// and assumptions are printed.
    Bench(BenchArgs),
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

/// Which profiles.
#[derive(Debug, Args)]
pub struct ProvidersFile {
    /// A file of profiles in place of the built-in infra/providers.toml
    #[arg(long, env = "HOOKLEDGER_PROVIDERS", value_name = "FILE")]
    pub providers: Option<PathBuf>,
}

/// `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Files of profiles or prices
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print the JSON Schema of a file's form instead
    #[arg(long, value_name = "FORM", conflicts_with = "files")]
    pub schema: Option<FileForm>,
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}

/// The two forms of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FileForm {
    /// providers.toml
    Providers,
    /// prices.toml
    Prices,
}

/// `worksheet`.
#[derive(Debug, Args)]
pub struct WorksheetArgs {
    /// The provider's name in the file, such as acme
    pub provider: String,
    /// Which profiles.
    #[command(flatten)]
    pub profiles: ProvidersFile,
    /// Print a JSON object with the Markdown in it
    #[command(flatten)]
    pub format: Format,
}

/// `dev`.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// Which profiles.
    #[command(flatten)]
    pub profiles: ProvidersFile,
    /// A price book in place of the built-in infra/prices.toml
    #[arg(long, env = "HOOKLEDGER_PRICES", value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// The public base URL that providers sign (Twilio, Square), without a path; without it this server's own
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
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
    /// Print the signed headers as a JSON object, and send nothing
    #[arg(long)]
    pub print: bool,
    /// Which profiles.
    #[command(flatten)]
    pub profiles: ProvidersFile,
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
    /// The signature scheme, such as standard-webhooks, stripe or github, or the name of a profile
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
    /// Which profiles.
    #[command(flatten)]
    pub profiles: ProvidersFile,
    /// Accepted for uniformity: the answer is always JSON
    #[arg(long)]
    pub json: bool,
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
    /// How far available may fall below zero, in major units; 0.00 without it, and no limit of a postpaid wallet
    #[arg(long, value_name = "AMOUNT")]
    pub credit_limit: Option<String>,
    /// Charge its jobs afterwards, at this payment provider: a table [charges.NAME] of providers.toml
    #[arg(long, value_name = "NAME", requires_all = ["customer", "payment_method"])]
    pub postpaid: Option<String>,
    /// The payment provider's id of the customer
    #[arg(long, value_name = "ID", requires = "postpaid")]
    pub customer: Option<String>,
    /// The payment provider's id of what is charged
    #[arg(long, value_name = "ID", requires = "postpaid")]
    pub payment_method: Option<String>,
    /// Nothing below this is charged, in major units
    #[arg(long, value_name = "AMOUNT", requires = "postpaid")]
    pub minimum_charge: Option<String>,
    /// Authorise what each job names as its --hold when it is submitted; what it costs is captured of that
    #[arg(long, requires = "postpaid")]
    pub authorise: bool,
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
    /// Show a job, its transitions, its settlements, and what it asked of a payment provider
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
    /// How much to reserve, in major units, such as 5.00; left out where the wallet is postpaid, unless it was created with
    /// --authorise: then how much is authorised at the payment provider
    #[arg(long, value_name = "AMOUNT")]
    pub hold: Option<String>,
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
        assert_eq!((args.hold.as_deref(), args.metadata.len()), (Some("5.00"), 1));
    }
}
