//! A world beside its model: whatever is sent to the one is told to the other, and after every step the
//! stores must hold what some order of the deliveries explains.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use domain::limits::{RetryPolicy, SHARDS};
use domain::time::rfc3339;
use local::world::{BEGINS_MS, World, WorldConfig};
use serde_json::{Value, json};
use store::Cursor;

use super::books::{BALANCES, Books, EVENTS, JOBS, LEDGER};
use super::model::{Amount, Event, Fate, Model, Outcome, Overage, Pending, Says, Seen, State, Terms, Wallet, Work};

const MINUTE_MS: i64 = 60_000;
/// A new price begins every half hour, for as many as fit into the day.
const PRICE_MS: i64 = 30 * MINUTE_MS;
const PRICES: i64 = 23;
/// Price of one token in 10^-9 dollars, by version; the half micros round half to even.
const NANO: [Amount; 3] = [500, 750, 250];
/// How old an event may be and still act.
const OLDEST_MS: i64 = 3 * 3_600_000;
/// How long a hold lives.
const LIFE_MS: i64 = 3_600_000;

/// One provider whose models differ in their policies.
pub const PROVIDERS: &str = r#"
[providers.acme]
owner = "money tests"
signature = { scheme = "standard-webhooks" }
secrets = ["ACME_WEBHOOK_SECRET"]
retry_window_hours = 0
hold_hours = 1
expire_after_hours = 3
tenants = ["*"]
event_id = "signed-id"
event_type = "body:/type"
first_sent = { at = "body:/timestamp", unit = "rfc3339" }

[providers.acme.fields]
tenant = "body:/data/tenant"
job = "body:/data/job_id"
ref = "body:/data/id"
sequence = "body:/data/sequence"
usage = "body:/data/usage"

[providers.acme.policies]
overage = "review"

[providers.acme.models]
strict = { overage = "review", extendable = true }
capped = { overage = "cap" }
open = { overage = "available", extendable = true }
partial = { overage = "available", bill_partial = true, extendable = true }
soft = { overage = "available", provisional_failure = true, extendable = true }

[providers.acme.events]
"job.completed" = { outcome = "success", operations = ["complete-job", "settle-usage"] }
"job.failed" = { outcome = "failure", operations = ["complete-job", "settle-usage"] }
"job.canceled" = { outcome = "canceled", operations = ["complete-job", "settle-usage"] }

[providers.acme.events."usage.corrected"]
operations = ["adjust-usage"]
fields = { reference = "body:/data/correction_id" }

[providers.acme.events."job.extended"]
operations = ["extend-hold"]
fields = { reference = "body:/data/extension_id", amount = "body:/data/hold" }
"#;

/// The models of [`PROVIDERS`].
pub const MODELS: [&str; 5] = ["strict", "capped", "open", "partial", "soft"];

/// The price of every model, a new version each half hour.
pub fn prices() -> String {
    let mut book = String::new();
    for model in MODELS {
        for version in 0..=PRICES {
            let minute = 12 * 60 + 30 * version;
            let effective = match version {
                0 => "2026-01-01T00:00:00Z".to_owned(),
                _ => format!("2026-11-29T{:02}:{:02}:00Z", minute / 60, minute % 60),
            };
            let nano = NANO[usize::try_from(version % 3).unwrap()];
            write!(
                book,
                "[[price]]\nmodel = \"{model}\"\nversion = \"v{version}\"\neffective = \"{effective}\"\n\
                 currency = \"USD\"\nrates.tokens = {{ price = \"0.{nano:09}\" }}\n"
            )
            .unwrap();
        }
    }
    book
}

/// What a submission of `model` pins at `now_ms`.
fn terms(model: &str, now_ms: i64) -> Terms {
    let version = ((now_ms - BEGINS_MS) / PRICE_MS).min(PRICES);
    let overage = match model {
        "strict" => Overage::Review,
        "capped" => Overage::Cap,
        _ => Overage::Available,
    };
    Terms {
        overage,
        partial: model == "partial",
        provisional: model == "soft",
        extendable: model != "capped",
        nano: NANO[usize::try_from(version % 3).unwrap()],
    }
}

/// A decimal string in major units.
pub fn decimal(micros: Amount) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    format!("{sign}{}.{:06}", micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000)
}

