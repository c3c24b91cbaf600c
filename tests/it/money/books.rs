//! The books as an auditor reads them: the stored items themselves, without the project's code, and
//! every promise about money checked over them.
//!
//! [`Books::refresh`] reads the partitions that a step could have touched; [`Books::audit`] reads all
//! four tables and finds what was touched besides. An item of the history that was seen once must
//! never change or vanish.

use std::collections::BTreeMap;

use local::world::World;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::model::{Adjust, Amount, Close, Closing, Fate, Name, Outcome, State, Wallet, Work};

pub const JOBS: &str = "hookledger-jobs";
pub const LEDGER: &str = "hookledger-ledger";
pub const BALANCES: &str = "hookledger-balances";
pub const EVENTS: &str = "hookledger-events";

/// Sort keys by partition of one table.
type Table = BTreeMap<String, BTreeMap<String, Value>>;

/// A copy of the stores, kept up to date step by step.
#[derive(Default)]
pub struct Books {
    tables: BTreeMap<&'static str, Table>,
    /// Hashes that were recomputed and found right, by ledger partition and sort key.
    hashed: BTreeMap<(String, String), String>,
    /// What was seen wrong while reading: a changed or vanished item of the history.
    wrong: Vec<String>,
}

/// The text of a string or number attribute; empty when absent.
pub fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name]["S"].as_str().or(item[name]["N"].as_str()).unwrap_or_default()
}

/// A number attribute; absent is zero.
pub fn number(item: &Value, name: &str) -> Amount {
    match text(item, name) {
        "" => 0,
        digits => digits.parse().unwrap(),
    }
}

fn list<'a>(item: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    item[name]["L"].as_array().into_iter().flatten().map(|line| &line["M"])
}

/// Tokens of a stored usage.
fn tokens(item: &Value) -> Option<Amount> {
    item["us"]["M"]["tokens"]["S"].as_str().map(|digits| digits.parse().unwrap())
}

/// Who asked, in the model's words.
fn asker(by: &str) -> Name {
    match by.split_once('/') {
        Some(("acme", event)) => event.to_owned(),
        Some(("control", "expiry")) => "expiry".to_owned(),
        _ => "control".to_owned(),
    }
}

/// An attribute as the record's JSON has it.
fn plain(attribute: &Value) -> String {
    match attribute.as_object().and_then(|typed| typed.iter().next()) {
        Some((kind, Value::String(digits))) if kind == "N" => digits.clone(),
        Some((kind, Value::String(text))) if kind == "S" => Value::from(text.as_str()).to_string(),
        Some((kind, Value::Array(items))) if kind == "L" => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(","))
        }
        Some((kind, Value::Object(members))) if kind == "M" => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            let members: Vec<String> =
                sorted.iter().map(|(name, value)| format!("{:?}:{}", name, plain(value))).collect();
            format!("{{{}}}", members.join(","))
        }
        other => panic!("no attribute of an entry: {other:?}"),
    }
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// The documented hash of an entry: over its sequence, the hash before, and the hash of its content as
/// JSON in the order of its fields, without the chain fields.
fn chain_hash(entry: &Value) -> String {
    let present = crate::books::CONTENT.iter().filter(|name| !entry[**name].is_null());
    let members: Vec<String> = present.map(|name| format!("{name:?}:{}", plain(&entry[*name]))).collect();
    let content = sha256(&format!("{{{}}}", members.join(",")));
    sha256(&format!("1|{}|{}|{content}", text(entry, "seq"), text(entry, "ph")))
}

/// All items of a query or scan, page by page.
fn pages(world: &World, mut request: Value, scan: bool) -> Vec<Value> {
    let database = world.aws.database();
    let mut items = Vec::new();
    loop {
        let answer = if scan {
            serde_json::to_value(database.scan(serde_json::from_value(request.clone()).unwrap()).unwrap())
        } else {
            serde_json::to_value(database.query(serde_json::from_value(request.clone()).unwrap()).unwrap())
        };
        let mut answer = answer.unwrap();
        items.extend(answer["Items"].as_array_mut().map(std::mem::take).unwrap_or_default());
        if answer["LastEvaluatedKey"].is_null() {
            return items;
        }
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"].take();
    }
}

/// Items that may change: balances, operations, counts, cursors, progress.
fn mutable(table: &str, item: &Value) -> bool {
    table == BALANCES || (table == EVENTS && !matches!(text(item, "sk"), "r" | "q"))
}

