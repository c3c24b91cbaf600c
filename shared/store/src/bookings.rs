//! Versions of bookings: the first is written with its job, later ones beside it.

use domain::booking::BookingVersion;
use domain::ids::{BookingId, TenantId};
use domain::job::Job;
use domain::keys;
use domain::ledger::BalanceDelta;

use crate::error::classify;
use crate::item::{Item, decode, encode};
use crate::{Store, StoreError, Submitted};

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
        &self, job: &Job, delta: &BalanceDelta, first: &BookingVersion,
    ) -> Result<Submitted, StoreError> {
        let put = self.put_action(&self.names.jobs, version_item(first)?)?;
        self.submit_with(job, delta, Some(put)).await
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
