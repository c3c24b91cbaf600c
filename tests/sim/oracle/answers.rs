//! Answers: what was told to a provider or an operator must be true, then and for good.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Inner, Oracle};
use crate::scenario::{EventSpec, JobSpec, PaymentSpec, Request, What};

/// What is known of the deliveries of each event.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    begun: BTreeMap<String, u32>,
    /// Acknowledged events.
    pub(super) acknowledged: BTreeSet<String>,
    /// Partitions of acknowledged payment events.
    pub(super) paid: BTreeSet<String>,
    /// What the payment provider told of the charges and refunds that exist there, by event id.
    pub(super) news: BTreeMap<String, PaymentSpec>,
    /// Jobs whose submission was answered.
    submitted: BTreeSet<String>,
    /// Events whose first delivery began after their job's submission was answered.
    after_submission: BTreeSet<String>,
    /// Requests that were answered as done: kind and reference.
    done: BTreeSet<(String, String)>,
}

/// One delivery that is under way.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// No other delivery of this event was ever begun.
    pub first: bool,
}

impl Oracle {
    /// A delivery begins.
    pub fn begins(&self, event: &EventSpec, job: &JobSpec) -> Delivery {
        let mut inner = self.lock();
        let begun = inner.deliveries.begun.entry(event.id.clone()).or_default();
        *begun += 1;
        let first = *begun == 1;
        if first && inner.deliveries.submitted.contains(&job.job) {
            inner.deliveries.after_submission.insert(event.id.clone());
        }
        Delivery { first }
    }

    /// A delivery was answered with 2xx.
    pub fn acknowledged(&self, event: &EventSpec, delivery: Delivery, status: u16, name: &str) {
        let mut inner = self.lock();
        let id = &event.id;
        let key = |sk: &str| (format!("E|acme|{id}"), sk.to_owned());
        if !inner.books.events.contains_key(&key("r")) {
            inner.wrong(format!("1: {id} was answered {status} {name} and there is no receipt"));
        }
        let original = inner.scenario.event(id).cloned();
        if original.as_ref() != Some(event) {
            let pk = format!("E|acme|{id}");
            let recorded = super::Books::of(&inner.books.events, &pk).any(|(sk, _)| sk.starts_with("x|"));
            if name != "quarantined" || !recorded {
                inner.wrong(format!("6: other content under {id} was answered {status} {name}"));
            }
            return;
        }
        inner.deliveries.acknowledged.insert(id.clone());
        let mismatch = event.wrong_model && inner.deliveries.after_submission.contains(id);
        let alone = delivery.first && inner.deliveries.begun.get(id) == Some(&1);
        match (status, name) {
            (202, "accepted") if mismatch => inner.wrong(format!("6: {id} contradicts its job and was accepted")),
            (202, "accepted") => {}
            (200, "quarantined") if event.wrong_model => {}
            (200, "duplicate") if alone => {
                inner.wrong(format!("1: the first delivery of {id} was answered as a duplicate"));
            }
            (200, "duplicate") => {}
            _ => inner.wrong(format!("1: {id} was answered {status} {name}")),
        }
    }

    /// True when the event was answered with 2xx before.
    pub fn is_acknowledged(&self, id: &str) -> bool {
        self.lock().deliveries.acknowledged.contains(id)
    }

    /// A submission was answered.
    pub fn submitted(&self, job: &JobSpec, status: u16) {
        let mut inner = self.lock();
        let stands = inner.books.jobs.contains_key(&(format!("J|t1|{}", job.job), "j".to_owned()));
        match status {
            200 | 201 => {
                if !stands {
                    inner.wrong(format!("1: {} was answered {status} and does not exist", job.job));
                }
                inner.deliveries.submitted.insert(job.job.clone());
            }
            402 if !stands => {}
            _ => inner.wrong(format!("6: the submission of {} was answered {status}", job.job)),
        }
    }

    /// True once a wallet exists.
    pub fn has_wallet(&self, wallet: &str) -> bool {
        self.lock().books.balances.contains_key(&(format!("W|t1|{wallet}"), String::new()))
    }

    /// The creation of a wallet was answered.
    pub fn created(&self, wallet: &str, status: u16) {
        let inner = self.lock();
        let stands = inner.books.balances.contains_key(&(format!("W|t1|{wallet}"), String::new()));
        if !matches!(status, 200 | 201) || !stands {
            inner.wrong(format!("1: wallet {wallet} was answered {status}, and stands or falls otherwise"));
        }
    }

