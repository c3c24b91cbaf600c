//! Stripe at the network's edge: what it keeps under a key, and what it says, by its published rules
//! (docs.stripe.com/api/idempotent_requests). It shares no code with what calls it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use runtime::call::{Call, CallError, Called, Caller, Reply};
use serde_json::{Value, json};

/// What happens to one request, in order; none: it goes well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is carried out, and the answer is lost.
    AnswerLost,
    /// No connection.
    NotSent,
    /// 402, kept under the key.
    Declined,
    /// 400: a parameter is wrong; nothing is kept under the key.
    Invalid,
    /// It is carried out, and its payment is not at an end.
    Processing,
    /// 500, kept under the key, and nothing is done.
    Stored500,
    /// It is carried out, and 500 is kept under the key.
    Done500,
    /// 409: another request with this key is in progress.
    InProgress,
    /// The authorisation lapsed before: its payment is canceled.
    Lapsed,
}

/// A payment or refund as it is kept.
#[derive(Debug, Clone)]
pub struct Kept {
    pub id: String,
    pub path: String,
    pub key: String,
    pub fields: BTreeMap<String, String>,
    pub captured: Option<String>,
    pub canceled: bool,
}

impl Kept {
    fn is_manual(&self) -> bool {
        self.field("capture_method") == "manual"
    }

    /// Its status, as Stripe words it.
    pub fn status(&self) -> &'static str {
        match (self.canceled, self.is_manual() && self.captured.is_none()) {
            (true, _) => "canceled",
            (false, true) => "requires_capture",
            (false, false) => "succeeded",
        }
    }

    /// What was paid, in minor units.
    pub fn received(&self) -> i64 {
        let paid = if self.is_manual() { self.captured.as_deref().unwrap_or("0") } else { self.field("amount") };
        paid.parse().unwrap()
    }

    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The payment's metadata, as webhooks repeat them.
    pub fn metadata(&self) -> Value {
        let named = |(name, value): (&String, &String)| {
            let name = name.strip_prefix("metadata[")?.strip_suffix(']')?;
            Some((name.to_owned(), json!(value)))
        };
        Value::Object(self.fields.iter().filter_map(named).collect())
    }
}

#[derive(Debug, Default)]
struct State {
    faults: VecDeque<Fault>,
    /// Body and answer by key; none while it is only remembered.
    keys: BTreeMap<String, (Vec<u8>, u16, Value)>,
    kept: Vec<Kept>,
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
pub struct Stripe(Mutex<State>);

impl Stripe {
    /// The next requests meet these.
    pub fn meets(&self, faults: &[Fault]) {
        self.0.lock().unwrap().faults.extend(faults);
    }

    pub fn kept(&self) -> Vec<Kept> {
        self.0.lock().unwrap().kept.clone()
    }

    /// The amounts in minor units of payments that were charged at once, with their currencies, in order.
    pub fn charged(&self) -> Vec<(String, String)> {
        let both = |kept: Kept| (kept.field("amount").to_owned(), kept.field("currency").to_owned());
        self.payments(false).into_iter().map(both).collect()
    }

    /// Payments that were authorised first: what was authorised, and what became of it, in order.
    pub fn authorised(&self) -> Vec<String> {
        let one = |kept: Kept| match (&kept.captured, kept.status()) {
            (Some(captured), _) => format!("{} captured {captured}", kept.field("amount")),
            (None, status) => format!("{} {status}", kept.field("amount")),
        };
        self.payments(true).into_iter().map(one).collect()
    }

    fn payments(&self, manual: bool) -> Vec<Kept> {
        let of = |kept: &Kept| kept.path == "/v1/payment_intents" && kept.is_manual() == manual;
        self.kept().into_iter().filter(of).collect()
    }

    /// The refunds: payment and amount, in order.
    pub fn refunded(&self) -> Vec<(String, String)> {
        let both = |kept: Kept| (kept.field("payment_intent").to_owned(), kept.field("amount").to_owned());
        self.kept().into_iter().filter(|kept| kept.path == "/v1/refunds").map(both).collect()
    }

    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap().calls.clone()
    }

