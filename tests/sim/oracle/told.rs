//! Told: an effect and the event of our own that tells of it exist together, once; what was told arrives, always the
//! same bytes, and about one subject in the order in which it happened.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Inner, Item, Oracle};
use crate::world::Tells;

/// Where the simulated reader listens.
pub const QUEUE: &str = "told.fifo";
/// The threshold of the simulated subscription: 1.00.
const LOW: i64 = 1_000_000;

/// The id of an event of our own, by the partition of its receipt.
fn id_of(pk: &str) -> Option<String> {
    Some(pk.strip_prefix("E|own|")?.replace("%7C", "|").replace("%25", "%"))
}

impl Inner {
    pub(super) fn own(&self) -> BTreeMap<String, (&String, &Item)> {
        let receipts = self.books.events.iter().filter(|((_, sk), _)| sk == "r");
        receipts.filter_map(|((pk, _), item)| Some((id_of(pk)?, (pk, item)))).collect()
    }

    /// What a receipt of ours sends.
    pub(super) fn intent_of(&self, pk: &str) -> Option<&Item> {
        let pk = format!("I|{}|{}|outbound|forward", &pk[2..], self.scenario.knobs.tells.item());
        self.books.events.get(&(pk, "i".to_owned()))
    }

    /// True when a receipt of ours has not left yet.
    pub(super) fn not_left(&self, pk: &str) -> bool {
        self.intent_of(pk).is_none_or(|intent| intent.s("st") != "settled")
    }

    /// A balance that changed: what takes it below the threshold is told.
    pub(super) fn fell(&self, pk: &str, old: &Item, new: &Item) {
        if self.scenario.knobs.tells.somebody() && old.n("av") >= LOW && new.n("av") < LOW {
            *self.falls.borrow_mut().entry(pk.to_owned()).or_default() += 1;
        }
    }

    /// Effects and their events, each way.
    pub(super) fn told(&self) {
        let own = self.own();
        let told: BTreeSet<&str> = own.keys().map(String::as_str).collect();
        let wanted = if self.scenario.knobs.tells.somebody() { self.effects() } else { BTreeSet::new() };
        for id in wanted.iter().filter(|id| !told.contains(id.as_str())) {
            self.wrong(format!("told: nothing tells of {id}"));
        }
        let on_jobs = |id: &&&str| id.starts_with("job.");
        for id in told.iter().filter(on_jobs).filter(|id| !wanted.contains(**id)) {
            self.wrong(format!("told: {id} tells of nothing"));
        }
        let reviews = told.iter().filter(|id| id.starts_with("review.opened|own|"));
        for id in reviews {
            self.wrong(format!("told: {id} tells of itself"));
        }
        let mut low: BTreeMap<String, usize> = BTreeMap::new();
        for id in told.iter().filter_map(|id| id.strip_prefix("wallet.low-balance|")) {
            let wallet: Vec<&str> = id.split('|').take(2).collect();
            *low.entry(format!("W|{}", wallet.join("|"))).or_default() += 1;
        }
        if low != *self.falls.borrow() {
            self.wrong(format!("told: wallets fell {:?}, and were told {low:?}", self.falls.borrow()));
        }
    }

    /// What the stores say has happened, as the ids that tell of it.
    fn effects(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for ((pk, sk), item) in self.books.jobs.iter().filter(|((_, sk), _)| sk.starts_with("t|")) {
            let kind = match item.s("oc") {
                "success" => "completed",
                "failure" => "failed",
                _ => "canceled",
            };
            let version = sk.trim_start_matches("t|").trim_start_matches('0');
            all.insert(format!("job.{kind}|{}|{version}", &pk[2..]));
        }
        let of_jobs = self.books.ledger.keys().filter(|(pk, sk)| pk.starts_with("J|") && !sk.starts_with("n|"));
        all.extend(of_jobs.map(|(pk, sk)| format!("job.settled|{}|{sk}", &pk[2..])));
        for ((pk, sk), item) in self.books.events.iter().filter(|((pk, _), _)| !pk.starts_with("E|own|")) {
            let event = pk.strip_prefix("E|").unwrap_or_default();
            if let Some(operation) = sk.strip_prefix("o|").filter(|_| item.s("st") == "review") {
                all.insert(format!("review.opened|{event}|{operation}|{}", item.n("rv")));
            }
            if let Some(hash) = sk.strip_prefix("x|").filter(|_| pk.starts_with("E|")) {
                let kind = if hash == "unreadable" { "review.opened" } else { "event.conflict" };
                all.insert(format!("{kind}|{event}|{hash}"));
            }
        }
        all
    }

    /// What arrived: every event that left, always the same bytes, none before the one that comes before it.
    fn arrived(&self) {
        let Ok(stored) = self.aws.queues().peek(QUEUE) else { return };
        let mut first: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for (place, message) in stored.iter().enumerate() {
            let body: Value = serde_json::from_str(&message.body).unwrap_or_default();
            let id = body["id"].as_str().unwrap_or_default().to_owned();
            let (_, before) = first.entry(id.clone()).or_insert_with(|| (place, message.body.to_string()));
            if *before != *message.body {
                self.wrong(format!("told: {id} was told in two ways"));
            }
        }
        let own = self.own();
        for id in first.keys().filter(|id| !own.contains_key(*id)) {
            self.wrong(format!("told: {id} arrived and has no receipt"));
        }
        for (id, (pk, receipt)) in &own {
            let place = first.get(id).map(|(place, _)| *place);
            if place.is_none() && !self.not_left(pk) {
                self.wrong(format!("told: {id} is said to have left and never arrived"));
            }
            let record = self.books.events.get(&((*pk).clone(), "o|books|outbound|forward".to_owned()));
            let persons = record.is_some_and(|record| record.s("st") == "review" || record.s("cl") == "dismissed");
            if self.not_left(pk) && !persons {
                self.wrong(format!("told: {id} never left, and is nobody's"));
            }
            let before = receipt.0["en"]["M"]["od"]["M"]["books"]["S"].as_str().filter(|before| !before.is_empty());
            let (Some(place), Some(before)) = (place, before) else { continue };
            if first.get(before).is_none_or(|(earlier, _)| *earlier > place) && !self.given_up(before) {
                self.wrong(format!("told: {id} arrived before {before}"));
            }
        }
    }

    /// True when a person closed the forward of an event of ours, so that those behind it go on.
    fn given_up(&self, id: &str) -> bool {
        let pk = format!("E|own|{}", id.replace('%', "%25").replace('|', "%7C"));
        let record = self.books.events.get(&(pk, "o|books|outbound|forward".to_owned()));
        record.is_some_and(|record| record.s("st") == "closed" && record.s("cl") == "dismissed")
    }
}

impl Oracle {
    /// At rest: what was told has arrived.
    pub fn all_told(&self) {
        let inner = self.lock();
        match inner.scenario.knobs.tells {
            Tells::Nobody => {}
            Tells::Queue => inner.arrived(),
            Tells::Http(_) | Tells::Charges { .. } => inner.arrived_there(),
        }
    }
}
