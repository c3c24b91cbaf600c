//! List prices, and the arithmetic from counts to dollars for a million events.
//!
//! All amounts are micro-dollars (10^-6 dollars) in integers; a price is that of a MILLION units, a quantity is in
//! billionths (nano-units) for one event. Free tiers, savings plans and data transfer are left out, and so is what is paid
//! by the month however few events there are: idle polling, schedules, alarms, custom metrics, stored data.

use serde::Serialize;

use super::{Measured, Path};
use crate::meter::Counts;

/// Where and when these prices were on the pages that [`PRICES`] names.
pub const PRICED: &str = "us-east-1, list prices of 2026-11";
/// Assumed time of one AWS call, milliseconds.
pub const CALL_MS: u64 = 5;
/// Assumed time of a function's own work for one event, milliseconds: about 1 ms of CPU on the share of a virtual CPU
/// that [`MEMORY_MB`] buys.
pub const OWN_MS: u64 = 7;
/// Assumed time of an HTTP destination's answer, milliseconds.
pub const DESTINATION_MS: u64 = 300;
/// Memory of each function, as in the template.
pub const MEMORY_MB: u64 = 256;
/// Bytes of Lambda's own start and report lines for one invocation (JSON), assumed.
pub const PLATFORM_LOG_BYTES: u64 = 410;
/// Their number.
pub const PLATFORM_LOG_LINES: u64 = 2;
/// Bytes of the gateway's access log line, assumed.
pub const ACCESS_LOG_BYTES: u64 = 140;
/// What CloudWatch Logs adds to each line when it counts what is ingested.
pub const LOG_LINE_OVERHEAD: u64 = 26;
/// Deliveries that X-Ray samples, in thousandths.
pub const SAMPLED_MILLI: u64 = 50;
/// Passes of the reconciler over each receipt.
pub const PASSES: u64 = 2;

/// A price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Price {
    /// What is paid for.
    pub what: &'static str,
    /// Micro-dollars for a million units.
    pub micros_per_million: u64,
    /// The page.
    pub source: &'static str,
}

const fn price(what: &'static str, micros_per_million: u64, source: &'static str) -> Price {
    Price { what, micros_per_million, source }
}

/// DynamoDB write request units.
pub const WRITES: Price = price("DynamoDB write request units", 625_000, "aws.amazon.com/dynamodb/pricing/on-demand");
/// DynamoDB read request units.
pub const READS: Price = price("DynamoDB read request units", 125_000, "aws.amazon.com/dynamodb/pricing/on-demand");
/// SQS FIFO requests of up to 64 KB.
pub const SQS: Price = price("SQS FIFO requests", 500_000, "aws.amazon.com/sqs/pricing");
/// Lambda invocations.
pub const INVOCATIONS: Price = price("Lambda requests", 200_000, "aws.amazon.com/lambda/pricing");
/// Lambda on arm64: $0.0000133334 for a GB-second.
pub const GB_SECONDS: Price = price("Lambda GB-seconds (arm64)", 13_333_400, "aws.amazon.com/lambda/pricing");
/// HTTP API requests of up to 512 KB.
pub const GATEWAY: Price = price("API Gateway HTTP API requests", 1_000_000, "aws.amazon.com/api-gateway/pricing");
/// Log ingestion: $0.50 for a GB.
pub const LOGS: Price = price("CloudWatch Logs, GB taken in", 500_000_000_000, "aws.amazon.com/cloudwatch/pricing");
/// X-Ray: $5.00 for a million traces recorded.
pub const TRACES: Price = price("X-Ray traces recorded", 5_000_000, "aws.amazon.com/xray/pricing");

/// All of them.
pub const PRICES: [Price; 8] = [WRITES, READS, SQS, INVOCATIONS, GB_SECONDS, GATEWAY, LOGS, TRACES];

/// One line of a bill for a million events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What is paid for.
    pub what: &'static str,
    /// Which part of the path.
    pub part: &'static str,
    /// Units for one event, in billionths.
    pub nano_units: u64,
    /// The price of a million units, in micro-dollars.
    pub micros_per_million: u64,
    /// The product: micro-dollars for a million events, rounded half up.
    pub micros: u64,
}

fn line(price: Price, part: &'static str, nano_units: u64) -> Line {
    let product = u128::from(nano_units) * u128::from(price.micros_per_million);
    let micros = u64::try_from((product + 500_000_000) / 1_000_000_000).unwrap_or(u64::MAX);
    Line { what: price.what, part, nano_units, micros_per_million: price.micros_per_million, micros }
}

