//! Operations that wait for what is fetched for their event (see [`domain::fetch`]).
//!
//! Waiting is no try: only the limits of age and of the event's expiry apply. Whoever freezes what was fetched makes them
//! due; the looks in between are for the case that it died before it could.

use domain::decide::NoEffect;
use domain::fetch::{Awaited, with_reason};
use domain::operation::Class;
use domain::receipt::{Planned, Receipt};
use store::StoreError;

use crate::App;
use crate::consumer::Work;

impl App {
    /// When to look again whether something came that is waited for since then. No try is counted by which looks could
    /// become rarer: their pauses grow with the age.
    pub fn next_look_ms(&self, since_ms: i64) -> i64 {
        let now_ms = self.clock.now_ms();
        let age_s = u64::try_from(now_ms.saturating_sub(since_ms) / 1_000).unwrap_or(0);
        now_ms + self.policy.backoff_ms((age_s / 5 + 1).ilog2(), self.random.next_u64())
    }

    /// Waits for what comes by itself, until the event or its operation is too old for it.
    pub fn wait_within_limits(&self, work: &Work, note: String) -> NoEffect {
        let wait = || NoEffect::Until(Class::NotYet, note, self.next_look_ms(work.receipt.arrival_ms));
        work.ask(self).over_limit().unwrap_or_else(wait)
    }

    /// The verdict on work that waits for what is fetched, unless its own effect exists: a person may have settled it by
    /// other means.
    pub(crate) async fn awaiting(&self, work: &Work, awaited: &Awaited) -> Result<NoEffect, StoreError> {
        let plan = vec![Planned { item: work.key.item.clone(), name: work.key.name }];
        let own = Receipt { plan, ..work.receipt.clone() };
        let effects = self.store.effects_of(&own).await?;
        if effects.effect(&work.key, work.record.as_ref()).is_some() {
            return Ok(NoEffect::Done);
        }
        let awaited = match awaited {
            Awaited::Fetch(why) => why,
            Awaited::GivenUp(note) => return Ok(NoEffect::Review(Class::NotPossible, note.clone())),
        };
        Ok(match work.ask(self).over_limit() {
            Some(limit) => with_reason(limit, awaited),
            None => NoEffect::Until(Class::NotYet, awaited.clone(), self.next_look_ms(work.receipt.arrival_ms)),
        })
    }
}
