//! Versions of bookings: the first is written with its job, later ones beside it.

use domain::booking::BookingVersion;
use domain::charge::Outgoing;
use domain::ids::{BookingId, TenantId};
use domain::job::Job;
use domain::keys;
use domain::ledger::BalanceDelta;

use domain::told::Told;

use crate::error::{Commit, classify};
use crate::item::{Item, decode, encode};
use crate::{Store, StoreError, Submitted};

/// What became of a later version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is written, now or by an earlier try of ours.
    Ours,
    /// Its number is another event's, or another version of the booking came first: decide again.
    Passed,
    /// Another transaction was at work: try again a little later.
    Conflict,
}

fn version_item(version: &BookingVersion) -> Result<Item, StoreError> {
    let pk = keys::booking_pk(&version.tenant, &version.booking);
    encode("booking version", version, &pk, &keys::booking_sk(version.version))
}

impl Store {
    /// The versions of a booking that were taken in, in order, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_booking(
        &self, tenant: &TenantId, booking: &BookingId,
    ) -> Result<Vec<BookingVersion>, StoreError> {
        let items = self.query_range(&self.names.jobs, &keys::booking_pk(tenant, booking), None).await?;
        items.into_iter().map(|item| decode("booking version", item)).collect()
    }

    /// Submits a job together with the first version of the booking that it is made from.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the booking to find out.
    pub async fn submit_booked_job(
        &self, job: &Job, delta: &BalanceDelta, outgoing: &[Outgoing], first: &BookingVersion,
    ) -> Result<Submitted, StoreError> {
        let put = self.put_action(&self.names.jobs, version_item(first)?)?;
        self.submit_with(job, delta, outgoing, Some(put)).await
    }

    /// As [`Store::put_booking_version`], with what is told of it.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] read the booking to find out.
    pub async fn put_booking_version_telling(
        &self, version: &BookingVersion, told: &Told,
    ) -> Result<Recorded, StoreError> {
        let of = |ours: bool| if ours { Recorded::Ours } else { Recorded::Passed };
        if told.is_empty() {
            return self.put_booking_version(version).await.map(of);
        }
        let effect = self.put_action(&self.names.jobs, version_item(version)?)?;
        match self.commit_telling("put booking version", effect, told).await? {
            Commit::Committed => Ok(Recorded::Ours),
            // It stands: the plain put says whose it is.
            Commit::ConditionFailed(failed) if failed.contains(&0) => self.put_booking_version(version).await.map(of),
            Commit::ConditionFailed(_) => Ok(Recorded::Passed),
            Commit::Conflict => Ok(Recorded::Conflict),
        }
    }

    /// Records a later version of a booking if its number is absent. True when it is ours: written now, or
    /// by an earlier try of ours.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn put_booking_version(&self, version: &BookingVersion) -> Result<bool, StoreError> {
        match self.put_if_absent(&self.names.jobs, version_item(version)?).await {
            Ok(None) => Ok(true),
            Ok(Some(old)) => Ok(decode::<BookingVersion>("booking version", old)?.by == version.by),
            Err(error) => Err(classify("put booking version", &error)),
        }
    }
}
