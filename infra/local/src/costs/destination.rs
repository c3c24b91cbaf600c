//! What is at the other end of the outbound consumer's calls while they are counted: it does what it is asked, at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime::call::{Call, Called, Caller, Reply};

/// The tables of a payment provider, as the README says to copy them.
pub(super) const STRIPE_BILLING: &str = include_str!("../../../profiles/stripe-billing.toml");

/// Answers as a payment provider does of a payment that succeeded, under an id as long as its ids are.
#[derive(Debug, Default)]
pub(super) struct Answering(AtomicU64);

impl Caller for Answering {
    fn call(&self, _call: Call) -> Called<'_> {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        let body = format!("{{\"id\":\"pi_{count:024}\",\"status\":\"succeeded\"}}");
        Box::pin(async { Ok(Reply { status: 200, body: Some(body.into_bytes()), retry_after_s: None }) })
    }
}

fn named(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The variables of the destinations; they protect nothing.
pub(super) fn addresses() -> BTreeMap<String, String> {
    named(&[
        ("APP_URL", "https://app.example"),
        ("APP_WEBHOOK_SECRET", "whsec_Y29zdHMtb25seS1zZWNyZXQtb2YtYXBw"),
        ("STRIPE_API_URL", "https://stripe.example"),
        ("STRIPE_API_KEY", "sk_of_the_costs"),
    ])
}

/// The secrets of the providers beside acme.
pub(super) fn secrets() -> BTreeMap<String, String> {
    named(&[("STRIPE_BILLING_WEBHOOK_SECRET", "whsec_of_the_costs")])
}
