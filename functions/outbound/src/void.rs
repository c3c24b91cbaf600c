//! A job ended without a capture: what was authorised for it is given up at the payment provider.
//!
//! The event was put when the job ended; nothing of its request was known then but the job. The authorisation itself may be
//! on its way, or of unknown outcome: its end is waited for, since what is not cancelled stays held on the customer's card.

use domain::authorisation::Authorisation;
use domain::decide::NoEffect;
use domain::decide::forward::{self, Decision};
use domain::intent::Intent;
use domain::message::group;
use domain::operation::Class;
use domain::receipt::Receipt;
use runtime::App;
use runtime::consumer::Work;
use store::StoreError;

use crate::{advised, carry, no_charges};

/// One round; `None` means that something was just written, and what stands is read again.
pub(crate) async fn round(app: &App, work: &Work) -> Result<Option<NoEffect>, StoreError> {
    let group = group(&work.key, &work.receipt.envelope);
    let asked = Intent::forward(&work.key, &work.receipt, "", group, app.clock.now_ms());
    let ask = work.ask(app);
    let stands = app.store.get_intent(&asked.key).await?;
    match (forward::decide(&ask, &asked, stands.as_ref()), stands) {
        (Decision::None(verdict), _) => Ok(Some(verdict)),
        (Decision::Carry, Some(intent)) => {
            Ok(carry::carry(app, &ask, intent).await?.map(|verdict| advised(work, verdict)))
        }
        (Decision::Put | Decision::Carry, _) => put(app, work).await,
    }
}

/// Writes the request down, once the payment's id is known.
async fn put(app: &App, work: &Work) -> Result<Option<NoEffect>, StoreError> {
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
            if let Some(limit) = work.ask(app).over_limit() {
                return Ok(Some(limit));
            }
            let note = "the authorisation is not at an end yet: what it holds is cancelled then".to_owned();
            let due_ms = app.next_look_ms(work.receipt.arrival_ms);
            Ok(Some(NoEffect::Until(Class::NotYet, note, due_ms)))
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
