//! The effects that exist for an event: what finality and derived status are judged from.

use domain::envelope::Envelope;
use domain::ids::{ItemId, JobId, Provider, TenantId};
use domain::intent::forward_key;
use domain::operation::{OperationKey, OperationName};
use domain::receipt::Receipt;
use domain::status::{Effects, EventEffects};
use futures_util::future::join_all;

use crate::{Store, StoreError};

/// Items whose effects are read side by side; the relay reads many receipts so at a time.
const ITEMS_SIDE_BY_SIDE: usize = 8;

impl Store {
    /// The tenant and job that an envelope names: by its own fields, else by the provider's reference.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_job(
        &self, provider: &Provider, envelope: &Envelope,
    ) -> Result<Option<(TenantId, JobId)>, StoreError> {
        if let (Some(tenant), Some(job)) = (&envelope.tenant, &envelope.job) {
            return Ok(Some((tenant.clone(), job.clone())));
        }
        let Some(reference) = &envelope.provider_ref else { return Ok(None) };
        Ok(self.get_ref(provider, reference).await?.map(|found| (found.tenant, found.job)))
    }

    /// Reads the effects that a receipt's planned operations could have, of each of its items, strongly
    /// consistent. The receipt must say which event it is of.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn effects_of(&self, receipt: &Receipt) -> Result<EventEffects, StoreError> {
        let mut found = Vec::new();
        let mut ids: Vec<&ItemId> = receipt.plan.iter().map(|planned| &planned.item).collect();
        ids.dedup(); // a plan holds each item's operations together
        for ids in ids.chunks(ITEMS_SIDE_BY_SIDE) {
            for one in join_all(ids.iter().map(|id| self.effects_of_item(receipt, id))).await {
                found.push(one?);
            }
        }
        Ok(EventEffects(found))
    }

    async fn effects_of_item(
        &self, receipt: &Receipt, id: &ItemId,
    ) -> Result<(ItemId, Option<i64>, Effects), StoreError> {
        let Some(event) = &receipt.event else { return Err(StoreError::Corrupt { what: "receipt" }) };
        let (envelope, own) = (receipt.envelope_of(id), receipt.plan.iter().filter(|planned| planned.item == *id));
        let names: Vec<OperationName> = own.map(|planned| planned.name).collect();
        let plans = |any: &[OperationName]| names.iter().any(|name| any.contains(name));
        let fetched = envelope.fetched.as_deref().cloned();
        let mut effects = Effects { fetched, ..Effects::default() };
        if plans(&[OperationName::FundWallet, OperationName::ReverseFunding])
            && let (Some(tenant), Some(wallet), Some(reference)) =
                (&envelope.tenant, &envelope.wallet, &envelope.reference)
        {
            effects.funding = self.get_funding(tenant, wallet, reference).await?;
            effects.funding_reversals = self.load_funding_reversals(tenant, wallet, reference).await?;
        }
        if plans(&[OperationName::CreateJob])
            && let (Some(tenant), Some(booking)) = (&envelope.tenant, &envelope.booking)
        {
            effects.bookings = self.load_booking(tenant, booking).await?;
        }
        if plans(&[OperationName::Forward]) {
            let key = OperationKey { event: event.clone(), item: id.clone(), name: OperationName::Forward };
            effects.forward = self.get_intent(&forward_key(&key, envelope)).await?;
        }
        if names.iter().any(|name| name.needs_job()) {
            self.load_job_effects(&event.provider, envelope, &names, &mut effects).await?;
        }
        Ok((id.clone(), envelope.sequence, effects))
    }

    async fn load_job_effects(
        &self, provider: &Provider, envelope: &Envelope, names: &[OperationName], effects: &mut Effects,
    ) -> Result<(), StoreError> {
        let plans = |any: &[OperationName]| names.iter().any(|name| any.contains(name));
        let Some((tenant, job)) = self.find_job(provider, envelope).await? else { return Ok(()) };
        if plans(&[OperationName::CompleteJob, OperationName::SettleUsage, OperationName::ExtendHold]) {
            effects.job = self.load_job(&tenant, &job).await?;
        }
        if plans(&[OperationName::SettleUsage, OperationName::AdjustUsage]) {
            effects.ledger = self.load_ledger(&tenant, &job).await?;
        }
        if plans(&[OperationName::RecordProgress]) {
            effects.progress = self.get_progress(&tenant, &job).await?;
        }
        Ok(())
    }
}
