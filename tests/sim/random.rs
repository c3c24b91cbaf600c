//! Scenarios by chance: everything of them follows from the seed.

use domain::limits::CLOCK_SKEW_MS;
use fastrand::Rng;

use crate::faults::{Kind, Outage, Plan};
use crate::scenario::{Action, EventSpec, JobSpec, PaymentSpec, Request, Scenario, UNIT, What};
use crate::world::{Knobs, Tells, quick_policy};

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60_000;
/// When the relay awakes in a scenario about expiry: holds live two hours.
const LATE_MS: u64 = 119 * MINUTE_MS;

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut dice = Rng::with_seed(seed);
    let late = dice.u32(..100) < 8;
    let quiet = dice.u32(..100) < 12;
    let wallets: Vec<(String, i64)> = (1..=dice.usize(1..=2)).map(|n| (format!("w{n}"), funds(&mut dice))).collect();
    let jobs: Vec<JobSpec> = (1..=dice.usize(1..=4)).map(|n| job(&mut dice, n, &wallets)).collect();
    let mut story = Story { dice, jobs: &jobs, actions: Vec::new(), late, ids: 0 };
    for place in 0..jobs.len() {
        story.job(place);
    }
    story.around(&wallets, quiet);
    let Story { mut dice, mut actions, .. } = story;
    actions.sort_by_key(|action| action.at_ms);
    let last_ms = actions.last().map_or(0, |action| action.at_ms);
    let plan = if quiet { Plan::default() } else { plan(&mut dice, last_ms) };
    let heal_ms = if quiet { last_ms } else { last_ms + dice.u64(30..=240) * SECOND_MS };
    let mut knobs = knobs(&mut dice, quiet);
    let mut plan = plan;
    tell(seed, quiet, last_ms, &mut knobs, &mut plan);
    let relay_from_ms = if late { LATE_MS } else { 0 };
    let name = format!("seed {seed}");
    let mut scenario = Scenario { name, seed, jobs, wallets, actions, knobs, plan, heal_ms, relay_from_ms, made: None };
    if scenario.is_postpaid() {
        afterwards(&mut scenario, quiet, last_ms);
    }
    scenario
}

/// What a scenario has whose wallets are charged afterwards: nothing is there at first, the payment provider tells of what it
/// was asked for, and operators give some of it back.
fn afterwards(scenario: &mut Scenario, quiet: bool, last_ms: u64) {
    let mut dice = Rng::with_seed(scenario.seed ^ 0xca11);
    scenario.wallets.iter_mut().for_each(|(_, funds)| *funds = 0);
    let mut at_ms = last_ms;
    for round in 0..dice.u64(1..=3) {
        at_ms += dice.u64(1..=90) * SECOND_MS;
        scenario.actions.push(Action { at_ms, what: What::News });
        for number in 0..dice.u32(..3) {
            let action = if dice.u32(..100) < 70 { "reverse" } else { "adjust" };
            let job = dice.usize(..scenario.jobs.len());
            let most = scenario.jobs[job].hold / 2 + 1;
            let amount = if action == "reverse" { dice.i64(1..=most) } else { dice.i64(-most..=most) | 1 };
            let request = Request { action, job, reference: format!("back-{round}-{number}"), amount };
            scenario.actions.push(Action { at_ms: at_ms + dice.u64(..40) * SECOND_MS, what: What::Ask(request) });
        }
    }
    scenario.actions.push(Action { at_ms: at_ms + 60 * SECOND_MS, what: What::News });
    scenario.actions.sort_by_key(|action| action.at_ms);
    scenario.heal_ms = if quiet { at_ms } else { at_ms + dice.u64(30..=240) * SECOND_MS };
}

/// Who is told, if anybody is: every fourth seed a queue, of the others every fifth a destination over HTTP; of what is left
/// two in nine charge. They have dice of their own, so that the other seeds are what they were.
fn tell(seed: u64, quiet: bool, last_ms: u64, knobs: &mut Knobs, plan: &mut Plan) {
    if seed.is_multiple_of(4) {
        knobs.tells = Tells::Queue;
    } else if seed.is_multiple_of(5) || seed % 6 == 1 {
        let mut dice = Rng::with_seed(seed ^ 0x07e2);
        let name = if dice.bool() { "board" } else { "desk" };
        knobs.tells = if seed.is_multiple_of(5) { Tells::Http(name) } else { charges(&mut dice) };
        knobs.policy.max_attempts = 12;
        if !quiet {
            plan.outside = [100, 300, 600][dice.usize(..3)];
            let kinds = [Kind::Refused, Kind::Silence, Kind::Internal, Kind::LostReply];
            let from_ms = dice.u64(..last_ms.max(1));
            let to_ms = from_ms + dice.u64(5..=240) * SECOND_MS;
            plan.outages.push(Outage { from_ms, to_ms, part: "outbound POST ", kind: kinds[dice.usize(..4)] });
        }
    }
}

