//! `till`: the payment provider of postpaid wallets, as a destination outside ([`crate::there`]) with Stripe's requests.

use runtime::call::Call;

use crate::there::{KEEPS_KEYS, destination, lookup};

const PAYMENTS: &str = "/v1/payment_intents";

/// The sender's tables for `till`. Refunds and cancellations cannot be looked up, as Stripe's cannot.
pub fn tables() -> String {
    let form = format!("content_type = \"application/x-www-form-urlencoded\"\nfailed = [\"402\"]\n{KEEPS_KEYS}");
    let to = |name: &str, path: &str| destination(name, path, &form);
    let payments =
        ["till", "till-authorise", "till-capture"].map(|name| to(name, PAYMENTS) + &lookup(PAYMENTS)).concat();
    let others = to("till-refunds", "/v1/refunds") + &to("till-void", PAYMENTS);
    let charges = "form = \"stripe\"\nto = \"till\"\nrefunds = \"till-refunds\"\nprovider = \"stripe\"\n\
                   authorise = { to = \"till-authorise\", capture = \"till-capture\", void = \"till-void\" }\n";
    format!("{payments}{others}\n[charges.till]\n{charges}")
}

/// The payment that a request captures or cancels, and which of the two.
pub fn step(url: &str) -> Option<(&str, &str)> {
    url.split_once("/v1/payment_intents/").and_then(|(_, rest)| rest.split_once('/'))
}

/// A request's body.
pub fn text_of(call: &Call) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&call.body)
}

/// Minor units in a field of a form; 0 where there are none.
pub fn minor(form: &str, name: &str) -> i64 {
    field(form, name).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A payment that was paid, or a refund that was made, at `till`, as its request asked for it.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its id there.
    pub id: String,
    /// Cents.
    pub minor: i64,
    /// Whose receivable it is of.
    pub wallet: String,
    /// The payment that a refund is of.
    pub of: Option<String>,
}

/// A field of a form.
pub fn field(form: &str, name: &str) -> Option<String> {
    let plain = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    form.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| plain(key) == name).map(|(_, v)| plain(v))
}
