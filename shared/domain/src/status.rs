//! The status shown to people: DERIVED by one pure function from the records, stored nowhere.

use serde::{Deserialize, Serialize};

use crate::booking::BookingVersion;
use crate::decide::dismiss::BY_REVIEW;
use crate::event::By;
use crate::fetch::Fetched;
use crate::ids::ItemId;
use crate::intent::Intent;
use crate::job::{JobRecords, Outcome, Progress};
use crate::ledger::{Entry, JobLedger};
use crate::operation::{OperationKey, OperationName, OperationRecord, OperationState};
use crate::own::OWN_PROVIDER;
use crate::receipt::Receipt;
use crate::time::rfc3339;

/// The effects that exist for the job that an event names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effects {
    /// The job and its transitions, if it is known.
    pub job: Option<JobRecords>,
    /// Its settlements.
    pub ledger: JobLedger,
    /// Its progress.
    pub progress: Option<Progress>,
    /// The wallet's funding under the event's reference.
    pub funding: Option<Entry>,
    /// The reversals of that funding.
    pub funding_reversals: Vec<Entry>,
    /// The versions of the event's booking that were taken in, in order.
    pub bookings: Vec<BookingVersion>,
    /// What was or is to be forwarded under the event's key.
    pub forward: Option<Intent>,
    /// What was fetched for the item.
    pub fetched: Option<Fetched>,
}

/// The effects of every item of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventEffects(pub Vec<(ItemId, Option<i64>, Effects)>);

impl EventEffects {
    /// What an operation's own effect is, if it exists; for people.
    pub fn effect(&self, key: &OperationKey, record: Option<&OperationRecord>) -> Option<String> {
        let (_, sequence, effects) = self.0.iter().find(|(item, _, _)| *item == key.item)?;
        effects.effect(key.name, &key.by(), *sequence, record)
    }

    /// What an operation wants to leave the system, if that is its own.
    pub fn intent(&self, key: &OperationKey) -> Option<&Intent> {
        let (_, _, effects) = self.0.iter().find(|(item, _, _)| *item == key.item)?;
        effects.forward.as_ref().filter(|intent| key.name == OperationName::Forward && intent.by == key.by())
    }
}

/// An entry's effect in words.
fn told(entry: &Entry) -> String {
    let version = entry.version.map(|v| format!(" for version {v}")).unwrap_or_default();
    format!("{} of {} {}{version}", entry.kind.as_str(), entry.amount, entry.currency)
}

impl Effects {
    /// Where a settlement has its usage from, if it was fetched.
    fn source_of(&self, entry: &Entry) -> String {
        let usage = |found: &&Fetched| entry.usage.is_some() && entry.usage == found.envelope.usage;
        let from = |found: &Fetched| format!("; usage fetched from {} at {}", found.from, rfc3339(found.at_ms));
        self.fetched.as_ref().filter(usage).map(from).unwrap_or_default()
    }

    /// What this operation's own effect is, if it exists; for people. Progress without a record that a
    /// later update has since overwritten counts as written: either way it is final.
    pub fn effect(
        &self, name: OperationName, by: &By, sequence: Option<i64>, record: Option<&OperationRecord>,
    ) -> Option<String> {
        match name {
            OperationName::CompleteJob => {
                let own = self.job.as_ref()?.transitions.iter().find(|t| t.by == *by)?;
                Some(format!("transition {} ({:?})", own.version, own.outcome).to_lowercase())
            }
            OperationName::SettleUsage => self.ledger.own(by).map(|entry| told(entry) + &self.source_of(entry)),
            OperationName::AdjustUsage => self.ledger.adjusts.iter().find(|entry| entry.is_by(by)).map(told),
            OperationName::FundWallet => self.funding.iter().find(|entry| entry.is_by(by)).map(told),
            OperationName::ReverseFunding => self.funding_reversals.iter().find(|entry| entry.is_by(by)).map(told),
            OperationName::PaymentFailed => None, // it writes nothing: it ends in a review, or as a no-op
            OperationName::CreateJob => {
                let own = self.bookings.iter().position(|version| version.by == *by)?;
                let version = &self.bookings[own];
                // Older versions are never taken in after newer ones, so the lowest made the job.
                let what = if own == 0 { "made by" } else { "brought up to" };
                let board = match version.board {
                    true => format!("; to the board by {OWN_PROVIDER}/{}", crate::board::event_id(version).as_str()),
                    false => String::new(),
                };
                Some(format!("job {} {what} version {}{board}", version.job, version.version))
            }
            OperationName::Forward => {
                let own = self.forward.as_ref().filter(|intent| intent.by == *by && intent.is_done())?;
                Some(format!("forwarded to {}", own.to))
            }
            OperationName::Fetch => self
                .fetched
                .as_ref()
                .map(|found| format!("{} from {} at {}", found.gave.join(", "), found.from, rfc3339(found.at_ms))),
            OperationName::ExtendHold => {
                let by = by.to_string();
                let own = self.job.as_ref()?.extensions.iter().find(|extension| extension.by == by)?;
                Some(format!("hold extended by {}", own.amount))
            }
            OperationName::RecordProgress => {
                let stored = self.progress.as_ref()?;
                if stored.by == *by {
                    return Some(format!("progress {}", stored.sequence));
                }
                sequence
                    .filter(|s| record.is_none() && *s < stored.sequence)
                    .map(|s| format!("progress {s}, since passed by {}", stored.sequence))
            }
        }
    }
}

/// One operation's derived state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Dispatched; neither effect nor record yet.
    Processing,
    /// Its effect exists.
    Done,
    /// Final without effect.
    Noop,
    /// Closed by a person.
    Closed,
    /// Will be tried again.
    Retrying,
    /// A person decides.
    NeedsReview,
}

