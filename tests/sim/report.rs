//! What is printed: for machines one JSON object, for people tables.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::planted::Finding;
use crate::scenario::Scenario;
use crate::shrink::shrink;
use crate::sweep::Report;

/// Failures that are shrunk and printed; more of them seldom say more.
const SHRUNK: usize = 3;

/// Everything that a run found.
#[derive(Debug, Default)]
pub struct Summary {
    /// Scenarios without planted mistakes.
    pub report: Report,
    /// How each planted mistake was found; empty when none was looked for.
    pub planted: Vec<Finding>,
    /// Whether one seed told one story twice, in two processes; `None` when it was not tried.
    pub deterministic: Option<bool>,
    /// Sites that were never hit count as a failure.
    pub judge_coverage: bool,
    /// Wall time.
    pub took: Duration,
}

impl Summary {
    /// True when nothing is wrong.
    pub fn passed(&self) -> bool {
        let covered = !self.judge_coverage || self.report.never_hit().is_empty();
        let bites = self.planted.iter().all(|finding| finding.seen.is_some());
        self.report.failures.is_empty() && covered && bites && self.deterministic != Some(false)
    }

    /// One JSON object.
    pub fn json(&self) -> Value {
        let report = &self.report;
        let faults: BTreeMap<&str, u64> = report.faults.iter().map(|(kind, count)| (kind.name(), *count)).collect();
        let by_site = |(site, kinds): (&String, &BTreeMap<crate::faults::Kind, u64>)| {
            let kinds: BTreeMap<&str, u64> = kinds.iter().map(|(kind, count)| (kind.name(), *count)).collect();
            (site.clone(), json!(kinds))
        };
        let coverage: BTreeMap<String, Value> = report.coverage.iter().map(by_site).collect();
        let mistakes: Vec<Value> = self.planted.iter().map(finding_json).collect();
        json!({
            "passed": self.passed(),
            "scenarios": report.scenarios,
            "calls": report.calls,
            "faults": faults,
            "faults_total": report.faults.values().sum::<u64>(),
            "call_sites": report.sites.len(),
            "call_sites_covered": report.sites.len() - report.never_hit().len(),
            "call_sites_never_hit": report.never_hit(),
            "coverage": coverage,
            "planted": self.planted.len(),
            "planted_found": self.planted.iter().filter(|finding| finding.seen.is_some()).count(),
            "mistakes": mistakes,
            "deterministic": self.deterministic,
            "violations": report.failures.len(),
            "failures": self.failures(),
            "milliseconds": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        })
    }

    fn failures(&self) -> Vec<Value> {
        let one = |(place, (scenario, violations)): (usize, &(Scenario, Vec<String>))| {
            let command = (place < SHRUNK).then(|| {
                let (small, kept) = shrink(scenario, None);
                reproduce(&small, &kept)
            });
            json!({"scenario": scenario.name, "violations": violations, "reproduce": command})
        };
        self.report.failures.iter().enumerate().map(one).collect()
    }

    /// Tables.
    pub fn print(&self) {
        let report = &self.report;
        println!("{} scenarios, {} AWS calls, {} ms", report.scenarios, report.calls, self.took.as_millis());
        for (kind, count) in &report.faults {
            println!("  {:<18}{count:>9}", kind.name());
        }
        println!("call sites (calls; faults by kind):");
        for (site, calls) in &report.sites {
            let kinds = report.coverage.get(site).cloned().unwrap_or_default();
            let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            println!("  {site}: {calls}; {}", if kinds.is_empty() { "NEVER HIT".to_owned() } else { kinds.join(", ") });
        }
        for finding in &self.planted {
            let seen = finding.seen.as_ref().map_or("NOT FOUND".to_owned(), |(by, what)| format!("{by}: {what}"));
            println!("planted {} ({} runs) {seen}", finding.mistake, finding.runs);
        }
        if let Some(same) = self.deterministic {
            println!("the same seed tells the same story in two processes: {same}");
        }
        for failure in self.failures().iter().take(10) {
            println!("FAILED {}: {}", failure["scenario"], failure["violations"]);
            println!("  {}", failure["reproduce"].as_str().unwrap_or_default());
        }
        println!("{} violations; {}", report.failures.len(), if self.passed() { "passed" } else { "FAILED" });
    }
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "mistake": finding.mistake, "runs": finding.runs,
        "found_by": finding.seen.as_ref().map(|(by, _)| by), "seen": finding.seen.as_ref().map(|(_, what)| what),
    })
}

/// The command that runs a scenario again and tells its story.
fn reproduce(small: &Scenario, kept: &[usize]) -> String {
    let what = match small.name.split_once(' ') {
        Some((kind, name)) => format!("--{kind} {name}"),
        None => String::new(),
    };
    let steps: Vec<String> = kept.iter().map(ToString::to_string).collect();
    let faults: String = small.plan.fixed.iter().map(|fault| format!(" --fault '{fault}'")).collect();
    format!("cargo run --release -p tests --bin sim -- {what} --trace --steps {} --no-faults{faults}", steps.join(","))
}
