//! Charges and refunds: what a posting on a postpaid wallet asks of its payment provider.
//!
//! What a job may cost can be authorised before ([`crate::authorisation`]); its charge then is a capture of that.
//!
//! Each is an event of our own beside those that are told ([`crate::own`]), under an id made from the settlement's key, with
//! one `forward` to the payment provider. Receipt and intent are put in the settlement's own transaction, so a settlement
//! without its charge, or a charge without its settlement, cannot exist. Its answer settles the intent and posts nothing:
//! the money is posted by the provider's webhook, once per payment.

use std::collections::BTreeMap;

use crate::authorisation::{AUTHORISE, CAPTURE, Close, VOID};
use crate::decide::posting::Posting;
use crate::envelope::Envelope;
use crate::event::EventRef;
use crate::ids::{IdError, ItemId, JobId, Reference, TenantId, escape, percent};
use crate::intent::{HttpCall, Intent};
use crate::keys;
use crate::ledger::{Entry, EntryKind};
use crate::message::group;
use crate::money::Micros;
use crate::operation::{OperationKey, OperationName};
use crate::own::{self, is_of_type};
use crate::postpaid::{Postpaid, moved};
use crate::profile::{ChargeForm, Charges, Destination, HttpDestination};
use crate::receipt::{Planned, Receipt};

/// Event type of a charge.
pub const CHARGE: &str = "charge";
/// Event type of a refund.
pub const REFUND: &str = "refund";
/// The media type of the requests.
const FORM: &str = "application/x-www-form-urlencoded";

/// What goes out to a payment provider, in the transaction of what asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The event of our own.
    pub receipt: Receipt,
    /// What is to be sent, frozen; none where its destination's table is missing by now, or what it is about is not known
    /// yet: the outbound consumer then waits for it.
    pub intent: Option<Intent>,
}

/// True for the event of a step at a payment provider (charge, refund, authorisation, its capture or void): a review of one
/// is told as a provider's is, since it is nobody's telling.
pub fn is_of(event: &EventRef) -> bool {
    [CHARGE, REFUND, AUTHORISE, CAPTURE, VOID].into_iter().any(|kind| is_of_type(event, kind))
}

/// The event of a charge or refund by the settlement's key: `own/charge|t1|j1|c`.
///
/// # Errors
/// [`IdError`] never: the slug is ours, and a longer key is named by its hash, behind the same prefix.
pub fn event_of(kind: &str, entry: &Entry, sort_key: &str) -> Result<EventRef, IdError> {
    step_of(kind, &entry.tenant, entry.job.as_ref(), &[sort_key])
}

/// The event of a step of a job at a payment provider, by the settlement's key, if it has one.
pub(crate) fn step_of(
    kind: &str, tenant: &TenantId, job: Option<&JobId>, sort_key: &[&str],
) -> Result<EventRef, IdError> {
    let job = job.map(|job| escape(job.as_str())).unwrap_or_default();
    let of_job = [escape(tenant.as_str()), job];
    let parts: Vec<&str> = of_job.iter().map(String::as_str).chain(sort_key.iter().copied()).collect();
    own::event(own::id_of(kind, &parts.join("|")))
}

/// The key of a charge's intent.
///
/// # Errors
/// [`IdError`] never: the name of the table was checked.
pub fn key_of(kind: &str, entry: &Entry, sort_key: &str, postpaid: &Postpaid) -> Result<OperationKey, IdError> {
    let event = event_of(kind, entry, sort_key)?;
    Ok(OperationKey { event, item: ItemId::new(postpaid.to.as_str())?, name: OperationName::Forward })
}

/// The sort key of an entry that a charge or a refund can belong to.
pub fn sort_key(entry: &Entry) -> Option<String> {
    match entry.kind {
        EntryKind::Capture => Some(keys::CLOSE.to_owned()),
        EntryKind::LateCapture => entry.version.map(keys::late_capture_sk),
        EntryKind::Adjust => reference_of(entry).map(|r| keys::adjust_sk(&r)),
        EntryKind::Reverse => reference_of(entry).map(|r| keys::reverse_sk(&r)),
        _ => None,
    }
}

