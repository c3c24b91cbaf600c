//! One JSON log line per event and operation. Never a body, header value, secret or stored item.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

/// Logs where a panic happened and nothing else: its text could hold what was being handled.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic");
    }));
}

/// Other crates' targets that log requests, bodies or headers below these levels, whatever the level
/// of our own lines.
const QUIET: &str = "lambda_runtime=info,lambda_http=info,aws_sigv4=warn,aws_smithy_runtime=warn,\
    aws_smithy_http_client=warn,aws_smithy_runtime_api=warn,aws_runtime=warn,aws_config=warn,\
    aws_sdk_dynamodb=warn,aws_sdk_eventbridge=warn,aws_sdk_sqs=warn,hyper=warn,hyper_util=warn,rustls=warn";

/// The filter of a level: one of the five words, else `info`.
pub fn filter(level: &str) -> EnvFilter {
    let known = ["error", "warn", "info", "debug", "trace"].contains(&level);
    EnvFilter::new(format!("{},{QUIET}", if known { level } else { "info" }))
}

/// Starts JSON logging to stdout, as Lambda collects it. Safe to call once.
pub fn start_json(level: &str) {
    let filter = filter(level);
    let layer = tracing_subscriber::fmt().json().flatten_event(true).with_target(false).with_current_span(false);
    // A second start keeps the first subscriber: nothing to do about it, and nothing lost.
    let _ = layer.with_env_filter(filter).with_writer(std::io::stdout.with_max_level(tracing::Level::TRACE)).try_init();
}