impl Stage {
    /// True when nothing more will happen.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Noop | Self::Closed)
    }

    /// The stage of one operation: the effect outranks the record.
    pub fn of(own_effect: bool, record: Option<&OperationRecord>) -> Self {
        match record.map(|r| r.state) {
            _ if own_effect => Self::Done,
            None => Self::Processing,
            Some(OperationState::Wait) => Self::Retrying,
            Some(OperationState::Review) => Self::NeedsReview,
            Some(OperationState::Noop) => Self::Noop,
            Some(OperationState::Closed) => Self::Closed,
        }
    }
}

/// An event's derived status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventStatus {
    /// Recorded with an empty plan; nothing to do.
    Ignored,
    /// Recorded with an empty plan; a person should know.
    Quarantined,
    /// Every planned operation is on its way to its consumer, and none has left anything yet.
    Received,
    /// At least one operation is on its way.
    Processing,
    /// At least one operation waits to be tried again.
    Retrying,
    /// At least one operation needs a person.
    NeedsReview,
    /// At least one operation needs a person, and another has its effect: the job ended, say, and its money
    /// did not move.
    PartiallyFailed,
    /// The job ended; its money is not settled yet.
    BillingPending,
    /// Every operation is final.
    Completed,
}

impl EventStatus {
    /// The stable name in answers and filters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Quarantined => "quarantined",
            Self::Received => "received",
            Self::Processing => "processing",
            Self::Retrying => "retrying",
            Self::NeedsReview => "needs-review",
            Self::PartiallyFailed => "partially-failed",
            Self::BillingPending => "billing-pending",
            Self::Completed => "completed",
        }
    }
}

/// Derives an event's status from its receipt and the stages of its operations.
pub fn event_status(receipt: &Receipt, stages: &[(OperationName, Stage)]) -> EventStatus {
    // A replay may have added a plan.
    if let Some(empty) = receipt.empty.filter(|_| receipt.plan.is_empty()) {
        return if empty.answer() == "ignored" { EventStatus::Ignored } else { EventStatus::Quarantined };
    }
    let any = |stage: Stage| stages.iter().any(|(_, s)| *s == stage);
    // What was fetched did nothing by itself.
    let effect = stages.iter().any(|(name, stage)| *name != OperationName::Fetch && *stage == Stage::Done);
    let job_done = stages.iter().any(|(n, s)| *n == OperationName::CompleteJob && s.is_final());
    let money_open = stages.iter().any(|(n, s)| *n == OperationName::SettleUsage && *s == Stage::Processing);
    match () {
        () if any(Stage::NeedsReview) && effect => EventStatus::PartiallyFailed,
        () if any(Stage::NeedsReview) => EventStatus::NeedsReview,
        () if any(Stage::Retrying) => EventStatus::Retrying,
        () if job_done && money_open => EventStatus::BillingPending,
        () if !stages.is_empty() && stages.iter().all(|(_, s)| *s == Stage::Processing) => EventStatus::Received,
        () if any(Stage::Processing) => EventStatus::Processing,
        () => EventStatus::Completed,
    }
}

/// A job's derived workflow state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobStatus {
    /// No terminal transition and an open hold.
    Submitted,
    /// The job ended, its hold is still open.
    BillingPending,
    /// The job ended and its money is settled in the ledger; what that asks of a payment provider (a charge, capture, refund,
    /// or the end of an authorisation) is not known to be done.
    BillingSubmitted,
    /// The job ended and its money is settled.
    BillingSettled,
    /// The hold is closed without a transition, for example by expiry.
    HoldClosed,
}

/// Derives a job's workflow state. A close alone does not settle a success that came after it. `done_outside` is
/// false while something that the job asked of its payment provider is not known to be done.
pub fn job_status(records: &JobRecords, ledger: &JobLedger, done_outside: bool) -> JobStatus {
    match (records.transitions.last(), &ledger.close) {
        (None, None) => JobStatus::Submitted,
        (None, Some(_)) => JobStatus::HoldClosed,
        (Some(_), None) => JobStatus::BillingPending,
        (Some(last), Some(close)) => {
            let own = |entry: &Entry| entry.version == Some(last.version);
            let given_up = close.by.starts_with(BY_REVIEW); // a person decided that nothing is charged
            let settled = last.outcome != Outcome::Success || own(close) || given_up || ledger.late.iter().any(own);
            match settled {
                false => JobStatus::BillingPending,
                true if done_outside => JobStatus::BillingSettled,
                true => JobStatus::BillingSubmitted,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::envelope::Envelope;

    /// Partly failed means that something took effect; that something was fetched is none.
    #[test]
    fn a_fetch_alone_does_not_make_a_review_a_partial_failure() {
        use OperationName::{CompleteJob, Fetch, SettleUsage};
        let plan = [Fetch, CompleteJob, SettleUsage].map(|name| crate::receipt::Planned { item: ItemId::only(), name });
        let event = "acme/e".parse().unwrap();
        let receipt = crate::own::receipt(event, "job.completed", Envelope::default(), plan.to_vec(), 5);
        let status = |job, money| {
            event_status(&receipt, &[(Fetch, Stage::Done), (CompleteJob, job), (SettleUsage, money)]).name()
        };
        assert_eq!(status(Stage::NeedsReview, Stage::NeedsReview), "needs-review");
        assert_eq!(status(Stage::Done, Stage::NeedsReview), "partially-failed");
        assert_eq!(status(Stage::Done, Stage::Done), "completed");
    }
}
