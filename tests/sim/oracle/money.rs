//! Money: every balance is what its entries and open holds say, every chain is whole, every close closes
//! exactly what was held, and the event that decided a job is the event that was settled.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Books, Inner, Item, charges};

pub(super) fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// What an entry's content hash is taken over: its own rule, written down here a second time.
fn content(item: &Item) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut text = |name: &str, always: bool| {
        if always || !item.s(name).is_empty() {
            parts.push(format!("{}:{}", json!(name), json!(item.s(name))));
        }
    };
    for (name, always) in [("kd", true), ("tn", true), ("wl", true), ("jb", false)] {
        text(name, always);
    }
    let number = |name: &str| item.number(name).map(|n| format!("\"{name}\":{n}"));
    parts.extend(number("vn"));
    let mut text = |name: &str| {
        if !item.s(name).is_empty() {
            parts.push(format!("\"{name}\":{}", json!(item.s(name))));
        }
    };
    text("rn");
    parts.extend(number("sq"));
    if !item.s("rs").is_empty() {
        parts.push(format!("\"rs\":{}", json!(item.s("rs"))));
    }
    for name in ["am", "rl", "uc"] {
        parts.extend(number(name));
    }
    parts.push(format!("\"cu\":{}", json!(item.s("cu"))));
    let lines: Vec<String> =
        item.lines().iter().map(|(account, amount)| format!("{{\"ac\":{},\"am\":{amount}}}", json!(account))).collect();
    if !lines.is_empty() {
        parts.push(format!("\"ln\":[{}]", lines.join(",")));
    }
    if item.has("us") {
        let usage: Map<String, Value> = item.map("us").into_iter().map(|(unit, n)| (unit, json!(n))).collect();
        parts.push(format!("\"us\":{}", Value::Object(usage)));
    }
    if item.has("pv") {
        parts.push(format!("\"pv\":{}", json!(item.s("pv"))));
    }
    if item.has("ch") {
        parts.push(format!("\"ch\":{}", json!(item.s("ch"))));
    }
    parts.push(format!("\"by\":{}", json!(item.s("by"))));
    parts.extend(number("cr"));
    format!("{{{}}}", parts.join(","))
}

/// What an entry does to its wallet, as it was priced.
pub(super) fn change(item: &Item) -> i64 {
    match item.s("kd") {
        "fund" | "opening-balance" | "reverse" => item.n("am"),
        "capture" | "late-capture" | "adjust" | "funding-reversal" => -item.n("am"),
        _ => 0,
    }
}

impl Inner {
    /// What an entry does to what is available: on a postpaid wallet what is moved at the payment provider.
    fn moves(&self, item: &Item) -> i64 {
        if self.scenario.is_postpaid() { charges::line(item, "receivable") } else { change(item) }
    }

    /// Every wallet adds up.
    pub(super) fn money(&self) {
        let mut held: BTreeMap<String, i64> = BTreeMap::new();
        for ((pk, sk), job) in self.books.jobs.iter().filter(|((pk, sk), _)| sk == "j" && pk.starts_with("J|")) {
            let open = sk == "j" && !self.books.ledger.contains_key(&(pk.clone(), "c".to_owned()));
            let hold = if open { self.hold(pk) } else { 0 };
            *held.entry(format!("W|{}|{}", job.s("tn"), job.s("wl"))).or_default() += hold;
        }
        for ((pk, _), balance) in self.books.balances.iter() {
            let mut chain: Vec<&Item> = self
                .books
                .ledger
                .values()
                .filter(|entry| format!("W|{}|{}", entry.s("tn"), entry.s("wl")) == *pk && entry.has("seq"))
                .collect();
            chain.sort_by_key(|entry| entry.n("seq"));
            let sum: i64 = chain.iter().map(|entry| self.moves(entry)).sum();
            let (available, in_holds) = (balance.n("av"), balance.n("he"));
            if available + in_holds != sum {
                self.wrong(format!("4: {pk} has {available} + {in_holds}, and its entries say {sum}"));
            }
            let open = held.get(pk).copied().unwrap_or(0);
            if in_holds != open {
                self.wrong(format!("4: {pk} holds {in_holds}, and its open holds are {open}"));
            }
            if available < -balance.n("cl") {
                self.wrong(format!("4: {pk} fell to {available}, below its credit limit"));
            }
            if self.scenario.is_postpaid() {
                self.carries(pk, balance, &chain);
            }
            self.chain(pk, balance, &chain);
        }
    }

