//! Replays: what a replay does with each operation of an event, when it becomes due, and how an event
//! whose plan was empty is planned anew.
//!
//! A replay sends nothing. It writes due times, spaced per tenant, and the relay sends what is due over
//! the ordinary path: same keys, same conditions. Beside the receipt it leaves an audit item, which also
//! carries the plan that was added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::envelope::{mismatch, missing_field};
use crate::fetch::When;
use crate::ids::{ItemId, WalletId};
use crate::job::{JobRef, Outcome};
use crate::limits::REPLAY_SPACING_MS;
use crate::operation::{Change, Class, OperationKey, OperationName, OperationRecord, OperationState, Waivers};
use crate::own::is_told;
use crate::profile::Profile;
use crate::receipt::{EmptyPlan, Planned, Receipt};
use crate::status::Stage;

/// What a replay makes of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Became {
    /// It was final before: its recorded result is reported, nothing is sent.
    Finished,
    /// It waited and becomes due earlier.
    Due,
    /// It is due before its turn in this replay would come: left as it is.
    AlreadyDue,
    /// It was in review: tried again with fresh attempts.
    FromReview,
    /// It had neither effect nor record: due.
    Started,
    /// It is an event of our own that was told before: the same bytes are sent once more, under the same key.
    Again,
    /// A switch holds it back; it is resumed in its own order.
    Paused,
}

/// One operation's result of a replay, as it is recorded and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedOperation {
    /// Its item.
    pub item: ItemId,
    /// Which operation.
    pub operation: OperationName,
    /// What became of it.
    pub became: Became,
    /// The recorded result of one that was final, or its class; never payload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// When it is due, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<i64>,
}

/// A replay of one event (`p·reference` beside its receipt); append-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// The replay's reference.
    #[serde(rename = "rn")]
    pub reference: String,
    /// Who asked.
    #[serde(rename = "ac")]
    pub actor: String,
    /// Why.
    #[serde(rename = "rs")]
    pub reason: String,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
    /// The plan that this replay added, where the receipt's was empty.
    #[serde(rename = "pl", default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<Planned>,
    /// The outcome that the profile now reads from the event type.
    #[serde(rename = "oc", default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The wallet of the job, which groups the billing messages.
    #[serde(rename = "wl", default, skip_serializing_if = "Option::is_none")]
    pub wallet: Option<WalletId>,
    /// Set where the added plan has a fetch: what waits for it.
    #[serde(rename = "fe", default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<When>,
    /// What became of each operation.
    #[serde(rename = "op", default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<ReplayedOperation>,
}

impl Receipt {
    /// The receipt with the plans that replays added: everything that the path reads of an event.
    #[must_use]
    pub fn with_added_plans(mut self, replays: &[Replayed]) -> Self {
        for replayed in replays {
            for planned in &replayed.plan {
                if !self.plan.contains(planned) {
                    self.plan.push(planned.clone());
                }
            }
            self.envelope.outcome = self.envelope.outcome.or(replayed.outcome);
            self.envelope.fetch = self.envelope.fetch.or(replayed.fetch);
            self.envelope.wallet = self.envelope.wallet.take().or_else(|| replayed.wallet.clone());
        }
        self
    }
}

