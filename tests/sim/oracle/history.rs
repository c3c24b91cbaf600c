//! History: what is inserted never changes, what may change changes only forwards.

use super::{Books, Inner, Item};
use crate::world::Tells;

/// An intent's states in their order.
const INTENT_STATES: [&str; 5] = ["pending", "submitted", "uncertain", "settled", "failed"];

impl Inner {
    /// An item that was there is different now.
    pub(super) fn changed(&self, table: &str, key: &(String, String), old: &Item, new: &Item) {
        let (pk, sk) = (key.0.as_str(), key.1.as_str());
        let name = format!("{pk} {sk}");
        match (table, pk.chars().next(), sk.chars().next()) {
            ("events", Some('E'), Some('o')) => self.operation_changed(&name, old, new),
            ("events", Some('E'), Some('d')) => {
                if new.n("n") <= old.n("n") {
                    self.wrong(format!("5: the delivery count {name} went back"));
                }
            }
            ("events", Some('C'), _) => {
                if new.n("mi") <= old.n("mi") {
                    self.wrong(format!("1: the cursor {name} went back"));
                }
                self.cursor_passed(pk, old.n("mi"), new.n("mi"));
            }
            // The switches, what a reconciliation run did so far, and its cases: each by revisions or to an end.
            ("events", Some('S'), _) if new.n("rv") == old.n("rv") + 1 => {}
            ("events", Some('O'), _) if new.s("ev") != old.s("ev") => {}
            ("events", Some('I'), _) => {
                self.intent_changed(&name, old, new);
                self.settled_there(&name, new);
            }
            ("events", Some('Q'), _) if pk.starts_with("Q|recon|") || pk.starts_with("Q|case|") => {}
            ("jobs", Some('P'), _) => {
                self.tell(&format!("progress {name} is {}", new.n("sq")));
                if new.n("sq") <= old.n("sq") {
                    self.wrong(format!("7: progress {name} went from {} to {}", old.n("sq"), new.n("sq")));
                }
            }
            ("balances", ..) => {
                if new.n("rev") != old.n("rev") + 1 || new.n("seq") < old.n("seq") {
                    self.wrong(format!("4: balance {name} was not changed by one revision"));
                }
                self.fell(pk, old, new);
                let held = (new.n("av"), new.n("he"), new.n("seq"));
                self.tell(&format!("balance {pk}: available {} held {} sequence {}", held.0, held.1, held.2));
            }
            _ => self.wrong(format!("5: {table} {name} was changed")),
        }
    }

    /// What leaves is frozen, and where it stands goes forward, one revision at a time.
    fn intent_changed(&self, name: &str, old: &Item, new: &Item) {
        let place = |item: &Item| INTENT_STATES.iter().position(|state| *state == item.s("st"));
        let last = |item: &Item| matches!(item.s("st"), "settled" | "failed");
        if place(new) < place(old) || (last(old) && new.s("st") != old.s("st")) {
            self.wrong(format!("5: {name} went from {} to {}", old.s("st"), new.s("st")));
        }
        if new.n("rv") != old.n("rv") + 1 || new.n("at") < old.n("at") {
            self.wrong(format!("2: {name} went from revision {} to {}", old.n("rv"), new.n("rv")));
        }
        let frozen = ["k", "by", "to", "rq", "cl", "gr", "hs", "cr"];
        if frozen.iter().any(|member| new.0.get(*member) != old.0.get(*member)) {
            self.wrong(format!("6: what {name} sends was changed"));
        }
    }

    fn operation_changed(&self, name: &str, old: &Item, new: &Item) {
        let was = old.s("st");
        if matches!(was, "noop" | "closed") {
            self.wrong(format!("5: {name} was final ({was}) and is {} now", new.s("st")));
        }
        if new.n("rv") != old.n("rv") + 1 {
            self.wrong(format!("2: {name} went from revision {} to {}", old.n("rv"), new.n("rv")));
        }
        if new.n("g") < old.n("g") || new.n("lf") < old.n("lf") {
            self.wrong(format!("2: a stale generation wrote {name}"));
        }
        // What a person tries again is on record in the same transaction; a provider's own redelivery has its note.
        let asked = was == "review" && new.s("st") == "wait" && new.s("nt") != "the provider delivered the event again";
        if asked {
            let mut retries = self.retries.borrow_mut();
            *retries += 1;
            // A decision is on one operation; a replay's item names all operations of its event.
            let decided = |((pk, sk), item): (&(String, String), &Item)| match (
                pk.starts_with("Q|review|"),
                sk.starts_with("p|"),
            ) {
                (true, _) => 1,
                (_, true) => item.0["op"]["L"].as_array().map_or(0, Vec::len),
                _ => 0,
            };
            let decisions: usize = self.books.events.iter().map(decided).sum();
            if decisions + self.cases_applied() < *retries {
                self.wrong(format!("9: {name} was taken out of review, and nobody's decision is on record"));
            }
        }
        // One resend may overtake the consumer's own record of its try; three in a row are no accident.
        let resends = new.n("g") - new.n("lf");
        if self.scenario.is_quiet() && new.s("st") == "wait" && resends >= 3 {
            self.wrong(format!("1: {name} was sent three times and not tried, though nothing was wrong"));
        }
        self.operation(name, new);
    }

