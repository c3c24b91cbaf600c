//! payment-failed: the payment provider says that a payment of a postpaid wallet came to nothing. What was charged stays owed,
//! so nothing is posted; a person is asked, unless the charge's own answer said so and its review is open, or the payment
//! succeeded after all. A payment that names no charge of ours is somebody's own, such as a top-up, and nothing is owed of it.

use super::{Ask, NoEffect};
use crate::intent::{Intent, IntentState};
use crate::ledger::Entry;
use crate::operation::Class;

/// What was read.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The funding under the payment's id, if it exists.
    pub funding: Option<&'a Entry>,
    /// The charge that the payment is of, where the event names one of ours.
    pub charge: Option<&'a Intent>,
}

/// Decides payment-failed.
pub fn decide(ask: &Ask<'_>, view: &View<'_>) -> NoEffect {
    if let Some(funding) = view.funding {
        let note = format!("the payment succeeded all the same: {}", funding.by);
        return NoEffect::Noop(Class::Superseded, note);
    }
    match view.charge {
        Some(charge) if charge.state == IntentState::Failed => {
            NoEffect::Noop(Class::AlreadyDone, format!("{} says so, and is in review", charge.by))
        }
        // Of one that is not at an end its own answer will tell; a failure may still be followed by a success.
        Some(charge) if charge.state != IntentState::Settled => ask
            .over_limit()
            .unwrap_or_else(|| NoEffect::Wait(Class::NotYet, format!("{} has no answer of its own yet", charge.by))),
        Some(charge) => {
            NoEffect::Review(Class::Declined, format!("the payment of {} failed: what was charged is owed", charge.by))
        }
        None if ask.envelope.data.get("charge").is_none_or(String::is_empty) => NoEffect::Noop(
            Class::NotPossible,
            "a payment failed that is of no charge: nothing was posted of it".to_owned(),
        ),
        None => {
            NoEffect::Review(Class::Declined, "a payment failed that names a charge which does not exist".to_owned())
        }
    }
}
