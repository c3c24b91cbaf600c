//! The effects that exist for an event: what finality and derived status are judged from.

use domain::envelope::Envelope;
use domain::ids::{JobId, Provider, TenantId};
use domain::operation::OperationName;
use domain::status::Effects;

use crate::{Store, StoreError};

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

    /// Reads the effects that the planned operations could have, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_effects(
        &self, provider: &Provider, envelope: &Envelope, planned: &[OperationName],
    ) -> Result<Effects, StoreError> {
        let plans = |any: &[OperationName]| planned.iter().any(|name| any.contains(name));
        let mut effects = Effects::default();
        if plans(&[OperationName::FundWallet, OperationName::ReverseFunding])
            && let (Some(tenant), Some(wallet), Some(reference)) =
                (&envelope.tenant, &envelope.wallet, &envelope.reference)
        {
            effects.funding = self.get_funding(tenant, wallet, reference).await?;
            effects.funding_reversals = self.load_funding_reversals(tenant, wallet, reference).await?;
        }
        if !planned.iter().any(|name| name.needs_job()) {
            return Ok(effects);
        }
        let Some((tenant, job)) = self.find_job(provider, envelope).await? else { return Ok(effects) };
        if plans(&[OperationName::CompleteJob, OperationName::SettleUsage, OperationName::ExtendHold]) {
            effects.job = self.load_job(&tenant, &job).await?;
        }
        if plans(&[OperationName::SettleUsage, OperationName::AdjustUsage]) {
            effects.ledger = self.load_ledger(&tenant, &job).await?;
        }
        if plans(&[OperationName::RecordProgress]) {
            effects.progress = self.get_progress(&tenant, &job).await?;
        }
        Ok(effects)
    }
}
