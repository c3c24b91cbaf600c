//! Authorisations: what a job on a postpaid wallet may cost is held at the payment provider while it runs.
//!
//! Three steps, each an event of our own with a key of its own, as charges are ([`crate::charge`]). `authorise` is put with the
//! submission; the close of the job, of which there is one, puts either `capture` of what is to be moved, up to what is held,
//! or `void`. So an authorisation is used once, and is never left standing by anything that ends its job. A capture is decided
//! when the authorisation is at an end: a settlement that needs one waits. A void does not wait, since whatever ends a job
//! without a capture must not: its event stands alone, and its request is made when the authorisation's id is known.

use std::collections::BTreeMap;

use crate::charge::{self, Outgoing};
use crate::decide::NoEffect;
use crate::decide::posting::Posting;
use crate::envelope::Envelope;
use crate::event::EventRef;
use crate::ids::{IdError, ItemId, JobId, TenantId};
use crate::job::Job;
use crate::keys;
use crate::money::Micros;
use crate::operation::{Class, OperationKey, OperationName};
use crate::own;
use crate::postpaid::{Postpaid, moved};
use crate::receipt::{Planned, Receipt};

/// Event type of an authorisation.
pub const AUTHORISE: &str = "authorise";
/// Event type of a capture of one.
pub const CAPTURE: &str = "capture";
/// Event type of one that is given up.
pub const VOID: &str = "void";

/// What became of a job's authorisation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Authorisation {
    /// Nothing is held: none was asked for, it was declined, or a person closed its review.
    #[default]
    Nothing,
    /// The provider holds it under this payment's id.
    Held(String),
    /// It is not at an end.
    Open,
    /// It may be held, and only a person can find out; this says how.
    Unclear(&'static str),
}

/// What a close does with its job's authorisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Close {
    /// Its charge is a capture of this payment.
    Capture(String),
    /// It is given up, whatever became of it.
    Void,
}

/// The event of a job's authorisation: `own/authorise|t1|j1`.
///
/// # Errors
/// [`IdError`] never, as of [`charge::event_of`].
pub fn event_of(job: &Job) -> Result<EventRef, IdError> {
    charge::step_of(AUTHORISE, &job.tenant, Some(&job.job), &[])
}

/// The key of its intent; `to` is the payment provider's name in the wallet's terms.
///
/// # Errors
/// [`IdError`] never: the name of the table was checked.
pub fn key_of(job: &Job, to: &str) -> Result<OperationKey, IdError> {
    Ok(OperationKey { event: event_of(job)?, item: ItemId::new(to)?, name: OperationName::Forward })
}

/// The event of a capture, which only the close of a job asks for: `own/capture|t1|j1|c`.
///
/// # Errors
/// [`IdError`] never, as of [`charge::event_of`].
pub fn capture_of(tenant: &TenantId, job: &JobId) -> Result<EventRef, IdError> {
    charge::step_of(CAPTURE, tenant, Some(job), &[keys::CLOSE])
}

/// True for the event of an authorisation.
pub fn is_of(event: &EventRef) -> bool {
    own::is_of_type(event, AUTHORISE)
}

/// True for the event of an authorisation that is given up.
pub fn is_void(event: &EventRef) -> bool {
    own::is_of_type(event, VOID)
}

/// What a submission asks of the payment provider; `None` where nothing is to be authorised.
///
/// # Errors
/// [`IdError`] never, as of [`event_of`].
pub fn receipt(job: &Job, postpaid: &Postpaid) -> Result<Option<Receipt>, IdError> {
    if job.authorised == Micros::ZERO {
        return Ok(None);
    }
    let named = [
        ("customer", postpaid.customer.clone()),
        ("payment_method", postpaid.payment_method.clone()),
        ("minor_amount", postpaid.minor(job.authorised).to_string()),
    ];
    let envelope = Envelope {
        tenant: Some(job.tenant.clone()),
        job: Some(job.job.clone()),
        wallet: Some(job.wallet.clone()),
        amount: Some(job.authorised.get()),
        currency: Some(job.currency()),
        data: named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..Envelope::default()
    };
    let plan = vec![Planned { item: ItemId::new(postpaid.to.as_str())?, name: OperationName::Forward }];
    Ok(Some(own::receipt(event_of(job)?, AUTHORISE, envelope, plan, job.created_ms)))
}

