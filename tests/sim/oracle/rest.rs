//! Rest: once the faults have stopped, every operation of every acknowledged event comes to an end, and the
//! end is one that the events allow.

use super::{Books, Inner, Item, Oracle};
use crate::scenario::EventSpec;

/// How long an operation may be due before it is tried, with the faults off.
const PROMPT_MS: i64 = 600_000;
/// How long after its expiry a hold may stay: its bucket, and a few runs of the relay.
const EXPIRY_LAG_MS: i64 = 14 * 60_000;

fn record_sk(operation: &str, item: &str) -> String {
    if operation == "forward" {
        return format!("o|{item}|outbound|forward"); // of an event of our own, to the one that it goes to
    }
    let consumer = if matches!(operation, "complete-job" | "record-progress") { "job" } else { "billing" };
    format!("o|-|{consumer}|{operation}")
}

impl Inner {
    /// The record of an operation.
    pub(super) fn record(&self, pk: &str, operation: &str) -> Option<&Item> {
        self.books.events.get(&(pk.to_owned(), record_sk(operation, self.scenario.knobs.tells.item())))
    }

    pub(super) fn has_record(&self, pk: &str, operation: &str) -> bool {
        self.record(pk, operation).is_some()
    }

    /// The operations of a receipt that have no effect of their own.
    pub(super) fn open_operations(&self, pk: &str) -> Vec<&'static str> {
        if pk.starts_with("E|own|") {
            return if self.not_left(pk) { vec!["forward"] } else { Vec::new() };
        }
        if let Some(payment) = self.payment(pk) {
            return if self.payment_done(payment) { Vec::new() } else { vec![payment.operation()] };
        }
        let Some(event) = pk.strip_prefix("E|acme|").and_then(|id| self.scenario.event(id)) else { return Vec::new() };
        event.operations().iter().copied().filter(|operation| !self.own_effect(event, operation)).collect()
    }

    fn own_effect(&self, event: &EventSpec, operation: &str) -> bool {
        let job = &self.scenario.jobs[event.job].job;
        let (pk, by) = (format!("J|t1|{job}"), format!("acme/{}", event.id));
        let own = |table: &super::Table, pk: &str, kind: &str| {
            Books::of(table, pk).any(|(sk, item)| item.s("by") == by && sk.starts_with(kind))
        };
        match operation {
            "complete-job" => own(&self.books.jobs, &pk, "t|"),
            "settle-usage" => own(&self.books.ledger, &pk, "c") || own(&self.books.ledger, &pk, "l|"),
            "adjust-usage" => own(&self.books.ledger, &pk, "a|"),
            "extend-hold" => own(&self.books.jobs, &pk, "h|"),
            _ => {
                let progress = self.books.jobs.get(&(format!("P|t1|{job}"), "p".to_owned()));
                progress.is_some_and(|p| p.s("by") == by || p.n("sq") > event.sequence)
            }
        }
    }

    /// What keeps an event from its end; nothing when it is final or a person's.
    fn unfinished(&self, pk: &str) -> Option<String> {
        let pk = pk.to_owned();
        let receipt = self.books.events.get(&(pk.clone(), "r".to_owned()));
        let Some(receipt) = receipt else { return Some(format!("{pk} has no receipt")) };
        if receipt.has("em") {
            return None;
        }
        self.open_operations(&pk).into_iter().find_map(|operation| match self.record(&pk, operation) {
            None => Some(format!("{pk} {operation} has neither effect nor record")),
            Some(record) if record.s("st") == "wait" => Some(format!("{pk} {operation} waits: {}", record.s("nt"))),
            Some(_) => None,
        })
    }

    /// Whether the end of an operation without effect is one that the events allow.
    fn justified(&self, event: &EventSpec) {
        let pk = format!("E|acme|{}", event.id);
        for operation in self.open_operations(&pk) {
            let Some(record) = self.record(&pk, operation) else { continue };
            let (state, class) = (record.s("st"), record.s("cl"));
            let text = format!("{pk} {operation} ended as {state} {class}");
            if state == "closed" {
                self.wrong(format!("1: {text}, and it has no effect"));
            }
            if state == "noop" && !self.someone_else(event, operation) {
                self.wrong(format!("1: {text}, and nobody else did it"));
            }
            if state == "review" && self.plain(event) && !matches!(class, "attempts-exhausted" | "crashed") {
                self.wrong(format!("1: {text}: {}, and nothing speaks against it", record.s("nt")));
            }
        }
    }

    fn someone_else(&self, event: &EventSpec, operation: &str) -> bool {
        let job = &self.scenario.jobs[event.job].job;
        let pk = format!("J|t1|{job}");
        let has = |table: &super::Table, start: &str| Books::of(table, &pk).any(|(sk, _)| sk.starts_with(start));
        match operation {
            "complete-job" => has(&self.books.jobs, "t|"),
            "settle-usage" => has(&self.books.ledger, "c") || has(&self.books.jobs, "t|"),
            "adjust-usage" => has(&self.books.ledger, "a|"),
            "extend-hold" => has(&self.books.jobs, "h|"),
            _ => has(&self.books.jobs, "t|") || self.books.jobs.contains_key(&(format!("P|t1|{job}"), "p".to_owned())),
        }
    }

    /// An event that nothing speaks against: it alone ends its job, which was submitted with a large enough hold.
    fn plain(&self, event: &EventSpec) -> bool {
        let pk = format!("J|t1|{}", self.scenario.jobs[event.job].job);
        let alone = self.scenario.events().filter(|e| e.job == event.job && e.outcome().is_some()).all(|e| e == event);
        let canceled = self.scenario.actions.iter().any(|action| match &action.what {
            crate::scenario::What::Ask(r) => r.job == event.job && r.action == "cancel",
            _ => false,
        });
        let expired =
            self.books.ledger.get(&(pk.clone(), "c".to_owned())).is_some_and(|close| close.s("kd") == "expire");
        let known = self.books.jobs.contains_key(&(pk.clone(), "j".to_owned()));
        let fits = event.price().is_none_or(|price| price <= self.scenario.jobs[event.job].hold);
        let fits = fits || self.scenario.is_postpaid(); // which has no hold
        event.outcome().is_some()
            && (event.usage.is_some() || event.kind != "job.completed")
            && alone
            && !canceled
            && !expired
            && known
            && fits
            && !event.wrong_model
    }
}

