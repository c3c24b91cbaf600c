//! Charges of postpaid wallets: what a posting asks of the payment provider, and what of it can go back there.

use domain::charge::{self, CHARGE, Outgoing};
use domain::decide::posting::Posting;
use domain::intent::{Intent, IntentState};
use domain::ledger::{Balance, JobLedger};
use domain::money::Micros;
use domain::operation::OperationKey;
use domain::postpaid::{Back, moved};
use domain::profile::{Charges, HttpDestination};
use domain::receipt::Receipt;
use store::StoreError;

use crate::App;
use crate::dispatch::message;

/// What can go back of a job's charges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refundable {
    /// Nothing is charged, or all of it went back.
    Nothing,
    /// To this one.
    To(Back),
    /// A charge is on its way: whether there is a payment is not known yet.
    NotYet,
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

    /// Where a charge or refund goes.
    pub fn charge_destination(&self, key: &OperationKey, event_type: &str) -> Option<(&Charges, &HttpDestination)> {
        let charges = self.profiles.charges(key.item.as_str())?;
        let name = if event_type == CHARGE { &charges.to } else { &charges.refunds };
        Some((charges, self.profiles.destination(name)?))
    }

    /// The intent of a charge or refund; `None` where its tables are missing.
    pub fn charge_intent(&self, key: &OperationKey, receipt: &Receipt) -> Option<Intent> {
        let (charges, destination) = self.charge_destination(key, &receipt.event_type)?;
        Some(charge::intent(key, receipt, charges, destination, self.clock.now_ms()))
    }

    /// Sends the message of a committed charge.
    pub(crate) async fn send_charge(&self, posting: &Posting) {
        let Some(Outgoing { receipt, .. }) = &posting.outgoing else { return };
        let messages: Vec<_> = receipt.operations().into_iter().map(|key| message(receipt, key, 0)).collect();
        self.dispatch(&messages).await;
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
            let payment = match intent {
                Some(Intent { state: IntentState::Settled, result, .. }) => result.and_then(|result| result.id),
                Some(Intent { state: IntentState::Failed, .. }) => None,
                _ => return Ok(Refundable::NotYet),
            };
            if left > best.as_ref().map_or(Micros::ZERO, |best| best.left) {
                best = Some(Back { charge, payment, left });
            }
        }
        Ok(best.map_or(Refundable::Nothing, Refundable::To))
    }
}
