//! Promise 10 under every fault: marked words travel in bodies, headers, secrets and signatures, and no log line, at
//! the level that production logs at, and no answer may hold one.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use local::clock::ManualClock;
use local::world::ACME_SECRET;

/// In every body and in a header of every delivery.
pub const MARK: &str = "canary-7f3a";
/// Stripe's secret in the simulator.
pub const STRIPE_SECRET: &str = "whsec_of_the_simulator";
/// How the signatures that travel begin: Standard Webhooks' and Stripe's.
const SIGNED: [&str; 2] = ["v1,", "v1="];

thread_local! {
    static LEAK: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The marked word that a text holds.
pub fn leak(text: &str) -> Option<&'static str> {
    let words = [MARK, ACME_SECRET, STRIPE_SECRET].into_iter().chain(SIGNED);
    words.into_iter().find(|word| text.contains(word))
}

/// Listens to every log line of this process from now on.
pub fn listen() {
    let subscriber = runtime::telemetry::subscriber("info", Arc::new(ManualClock::new(0)), || Ears);
    // Called once, first of all; a second subscriber would mean that somebody else listens already.
    tracing::subscriber::set_global_default(subscriber).expect("nobody listens yet");
}

/// What leaked on this thread since it was last asked: the word and the line's beginning.
pub fn leaked() -> Option<String> {
    LEAK.with_borrow_mut(Option::take)
}

/// Hears a log line, keeps nothing of it.
struct Ears;

impl io::Write for Ears {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        if let Some(word) = leak(&line) {
            let message: String = line.split("\"message\":").nth(1).unwrap_or(&line).chars().take(60).collect();
            LEAK.set(Some(format!("{word:?} in the log line {message}")));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
