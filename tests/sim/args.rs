//! What the simulator is asked to do.

use clap::{Parser, ValueEnum};

use crate::faults::Fault;

/// Which scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// A bounded part of every mode, the planted mistakes, and the determinism check.
    Ci,
    /// Scenarios by seed.
    Random,
    /// Every call of every small workflow meets every fault.
    Exhaustive,
    /// Every pair of faults on the receipt and settlement paths.
    Pairs,
    /// Long scenarios with outages of minutes to days.
    Soak,
    /// Each planted mistake must be found.
    Planted,
}

/// The simulator: the real handlers under every fault, by seed.
#[derive(Debug, Parser)]
#[command(name = "sim")]
pub struct Args {
    /// Prints one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Which scenarios.
    #[arg(long, value_enum, default_value = "ci")]
    pub mode: Mode,
    /// Runs one random scenario.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Runs one small workflow; with `--mode exhaustive`, each of its calls with every fault.
    #[arg(long)]
    pub workflow: Option<String>,
    /// Runs one soak scenario.
    #[arg(long)]
    pub soak: Option<u64>,
    /// Hours that a soak scenario lasts at most.
    #[arg(long)]
    pub hours: Option<u64>,
    /// Tells the story of the one scenario.
    #[arg(long)]
    pub trace: bool,
    /// Prints the hash of the one scenario's story and nothing else.
    #[arg(long)]
    pub hash: bool,
    /// Only these steps of the one scenario, by their places, comma-separated.
    #[arg(long, value_delimiter = ',')]
    pub steps: Option<Vec<usize>>,
    /// Exactly these faults in the one scenario: SITE@NUMBER@KIND.
    #[arg(long)]
    pub fault: Vec<Fault>,
    /// No faults in the one scenario but those of `--fault`.
    #[arg(long)]
    pub no_faults: bool,
    /// Plants a mistake in the one scenario; with `--mode planted`, looks for this one alone.
    #[arg(long)]
    pub plant: Option<String>,
    /// How many random or soak scenarios.
    #[arg(long)]
    pub count: Option<u64>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub from: u64,
    /// Threads; one per core when absent.
    #[arg(long)]
    pub threads: Option<usize>,
}
