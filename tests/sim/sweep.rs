//! Many scenarios on several threads, and what they found together.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::faults::Kind;
use crate::run::{Outcome, run};
use crate::scenario::Scenario;

/// What many scenarios found.
#[derive(Debug, Default)]
pub struct Report {
    /// Scenarios run.
    pub scenarios: usize,
    /// AWS calls.
    pub calls: u64,
    /// Faults by kind.
    pub faults: BTreeMap<Kind, u64>,
    /// Calls by site.
    pub sites: BTreeMap<String, u64>,
    /// Faults by site and kind.
    pub coverage: BTreeMap<String, BTreeMap<Kind, u64>>,
    /// Scenarios in which something was wrong, with what.
    pub failures: Vec<(Scenario, Vec<String>)>,
}

impl Report {
    fn add(&mut self, scenario: Scenario, outcome: Outcome) {
        self.scenarios += 1;
        for (site, count) in outcome.sites {
            self.calls += u64::from(count);
            *self.sites.entry(site).or_default() += u64::from(count);
        }
        for fault in outcome.injected {
            *self.faults.entry(fault.kind).or_default() += 1;
            *self.coverage.entry(fault.site).or_default().entry(fault.kind).or_default() += 1;
        }
        if !outcome.violations.is_empty() {
            self.failures.push((scenario, outcome.violations));
        }
    }

    /// Adds another report.
    pub fn join(&mut self, other: Self) {
        self.scenarios += other.scenarios;
        self.calls += other.calls;
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (site, count) in other.sites {
            *self.sites.entry(site).or_default() += count;
        }
        for (site, kinds) in other.coverage {
            let known = self.coverage.entry(site).or_default();
            for (kind, count) in kinds {
                *known.entry(kind).or_default() += count;
            }
        }
        self.failures.extend(other.failures);
    }

    /// Sites that were called and never met a fault.
    pub fn never_hit(&self) -> Vec<&str> {
        self.sites.keys().filter(|site| !self.coverage.contains_key(*site)).map(String::as_str).collect()
    }
}

/// Runs `count` scenarios, made by their place, on so many threads. Stops early after many failures.
pub fn sweep(threads: usize, count: usize, make: impl Fn(usize) -> Scenario + Sync) -> Report {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut report = Report::default();
                loop {
                    let place = next.fetch_add(1, Ordering::SeqCst);
                    if place >= count || failed.load(Ordering::SeqCst) > 20 {
                        break;
                    }
                    let scenario = make(place);
                    let outcome = run(&scenario, None, false);
                    failed.fetch_add(usize::from(!outcome.violations.is_empty()), Ordering::SeqCst);
                    report.add(scenario, outcome);
                }
                reports.lock().unwrap().push(report);
            });
        }
    });
    let mut all = Report::default();
    for report in reports.into_inner().unwrap() {
        all.join(report);
    }
    all.failures.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    all
}
