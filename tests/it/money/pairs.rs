//! Every ordered pair of the operations on one job, under every policy, compared with the model after each
//! step. Each is delivered one to three times: the same event again, and a completion under a new id too.
//! A pair is taken in order, from a fresh job and from one that completed; and with both on their way at
//! once, the second delivered before the first.

use super::bench::{Bench, MODELS};
use super::model::{Outcome, Says};

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Submit,
    Extend,
    ExtendByEvent,
    Complete,
    CompleteOtherwise,
    Fail,
    Cancel,
    Expire,
    Correct,
    Reverse,
    Fund,
    PriceChange,
}

const OPS: [Op; 12] = [
    Op::Submit,
    Op::Extend,
    Op::ExtendByEvent,
    Op::Complete,
    Op::CompleteOtherwise,
    Op::Fail,
    Op::Cancel,
    Op::Expire,
    Op::Correct,
    Op::Reverse,
    Op::Fund,
    Op::PriceChange,
];

/// How a pair is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One after the other, on a fresh job.
    InOrder,
    /// One after the other, on a job that completed.
    AfterSuccess,
    /// The second is delivered first, and nothing is handled before both are.
    Reordered,
}

struct Pair<'a> {
    bench: &'a mut Bench,
    job: String,
    model: &'static str,
}

impl Pair<'_> {
    /// The event of an operation, if it is one of the provider's.
    fn event(&mut self, op: Op, id: &str, order: i64) -> bool {
        let says = match op {
            Op::Complete => Says::Ended { outcome: Outcome::Success, tokens: Some(4_000_001) },
            // 5.00 or more where the hold is 2.50: the overage policy decides.
            Op::CompleteOtherwise => Says::Ended { outcome: Outcome::Success, tokens: Some(10_000_001) },
            Op::Fail => Says::Ended { outcome: Outcome::Failure, tokens: Some(1_000_001) },
            Op::Correct => Says::Corrected { reference: format!("c-{id}"), order, tokens: 3_000_001 },
            Op::ExtendByEvent => Says::Extended { reference: format!("x-{id}"), amount: 1_000_000 },
            _ => return false,
        };
        let job = self.job.clone();
        self.bench.write(id, &job, says);
        true
    }

    async fn perform(&mut self, op: Op, id: &str, times: usize) -> Result<(), String> {
        let job = self.job.clone();
        match op {
            Op::Submit => {
                for _ in 0..times {
                    self.bench.submit(&job, "w1", 2_500_000, self.model).await?;
                }
                Ok(())
            }
            Op::Extend => self.bench.act(&job, "extend", id, 1_000_000).await,
            Op::Cancel => self.bench.act(&job, "cancel", id, 0).await,
            Op::Reverse => self.bench.act(&job, "reverse", id, 500_000).await,
            Op::Fund => {
                for _ in 0..times {
                    self.bench.fund("w1", id, 1_000_000).await?;
                }
                Ok(())
            }
            Op::Expire => self.bench.pass(72).await,
            Op::PriceChange => self.bench.pass(31).await,
            _ => {
                self.bench.deliver(id, times).await?;
                let again = format!("{id}-again");
                let completion = matches!(op, Op::Complete | Op::CompleteOtherwise | Op::Fail);
                if completion && times > 1 && self.event(op, &again, 0) {
                    self.bench.check(false).await?;
                    self.bench.deliver(&again, 1).await?;
                }
                Ok(())
            }
        }
    }

    async fn run(&mut self, first: Op, second: Op, way: Way, times: [usize; 2]) -> Result<(), String> {
        let job = self.job.clone();
        let ids = [format!("{job}-1"), format!("{job}-2")];
        self.event(first, &ids[0], 1);
        self.event(second, &ids[1], 2);
        if first != Op::Submit && second != Op::Submit {
            self.perform(Op::Submit, "", 1).await?;
            self.bench.check(false).await?;
        }
        if way == Way::AfterSuccess {
            let id = format!("{job}-0");
            self.event(Op::Complete, &id, 0);
            self.bench.deliver(&id, 1).await?;
            self.bench.check(false).await?;
        }
        if way == Way::Reordered {
            self.perform(second, &ids[1], times[1]).await?;
            self.perform(first, &ids[0], times[0]).await?;
            return self.bench.check(false).await;
        }
        for ((op, id), times) in [first, second].into_iter().zip(&ids).zip(times) {
            self.perform(op, id, times).await?;
            self.bench.check(false).await?;
        }
        // Late once more: what is done stays done, what needed a person is judged anew.
        for id in ids.iter().filter(|id| self.bench.model.events.contains_key(*id)).cloned().collect::<Vec<_>>() {
            self.bench.deliver(&id, 1).await?;
            self.bench.check(false).await?;
        }
        Ok(())
    }
}

/// A world for each first operation, with a job for each second one.
fn all(model: &'static str, ways: &[Way]) {
    for (place, first) in OPS.into_iter().enumerate() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut bench = Bench::new(1).await;
            bench.fund("w1", "first", 1_000_000_000).await.unwrap();
            for (way, (other, second)) in ways.iter().flat_map(|way| OPS.into_iter().enumerate().map(move |b| (way, b)))
            {
                let job = format!("{way:?}-{other}").to_lowercase();
                let mut pair = Pair { bench: &mut bench, job, model };
                let times = [1 + (place + other) % 3, 1 + (place + 2 * other) % 3];
                let result = pair.run(first, second, *way, times).await;
                assert_eq!(result, Ok(()), "{model}: {first:?} then {second:?}, {way:?}, {times:?} times");
            }
            assert_eq!(bench.check(true).await, Ok(()), "{model}: {first:?}");
        });
    }
}

#[test]
fn every_pair_where_a_person_decides_overage() {
    all(MODELS[0], &[Way::InOrder, Way::AfterSuccess]);
}

#[test]
fn every_pair_where_the_hold_caps_the_charge() {
    all(MODELS[1], &[Way::InOrder]);
}

#[test]
fn every_pair_where_overage_comes_from_available() {
    all(MODELS[2], &[Way::InOrder]);
}

#[test]
fn every_pair_where_partial_work_is_billed() {
    all(MODELS[3], &[Way::InOrder, Way::Reordered]);
}

#[test]
fn every_pair_where_a_failure_is_provisional() {
    all(MODELS[4], &[Way::InOrder, Way::Reordered]);
}