impl Books {
    /// Reads one partition anew.
    pub fn refresh(&mut self, world: &World, table: &'static str, pk: &str) {
        let request = json!({
            "TableName": table, "KeyConditionExpression": "pk = :pk", "ConsistentRead": true,
            "ExpressionAttributeValues": {":pk": {"S": pk}},
        });
        self.take(table, pk, pages(world, request, false));
    }

    /// Reads everything anew; what the steps before should have seen and did not is a finding.
    pub fn audit(&mut self, world: &World) -> Vec<String> {
        for table in [JOBS, LEDGER, BALANCES, EVENTS] {
            let mut partitions: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for item in pages(world, json!({"TableName": table, "ConsistentRead": true}), true) {
                partitions.entry(text(&item, "pk").to_owned()).or_default().push(item);
            }
            let known: Vec<String> = self.tables.entry(table).or_default().keys().cloned().collect();
            for gone in known.iter().filter(|pk| !partitions.contains_key(*pk)) {
                self.wrong.push(format!("{table}: partition {gone} vanished"));
            }
            for (pk, items) in partitions {
                self.take(table, &pk, items);
            }
        }
        self.promises()
    }

    fn take(&mut self, table: &'static str, pk: &str, items: Vec<Value>) {
        let before = self.tables.entry(table).or_default();
        let now: BTreeMap<String, Value> = items.into_iter().map(|item| (text(&item, "sk").to_owned(), item)).collect();
        for (sk, old) in before.get(pk).into_iter().flatten().filter(|(_, old)| !mutable(table, old)) {
            if now.get(sk) != Some(old) {
                self.wrong.push(format!("{table}: {pk} {sk} was changed or vanished"));
            }
        }
        if now.is_empty() {
            before.remove(pk);
        } else {
            before.insert(pk.to_owned(), now);
        }
    }

    fn partitions(&self, table: &str, prefix: &'static str) -> impl Iterator<Item = (&str, &BTreeMap<String, Value>)> {
        let partitions = self.tables.get(table).into_iter().flatten();
        partitions.filter_map(move |(pk, items)| Some((pk.strip_prefix(prefix)?, items)))
    }

    fn entries(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let partitions = self.tables.get(LEDGER).into_iter().flatten();
        let all =
            partitions.flat_map(|(pk, items)| items.iter().map(move |(sk, item)| (pk.as_str(), sk.as_str(), item)));
        all.filter(|(_, sk, _)| !sk.starts_with("n|")) // a place taken, no entry
    }

    // --- in the model's words

    /// Every job of tenant t1 by id.
    pub fn fates(&self) -> BTreeMap<Name, Fate> {
        let mut fates = BTreeMap::new();
        for (job, items) in self.partitions(JOBS, "J|t1|") {
            if let Some(submitted) = items.get("j") {
                fates.insert(job.to_owned(), self.fate(job, submitted, items));
            }
        }
        fates
    }

    fn fate(&self, job: &str, submitted: &Value, items: &BTreeMap<String, Value>) -> Fate {
        let mut fate = Fate { hold: number(submitted, "hd"), ..Fate::default() };
        for (sk, item) in items {
            let by = asker(text(item, "by"));
            if sk.starts_with("h|") {
                fate.extensions.insert(text(item, "rn").to_owned(), (number(item, "hd"), by));
            } else if sk.starts_with("t|") {
                let outcome = match text(item, "oc") {
                    "success" => Outcome::Success,
                    "failure" => Outcome::Failure,
                    _ => Outcome::Canceled,
                };
                fate.transitions.push((outcome, tokens(item), by));
            }
        }
        let settled = self.tables.get(LEDGER).and_then(|table| table.get(&format!("J|t1|{job}")));
        for (sk, item) in settled.into_iter().flatten() {
            let (by, amount) = (asker(text(item, "by")), number(item, "am"));
            let version = (!item["vn"].is_null()).then(|| number(item, "vn") as usize);
            let reference = text(item, "rn").to_owned();
            match sk.split('|').next().unwrap_or_default() {
                "c" => {
                    let kind = match text(item, "kd") {
                        "capture" => Closing::Capture,
                        "release" => Closing::Release,
                        _ => Closing::Expire,
                    };
                    let released = number(item, "rl");
                    fate.close = Some(Close { kind, captured: amount, released, version, by });
                }
                "l" => drop(fate.late.insert(version.unwrap_or_default(), (amount, by))),
                "a" => {
                    let order = (!item["sq"].is_null()).then(|| number(item, "sq") as i64);
                    fate.adjusts.insert(reference, Adjust { amount, order, tokens: tokens(item), by });
                }
                "n" => {} // a place taken, no entry
                _ => drop(fate.reverses.insert(reference, amount)),
            }
        }
        fate
    }

