//! Teeth: a simulator that finds nothing proves nothing. Each planted mistake must be found.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::planted::MISTAKES;

use crate::random;
use crate::run::run;
use crate::scenario::Scenario;
use crate::workflows;

/// Random scenarios tried per mistake after the workflows that invite it, unless another number is asked for.
pub const SEEDS: u64 = 250;

/// Other timings tried of an inviting workflow.
const VARIANTS: u64 = 25;

/// How a mistake was found, if it was.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The mistake.
    pub mistake: &'static str,
    /// Scenarios that were run.
    pub runs: usize,
    /// The scenario that showed it, and what was seen.
    pub seen: Option<(String, String)>,
}

/// Workflows whose single faults invite a mistake; random scenarios follow.
fn inviting(mistake: &str) -> &'static [&'static str] {
    match mistake {
        "ack-before-the-put" | "claim-token-ignored" => &["complete"],
        "plan-dropped-when-a-send-fails" | "cursor-advanced-before-the-writes" => &["purge"],
        "expiry-without-the-transition-check" => &["expire-race"],
        "batch-cancellation-taken-for-done" => &["batch"],
        "mismatch-stored-as-planned" => &["mismatch"],
        "other-content-taken-for-a-duplicate" => &["redeliver"],
        "version-computed-as-maximum-plus-one" => &["provisional", "complete"],
        "deduplication-id-without-generation" => &["early"],
        "adjust-without-key" => &["correct"],
        "reversal-without-its-sum" | "balance-read-last" | "sequence-not-checked" => &["reverse"],
        "condition-dropped-on-the-close" => &["two-sandboxes"],
        "older-progress-overwrites" => &["progress"],
        "funds-condition-dropped" => &["short"],
        "extension-not-checked-by-the-close" => &["extend-race"],
        "deferral-consumed-before-it-is-written" => &["early"],
        "release-counted-twice" => &["fail"],
        "funding-keyed-by-the-event" | "refund-taken-for-new" => &["payment"],
        "body-in-a-log-line" => &["complete"],
        "decision-not-recorded" => &["retry"],
        "replay-not-recorded" => &["replay"],
        "later-told-first" => &["told"],
        "new-key-on-retry"
        | "resend-past-key-life"
        | "request-rebuilt-on-retry"
        | "result-recorded-before-the-answer" => &["board"],
        "look-up-miss-taken-for-not-done" => &["sent"],
        "charge-left-out-of-its-settlement" | "carried-rest-forgotten" | "refund-beyond-its-charge" => &["charge"],
        "authorisation-left-standing" | "charge-beside-an-authorisation" => &["authorise"],
        _ => &[],
    }
}

/// Looks for one mistake.
pub fn find(mistake: &'static str, seeds: u64) -> Finding {
    let invited = inviting(mistake).iter().filter_map(|name| workflows::named(name)).flat_map(|base| {
        let singles = workflows::singles_of(&base);
        (0..VARIANTS).map(move |number| workflows::variant(&base, number)).chain(singles)
    });
    let scenarios = invited.chain((1..=seeds).map(random::scenario));
    let mut runs = 0;
    for scenario in scenarios {
        runs += 1;
        let outcome = run(&scenario, Some(mistake), false);
        if let Some(first) = outcome.violations.first() {
            return Finding { mistake, runs, seen: Some((told(&scenario), first.clone())) };
        }
    }
    Finding { mistake, runs, seen: None }
}

fn told(scenario: &Scenario) -> String {
    let faults: Vec<String> = scenario.plan.fixed.iter().map(ToString::to_string).collect();
    format!("{} {}", scenario.name, faults.join(" "))
}

/// Looks for every mistake, or for one, on so many threads.
pub fn find_all(threads: usize, seeds: u64, only: Option<&str>) -> Vec<Finding> {
    let wanted: Vec<&'static str> = MISTAKES.into_iter().filter(|name| only.is_none_or(|one| one == *name)).collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(mistake) = wanted.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let finding = find(mistake, seeds);
                    eprintln!(
                        "planted {mistake}: {} in {} runs",
                        if finding.seen.is_some() { "found" } else { "NOT FOUND" },
                        finding.runs
                    );
                    found.lock().unwrap().push(finding);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|finding| MISTAKES.iter().position(|mistake| *mistake == finding.mistake));
    found
}
