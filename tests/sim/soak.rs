//! Long scenarios: many jobs over hours or days, outages of minutes to a day, production's own limits and waits.

use domain::limits::RetryPolicy;
use fastrand::Rng;

use crate::faults::{Kind, Outage, Plan};
use crate::scenario::{Action, EventSpec, JobSpec, Request, Scenario, UNIT, What};
use crate::world::Knobs;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// The soak scenario of a seed, over at most so many hours.
pub fn scenario(seed: u64, most_hours: u64) -> Scenario {
    let mut dice = Rng::with_seed(seed ^ 0x50a4);
    let span_ms = dice.u64(1..=most_hours.max(1)) * HOUR_MS;
    let wallets = vec![("w1".to_owned(), 100 * UNIT), ("w2".to_owned(), UNIT)];
    let count = dice.usize(5..=12);
    let (mut jobs, mut actions) = (Vec::new(), Vec::new());
    for place in 0..count {
        let wallet = wallets[usize::from(dice.u32(..5) == 0)].0.clone();
        let model = ["small-1", "provisional-1", "available-1", "cap-1"][dice.usize(..4)];
        jobs.push(JobSpec { job: format!("j{place}"), wallet, model, hold: UNIT / 10 });
        let at_ms = dice.u64(..span_ms);
        let act = |at_ms, what| Action { at_ms, what };
        actions.push(act(at_ms, What::Submit(place)));
        let kind = ["job.completed", "job.completed", "job.failed"][dice.usize(..3)];
        let usage = (kind == "job.completed").then(|| (dice.i64(1..=5_000), dice.i64(1..=3_000)));
        let event = EventSpec {
            id: format!("e{place}"),
            kind,
            job: place,
            wrong_model: false,
            usage,
            sequence: 1,
            reference: None,
            amount: None,
        };
        let ends_ms = at_ms + dice.u64(..150 * MINUTE_MS); // some after their hold's expiry
        actions.push(act(ends_ms, What::Deliver(event.clone())));
        if dice.bool() {
            actions.push(act(ends_ms + dice.u64(..span_ms), What::Deliver(event)));
        }
        if dice.u32(..4) == 0 {
            let request = Request { action: "reverse", job: place, reference: format!("r{place}"), amount: 1_000 };
            actions.push(act(ends_ms + dice.u64(..HOUR_MS), What::Ask(request)));
        }
    }
    let plan = Plan { outages: outages(&mut dice, span_ms), rate: 5, kinds: Kind::ALL.to_vec(), ..Plan::default() };
    actions.sort_by_key(|action| action.at_ms);
    let knobs = Knobs { policy: RetryPolicy::default(), latency_ms: 30, ..Knobs::default() };
    let heal_ms = actions.last().map_or(0, |action| action.at_ms) + 10 * MINUTE_MS;
    let name = format!("soak {seed}");
    Scenario { name, seed, jobs, wallets, actions, knobs, plan, heal_ms, relay_from_ms: 0, made: None }
}

fn outages(dice: &mut Rng, span_ms: u64) -> Vec<Outage> {
    let parts = ["", "SendMessage", "ledger", "billing ", "job ", "relay ", "receiver ", " PutItem"];
    let kinds = [Kind::Refused, Kind::Internal, Kind::Throttled, Kind::LostReply];
    (0..dice.u32(1..=3))
        .map(|_| {
            let from_ms = dice.u64(..span_ms);
            let minutes = [5, 30, 120, 600][dice.usize(..4)];
            let to_ms = from_ms + dice.u64(1..=minutes) * MINUTE_MS;
            Outage { from_ms, to_ms, part: parts[dice.usize(..parts.len())], kind: kinds[dice.usize(..kinds.len())] }
        })
        .collect()
}
