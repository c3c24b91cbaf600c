//! Charges of postpaid wallets: what a submission and a posting ask of the payment provider, what became of an
//! authorisation, and what of a charge can go back there.

use domain::authorisation::{self, AUTHORISE, Authorisation, CAPTURE, Close, VOID};
use domain::charge::{self, CHARGE, Outgoing, REFUND};
use domain::decide::posting::Posting;
use domain::event::EventRef;
use domain::ids::{IdError, Reference};
use domain::intent::{Intent, IntentState};
use domain::job::Job;
use domain::ledger::{Balance, Entry, JobLedger};
use domain::money::Micros;
use domain::operation::{OperationKey, OperationState};
use domain::postpaid::{Back, Postpaid, moved};
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

const HELD_WITHOUT_ID: &str = "the job's authorisation stands, and the payment's id is not known here: cancel it at the payment \
                               provider, then close this (a settlement with `release`), and have what the job cost paid otherwise";
const MAYBE_HELD: &str = "the job's authorisation was declined, and a later answer said that it stands: look for its payment at the \
                          payment provider, cancel it there if it exists, then close the authorisation's review and retry this: \
                          the charge is then a plain one";

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

/// What became of what a job asked of its payment provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The event of our own that stands for it.
    pub event: EventRef,
    /// How far its intent is; `None` before it is written down.
    pub state: Option<IntentState>,
    /// The provider's id of the payment or refund, where it is known.
    pub payment: Option<String>,
    /// True where a later answer said that what failed was done after all.
    pub contradicted: bool,
    /// True when the provider has taken it, a person closed its review, or there was nothing to do.
    pub done: bool,
}

impl App {
    /// What a submission asks of the payment provider; nothing where its wallet authorises nothing.
    ///
    /// # Errors
    /// [`StoreError`] never: every key was checked when it was made.
    pub fn authorising(&self, job: &Job, balance: &Balance) -> Result<Option<Outgoing>, StoreError> {
        let Some(postpaid) = &balance.postpaid else { return Ok(None) };
        let receipt =
            authorisation::receipt(job, postpaid).map_err(|_| StoreError::Corrupt { what: "authorisation" })?;
        Ok(receipt.map(|receipt| self.outgoing(receipt)))
    }

    fn outgoing(&self, receipt: Receipt) -> Outgoing {
        let key = receipt.operations().into_iter().next();
        let intent = key.and_then(|key| self.charge_intent(&key, &receipt));
        Outgoing { receipt, intent }
    }

