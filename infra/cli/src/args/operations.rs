//! The command lines of the operator's verbs: reviews, replay, pause, resume and status.

use clap::{Args, Subcommand};

use super::Common;

/// `reviews` with or without `resolve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ReviewsArgs {
    /// Decide on reviews
    #[command(subcommand)]
    pub verb: Option<ReviewsVerb>,
    /// Which reviews.
    #[command(flatten)]
    pub filter: ReviewFilter,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// Which reviews are meant.
#[derive(Debug, Args)]
pub struct ReviewFilter {
    /// Only those of one provider's events
    #[arg(long)]
    pub provider: Option<String>,
    /// Only those of one tenant
    #[arg(long)]
    pub tenant: Option<String>,
    /// Only those of one class, such as overage, expired, attempts-exhausted, mismatch or conflict
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Only those that are older: seconds, or a number with s, m, h or d
    #[arg(long, value_name = "SPAN")]
    pub older_than: Option<String>,
}

/// `reviews ...`.
#[derive(Debug, Subcommand)]
pub enum ReviewsVerb {
    /// Try again, approve or close one review, or all that a filter takes
    ///
    /// retry: fresh attempts, and the business expiry is waived where the event is past it. approve: a charge above the
    /// hold is settled by --alternative cap or available in place of the job's policy; with resend, what was sent with an
    /// unknown outcome is sent once more under the same key. close: nothing is to be done any more; for a
    /// settlement whose hold is open give --release too. The decision is recorded with your identity.
    Resolve(ResolveArgs),
}

/// What to do with a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ReviewAction {
    /// Try it again
    Retry,
    /// Settle a charge above the hold, or send once more what has an unknown outcome, by --alternative
    Approve,
    /// Nothing is to be done any more
    Close,
}

/// In place of the rule that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OverageAlternative {
    /// The hold is the most that is charged
    Cap,
    /// What is above the hold comes from the available balance
    Available,
    /// What was sent with an unknown outcome is sent once more: you have looked, and it is not there
    Resend,
}

/// `reviews resolve`.
#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// The review as the list shows it; without it, every review that the filter takes
    #[arg(required_unless_present_any = ["provider", "tenant", "class", "older_than", "all"])]
    #[arg(conflicts_with_all = ["provider", "tenant", "class", "older_than", "all", "dry_run"])]
    pub id: Option<String>,
    /// Every open review, without a filter
    #[arg(long)]
    pub all: bool,
    /// Which reviews.
    #[command(flatten)]
    pub filter: ReviewFilter,
    /// What to do
    #[arg(long)]
    pub action: ReviewAction,
    /// For an approval: how the charge above the hold is settled, or that it is sent again
    #[arg(long, required_if_eq("action", "approve"))]
    pub alternative: Option<OverageAlternative>,
    /// Why; it is recorded with your identity
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Closing a settlement: give its open hold back
    #[arg(long)]
    pub release: bool,
    /// An idempotency key of yours: the same decision under it again changes nothing, even later
    #[arg(long)]
    pub reference: Option<String>,
    /// Only say what would be decided; for a filter
    #[arg(long)]
    pub dry_run: bool,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Events as `send` and the log name them, such as acme/msg_1
    #[arg(required_unless_present = "provider", conflicts_with_all = ["provider", "from", "to", "states"], value_name = "EVENT")]
    pub events: Vec<String>,
    /// A provider's events of a window instead
    #[arg(long, requires_all = ["from", "to"])]
    pub provider: Option<String>,
    /// Begin of the window, by arrival: 2026-11-29T12:00:00Z
    #[arg(long, value_name = "TIME", requires = "provider")]
    pub from: Option<String>,
    /// End of the window, not included
    #[arg(long, value_name = "TIME", requires = "provider")]
    pub to: Option<String>,
    /// Only events in this state, such as needs-review, partially-failed (a review, and another operation done),
    /// quarantined or ignored; repeat for more. Without it, what is neither completed nor ignored
    #[arg(long = "state", value_name = "STATE", requires = "provider")]
    pub states: Vec<String>,
    /// Why; it is recorded with your identity
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The key of this replay: the same again reports what it did; without it a fresh one
    #[arg(long)]
    pub reference: Option<String>,
    /// Only say what would happen to each event
    #[arg(long)]
    pub dry_run: bool,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `pause` and `resume`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// `job`, `billing`, `outbound`, or a provider
    #[arg(value_name = "CONSUMER|PROVIDER")]
    pub name: String,
    /// Why; it is recorded with your identity
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}

/// `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Server and format.
    #[command(flatten)]
    pub common: Common,
}