    /// A funding was answered.
    pub fn funded(&self, wallet: &str, reference: &str, status: u16) {
        let inner = self.lock();
        let key = (format!("W|t1|{wallet}"), format!("f|{reference}"));
        if !matches!(status, 200 | 201) || !inner.books.ledger.contains_key(&key) {
            inner.wrong(format!("1: funding {reference} was answered {status}, and stands or falls otherwise"));
        }
    }

    /// The events that were acknowledged so far, acme's and Stripe's.
    pub fn acknowledged_events(&self) -> Vec<String> {
        let inner = self.lock();
        let acme = inner.deliveries.acknowledged.iter().map(|id| format!("acme/{id}"));
        let paid = inner.deliveries.paid.iter().filter_map(|pk| pk.strip_prefix("E|stripe|"));
        acme.chain(paid.map(|id| format!("stripe/{id}"))).collect()
    }

    /// A decision on a review was answered.
    pub fn decided(&self, review: &str, status: u16) {
        if !matches!(status, 200 | 404 | 409) {
            self.lock().wrong(format!("9: the retry of {review} was answered {status}"));
        }
    }

    /// A replay was answered: then it and each of its events are on record, with who asked and why.
    pub fn replayed(&self, reference: &str, status: u16, answer: &Value) {
        let inner = self.lock();
        if status != 200 {
            return inner.wrong(format!("9: the replay {reference} was answered {status}"));
        }
        let told = |pk: String, sk: String| {
            let item = inner.books.events.get(&(pk, sk));
            item.is_some_and(|item| item.has("ac") && item.s("rs") == "simulated")
        };
        if !told(format!("Q|replay|{reference}"), "q|000000".to_owned()) {
            inner.wrong(format!("9: the replay {reference} was answered and is not on record"));
        }
        for event in answer["events"].as_array().into_iter().flatten() {
            let (provider, id) = event["event"].as_str().and_then(|e| e.split_once('/')).unwrap_or_default();
            if event["operations"].as_array().is_some_and(|all| !all.is_empty())
                && !told(format!("E|{provider}|{id}"), format!("p|{reference}"))
            {
                inner.wrong(format!("9: the replay {reference} of {id} is not on record"));
            }
        }
    }

    /// The reconciler opened a case. Whatever it says of money or of lost events is a fault of the path.
    pub fn case(&self, case: &Value) {
        let class = case["class"].as_str().unwrap_or_default();
        let harmless = matches!(class, "old-review" | "old-conflict" | "no-usage" | "unsettled" | "hold-expired");
        let found = matches!(class, "not-dispatched" | "stale-record"); // a purge or a fault left it; it is retried
        if !harmless && !found {
            self.lock().wrong(format!("4: the reconciler found {class}: {}", case["evidence"]));
        }
    }

    /// An operator's request was answered.
    pub fn asked(&self, request: &Request, job: &JobSpec, status: u16) {
        let mut inner = self.lock();
        let pk = format!("J|t1|{}", job.job);
        let reference = &request.reference;
        let ledger = |sk: String| inner.books.ledger.contains_key(&(pk.clone(), sk));
        let stands = match request.action {
            "adjust" => ledger(format!("a|{reference}")),
            "reverse" => ledger(format!("v|{reference}")),
            "extend" => super::Books::of(&inner.books.jobs, &pk).any(|(_, item)| item.s("rn") == reference),
            _ => super::Books::of(&inner.books.jobs, &pk).any(|(_, item)| item.s("by").starts_with("control/cancel.")),
        };
        match status {
            200 | 201 if !stands => inner.wrong(format!("1: {} {reference} was answered {status}", request.action)),
            200 | 201 => {
                inner.deliveries.done.insert((request.action.to_owned(), reference.clone()));
            }
            402 | 404 | 409 => {}
            _ => inner.wrong(format!("9: {} {reference} was answered {status}", request.action)),
        }
    }
}

impl Inner {
    /// True when an operator asks this under this reference.
    pub(super) fn asked(&self, kind: &str, reference: &str) -> bool {
        self.scenario.actions.iter().any(|action| match &action.what {
            What::Ask(request) => request.action == kind && request.reference == reference,
            _ => false,
        })
    }
}
