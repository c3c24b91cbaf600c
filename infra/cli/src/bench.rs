//! `hookledger bench`: what an event costs, in calls, capacity and dollars, on the embedded stack.
//!
//! The counts are those of the real handlers; they do not depend on this machine and say nothing about time.

use std::process::ExitCode;

use domain::operation::Consumer;
use local::costs::prices::{self, Bill, Line};
use local::costs::{Measured, Path, Scenario, measure};
use local::meter::Counts;
use serde_json::{Value, json};

use crate::args::{BenchArgs, First};
use crate::error::CliError;
use crate::output::{print, progress, table};

/// Runs the scenarios and shows them.
pub fn run(args: &BenchArgs) -> Result<ExitCode, CliError> {
    let mut batches = args.batch.clone();
    batches.sort_unstable();
    batches.dedup();
    let mut all = Vec::new();
    for batch in batches {
        progress(&format!("batches of {batch}: {} events", args.events));
        // Paused time: the calls' latency, which shows what overlaps, costs nothing.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.map_err(|e| CliError::Failed(format!("no async runtime: {e}")))?;
        let first = match args.first {
            First::Job => Consumer::Job,
            First::Billing => Consumer::Billing,
        };
        let (events, wallets) = (usize::from(args.events), usize::from(args.wallets));
        let scenario = Scenario { events, wallets, batch: usize::from(batch), first };
        all.push(runtime.block_on(measure(scenario)).map_err(|e| CliError::Failed(e.to_string()))?);
    }
    progress("");
    print(&if args.format.json { machine(args, &all).to_string() } else { people(args, &all) })?;
    Ok(ExitCode::SUCCESS)
}

