//! create-job: a booking makes a job of our own, once; a later version of it is an update.
//!
//! Keyed by (tenant, booking, version). The first version that is taken in reserves the hold and pins the
//! price, as a submission does; every later one is recorded beside it and reserves nothing. An older
//! version after a newer one has no effect.

use super::settle::funds_short;
use super::{Ask, NoEffect};
use crate::booking::BookingVersion;
use crate::ids::ProviderRef;
use crate::job::Job;
use crate::ledger::{Balance, BalanceDelta};
use crate::operation::Class;
use crate::submit::{RequestError, hold_delta};

/// What the decision is made from.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The event's version of the booking.
    pub asked: &'a BookingVersion,
    /// The job as this event would submit it, or why it cannot be.
    pub job: &'a Result<Job, RequestError>,
    /// The versions that were taken in, in order.
    pub versions: &'a [BookingVersion],
    /// The job under the booking's name, if it exists; with the reference that was attached to it.
    pub stands: Option<&'a Job>,
    /// The wallet's balance.
    pub balance: Option<&'a Balance>,
    /// True when the provider's reference leads to another job.
    pub ref_taken: bool,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Submit the job, with its first version, in one transaction.
    Create(Box<Job>, BalanceDelta),
    /// Record a later version; the reference that it brings is attached to the job before.
    Record(Option<ProviderRef>),
    /// Nothing to write.
    None(NoEffect),
}

fn review(class: Class, note: impl Into<String>) -> Decision {
    Decision::None(NoEffect::Review(class, note.into()))
}

/// Decides create-job.
pub fn decide(ask: &Ask<'_>, view: &View<'_>) -> Decision {
    if view.versions.iter().any(|version| version.by == *ask.by) {
        return Decision::None(NoEffect::Done);
    }
    let asked = view.asked;
    if let Some(owner) = view.versions.iter().find(|version| version.version == asked.version) {
        if owner.content_hash == asked.content_hash {
            return Decision::None(NoEffect::Noop(Class::AlreadyDone, format!("taken in by {}", owner.by)));
        }
        return review(Class::Conflict, format!("{} said otherwise of version {}", owner.by, owner.version));
    }
    if let Some(last) = view.versions.last().filter(|last| last.version > asked.version) {
        let note = format!("version {} by {} came before", last.version, last.by);
        return Decision::None(NoEffect::Noop(Class::Superseded, note));
    }
    if let Some(limit) = ask.over_limit() {
        return Decision::None(limit);
    }
    let job = match view.job {
        Ok(job) => job,
        Err(error) => return review(Class::NotPossible, error.to_string()),
    };
    if view.ref_taken {
        return review(Class::Conflict, "the provider's reference leads to another job");
    }
    match (view.versions.is_empty(), view.stands) {
        (true, None) => create(ask, view, job),
        (true, Some(_)) => review(Class::Conflict, format!("job {:?} was submitted otherwise", job.job.as_str())),
        (false, Some(stands)) => update(job, stands),
        (false, None) => review(Class::Unreadable, "the booking was taken in and its job is not there"),
    }
}

/// The first version: as a submission.
fn create(ask: &Ask<'_>, view: &View<'_>, job: &Job) -> Decision {
    if ask.envelope.currency.is_some_and(|said| said != job.currency()) {
        return review(Class::Mismatch, format!("the model is priced in {}, the event says otherwise", job.currency()));
    }
    let Some(balance) = view.balance else {
        return Decision::None(NoEffect::Wait(Class::NotYet, "the wallet does not exist yet".to_owned()));
    };
    if balance.currency != job.currency() {
        let note = format!("the wallet holds {}, the model is priced in {}", balance.currency, job.currency());
        return review(Class::Mismatch, note);
    }
    if !balance.covers(job.hold) {
        // Money may come: it is tried again until the limits of tries and age, and is a person's then.
        return Decision::None(match funds_short(job.hold, balance) {
            NoEffect::Review(class, note) => NoEffect::Wait(class, note),
            other => other,
        });
    }
    Decision::Create(Box::new(job.clone()), hold_delta(job, balance))
}

/// A later version: the job's terms were pinned with the first.
fn update(job: &Job, stands: &Job) -> Decision {
    // On a wallet that authorises the hold is the payment provider's.
    let pinned = |j: &Job| (j.provider.clone(), j.wallet.clone(), j.model().clone(), j.hold, j.authorised);
    if pinned(job) != pinned(stands) {
        return review(Class::NotPossible, "the job's wallet, model and hold were pinned by an earlier version");
    }
    match (&job.provider_ref, &stands.provider_ref) {
        (Some(said), Some(known)) if said != known => {
            review(Class::Mismatch, "the job has another reference at the provider")
        }
        (Some(said), None) => Decision::Record(Some(said.clone())),
        _ => Decision::Record(None),
    }
}
