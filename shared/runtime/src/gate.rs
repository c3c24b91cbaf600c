//! What holds a try back before it is one: a destination's rate limit and its circuit breaker.
//!
//! Both live in one process and know nothing of its neighbours: with N sandboxes side by side a destination sees up to N
//! times its rate, and each sandbox finds for itself that it is down. They spare the destination and the tries; no
//! promise depends on them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use domain::profile::HttpDestination;

/// The longest wait for a turn within an invocation; a longer one is a deferral.
pub const MAX_PAUSE_MS: i64 = 2_000;

/// The longest that a destination can ask to be left alone; a longer wait would outlive what it is for.
const MAX_HOLD_MS: i64 = 3_600_000;

/// The gates of all destinations of a process, by name.
#[derive(Debug, Default)]
pub struct Gates(Mutex<BTreeMap<String, Gate>>);

#[derive(Debug, Default)]
struct Gate {
    /// The next free turn, Unix milliseconds.
    free_ms: i64,
    /// Tries in a row without a usable answer.
    failures: u32,
    /// Nothing is sent before this, Unix milliseconds.
    closed_until_ms: i64,
    /// It asked to be left alone until then, Unix milliseconds.
    held_until_ms: i64,
}

/// What a gate says to a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// After a pause of so many milliseconds, which may be 0.
    Go(i64),
    /// Not before this, Unix milliseconds.
    Busy(i64),
    /// It does not answer; not before this, Unix milliseconds.
    Down(i64),
}

impl Gates {
    /// Asks for a turn. The breaker lets one try through once it has cooled, and then waits for that one's end.
    pub fn admit(&self, to: &HttpDestination, now_ms: i64) -> Admission {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = gates.entry(to.name.clone()).or_default();
        if now_ms < gate.held_until_ms {
            return Admission::Busy(gate.held_until_ms);
        }
        if let Some(breaker) = to.breaker.filter(|breaker| gate.failures >= breaker.failures) {
            if now_ms < gate.closed_until_ms {
                return Admission::Down(gate.closed_until_ms);
            }
            gate.closed_until_ms = now_ms + breaker.cool_ms;
        }
        let Some(rate) = to.rate_per_s else { return Admission::Go(0) };
        let turn_ms = gate.free_ms.max(now_ms);
        if turn_ms - now_ms > MAX_PAUSE_MS {
            return Admission::Busy(turn_ms);
        }
        gate.free_ms = turn_ms + (1_000 / i64::from(rate.max(1))).max(1);
        Admission::Go(turn_ms - now_ms)
    }

    /// The destination asks to be left alone for so many seconds.
    pub fn hold(&self, to: &HttpDestination, seconds: u32, now_ms: i64) {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = gates.entry(to.name.clone()).or_default();
        gate.held_until_ms = gate.held_until_ms.max(now_ms + (i64::from(seconds) * 1_000).min(MAX_HOLD_MS));
    }

    /// Tells how a try ended: whether the destination answered usably.
    pub fn report(&self, to: &HttpDestination, answered: bool, now_ms: i64) {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = gates.entry(to.name.clone()).or_default();
        if answered {
            gate.failures = 0;
            return;
        }
        gate.failures = gate.failures.saturating_add(1);
        if let Some(breaker) = to.breaker.filter(|breaker| gate.failures >= breaker.failures) {
            gate.closed_until_ms = now_ms + breaker.cool_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use domain::profile::Profiles;

    use super::*;

    fn destination(more: &str) -> HttpDestination {
        let text = format!("[destinations.board]\nurl = \"env:BOARD_URL\"\n{more}");
        Profiles::parse(&text).unwrap().destination("board").unwrap().clone()
    }

    #[test]
    fn turns_are_spaced_and_far_ones_are_deferred() {
        let (gates, to) = (Gates::default(), destination("rate_per_s = 2\n"));
        let asked: Vec<Admission> = (0..6).map(|_| gates.admit(&to, 10_000)).collect();
        let by_hand = [0, 500, 1_000, 1_500, 2_000].map(Admission::Go).to_vec();
        assert_eq!(asked, [by_hand, vec![Admission::Busy(12_500)]].concat());
        assert_eq!(gates.admit(&to, 20_000), Admission::Go(0), "an idle gate saves no turns");
    }

    #[test]
    fn who_asks_to_be_left_alone_is_and_for_an_hour_at_most() {
        let (gates, to) = (Gates::default(), destination(""));
        gates.hold(&to, 30, 1_000);
        assert_eq!(gates.admit(&to, 30_999), Admission::Busy(31_000));
        assert_eq!(gates.admit(&to, 31_000), Admission::Go(0));
        gates.hold(&to, u32::MAX, 40_000);
        assert_eq!(gates.admit(&to, 50_000), Admission::Busy(3_640_000));
        gates.hold(&to, 1, 50_000);
        assert_eq!(gates.admit(&to, 60_000), Admission::Busy(3_640_000), "a shorter wait does not end a longer one");
    }

    #[test]
    fn a_breaker_closes_cools_and_lets_one_through() {
        let (gates, to) = (Gates::default(), destination("breaker = { failures = 2, cool_s = 30 }\n"));
        gates.report(&to, false, 1_000);
        assert_eq!(gates.admit(&to, 1_000), Admission::Go(0));
        gates.report(&to, false, 2_000);
        assert_eq!(gates.admit(&to, 31_999), Admission::Down(32_000));
        assert_eq!(gates.admit(&to, 32_000), Admission::Go(0), "one");
        assert_eq!(gates.admit(&to, 32_000), Admission::Down(62_000), "and no second one meanwhile");
        gates.report(&to, true, 32_100);
        assert_eq!(gates.admit(&to, 32_100), Admission::Go(0));
    }
}