fn reference_of(entry: &Entry) -> Option<Reference> {
    entry.reference.as_deref().and_then(|text| Reference::new(text).ok())
}

/// What a posting asks of the payment provider; `None` where no whole minor unit moves.
///
/// # Errors
/// [`IdError`] never, as of [`event_of`].
pub fn receipt(posting: &Posting, postpaid: &Postpaid) -> Result<Option<Receipt>, IdError> {
    let (entry, moved) = (&posting.entry, moved(&posting.entry));
    let minor = postpaid.minor(moved);
    let (kind, more) = match (&posting.authorised, &posting.payment, minor) {
        (_, _, 0) => return Ok(None),
        (Some(Close::Capture(payment)), _, 1..) => (CAPTURE, vec![("payment", payment)]),
        (_, _, 1..) => (CHARGE, vec![("customer", &postpaid.customer), ("payment_method", &postpaid.payment_method)]),
        (_, Some(payment), _) => (REFUND, vec![("payment", payment)]),
        (_, None, _) => return Ok(None), // nothing was paid of the charge, so nothing is refunded
    };
    let event = event_of(kind, entry, &posting.sort_key)?;
    let mut data: BTreeMap<String, String> =
        more.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    data.insert("minor_amount".to_owned(), minor.unsigned_abs().to_string());
    data.insert("settlement".to_owned(), posting.sort_key.clone());
    let envelope = Envelope {
        tenant: Some(entry.tenant.clone()),
        job: entry.job.clone(),
        wallet: Some(entry.wallet.clone()),
        amount: Some(moved.get().saturating_abs()),
        currency: Some(entry.currency),
        data,
        ..Envelope::default()
    };
    let plan = vec![Planned { item: ItemId::new(postpaid.to.as_str())?, name: OperationName::Forward }];
    Ok(Some(own::receipt(event, kind, envelope, plan, entry.created_ms)))
}

/// The intent of a step, all of it made from its receipt and the destination's static headers.
pub fn intent(
    key: &OperationKey, receipt: &Receipt, charges: &Charges, destination: &HttpDestination, now_ms: i64,
) -> Intent {
    let to = Destination::Http(destination.name.clone()).to_string();
    let whole = Intent::forward(key, receipt, &to, group(key, &receipt.envelope), now_ms);
    let hash = whole.deduplication_id();
    let (path, request) = match charges.form {
        ChargeForm::Stripe => stripe(receipt, key, &hash, &charges.method),
    };
    let mut headers = destination.headers.clone();
    headers.insert("content-type".to_owned(), FORM.to_owned());
    let call = HttpCall { method: "POST".to_owned(), path, headers, updates: false };
    Intent { request, ..whole }.over_http(Some(call))
}

/// Stripe's requests: a payment that is created and confirmed in one, without its customer being there, and is captured at
/// once or only authorised; a capture of one, in part or whole, which frees the rest; its cancellation; a refund of one
/// (docs.stripe.com/api/payment_intents/create, .../capture, .../cancel, docs.stripe.com/api/refunds/create). The metadata come
/// back with every webhook of the payment: `tenant` and `wallet` say whose receivable it clears, `key` and `capture` are what
/// look-ups find it by.
fn stripe(receipt: &Receipt, key: &OperationKey, hash: &str, method: &str) -> (String, String) {
    let value = |name: &str| receipt.envelope.data.get(name).cloned().unwrap_or_default();
    let of_payment = |step: &str| format!("/v1/payment_intents/{}/{step}", percent(&value("payment"), b"-_."));
    let (path, mut fields) = match receipt.event_type.as_str() {
        // Cancelled twice is cancelled: it needs nothing to be found by.
        VOID => return (of_payment("cancel"), String::new()),
        CAPTURE => {
            let fields = [("amount_to_capture", value("minor_amount")), ("metadata[capture]", hash.to_owned())];
            return (of_payment("capture"), form(&fields.map(|(name, value)| (name.to_owned(), value))));
        }
        REFUND => {
            let fields = [("amount", value("minor_amount")), ("payment_intent", value("payment"))];
            ("/v1/refunds", fields.map(|(name, value)| (name.to_owned(), value)).to_vec())
        }
        kind => ("/v1/payment_intents", payment(&receipt.envelope, method, kind == AUTHORISE)),
    };
    let envelope = &receipt.envelope;
    let text = |value: Option<String>| value.unwrap_or_default();
    let metadata = [
        ("tenant", text(envelope.tenant.clone().map(String::from))),
        ("wallet", text(envelope.wallet.clone().map(String::from))),
        ("job", text(envelope.job.clone().map(String::from))),
        ("charge", key.event.id.as_str().to_owned()),
        ("key", hash.to_owned()),
    ];
    fields.extend(metadata.map(|(name, value)| (format!("metadata[{name}]"), value)));
    (path.to_owned(), form(&fields))
}

