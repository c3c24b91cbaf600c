//! A seeded random walk: long sequences over several jobs and wallets, every event delivered one to three
//! times, late and in any order, while the clock moves. After EVERY step the stores must hold what the
//! model explains, and every promise about money must hold.
//!
//! Each step reads the partitions that it could have touched; every twentieth, and the last, reads all
//! tables. A failure prints its seed and the shortest prefix that fails: the steps up to the first that is
//! wrong. `HOOKLEDGER_WALK_SEQUENCES` says how many sequences; else it is 200, or 40 in a debug build,
//! where the SDK alone makes a sequence four seconds long.

use domain::planted::plant;
use fastrand::Rng;

use super::bench::{Bench, MODELS};
use super::model::{Amount, Outcome, Says};

/// Sequences of an ordinary run, over all tests of this file.
const SEQUENCES: u64 = if cfg!(debug_assertions) { 40 } else { 200 };
const STEPS: usize = 200;
/// Tests that share the sequences, so that they run side by side.
const PARTS: u64 = 8;
const TOKENS: [Amount; 8] = [0, 1, 3, 2_000_001, 3_999_999, 4_000_002, 9_999_998, 12_000_001];
const HOLDS: [Amount; 4] = [0, 1_000_000, 2_500_001, 5_000_000];

/// What was written so far.
struct Walk {
    bench: Bench,
    rng: Rng,
    jobs: usize,
    references: usize,
    /// Written events; some are not delivered yet.
    events: Vec<String>,
    /// Sequences of corrections go up, mostly.
    order: i64,
}

