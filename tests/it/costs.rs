//! What an event costs, against its limits: counts of the embedded stack, no time.
//!
//! `HOOKLEDGER_COST_EVENTS=20` takes fewer events than the thousand; the means differ by what the sweeps spend once.

use domain::operation::Consumer;
use local::costs::{Measured, Scenario, measure, prices};

fn events() -> usize {
    std::env::var("HOOKLEDGER_COST_EVENTS").map_or(1_000, |text| text.parse().unwrap())
}

async fn measured(batch: usize, first: Consumer, events: usize) -> Measured {
    measure(Scenario { events, wallets: 1, batch, first }).await.unwrap()
}

/// Thousandths of a unit for one event.
fn mean(sum: u64, measured: &Measured) -> u64 {
    sum.div_ceil(measured.straight.events)
}

#[tokio::test(start_paused = true)]
async fn one_by_one_an_event_costs_nine_write_units_whoever_comes_first() {
    let one = measured(1, Consumer::Billing, events()).await;
    let few = measured(1, Consumer::Job, 20).await;
    for run in [&one, &few] {
        assert!(mean(run.straight.total().write_milli_units, run) <= 9_000, "{run:#?}");
        // Look-up, receipt, and the two sends side by side.
        assert_eq!(run.straight.receiver.round_trips, 3 * run.straight.events, "{run:#?}");
        assert_eq!(run.straight.receiver.sqs_requests, 2 * run.straight.events);
        for size in [run.sizes.receipt, run.sizes.transition, run.sizes.close] {
            assert!((1..=1_000).contains(&size), "{:?}", run.sizes);
        }
    }
    // The receipt and its entry in the index of minutes; the close twice, its entry in the wallet's statement, the balance
    // twice, the transition twice: 2 + 2 + 1 + 2 + 2. By the job consumer the transition costs one.
    assert_eq!(mean(one.straight.total().write_milli_units, &one), 9_000);
    assert_eq!(mean(few.straight.total().write_milli_units, &few), 8_000);
}

#[tokio::test(start_paused = true)]
async fn in_batches_of_ten_an_event_costs_seven_and_a_half_write_units_and_ten_dollars_a_million() {
    let ten = measured(10, Consumer::Billing, events()).await;
    assert!(mean(ten.straight.total().write_milli_units, &ten) <= 7_500, "{ten:#?}");
    assert_eq!(mean(ten.straight.total().write_milli_units, &ten), 7_200); // the balance once for ten
    let bill = prices::straight(&ten);
    assert!(bill.micros <= 10_000_000, "{bill:#?}");
    assert_eq!(bill.micros, bill.lines.iter().map(|line| line.micros).sum::<u64>());
    // Every part is in the bill: none was priced at nothing because it was not counted.
    for part in ["receiver", "job consumer", "billing consumer", "sends", "relay", "reconciler", "sampled"] {
        assert!(bill.lines.iter().any(|line| line.part == part && line.micros > 0), "{part}: {bill:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_moves_nothing_and_a_review_is_opened_once() {
    let run = measured(1, Consumer::Job, 5).await;
    // The refused put of the receipt, and the count of deliveries.
    assert_eq!(run.duplicate.total().write_milli_units, 2_000 * run.duplicate.events, "{run:#?}");
    assert_eq!((run.duplicate.job.invocations, run.duplicate.receiver.sqs_requests), (0, 0));
    // The receipt and its index, the transition, and the operation's record with its entry in the index of reviews.
    assert_eq!(run.review.total().write_milli_units, (2 + 1 + 2) * 1_000 * run.review.events, "{run:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_leaves_costs_an_intent_of_three_writes_beside_its_receipt() {
    let run = measured(10, Consumer::Job, 5).await;
    let each = |units: u64| units * 1_000 * run.forward.events;
    // The receipt and its entry in the index of minutes, the one message; then the intent: pending, submitted, settled.
    assert_eq!(run.forward.receiver.write_milli_units, each(2), "{run:#?}");
    assert_eq!(run.forward.receiver.sqs_requests, run.forward.events);
    assert_eq!(run.forward.outbound.write_milli_units, each(3), "{run:#?}");
    // One message in one invocation: a second would run into the timeout.
    assert_eq!(run.forward.outbound.invocations, run.forward.events);
    // A charge: in the settlement's transaction its receipt (twice, and its entry in the index) and its intent (twice);
    // then submitted, and settled with what was answered, which makes it longer than 1 KB.
    let settled = run.charge.billing.write_milli_units - run.straight.billing.write_milli_units;
    assert_eq!(settled, each(5), "{run:#?}");
    assert_eq!(run.charge.outbound.write_milli_units, each(1 + 2), "{run:#?}");
    assert_eq!(run.charge.billing.sqs_requests, run.charge.events);
    let bill = prices::alone(&run.forward);
    assert!(bill.lines.iter().any(|line| line.part == "outbound consumer" && line.micros > 0), "{bill:#?}");
}
