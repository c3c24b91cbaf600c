//! The model's rules of an event: who decides a job's outcome, what a settlement, a correction and an
//! extension do. Written from the table "Job and settlement rules"; nothing of the project is imported.

use super::model::{Adjust, Amount, Close, Closing, Model, Outcome, Overage, Says, State, Work};

impl Model {
    /// Does one operation of one event; its own effect comes before every limit.
    pub fn work(&mut self, event_id: &str, work: Work) {
        let event = self.events[event_id].clone();
        let state = if self.has_own(event_id, work) {
            State::Done
        } else if self.now_ms - event.sent_ms > self.oldest_ms {
            State::Review
        } else if !self.jobs.contains_key(&event.job) {
            State::Wait
        } else {
            match (work, &event.says) {
                (Work::Complete, Says::Ended { outcome, tokens }) => {
                    self.complete(&event.job, event_id, *outcome, *tokens)
                }
                (Work::Settle, Says::Ended { outcome, tokens }) => self.settle(&event.job, event_id, *outcome, *tokens),
                (Work::Adjust, Says::Corrected { reference, order, tokens }) => {
                    self.correct(&event.job, event_id, reference, *order, *tokens)
                }
                (Work::Extend, Says::Extended { reference, amount }) => {
                    self.extend_by_event(&event.job, event_id, reference, *amount)
                }
                _ => unreachable!("an event leads to its own works only"),
            }
        };
        self.states.insert((event_id.to_owned(), work), state);
    }

    /// True when this event's own effect exists.
    pub fn has_own(&self, event: &str, work: Work) -> bool {
        let Some(job) = self.events.get(event).and_then(|e| self.jobs.get(&e.job)) else { return false };
        let fate = &job.fate;
        match work {
            Work::Complete => fate.transitions.iter().any(|(_, _, by)| by == event),
            Work::Settle => fate.settled_by(event),
            Work::Adjust => fate.adjusts.values().any(|adjust| adjust.by == event),
            Work::Extend => fate.extensions.values().any(|(_, by)| by == event),
        }
    }

    /// The version that the event has or may write; else what it comes to.
    fn version(&self, id: &str, event: &str, outcome: Outcome, tokens: Option<Amount>) -> Result<usize, State> {
        let job = &self.jobs[id];
        let all = &job.fate.transitions;
        let Some((last, last_tokens, _)) = all.last() else { return Ok(1) };
        if let Some(place) = all.iter().position(|(_, _, by)| by == event) {
            return if place + 1 == all.len() { Ok(place + 1) } else { Err(State::Noop) };
        }
        let billable = job.terms.partial && tokens.is_some_and(|tokens| tokens > 0) && outcome != Outcome::Success;
        Err(match (last, outcome) {
            (Outcome::Success, Outcome::Success) if *last_tokens == tokens => State::Noop,
            (Outcome::Success, Outcome::Success) => State::Review,
            (_, _) if billable && (*last == Outcome::Success || *last_tokens != tokens) => State::Review,
            (Outcome::Failure, Outcome::Success) if job.terms.provisional => return Ok(all.len() + 1),
            (_, Outcome::Success) => State::Review,
            _ => State::Noop,
        })
    }

    fn complete(&mut self, id: &str, event: &str, outcome: Outcome, tokens: Option<Amount>) -> State {
        match self.version(id, event, outcome, tokens) {
            Ok(_) => {
                self.transition(id, event, outcome, tokens);
                State::Done
            }
            // A contested outcome is one review, and the settlement has it.
            Err(_) => State::Noop,
        }
    }

    fn transition(&mut self, id: &str, event: &str, outcome: Outcome, tokens: Option<Amount>) {
        let fate = self.fate(id);
        if !fate.transitions.iter().any(|(_, _, by)| by == event) {
            fate.transitions.push((outcome, tokens, event.to_owned()));
        }
    }

