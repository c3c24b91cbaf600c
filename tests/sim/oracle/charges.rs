//! Postpaid wallets: what is owed is what the payment provider was asked for and has not paid; every whole cent of what a job
//! costs is asked for once, in the transaction that settles it, of the right customer; what is smaller is carried; and exactly
//! what a charge has left goes back to it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::money::{change, sha256};
use super::payments::CENT;
use super::{Inner, Item, Oracle};
use crate::scenario::JobSpec;
use crate::till::{field, minor, step};

/// The moved part of an entry of a job: charged, or, negative, given back.
fn moved(entry: &Item) -> i64 {
    -line(entry, "receivable")
}

/// What stands on an account.
pub(super) fn line(entry: &Item, account: &str) -> i64 {
    entry.lines().iter().filter(|(name, _)| name == account).map(|(_, amount)| amount).sum()
}

/// The cents that an intent asks for; none for a cancellation.
fn cents(intent: &Item) -> i64 {
    minor(intent.s("rq"), "amount") + minor(intent.s("rq"), "amount_to_capture")
}

/// The partition of an event of our own.
fn receipt_of(id: &str) -> String {
    format!("E|own|{}", id.replace('%', "%25").replace('|', "%7C"))
}

impl Inner {
    /// The entries of a postpaid wallet, in their order: what is carried follows from each, and so does what is moved.
    pub(super) fn carries(&self, pk: &str, balance: &Item, chain: &[&Item]) {
        let mut carried = 0;
        // What each charge of each job has left, by the keys of its entry.
        let mut left: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for entry in chain.iter().filter(|entry| entry.has("jb")) {
            let (job, back) = (entry.s("pk"), entry.s("ch"));
            let due = carried - change(entry);
            let whole = due / CENT * CENT; // towards zero
            let most = left.iter().filter(|((of, _), _)| *of == job).map(|(_, left)| *left).max().unwrap_or(0);
            // A correction by usage is a credit on the next charge; what people give back goes to a charge.
            let refunds = change(entry) > 0 && !entry.has("us");
            let expected = match whole {
                0.. if whole < self.scenario.minimum() => 0,
                0.. => whole,
                _ if refunds => whole.max(-most),
                _ => 0,
            };
            let moved = moved(entry);
            if moved != expected || (moved < 0) == back.is_empty() {
                let kind = entry.s("kd");
                self.wrong(format!("4: {pk} carried {carried}, and {kind} moved {moved} of {expected} to {back:?}"));
            }
            carried = due - moved;
            match moved {
                1.. => drop(left.insert((job, entry.s("sk")), moved)),
                0 => {}
                _ if left.get(&(job, back)) != Some(&most) => {
                    self.wrong(format!("4: {job} gives back to {back}, which has not most left of {left:?}"));
                }
                _ => drop(left.insert((job, back), most + moved)),
            }
        }
        if balance.n("ca") != carried {
            self.wrong(format!("4: {pk} carries {}, and its entries say {carried}", balance.n("ca")));
        }
    }

    /// Each entry that moves something and what it asks of the payment provider, each way.
    pub(super) fn charges(&self) {
        if !self.scenario.is_postpaid() {
            return;
        }
        let own = self.own();
        let mut wanted: BTreeMap<String, i64> = self.authorised();
        for ((pk, sk), entry) in self.books.ledger.iter().filter(|((pk, _), _)| pk.starts_with("J|")) {
            let (job, cents) = (&pk[2..], moved(entry) / CENT);
            match cents {
                0 => {}
                1.. if self.is_captured(pk, sk, entry) => drop(wanted.insert(format!("capture|{job}|c"), cents)),
                1.. => drop(wanted.insert(format!("charge|{job}|{sk}"), cents)),
                _ if self.is_unpaid(&charge_of(job, entry.s("ch"), &own)) => {} // so nothing goes back there
                _ => drop(wanted.insert(format!("refund|{job}|{sk}"), -cents)),
            }
        }
        let asked: BTreeMap<String, i64> =
            own.iter().map(|(id, (pk, _))| (id.clone(), self.intent_of(pk).map_or(0, cents))).collect();
        if asked != wanted {
            self.wrong(format!("2: the payment provider is asked for {asked:?}, and the ledger says {wanted:?}"));
        }
        let sent = own.iter().filter_map(|(id, (pk, _))| Some((id, self.intent_of(pk)?)));
        for (id, intent) in sent {
            if let Some(wrong) = self.aims_wrong(id, intent, &own) {
                self.wrong(format!("4: {id} {wrong}: {}", intent.s("rq")));
            }
        }
    }

