//! Remembers which of several keys matched first, without branching on it.

use subtle::{Choice, ConditionallySelectable as _};

/// Fed with every comparison; tells the first that matched when all have been made.
pub(crate) struct Pick {
    index: u32,
    any: Choice,
}

impl Pick {
    pub(crate) fn new() -> Self {
        Self { index: 0, any: Choice::from(0) }
    }

    pub(crate) fn offer(&mut self, index: usize, matched: Choice) {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        self.index.conditional_assign(&index, matched & !self.any);
        self.any |= matched;
    }

    pub(crate) fn first(self) -> Option<usize> {
        bool::from(self.any).then(|| usize::try_from(self.index).unwrap_or(usize::MAX))
    }
}
