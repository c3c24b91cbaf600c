//! The network between the functions and AWS: every call of every function passes here, is named, takes
//! time, and may meet a fault.
//!
//! A call is known by its site (function, operation, tables) and its number at that site. Whatever happens to it
//! (how long it takes, whether and how it fails) follows from the seed and that name alone, so a scenario from
//! which a fault or a step was taken away stays as like the first as it can: that is what shrinking needs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::faults::{Fault, Kind, Plan};
use crate::trace::Trace;

tokio::task_local! {
    /// The invocation that the running task belongs to.
    pub static INVOCATION: Arc<Invocation>;
}

/// One run of a function in one sandbox.
#[derive(Debug)]
pub struct Invocation {
    /// `billing#3`.
    pub name: String,
    dead: AtomicBool,
    killed: Notify,
}

impl Invocation {
    /// The sandbox dies: its future is dropped at its next wait.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.killed.notify_one();
    }

    async fn killed(&self) {
        if !self.dead.load(Ordering::SeqCst) {
            self.killed.notified().await;
        }
    }
}

/// What is counted and decided per scenario.
#[derive(Debug, Default)]
pub struct State {
    /// Calls made, by site.
    pub sites: BTreeMap<String, u32>,
    /// Faults that happened, in order.
    pub injected: Vec<Fault>,
    /// Invocations begun, by function.
    invocations: BTreeMap<&'static str, u32>,
    /// When a key was last written, in ms of the scenario: for stale indexes.
    pub written: BTreeMap<String, u64>,
    plan: Plan,
    /// No more faults.
    pub healed: bool,
    /// The story and its hash.
    pub trace: Trace,
    /// What the oracle found wrong, first things first.
    pub violations: Vec<String>,
}

/// The network of one scenario. Clones share it.
#[derive(Clone)]
pub struct Net {
    state: Arc<Mutex<State>>,
    /// The scenario's seed.
    pub seed: u64,
    begin: Instant,
    /// The most that one way of a call takes, in ms.
    latency_ms: u64,
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Net")
    }
}

impl Net {
    /// A network that begins now.
    pub fn new(seed: u64, plan: Plan, latency_ms: u64, keep_story: bool) -> Self {
        let state = State { plan, trace: Trace::new(keep_story), ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), seed, begin: Instant::now(), latency_ms }
    }

    /// The shared state; a panic elsewhere does not close it.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Virtual milliseconds since the scenario began.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Writes a line of the story.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let at_ms = self.elapsed_ms();
        self.lock().trace.line(at_ms, line);
    }

    /// Records a violation.
    pub fn violation(&self, text: String) {
        let at_ms = self.elapsed_ms();
        let mut state = self.lock();
        if state.violations.len() < 5 && !state.violations.contains(&text) {
            state.trace.line(at_ms, || format!("VIOLATION {text}"));
            state.violations.push(text);
        }
    }

    /// True once something was found wrong.
    pub fn failed(&self) -> bool {
        !self.lock().violations.is_empty()
    }

    /// The faults stop.
    pub fn heal(&self) {
        self.lock().healed = true;
        self.tell(|| "---- the faults stop ----".to_owned());
    }

    /// True once they have stopped.
    pub fn is_healed(&self) -> bool {
        self.lock().healed
    }

    /// Runs a function once; `None` when its sandbox was killed.
    pub async fn invoke<T>(&self, function: &'static str, run: impl Future<Output = T>) -> Option<T> {
        let invocation = {
            let mut state = self.lock();
            let number = state.invocations.entry(function).or_default();
            *number += 1;
            let name = format!("{function}#{number}");
            Arc::new(Invocation { name, dead: AtomicBool::new(false), killed: Notify::new() })
        };
        let own = invocation.clone();
        INVOCATION
            .scope(invocation, async move {
                tokio::select! {
                    biased;
                    () = own.killed() => None,
                    result = run => Some(result),
                }
            })
            .await
    }

    /// Names a call, counts it, and says which fault it meets.
    pub fn decide(&self, site: &str) -> (u32, Option<Kind>) {
        let at_ms = self.elapsed_ms();
        let mut state = self.lock();
        let number = state.sites.entry(site.to_owned()).or_default();
        *number += 1;
        let number = *number;
        if state.healed {
            return (number, None);
        }
        let kind = state.plan.fault(self.seed, site, number, at_ms);
        if let Some(kind) = kind {
            state.injected.push(Fault { site: site.to_owned(), number, kind });
        }
        (number, kind)
    }

    /// A number that follows from the seed, the call and a purpose.
    pub fn dice(&self, site: &str, number: u32, purpose: u64) -> u64 {
        dice(self.seed, site, number, purpose)
    }

    /// How long one way of a call takes.
    pub fn way_ms(&self, site: &str, number: u32, purpose: u64) -> u64 {
        match self.latency_ms {
            0 => 0,
            most => self.dice(site, number, purpose) % (most + 1),
        }
    }
}

/// A number that follows from a seed, a call and a purpose: FNV-1a, then a finalizer (splitmix64).
pub fn dice(seed: u64, site: &str, number: u32, purpose: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut hash = site.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash ^= u64::from(number).wrapping_mul(0xff51_afd7_ed55_8ccd) ^ purpose.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
