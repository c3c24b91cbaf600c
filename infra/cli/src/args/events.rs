//! `explain` and `rejected`.

use clap::Args;

use super::{Common, Format, Server};

/// `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The event as `send` and the log name it, such as acme/msg_1
    #[arg(required_unless_present_any = ["job", "payment", "booking"], conflicts_with_all = ["job", "payment", "booking"])]
    pub event: Option<String>,
    /// A job instead: itself, every event that had an effect on it, and those by which a payment provider is asked for something
    #[arg(long, value_name = "TENANT/JOB", conflicts_with_all = ["payment", "booking"])]
    pub job: Option<String>,
    /// A payment instead, by the reference under which it funded a wallet: the funding and its events
    #[arg(long, value_name = "TENANT/WALLET/REFERENCE", conflicts_with = "booking")]
    pub payment: Option<String>,
    /// A booking instead: its versions, the job that was made from it, and its events
    #[arg(long, value_name = "TENANT/BOOKING")]
    pub booking: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub server: Server,
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}

/// `rejected`.
#[derive(Debug, Args)]
pub struct RejectedArgs {
    /// The provider's name in providers.toml, such as acme; without it all of them
    pub provider: Option<String>,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}