    fn settle(&mut self, id: &str, event: &str, outcome: Outcome, tokens: Option<Amount>) -> State {
        let version = match self.version(id, event, outcome, tokens) {
            Ok(version) => version,
            Err(state) => return state,
        };
        let job = &self.jobs[id];
        let (terms, wallet, reserved) = (job.terms.clone(), job.wallet.clone(), job.fate.reserved());
        let charge = match (outcome, tokens) {
            (Outcome::Success, None) => return State::Review, // no usage is not zero usage
            (_, Some(tokens)) if outcome == Outcome::Success || terms.partial => terms.charge(tokens),
            _ => 0,
        };
        let by = event.to_owned();
        if job.fate.close.is_some() {
            if charge == 0 && outcome != Outcome::Success {
                return State::Noop;
            }
            if terms.overage == Overage::Review && charge > reserved {
                return State::Review;
            }
            let charge = terms.capped(charge, reserved);
            if !self.wallets[&wallet].covers(charge) {
                return State::Review;
            }
            self.transition(id, event, outcome, tokens);
            self.fate(id).late.insert(version, (charge, by));
            self.entry(&wallet, -charge);
            return State::Done;
        }
        if charge == 0 && outcome != Outcome::Success {
            self.transition(id, event, outcome, tokens);
            self.release(id, Closing::Release, Some(version), event);
            return State::Done;
        }
        let captured = terms.capped(charge, reserved);
        let above = (captured - reserved).max(0);
        if above > 0 && (terms.overage == Overage::Review || !self.wallets[&wallet].covers(above)) {
            return State::Review;
        }
        self.transition(id, event, outcome, tokens);
        let released = reserved - captured.min(reserved);
        let close = Close { kind: Closing::Capture, captured, released, version: Some(version), by };
        self.fate(id).close = Some(close);
        let balance = self.wallet(&wallet);
        balance.held -= reserved;
        balance.available += reserved;
        self.entry(&wallet, -captured);
        State::Done
    }

    fn correct(&mut self, id: &str, event: &str, reference: &str, order: i64, tokens: Amount) -> State {
        let job = &self.jobs[id];
        let fate = &job.fate;
        if let Some(stands) = fate.adjusts.get(reference) {
            return if stands.tokens == Some(tokens) { State::Noop } else { State::Review };
        }
        match fate.adjusts.values().filter_map(|adjust| adjust.order).max() {
            Some(newest) if newest > order => return State::Noop,
            Some(newest) if newest == order => return State::Review,
            _ => {}
        }
        if !fate.has_capture() {
            let last = fate.transitions.last().map(|(outcome, _, _)| *outcome);
            let may_come = fate.close.is_none() || last.is_none_or(|outcome| outcome == Outcome::Success);
            return if may_come { State::Wait } else { State::Review };
        }
        // A person's own adjustments stand beside the provider's figures.
        let by_provider = fate.adjusts.values().filter(|adjust| adjust.tokens.is_some());
        let known: Amount = fate.charged() + by_provider.map(|adjust| adjust.amount).sum::<Amount>();
        let amount = job.terms.capped(job.terms.charge(tokens), fate.reserved()) - known;
        let too_low = fate.captured() + amount < fate.reversed();
        if too_low || (amount > 0 && !self.wallets[&job.wallet].covers(amount)) {
            return State::Review;
        }
        let adjust = Adjust { amount, order: Some(order), tokens: Some(tokens), by: event.to_owned() };
        self.post_adjust(id, reference, adjust);
        State::Done
    }

    pub(super) fn post_adjust(&mut self, id: &str, reference: &str, adjust: Adjust) {
        let (wallet, amount) = (self.jobs[id].wallet.clone(), adjust.amount);
        self.fate(id).adjusts.insert(reference.to_owned(), adjust);
        self.entry(&wallet, -amount);
    }

    fn extend_by_event(&mut self, id: &str, event: &str, reference: &str, amount: Amount) -> State {
        if let Some((stands, _)) = self.jobs[id].fate.extensions.get(reference) {
            return if *stands == amount { State::Noop } else { State::Review };
        }
        self.try_extend(id, reference, amount, event).map_or(State::Review, |()| State::Done)
    }

    /// The error says whether only funds were short.
    pub(super) fn try_extend(&mut self, id: &str, reference: &str, amount: Amount, by: &str) -> Result<(), bool> {
        let expires_ms = self.now_ms + self.life_ms;
        let job = self.jobs.get_mut(id).ok_or(false)?;
        let open = job.fate.close.is_none() && job.fate.transitions.is_empty();
        if !job.terms.extendable || !open {
            return Err(false);
        }
        let wallet = self.wallets.get_mut(&job.wallet).ok_or(false)?;
        if !wallet.covers(amount) {
            return Err(true);
        }
        wallet.available -= amount;
        wallet.held += amount;
        job.fate.extensions.insert(reference.to_owned(), (amount, by.to_owned()));
        job.expires_ms = job.expires_ms.max(expires_ms);
        Ok(())
    }
}