impl Walk {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(..from.len())]
    }

    /// One of the last jobs, or the next one, which nobody submitted yet.
    fn job(&mut self) -> String {
        let back = self.rng.usize(..5);
        format!("j{}", (self.jobs + 1).saturating_sub(back).max(1))
    }

    fn reference(&mut self) -> String {
        self.references += 1;
        format!("r{}", self.references)
    }

    fn write(&mut self) -> String {
        let job = self.job();
        let id = format!("e{}", self.events.len() + 1);
        let says = match self.rng.u32(..20) {
            0..9 => Says::Ended { outcome: Outcome::Success, tokens: self.tokens() },
            9..13 => Says::Ended { outcome: Outcome::Failure, tokens: self.tokens() },
            13 => Says::Ended { outcome: Outcome::Canceled, tokens: None },
            14..18 => {
                self.order += self.rng.i64(-1..4);
                let reference = format!("c{}", self.rng.u32(..12));
                Says::Corrected { reference, order: self.order, tokens: self.pick(&TOKENS) }
            }
            _ => Says::Extended { reference: self.reference(), amount: 1_500_000 },
        };
        self.bench.write(&id, &job, says);
        self.events.push(id.clone());
        id
    }

    fn tokens(&mut self) -> Option<Amount> {
        let tokens = self.pick(&TOKENS);
        Some(tokens).filter(|_| self.rng.u32(..8) > 0)
    }

    async fn submit(&mut self) -> Result<(), String> {
        let again = self.jobs > 0 && self.rng.u32(..5) == 0;
        if !again {
            self.jobs += 1;
        }
        let (hold, model, wallet) = (self.pick(&HOLDS), self.pick(&MODELS), self.pick(&["w1", "w2"]));
        let job = format!("j{}", self.jobs);
        if again && let Some(stands) = self.bench.model.jobs.get(&job) {
            let (wallet, hold) = (stands.wallet.clone(), stands.fate.hold);
            let other = hold + Amount::from(self.rng.bool());
            return if other == hold { Ok(()) } else { self.bench.submit(&job, &wallet, other, model).await };
        }
        self.bench.submit(&job, wallet, hold, model).await
    }

    async fn control(&mut self) -> Result<(), String> {
        let (job, reference) = (self.job(), self.reference());
        let amount = self.pick(&[1, 250_000, 1_000_000, 3_000_000]);
        let action = self.pick(&["cancel", "cancel", "extend", "extend", "reverse", "reverse", "reverse", "adjust"]);
        let amount = if action == "adjust" && self.rng.bool() { -amount } else { amount };
        self.bench.act(&job, action, &reference, amount).await
    }

    async fn deliver_some(&mut self, events: usize) -> Result<(), String> {
        for _ in 0..events {
            let id = match self.rng.u32(..3) {
                0 if !self.events.is_empty() => {
                    let place = self.rng.usize(..self.events.len());
                    self.events[place].clone() // again, or late
                }
                _ => self.write(),
            };
            let times = self.pick(&[1, 1, 1, 2, 2, 3]);
            self.bench.deliver(&id, times).await?;
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<(), String> {
        match self.rng.u32(..100) {
            0..14 => self.submit().await?,
            14..56 => self.deliver_some(1).await?,
            56..66 => {
                let events = self.rng.usize(2..4);
                self.deliver_some(events).await?;
                if self.rng.bool() {
                    self.control().await?; // while the messages are on their way
                }
            }
            66..80 => self.control().await?,
            80..86 => {
                let reference = format!("f{}", self.rng.u32(..40));
                let (wallet, amount) = (self.pick(&["w1", "w2"]), self.pick(&[2_000_000, 7_000_000]));
                self.bench.fund(wallet, &reference, amount).await?;
            }
            86..90 => drop(self.write()), // for later
            90..98 => {
                let minutes = self.rng.i64(1..9);
                return self.bench.pass(minutes).await;
            }
            98 => return self.bench.pass(31).await, // a new price
            _ => return self.bench.pass(72).await,  // beyond the life of every hold
        }
        Ok(())
    }
}

async fn sequence(seed: u64) -> Result<(), String> {
    let bench = Bench::new(seed).await;
    let mut walk = Walk { bench, rng: Rng::with_seed(seed), jobs: 0, references: 0, events: Vec::new(), order: 10 };
    for wallet in ["w1", "w2"] {
        walk.bench.fund(wallet, "first", 15_000_000).await?;
    }
    for step in 1..=STEPS {
        let full = step % 20 == 0 || step == STEPS;
        let result = match walk.step().await {
            Ok(()) => walk.bench.check(full).await,
            wrong => wrong,
        };
        if let Err(wrong) = result {
            let prefix = walk.bench.log.join("\n  ");
            return Err(format!("seed {seed}, step {step}:\n{wrong}\nthe steps up to it:\n  {prefix}"));
        }
    }
    Ok(())
}

/// One sequence in a runtime of its own, on this thread.
fn walked(seed: u64) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(sequence(seed))
}

/// This part's share of the sequences: every eighth seed.
fn part(part: u64) {
    let asked = std::env::var("HOOKLEDGER_WALK_SEQUENCES").ok().and_then(|text| text.parse().ok());
    for seed in (0..asked.unwrap_or(SEQUENCES)).filter(|seed| seed % PARTS == part) {
        if let Err(wrong) = walked(seed) {
            panic!("{wrong}");
        }
    }
}

/// A walk that finds nothing anywhere would pass for ever: it must find each of these.
#[test]
fn the_walk_finds_planted_mistakes() {
    for mistake in [
        "ours-taken-for-done",
        "version-computed-as-maximum-plus-one",
        "adjust-without-key",
        "reversal-without-its-sum",
        "release-counted-twice",
    ] {
        plant(Some(mistake));
        let found = (0..10).any(|seed| walked(seed).is_err());
        plant(None);
        assert!(found, "{mistake} went unnoticed for ten sequences");
    }
}

macro_rules! parts {
    ($($name:ident = $part:literal),+) => {
        $(#[test]
        fn $name() {
            part($part);
        })+
    };
}

parts!(
    sequences_0 = 0,
    sequences_1 = 1,
    sequences_2 = 2,
    sequences_3 = 3,
    sequences_4 = 4,
    sequences_5 = 5,
    sequences_6 = 6,
    sequences_7 = 7
);