/// A bill for a million events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Bill {
    /// Its lines.
    pub lines: Vec<Line>,
    /// Their sum, micro-dollars.
    pub micros: u64,
}

impl Bill {
    fn new(lines: Vec<Line>) -> Self {
        let lines: Vec<Line> = lines.into_iter().filter(|line| line.nano_units > 0).collect();
        Self { micros: lines.iter().map(|line| line.micros).sum(), lines }
    }
}

/// `sum` of something over `events`, as nano-units of one event; `scale` units are one.
fn each(sum: u64, events: u64, scale: u64) -> u64 {
    let nano = u128::from(sum) * 1_000_000_000 / u128::from(scale) / u128::from(events.max(1));
    u64::try_from(nano).unwrap_or(u64::MAX)
}

fn capacity(part: &'static str, counts: Counts, events: u64) -> [Line; 2] {
    [
        line(WRITES, part, each(counts.write_milli_units, events, 1_000)),
        line(READS, part, each(counts.read_milli_units, events, 1_000)),
    ]
}

/// What is paid from the delivery to the end of its last consumer.
#[must_use]
pub fn path(path: &Path) -> Vec<Line> {
    let events = path.events;
    let consumers = path.job.invocations + path.billing.invocations + path.outbound.invocations;
    let invocations = path.receiver.invocations + consumers;
    let taken = [path.job, path.billing].iter().filter(|counts| counts.invocations > 0).count() as u64;
    let messages = events * (1 + taken) + path.outbound.invocations; // one at each function that works
    let milliseconds =
        path.total().round_trips * CALL_MS + messages * OWN_MS + path.outbound.invocations * DESTINATION_MS;
    let lines = path.log_lines + invocations * PLATFORM_LOG_LINES + path.receiver.invocations;
    let bytes = path.log_bytes
        + invocations * PLATFORM_LOG_BYTES
        + path.receiver.invocations * ACCESS_LOG_BYTES
        + lines * LOG_LINE_OVERHEAD;
    let mut bill = vec![line(GATEWAY, "receiver", each(path.receiver.invocations, events, 1))];
    bill.extend(capacity("receiver", path.receiver, events));
    bill.extend(capacity("job consumer", path.job, events));
    bill.extend(capacity("billing consumer", path.billing, events));
    bill.extend(capacity("outbound consumer", path.outbound, events));
    bill.push(line(SQS, "sends", each(path.total().sqs_requests, events, 1)));
    bill.push(line(SQS, "receives and deletes", each(2 * consumers, events, 1)));
    bill.push(line(INVOCATIONS, "all functions", each(invocations, events, 1)));
    bill.push(line(GB_SECONDS, "all functions", each(milliseconds * MEMORY_MB, events, 1_000 * 1_024)));
    bill.push(line(LOGS, "own, platform's and access lines", each(bytes, events, 1_000_000_000)));
    bill.push(line(TRACES, "sampled", each(path.receiver.invocations * SAMPLED_MILLI, events, 1_000)));
    bill
}

/// What is paid for an event that goes straight: its path, the relay's look at it and the reconciler's.
#[must_use]
pub fn straight(measured: &Measured) -> Bill {
    let events = measured.straight.events;
    let mut lines = path(&measured.straight);
    lines.extend(capacity("relay", measured.relay, events));
    let mut passes = measured.pass;
    for _ in 1..PASSES {
        passes.add(measured.pass);
    }
    lines.extend(capacity("reconciler", passes, events));
    Bill::new(lines)
}

/// What is paid for a delivery whose path alone is looked at: a duplicate, a review, a forward, a charge.
#[must_use]
pub fn alone(some: &Path) -> Bill {
    Bill::new(path(some))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_units_times_price() {
        // 7.2 units at 0.625 dollars for a million: 4.50 dollars for a million events.
        assert_eq!(line(WRITES, "x", 7_200_000_000).micros, 4_500_000);
        // 2,000 bytes are 2,000 billionths of a GB: 2 GB for a million events, a dollar.
        assert_eq!(line(LOGS, "x", 2_000).micros, 1_000_000);
        // 30 ms at 256 MB are 0.0075 GB-seconds: 7,500 for a million events, 10 cents.
        assert_eq!(line(GB_SECONDS, "x", each(30 * 256, 1, 1_024_000)).micros, 100_001);
        assert_eq!(each(3, 2, 1), 1_500_000_000);
    }
}