    /// Every wallet of tenant t1 by id.
    pub fn wallets(&self) -> BTreeMap<Name, Wallet> {
        let mut wallets = BTreeMap::new();
        for (name, items) in self.partitions(BALANCES, "W|t1|") {
            let Some(balance) = items.values().next() else { continue };
            let mut wallet = Wallet {
                available: number(balance, "av"),
                held: number(balance, "he"),
                credit: number(balance, "cl"),
                sequence: number(balance, "seq") as usize,
                ..Wallet::default()
            };
            let fundings = self.tables.get(LEDGER).and_then(|table| table.get(&format!("W|t1|{name}")));
            for (sk, item) in fundings.into_iter().flatten().filter(|(sk, _)| sk.starts_with("f|")) {
                wallet.fundings.insert(sk[2..].to_owned(), number(item, "am"));
            }
            wallets.insert(name.to_owned(), wallet);
        }
        wallets
    }

    /// Where every operation of acme's events stands that did not go straight.
    pub fn states(&self) -> BTreeMap<(Name, Work), State> {
        let mut states = BTreeMap::new();
        for (event, items) in self.partitions(EVENTS, "E|acme|") {
            for (sk, item) in items.iter().filter(|(sk, _)| sk.starts_with("o|")) {
                let work = match sk.rsplit('|').next().unwrap_or_default() {
                    "complete-job" => Work::Complete,
                    "settle-usage" => Work::Settle,
                    "adjust-usage" => Work::Adjust,
                    _ => Work::Extend,
                };
                let state = match text(item, "st") {
                    "wait" => State::Wait,
                    "review" => State::Review,
                    "noop" => State::Noop,
                    _ => State::Done,
                };
                states.insert((event.to_owned(), work), state);
            }
        }
        states
    }

    // --- the promises

    /// Everything that is wrong with what was read.
    pub fn promises(&mut self) -> Vec<String> {
        let mut wrong = std::mem::take(&mut self.wrong);
        self.check_lines(&mut wrong);
        self.check_wallets(&mut wrong);
        self.check_chains(&mut wrong);
        self.check_jobs(&mut wrong);
        wrong
    }

    /// Debits and credits of every entry cancel out, so each currency's accounts sum to zero.
    fn check_lines(&self, wrong: &mut Vec<String>) {
        for (pk, sk, entry) in self.entries() {
            let sum: Amount = list(entry, "ln").map(|line| number(line, "am")).sum();
            if sum != 0 {
                wrong.push(format!("{pk} {sk}: lines sum to {sum}"));
            }
            let charge: Amount = list(entry, "ln").filter(|l| text(l, "ac") != "wallet").map(|l| number(l, "am")).sum();
            let incoming = ["fund", "opening-balance", "reverse"].contains(&text(entry, "kd"));
            let said = if incoming { -number(entry, "am") } else { number(entry, "am") };
            if charge != said {
                wrong.push(format!("{pk} {sk}: the amount is {said}, its lines move {charge}"));
            }
        }
    }

    /// available + held is what the entries say, held is what the open holds say, and available is
    /// above the credit limit.
    fn check_wallets(&self, wrong: &mut Vec<String>) {
        let fates = self.fates();
        for (id, wallet) in self.wallets() {
            let of_wallet = self.entries().filter(|(_, _, entry)| text(entry, "wl") == id);
            let lines = of_wallet.flat_map(|(_, _, entry)| list(entry, "ln"));
            let entered: Amount = lines.filter(|l| text(l, "ac") == "wallet").map(|l| number(l, "am")).sum();
            if wallet.available + wallet.held != entered {
                wrong.push(format!("{id}: {} + {} is not {entered}", wallet.available, wallet.held));
            }
            let of_wallet = |job: &str| {
                let items = self.tables.get(JOBS).and_then(|table| table.get(&format!("J|t1|{job}")));
                items.is_some_and(|items| text(&items["j"], "wl") == id)
            };
            let open = fates.iter().filter(|(job, fate)| fate.close.is_none() && of_wallet(job));
            let open: Amount = open.map(|(_, fate)| fate.reserved()).sum();
            if wallet.held != open {
                wrong.push(format!("{id}: held is {}, open holds {open}", wallet.held));
            }
            if wallet.available < -wallet.credit {
                wrong.push(format!("{id}: available {} is below the credit limit", wallet.available));
            }
        }
    }

