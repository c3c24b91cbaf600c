//! Postpaid wallets: jobs without a hold, charged at Stripe when they complete. Real handlers, and Stripe at the network's
//! edge; its webhooks come through the ordinary receiver. Every amount was worked out by hand.

mod authorise;
mod authorise_faults;
mod charges;
mod faults;
mod peers;
mod refunds;
mod shown;
pub mod stripe;
mod wallets;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;

use local::world::{World, WorldConfig, event_body};
use runtime::lambda::PROVIDERS_TOML;
use serde_json::{Value, json};

use crate::harness::{items, relay_has_run};
use stripe::{Edge, Kept, Stripe};

const BILLING: &str = include_str!("../../../infra/profiles/stripe-billing.toml");
const SECRET: &str = "whsec_of_the_postpaid_tests";
pub const FORM: &str = "application/x-www-form-urlencoded";

/// One token is worth one micro of each model's currency, so a charge in micros is its tokens.
fn prices() -> String {
    let one = |code: &str| {
        format!(
            "[[price]]\nmodel = \"{}-1\"\nversion = \"v1\"\neffective = \"2026-01-01T00:00:00Z\"\ncurrency = \"{code}\"\n\
             rates.tokens = {{ price = \"0.000001\" }}\n",
            code.to_ascii_lowercase()
        )
    };
    ["USD", "JPY", "KWD"].map(one).concat()
}

pub fn config(stripe: &Arc<Stripe>) -> WorldConfig {
    let named = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let mut secrets = WorldConfig::default().secrets;
    secrets.extend(named(&[("STRIPE_BILLING_WEBHOOK_SECRET", SECRET)]));
    WorldConfig {
        providers: format!("{PROVIDERS_TOML}{BILLING}"),
        prices: prices(),
        secrets,
        addresses: named(&[("STRIPE_API_URL", "https://stripe.example"), ("STRIPE_API_KEY", "sk_of_the_tests")]),
        caller: Arc::new(Edge(stripe.clone())),
        ..WorldConfig::default()
    }
}

pub struct Scene {
    pub world: World,
    pub stripe: Arc<Stripe>,
}

impl Scene {
    /// A world with postpaid wallet w1 in this currency.
    pub async fn of(currency: &str) -> Self {
        let stripe = Arc::new(Stripe::default());
        Self::with(config(&stripe), stripe, currency).await
    }

    pub async fn with(config: WorldConfig, stripe: Arc<Stripe>, currency: &str) -> Self {
        Self::on(config, stripe, currency, json!({})).await
    }

    /// The same with other terms of the wallet.
    pub async fn on(config: WorldConfig, stripe: Arc<Stripe>, currency: &str, terms: Value) -> Self {
        let scene = Self { world: World::new(config).await.unwrap(), stripe };
        relay_has_run(&scene.world).await;
        let (status, body) = scene.create(currency, terms).await;
        assert_eq!(status, 201, "{body}");
        scene
    }

    pub async fn create(&self, currency: &str, more: Value) -> (u16, Value) {
        let mut terms = json!({"to": "stripe", "customer": "cus_1", "payment_method": "pm_1"});
        terms.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = json!({"currency": currency, "postpaid": terms});
        self.world.control("PUT", "/control/tenants/t1/wallets/w1", Some(body)).await
    }

    /// Submits a job without a hold.
    pub async fn submit(&self, job: &str, model: &str) {
        let body = json!({"provider": "acme", "provider_job_ref": format!("p-{job}"), "model": model, "wallet": "w1"});
        let (status, body) = self.world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await;
        assert_eq!(status, 201, "{body}");
    }

    /// acme says that a job ended with so many tokens; its messages wait.
    pub async fn ended(&self, id: &str, kind: &str, job: &str, model: &str, tokens: i64) {
        let more = json!({"model": model, "usage": {"tokens": tokens}});
        let answered = self.world.send(id, &event_body(kind, job, more)).await;
        assert_eq!(answered, (202, "accepted".to_owned()), "{id}");
    }

    /// A whole job worth `tokens` micros of the model's currency; its id is also its event's.
    pub async fn job(&self, job: &str, model: &str, tokens: i64) {
        self.submit(job, model).await;
        self.ended(job, "job.completed", job, model, tokens).await;
        self.world.drain().await.unwrap();
    }

    /// Available (what is owed, negative) and what is carried.
    pub async fn owed(&self) -> (String, String) {
        let wallet = self.world.wallet("w1").await;
        let text = |name: &str| wallet[name].as_str().unwrap_or_default().to_owned();
        (text("available"), text("carried"))
    }

    pub async fn assert_owed(&self, available: &str, carried: &str) {
        assert_eq!(self.owed().await, (available.to_owned(), carried.to_owned()));
    }

    /// An action on a job.
    pub async fn act(&self, job: &str, action: &str, reference: &str, amount: &str) -> (u16, Value) {
        let body = json!({"reference": reference, "amount": amount, "reason": "a test"});
        let answered =
            self.world.control("POST", &format!("/control/tenants/t1/jobs/{job}/{action}"), Some(body)).await;
        self.world.drain().await.unwrap();
        answered
    }