    /// What became of the authorisation of a job on this wallet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn authorisation_of(&self, job: &Job, balance: &Balance) -> Result<Authorisation, StoreError> {
        match &balance.postpaid {
            Some(postpaid) => self.authorisation_at(job, &postpaid.to).await,
            None => Ok(Authorisation::Nothing),
        }
    }

    /// What became of a job's authorisation at this payment provider. An end of it stays, so it does not matter when it is
    /// read; but its operation is read before its intent, since what closes by itself is closed after the intent has ended.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn authorisation_at(&self, job: &Job, to: &str) -> Result<Authorisation, StoreError> {
        if job.authorised == Micros::ZERO {
            return Ok(Authorisation::Nothing);
        }
        let key = authorisation::key_of(job, to);
        let key = key.map_err(|_| StoreError::Corrupt { what: "authorisation" })?;
        let closed = self.is_closed(&key).await?;
        let late = match self.store.get_intent(&key.to_string()).await? {
            Some(Intent { state: IntentState::Settled, result, .. }) => {
                let id = result.and_then(|result| result.id);
                return Ok(id.map_or(Authorisation::Unclear(HELD_WITHOUT_ID), Authorisation::Held));
            }
            Some(Intent { state: IntentState::Failed, late_settled: false, .. }) => return Ok(Authorisation::Nothing),
            other => other.is_some_and(|intent| intent.late_settled),
        };
        Ok(match closed {
            // A person who closed its review has said that nothing is held, or is to be used from here.
            true => Authorisation::Nothing,
            false if late => Authorisation::Unclear(MAYBE_HELD),
            false => Authorisation::Open,
        })
    }

    async fn is_closed(&self, key: &OperationKey) -> Result<bool, StoreError> {
        Ok(self.store.get_operation(key).await?.is_some_and(|record| record.state == OperationState::Closed))
    }

    /// A posting with its charge or refund, and with what becomes of its job's authorisation; unchanged where the wallet is
    /// paid in advance.
    ///
    /// # Errors
    /// [`StoreError`] never: every key was checked when it was made.
    pub fn charging(&self, posting: Posting, balance: &Balance) -> Result<Posting, StoreError> {
        let left_out = domain::planted::on("charge-left-out-of-its-settlement"); // PLANTED
        let Some(postpaid) = balance.postpaid.as_ref().filter(|_| !left_out) else { return Ok(posting) };
        let corrupt = |_| StoreError::Corrupt { what: "charge" };
        let charge = charge::receipt(&posting, postpaid).map_err(corrupt)?.map(|receipt| self.outgoing(receipt));
        let void = match posting.authorised {
            Some(Close::Void) => Some(authorisation::void(&posting, postpaid).map_err(corrupt)?),
            Some(Close::Capture(_)) | None => None,
        };
        Ok(Posting { outgoing: charge.into_iter().chain(void).collect(), ..posting })
    }

    /// The intent of a step at a payment provider; `None` where its tables are missing.
    pub fn charge_intent(&self, key: &OperationKey, receipt: &Receipt) -> Option<Intent> {
        let charges = self.profiles.charges(key.item.as_str())?;
        let steps = charges.authorise.as_ref();
        let to = match receipt.event_type.as_str() {
            AUTHORISE => &steps?.to,
            CAPTURE => &steps?.capture,
            VOID => &steps?.void,
            REFUND => &charges.refunds,
            _ => &charges.to,
        };
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
            let key = self.charged_by(entry, &charge, postpaid).await?;
            let payment = match self.payment_of(&key, entry).await? {
                Ok(payment) => payment,
                Err(why) => return Ok(Refundable::Not(why)),
            };
            if left > best.as_ref().map_or(Micros::ZERO, |best| best.left) {
                best = Some(Back { charge, payment, left });
            }
        }
        Ok(best.map_or(Refundable::Nothing, Refundable::To))
    }

    /// The key of what an entry was charged by. Only a close can be a capture; which it was its event says, whose intent may
    /// not be written yet.
    async fn charged_by(&self, entry: &Entry, charge: &str, postpaid: &Postpaid) -> Result<OperationKey, StoreError> {
        let key =
            |kind| charge::key_of(kind, entry, charge, postpaid).map_err(|_| StoreError::Corrupt { what: "charge" });
        if postpaid.authorise && charge == domain::keys::CLOSE {
            let capture = key(CAPTURE)?;
            if self.store.load_event(&capture.event).await?.is_some() {
                return Ok(capture);
            }
        }
        key(CHARGE)
    }

    /// What became of the charge or refund of an entry; `None` where it asked for none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn asked_by(&self, entry: &Entry, postpaid: &Postpaid) -> Result<Option<Asked>, StoreError> {
        let Some(sort_key) = charge::sort_key(entry) else { return Ok(None) };
        match postpaid.minor(moved(entry)) {
            0 => Ok(None),
            1.. => self.asked(self.charged_by(entry, &sort_key, postpaid).await?).await.map(Some),
            // Of a charge that was never paid nothing goes back at the provider, and no event asks for it.
            _ => self.asked_where_it_exists(charge::key_of(REFUND, entry, &sort_key, postpaid)).await,
        }
    }

    /// What became of giving up a job's authorisation; `None` where its close, this entry, did not ask for that.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn voided_by(&self, close: &Entry, postpaid: &Postpaid) -> Result<Option<Asked>, StoreError> {
        self.asked_where_it_exists(charge::key_of(VOID, close, domain::keys::CLOSE, postpaid)).await
    }

    async fn asked_where_it_exists(&self, key: Result<OperationKey, IdError>) -> Result<Option<Asked>, StoreError> {
        let key = key.map_err(|_| StoreError::Corrupt { what: "charge" })?;
        match self.store.load_event(&key.event).await? {
            Some(_) => self.asked(key).await.map(Some),
            None => Ok(None),
        }
    }

    /// What became of what is asked under a key.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn asked(&self, key: OperationKey) -> Result<Asked, StoreError> {
        let over = self.store.get_operation(&key).await?.is_some_and(|record| record.is_final()); // before its intent, as above
        let intent = self.store.get_intent(&key.to_string()).await?;
        let state = intent.as_ref().map(|intent| intent.state);
        let contradicted = intent.as_ref().is_some_and(|intent| intent.late_settled);
        let payment = intent.and_then(|intent| intent.result).and_then(|result| result.id);
        let done = over || state == Some(IntentState::Settled);
        Ok(Asked { event: key.event, state, payment, contradicted, done })
    }

    /// The payment of a charge, `None` where nothing was paid; else why that cannot be said.
    async fn payment_of(
        &self, key: &OperationKey, entry: &Entry,
    ) -> Result<Result<Option<String>, &'static str>, StoreError> {
        let closed = self.is_closed(key).await?; // before its intent, as above
        match self.store.get_intent(&key.to_string()).await? {
            Some(Intent { state: IntentState::Settled, result, .. }) => {
                let Some(id) = result.and_then(|result| result.id) else {
                    return Ok(Err(NO_ID));
                };
                let reference = Reference::new(id.as_str()).map_err(|_| StoreError::Corrupt { what: "payment" })?;
                let arrived = self.store.get_funding(&entry.tenant, &entry.wallet, &reference).await?;
                Ok(if arrived.is_some() { Ok(Some(id)) } else { Err(NOT_ARRIVED) })
            }
            Some(Intent { state: IntentState::Failed, late_settled: false, .. }) => Ok(Ok(None)),
            // A person who closed its review has said that nothing is to be refunded from here.
            _ if closed => Ok(Ok(None)),
            Some(intent) if intent.late_settled => Ok(Err(MAYBE_PAID)),
            _ => Ok(Err(ON_ITS_WAY)),
        }
    }
}