    /// A wallet's entries are gap-free and hash-chained, and the balance knows the last one.
    fn chain(&self, pk: &str, balance: &Item, chain: &[&Item]) {
        let mut head = "";
        for (place, entry) in chain.iter().enumerate() {
            let sequence = place + 1;
            let linked = entry.n("seq") == i64::try_from(sequence).unwrap_or(0) && entry.s("ph") == head;
            let own = sha256(&format!("1|{sequence}|{head}|{}", sha256(&content(entry))));
            if !linked || own != entry.s("hh") {
                return self.wrong(format!("5: the chain of {pk} breaks at {sequence} ({})", entry.s("kd")));
            }
            head = entry.s("hh");
        }
        if balance.n("seq") != i64::try_from(chain.len()).unwrap_or(0) || balance.s("hd") != head {
            self.wrong(format!("5: {pk} does not know the head of its chain"));
        }
    }

    /// The whole hold of a job: as submitted, and every extension.
    pub(super) fn hold(&self, pk: &str) -> i64 {
        Books::of(&self.books.jobs, pk)
            .filter(|(sk, _)| *sk == "j" || sk.starts_with("h|"))
            .map(|(_, i)| i.n("hd"))
            .sum()
    }

    /// A new entry: balanced, its own rules kept, its key right.
    pub(super) fn entry(&self, pk: &str, sk: &str, entry: &Item) {
        let total: i64 = entry.lines().iter().map(|(_, amount)| amount).sum();
        let accounts: &[&str] = if self.scenario.is_postpaid() { &["receivable", "rounding"] } else { &["wallet"] };
        let own: i64 = accounts.iter().map(|account| charges::line(entry, account)).sum();
        if total != 0 || own != change(entry) {
            self.wrong(format!("4: the lines of {pk} {sk} do not add up"));
        }
        let ended = self.books.jobs.contains_key(&(pk.to_owned(), "t|000001".to_owned()));
        if entry.s("kd") == "expire" && ended {
            self.wrong(format!("4: {pk} expired after its end"));
        }
        if sk == "c" && entry.n("am").min(self.hold(pk)) + entry.n("rl") != self.hold(pk) {
            self.wrong(format!("4: the close of {pk} does not give back its whole hold"));
        }
        if sk == "c" && (entry.n("rl") < 0 || entry.n("am") < 0) {
            self.wrong(format!("4: the close of {pk} has a negative amount"));
        }
    }

    /// Job and money agree, and nothing is charged twice or beyond.
    pub(super) fn agreement(&self) {
        let jobs: BTreeSet<&str> =
            self.books.ledger.keys().map(|(pk, _)| pk.as_str()).filter(|pk| pk.starts_with("J|")).collect();
        for pk in jobs {
            let entries: Vec<(&str, &Item)> = Books::of(&self.books.ledger, pk).collect();
            let settlements = entries.iter().filter(|(sk, _)| *sk == "c" || sk.starts_with("l|"));
            for (sk, entry) in settlements.filter(|(_, entry)| entry.s("kd") != "expire") {
                self.settled_by_its_transition(pk, sk, entry);
            }
            self.once_each(pk, &entries);
            let sum =
                |kind: &str| entries.iter().filter(|(_, e)| e.s("kd") == kind).map(|(_, e)| e.n("am")).sum::<i64>();
            let captured = sum("capture") + sum("late-capture") + sum("adjust");
            if sum("reverse") > captured || captured < 0 {
                self.wrong(format!("4: {pk} captured {captured} and reversed {}", sum("reverse")));
            }
            self.corrected(pk, &entries);
        }
    }

