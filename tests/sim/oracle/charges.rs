//! Postpaid wallets: what is owed is what the payment provider was asked for and has not paid; every whole cent of what a job
//! costs is asked for once, in the transaction that settles it; what is smaller is carried; and never more goes back to a
//! charge than it took.

use std::collections::BTreeMap;

use super::money::change;
use super::payments::CENT;
use super::{Books, Inner, Item};
use crate::till::field;

/// The moved part of an entry of a job: charged, or, negative, given back.
fn moved(entry: &Item) -> i64 {
    -line(entry, "receivable")
}

fn line(entry: &Item, account: &str) -> i64 {
    entry.lines().iter().filter(|(name, _)| name == account).map(|(_, amount)| amount).sum()
}

/// What an entry of a postpaid wallet adds to what is available; `None` for one that has no such lines.
pub(super) fn owed(entry: &Item) -> Option<i64> {
    let postpaid = |(account, _): &(String, i64)| matches!(account.as_str(), "receivable" | "rounding");
    entry.lines().iter().any(postpaid).then(|| line(entry, "receivable"))
}

/// What its own lines come to together, which is what it was priced at.
pub(super) fn priced(entry: &Item) -> i64 {
    line(entry, "receivable") + line(entry, "rounding")
}

impl Inner {
    /// The entries of a postpaid wallet, in their order: what is carried follows from each, and so does what is moved.
    pub(super) fn carries(&self, pk: &str, balance: &Item, chain: &[&Item]) {
        let mut carried = 0;
        for entry in chain.iter().filter(|entry| entry.has("jb")) {
            let due = carried - change(entry);
            let whole = due / CENT * CENT; // towards zero
            let moved = moved(entry);
            // How much of a credit goes back depends on what was charged before: at most whole cents of it.
            if moved % CENT != 0 || (due >= 0 && moved != whole) || (due < 0 && !(whole..=0).contains(&moved)) {
                self.wrong(format!("4: {pk} carried {carried}, and {} moved {moved}", entry.s("kd")));
            }
            carried = due - moved;
        }
        if balance.n("ca") != carried {
            self.wrong(format!("4: {pk} carries {}, and its entries say {carried}", balance.n("ca")));
        }
    }

    /// Each entry that moves something and its step at the payment provider, each way.
    pub(super) fn charges(&self) {
        if !self.scenario.is_postpaid() {
            return;
        }
        let mut wanted: BTreeMap<String, i64> = self.authorised();
        for ((pk, sk), entry) in self.books.ledger.iter().filter(|((pk, _), _)| pk.starts_with("J|")) {
            let (cents, back) = (moved(entry) / CENT, entry.s("ch"));
            match cents {
                0 => {}
                1.. if sk == "c" && moved(entry) <= self.authorised_of(pk) => {
                    wanted.insert(format!("capture|{}|c", &pk[2..]), cents);
                }
                1.. => drop(wanted.insert(format!("charge|{}|{sk}", &pk[2..]), cents)),
                _ if back.is_empty() => self.wrong(format!("4: {pk} {sk} gives back {cents} cents of no charge")),
                _ => {
                    wanted.insert(format!("refund|{}|{sk}", &pk[2..]), -cents);
                    let all: i64 = Books::of(&self.books.ledger, pk)
                        .filter(|(_, e)| e.s("ch") == back)
                        .map(|(_, e)| moved(e))
                        .sum();
                    let took = self.books.ledger.get(&(pk.clone(), back.to_owned())).map_or(0, moved);
                    if all + took < 0 {
                        self.wrong(format!("4: {pk} {back} took {took}, and {} went back", -all));
                    }
                }
            }
        }
        let asked: BTreeMap<String, i64> =
            self.own().into_iter().map(|(id, (pk, _))| (id, self.intent_of(pk).map_or(0, cents))).collect();
        if asked != wanted {
            self.wrong(format!("2: the payment provider is asked for {asked:?}, and the ledger says {wanted:?}"));
        }
    }
}

impl Inner {
    /// Micros that are authorised for a job.
    fn authorised_of(&self, pk: &str) -> i64 {
        self.books.jobs.get(&(pk.to_owned(), "j".to_owned())).map_or(0, |job| job.n("au"))
    }

    /// Each job that is authorised asks for it, and for its end where it ends otherwise than by a capture.
    fn authorised(&self) -> BTreeMap<String, i64> {
        let mut wanted = BTreeMap::new();
        for (pk, _) in self.books.jobs.keys().filter(|(pk, sk)| pk.starts_with("J|") && sk == "j") {
            let authorised = self.authorised_of(pk);
            if authorised > 0 {
                wanted.insert(format!("authorise|{}", &pk[2..]), authorised / CENT);
            }
            let close = self.books.ledger.get(&(pk.clone(), "c".to_owned()));
            if authorised > 0 && close.is_some_and(|close| !(1..=authorised).contains(&moved(close))) {
                wanted.insert(format!("void|{}|c", &pk[2..]), 0);
            }
        }
        wanted
    }
}

/// The cents that an intent asks for; none for a cancellation.
fn cents(intent: &Item) -> i64 {
    let amount = field(intent.s("rq"), "amount").or_else(|| field(intent.s("rq"), "amount_to_capture"));
    amount.and_then(|text| text.parse().ok()).unwrap_or(0)
}