/// The world, the model, and what stands between them.
pub struct Bench {
    pub world: World,
    pub model: Model,
    pub books: Books,
    bodies: BTreeMap<String, String>,
    pending: Vec<Pending>,
    touched: Vec<(&'static str, String)>,
    /// What was done, for the report of a failure.
    pub log: Vec<String>,
}

impl Bench {
    /// A fresh world and its model, with wallets `w1` (no credit) and `w2` (5.00 of credit).
    pub async fn new(seed: u64) -> Self {
        // Every wait is over within a minute and no limit of tries ends it: only age does.
        let policy = RetryPolicy {
            base_ms: 1_000,
            cap_ms: 30_000,
            max_attempts: u32::MAX,
            max_age_ms: i64::MAX / 2,
            resend_ms: MINUTE_MS,
        };
        let config =
            WorldConfig { seed, providers: PROVIDERS.to_owned(), prices: prices(), policy, ..WorldConfig::default() };
        let world = World::new(config).await.unwrap();
        let model = Model {
            now_ms: BEGINS_MS,
            oldest_ms: OLDEST_MS,
            life_ms: LIFE_MS,
            jobs: BTreeMap::new(),
            wallets: BTreeMap::new(),
            events: BTreeMap::new(),
            states: BTreeMap::new(),
        };
        let mut bench = Self {
            world,
            model,
            books: Books::default(),
            bodies: BTreeMap::new(),
            pending: Vec::new(),
            touched: Vec::new(),
            log: Vec::new(),
        };
        for (wallet, credit) in [("w1", 0), ("w2", 5_000_000)] {
            bench.create_wallet(wallet, credit).await;
        }
        for shard in 0..SHARDS {
            // The expiry sweep's first run looks a day back; nothing was there.
            let store = &bench.world.stack.app.store;
            store.advance_cursor(Cursor::Expiry, shard, BEGINS_MS / 600_000).await.unwrap();
        }
        bench
    }

    async fn create_wallet(&mut self, wallet: &str, credit: Amount) {
        let body = json!({"currency": "USD", "credit_limit": decimal(credit)});
        let (status, _) = self.world.control("PUT", &format!("/control/tenants/t1/wallets/{wallet}"), Some(body)).await;
        assert_eq!(status, 201);
        let empty = Wallet { credit, ..Wallet::default() };
        self.model.wallets.insert(wallet.to_owned(), empty);
        self.touched.push((BALANCES, format!("W|t1|{wallet}")));
    }

    // --- what a caller asks

    async fn ask(&mut self, method: &str, path: &str, body: Value, expected: u16) -> Result<(), String> {
        let (status, answer) = self.world.control(method, &format!("/control/tenants/t1/{path}"), Some(body)).await;
        self.log.push(format!("{method} {path} -> {status}"));
        if status == expected { Ok(()) } else { Err(format!("{path}: {status}, the model says {expected}: {answer}")) }
    }

    pub async fn fund(&mut self, wallet: &str, reference: &str, amount: Amount) -> Result<(), String> {
        let expected = self.model.fund(wallet, reference, amount);
        self.touched.extend([(BALANCES, format!("W|t1|{wallet}")), (LEDGER, format!("W|t1|{wallet}"))]);
        let body = json!({"amount": decimal(amount), "reference": reference});
        self.ask("POST", &format!("wallets/{wallet}/fund"), body, expected).await
    }

    pub async fn submit(&mut self, job: &str, wallet: &str, hold: Amount, model: &str) -> Result<(), String> {
        let expected = self.model.submit(job, wallet, hold, terms(model, self.model.now_ms));
        self.touch_job(job);
        self.touched.push((BALANCES, format!("W|t1|{wallet}")));
        let body = json!({
            "provider": "acme", "provider_job_ref": format!("p-{job}"), "model": model, "wallet": wallet,
            "hold": decimal(hold),
        });
        self.log.push(format!("submit {job} {wallet} {} {model}", decimal(hold)));
        self.ask("PUT", &format!("jobs/{job}"), body, expected).await
    }