/// The event that gives up the authorisation of the job that a posting closes. It has no request yet: the outbound consumer
/// makes it when the authorisation is at an end.
///
/// # Errors
/// [`IdError`] never, as of [`event_of`].
pub fn void(posting: &Posting, postpaid: &Postpaid) -> Result<Outgoing, IdError> {
    let entry = &posting.entry;
    let envelope = Envelope {
        tenant: Some(entry.tenant.clone()),
        job: entry.job.clone(),
        wallet: Some(entry.wallet.clone()),
        currency: Some(entry.currency),
        data: BTreeMap::from([("settlement".to_owned(), posting.sort_key.clone())]),
        ..Envelope::default()
    };
    let plan = vec![Planned { item: ItemId::new(postpaid.to.as_str())?, name: OperationName::Forward }];
    let event = charge::event_of(VOID, entry, &posting.sort_key)?;
    Ok(Outgoing { receipt: own::receipt(event, VOID, envelope, plan, entry.created_ms), intent: None })
}

/// What the close `posting` of a job does with its authorisation; `None` where nothing is held and its charge is a plain one.
///
/// # Errors
/// Why it cannot be said yet, or by nobody but a person.
pub fn close(posting: &Posting, job: &Job, stands: &Authorisation) -> Result<Option<Close>, NoEffect> {
    if job.authorised == Micros::ZERO {
        return Ok(None);
    }
    let moved = moved(&posting.entry);
    if moved <= Micros::ZERO {
        return Ok(Some(Close::Void));
    }
    match stands {
        Authorisation::Open if crate::planted::on("charge-beside-an-authorisation") => Ok(None), // PLANTED
        Authorisation::Nothing => Ok(None),
        Authorisation::Held(_) if moved > job.authorised => Ok(Some(Close::Void)),
        Authorisation::Held(payment) => Ok(Some(Close::Capture(payment.clone()))),
        Authorisation::Open => {
            let note = "the job's authorisation is not at an end yet: its charge waits for it, or for a person's decision on its review";
            Err(NoEffect::Wait(Class::NotYet, note.to_owned()))
        }
        Authorisation::Unclear(why) => Err(NoEffect::Review(Class::UnknownOutcome, (*why).to_owned())),
    }
}