/// Plans an event anew whose plan was empty, from what its receipt keeps, by today's profile.
///
/// # Errors
/// Why it cannot be planned, and what would help.
pub fn plan_anew(profile: &Profile, receipt: &Receipt, job: Option<&JobRef>) -> Result<Replayed, String> {
    if matches!(receipt.empty, Some(EmptyPlan::Unparsable | EmptyPlan::Ambiguous)) {
        return Err(
            "its body could not be read, and no field of it was kept: have the provider send a corrected event"
                .to_owned(),
        );
    }
    let Some(rule) = profile.rule(&receipt.event_type) else {
        return Err(format!("the profile still has no operation for events of type {:?}", receipt.event_type));
    };
    if !profile.only_if.is_empty() || !rule.only_if.is_empty() {
        return Err(
            "the profile's `only_if` looks at fields that a receipt does not keep: have the provider send a new event"
                .to_owned(),
        );
    }
    if profile.items.is_some() || !receipt.items.is_empty() {
        return Err("deliveries of several items are not planned anew: have the provider send a new event".to_owned());
    }
    if !rule.data.is_empty() || rule.forward.as_ref().is_some_and(|forward| !forward.action_key.is_empty()) {
        return Err(
            "the profile forwards values that the receipt does not keep: have the provider send a new event".to_owned()
        );
    }
    let mut envelope = receipt.envelope.clone();
    envelope.outcome = rule.outcome;
    if let Some(job) = job {
        if let Some(note) = mismatch(&profile.slug, &envelope, job, None) {
            return Err(note);
        }
        envelope.wallet = Some(job.wallet.clone());
    }
    let tenant = envelope.tenant.as_ref().or(job.map(|job| &job.tenant));
    if tenant.is_some_and(|tenant| !profile.serves(tenant)) {
        return Err("its tenant is not in the profile's `tenants`".to_owned());
    }
    let (when, names) = rule.plan_for(&envelope);
    // What a thin event lacks is fetched.
    for name in rule.operations.iter().filter(|_| when != Some(When::Always)) {
        if let Some(field) = missing_field(*name, &envelope) {
            return Err(format!("{name} needs the field `{field}`, which the receipt does not keep"));
        }
    }
    if rule.operations.is_empty() {
        return Err(format!("the profile has no operation for events of type {:?}", receipt.event_type));
    }
    Ok(Replayed {
        reference: String::new(),
        actor: String::new(),
        reason: String::new(),
        created_ms: 0,
        plan: names.into_iter().map(|name| Planned { item: ItemId::only(), name }).collect(),
        fetch: when,
        outcome: rule.outcome,
        wallet: envelope.wallet,
        operations: Vec::new(),
    })
}

/// What a replay does with one operation, and the record that it writes, if it writes one. `effect` is the
/// operation's own effect in words, if it exists; `due_ms` its turn.
pub fn replay_operation(
    key: &OperationKey, effect: Option<String>, record: Option<&OperationRecord>, due_ms: i64, now_ms: i64,
    token: String,
) -> (ReplayedOperation, Option<OperationRecord>) {
    let result = |became, result, due_ms| ReplayedOperation {
        item: key.item.clone(),
        operation: key.name,
        became,
        result,
        due_ms,
    };
    let told = |record: &OperationRecord| format!("{}: {}", record.class.name(), record.note);
    let change = |record: Option<&OperationRecord>, generation, attempts| Change {
        state: OperationState::Wait,
        class: Class::Retried,
        note: "replayed".to_owned(),
        due_ms: Some(due_ms),
        generation,
        resend: record.is_some_and(|r| r.state == OperationState::Wait),
        attempts,
    };
    let next = |change| OperationRecord::next(key.clone(), record, change, now_ms, token);
    match (Stage::of(effect.is_some(), record), record) {
        // Of what is told to nobody, a charge or a board's job, the recorded result is the answer: it was an effect there.
        (Stage::Done, _) if is_told(&key.event) && record.is_none_or(|r| r.parked.is_none()) => {
            let again = next(change(record, record.map_or(1, |r| r.generation + 1), 0));
            let waivers = Waivers { again: true, ..again.waivers };
            (result(Became::Again, effect.unwrap_or_default(), Some(due_ms)), Some(again.waiving(waivers)))
        }
        (Stage::Done | Stage::Noop | Stage::Closed, _) => {
            let words = effect.or_else(|| record.map(told)).unwrap_or_default();
            (result(Became::Finished, words, None), None)
        }
        (Stage::Retrying, Some(record)) if record.parked.is_some() => {
            (result(Became::Paused, record.note.clone(), None), None)
        }
        (Stage::Retrying, Some(record)) if record.due_ms.is_some_and(|due| due <= due_ms) => {
            (result(Became::AlreadyDue, told(record), record.due_ms), None)
        }
        (Stage::Retrying, Some(record)) => {
            // Only the due time changes: tries, generation and the messages on their way stay.
            let pulled = Change {
                class: record.class,
                note: record.note.clone(),
                ..change(Some(record), record.generation, record.attempts)
            };
            (result(Became::Due, told(record), Some(due_ms)), Some(next(pulled)))
        }
        (Stage::NeedsReview, Some(record)) => {
            let again = change(Some(record), record.generation + 1, 0);
            (result(Became::FromReview, told(record), Some(due_ms)), Some(next(again)))
        }
        _ => (result(Became::Started, String::new(), Some(due_ms)), Some(next(change(None, 1, 0)))),
    }
}

/// Gives due times to the events of a replay: those of one tenant [`REPLAY_SPACING_MS`] apart.
#[derive(Debug)]
pub struct Spacing {
    from_ms: i64,
    taken: BTreeMap<String, i64>,
    last_ms: i64,
}

