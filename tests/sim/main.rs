//! The simulator: the real handlers, the real SDK and the embedded AWS under every fault, by seed.
//!
//! `cargo run --release -p tests --bin sim -- --json` runs what CI runs. `-- --seed N --trace` tells the story of
//! one scenario. One seed drives everything: what is sent and asked, how long each call takes, which calls meet
//! which faults, when sandboxes die. Time is virtual. The oracle looks at the stores after every write.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the simulator is a test: it stops at the first surprise that is its own"
)]

mod args;
mod faults;
mod net;
mod operator;
mod oracle;
mod planted;
mod provider;
mod random;
mod report;
mod run;
mod scenario;
mod secrecy;
mod shrink;
mod soak;
mod sweep;
mod there;
mod till;
mod trace;
mod wire;
mod workflows;
mod world;

use std::process::{Command, ExitCode};

use clap::Parser;

use crate::args::{Args, Mode};
use crate::faults::{Fault, Kind, Plan};
use crate::report::Summary;
use crate::scenario::Scenario;
use crate::sweep::{Report, sweep};
use crate::world::Tells;

/// Random scenarios of a CI run.
const CI_RANDOM: u64 = 520;
/// Of all single faults, and of all pairs, a CI run takes one in so many.
const CI_SINGLES: usize = 10;
const CI_PAIRS: usize = 30;
/// Scenarios at most, or at a time, for call sites that the parts missed.
const CI_RARE: usize = 60;
/// Soak scenarios of a CI run, and the hours that each lasts at most.
const CI_SOAK: u64 = 4;
const CI_SOAK_HOURS: u64 = 3;
/// Hours of a soak scenario that is run by hand.
const SOAK_HOURS: u64 = 72;
/// Seeds whose story is told twice.
const TWICE: [u64; 3] = [7, 21, 1_003];

fn main() -> ExitCode {
    let args = Args::parse();
    quiet_panics();
    secrecy::listen();
    let all_of_it = args.workflow.is_some() && args.mode == Mode::Exhaustive;
    if args.seed.is_some() || (args.workflow.is_some() && !all_of_it) || args.soak.is_some() {
        return one(&args);
    }
    let summary = many(&args);
    if args.json {
        println!("{:#}", summary.json());
    } else {
        summary.print();
    }
    if summary.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A handler's panic is its invocation's end, not a page of output; the simulator's own still speaks.
fn quiet_panics() {
    let speak = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.location().is_some_and(|place| place.file().contains("sim/")) {
            speak(info);
        }
    }));
}

fn many(args: &Args) -> Summary {
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from));
    let began = std::time::Instant::now();
    let mut summary = Summary::default();
    match args.mode {
        Mode::Exhaustive => {
            let one = args.workflow.as_ref().map(|name| workflows::named(name).expect("a workflow of this name"));
            let scenarios = one.map_or_else(workflows::singles, |base| {
                workflows::singles_of(&base).into_iter().chain([base.clone()]).collect()
            });
            summary.report = all_of(threads, &scenarios, 1);
        }
        Mode::Pairs => summary.report = all_of(threads, &workflows::pairs(), 1),
        Mode::Random => summary.report = random(threads, args.from, args.count.unwrap_or(1_000)),
        Mode::Soak => summary.report = soaked(threads, args.from, args.count.unwrap_or(20), SOAK_HOURS),
        Mode::Planted => {
            let only = args.plant.as_deref();
            summary.planted = planted::find_all(threads, args.count.unwrap_or(planted::SEEDS), only);
        }
        Mode::Ci => {
            summary.report = random(threads, args.from, args.count.unwrap_or(CI_RANDOM));
            let singles = workflows::singles();
            let clean: Vec<Scenario> = workflows::NAMES.iter().filter_map(|name| workflows::named(name)).collect();
            summary.report.join(all_of(threads, &clean, 1));
            summary.report.join(all_of(threads, &singles, CI_SINGLES));
            summary.report.join(all_of(threads, &workflows::pairs(), CI_PAIRS));
            summary.report.join(soaked(threads, args.from, CI_SOAK, CI_SOAK_HOURS));
            // Rare call sites that the parts above missed meet their faults too; one that no workflow calls stays unhit.
            let missed: Vec<String> = summary.report.never_hit().into_iter().map(str::to_owned).collect();
            let hits = |scenario: &&Scenario| scenario.plan.fixed.iter().any(|fault| missed.contains(&fault.site));
            let rare: Vec<Scenario> = singles.iter().filter(hits).take(CI_RARE).cloned().collect();
            summary.report.join(all_of(threads, &rare, 1));
            let missed: Vec<String> = summary.report.never_hit().into_iter().map(str::to_owned).collect();
            for some in just_there(&missed, args.from).chunks(CI_RARE) {
                if summary.report.never_hit().is_empty() {
                    break;
                }
                summary.report.join(all_of(threads, some, 1));
            }
            summary.planted = planted::find_all(threads, planted::SEEDS, None);
            summary.deterministic = Some(TWICE.into_iter().all(tells_the_same_elsewhere));
            summary.judge_coverage = true;
        }
    }
    summary.took = began.elapsed();
    summary
}

