//! The cases of a destination that were open before a run: each is compared again, and resolved where its fact is gone.
//!
//! What the list does not reach any more stands as it was told, and what could not be read stays as it is.

use domain::reconcile::{Case, CaseClass, ListedEffect, Subject};
use store::StoreError;

use super::look::Sent;
use super::{Pass, look};
use crate::reviews;

impl Pass<'_, '_> {
    /// The cases that are open from before: those whose fact is gone are resolved.
    pub(super) async fn open_before(&mut self) -> Result<(), StoreError> {
        for case in reviews::open_cases(self.recorder, &CaseClass::OF_INTENTS).await? {
            if self.found.contains(&case.id) {
                continue;
            }
            match &case.subject {
                Subject::Effect { destination, .. }
                    if *destination == self.table.name
                        && self.all_seen
                        && self.listing.whole
                        && self.reaches(case.effect.as_ref()) =>
                {
                    reviews::gone(self.recorder, &case).await?;
                }
                Subject::Operation(_) => self.look_again(&case).await?,
                _ => {}
            }
        }
        Ok(())
    }

    fn reaches(&self, effect: Option<&ListedEffect>) -> bool {
        effect.is_some_and(|effect| effect.created_ms >= self.window.from_ms)
    }

    async fn look_again(&mut self, case: &Case) -> Result<(), StoreError> {
        let Subject::Operation(key) = &case.subject else { return Ok(()) };
        let sent = match look::of_key(self.recorder.app, key).await {
            Err(StoreError::Corrupt { what }) => {
                self.recorder.unreadable(&key.to_string(), what);
                return Ok(());
            }
            sent => sent?,
        };
        let Some(sent) = sent else { return reviews::gone(self.recorder, case).await };
        if !sent.is_to(&self.table.name) {
            return Ok(());
        }
        let out_of_reach = self.listing.under(&sent.intent.deduplication_id()).is_empty() && !self.covers(&sent.intent);
        let still = match case.effect.as_ref().filter(|_| out_of_reach) {
            Some(before) => !self.compare(&sent, Some(before)).await? || self.found.contains(&case.id),
            None if out_of_reach => match look::stands(self.recorder.app, case).await {
                Err(StoreError::Corrupt { what }) => {
                    self.recorder.unreadable(&key.to_string(), what);
                    true
                }
                stands => stands? && self.still_absent(case, &sent).await,
            },
            None => !self.compare(&sent, None).await? || self.found.contains(&case.id),
        };
        if still { Ok(()) } else { reviews::gone(self.recorder, case).await }
    }

    async fn still_absent(&mut self, case: &Case, sent: &Sent) -> bool {
        case.class != CaseClass::UnknownThere || self.surely_absent(sent).await || self.found.contains(&case.id)
    }
}
