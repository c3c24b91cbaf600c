//! forward: an event leaves the system once per key, with the bytes that were written down first.

use super::{Ask, NoEffect};
use crate::intent::{Intent, IntentState};
use crate::operation::Class;

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Write the intent down, then decide again.
    Put,
    /// Carry out the intent that stands; [`crate::intent::step::next`] says how.
    Carry,
    /// Nothing to do.
    None(NoEffect),
}

/// Decides forward: `asked` is what this event would forward, `stands` the intent under its key.
pub fn decide(ask: &Ask<'_>, asked: &Intent, stands: Option<&Intent>) -> Decision {
    match stands {
        Some(own) if own.by == *ask.by => match own.state {
            IntentState::Settled => Decision::None(NoEffect::Done),
            // Limits hold back what would leave: whoever carries it out asks them before that.
            _ => Decision::Carry,
        },
        Some(owner) if owner.content_hash == asked.content_hash => {
            Decision::None(NoEffect::Noop(Class::AlreadyDone, format!("forwarded by {}", owner.by)))
        }
        Some(owner) => {
            let note = format!("{} was forwarded under this action key and says otherwise", owner.by);
            Decision::None(NoEffect::Review(Class::Conflict, note))
        }
        None => ask.over_limit().map_or(Decision::Put, Decision::None),
    }
}
