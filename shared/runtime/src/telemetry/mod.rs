//! One JSON log line per event and operation. Never a body, header value, secret or stored item.

mod emf;
mod line;

use std::sync::Arc;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use crate::clock::{Clock, SystemClock};
pub use emf::{NAMESPACE, metric_names};
pub use line::JsonLines;

/// Logs where a panic happened and nothing else: its text could hold what was being handled.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic");
    }));
}

/// Other crates' targets that log requests, bodies or headers below these levels, whatever the level
/// of our own lines.
const QUIET: [(&str, LevelFilter); 4] = [
    ("lambda_", LevelFilter::INFO), // a name stands for every target that begins with it
    ("aws_", LevelFilter::WARN),
    ("hyper", LevelFilter::WARN),
    ("rustls", LevelFilter::WARN),
];

/// The filter of a level: one of the five words, else `info`.
pub fn filter(level: &str) -> Targets {
    let level = match level {
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => LevelFilter::INFO,
    };
    Targets::new().with_default(level).with_targets(QUIET)
}

/// Starts JSON logging to stdout, as Lambda collects it. Safe to call once.
pub fn start_json(level: &str) {
    // A second start keeps the first subscriber: nothing to do about it, and nothing lost.
    let _ = tracing::subscriber::set_global_default(subscriber(level, Arc::new(SystemClock), std::io::stdout));
}

/// What listens to our lines at a level and writes them, with their metrics, dated by the clock.
pub fn subscriber<W>(level: &str, clock: Arc<dyn Clock>, writer: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt().event_format(JsonLines::new(clock));
    lines.with_max_level(LevelFilter::TRACE).with_writer(writer).finish().with(filter(level))
}