    /// What a person decides on a review, by its id as the list shows it.
    pub async fn decide(&self, review: &str, body: Value) -> (u16, Value) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("~{byte:02X}") };
        let path: String = review.bytes().map(one).collect();
        let answered = self.world.control("POST", &format!("/control/reviews/{path}"), Some(body)).await;
        self.world.drain().await.unwrap();
        answered
    }

    /// A wallet that may owe at most this; the same customer.
    pub async fn limited(&self, wallet: &str, credit_limit: &str, minimum: &str) {
        let terms = json!({"to": "stripe", "customer": "cus_1", "payment_method": "pm_1", "minimum_charge": minimum});
        let body = json!({"currency": "USD", "credit_limit": credit_limit, "postpaid": terms});
        let (status, body) =
            self.world.control("PUT", &format!("/control/tenants/t1/wallets/{wallet}"), Some(body)).await;
        assert_eq!(status, 201, "{body}");
    }

    /// Submits a job without a hold on another wallet.
    pub async fn submit_on(&self, wallet: &str, job: &str) {
        let body =
            json!({"provider": "acme", "provider_job_ref": format!("p-{job}"), "model": "usd-1", "wallet": wallet});
        assert_eq!(self.world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await.0, 201);
    }

    /// State and class of an event's settlement.
    pub async fn settlement(&self, id: &str) -> String {
        let operations = self.world.explain(id).await["operations"].clone();
        let settles = |operation: &&Value| operation["operation"] == "settle-usage";
        let operation = operations.as_array().unwrap().iter().find(settles).unwrap().clone();
        let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("state"), text("class")).trim_end().to_owned()
    }

    /// One of Stripe's events about a payment.
    pub async fn webhook(&self, id: &str, kind: &str, object: Value) {
        let created_s = local::world::BEGINS_MS / 1000;
        let endpoint = ("stripe-billing", SECRET);
        let answered = crate::sender::stripe(&self.world, endpoint, (id, kind), created_s, true, &object).await;
        assert!(answered.0 < 300 && answered.1 != "quarantined", "{id}: {answered:?}");
        self.world.drain().await.unwrap();
    }

    /// Stripe says that a payment succeeded.
    pub async fn succeeded(&self, id: &str, payment: &Kept) {
        let object = json!({
            "id": payment.id, "object": "payment_intent", "currency": payment.field("currency"),
            "amount_received": payment.received(), "metadata": payment.metadata(),
        });
        self.webhook(id, "payment_intent.succeeded", object).await;
    }

    /// Stripe says how much of a payment was refunded in all; of one that was authorised it counts what was not captured.
    pub async fn says_refunded(&self, id: &str, payment: &Kept, minor_in_all: i64) {
        let amount: i64 = payment.field("amount").parse().unwrap();
        let object = json!({
            "id": "ch_1", "object": "charge", "payment_intent": payment.id, "currency": payment.field("currency"),
            "amount": amount, "amount_captured": payment.received(), "captured": payment.received() > 0,
            "amount_refunded": minor_in_all + amount - payment.received(), "metadata": payment.metadata(),
        });
        self.webhook(id, "charge.refunded", object).await;
    }

    /// An event of our own as the control API shows it, by its id as a path has it.
    pub async fn own(&self, id: &str) -> Value {
        let path: String = id.replace('|', "~7C").replace('%', "~25");
        self.world.control("GET", &format!("/control/events/own/{path}"), None).await.1
    }

    /// State and class of the one operation of an event of our own.
    pub async fn state(&self, id: &str) -> String {
        let event = self.own(id).await;
        let operation = &event["operations"][0];
        let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("state"), text("class")).trim_end().to_owned()
    }

    /// State and class of the one operation of an event of Stripe's.
    pub async fn of_stripe(&self, id: &str) -> String {
        let event = self.world.control("GET", &format!("/control/events/stripe-billing/{id}"), None).await.1;
        let operation = &event["operations"][0];
        let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("state"), text("class")).trim_end().to_owned()
    }

    /// Kind, amount and lines of every entry, in the order of the chain.
    pub fn entries(&self) -> Vec<String> {
        let mut all = items(&self.world, "ledger");
        all.retain(|item| item.get("seq").is_some());
        all.sort_by_key(|item| item["seq"]["N"].as_str().unwrap().parse::<u64>().unwrap());
        let line = |line: &Value| {
            let line = &line["M"];
            format!("{} {}", line["ac"]["S"].as_str().unwrap(), line["am"]["N"].as_str().unwrap())
        };
        let one = |item: &Value| {
            let lines: Vec<String> = item["ln"]["L"].as_array().into_iter().flatten().map(line).collect();
            format!("{}: {}", item["kd"]["S"].as_str().unwrap(), lines.join(", "))
        };
        all.iter().map(one).collect()
    }

    /// The books add up, by items and by the program's own reconciliation.
    pub async fn clean(&self) {
        crate::books::audit(&self.world);
        self.world.clock.advance(crate::harness::HOUR_MS / 2);
        let scope = json!({"from": "2026-11-29T11:50:00Z", "kinds": ["receipts", "wallets"]});
        let found = self.world.reconcile("end", scope).await.unwrap();
        assert_eq!(found["cases"], json!([]), "{found}");
    }
}