fn machine(args: &BenchArgs, all: &[Measured]) -> Value {
    let runs = all.iter().map(|measured| {
        json!({
            "batch": measured.batch,
            "counts": measured,
            "million_straight": prices::straight(measured),
            "million_duplicates": prices::alone(&measured.duplicate),
            "million_reviews": prices::alone(&measured.review),
            "million_forwards": prices::alone(&measured.forward),
            "million_charged": prices::alone(&measured.charge),
        })
    });
    json!({
        "events": args.events, "wallets": args.wallets, "priced": prices::PRICED, "prices": prices::PRICES,
        "assumed": {
            "call_ms": prices::CALL_MS, "own_ms": prices::OWN_MS, "destination_ms": prices::DESTINATION_MS,
            "memory_mb": prices::MEMORY_MB,
            "platform_log_bytes": prices::PLATFORM_LOG_BYTES, "access_log_bytes": prices::ACCESS_LOG_BYTES,
            "sampled_milli": prices::SAMPLED_MILLI, "passes": prices::PASSES,
        },
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn people(args: &BenchArgs, all: &[Measured]) -> String {
    let (events, wallets) = (args.events, args.wallets);
    let first = match args.first {
        First::Job => "the job consumer",
        First::Billing => "the billing consumer",
    };
    let mut out = format!(
        "{events} events with two operations each, wallets: {wallets}; {first} comes first and writes the transition.\n\
         Means for one delivery. Trips are sequential AWS round trips; for the receiver, those before its answer.\n\n"
    );
    for measured in all {
        out += &format!("Batches of {}\n{}\n\n", measured.batch, counts(measured));
    }
    for measured in all {
        let bill = prices::straight(measured);
        out += &format!(
            "A million events with two operations, batches of {} ({}): {} dollars\n{}\n",
            measured.batch,
            prices::PRICED,
            dollars(bill.micros),
            lines(&bill)
        );
        let alone = [
            ("duplicates", &measured.duplicate),
            ("events that open a review", &measured.review),
            ("events that are sent on to an HTTP destination", &measured.forward),
            ("events with two operations that also charge a payment provider", &measured.charge),
        ];
        let alone =
            alone.map(|(what, path)| format!("A million {what}: {} dollars.", dollars(prices::alone(path).micros)));
        out += &format!("{}\n\n", alone.join("\n"));
    }
    out + &assumptions()
}

fn counts(measured: &Measured) -> String {
    let mut rows = Vec::new();
    let mut path = |name: &str, path: &Path| {
        for (part, counts) in
            [("receiver", path.receiver), ("job", path.job), ("billing", path.billing), ("outbound", path.outbound)]
        {
            if counts.invocations > 0 {
                rows.push(row(&format!("{name}: {part}"), counts, path.events));
            }
        }
        rows.push(row(&format!("{name}: all"), path.total(), path.events));
    };
    path("two operations", &measured.straight);
    path("duplicate", &measured.duplicate);
    path("review", &measured.review);
    path("sent on", &measured.forward);
    path("charged", &measured.charge);
    let events = measured.straight.events;
    rows.push(row("later: relay, beyond an idle one", measured.relay, events));
    rows.push(row("later: a pass of the reconciler", measured.pass, events));
    let sizes = measured.sizes;
    table(["delivery", "calls", "trips", "read units", "write units", "SQS requests"], rows)
        + &format!(
            "\nlargest items: receipt {} bytes, transition {}, close {}; log of two operations: {} bytes",
            sizes.receipt,
            sizes.transition,
            sizes.close,
            measured.straight.log_bytes / events.max(1)
        )
}

fn row(name: &str, counts: Counts, events: u64) -> [String; 6] {
    let mean = |milli: u64| decimal((milli + events / 2) / events.max(1), 3);
    let later = name.starts_with("later"); // sweeps read side by side: no chain of theirs delays anybody
    [
        name.to_owned(),
        mean(counts.calls * 1_000),
        if later { "-".to_owned() } else { mean(counts.round_trips * 1_000) },
        mean(counts.read_milli_units),
        mean(counts.write_milli_units),
        mean(counts.sqs_requests * 1_000),
    ]
}

fn lines(bill: &Bill) -> String {
    let row = |line: &Line| {
        [
            format!("{}: {}", line.what, line.part),
            decimal(line.nano_units, 9),
            decimal(line.micros_per_million, 6),
            dollars(line.micros),
        ]
    };
    table(["what", "units for one event", "dollars for a million units", "dollars"], bill.lines.iter().map(row))
}

/// A number with so many decimals, without trailing zeros.
fn decimal(number: u64, places: usize) -> String {
    let text = format!("{number:0>width$}", width = places + 1);
    let (whole, fraction) = text.split_at(text.len() - places);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Dollars with two decimals, rounded half up.
fn dollars(micros: u64) -> String {
    let cents = (micros + 5_000) / 10_000;
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn assumptions() -> String {
    use prices::{
        ACCESS_LOG_BYTES, CALL_MS, DESTINATION_MS, LOG_LINE_OVERHEAD, MEMORY_MB, OWN_MS, PASSES, PLATFORM_LOG_BYTES,
    };
    format!(
        "Assumed: a call takes {CALL_MS} ms and a function's own work {OWN_MS} ms an event, at {MEMORY_MB} MB; a destination \
         answers after {DESTINATION_MS} ms; Lambda's own \
         lines are {PLATFORM_LOG_BYTES} bytes an invocation, the access log's {ACCESS_LOG_BYTES}, and each line counts \
         {LOG_LINE_OVERHEAD} more; X-Ray samples {} in a thousand; the reconciler passes over each receipt {PASSES} times; \
         an event source receives and deletes once for each batch.\n\
         Left out: free tiers, storage, data transfer, and what is paid by the month however few events there are (idle \
         polling, schedules, alarms, custom metrics, the daily comparison of wallets); of what is sent on or charged also the \
         sweeps' looks, what the destination asks for it, and its webhook back (one more event).\n\
         Capacity is what the embedded DynamoDB reports; failed conditions are charged by the item that stands.",
        prices::SAMPLED_MILLI
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_without_a_float() {
        assert_eq!(decimal(7_200, 3), "7.2");
        assert_eq!(decimal(9_000, 3), "9");
        assert_eq!(decimal(5, 3), "0.005");
        assert_eq!([4_500_000, 4_995, 5_000, 10_005_000].map(dollars), ["4.50", "0.00", "0.01", "10.01"]);
    }
}
