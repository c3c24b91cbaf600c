//! Charges of postpaid wallets: what a posting asks of the payment provider, and what of it can go back there.

use domain::charge::{self, CHARGE, Outgoing};
use domain::decide::posting::Posting;
use domain::ids::Reference;
use domain::intent::{Intent, IntentState};
use domain::ledger::{Balance, Entry, JobLedger};
use domain::money::Micros;
use domain::operation::{OperationKey, OperationState};
use domain::postpaid::{Back, moved};
use domain::receipt::Receipt;
use store::StoreError;

use crate::App;

const ON_ITS_WAY: &str = "a charge of this job is not at an end yet, so there is nothing to refund: ask again later, or decide \
                          its review";
const NOT_ARRIVED: &str = "the payment of this job's charge has not arrived yet, so there is nothing to refund: ask again when \
                           the payment provider has told of it";
const NO_ID: &str = "this job's charge was paid, and the payment's id is not known here: refund it at the payment provider, \
                     whose webhook then posts what went back";
const MAYBE_PAID: &str = "this job's charge was declined, and a later answer said that it was paid: look for its payment at the \
                          payment provider, refund it there if it exists, then close the charge's review and ask again";

/// What can go back of a job's charges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refundable {
    /// Nothing is charged, or all of it went back.
    Nothing,
    /// To this one.
    To(Back),
    /// Not yet, or not from here, for this reason: it says what to do.
    Not(&'static str),
}

impl App {
    /// A posting with its charge or refund; unchanged where the wallet is paid in advance.
    ///
    /// # Errors
    /// [`StoreError`] never: every key was checked when it was made.
    pub fn charging(&self, posting: Posting, balance: &Balance) -> Result<Posting, StoreError> {
        let Some(postpaid) = &balance.postpaid else { return Ok(posting) };
        let corrupt = |_| StoreError::Corrupt { what: "charge" };
        let Some(receipt) = charge::receipt(&posting, postpaid).map_err(corrupt)? else { return Ok(posting) };
        let key = receipt.operations().into_iter().next();
        let intent = key.and_then(|key| self.charge_intent(&key, &receipt));
        Ok(Posting { outgoing: Some(Outgoing { receipt, intent }), ..posting })
    }

    /// The intent of a charge or refund; `None` where its tables are missing.
    pub fn charge_intent(&self, key: &OperationKey, receipt: &Receipt) -> Option<Intent> {
        let charges = self.profiles.charges(key.item.as_str())?;
        let to = if receipt.event_type == CHARGE { &charges.to } else { &charges.refunds };
        let destination = self.profiles.destination(to)?;
        Some(charge::intent(key, receipt, charges, destination, self.clock.now_ms()))
    }

    /// What can go back of a job's charges: to the one that has most left. Read after the balance, whose sequence then
    /// covers it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn refundable(&self, balance: &Balance, ledger: &JobLedger) -> Result<Refundable, StoreError> {
        let Some(postpaid) = &balance.postpaid else { return Ok(Refundable::Nothing) };
        let mut best: Option<Back> = None;
        for entry in ledger.close.iter().chain(&ledger.late).chain(&ledger.adjusts) {
            let Some(charge) = charge::sort_key(entry).filter(|_| moved(entry) > Micros::ZERO) else { continue };
            let left = charge::left_of(entry, &charge, ledger).map_err(|_| StoreError::Corrupt { what: "amount" })?;
            let key = charge::key_of(CHARGE, entry, &charge, postpaid);
            let key = key.map_err(|_| StoreError::Corrupt { what: "charge" })?;
            let intent = self.store.get_intent(&key.to_string()).await?;
            let payment = match self.payment_of(&key, intent.as_ref(), entry).await? {
                Ok(payment) => payment,
                Err(why) => return Ok(Refundable::Not(why)),
            };
            if left > best.as_ref().map_or(Micros::ZERO, |best| best.left) {
                best = Some(Back { charge, payment, left });
            }
        }
        Ok(best.map_or(Refundable::Nothing, Refundable::To))
    }

    /// The payment of a charge, `None` where nothing was paid; else why that cannot be said.
    async fn payment_of(
        &self, key: &OperationKey, intent: Option<&Intent>, entry: &Entry,
    ) -> Result<Result<Option<String>, &'static str>, StoreError> {
        match intent {
            Some(Intent { state: IntentState::Settled, result, .. }) => {
                let Some(id) = result.as_ref().and_then(|result| result.id.clone()) else {
                    return Ok(Err(NO_ID));
                };
                let reference = Reference::new(id.as_str()).map_err(|_| StoreError::Corrupt { what: "payment" })?;
                let arrived = self.store.get_funding(&entry.tenant, &entry.wallet, &reference).await?;
                Ok(if arrived.is_some() { Ok(Some(id)) } else { Err(NOT_ARRIVED) })
            }
            Some(Intent { state: IntentState::Failed, late_settled: false, .. }) => Ok(Ok(None)),
            // A person who closed its review has said that nothing is to be refunded from here.
            _ => match self.store.get_operation(key).await?.map(|record| record.state) {
                Some(OperationState::Closed) => Ok(Ok(None)),
                _ if intent.is_some_and(|intent| intent.late_settled) => Ok(Err(MAYBE_PAID)),
                _ => Ok(Err(ON_ITS_WAY)),
            },
        }
    }
}