/// The terms of wallets that are charged afterwards.
fn charges(dice: &mut Rng) -> Tells {
    let authorised = dice.bool();
    // What is authorised is at least the minimum, and the smallest jobs here cost half a cent.
    let minimum = if authorised { 0 } else { [0, 0, 50_000, 200_000][dice.usize(..4)] };
    Tells::Charges { authorised, minimum }
}

fn funds(dice: &mut Rng) -> i64 {
    match dice.u32(..10) {
        0 => UNIT / 100,
        1 | 2 => UNIT,
        _ => 50 * UNIT,
    }
}

fn job(dice: &mut Rng, number: usize, wallets: &[(String, i64)]) -> JobSpec {
    let models = ["small-1", "small-1", "cap-1", "available-1", "provisional-1", "partial-1"];
    let wallet = wallets[dice.usize(..wallets.len())].0.clone();
    let hold = [UNIT / 200, UNIT / 10, UNIT / 2, UNIT][dice.usize(..4)];
    JobSpec { job: format!("j{number}"), wallet, model: models[dice.usize(..models.len())], hold }
}

fn knobs(dice: &mut Rng, quiet: bool) -> Knobs {
    let skews = dice.bool();
    let most = if skews { CLOCK_SKEW_MS / 2 } else { 0 };
    let skew_ms = std::array::from_fn(|_| dice.i64(-most..=most));
    let impatient = !quiet && dice.u32(..100) < 35;
    Knobs {
        latency_ms: [0, 5, 40, 400][dice.usize(..4)],
        concurrency: dice.usize(1..=4),
        batch: [1, 2, 10, 10][dice.usize(..4)],
        visibility_s: if impatient { dice.i64(1..=10) } else { 180 },
        max_receives: if !quiet && dice.u32(..100) < 30 { dice.u32(2..=4) } else { 100 },
        skew_ms,
        policy: quick_policy(),
        tells: Tells::Nobody,
    }
}

fn plan(dice: &mut Rng, last_ms: u64) -> Plan {
    let rate = [0, 10, 30, 100, 250][dice.usize(..5)];
    let kinds = if dice.u32(..100) < 30 { vec![Kind::ALL[dice.usize(..Kind::ALL.len())]] } else { Kind::ALL.to_vec() };
    let parts = ["", "", "", "job ", "billing ", "receiver ", "relay ", "SendMessage", "TransactWriteItems", "PutItem"];
    let only = parts[dice.usize(..parts.len())];
    let outages = (0..dice.u32(..3)).map(|_| {
        let from_ms = dice.u64(..last_ms.max(1));
        let to_ms = from_ms + dice.u64(5..=180) * SECOND_MS;
        let parts = ["", "SendMessage", " PutItem events", "ledger", "billing ", "job ", "relay "];
        let kinds = [Kind::Refused, Kind::Internal, Kind::Throttled, Kind::Silence, Kind::LostReply];
        Outage { from_ms, to_ms, part: parts[dice.usize(..parts.len())], kind: kinds[dice.usize(..kinds.len())] }
    });
    Plan { rate, kinds, only, outages: outages.collect(), fixed: Vec::new(), outside: 0 }
}

struct Story<'a> {
    dice: Rng,
    jobs: &'a [JobSpec],
    actions: Vec<Action>,
    late: bool,
    ids: u32,
}

