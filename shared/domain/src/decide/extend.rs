//! Extension of a hold for a long run, under its own reference; only while the job runs and its hold
//! is open.

use super::NoEffect;
use crate::ids::Reference;
use crate::job::{Extension, JobRecords};
use crate::ledger::{Balance, BalanceDelta, JobLedger};
use crate::money::Micros;
use crate::operation::Class;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The key.
    pub reference: &'a Reference,
    /// What to reserve on top; more than zero.
    pub amount: Micros,
    /// The new expiry, Unix milliseconds; an earlier one than before has no effect.
    pub expires_ms: i64,
    /// Who asks.
    pub by: &'a str,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
}

/// What an extension may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Put the extension and move the amount from available to held, if no close and no transition exists.
    Commit(Extension, Box<BalanceDelta>),
    /// Nothing to write; the reason is for people.
    None(NoEffect),
}

/// Decides one extension.
pub fn decide(request: &Request<'_>, records: &JobRecords, ledger: &JobLedger, balance: &Balance) -> Decision {
    if let Some(before) = records.extensions.iter().find(|e| e.reference == request.reference.as_str()) {
        return Decision::None(match () {
            () if before.by == request.by => NoEffect::Done,
            () if before.amount == request.amount => {
                NoEffect::Noop(Class::AlreadyDone, format!("extended by {}", before.by))
            }
            () => NoEffect::Review(Class::Conflict, format!("this reference extended by {}", before.amount)),
        });
    }
    let refused = |note: &str| Decision::None(NoEffect::Review(Class::NotPossible, note.to_owned()));
    if !records.job.policies.extendable {
        return refused("the job's pinned policies do not let its hold be extended");
    }
    if ledger.close.is_some() || !records.transitions.is_empty() {
        return refused("the job ended or its hold is closed");
    }
    let total = records.hold().and_then(|hold| hold.plus(request.amount));
    if total.is_err() || !balance.covers(request.amount) {
        return Decision::None(super::settle::funds_short(request.amount, balance));
    }
    let extension = Extension {
        number: records.next_extension(),
        reference: request.reference.to_string(),
        amount: request.amount,
        expires_ms: request.expires_ms,
        by: request.by.to_owned(),
        created_ms: request.now_ms,
    };
    let delta = BalanceDelta {
        available: request.amount.negated(),
        held: request.amount,
        carried: Micros::ZERO,
        need: request.amount,
        advance: None,
        currency: balance.currency,
        credit_limit: balance.credit_limit,
        low: Box::default(),
    };
    Decision::Commit(extension, Box::new(delta))
}
