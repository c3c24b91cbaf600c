//! Bookings: what a provider reserved for a customer, and the job of our own that is made from it.
//!
//! A booking has versions (made, rescheduled). The first version that is taken in makes the job, whose
//! terms are pinned then; each later one is recorded beside it. The effect's key is (tenant, booking,
//! version): no second job and no second hold, however many events speak of the booking.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::envelope::Envelope;
use crate::event::By;
use crate::ids::{BookingId, IdError, JobId, MAX_PART_BYTES, TenantId};
use crate::operation::hex_sha256;

/// What stands before a booking's id in the id of its job.
const JOB_PREFIX: &str = "booking-";

/// The job that a booking leads to: its id behind `booking-`, or the hash of an id that is too long for
/// that (behind `#`, so that it never is the name of another booking's job by accident).
///
/// # Errors
/// [`IdError`] never in practice: both forms are short enough.
pub fn job_of(booking: &BookingId) -> Result<JobId, IdError> {
    let plain = format!("{JOB_PREFIX}{}", booking.as_str());
    if plain.len() <= MAX_PART_BYTES {
        return JobId::new(plain);
    }
    JobId::new(format!("{JOB_PREFIX}#{}", hex_sha256(booking.as_str())))
}

/// One version of a booking that was taken in (`b·version`); immutable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookingVersion {
    /// Whose booking.
    #[serde(rename = "tn")]
    pub tenant: TenantId,
    /// Which.
    #[serde(rename = "bk")]
    pub booking: BookingId,
    /// The provider's version of it.
    #[serde(rename = "vn")]
    pub version: u32,
    /// The job that was made from it.
    #[serde(rename = "id")]
    pub job: JobId,
    /// The profile's named values as of this version.
    #[serde(rename = "da", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// Tells the same version from another content under its number.
    #[serde(rename = "hs")]
    pub content_hash: String,
    /// True where an event of our own takes it to a job board ([`crate::board`]).
    #[serde(rename = "bd", default, skip_serializing_if = "std::ops::Not::not")]
    pub board: bool,
    /// Who asked.
    #[serde(rename = "by")]
    pub by: By,
    /// When it was written, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

impl BookingVersion {
    /// The version that an event speaks of; `None` when its envelope lacks one of the parts.
    pub fn of(envelope: &Envelope, by: &By, now_ms: i64) -> Option<Self> {
        let (tenant, booking) = (envelope.tenant.clone()?, envelope.booking.clone()?);
        Some(Self {
            job: job_of(&booking).ok()?,
            tenant,
            booking,
            version: envelope.version?,
            data: envelope.data.clone(),
            content_hash: content_hash(envelope),
            board: false,
            by: by.clone(),
            created_ms: now_ms,
        })
    }
}

/// SHA-256 over what an event says of a booking: terms, the provider's reference, the named values, and what
/// goes to a job board.
fn content_hash(envelope: &Envelope) -> String {
    let said =
        (&envelope.model, &envelope.wallet, envelope.amount, envelope.currency, &envelope.provider_ref, &envelope.data);
    let said = serde_json::to_string(&said).unwrap_or_default(); // plain fields: cannot fail
    if envelope.board.is_empty() {
        return hex_sha256(&said); // as it was before there were boards
    }
    hex_sha256(&format!("{said}{}", crate::board::body(&envelope.board)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    fn job(booking: &str) -> JobId {
        job_of(&BookingId::new(booking).unwrap()).unwrap()
    }

    #[test]
    fn every_booking_has_a_job_of_its_own_whatever_its_length() {
        assert_eq!(job("b-1").as_str(), "booking-b-1");
        // 192 bytes still fit behind the prefix of 8; 193 do not.
        assert_eq!(job(&"x".repeat(192)).as_str().len(), 200);
        let (long, other) = (job(&"x".repeat(193)), job(&format!("{}y", "x".repeat(192))));
        assert!(long.as_str().starts_with("booking-#") && long != other, "{long}");
        assert_eq!(long.as_str().len(), 9 + 64);
    }
}
