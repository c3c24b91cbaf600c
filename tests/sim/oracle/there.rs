//! Effects outside: what is settled here exists there, and what exists there is settled here or a person's. That there is at
//! most one, that a key never changes and that its request is always the same, the destination itself watches.

use std::collections::BTreeSet;

use super::money::sha256;
use super::{Inner, Item};

impl Inner {
    /// An intent as it stands: settled only where the effect exists.
    pub(super) fn settled_there(&self, name: &str, intent: &Item) {
        let Some(there) = self.there.as_ref().filter(|_| intent.s("to").starts_with("http:")) else { return };
        let exists = there.effects(&sha256(intent.s("k"))) > 0;
        if intent.s("st") == "settled" && !exists {
            self.wrong(format!("there: {name} is settled here, and there is nothing there"));
        }
        if intent.s("st") == "failed" && exists {
            self.wrong(format!("there: {name} failed here, and it exists there"));
        }
        if intent.s("st") == "pending" && exists {
            self.wrong(format!("there: {name} exists there before it was submitted here"));
        }
    }

    /// At rest.
    pub(super) fn arrived_there(&self) {
        let Some(there) = &self.there else { return };
        let plan = &self.scenario.plan;
        if let Some(by_hand) = self.scenario.made.filter(|_| plan.fixed.is_empty() && plan.rate == 0) {
            let signed = |made: crate::till::Made| if made.of.is_some() { -made.minor } else { made.minor };
            let mut made: Vec<i64> = there.made().into_iter().map(signed).collect();
            made.sort_unstable();
            if made != by_hand {
                self.wrong(format!("4: in the end {made:?} cents moved, and by hand {by_hand:?}"));
            }
        }
        let mut known = BTreeSet::new();
        for ((pk, _), receipt) in self.books.events.iter().filter(|((pk, sk), _)| pk.starts_with("E|own|") && sk == "r")
        {
            let intent = self.intent_of(pk);
            let record = self.record(pk, "forward");
            let persons = record.is_some_and(|record| record.s("st") == "review" || record.s("cl") == "dismissed");
            // Where nothing is held there is nothing to give up.
            let nothing = record.is_some_and(|record| record.s("st") == "noop") && self.holds_nothing(pk);
            let state = intent.map_or("", |intent| intent.s("st"));
            if let Some(intent) = intent {
                self.settled_there(pk, intent);
                known.insert(sha256(intent.s("k")));
            }
            if state != "settled" && !persons && !nothing {
                self.wrong(format!("there: {pk} ({}) is {state:?} in the end, and nobody's", receipt.s("ty")));
            }
        }
        for key in there.keys().into_iter().filter(|key| !known.contains(key)) {
            self.wrong(format!("there: {key} was sent, and no intent has this key"));
        }
    }
}