    /// Each wallet's entries are 1, 2, ... without a gap, each naming the hash before, each hash right.
    fn check_chains(&mut self, wrong: &mut Vec<String>) {
        let mut chains: BTreeMap<String, BTreeMap<usize, (String, String)>> = BTreeMap::new();
        let mut hashed = std::mem::take(&mut self.hashed);
        for (pk, sk, entry) in self.entries() {
            if entry["seq"].is_null() {
                if list(entry, "ln").next().is_some() {
                    wrong.push(format!("{pk} {sk}: moves money outside the chain"));
                }
                continue;
            }
            let right = hashed.entry((pk.to_owned(), sk.to_owned())).or_insert_with(|| chain_hash(entry));
            if text(entry, "hh") != right {
                wrong.push(format!("{pk} {sk}: its hash is not that of its content"));
            }
            let link = (text(entry, "ph").to_owned(), text(entry, "hh").to_owned());
            let chain = chains.entry(format!("W|{}|{}", text(entry, "tn"), text(entry, "wl"))).or_default();
            if chain.insert(number(entry, "seq") as usize, link).is_some() {
                wrong.push(format!("{pk} {sk}: another entry has its sequence"));
            }
        }
        self.hashed = hashed;
        for (pk, items) in self.tables.get(BALANCES).into_iter().flatten() {
            let chain = chains.remove(pk).unwrap_or_default();
            let mut head = String::new();
            for (place, (sequence, (previous, hash))) in chain.iter().enumerate() {
                if *sequence != place + 1 || *previous != head {
                    wrong.push(format!("{pk}: the chain breaks at {sequence}"));
                }
                head.clone_from(hash);
            }
            let balance = items.values().next().unwrap();
            if number(balance, "seq") as usize != chain.len() || text(balance, "hd") != head {
                wrong.push(format!("{pk}: the balance does not stand at the chain's end"));
            }
        }
        wrong.extend(chains.keys().map(|pk| format!("{pk}: entries of a wallet that does not exist")));
    }

    /// One transition per version, one close that accounts for the whole hold, nothing reversed beyond
    /// what was captured, and money only by the event that owns the version.
    fn check_jobs(&self, wrong: &mut Vec<String>) {
        for (id, fate) in self.fates() {
            let keys = self.tables[JOBS][&format!("J|t1|{id}")].keys().filter(|sk| sk.starts_with("t|"));
            for (place, sk) in keys.enumerate() {
                if *sk != format!("t|{:06}", place + 1) {
                    wrong.push(format!("{id}: transition {sk} out of order"));
                }
            }
            if fate.reversed() > fate.captured() {
                wrong.push(format!("{id}: {} reversed of {}", fate.reversed(), fate.captured()));
            }
            let owner = |version: usize| fate.transitions.get(version.wrapping_sub(1)).map(|(_, _, by)| by.clone());
            for (version, (_, by)) in &fate.late {
                if owner(*version).as_ref() != Some(by) {
                    wrong.push(format!("{id}: late capture {version} is not by the transition's event"));
                }
            }
            let Some(close) = &fate.close else { continue };
            // Where a charge above the hold may come from the available balance, nothing is released.
            let whole = close.captured + close.released == fate.reserved();
            let above = close.kind == Closing::Capture && close.released == 0 && close.captured > fate.reserved();
            if !(whole || above) || close.captured < 0 || close.released < 0 {
                wrong.push(format!("{id}: {close:?} does not account for {}", fate.reserved()));
            }
            match close.version {
                Some(version) if owner(version).as_ref() != Some(&close.by) => {
                    wrong.push(format!("{id}: the close of version {version} is not by the transition's event"));
                }
                // A person's release claims no version either.
                None if close.kind != Closing::Expire && !close.by.starts_with("control/review.") => {
                    wrong.push(format!("{id}: a close without a version"))
                }
                _ => {}
            }
        }
    }
}
