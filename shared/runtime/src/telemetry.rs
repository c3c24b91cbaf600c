//! One JSON log line per event and operation. Never a body, header value, secret or stored item.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

/// Starts JSON logging to stderr's sibling stdout, as Lambda collects it. Safe to call once.
pub fn start_json(level: &str) {
    let filter = EnvFilter::try_new(format!("{level},aws_smithy_runtime=warn,aws_config=warn,hyper=warn"))
        .unwrap_or_else(|_| EnvFilter::new("info"));
    let layer = tracing_subscriber::fmt().json().flatten_event(true).with_target(false).with_current_span(false);
    // A second start keeps the first subscriber: nothing to do about it, and nothing lost.
    let _ = layer.with_env_filter(filter).with_writer(std::io::stdout.with_max_level(tracing::Level::TRACE)).try_init();
}
