//! A scenario: what is known before it runs. Jobs, events, operators' requests, their times, and the knobs.

use serde_json::{Value, json};

use crate::faults::Plan;
use crate::secrecy::MARK;
use crate::world::{Knobs, Tells};

/// One million micros are one unit of the currency.
pub const UNIT: i64 = 1_000_000;

/// A job that somebody submits.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// Its id.
    pub job: String,
    /// Its wallet.
    pub wallet: String,
    /// Its model, which decides its policies.
    pub model: &'static str,
    /// The hold in micros.
    pub hold: i64,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSpec {
    /// The signed id.
    pub id: String,
    /// `job.completed` and so on.
    pub kind: &'static str,
    /// Which job, by its place among the scenario's jobs.
    pub job: usize,
    /// The model that it names, when it is not the job's.
    pub wrong_model: bool,
    /// Input and output tokens.
    pub usage: Option<(i64, i64)>,
    /// The order signal.
    pub sequence: i64,
    /// A correction's or extension's reference.
    pub reference: Option<String>,
    /// An extension's amount in micros.
    pub amount: Option<i64>,
}

impl EventSpec {
    /// What these tokens cost in micros: 3.00 and 15.00 per million, so 3 and 15 micros each.
    pub fn price(&self) -> Option<i64> {
        self.usage.map(|(input, output)| 3 * input + 15 * output)
    }

    /// The body that acme sends, first sent at `sent_ms`.
    pub fn body(&self, job: &JobSpec, sent_ms: i64) -> String {
        let model = if self.wrong_model { "cap-9" } else { job.model };
        let mut data = json!({
            "tenant": "t1", "job_id": job.job, "id": format!("p-{}", job.job), "model": model, "sequence": self.sequence,
        });
        if let Some((input, output)) = self.usage {
            data["usage"] = json!({"input_tokens": input, "output_tokens": output});
        }
        match (self.kind, &self.reference) {
            ("usage.corrected", Some(reference)) => data["correction_id"] = json!(reference),
            (_, Some(reference)) => data["extension_id"] = json!(reference),
            _ => {}
        }
        if let Some(amount) = self.amount {
            data["hold"] = json!(decimal(amount));
        }
        let timestamp = domain::time::rfc3339(sent_ms);
        json!({"type": self.kind, "timestamp": timestamp, "note": MARK, "data": data}).to_string()
    }

    /// The operations that this type of event plans, by the provider's profile.
    pub fn operations(&self) -> &'static [&'static str] {
        match self.kind {
            "job.progress" => &["record-progress"],
            "usage.corrected" => &["adjust-usage"],
            "job.extended" => &["extend-hold"],
            _ => &["complete-job", "settle-usage"],
        }
    }

    /// `success`, `failure` or `canceled`, where the event ends the job.
    pub fn outcome(&self) -> Option<&'static str> {
        match self.kind {
            "job.completed" => Some("success"),
            "job.failed" => Some("failure"),
            "job.canceled" => Some("canceled"),
            _ => None,
        }
    }
}

/// What an event of the payment provider says.
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentSpec {
    /// The event's id.
    pub id: String,
    /// `payment_intent.succeeded`, `checkout.session.completed` or `charge.refunded`.
    pub kind: &'static str,
    /// The payment that it speaks of.
    pub payment: String,
    /// The wallet that the payment's metadata name.
    pub wallet: String,
    /// Cents paid, or refunded in all.
    pub minor: i64,
}

impl PaymentSpec {
    /// True when the event says that money came in.
    pub fn funds(&self) -> bool {
        self.kind != "charge.refunded"
    }

    /// The operation that the provider's profile plans.
    pub fn operation(&self) -> &'static str {
        if self.funds() { "fund-wallet" } else { "reverse-funding" }
    }

    /// The body that Stripe sends, first sent at `sent_ms`.
    pub fn body(&self, sent_ms: i64) -> String {
        let mut object = json!({"currency": "usd", "metadata": {"tenant": "t1", "wallet": self.wallet}});
        let (id, amount) = match self.kind {
            "payment_intent.succeeded" => ("id", "amount_received"),
            "checkout.session.completed" => ("payment_intent", "amount_total"),
            _ => ("payment_intent", "amount_refunded"),
        };
        object[id] = json!(self.payment);
        object[amount] = json!(self.minor);
        object["payment_status"] = json!("paid");
        json!({
            "id": self.id, "object": "event", "type": self.kind, "created": sent_ms / 1_000, "livemode": true,
            "note": MARK, "data": {"object": object},
        })
        .to_string()
    }
}

/// Micros as a decimal in major units.
pub fn decimal(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let (whole, rest) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    format!("{sign}{whole}.{rest:06}")
}

