//! A job ended without a capture: what was authorised for it is given up at the payment provider.
//!
//! The event was put when the job ended; nothing of its request was known then but the job. The authorisation itself may be
//! on its way, or of unknown outcome: its end is waited for, since what is not cancelled stays held on the customer's card.

use domain::authorisation::Authorisation;
use domain::decide::NoEffect;
use domain::operation::Class;
use domain::receipt::Receipt;
use runtime::App;
use runtime::consumer::Work;
use store::StoreError;

use crate::{advised, no_charges};

/// Writes the request down, once the payment's id is known. `None` means that something was written, and what stands is
/// read again.
pub(crate) async fn put(app: &App, work: &Work) -> Result<Option<NoEffect>, StoreError> {
    let envelope = &work.receipt.envelope;
    let (Some(tenant), Some(job)) = (&envelope.tenant, &envelope.job) else {
        return Ok(Some(NoEffect::Review(Class::Unreadable, "the receipt has no tenant or job".to_owned())));
    };
    let Some(job) = app.store.get_job(tenant, job).await? else {
        return Ok(Some(NoEffect::Review(Class::Unreadable, "the job is not there".to_owned())));
    };
    match app.authorisation_at(&job, work.key.item.as_str()).await? {
        Authorisation::Held(payment) => {
            let receipt = of_payment(&work.receipt, payment);
            match app.charge_intent(&work.key, &receipt) {
                Some(intent) => app.store.put_intent(&intent).await.map(|()| None),
                None => Ok(Some(no_charges(&work.key.item))),
            }
        }
        Authorisation::Nothing => {
            let note = "nothing is held for this job, so nothing is cancelled".to_owned();
            Ok(Some(NoEffect::Noop(Class::NotPossible, note)))
        }
        Authorisation::Open => {
            let note = "the authorisation is not at an end yet: what it holds is cancelled then";
            Ok(Some(app.wait_within_limits(work, note.to_owned())))
        }
        Authorisation::Unclear(_) => {
            let note = "the job's authorisation may stand, and its payment is not known here".to_owned();
            Ok(Some(advised(work, NoEffect::Review(Class::UnknownOutcome, note))))
        }
    }
}

/// The receipt with what its request is made from.
fn of_payment(receipt: &Receipt, payment: String) -> Receipt {
    let mut receipt = receipt.clone();
    receipt.envelope.data.insert("payment".to_owned(), payment);
    receipt
}
