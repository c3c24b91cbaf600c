//! Small workflows, each of whose calls meets every fault in turn.

use crate::faults::{Fault, Kind, Outage, Plan};
use crate::run::run;
use crate::scenario::{Action, EventSpec, JobSpec, PaymentSpec, Request, Scenario, UNIT, What};
use crate::world::{Knobs, Tells};

/// When the relay awakes in workflows about expiry.
const LATE_MS: u64 = 119 * 60_000;
/// How often a call site is failed, beginning with its first call.
const PER_SITE: u32 = 6;
/// The same for the relay, whose runs are alike.
const PER_RELAY_SITE: u32 = 4;

/// The names of all workflows.
pub const NAMES: [&str; 33] = [
    "complete",
    "fail",
    "cancel",
    "correct",
    "early",
    "batch",
    "expire",
    "expire-late-success",
    "extend",
    "reverse",
    "progress",
    "dead-letter",
    "redeliver",
    "mismatch",
    "twice",
    "provisional",
    "fund",
    "purge",
    "expire-race",
    "two-sandboxes",
    "short",
    "extend-race",
    "cancel-expired",
    "payment",
    "retry",
    "replay",
    "pause",
    "reconcile",
    "told",
    "board",
    "sent",
    "charge",
    "authorise",
];

fn event(id: &str, kind: &'static str, job: usize, usage: Option<(i64, i64)>) -> EventSpec {
    let id = id.to_owned();
    EventSpec { id, kind, job, wrong_model: false, usage, sequence: 3, reference: None, amount: None }
}

fn deliver(at_s: u64, event: &EventSpec) -> Action {
    Action { at_ms: at_s * 1_000, what: What::Deliver(event.clone()) }
}

fn ask(at_s: u64, action: &'static str, reference: &str, amount: i64) -> Action {
    let request = Request { action, job: 0, reference: reference.to_owned(), amount };
    Action { at_ms: at_s * 1_000, what: What::Ask(request) }
}

fn submit(at_s: u64, job: usize) -> Action {
    Action { at_ms: at_s * 1_000, what: What::Submit(job) }
}

/// A workflow by its name, without faults.
pub fn named(name: &str) -> Option<Scenario> {
    let place = NAMES.iter().position(|known| *known == name)?;
    let job = |n: usize, model| JobSpec { job: format!("j{n}"), wallet: "w1".to_owned(), model, hold: UNIT };
    let done = event("e1", "job.completed", 0, Some((1_200, 340)));
    let mut scenario = Scenario {
        name: format!("workflow {name}"),
        seed: 1_000 + u64::try_from(place).unwrap(),
        jobs: vec![job(1, "small-1"), job(2, "small-1"), job(3, "small-1")],
        wallets: vec![("w1".to_owned(), 10 * UNIT)],
        actions: vec![submit(0, 0)],
        knobs: Knobs::default(),
        plan: Plan::default(),
        heal_ms: 60_000,
        relay_from_ms: 0,
        made: None,
    };
    if name == "early" {
        scenario.actions = vec![deliver(1, &done), submit(40, 0)];
    } else {
        let more = plain(name, &done).or_else(|| late(name, &mut scenario, &done));
        let more = more.or_else(|| tuned(name, &mut scenario, &done));
        let more = more.or_else(|| outside(name, &mut scenario, &done))?;
        scenario.actions.extend(more);
    }
    let last_ms = scenario.actions.iter().map(|action| action.at_ms).max().unwrap_or(0);
    scenario.heal_ms = scenario.heal_ms.max(last_ms + 60_000);
    Some(scenario)
}