/// What an operator asks.
#[derive(Debug, Clone)]
pub struct Request {
    /// `cancel`, `extend`, `adjust`, `reverse`.
    pub action: &'static str,
    /// Which job.
    pub job: usize,
    /// The idempotency key.
    pub reference: String,
    /// Micros; not for a cancellation.
    pub amount: i64,
}

impl Request {
    /// The request's path and body.
    pub fn http(&self, job: &JobSpec) -> (String, Value) {
        let path = format!("/control/tenants/t1/jobs/{}/{}", job.job, self.action);
        let mut body = json!({"reference": self.reference, "reason": "simulated"});
        if self.action != "cancel" {
            body["amount"] = json!(decimal(self.amount));
        }
        (path, body)
    }
}

/// One thing that somebody does.
#[derive(Debug, Clone)]
pub enum What {
    /// A job is submitted until it is answered.
    Submit(usize),
    /// The provider sends an event until it gets a 2xx.
    Deliver(EventSpec),
    /// The payment provider sends an event until it gets a 2xx.
    Pay(PaymentSpec),
    /// The payment provider tells of every payment and refund that exists there by now.
    News,
    /// A wallet is created.
    Wallet(String),
    /// Money comes into a wallet: its name, micros, reference.
    Fund(String, i64, String),
    /// An operator asks until it is answered.
    Ask(Request),
    /// An operator lists what is in review and tries all of it again.
    Reviews(String),
    /// An operator replays every event that was acknowledged so far, under this reference.
    Replay(String),
    /// An operator pauses a consumer or provider for so many ms.
    Pause(&'static str, u64),
    /// An operator has the records compared, under this reference, and applies what the cases propose.
    Reconcile(String),
    /// A queue loses all its messages: `job` or `billing`.
    Purge(&'static str),
    /// The relay runs once more than its schedule says.
    ExtraRelay,
}

/// Something done at a time.
#[derive(Debug, Clone)]
pub struct Action {
    /// When, in ms of the scenario.
    pub at_ms: u64,
    /// What.
    pub what: What,
}

/// A whole scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What it is called: a seed, or a workflow.
    pub name: String,
    /// Decides latencies, tokens, jitter, ids, and the parameters of faults.
    pub seed: u64,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
    /// The wallets, each created and funded with this many micros before anything else.
    pub wallets: Vec<(String, i64)>,
    /// What is done.
    pub actions: Vec<Action>,
    /// Knobs of the system.
    pub knobs: Knobs,
    /// The faults.
    pub plan: Plan,
    /// When the faults stop.
    pub heal_ms: u64,
    /// The relay runs from then on; before, the hours are quiet.
    pub relay_from_ms: u64,
    /// Worked out by hand: the cents of what is paid and, negative, refunded in the end, sorted, without faults at single calls.
    pub made: Option<&'static [i64]>,
}

impl Scenario {
    /// True when nothing at all goes wrong in it: then everything must be prompt.
    pub fn is_quiet(&self) -> bool {
        let disturbs = |action: &Action| matches!(action.what, What::Purge(_) | What::Pause(..));
        let disturbed = self.actions.iter().any(disturbs);
        let plan = &self.plan;
        !disturbed
            && plan.outside == 0
            && plan.rate == 0
            && plan.fixed.is_empty()
            && plan.outages.is_empty()
            && self.knobs.visibility_s >= 60
    }

    /// True when the wallets are charged afterwards.
    pub fn is_postpaid(&self) -> bool {
        matches!(self.knobs.tells, Tells::Charges { .. })
    }

    /// True when jobs are authorised as well.
    pub fn authorises(&self) -> bool {
        matches!(self.knobs.tells, Tells::Charges { authorised: true, .. })
    }

    /// Micros below which nothing is charged.
    pub fn minimum(&self) -> i64 {
        match self.knobs.tells {
            Tells::Charges { minimum, .. } => minimum,
            Tells::Nobody | Tells::Queue | Tells::Http(_) => 0,
        }
    }

    /// The event of an id, the first one if several have it.
    pub fn event(&self, id: &str) -> Option<&EventSpec> {
        self.events().find(|event| event.id == id)
    }

    /// Every payment event.
    pub fn payments(&self) -> impl Iterator<Item = &PaymentSpec> {
        self.actions.iter().filter_map(|action| match &action.what {
            What::Pay(payment) => Some(payment),
            _ => None,
        })
    }

    /// Every delivery's event.
    pub fn events(&self) -> impl Iterator<Item = &EventSpec> {
        self.actions.iter().filter_map(|action| match &action.what {
            What::Deliver(event) => Some(event),
            _ => None,
        })
    }
}