impl Oracle {
    /// A consumer took a message off its queue: from then on its operation has an effect or a record.
    pub fn consumed(&self, body: &str) {
        let inner = self.lock();
        let message: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        let (provider, event) = message["k"]["event"].as_str().and_then(|e| e.split_once('/')).unwrap_or_default();
        let operation = message["k"]["name"].as_str().unwrap_or_default();
        let pk = format!("E|{provider}|{}", event.replace('%', "%25").replace('|', "%7C"));
        let known = inner.books.events.contains_key(&(pk.clone(), "r".to_owned()));
        if known && inner.open_operations(&pk).contains(&operation) && !inner.has_record(&pk, operation) {
            inner.wrong(format!("1: the message of {pk} {operation} was consumed with neither effect nor record"));
        }
    }

    /// Whether a run of the relay would find anything: something due, a receipt not examined, a hold past its expiry.
    pub fn relay_is_needed(&self, now_ms: i64) -> bool {
        let inner = self.lock();
        let due = |item: &Item| item.s("st") == "wait" && item.number("due").is_some_and(|due| due <= now_ms);
        inner.books.events.iter().any(|((pk, sk), item)| match sk.as_str() {
            "r" => {
                inner.open_operations(pk).iter().any(|operation| !item.has("em") && !inner.has_record(pk, operation))
            }
            _ => due(item),
        }) || inner.expired(now_ms).is_some()
    }

    /// What keeps the scenario from rest, if anything does.
    pub fn unrest(&self, now_ms: i64) -> Option<String> {
        let inner = self.lock();
        let events = inner.deliveries.acknowledged.iter().map(|id| format!("E|acme|{id}"));
        let own = inner.books.events.keys().filter(|(pk, sk)| pk.starts_with("E|own|") && sk == "r");
        let own = own.map(|(pk, _)| pk.clone());
        let all = events.chain(inner.deliveries.paid.iter().cloned()).chain(own);
        let mut open = all.filter_map(|pk| inner.unfinished(&pk));
        open.next().or_else(|| inner.expired(now_ms))
    }

    /// With the faults off for long enough, whatever is due must have been tried.
    pub fn prompt(&self, now_ms: i64) {
        let inner = self.lock();
        for ((pk, sk), item) in inner.books.events.iter() {
            let late = item.number("due").is_some_and(|due| due < now_ms - PROMPT_MS);
            let paused = item.s("ds").starts_with("paused."); // its due time is its place in the order of arrival
            if sk.starts_with("o|") && item.s("st") == "wait" && late && !paused {
                inner.wrong(format!("1: {pk} {sk} has been due for ten minutes"));
            }
        }
    }

    /// At rest: every end is one that the events allow.
    pub fn at_rest(&self) {
        let inner = self.lock();
        let ids: Vec<String> = inner.deliveries.acknowledged.iter().cloned().collect();
        for event in ids.iter().filter_map(|id| inner.scenario.event(id)) {
            inner.justified(event);
        }
        for payment in inner.deliveries.paid.iter().filter_map(|pk| inner.payment(pk)) {
            inner.payment_justified(payment);
        }
        for ((pk, sk), _) in inner.books.jobs.iter().filter(|((_, sk), _)| sk == "j") {
            let has = |table: &super::Table, start: &str| Books::of(table, pk).any(|(sk, _)| sk.starts_with(start));
            let settled = has(&inner.books.ledger, "c");
            if sk == "j" && has(&inner.books.jobs, "t|") && !settled && !inner.somebody_looks(pk) {
                inner.wrong(format!("8: {pk} ended, its hold is open, and it is on nobody's list"));
            }
        }
    }
}

impl Inner {
    /// A hold that should have been given back long ago.
    fn expired(&self, now_ms: i64) -> Option<String> {
        let jobs = self.books.jobs.iter().filter(|((pk, sk), _)| pk.starts_with("J|") && sk == "j");
        jobs.into_iter().find_map(|((pk, _), _)| {
            let ends = Books::of(&self.books.jobs, pk).filter(|(sk, _)| *sk == "j" || sk.starts_with("h|"));
            let ends = ends.map(|(_, item)| item.n("ex")).max().unwrap_or(i64::MAX);
            let ended = Books::of(&self.books.jobs, pk).any(|(sk, _)| sk.starts_with("t|"));
            let open = !ended && !self.books.ledger.contains_key(&(pk.clone(), "c".to_owned()));
            (open && now_ms > ends && now_ms < ends + EXPIRY_LAG_MS + PROMPT_MS)
                .then(|| format!("{pk} is past its expiry and open"))
        })
    }

    /// True when an event of this job is in review.
    fn somebody_looks(&self, job_pk: &str) -> bool {
        self.scenario.events().any(|event| {
            let same = format!("J|t1|{}", self.scenario.jobs[event.job].job) == job_pk;
            same && event.operations().iter().any(|operation| {
                self.record(&format!("E|acme|{}", event.id), operation).is_some_and(|r| r.s("st") == "review")
            })
        })
    }
}