/// Workflows with nothing out of the ordinary.
fn plain(name: &str, done: &EventSpec) -> Option<Vec<Action>> {
    Some(match name {
        "complete" => vec![deliver(2, done)],
        "fail" => vec![deliver(2, &event("e1", "job.failed", 0, None))],
        "cancel" => vec![ask(2, "cancel", "c-1", 0), deliver(3, &event("e1", "job.canceled", 0, None))],
        "correct" => {
            let correction = EventSpec {
                reference: Some("cor-1".to_owned()),
                sequence: 10,
                ..event("e2", "usage.corrected", 0, Some((1_000, 400)))
            };
            let second = EventSpec {
                id: "e3".to_owned(),
                reference: Some("cor-2".to_owned()),
                sequence: 11,
                ..correction.clone()
            };
            vec![deliver(2, done), deliver(6, &correction), deliver(7, &second)]
        }
        "batch" => {
            let others =
                [1, 2].map(|job| deliver(2, &event(&format!("e{}", job + 1), "job.completed", job, Some((10, 20)))));
            [submit(0, 1), submit(0, 2), deliver(2, done)].into_iter().chain(others).collect()
        }
        "extend" => {
            let extension = EventSpec {
                reference: Some("ext-2".to_owned()),
                amount: Some(1_000),
                ..event("e2", "job.extended", 0, None)
            };
            vec![ask(2, "extend", "ext-1", 5_000), deliver(2, &extension), deliver(3, done)]
        }
        "reverse" => vec![
            deliver(2, done),
            ask(5, "reverse", "r-1", 8_000),
            ask(5, "reverse", "r-2", 1_200), // together more than was captured
            ask(8, "adjust", "a-1", 500),
        ],
        "progress" => {
            let update = |id: &str, sequence| EventSpec { sequence, ..event(id, "job.progress", 0, None) };
            vec![deliver(2, &update("p1", 1)), deliver(3, &update("p2", 2)), deliver(20, done)]
        }
        "redeliver" => {
            let other = EventSpec { usage: Some((7, 7)), ..done.clone() };
            vec![deliver(2, done), deliver(2, done), deliver(30, done), deliver(40, &other)]
        }
        "mismatch" => vec![deliver(4, &EventSpec { wrong_model: true, ..done.clone() })],
        "twice" => vec![
            deliver(2, done),
            deliver(2, &event("e2", "job.completed", 0, Some((1_200, 340)))),
            deliver(3, &event("e3", "job.completed", 0, Some((1, 1)))),
        ],
        "payment" => {
            let news = |at_s: u64, id: &str, kind, minor| {
                let (id, payment, wallet) = (id.to_owned(), "pi_1".to_owned(), "w1".to_owned());
                let what = What::Pay(PaymentSpec { id, kind, payment, wallet, minor });
                Action { at_ms: at_s * 1_000, what }
            };
            vec![
                news(2, "evt_3", "charge.refunded", 300), // it overtakes the news of the payment
                news(3, "evt_1", "payment_intent.succeeded", 1_000),
                news(3, "evt_2", "checkout.session.completed", 1_000),
                news(20, "evt_4", "charge.refunded", 450),
            ]
        }
        "fund" => vec![
            Action { at_ms: 500, what: What::Wallet("w2".to_owned()) },
            Action { at_ms: 20_000, what: What::Fund("w2".to_owned(), UNIT, "first".to_owned()) },
            Action { at_ms: 1_000, what: What::Fund("w1".to_owned(), UNIT, "more".to_owned()) },
            Action { at_ms: 1_000, what: What::Fund("w1".to_owned(), UNIT, "more".to_owned()) },
        ],
        _ => return None,
    })
}

/// Workflows around the expiry of holds.
fn late(name: &str, scenario: &mut Scenario, done: &EventSpec) -> Option<Vec<Action>> {
    Some(match name {
        "expire-race" => {
            // Four jobs end one after the other while the sweep that closes their holds is at work.
            scenario.relay_from_ms = LATE_MS;
            scenario.knobs.latency_ms = 200;
            let swept_s = LATE_MS / 1_000 + 11 * 60; // the first run after the bucket of their expiry
            let ends = (0..3).flat_map(|job| {
                (0..1).map(move |_| {
                    deliver(
                        swept_s + 2 * u64::try_from(job).unwrap_or(0),
                        &event(&format!("e{job}"), "job.failed", job, None),
                    )
                })
            });
            [submit(0, 1), submit(0, 2)].into_iter().chain(ends).collect()
        }
        "expire" | "expire-late-success" | "cancel-expired" => {
            scenario.relay_from_ms = LATE_MS;
            scenario.heal_ms = LATE_MS + 16 * 60_000;
            let at_s = LATE_MS / 1_000 + 14 * 60;
            match name {
                "expire" => Vec::new(),
                "cancel-expired" => vec![ask(at_s, "cancel", "c-1", 0)],
                _ => vec![deliver(at_s, done)],
            }
        }
        _ => return None,
    })
}