impl Spacing {
    /// The first due time is `from_ms`, for each tenant.
    pub fn new(from_ms: i64) -> Self {
        Self { from_ms, taken: BTreeMap::new(), last_ms: from_ms }
    }

    /// The due time of the next event of a tenant; of the events without one together, for `None`.
    pub fn next(&mut self, tenant: Option<&str>) -> i64 {
        let taken = self.taken.entry(tenant.unwrap_or_default().to_owned()).or_default();
        let due_ms = self.from_ms + *taken * REPLAY_SPACING_MS;
        *taken += 1;
        self.last_ms = self.last_ms.max(due_ms);
        due_ms
    }

    /// Where a following part may begin, so that no tenant gets two events closer than the spacing.
    pub fn end_ms(&self) -> i64 {
        if self.taken.is_empty() { self.from_ms } else { self.last_ms + REPLAY_SPACING_MS }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn events_of_one_tenant_are_spaced_and_other_tenants_do_not_wait_for_them() {
        let mut spacing = Spacing::new(1_000);
        let due: Vec<i64> = ["a", "a", "b", "a", "b"].iter().map(|t| spacing.next(Some(t))).collect();
        assert_eq!(due, [1_000, 1_200, 1_000, 1_400, 1_200]);
        assert_eq!(spacing.end_ms(), 1_600);
        assert_eq!(Spacing::new(7).end_ms(), 7);
    }

    #[test]
    fn one_in_review_is_tried_anew_and_one_that_waits_only_comes_earlier() {
        let key =
            OperationKey { event: "acme/e".parse().unwrap(), item: ItemId::only(), name: OperationName::SettleUsage };
        let wait = Change {
            state: OperationState::Wait,
            class: Class::Transient,
            note: "busy".to_owned(),
            due_ms: Some(9_000),
            generation: 4,
            resend: false,
            attempts: 3,
        };
        let waiting = OperationRecord::next(key.clone(), None, wait.clone(), 100, "t".to_owned());
        let replay = |record, due| replay_operation(&key, None, record, due, 500, "u".to_owned());
        let (told, earlier) = replay(Some(&waiting), 1_000);
        let earlier = earlier.unwrap();
        assert_eq!((told.became, told.due_ms), (Became::Due, Some(1_000)));
        assert_eq!((earlier.generation, earlier.live_from, earlier.attempts, earlier.revision), (4, 4, 3, 2));
        assert_eq!((earlier.due_ms, earlier.waiting_since_ms, earlier.class), (Some(1_000), 100, Class::Transient));
        let (told, left) = replay(Some(&waiting), 9_000);
        assert_eq!((told.became, left), (Became::AlreadyDue, None));

        let review = Change { state: OperationState::Review, due_ms: None, ..wait };
        let review = OperationRecord::next(key.clone(), None, review, 100, "t".to_owned());
        let (told, anew) = replay(Some(&review), 1_000);
        let anew = anew.unwrap();
        assert_eq!((told.became, anew.generation, anew.live_from, anew.attempts), (Became::FromReview, 5, 5, 0));
        assert_eq!((anew.due_ms, anew.waiting_since_ms), (Some(1_000), 500));
        let (told, first) = replay(None, 1_000);
        assert_eq!((told.became, first.unwrap().generation), (Became::Started, 1));
        let (told, nothing) = replay_operation(&key, Some("capture".to_owned()), None, 1_000, 500, "u".to_owned());
        assert_eq!((told.became, told.result.as_str(), nothing), (Became::Finished, "capture", None));
    }

    #[test]
    fn what_is_told_is_told_again_and_what_is_an_effect_elsewhere_is_not_sent_again() {
        let again = |event: &str| {
            let event = event.parse().unwrap();
            let key = OperationKey { event, item: ItemId::only(), name: OperationName::Forward };
            let (told, write) = replay_operation(&key, Some("sent".to_owned()), None, 1_000, 500, "u".to_owned());
            (told.became, write.is_some_and(|record| record.waivers.again))
        };
        assert_eq!(again("own/job.settled|t1|j1|c"), (Became::Again, true));
        for event in [
            "own/charge|t1|j1|c",
            "own/refund|t1|j1|v|r-1",
            "own/charge|sha256:00ff",
            "own/refund|sha256:00ff",
            "own/board.job|t1|b1|2",
            "own/board.job|sha256:00ff",
        ] {
            assert_eq!(again(event), (Became::Finished, false), "{event}");
        }
    }
}
