//! Shrinking: faults and steps are taken away as long as something is still wrong.

use crate::faults::Plan;
use crate::run::run;
use crate::scenario::{Action, Scenario};

/// Runs that a shrink may cost.
const MOST_RUNS: usize = 400;

/// The shortest scenario found, and the steps of the first one that it kept.
pub fn shrink(scenario: &Scenario, planted: Option<&'static str>) -> (Scenario, Vec<usize>) {
    let mut runs = 0;
    let mut fails = |scenario: &Scenario| {
        runs += 1;
        runs <= MOST_RUNS && !run(scenario, planted, false).violations.is_empty()
    };
    let first = run(scenario, planted, false);
    let mut best = Scenario { plan: Plan::fixed(first.injected), ..scenario.clone() };
    let all: Vec<usize> = (0..scenario.actions.len()).collect();
    if !fails(&best) {
        return (scenario.clone(), all);
    }
    let mut kept = all;
    let pick = |kept: &[usize]| -> Vec<Action> { kept.iter().map(|place| scenario.actions[*place].clone()).collect() };
    loop {
        let before = (best.plan.fixed.len(), kept.len());
        let faults =
            smaller(&best.plan.fixed, |faults| fails(&Scenario { plan: Plan::fixed(faults.to_vec()), ..best.clone() }));
        best.plan = Plan::fixed(faults);
        kept = smaller(&kept, |kept| fails(&Scenario { actions: pick(kept), made: None, ..best.clone() }));
        best.actions = pick(&kept);
        if before == (best.plan.fixed.len(), kept.len()) {
            return (best, kept);
        }
    }
}

/// Takes away parts of a list, halves first, then single members, as long as `still` holds.
fn smaller<T: Clone>(list: &[T], mut still: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut list = list.to_vec();
    let mut size = list.len().div_ceil(2);
    while size > 0 && !list.is_empty() {
        let mut at = 0;
        while at < list.len() {
            let mut fewer = list.clone();
            fewer.drain(at..(at + size).min(list.len()));
            if still(&fewer) {
                list = fewer;
            } else {
                at += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    list
}
