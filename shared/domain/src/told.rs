//! What a transaction tells beside its effect: receipts of events of our own, and the ends of the lines that keep
//! their order.
//!
//! A line is the events of one subject (a job, a wallet, an event in review) that one ordered subscription is told, or the
//! versions of one booking that a job board is told, in order of commit. Its end is one item, moved in the transaction of the effect, under the condition that nobody moved
//! it since it was read. So every event knows the one before it, and the outbound consumer sends none before that.

use crate::keys;
use crate::receipt::Receipt;

/// One move of a line's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The subscription's name, or the board's item.
    pub subscription: String,
    /// What the line is about.
    pub subject: String,
    /// The id of the event that ended the line when it was read; `None` when there was none.
    pub from: Option<String>,
    /// The id of the event that ends it now.
    pub to: String,
}

/// What a transaction tells; nothing is the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// The receipts, each with its plan.
    pub receipts: Vec<Receipt>,
    /// The ends of lines, each line once.
    pub steps: Vec<Step>,
}

impl Step {
    /// The partition of the line's end.
    pub fn pk(&self) -> String {
        keys::line_pk(&self.subscription, &self.subject)
    }
}

impl Told {
    /// True when nothing is told.
    pub fn is_empty(&self) -> bool {
        self.receipts.is_empty()
    }

    /// The end that a line has behind what is told here already.
    pub fn end_of(&self, subscription: &str, subject: &str) -> Option<&str> {
        let own = |step: &&Step| step.subscription == subscription && step.subject == subject;
        self.steps.iter().find(own).map(|step| step.to.as_str())
    }

    /// Moves a line's end; a line that was moved here already goes on from there.
    pub fn step(&mut self, step: Step) {
        let own = |stands: &&mut Step| stands.subscription == step.subscription && stands.subject == step.subject;
        match self.steps.iter_mut().find(own) {
            Some(stands) => stands.to = step.to,
            None => self.steps.push(step),
        }
    }
}