/// The fields of a new payment, less its metadata.
fn payment(envelope: &Envelope, method: &str, authorise: bool) -> Vec<(String, String)> {
    let value = |name: &str| envelope.data.get(name).cloned().unwrap_or_default();
    let currency = envelope.currency.map(|currency| currency.code().to_ascii_lowercase()).unwrap_or_default();
    let fixed = [
        ("amount", value("minor_amount")),
        ("currency", currency),
        ("customer", value("customer")),
        ("payment_method", value("payment_method")),
        ("off_session", "true".to_owned()),
        ("confirm", "true".to_owned()),
        // Named, since the account's own choice may ask for a page to return to.
        ("payment_method_types[]", method.to_owned()),
    ];
    let manual = authorise.then(|| ("capture_method", "manual".to_owned()));
    fixed.into_iter().chain(manual).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// `application/x-www-form-urlencoded`, in the order given.
fn form(fields: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| format!("{}={}", percent(name, b"-_."), percent(value, b"-_."));
    fields.iter().map(one).collect::<Vec<_>>().join("&")
}

/// What an entry still has of its charge: what was charged, less what went back of it.
///
/// # Errors
/// [`crate::money::MoneyError`] when a sum leaves the limits.
pub fn left_of(
    charged: &Entry, sort_key: &str, ledger: &crate::ledger::JobLedger,
) -> Result<Micros, crate::money::MoneyError> {
    if crate::planted::on("refund-beyond-its-charge") {
        return Ok(moved(charged)); // PLANTED
    }
    let back = ledger.adjusts.iter().chain(&ledger.reverses).filter(|e| e.charge.as_deref() == Some(sort_key));
    back.map(moved).try_fold(moved(charged), Micros::plus)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn the_event_of_a_charge_is_known_by_its_id_however_long_its_key_is() {
        let id = |bytes: usize| "a".repeat(bytes);
        let (tenant, wallet) = (id(150).parse().unwrap(), "w1".parse().unwrap());
        let currency = crate::money::Currency::parse("USD").unwrap();
        let of = |kind, job: String| {
            let entry = Entry::of_wallet(EntryKind::Capture, &tenant, &wallet, currency, "acme/e1".to_owned(), 0);
            event_of(kind, &Entry { job: Some(job.parse().unwrap()), ..entry }, keys::CLOSE).unwrap()
        };
        for (kind, begins) in [(CHARGE, "charge|sha256:"), (REFUND, "refund|sha256:")] {
            let (long, other) = (of(kind, id(150)), of(kind, id(149)));
            assert!(long.id.as_str().starts_with(begins) && is_of(&long), "{long}");
            assert_ne!(long, other);
        }
        assert!(is_of(&of(CHARGE, id(5))));
    }

    #[test]
    fn a_form_holds_any_text() {
        let fields = [("metadata[a]".to_owned(), "é & |=+%/ 1".to_owned()), ("b".to_owned(), "x-_.".to_owned())];
        assert_eq!(form(&fields), "metadata%5Ba%5D=%C3%A9%20%26%20%7C%3D%2B%25%2F%201&b=x-_.");
    }
}
