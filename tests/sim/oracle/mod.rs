//! The oracle: what must be true after every write, judged from the stores alone.
//!
//! It shares no code with the handlers: it scans the tables, reads DynamoDB's own JSON, knows the keys by
//! their written form, prices usage and hashes chains by itself, and knows from the scenario what was sent.

mod answers;
mod charges;
mod history;
mod item;
mod money;
mod payments;
mod rest;
mod there;
pub mod told;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use local::EmbeddedAws;
use local::dynamo_api;
use local::hook::{Call, CallHook};
use local::wire::WireResponse;
use serde_json::Value;

pub use item::Item;

use crate::net::Net;
use crate::scenario::Scenario;
use crate::there::There;

/// A table by primary key.
pub type Table = BTreeMap<(String, String), Item>;

/// What the stores held when they were last looked at.
#[derive(Debug, Default)]
pub struct Books {
    /// Receipts, operations, conflicts, requests, cursors.
    pub events: Arc<Table>,
    /// Jobs, references, transitions, extensions, progress.
    pub jobs: Arc<Table>,
    /// Settlements and fundings.
    pub ledger: Arc<Table>,
    /// Balances.
    pub balances: Arc<Table>,
}

impl Books {
    /// The items of one partition.
    pub fn of<'a>(table: &'a Table, pk: &'a str) -> impl Iterator<Item = (&'a str, &'a Item)> {
        let from = (pk.to_owned(), String::new());
        table.range(from..).take_while(move |((key, _), _)| key == pk).map(|((_, sk), item)| (sk.as_str(), item))
    }
}

/// The oracle of one scenario. Clones share it.
#[derive(Debug, Clone)]
pub struct Oracle {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    aws: EmbeddedAws,
    net: Net,
    scenario: Arc<Scenario>,
    /// The destination outside, if there is one.
    there: Option<There>,
    books: Books,
    deliveries: answers::Deliveries,
    /// How often operators had something in review tried again.
    retries: std::cell::RefCell<usize>,
    /// How often each wallet fell below the threshold that somebody watches.
    falls: std::cell::RefCell<BTreeMap<String, usize>>,
}

impl Oracle {
    /// Watches every write from now on.
    pub fn watch(aws: &EmbeddedAws, net: &Net, scenario: Arc<Scenario>, there: Option<There>) -> Self {
        let inner = Inner {
            aws: aws.clone(),
            net: net.clone(),
            scenario,
            there,
            books: Books::default(),
            deliveries: answers::Deliveries::default(),
            retries: std::cell::RefCell::default(),
            falls: std::cell::RefCell::default(),
        };
        let oracle = Self { inner: Arc::new(Mutex::new(inner)) };
        aws.add_hook(Arc::new(Watch(oracle.clone())));
        oracle
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Watch(Oracle);

impl CallHook for Watch {
    fn on_answer(&self, call: &Call, answer: &WireResponse) {
        let wrote = matches!(call.operation.as_str(), "PutItem" | "UpdateItem" | "TransactWriteItems" | "DeleteItem");
        // The expiry cursor says nothing that could be wrong by itself, and moves often.
        let uninteresting = call.operation == "UpdateItem" && find(&call.body, b"C|expiry");
        if wrote && answer.status == 200 && !uninteresting {
            self.0.lock().observe(&call.targets);
        }
    }
}

impl Inner {
    /// Decisions of the reconciler, its own and an operator's.
    fn cases_applied(&self) -> usize {
        self.books.events.keys().filter(|(pk, sk)| pk.starts_with("Q|case|") && sk.starts_with("d|")).count()
    }

    fn wrong(&self, text: String) {
        self.net.violation(text);
    }

    /// Looks at the tables that a call wrote, and checks everything that can be seen now.
    fn observe(&mut self, tables: &[String]) {
        for name in ["events", "jobs", "ledger", "balances"] {
            if !tables.iter().any(|table| table.ends_with(name)) {
                continue;
            }
            let now = Arc::new(scan(&self.aws, name));
            let slot = match name {
                "events" => &mut self.books.events,
                "jobs" => &mut self.books.jobs,
                "ledger" => &mut self.books.ledger,
                _ => &mut self.books.balances,
            };
            let before = std::mem::replace(slot, now.clone());
            self.compare(name, &before, &now);
        }
        self.money();
        self.agreement();
        self.payments();
        self.charges();
        self.told();
    }

    fn compare(&self, table: &str, before: &Table, now: &Table) {
        let at_ms = self.net.elapsed_ms();
        for (key, old) in before {
            match now.get(key) {
                None => self.wrong(format!("5: {table} {} {} is gone", key.0, key.1)),
                Some(new) if new != old => {
                    self.written(key, at_ms);
                    self.changed(table, key, old, new);
                }
                Some(_) => {}
            }
        }
        for (key, new) in now.iter().filter(|(key, _)| !before.contains_key(key)) {
            self.written(key, at_ms);
            self.inserted(table, key, new);
        }
    }

    fn written(&self, key: &(String, String), at_ms: u64) {
        self.net.lock().written.insert(format!("{:?} {:?}", key.0, key.1), at_ms);
    }
}

fn find(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn scan(aws: &EmbeddedAws, table: &str) -> Table {
    let body = format!(r#"{{"TableName":"hookledger-{table}","ConsistentRead":true}}"#);
    let answer = dynamo_api::call(aws.database(), "Scan", body.as_bytes());
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    let items = json["Items"].as_array().cloned().unwrap_or_default();
    let text = |item: &Value, name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
    items.into_iter().map(|item| ((text(&item, "pk"), text(&item, "sk")), Item(item))).collect()
}
