//! What a fetch costs beside its event, as CAPACITY.md says: counts, no time.

use std::time::Duration;

use local::Function;
use local::meter::Meter;

use super::*;

/// Write units in thousandths of one event's fetch: whether its settlement came before the answer.
async fn counted(waits: bool) {
    let config = config(USAGE, "");
    let metered = |function| {
        let meter = Arc::new(Meter::new(Duration::from_millis(5)));
        config.hooks.add(function, meter.clone());
        meter
    };
    let (receiver, relay, billing) =
        (metered(Function::Receiver), metered(Function::Relay), metered(Function::Billing));
    let by_hand = metered(Function::Control); // whose clients the consumers have that are called by hand
    let (world, runs) = world_with(config).await;
    world.aws.report_capacity();
    runs.has("/v1/runs/p-j1", says(200, &run()));
    let minute = async || {
        let _ = relay.take();
        world.clock.advance(MINUTE_MS);
        world.stack.relay().await.unwrap();
        relay.take()
    };
    minute().await;
    let idle = minute().await;

    let _ = receiver.take();
    taken_in(&world, "msg_1", &without_usage()).await;
    assert_eq!(receiver.take().sqs_requests, 3, "two operations and the fetch");
    let _ = by_hand.take();
    if waits {
        work(&world, "msg_1", SettleUsage).await;
        // The record, and its entry in the index of what is due.
        assert_eq!(by_hand.take().write_milli_units, 2_000);
    }
    try_fetch(&world, &runs, "msg_1").await;
    let fetch = by_hand.take();
    // What was fetched. A settlement that waits is made due: its record, and its entry moved (one out, one in).
    assert_eq!(fetch.write_milli_units, if waits { 4_000 } else { 1_000 }, "{fetch:?}");
    // The event, the switches, the job; and the event once more for what waits.
    assert_eq!((fetch.read_milli_units, fetch.sqs_requests), (4_000, 0), "{fetch:?}");

    // The settlement: its close twice and the wallet's statement, the balance twice, the transition twice.
    if !waits {
        work(&world, "msg_1", SettleUsage).await;
        assert_eq!(by_hand.take().write_milli_units, 7_000);
        return;
    }
    let sent = minute().await.beyond(idle);
    assert_eq!((sent.write_milli_units, sent.sqs_requests), (3_000, 1), "sent, and pushed on: {sent:?}");
    let _ = billing.take();
    world.drain().await.unwrap();
    // As above; and the record that says so, out of the index.
    assert_eq!(billing.take().write_milli_units, 7_000 + 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_costs_one_write_and_ten_more_where_the_settlement_waited_for_it() {
    counted(false).await;
    counted(true).await;
}