    fn answer(&self, call: Call) -> Result<Reply, CallError> {
        let mut state = self.0.lock().unwrap();
        state.calls.push(call.clone());
        let path = call.url.strip_prefix("https://stripe.example").unwrap().to_owned();
        let header = |name: &str| call.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        assert_eq!(header("authorization").as_deref(), Some("Bearer sk_of_the_tests"));
        assert!(header("stripe-version").is_some(), "the version is pinned");
        if call.method == "GET" {
            return Ok(reply(200, &search(&state.kept, &path)));
        }
        let key = header("idempotency-key").unwrap();
        let fault = state.faults.pop_front();
        match fault {
            Some(Fault::NotSent) => return Err(CallError::NotSent("no connection")),
            Some(Fault::InProgress) => return Ok(error(409, "idempotency_error")),
            Some(Fault::Invalid) => return Ok(error(400, "invalid_request_error")),
            _ => {}
        }
        if let Some((body, status, said)) = state.keys.get(&key) {
            return Ok(if *body == call.body { reply(*status, said) } else { error(400, "idempotency_error") });
        }
        let (status, said) = match fault {
            Some(Fault::Declined) => (402, json!({"error": {"type": "card_error", "code": "card_declined"}})),
            Some(Fault::Stored500) => (500, json!({"error": {"type": "api_error"}})),
            _ if step(&path).is_some() => {
                let (payment, step) = step(&path).unwrap();
                let kept = state.kept.iter_mut().find(|kept| kept.id == payment).unwrap();
                kept.canceled |= fault == Some(Fault::Lapsed);
                let done = take(kept, step, fields(&call.body));
                if fault == Some(Fault::Done500) { (500, json!({"error": {"type": "api_error"}})) } else { done }
            }
            _ => {
                let prefix = if path == "/v1/refunds" { "re" } else { "pi" };
                let id = format!("{prefix}_{}", state.kept.len() + 1);
                let fields = fields(&call.body);
                let kept = Kept { id: id.clone(), path, key: key.clone(), fields, captured: None, canceled: false };
                let status = kept.status();
                state.kept.push(kept);
                match fault {
                    Some(Fault::Done500) => (500, json!({"error": {"type": "api_error"}})),
                    Some(Fault::Processing) => (200, json!({"id": id, "status": "processing"})),
                    _ => (200, json!({"id": id, "status": status})),
                }
            }
        };
        state.keys.insert(key, (call.body, status, said.clone()));
        if fault == Some(Fault::AnswerLost) {
            return Err(CallError::Lost("the connection broke"));
        }
        Ok(reply(status, &said))
    }
}

/// The payment and what is done to it, where a path says that.
fn step(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/v1/payment_intents/")?.split_once('/')
}

/// Captures or cancels a payment that is only authorised.
fn take(kept: &mut Kept, step: &str, fields: BTreeMap<String, String>) -> (u16, Value) {
    if step == "cancel" {
        assert!(fields.is_empty());
    }
    if kept.status() != "requires_capture" {
        let payment = json!({"id": kept.id, "status": kept.status()});
        let code = "payment_intent_unexpected_state";
        return (400, json!({"error": {"type": "invalid_request_error", "code": code, "payment_intent": payment}}));
    }
    match step {
        "capture" => {
            let amount = fields["amount_to_capture"].clone();
            assert!((1..=kept.field("amount").parse().unwrap()).contains(&amount.parse::<i64>().unwrap()));
            kept.captured = Some(amount);
            kept.fields.extend(fields.into_iter().filter(|(name, _)| name.starts_with("metadata[")));
        }
        "cancel" => kept.canceled = true,
        other => panic!("no such step: {other}"),
    }
    (200, json!({"id": kept.id, "status": kept.status(), "amount_received": kept.received()}))
}

fn search(kept: &[Kept], path: &str) -> Value {
    let asked = path.strip_prefix("/v1/payment_intents/search?query=metadata%5B%27").unwrap();
    let (name, asked) = asked.split_once("%27%5D%3A%27").unwrap();
    let (name, key) = (format!("metadata[{name}]"), asked.split('%').next().unwrap());
    let found = kept.iter().filter(|kept| kept.path == "/v1/payment_intents" && kept.field(&name) == key);
    let one = |kept: &Kept| json!({"id": kept.id, "status": kept.status(), "metadata": kept.metadata()});
    json!({"object": "search_result", "data": found.map(one).collect::<Vec<_>>()})
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply { status, body: Some(body.to_string().into_bytes()), retry_after_s: None }
}

fn error(status: u16, kind: &str) -> Reply {
    reply(status, &json!({"error": {"type": kind}}))
}

/// The fields of a form.
fn fields(body: &[u8]) -> BTreeMap<String, String> {
    let text = std::str::from_utf8(body).unwrap();
    let decoded = |text: &str| {
        let mut bytes = text.bytes();
        let mut out = Vec::new();
        while let Some(byte) = bytes.next() {
            if byte == b'%' {
                let hex = String::from_utf8([bytes.next().unwrap(), bytes.next().unwrap()].to_vec()).unwrap();
                out.push(u8::from_str_radix(&hex, 16).unwrap());
            } else {
                out.push(byte);
            }
        }
        String::from_utf8(out).unwrap()
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(n, v)| (decoded(n), decoded(v)))
        .collect()
}

/// Hands calls on to the one that tests look at.
#[derive(Debug, Clone)]
pub struct Edge(pub Arc<Stripe>);

impl Caller for Edge {
    fn call(&self, call: Call) -> Called<'_> {
        Box::pin(async move { self.0.answer(call) })
    }
}
