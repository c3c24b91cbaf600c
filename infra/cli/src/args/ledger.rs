//! The command lines of the money verbs: a job's further phases, statements, audit, export and import.

use std::path::PathBuf;

use clap::Args;

use super::{Common, Format, Server};

/// `job cancel`.
#[derive(Debug, Args)]
pub struct JobCancelArgs {
    /// Whose job
    pub tenant: String,
    /// Its id
    pub job: String,
    /// The idempotency key: the same reference with the same reason again changes nothing
    #[arg(long)]
    pub reference: String,
    /// Why; it is recorded with your identity
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `job extend`, `adjust` and `reverse`.
#[derive(Debug, Args)]
pub struct JobActionArgs {
    /// Whose job
    pub tenant: String,
    /// Its id
    pub job: String,
    /// The idempotency key: the same reference with the same content again changes nothing
    #[arg(long)]
    pub reference: String,
    /// How much, in major units, such as 1.50
    #[arg(long, allow_negative_numbers = true)]
    pub amount: String,
    /// Why; it is recorded with your identity
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `wallet statement`.
#[derive(Debug, Args)]
pub struct WalletStatementArgs {
    /// Whose wallet
    pub tenant: String,
    /// Its name
    pub wallet: String,
    /// Print JSON lines: the server's entries with their running `total`, then its open holds; `line` tells which
    #[arg(long)]
    pub json: bool,
    /// Print the entries as comma-separated values with a header (RFC 4180); open holds are left out
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Which server.
    #[command(flatten)]
    pub server: Server,
}

/// `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Whose wallets
    pub tenant: String,
    /// Their names
    #[arg(required = true, value_name = "WALLET")]
    pub wallets: Vec<String>,
    /// Which server.
    #[command(flatten)]
    pub server: Server,
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}

/// `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Whose wallet
    pub tenant: String,
    /// Its name
    pub wallet: String,
    /// Only entries of jobs that were submitted under this request id
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Accepted for uniformity: the output is always JSON lines
    #[arg(long)]
    pub json: bool,
    /// Which server.
    #[command(flatten)]
    pub server: Server,
}

/// `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file of JSON lines; `-` reads stdin
    pub file: PathBuf,
    /// Which server.
    #[command(flatten)]
    pub server: Server,
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}