    fn settled_by_its_transition(&self, pk: &str, sk: &str, entry: &Item) {
        let key = (pk.to_owned(), format!("t|{:06}", entry.n("vn")));
        let Some(transition) = self.books.jobs.get(&key) else {
            return self.wrong(format!("7: {pk} {sk} settles version {}, which does not exist", entry.n("vn")));
        };
        if transition.s("by") != entry.s("by") {
            let (a, b) = (transition.s("by"), entry.s("by"));
            self.wrong(format!("7: {pk} was ended by {a} and settled by {b}"));
        }
        let Some(event) = entry.s("by").strip_prefix("acme/").and_then(|id| self.scenario.event(id)) else { return };
        let job = &self.scenario.jobs[event.job];
        let billed = event.kind == "job.completed" || (job.model == "partial-1" && event.usage.is_some());
        let price = if billed { event.price().unwrap_or(0) } else { 0 };
        let due = if self.is_capped(job.model) { price.min(self.hold(pk)) } else { price };
        if entry.n("am") != due {
            self.wrong(format!("4: {pk} {sk} charges {} for {due}", entry.n("am")));
        }
        if entry.has("us") && entry.usage() != event.usage {
            self.wrong(format!("7: {pk} {sk} charges other usage than its event says"));
        }
    }

    /// Whether the hold is the most that a job of this model costs; on a postpaid wallet there is none.
    fn is_capped(&self, model: &str) -> bool {
        matches!(model, "cap-1" | "partial-1") && !self.scenario.is_postpaid()
    }

    /// One settlement per version and per reference.
    fn once_each(&self, pk: &str, entries: &[(&str, &Item)]) {
        let mut seen = BTreeSet::new();
        for (sk, entry) in entries {
            let kind = match entry.s("kd") {
                "capture" | "late-capture" => format!("version {}", entry.n("vn")),
                "adjust" | "reverse" => format!("{} {}", entry.s("kd"), entry.s("rn")),
                _ => continue,
            };
            let asked = self.scenario.events().any(|e| e.reference.as_deref() == Some(entry.s("rn")))
                || self.asked(entry.s("kd"), entry.s("rn"));
            if matches!(entry.s("kd"), "adjust" | "reverse") && !asked {
                self.wrong(format!("2: {pk} {sk} is keyed by a reference that nobody gave"));
            }
            if !seen.insert(kind.clone()) {
                self.wrong(format!("2: {pk} is charged twice for {kind}"));
            }
        }
    }

    /// The newest correction by usage makes the job cost what that usage costs.
    fn corrected(&self, pk: &str, entries: &[(&str, &Item)]) {
        let by_usage: Vec<&Item> =
            entries.iter().map(|(_, e)| *e).filter(|e| e.s("kd") == "adjust" && e.has("us")).collect();
        let Some(newest) = by_usage.iter().max_by_key(|entry| entry.n("sq")) else { return };
        let captures = entries.iter().map(|(_, e)| *e).filter(|e| matches!(e.s("kd"), "capture" | "late-capture"));
        let last_capture = captures.clone().map(|entry| entry.n("seq")).max().unwrap_or(0);
        if last_capture > newest.n("seq") {
            return; // a late capture came after it
        }
        let cost: i64 = captures.chain(by_usage.iter().copied()).map(|entry| entry.n("am")).sum();
        let Some((input, output)) = newest.usage() else { return };
        let model = self.scenario.jobs.iter().find(|job| format!("J|t1|{}", job.job) == pk).map(|job| job.model);
        let capped = model.is_some_and(|model| self.is_capped(model));
        let price = 3 * input + 15 * output;
        let due = if capped { price.min(self.hold(pk)) } else { price };
        if cost != due {
            self.wrong(format!("4: {pk} costs {cost} after a correction to {due}"));
        }
    }
}
