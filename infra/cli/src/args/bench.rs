//! `bench`.

use clap::Args;

use super::Format;

/// `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// How many events, each of another job
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub events: u16,
    /// Over how many wallets they are spread; settlements of one wallet in one batch are committed together
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub wallets: u16,
    /// Messages of one invocation at most; repeat for several
    #[arg(long, default_values_t = [1, 10], value_parser = clap::value_parser!(u16).range(1..=10))]
    pub batch: Vec<u16>,
    /// Which consumer comes first and so writes the transition; the billing consumer pays double for it
    #[arg(long, default_value = "billing", value_name = "CONSUMER")]
    pub first: First,
    /// For people or for machines.
    #[command(flatten)]
    pub format: Format,
}

/// The two consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum First {
    /// The job consumer
    Job,
    /// The billing consumer
    Billing,
}