    /// Micros that are authorised for a job.
    fn authorised_of(&self, pk: &str) -> i64 {
        self.books.jobs.get(&(pk.to_owned(), "j".to_owned())).map_or(0, |job| job.n("au"))
    }

    /// True where an event of our own ended without an effect there: it was declined, or a person closed it.
    fn is_unpaid(&self, id: &str) -> bool {
        let pk = receipt_of(id);
        let closed = self.record(&pk, "forward").is_some_and(|record| record.s("st") == "closed");
        self.intent_of(&pk)
            .map_or(closed, |intent| intent.s("st") == "failed" || (closed && intent.s("st") != "settled"))
    }

    /// The id of what an event of our own made there.
    fn exists_as(&self, id: &str) -> Option<String> {
        self.there.as_ref()?.id(&sha256(self.intent_of(&receipt_of(id))?.s("k")))
    }

    /// True for the event that gives up an authorisation of which nothing exists there.
    pub(super) fn holds_nothing(&self, pk: &str) -> bool {
        let job = pk.strip_prefix("E|own|void%7C").and_then(|rest| rest.strip_suffix("%7Cc"));
        job.is_some_and(|job| self.exists_as(&format!("authorise|{}", job.replace("%7C", "|"))).is_none())
    }

    /// True where an entry takes what was authorised.
    fn is_captured(&self, pk: &str, sk: &str, entry: &Item) -> bool {
        let held = (1..=self.authorised_of(pk)).contains(&moved(entry));
        sk == "c" && held && !self.is_unpaid(&format!("authorise|{}", &pk[2..]))
    }

    /// Each job that is authorised asks for it, and for its end where it ends otherwise than by a capture.
    fn authorised(&self) -> BTreeMap<String, i64> {
        let mut wanted = BTreeMap::new();
        for (pk, _) in self.books.jobs.keys().filter(|(pk, sk)| pk.starts_with("J|") && sk == "j") {
            let (job, authorised) = (&pk[2..], self.authorised_of(pk));
            if authorised == 0 {
                continue;
            }
            wanted.insert(format!("authorise|{job}"), authorised / CENT);
            let Some(close) = self.books.ledger.get(&(pk.clone(), "c".to_owned())) else { continue };
            let stands = moved(close) <= 0 || !self.is_unpaid(&format!("authorise|{job}"));
            if stands && !self.is_captured(pk, "c", close) {
                wanted.insert(format!("void|{job}|c"), 0);
            }
        }
        wanted
    }

    /// What is wrong with whom or what a request is about.
    fn aims_wrong(&self, id: &str, intent: &Item, own: &Own<'_>) -> Option<String> {
        let (form, parts) = (intent.s("rq"), id.split('|').collect::<Vec<_>>());
        let job = self.scenario.jobs.iter().find(|job| parts.get(2) == Some(&job.job.as_str()))?;
        let aims = |of: &str| self.exists_as(of);
        let differs = |names: &[(&str, &str)]| {
            let one = names.iter().find(|(name, value)| field(form, name).as_deref() != Some(*value));
            one.map(|(name, value)| format!("has {name} {:?} for {value}", field(form, name)))
        };
        let of_job = [("metadata[tenant]", "t1"), ("metadata[wallet]", &job.wallet), ("metadata[job]", &job.job)];
        let (customer, method) = (format!("cus_{}", job.wallet), format!("pm_{}", job.wallet));
        match parts[0] {
            "capture" | "void" => {
                let payment = aims(&format!("authorise|t1|{}", job.job));
                let meant = step(path(intent)).map(|(payment, _)| payment.to_owned());
                (payment != meant).then(|| format!("ends {meant:?}, and {payment:?} is authorised"))
            }
            "refund" => {
                let entry = self.books.ledger.get(&(format!("J|t1|{}", job.job), parts[3..].join("|")));
                let payment = entry.and_then(|entry| aims(&charge_of(&format!("t1|{}", job.job), entry.s("ch"), own)));
                let meant = field(form, "payment_intent");
                let wrong = (payment != meant).then(|| format!("is of {meant:?}, and {payment:?} was charged"));
                wrong.or_else(|| differs(&of_job))
            }
            kind => {
                let manual = field(form, "capture_method").is_some();
                let whom = [("customer", customer.as_str()), ("payment_method", &method), ("currency", "usd")];
                let wrong = (manual != (kind == "authorise")).then(|| "is captured at the wrong time".to_owned());
                wrong
                    .or_else(|| differs(&of_job))
                    .or_else(|| differs(&whom))
                    .or_else(|| differs(&[("metadata[charge]", id)]))
            }
        }
    }
}