/// What a person is told to do beside the reason of a step's review; `None` for any other class, and for what is no step of an
/// authorisation.
pub fn advice(event_type: &str, class: Class) -> Option<&'static str> {
    Some(match (event_type, class) {
        (AUTHORISE, Class::Declined) => {
            "nothing is held for this job; it goes on, and is charged when it completes: close this, or cancel the job"
        }
        (AUTHORISE, Class::UnknownOutcome) => {
            "cancel the job's payment at the provider if it exists there, then close this: the job is charged when it completes"
        }
        (CAPTURE, Class::Declined) => {
            "the authorisation has lapsed or was cancelled, and what the job cost is owed: record what is paid otherwise with \
             `wallet fund`, or take it back with `job reverse`, then close this"
        }
        (CAPTURE, Class::UnknownOutcome) => {
            "look for the payment at the provider, capture it there if it was not, then close this: its webhook posts what was paid"
        }
        (VOID, Class::Declined) => {
            "the payment was captured by somebody: refund at the provider what is not owed, then close this"
        }
        (VOID, Class::UnknownOutcome) => "cancel the payment at the provider if it still stands there, then close this",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use crate::charge::{intent, receipt as charge};
    use crate::decide::posting::{Change, Posting};
    use crate::ledger::{Account, Balance, Entry, EntryKind, Line};
    use crate::money::Currency;
    use crate::price::Snapshot;
    use crate::profile::Profiles;

    const FILE: &str = include_str!("../../../infra/profiles/stripe-billing.toml");

    fn micros(text: &str) -> Micros {
        Micros::parse(text).unwrap()
    }

    fn job(authorised: &str) -> Job {
        let (model, currency) = ("m".parse().unwrap(), Currency::parse("USD").unwrap());
        let (rates, version) = (BTreeMap::new(), "1".to_owned());
        Job {
            tenant: "t1".parse().unwrap(),
            job: "j1".parse().unwrap(),
            provider: crate::ids::Provider::new("acme").unwrap(),
            provider_ref: None,
            wallet: "w1".parse().unwrap(),
            hold: Micros::ZERO,
            authorised: micros(authorised),
            price: Snapshot { model, version, currency, rates, ignore: Vec::new(), minimum: None, ceiling: None },
            policies: crate::job::Policies::default(),
            created_ms: 0,
            expires_ms: 0,
            request_hash: String::new(),
            request_id: None,
            metadata: BTreeMap::new(),
        }
    }

    /// The close of a job that moves so much.
    fn moving(job: &Job, moved: &str) -> Posting {
        let entry = Entry::of_job(EntryKind::Capture, job, "acme/e1".to_owned(), 0);
        let line = Line { account: Account::Receivable, amount: micros(moved).negated() };
        let balance = Balance::new(job.currency(), Micros::ZERO, 0);
        Posting::unchained("c".to_owned(), Entry { lines: vec![line], ..entry }, &balance, Change::default())
    }

    #[test]
    fn what_a_close_does_depends_on_what_moves_and_on_what_stands() {
        let held = || Authorisation::Held("pi_1".to_owned());
        let capture = || Ok(Some(Close::Capture("pi_1".to_owned())));
        let class = |found: Result<Option<Close>, NoEffect>| match found.unwrap_err() {
            NoEffect::Wait(class, _) => (true, class),
            NoEffect::Review(class, _) => (false, class),
            _ => (false, Class::Unreadable),
        };
        let of = |authorised: &str, moved: &str, stands: &Authorisation| {
            let job = job(authorised);
            close(&moving(&job, moved), &job, stands)
        };
        assert_eq!(of("10.00", "0.01", &held()), capture());
        assert_eq!(of("10.00", "10.00", &held()), capture());
        assert_eq!(of("10.00", "10.01", &held()), Ok(Some(Close::Void)));
        assert_eq!(of("10.00", "5.00", &Authorisation::Nothing), Ok(None));
        assert_eq!(class(of("10.00", "5.00", &Authorisation::Open)), (true, Class::NotYet));
        assert_eq!(class(of("10.00", "11.00", &Authorisation::Open)), (true, Class::NotYet));
        assert_eq!(class(of("10.00", "5.00", &Authorisation::Unclear("look"))), (false, Class::UnknownOutcome));
        for stands in [held(), Authorisation::Nothing, Authorisation::Open, Authorisation::Unclear("look")] {
            assert_eq!(of("10.00", "0", &stands), Ok(Some(Close::Void)), "what moves nothing waits for nothing");
            assert_eq!(of("0", "5.00", &stands), Ok(None), "a job without an authorisation");
        }
    }

    /// A note has 300 characters, and an unknown outcome's own words come first.
    #[test]
    fn an_advice_fits_a_note_to_its_end() {
        for kind in [AUTHORISE, CAPTURE, VOID] {
            let length = |class| advice(kind, class).unwrap().len();
            assert!(length(Class::Declined) <= 200 && length(Class::UnknownOutcome) <= 160, "{kind}");
        }
        assert_eq!(advice(CAPTURE, Class::Conflict), None);
        assert_eq!(advice(crate::charge::CHARGE, Class::Declined), None);
    }

    #[test]
    fn each_step_is_the_request_that_the_provider_documents() {
        let profiles = Profiles::parse(FILE).unwrap();
        let charges = profiles.charges("stripe").unwrap();
        let steps = charges.authorise.as_ref().unwrap();
        let terms = Postpaid {
            to: "stripe".to_owned(),
            customer: "cus_1".to_owned(),
            payment_method: "pm_1".to_owned(),
            minor_digits: 2,
            minimum: Micros::ZERO,
            authorise: true,
        };
        let request = |receipt: &Receipt, to: &str| {
            let key = receipt.operations().remove(0);
            let made = intent(&key, receipt, charges, profiles.destination(to).unwrap(), 0);
            (made.call.clone().unwrap().path, made.request.replace(&made.deduplication_id(), "KEY"))
        };
        let job = job("12.00");
        let asked = receipt(&job, &terms).unwrap().unwrap();
        assert_eq!(asked.event.as_ref().unwrap().to_string(), "own/authorise|t1|j1");
        let hand = "amount=1200&currency=usd&customer=cus_1&payment_method=pm_1&off_session=true&confirm=true&\
                    payment_method_types%5B%5D=card&capture_method=manual&metadata%5Btenant%5D=t1&metadata%5Bwallet%5D=w1&\
                    metadata%5Bjob%5D=j1&metadata%5Bcharge%5D=authorise%7Ct1%7Cj1&metadata%5Bkey%5D=KEY";
        assert_eq!(request(&asked, &steps.to), ("/v1/payment_intents".to_owned(), hand.to_owned()));

        let authorised = Some(Close::Capture("pi/1".to_owned()));
        let capture = charge(&Posting { authorised, ..moving(&job, "10.00") }, &terms).unwrap().unwrap();
        assert_eq!(capture.event.as_ref().unwrap().to_string(), "own/capture|t1|j1|c");
        let hand = ("/v1/payment_intents/pi%2F1/capture", "amount_to_capture=1000&metadata%5Bcapture%5D=KEY");
        assert_eq!(request(&capture, &steps.capture), (hand.0.to_owned(), hand.1.to_owned()));

        let mut given_up = void(&moving(&job, "0"), &terms).unwrap();
        assert_eq!(given_up.intent, None, "the payment is not known here");
        assert_eq!(given_up.receipt.event.as_ref().unwrap().to_string(), "own/void|t1|j1|c");
        given_up.receipt.envelope.data.insert("payment".to_owned(), "pi_1".to_owned());
        let hand = ("/v1/payment_intents/pi_1/cancel".to_owned(), String::new());
        assert_eq!(request(&given_up.receipt, &steps.void), hand);
    }
}