    /// `cancel`, `extend`, `adjust` or `reverse` under a reference that was not used before.
    pub async fn act(&mut self, job: &str, action: &str, reference: &str, amount: Amount) -> Result<(), String> {
        let mut body = json!({"reference": reference, "reason": "a test"});
        let expected = match action {
            "cancel" => self.model.cancel(job),
            "extend" => self.model.extend(job, reference, amount),
            "adjust" => self.model.adjust(job, reference, amount),
            _ => self.model.reverse(job, reference, amount),
        };
        let expected = if self.model.jobs.contains_key(job) { expected } else { 404 };
        if action != "cancel" {
            body["amount"] = json!(decimal(amount));
        }
        self.touch_job(job);
        self.log.push(format!("{action} {job} {reference} {}", decimal(amount)));
        self.ask("POST", &format!("jobs/{job}/{action}"), body.clone(), expected).await?;
        if expected != 201 {
            return Ok(());
        }
        // The same reference again: 200 for the same content, 409 for other; no effect either way.
        self.ask("POST", &format!("jobs/{job}/{action}"), body.clone(), 200).await?;
        body["reason"] = json!("another");
        self.ask("POST", &format!("jobs/{job}/{action}"), body, 409).await
    }

    fn touch_job(&mut self, job: &str) {
        let pk = format!("J|t1|{job}");
        self.touched.extend([(JOBS, pk.clone()), (LEDGER, pk)]);
        if let Some(known) = self.model.jobs.get(job) {
            self.touched.push((BALANCES, format!("W|t1|{}", known.wallet)));
        }
    }

    // --- what the provider sends

    /// Writes an event now, without sending it.
    pub fn write(&mut self, id: &str, job: &str, says: Says) {
        let mut data = json!({"tenant": "t1", "job_id": job, "id": format!("p-{job}")});
        let usage = |tokens: &Amount| json!({"tokens": i64::try_from(*tokens).unwrap()});
        let kind = match &says {
            Says::Ended { outcome, tokens } => {
                if let Some(tokens) = tokens {
                    data["usage"] = usage(tokens);
                }
                match outcome {
                    Outcome::Success => "job.completed",
                    Outcome::Failure => "job.failed",
                    Outcome::Canceled => "job.canceled",
                }
            }
            Says::Corrected { reference, order, tokens } => {
                data["correction_id"] = json!(reference);
                data["sequence"] = json!(order);
                data["usage"] = usage(tokens);
                "usage.corrected"
            }
            Says::Extended { reference, amount } => {
                data["extension_id"] = json!(reference);
                data["hold"] = json!(decimal(*amount));
                "job.extended"
            }
        };
        let now_ms = self.model.now_ms;
        let body = json!({"type": kind, "timestamp": rfc3339(now_ms), "data": data}).to_string();
        self.bodies.insert(id.to_owned(), body);
        self.model.events.insert(id.to_owned(), Event { job: job.to_owned(), says, sent_ms: now_ms });
    }

    /// Delivers a written event `times` times; the event sources do not work yet.
    pub async fn deliver(&mut self, id: &str, times: usize) -> Result<(), String> {
        let known = self.touched.iter().any(|(_, pk)| *pk == format!("E|acme|{id}"))
            || self.model.states.keys().any(|(event, _)| event == id);
        for &work in self.model.events[id].works() {
            let key = (id.to_owned(), work);
            let state = self.model.states.get(&key).copied();
            let on_its_way = self.pending.iter().any(|(event, other, _)| event == id && *other == work);
            let again = matches!(state, Some(State::Wait | State::Review)) && !self.model.has_own(id, work);
            if !on_its_way && (again || (state.is_none() && !known)) {
                // What waits may be tried at once, and will be when it is due; the rest is tried now.
                self.pending.push((key.0, work, state == Some(State::Wait)));
            }
        }
        for time in 0..times {
            let (status, answer) = self.world.send(id, &self.bodies[id]).await;
            let expected = if known || time > 0 { (200, "duplicate") } else { (202, "accepted") };
            if (status, answer.as_str()) != expected {
                return Err(format!("{id}: answered {status} {answer}"));
            }
        }
        self.log.push(format!("{id} x{times}: {:?}", self.model.events[id]));
        self.touch_job(&self.model.events[id].job.clone());
        self.touched.push((EVENTS, format!("E|acme|{id}")));
        Ok(())
    }

    // --- the step