type Own<'a> = BTreeMap<String, (&'a String, &'a Item)>;

/// The event by which an entry of a job was charged.
fn charge_of(job: &str, sk: &str, own: &Own<'_>) -> String {
    let capture = format!("capture|{job}|{sk}");
    if own.contains_key(&capture) { capture } else { format!("charge|{job}|{sk}") }
}

fn path(intent: &Item) -> &str {
    intent.0["cl"]["M"]["p"]["S"].as_str().unwrap_or_default()
}

impl Oracle {
    /// At rest, what a job is shown as: everything that it asked of the payment provider, how far that is, and settled only
    /// when it is done.
    pub fn shown(&self, job: &JobSpec, answer: Option<(u16, Value)>) {
        let inner = self.lock();
        let exists = inner.books.jobs.contains_key(&(format!("J|t1|{}", job.job), "j".to_owned()));
        let (status, shown) = answer.unwrap_or_default();
        if status != if exists { 200 } else { 404 } {
            return inner.wrong(format!("9: {} is shown as {status}", job.job));
        }
        if !exists {
            return;
        }
        let own = inner.own();
        let of_job = |id: &&String| id.split('|').nth(2) == Some(job.job.as_str());
        let state = |id: &str| inner.intent_of(&receipt_of(id)).map(|intent| intent.s("st").to_owned());
        let asked: BTreeMap<String, Option<String>> =
            own.keys().filter(of_job).map(|id| (id.clone(), state(id))).collect();
        let charges = shown["settlements"].as_array().into_iter().flatten().map(|entry| &entry["charge"]);
        let authorisation = [&shown["authorisation"], &shown["authorisation"]["void"]];
        let told: BTreeMap<String, Option<String>> = charges
            .chain(authorisation)
            .filter_map(|one| Some((one["event"].as_str()?.strip_prefix("own/")?, one["state"].as_str())))
            .map(|(id, state)| (id.to_owned(), state.map(str::to_owned)))
            .collect();
        if told != asked {
            inner.wrong(format!("9: {} shows {told:?}, and asked for {asked:?}", job.job));
        }
        let done = |(id, state): (&String, &Option<String>)| {
            let record = inner.record(&receipt_of(id), "forward");
            let over = record.is_some_and(|record| matches!(record.s("st"), "closed" | "noop"));
            over || state.as_deref() == Some("settled")
        };
        let all_done = asked.iter().filter(|(id, _)| !id.starts_with("authorise|")).all(done);
        let charged = asked.keys().any(|id| id.starts_with("charge|") || id.starts_with("capture|"));
        match shown["status"].as_str() {
            Some("billing-settled") if !all_done => {
                inner.wrong(format!("9: {} is shown as settled too early", job.job))
            }
            Some("billing-submitted") if all_done => {
                inner.wrong(format!("9: {} is shown as open, and is done", job.job))
            }
            Some("billing-settled" | "billing-submitted" | "hold-closed" | "billing-pending") => {}
            Some("submitted") if !charged => {}
            other => inner.wrong(format!("9: {} is shown as {other:?}", job.job)),
        }
    }
}