    /// A new item.
    pub(super) fn inserted(&self, table: &str, key: &(String, String), new: &Item) {
        let (pk, sk) = (key.0.as_str(), key.1.as_str());
        let name = format!("{pk} {sk}");
        match (table, pk.chars().next(), sk.chars().next()) {
            ("events", Some('E'), Some('o')) => self.operation(&name, new),
            ("events", Some('E'), Some('r')) => {
                self.tell(&format!("receipt {pk} {}", new.s("em")));
                self.receipt(pk, new);
            }
            ("events", Some('E'), Some('x')) => {
                self.tell(&format!("conflict {pk}"));
                if !new.has("rs") || !new.has("rt") {
                    self.wrong(format!("6: conflict {name} is on nobody's list"));
                }
            }
            ("jobs", Some('J'), Some('t')) => self.transition(pk, sk, new),
            ("jobs", Some('J'), Some('h')) => {
                self.tell(&format!("{pk} extended by {}", new.n("hd")));
                let ended = self.books.jobs.contains_key(&(pk.to_owned(), "t|000001".to_owned()));
                if ended || self.books.ledger.contains_key(&(pk.to_owned(), "c".to_owned())) {
                    self.wrong(format!("4: {pk} was extended after its end"));
                }
            }
            ("jobs", Some('J'), Some('j')) => self.tell(&format!("job {pk} holds {}", new.n("hd"))),
            ("ledger", ..) => {
                let (kind, amount, released) = (new.s("kd"), new.n("am"), new.n("rl"));
                self.tell(&format!("{name}: {kind} {amount}, released {released}, by {}", new.s("by")));
                self.entry(pk, sk, new);
            }
            _ => {}
        }
    }

    /// An operation's record as it stands now: whoever waits has a due time, whoever needs a person is listed.
    fn operation(&self, name: &str, item: &Item) {
        let state = item.s("st");
        self.tell(&format!("{name}: {state} {} g{} a{} {}", item.s("cl"), item.n("g"), item.n("at"), item.s("nt")));
        if state == "wait" && !(item.has("due") && item.has("ds")) {
            self.wrong(format!("1: {name} waits and is never due"));
        }
        if state == "review" && !(item.has("rs") && item.has("rt")) {
            self.wrong(format!("1: {name} is in review on nobody's list"));
        }
        if item.n("lf") > item.n("g") {
            self.wrong(format!("1: {name} lives from a generation that does not exist yet"));
        }
    }

    /// A receipt says what was sent, and plans what the provider's profile plans.
    fn receipt(&self, pk: &str, item: &Item) {
        let plan: Vec<&str> =
            item.0["pl"]["L"].as_array().into_iter().flatten().filter_map(|name| name["S"].as_str()).collect();
        if pk.starts_with("E|own|") {
            let tells = self.scenario.knobs.tells;
            if plan != [format!("{}|forward", tells.item())] || tells == Tells::Nobody {
                self.wrong(format!("told: the receipt of {pk} plans {plan:?}"));
            }
            return;
        }
        if let Some(payment) = self.payment(pk) {
            if plan != [payment.operation()] {
                self.wrong(format!("1: the receipt of {pk} plans {plan:?} {}", item.s("em")));
            }
            return;
        }
        let id = pk.strip_prefix("E|acme|").unwrap_or_default();
        let Some(event) = self.scenario.event(id) else {
            return self.wrong(format!("1: a receipt of {id}, which nobody sent"));
        };
        let empty = item.s("em");
        let may_be_empty = event.wrong_model && empty == "mismatch";
        if plan != event.operations() && !(may_be_empty && plan.is_empty()) {
            self.wrong(format!("1: the receipt of {id} plans {plan:?} {empty}"));
        }
    }

    /// A terminal transition: in order, once per event, and what its event says.
    fn transition(&self, pk: &str, sk: &str, item: &Item) {
        let by = item.s("by");
        self.tell(&format!("{pk} {sk}: {} by {by}", item.s("oc")));
        let all: Vec<_> = Books::of(&self.books.jobs, pk).filter(|(sk, _)| sk.starts_with("t|")).collect();
        let in_order = all.iter().enumerate().all(|(place, (sk, _))| *sk == format!("t|{:06}", place + 1));
        if !in_order {
            self.wrong(format!("2: the transitions of {pk} have a gap"));
        }
        if all.iter().filter(|(_, other)| other.s("by") == by).count() > 1 {
            self.wrong(format!("2: {by} made two transitions of {pk}"));
        }
        let Some(event) = by.strip_prefix("acme/").and_then(|id| self.scenario.event(id)) else {
            if !by.starts_with("control/cancel.") {
                self.wrong(format!("2: a transition of {pk} by {by}, which nobody sent"));
            }
            return;
        };
        if event.outcome() != Some(item.s("oc")) || event.usage != item.usage() || event.wrong_model {
            self.wrong(format!("7: {pk} {sk} does not say what {by} says"));
        }
        let provisional = self.scenario.jobs[event.job].model == "provisional-1";
        if all.len() > 1 && !provisional {
            self.wrong(format!("2: {pk} ended twice"));
        }
    }

    /// A cursor passed these minutes: every operation received in them must have an effect or a record.
    fn cursor_passed(&self, pk: &str, from: i64, to: i64) {
        let Some(shard) = pk.strip_prefix("C|relay|") else { return };
        for ((pk, sk), item) in self.books.events.iter().filter(|((_, sk), _)| sk == "r") {
            let Some((minute, of_shard)) = item.s("rb").split_once('.') else { continue };
            let minute: i64 = minute.parse().unwrap_or(0);
            if sk == "r" && of_shard == shard && (from..to).contains(&minute) && !item.has("em") {
                for operation in self.open_operations(pk) {
                    if !self.has_record(pk, operation) {
                        self.wrong(format!("1: the relay's cursor passed {pk} {operation}, which has no record"));
                    }
                }
            }
        }
    }

    pub(super) fn tell(&self, line: &str) {
        self.net.tell(|| format!("    = {line}"));
    }
}