    /// Lets the event sources work and compares. `full` reads all tables, not only what was touched.
    pub async fn check(&mut self, full: bool) -> Result<(), String> {
        self.world.drain().await.map_err(|error| error.to_string())?;
        self.touched.sort();
        self.touched.dedup();
        for (table, pk) in std::mem::take(&mut self.touched) {
            self.books.refresh(&self.world, table, &pk);
        }
        let pending = std::mem::take(&mut self.pending);
        self.compare(&pending)?;
        let wrong = if full { self.books.audit(&self.world) } else { self.books.promises() };
        if full {
            self.compare(&[])?;
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    fn compare(&mut self, pending: &[Pending]) -> Result<(), String> {
        let mut states = self.books.states();
        states.retain(|_, state| *state != State::Done);
        let stored = Stored { fates: self.books.fates(), wallets: self.books.wallets(), states };
        if let Some(found) = self.model.clone().explain(pending, &stored) {
            self.model = found;
            return Ok(());
        }
        let mut straight = self.model.clone();
        for (event, work, _) in pending {
            straight.work(event, *work);
        }
        Err(stored.difference(&straight))
    }

    /// Lets `minutes` pass, then the relay runs once and the event sources work.
    pub async fn pass(&mut self, minutes: i64) -> Result<(), String> {
        self.log.push(format!("{minutes} minutes"));
        self.world.clock.advance(minutes * MINUTE_MS);
        self.model.now_ms += minutes * MINUTE_MS;
        for shard in 0..SHARDS {
            // Every receipt of these worlds was dispatched: the sweep over their minutes is not looked at here.
            let minute = self.model.now_ms / MINUTE_MS - 3;
            let store = &self.world.stack.app.store;
            store.advance_cursor(Cursor::Receipts, shard, minute).await.map_err(|e| e.to_string())?;
        }
        self.world.stack.relay().await.map_err(|error| error.to_string())?;
        let jobs: Vec<String> = self.model.jobs.keys().cloned().collect();
        for job in &jobs {
            self.books.refresh(&self.world, LEDGER, &format!("J|t1|{job}"));
        }
        let stored = self.books.fates();
        self.model.expire(&|id| stored.get(id).is_some_and(|fate| fate.close.is_some()));
        let waiting = self.model.states.iter().filter(|(_, state)| **state == State::Wait);
        self.pending.extend(waiting.map(|((event, work), _)| (event.clone(), *work, false)));
        for job in jobs {
            self.touch_job(&job);
        }
        let events: Vec<String> = self.pending.iter().map(|(event, _, _)| event.clone()).collect();
        self.touched.extend(events.into_iter().map(|event| (EVENTS, format!("E|acme|{event}"))));
        self.check(false).await
    }
}

/// What the stores hold, in the model's words.
struct Stored {
    fates: BTreeMap<String, Fate>,
    wallets: BTreeMap<String, Wallet>,
    /// Of operations that did not go straight.
    states: BTreeMap<(String, Work), State>,
}

impl Seen for Stored {
    fn is(&self, model: &Model) -> bool {
        model.wallets == self.wallets
            && model.jobs.len() == self.fates.len()
            && model.jobs.iter().all(|(id, job)| self.fates.get(id) == Some(&job.fate))
            && model.states.iter().filter(|(_, state)| **state != State::Done).eq(self.states.iter())
    }

    fn allows(&self, model: &Model, event: &str, work: Work) -> bool {
        let key = (event.to_owned(), work);
        let state = self.states.get(&key).copied().unwrap_or(State::Done);
        let job = &model.events[event].job;
        let fate =
            model.jobs.get(job).is_none_or(|known| self.fates.get(job).is_some_and(|seen| known.fate.leads_to(seen)));
        model.states[&key] == state && fate
    }
}

impl Stored {
    /// What the model expects by the order of the deliveries, beside what is stored.
    fn difference(&self, model: &Model) -> String {
        let mut text = "no order of the deliveries explains what is stored\n".to_owned();
        for (id, job) in &model.jobs {
            if self.fates.get(id) != Some(&job.fate) {
                writeln!(text, "{id} expected {:?}\n{id} stored   {:?}", job.fate, self.fates.get(id)).unwrap();
            }
        }
        for (id, wallet) in &model.wallets {
            if self.wallets.get(id) != Some(wallet) {
                writeln!(text, "{id} expected {wallet:?}\n{id} stored   {:?}", self.wallets.get(id)).unwrap();
            }
        }
        let keys: BTreeSet<_> = model.states.keys().chain(self.states.keys()).collect();
        for key in keys {
            let expected = model.states.get(key).copied().filter(|state| *state != State::Done);
            if expected != self.states.get(key).copied() {
                writeln!(text, "{key:?} expected {expected:?} stored {:?}", self.states.get(key)).unwrap();
            }
        }
        text
    }
}
