//! `reconcile`.

use clap::Args;

use super::Common;

/// `reconcile`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("doing").args(["apply", "dismiss", "show"]))]
pub struct ReconcileArgs {
    /// Why; recorded with the run, or with the decision
    #[arg(long, required_unless_present = "show")]
    pub reason: Option<String>,
    /// The run's id and idempotency key; without it a fresh one for a new run ("pass-" and "daily-" begin the names of scheduled ones). With --apply or --dismiss the run that found the case
    #[arg(long, value_name = "ID")]
    pub reference: Option<String>,
    /// What to compare: receipts, wallets, reviews, provider-list, intents; repeat for each; without it everything
    #[arg(long = "kind", value_name = "KIND", conflicts_with = "doing",
        value_parser = ["receipts", "wallets", "reviews", "provider-list", "intents"])]
    pub kinds: Vec<String>,
    /// Receipts that arrived from this time on (RFC 3339); without it the last 48 hours
    #[arg(long, value_name = "TIME", conflicts_with = "doing")]
    pub from: Option<String>,
    /// Receipts that arrived before this time (RFC 3339); those of the last 15 minutes are always left out
    #[arg(long, value_name = "TIME", conflicts_with = "doing")]
    pub to: Option<String>,
    /// One wallet alone
    #[arg(long, num_args = 2, value_names = ["TENANT", "WALLET"], conflicts_with = "doing")]
    pub wallet: Option<Vec<String>>,
    /// One provider's own list alone
    #[arg(long, conflicts_with_all = ["doing", "wallet"])]
    pub provider: Option<String>,
    /// Apply the one action of this case instead of starting a run
    #[arg(long, value_name = "CASE", requires = "reference")]
    pub apply: Option<String>,
    /// Let the fact of this case stand instead of starting a run
    #[arg(long, value_name = "CASE", requires = "reference")]
    pub dismiss: Option<String>,
    /// Show this run again instead of starting one
    #[arg(long, value_name = "ID", conflicts_with = "reason")]
    pub show: Option<String>,
    /// Wait at most so many seconds for the run to end
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub wait: u64,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}