/// Workflows under conditions of their own.
fn tuned(name: &str, scenario: &mut Scenario, done: &EventSpec) -> Option<Vec<Action>> {
    Some(match name {
        "two-sandboxes" => {
            // A message becomes visible again under its running handler.
            scenario.knobs = Knobs { visibility_s: 1, latency_ms: 250, ..Knobs::default() };
            vec![submit(0, 1), deliver(4, &event("e1", "job.failed", 0, None))]
        }
        "short" => {
            scenario.wallets[0].1 = UNIT * 3 / 2; // enough for one hold
            vec![submit(0, 1), submit(0, 2), deliver(2, done)]
        }
        "extend-race" => {
            // The job side is away, so that only the close could keep an extension out.
            scenario.plan.outages = vec![Outage { from_ms: 0, to_ms: 6_000, part: "job ", kind: Kind::Silence }];
            scenario.knobs.latency_ms = 60;
            let asks = (0..6).map(|number| {
                let mut action = ask(2, "extend", &format!("ext-{number}"), 5_000);
                action.at_ms += 150 * number;
                action
            });
            asks.chain([deliver(2, done)]).collect()
        }
        // A success without usage is a person's; tried again, it is one again.
        "retry" => vec![
            deliver(2, &event("e1", "job.completed", 0, None)),
            Action { at_ms: 30_000, what: What::Reviews("retry-1".to_owned()) },
        ],
        "replay" => vec![
            deliver(2, done),
            deliver(2, &event("e2", "job.completed", 1, None)),
            submit(1, 1),
            Action { at_ms: 30_000, what: What::Replay("replay-1".to_owned()) },
        ],
        "pause" => {
            scenario.heal_ms = 30 * 60_000; // the relay resumes what waited, and then takes the switch off its list
            vec![Action { at_ms: 1_000, what: What::Pause("billing", 20_000) }, deliver(3, done)]
        }
        "reconcile" => {
            let at_ms = 17 * 60_000;
            scenario.heal_ms = at_ms + 40 * 60_000; // the schedule takes the run off its list
            vec![deliver(2, done), Action { at_ms, what: What::Reconcile("look-1".to_owned()) }]
        }
        // Everything that is told, in order: ends, settlements, a correction, a review, and a balance that falls.
        "told" => {
            scenario.knobs.tells = Tells::Queue;
            scenario.wallets[0].1 = UNIT * 5 / 2;
            // The first of what is told cannot leave, and what comes after it could.
            let away = Outage { from_ms: 2_000, to_ms: 4_500, part: "outbound SendMessage", kind: Kind::Internal };
            scenario.plan.outages = vec![away];
            vec![
                submit(0, 1),
                deliver(2, done),
                deliver(2, &event("e2", "job.completed", 1, None)),
                ask(20, "adjust", "adj-1", 1_000),
                ask(22, "reverse", "rev-1", 500),
            ]
        }
        "dead-letter" => {
            scenario.knobs = Knobs { max_receives: 2, visibility_s: 5, ..Knobs::default() };
            let down = |part, to_ms| Outage { from_ms: 2_000, to_ms, part, kind: Kind::Internal };
            scenario.plan.outages = vec![down("job ", 100_000), down("billing ", 100_000)];
            scenario.heal_ms = 200_000;
            vec![deliver(2, done)]
        }
        "provisional" => {
            scenario.jobs[0].model = "provisional-1";
            vec![deliver(2, &event("e0", "job.failed", 0, None)), deliver(8, done)]
        }
        "purge" => {
            let lost = Outage { from_ms: 2_000, to_ms: 20_000, part: "SendMessage", kind: Kind::Internal };
            scenario.plan.outages = vec![lost];
            vec![deliver(2, done)]
        }
        _ => return None,
    })
}

