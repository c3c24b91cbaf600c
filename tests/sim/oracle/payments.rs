//! Payments: however many events speak of one, it funds its wallet once, and its refunds take back what was refunded.

use super::{Books, Inner, Item, Oracle, Table};
use crate::scenario::PaymentSpec;

/// Micros in a cent.
pub(super) const CENT: i64 = 10_000;

impl Inner {
    /// What is told of payments: by the scenario, and of what was charged.
    fn all_payments(&self) -> impl Iterator<Item = &PaymentSpec> {
        self.scenario.payments().chain(self.deliveries.news.values())
    }

    /// The payment event of a receipt's partition.
    pub(super) fn payment(&self, pk: &str) -> Option<&PaymentSpec> {
        pk.strip_prefix("E|stripe|").and_then(|id| self.all_payments().find(|payment| payment.id == id))
    }

    fn entries(&self, payment: &PaymentSpec) -> Vec<(&str, &Item)> {
        let pk = format!("W|t1|{}", payment.wallet);
        let mut entries = Vec::new();
        for ((key, sk), item) in &*self.books.ledger {
            if *key == pk && item.s("rn") == payment.payment {
                entries.push((sk.as_str(), item));
            }
        }
        entries
    }

    /// True when this event's own entry exists.
    pub(super) fn payment_done(&self, payment: &PaymentSpec) -> bool {
        let by = format!("stripe/{}", payment.id);
        self.entries(payment).iter().any(|(_, entry)| entry.s("by") == by)
    }

    /// Each payment funds once, by its own amount; its reversals are what was refunded, and no more.
    pub(super) fn payments(&self) {
        for payment in self.all_payments().filter(|payment| payment.funds()) {
            let entries = self.entries(payment);
            let funded: Vec<i64> =
                entries.iter().filter(|(_, e)| e.s("kd") == "fund").map(|(_, e)| e.n("am")).collect();
            if funded.len() > 1 || funded.iter().any(|amount| *amount != payment.minor * CENT) {
                self.wrong(format!("2: payment {} of {} cents funded {funded:?}", payment.payment, payment.minor));
            }
            let back: i64 =
                entries.iter().filter(|(_, e)| e.s("kd") == "funding-reversal").map(|(_, e)| e.n("am")).sum();
            let refunded = self.refunded(payment) * CENT;
            if back > refunded || back > 0 && funded.is_empty() {
                self.wrong(format!("4: {back} of payment {} was taken back, and {refunded} refunded", payment.payment));
            }
        }
    }

    /// Cents refunded in all, as the scenario's events say.
    fn refunded(&self, payment: &PaymentSpec) -> i64 {
        let refunds = self.all_payments().filter(|other| !other.funds() && other.payment == payment.payment);
        refunds.map(|refund| refund.minor).max().unwrap_or(0)
    }

    /// A refund that ended, by itself or by another event's doing, was taken back whole.
    fn refunded_whole(&self, payment: &PaymentSpec, pk: &str, record: Option<&Item>) {
        let ended = self.payment_done(payment) || record.is_some_and(|record| record.s("st") == "noop");
        if payment.funds() || !ended {
            return;
        }
        let entries = self.entries(payment);
        let back: i64 = entries.iter().filter(|(_, e)| e.s("kd") == "funding-reversal").map(|(_, e)| e.n("am")).sum();
        if back < payment.minor * CENT {
            self.wrong(format!("4: {pk} ended, and {back} of its {} cents was taken back", payment.minor));
        }
    }

    /// At rest, the end of a payment event's operation is one that the events allow.
    pub(super) fn payment_justified(&self, payment: &PaymentSpec) {
        let pk = format!("E|stripe|{}", payment.id);
        let record = self.books.events.get(&(pk.clone(), format!("o|-|billing|{}", payment.operation())));
        self.refunded_whole(payment, &pk, record);
        let Some(record) = record else { return };
        let (state, class) = (record.s("st"), record.s("cl"));
        let done = self.payment_done(payment);
        let of_others = self.entries(payment).iter().any(|(_, entry)| match payment.funds() {
            true => entry.s("kd") == "fund",
            false => entry.s("kd") == "funding-reversal",
        });
        let told = matches!(class, "attempts-exhausted" | "crashed");
        let allowed = match state {
            // The effect outranks its record, whose close may be what was lost.
            "closed" | "wait" => done,
            "noop" => of_others,
            // A refund may find the money spent; what is charged afterwards never is.
            "review" => done || told || !(payment.funds() || self.scenario.is_postpaid()),
            _ => false,
        };
        if !allowed {
            self.wrong(format!("1: {pk} ended as {state} {class}: {}", record.s("nt")));
        }
    }
}

impl Oracle {
    /// The payment provider is about to tell this of what it was asked for.
    pub fn news(&self, told: &PaymentSpec) {
        let mut inner = self.lock();
        let before = inner.deliveries.news.insert(told.id.clone(), told.clone());
        if before.is_some_and(|before| before != *told) {
            inner.wrong(format!("there: {} is told in two ways", told.id));
        }
    }

    /// A payment's event was answered with 2xx.
    pub fn payment_acknowledged(&self, payment: &PaymentSpec, status: u16, name: &str) {
        let mut inner = self.lock();
        let events: &Table = &inner.books.events;
        let pk = format!("E|stripe|{}", payment.id);
        if !Books::of(events, &pk).any(|(sk, _)| sk == "r") {
            inner.wrong(format!("1: {} was answered {status} {name} and there is no receipt", payment.id));
        }
        if !matches!((status, name), (202, "accepted") | (200, "duplicate")) {
            inner.wrong(format!("1: {} was answered {status} {name}", payment.id));
        }
        inner.deliveries.paid.insert(pk);
    }
}