impl Story<'_> {
    fn at(&mut self, from_ms: u64, span_ms: u64, what: What) -> u64 {
        let at_ms = from_ms + self.dice.u64(..=span_ms);
        self.actions.push(Action { at_ms, what });
        at_ms
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.dice.u32(..100) < percent
    }

    fn event(&mut self, job: usize, kind: &'static str, usage: Option<(i64, i64)>) -> EventSpec {
        self.ids += 1;
        let sequence = self.dice.i64(1..=6);
        let id = format!("e{}", self.ids);
        EventSpec { id, kind, job, wrong_model: false, usage, sequence, reference: None, amount: None }
    }

    fn usage(&mut self, job: usize) -> (i64, i64) {
        // Mostly below the hold: 3 micros for an input token, 15 for an output token.
        let hold = self.jobs[job].hold;
        let most = if self.chance(85) { hold / 6 } else { hold };
        (self.dice.i64(0..=most / 3), self.dice.i64(0..=most / 15))
    }

    /// Sends an event: once, or several times at once, or again later.
    fn send(&mut self, from_ms: u64, span_ms: u64, event: &EventSpec) -> u64 {
        let at_ms = self.at(from_ms, span_ms, What::Deliver(event.clone()));
        if self.chance(25) {
            self.at(at_ms, 200, What::Deliver(event.clone()));
        }
        if self.chance(20) {
            self.at(at_ms, 8 * MINUTE_MS, What::Deliver(event.clone()));
        }
        at_ms
    }

    /// One job's life: when it is submitted, what happens to it.
    fn job(&mut self, job: usize) {
        let base_ms = if self.late { LATE_MS } else { 0 };
        let submitted = self.chance(95);
        let submit_after_events = !self.late && self.chance(15);
        if submitted {
            let from_ms = if submit_after_events { 30 * SECOND_MS } else { 0 };
            self.at(from_ms, 20 * SECOND_MS, What::Submit(job));
        }
        for _ in 0..self.dice.u32(..3) {
            let event = self.event(job, "job.progress", None);
            self.send(base_ms, 60 * SECOND_MS, &event);
        }
        let end_ms = self.ending(job, base_ms);
        self.corrections(job, base_ms, end_ms);
    }

    fn ending(&mut self, job: usize, base_ms: u64) -> u64 {
        let from_ms = base_ms + 15 * SECOND_MS;
        // A late job may end at any time around the expiry of its hold.
        let span_ms = if self.late { 14 * MINUTE_MS } else { 60 * SECOND_MS };
        let kind =
            ["job.completed", "job.completed", "job.completed", "job.failed", "job.canceled"][self.dice.usize(..5)];
        let usage = self.usage(job);
        let partial = self.chance(30);
        let usage = (kind == "job.completed" && !self.chance(3) || partial).then_some(usage);
        let mut event = self.event(job, kind, usage);
        event.wrong_model = self.chance(4);
        if self.late && self.chance(30) {
            return from_ms; // it never ends: its hold expires
        }
        let at_ms = self.send(from_ms, span_ms, &event);
        if self.chance(30) {
            // The same news again under a new id, or other news.
            let kind = if self.chance(60) { kind } else { "job.completed" };
            let usage = if self.chance(60) { usage } else { Some(self.usage(job)) };
            let again = self.event(job, kind, usage);
            let span_ms = if self.chance(50) { 50 } else { 90 * SECOND_MS };
            self.send(at_ms, span_ms, &again);
        }
        if self.chance(8) {
            let other = EventSpec { usage: Some((7, 7)), ..event.clone() };
            self.at(at_ms, 60 * SECOND_MS, What::Deliver(other));
        }
        at_ms
    }

    fn corrections(&mut self, job: usize, base_ms: u64, end_ms: u64) {
        if self.chance(35) {
            let count = self.dice.u32(1..=3);
            for number in 0..count {
                let usage = self.usage(job);
                let mut event = self.event(job, "usage.corrected", Some(usage));
                event.sequence = 10 + i64::from(number);
                event.reference = Some(format!("cor-{job}-{}", if self.chance(20) { 0 } else { number }));
                self.send(end_ms, 2 * MINUTE_MS, &event);
            }
        }
        if self.chance(20) {
            let mut event = self.event(job, "job.extended", None);
            event.reference = Some(format!("ext-{job}"));
            event.amount = Some(self.dice.i64(1..=UNIT / 10));
            self.send(base_ms, 80 * SECOND_MS, &event);
        }
        if self.chance(25) {
            self.ask(end_ms.saturating_sub(20 * SECOND_MS), 40 * SECOND_MS, "cancel", job, 0);
        }
        if self.chance(25) {
            let from_ms = end_ms.saturating_sub(10 * SECOND_MS);
            let amount = self.dice.i64(1..=UNIT / 10);
            self.ask(from_ms, 12 * SECOND_MS, "extend", job, amount);
        }
        if self.chance(30) {
            // Several at the same moment: together they want more than was captured.
            let amount = self.jobs[job].hold / 10 + 1;
            let from_ms = end_ms + self.dice.u64(5..=90) * SECOND_MS;
            for _ in 0..self.dice.u32(1..=3) {
                self.ask(from_ms, 100, "reverse", job, amount);
            }
        }
        if self.chance(20) {
            let amount = self.dice.i64(-1_000..=1_000);
            self.ask(end_ms, 2 * MINUTE_MS, "adjust", job, if amount == 0 { 1 } else { amount });
        }
    }

    fn ask(&mut self, from_ms: u64, span_ms: u64, action: &'static str, job: usize, amount: i64) {
        self.ids += 1;
        let request = Request { action, job, reference: format!("{action}-{}", self.ids), amount };
        self.at(from_ms, span_ms, What::Ask(request));
    }

    /// A payment into a wallet: one or two kinds of events, and refunds that may overtake them.
    fn payment(&mut self, base_ms: u64, wallet: &str) {
        let paid = self.dice.i64(1..=5_000);
        let mut news = vec![("payment_intent.succeeded", paid)];
        if self.chance(60) {
            news.push(("checkout.session.completed", paid));
        }
        let mut refunded = 0;
        for _ in 0..self.dice.u32(..3) {
            refunded = self.dice.i64(refunded..=paid);
            news.push(("charge.refunded", refunded.max(1)));
        }
        for (kind, minor) in news {
            self.ids += 1;
            let id = format!("evt_{}", self.ids);
            let payment = PaymentSpec { id, kind, payment: "pi_1".to_owned(), wallet: wallet.to_owned(), minor };
            let at_ms = self.at(base_ms, 60 * SECOND_MS, What::Pay(payment.clone()));
            if self.chance(30) {
                self.at(at_ms, 2 * MINUTE_MS, What::Pay(payment));
            }
        }
    }

    /// What happens beside the jobs.
    fn around(&mut self, wallets: &[(String, i64)], quiet: bool) {
        let base_ms = if self.late { LATE_MS } else { 0 };
        if self.chance(30) {
            let wallet = wallets[self.dice.usize(..wallets.len())].0.clone();
            let amount = self.dice.i64(1..=UNIT);
            let at_ms = self.at(base_ms, 90 * SECOND_MS, What::Fund(wallet.clone(), amount, "more".to_owned()));
            if self.chance(40) {
                self.at(at_ms, 100, What::Fund(wallet, amount, "more".to_owned()));
            }
        }
        if self.chance(30) {
            let wallet = wallets[self.dice.usize(..wallets.len())].0.clone();
            self.payment(base_ms, &wallet);
        }
        if !quiet && self.chance(12) {
            let queue = if self.chance(50) { "job" } else { "billing" };
            self.at(base_ms, 2 * MINUTE_MS, What::Purge(queue));
        }
        if self.chance(20) {
            self.at(base_ms + 2 * MINUTE_MS, 3 * MINUTE_MS, What::ExtraRelay);
        }
        self.operators(base_ms);
    }

    /// Operators who try reviews again, replay, pause, and have the records compared.
    fn operators(&mut self, base_ms: u64) {
        for number in 0..self.dice.u32(..2) {
            self.at(base_ms + 2 * MINUTE_MS, 10 * MINUTE_MS, What::Reviews(format!("retry-{number}")));
        }
        if self.chance(15) {
            let at_ms = self.at(base_ms + MINUTE_MS, 6 * MINUTE_MS, What::Replay("replay-1".to_owned()));
            if self.chance(30) {
                self.at(at_ms, 60 * SECOND_MS, What::Replay("replay-2".to_owned()));
            }
        }
        if self.chance(8) {
            let name = ["job", "billing", "acme", "stripe"][self.dice.usize(..4)];
            let for_ms = self.dice.u64(..3 * MINUTE_MS);
            self.at(base_ms, 90 * SECOND_MS, What::Pause(name, for_ms));
        }
        if self.chance(4) {
            self.at(base_ms + 16 * MINUTE_MS, 2 * MINUTE_MS, What::Reconcile("look-1".to_owned()));
        }
    }
}