/// The random scenarios of a CI run in which somebody is told, with the first call of each of these sites answered by
/// nothing: sites that no small workflow calls, since they are calls of what is told.
fn just_there(sites: &[String], from: u64) -> Vec<Scenario> {
    if sites.is_empty() {
        return Vec::new();
    }
    let fault = |site: &String| Fault { site: site.clone(), number: 1, kind: Kind::LostReply };
    let told = (from..from + CI_RANDOM).map(random::scenario).filter(|one| one.knobs.tells != Tells::Nobody);
    told.map(|mut scenario| {
        scenario.plan.fixed.extend(sites.iter().map(fault));
        scenario
    })
    .collect()
}

fn random(threads: usize, from: u64, count: u64) -> Report {
    sweep(threads, usize::try_from(count).unwrap(), |place| random::scenario(from + u64::try_from(place).unwrap()))
}

fn soaked(threads: usize, from: u64, count: u64, hours: u64) -> Report {
    sweep(threads, usize::try_from(count).unwrap(), |place| soak::scenario(from + u64::try_from(place).unwrap(), hours))
}

fn all_of(threads: usize, scenarios: &[Scenario], one_in: usize) -> Report {
    sweep(threads, scenarios.len().div_ceil(one_in), |place| scenarios[place * one_in].clone())
}

/// Runs a seed here and in a process of its own.
fn tells_the_same_elsewhere(seed: u64) -> bool {
    let here = run::run(&random::scenario(seed), None, false).hash;
    let own = std::env::current_exe().expect("a program knows its own path");
    let elsewhere = Command::new(own).args(["--hash", "--seed", &seed.to_string()]).output();
    elsewhere.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == here)
}

fn one(args: &Args) -> ExitCode {
    let mut scenario = match (args.seed, &args.workflow, args.soak) {
        (Some(seed), ..) => random::scenario(seed),
        (None, Some(name), _) => workflows::named(name).expect("a workflow of this name"),
        (None, None, Some(seed)) => soak::scenario(seed, args.hours.unwrap_or(SOAK_HOURS)),
        (None, None, None) => return ExitCode::FAILURE,
    };
    if let Some(steps) = &args.steps {
        let pick = |place: &usize| scenario.actions.get(*place).cloned();
        scenario.actions = steps.iter().filter_map(pick).collect();
        scenario.made = None; // which is of all of them
    }
    if args.no_faults || !args.fault.is_empty() {
        scenario.plan = Plan::fixed(args.fault.clone());
    }
    let named = |name: &String| domain::planted::MISTAKES.iter().find(|m| *m == name).copied();
    let planted = args.plant.as_ref().map(|name| named(name).expect("a mistake of this name"));
    let outcome = run::run(&scenario, planted, args.trace);
    if args.hash {
        println!("{}", outcome.hash);
        return ExitCode::SUCCESS;
    }
    for line in &outcome.story {
        println!("{line}");
    }
    println!("{}: story {}, violations {:?}", scenario.name, outcome.hash, outcome.violations);
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