/// Workflows in which something leaves for a destination outside.
fn outside(name: &str, scenario: &mut Scenario, done: &EventSpec) -> Option<Vec<Action>> {
    let away = |from_ms, to_ms, kind| Outage { from_ms, to_ms, part: "outbound POST ", kind };
    let large = EventSpec { usage: Some((100_000, 20_000)), ..done.clone() }; // 60 cents
    let news = |at_s: u64| Action { at_ms: at_s * 1_000, what: What::News };
    Some(match name {
        // Told over HTTP: the first requests are done and their answers lost; then the destination is away until it has
        // forgotten their keys.
        "board" => {
            scenario.knobs.tells = Tells::Http("board");
            scenario.knobs.policy.max_attempts = 12;
            scenario.plan.outages = vec![away(0, 4_000, Kind::LostReply), away(4_000, 150_000, Kind::Refused)];
            scenario.heal_ms = 200_000;
            vec![deliver(2, done)]
        }
        // The first requests to one that keeps no keys arrive long after they were given up: it has to be asked.
        "sent" => {
            scenario.knobs.tells = Tells::Http("desk");
            scenario.plan.outages = vec![away(0, 58_000, Kind::AppliedLate)];
            scenario.heal_ms = 120_000;
            vec![deliver(51, done)] // the relay tries again while the requests are on their way
        }
        // Charged afterwards: a job worth 60 cents, one worth less than one, a correction, payments told of, and refunds of
        // which the last goes back to the correction's charge.
        "charge" => {
            scenario.knobs.tells = Tells::Charges { authorised: false, minimum: 0 };
            scenario.wallets[0].1 = 0;
            scenario.heal_ms = 150_000;
            // 0.87 cents are carried; 6.87 are 6; 29.13, 30.13 and 6.13 go back as 29, 30 and 6; of 2.37 two are charged.
            scenario.made = Some(&[-30, -29, -6, 2, 6, 60]);
            let correction = EventSpec {
                reference: Some("cor-1".to_owned()),
                sequence: 10,
                ..event("e3", "usage.corrected", 0, Some((120_000, 20_000)))
            };
            vec![
                submit(0, 1),
                deliver(2, &large),
                deliver(2, &event("e2", "job.completed", 1, Some((1_200, 340)))),
                deliver(8, &correction),
                news(20),
                ask(30, "reverse", "r-1", 300_000),
                ask(32, "reverse", "r-2", 300_000),
                ask(34, "reverse", "r-3", 60_000), // of the correction's charge, which has more left: of the first it is one cent
                ask(40, "adjust", "a-1", 25_000),
                news(60),
            ]
        }
        // One dollar authorised for each of three jobs: one captures a part of it, one fails, one costs more. Their
        // authorisations are still on their way when they end.
        "authorise" => {
            scenario.knobs.tells = Tells::Charges { authorised: true, minimum: 0 };
            scenario.wallets[0].1 = 0;
            scenario.plan.outages = vec![away(0, 5_000, Kind::Refused)];
            scenario.made = Some(&[-30, 60, 150]);
            scenario.heal_ms = 200_000;
            vec![
                submit(0, 1),
                submit(0, 2),
                deliver(2, &large),
                deliver(2, &event("e2", "job.failed", 1, None)),
                deliver(3, &event("e3", "job.completed", 2, Some((300_000, 40_000)))),
                news(100), // the relay has sent again what was refused
                ask(110, "reverse", "r-1", 300_000),
                news(130),
            ]
        }
        _ => return None,
    })
}

/// Every call of every workflow, with every fault that fits it.
pub fn singles() -> Vec<Scenario> {
    let mut all = Vec::new();
    for base in NAMES.iter().filter_map(|name| named(name)) {
        all.extend(singles_of(&base));
        all.push(base);
    }
    all
}

/// The same workflow at other times: other latencies, and deliveries a little later.
pub fn variant(base: &Scenario, number: u64) -> Scenario {
    let mut scenario = Scenario { seed: base.seed + 1_000 * number, ..base.clone() };
    for action in &mut scenario.actions {
        if matches!(action.what, What::Deliver(_)) {
            action.at_ms += 130 * number;
        }
    }
    scenario
}

/// Every call of one workflow, with every fault that fits it.
pub fn singles_of(base: &Scenario) -> Vec<Scenario> {
    calls_and_kinds(base).into_iter().map(|fault| with(base, vec![fault])).collect()
}

/// Every pair of faults on the receipt and settlement paths: the calls of receiver, job and billing.
pub fn pairs() -> Vec<Scenario> {
    let mut all = Vec::new();
    for base in ["complete", "fail"].iter().filter_map(|name| named(name)) {
        let singles: Vec<Fault> = calls_and_kinds(&base)
            .into_iter()
            .filter(|fault| ["receiver ", "job ", "billing "].iter().any(|part| fault.site.starts_with(part)))
            .filter(|fault| fault.number <= 2)
            .collect();
        for (place, first) in singles.iter().enumerate() {
            for second in &singles[place + 1..] {
                if (&first.site, first.number) != (&second.site, second.number) {
                    all.push(with(&base, vec![first.clone(), second.clone()]));
                }
            }
        }
    }
    all
}

fn with(base: &Scenario, faults: Vec<Fault>) -> Scenario {
    let mut scenario = base.clone();
    scenario.plan.fixed = faults;
    scenario
}

/// The faults that the calls of a clean run can meet, and those of the next call at each site, which a fault may cause.
fn calls_and_kinds(base: &Scenario) -> Vec<Fault> {
    let clean = run(base, None, false);
    let mut all = Vec::new();
    for (site, count) in &clean.sites {
        let most = if site.starts_with("relay ") { PER_RELAY_SITE } else { PER_SITE };
        for number in 1..=(*count).min(most) {
            let fitting = Kind::ALL.into_iter().chain(Kind::THERE).filter(|kind| kind.fits(site));
            all.extend(fitting.map(|kind| Fault { site: site.clone(), number, kind }));
        }
    }
    all
}
