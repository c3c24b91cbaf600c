//! What the money rules say must happen: a model of one tenant's wallets and jobs, written from the rules
//! alone. It imports nothing of the project; every amount is a plain integer of micros.
//!
//! The model is sequential. Real deliveries are not: [`Model::explain`] asks whether ANY order of the
//! operations that were delivered leads to what the stores hold, and nothing else is accepted.

use std::collections::{BTreeMap, BTreeSet};

/// Micros of a major unit.
pub type Amount = i128;
/// Event id, job id, wallet id or reference.
pub type Name = String;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Success,
    Failure,
    Canceled,
}

/// A charge above the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overage {
    Review,
    Cap,
    Available,
}

/// What a submission pins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub overage: Overage,
    pub partial: bool,
    pub provisional: bool,
    pub extendable: bool,
    /// Price of one token in 10^-9 major units.
    pub nano: Amount,
}

/// How a hold was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closing {
    Capture,
    Release,
    Expire,
}

/// The one close of a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    pub kind: Closing,
    pub captured: Amount,
    pub released: Amount,
    pub version: Option<usize>,
    pub by: Name,
}

/// A correction; `order` and `tokens` only where the provider asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjust {
    pub amount: Amount,
    pub order: Option<i64>,
    pub tokens: Option<Amount>,
    pub by: Name,
}

/// What became of a job; this is what is compared with the stores.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fate {
    pub hold: Amount,
    /// Amount and asker by reference.
    pub extensions: BTreeMap<Name, (Amount, Name)>,
    /// In order of version.
    pub transitions: Vec<(Outcome, Option<Amount>, Name)>,
    pub close: Option<Close>,
    /// By version.
    pub late: BTreeMap<usize, (Amount, Name)>,
    pub adjusts: BTreeMap<Name, Adjust>,
    pub reverses: BTreeMap<Name, Amount>,
}

impl Fate {
    /// Hold and extensions.
    pub fn reserved(&self) -> Amount {
        self.hold + self.extensions.values().map(|(amount, _)| amount).sum::<Amount>()
    }

    /// Captures and corrections, before reversals.
    pub fn captured(&self) -> Amount {
        self.charged() + self.adjusts.values().map(|adjust| adjust.amount).sum::<Amount>()
    }

    pub(super) fn charged(&self) -> Amount {
        let late: Amount = self.late.values().map(|(amount, _)| amount).sum();
        self.close.as_ref().map_or(0, |close| close.captured) + late
    }

    /// Reversals.
    pub fn reversed(&self) -> Amount {
        self.reverses.values().sum()
    }

    pub(super) fn has_capture(&self) -> bool {
        self.close.as_ref().is_some_and(|close| close.kind == Closing::Capture) || !self.late.is_empty()
    }

    pub(super) fn settled_by(&self, event: &str) -> bool {
        self.close.iter().any(|close| close.by == event) || self.late.values().any(|(_, by)| by == event)
    }
}

/// A job: what it was submitted with, and what became of it.
#[derive(Debug, Clone)]
pub struct Job {
    pub wallet: Name,
    pub terms: Terms,
    pub expires_ms: i64,
    pub fate: Fate,
}

/// A wallet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wallet {
    pub available: Amount,
    pub held: Amount,
    pub credit: Amount,
    /// How many entries its chain has.
    pub sequence: usize,
    pub fundings: BTreeMap<Name, Amount>,
}

impl Wallet {
    pub(super) fn covers(&self, need: Amount) -> bool {
        self.available - need >= -self.credit
    }
}

/// What a provider's event asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    /// The run ended.
    Ended { outcome: Outcome, tokens: Option<Amount> },
    /// The usage was corrected.
    Corrected { reference: Name, order: i64, tokens: Amount },
    /// The run needs more.
    Extended { reference: Name, amount: Amount },
}

/// The work that an event leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    Complete,
    Settle,
    Adjust,
    Extend,
}

/// Where an event's work stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Done,
    Noop,
    Wait,
    Review,
}

/// An event as it was sent.
#[derive(Debug, Clone)]
pub struct Event {
    pub job: Name,
    pub says: Says,
    pub sent_ms: i64,
}

impl Event {
    /// The work it leads to.
    pub fn works(&self) -> &'static [Work] {
        match self.says {
            Says::Ended { .. } => &[Work::Complete, Work::Settle],
            Says::Corrected { .. } => &[Work::Adjust],
            Says::Extended { .. } => &[Work::Extend],
        }
    }
}

/// An order to one operation: event, work, and whether it may also not happen now.
pub type Pending = (Name, Work, bool);

/// One tenant.
#[derive(Debug, Clone)]
pub struct Model {
    pub now_ms: i64,
    /// How old an event may be and still act.
    pub oldest_ms: i64,
    /// How long a hold lives.
    pub life_ms: i64,
    pub jobs: BTreeMap<Name, Job>,
    pub wallets: BTreeMap<Name, Wallet>,
    pub events: BTreeMap<Name, Event>,
    pub states: BTreeMap<(Name, Work), State>,
}

/// Rounds half to even; both sides zero or more.
pub fn half_even(value: Amount, divisor: Amount) -> Amount {
    let (whole, twice) = (value / divisor, value % divisor * 2);
    whole + Amount::from(twice > divisor || (twice == divisor && whole % 2 == 1))
}

impl Terms {
    pub(super) fn charge(&self, tokens: Amount) -> Amount {
        half_even(tokens * self.nano, 1_000)
    }

    /// The most that a job may cost where the policy caps it at its hold.
    pub(super) fn capped(&self, charge: Amount, reserved: Amount) -> Amount {
        if self.overage == Overage::Cap { charge.min(reserved) } else { charge }
    }
}

impl Model {
    // --- what a caller asks for; the answer is the status code

    pub fn fund(&mut self, wallet: &str, reference: &str, amount: Amount) -> u16 {
        let Some(wallet) = self.wallets.get_mut(wallet) else { return 404 };
        match wallet.fundings.get(reference) {
            Some(stands) => return if *stands == amount { 200 } else { 409 },
            None => wallet.fundings.insert(reference.to_owned(), amount),
        };
        wallet.available += amount;
        wallet.sequence += 1;
        201
    }

    pub fn submit(&mut self, job: &str, wallet: &str, hold: Amount, terms: Terms) -> u16 {
        if let Some(stands) = self.jobs.get(job) {
            return if stands.fate.hold == hold && stands.wallet == wallet { 200 } else { 409 };
        }
        let Some(balance) = self.wallets.get_mut(wallet) else { return 404 };
        if !balance.covers(hold) {
            return 402;
        }
        balance.available -= hold;
        balance.held += hold;
        let fate = Fate { hold, ..Fate::default() };
        let expires_ms = self.now_ms + self.life_ms;
        self.jobs.insert(job.to_owned(), Job { wallet: wallet.to_owned(), terms, expires_ms, fate });
        201
    }

    pub fn cancel(&mut self, id: &str) -> u16 {
        let Some(job) = self.jobs.get_mut(id) else { return 404 };
        if !job.fate.transitions.is_empty() {
            return 409;
        }
        job.fate.transitions.push((Outcome::Canceled, None, "control".to_owned()));
        if job.fate.close.is_none() {
            self.release(id, Closing::Release, Some(1), "control");
        }
        201
    }

    pub fn extend(&mut self, id: &str, reference: &str, amount: Amount) -> u16 {
        match self.try_extend(id, reference, amount, "control") {
            Ok(()) => 201,
            Err(short) => {
                if short {
                    402
                } else {
                    409
                }
            }
        }
    }

    pub fn adjust(&mut self, id: &str, reference: &str, amount: Amount) -> u16 {
        let Some(job) = self.jobs.get(id) else { return 404 };
        if !job.fate.has_capture() || job.fate.captured() + amount < job.fate.reversed() {
            return 409;
        }
        if amount > 0 && !self.wallets[&job.wallet].covers(amount) {
            return 402;
        }
        let adjust = Adjust { amount, order: None, tokens: None, by: "control".to_owned() };
        self.post_adjust(id, reference, adjust);
        201
    }

    pub fn reverse(&mut self, id: &str, reference: &str, amount: Amount) -> u16 {
        let Some(job) = self.jobs.get_mut(id) else { return 404 };
        if job.fate.reversed() + amount > job.fate.captured() {
            return 409;
        }
        job.fate.reverses.insert(reference.to_owned(), amount);
        let wallet = job.wallet.clone();
        self.entry(&wallet, amount);
        201
    }

    // --- time

    /// Holds past their expiry are given back, unless their job ended: never before, and at the latest when
    /// the ten minutes of the clock in which they expire are over. In between, `seen` says.
    pub fn expire(&mut self, seen: &dyn Fn(&str) -> bool) {
        const LATEST_MS: i64 = 600_000;
        let over = self.now_ms.div_euclid(LATEST_MS);
        let due = |id: &str, job: &Job| {
            job.fate.close.is_none()
                && job.fate.transitions.is_empty()
                && self.now_ms > job.expires_ms
                && (job.expires_ms.div_euclid(LATEST_MS) < over || seen(id))
        };
        let ids: Vec<Name> = self.jobs.iter().filter(|(id, job)| due(id, job)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.release(&id, Closing::Expire, None, "expiry");
        }
    }

    // --- small steps

    pub(super) fn fate(&mut self, id: &str) -> &mut Fate {
        &mut self.jobs.get_mut(id).unwrap().fate
    }

    pub(super) fn wallet(&mut self, id: &str) -> &mut Wallet {
        self.wallets.get_mut(id).unwrap()
    }

    /// An entry of the chain that changes what the wallet has.
    pub(super) fn entry(&mut self, wallet: &str, change: Amount) {
        let wallet = self.wallet(wallet);
        wallet.available += change;
        wallet.sequence += 1;
    }

    /// Gives the whole hold back; no entry of the chain.
    pub(super) fn release(&mut self, id: &str, kind: Closing, version: Option<usize>, by: &str) {
        let job = self.jobs.get_mut(id).unwrap();
        let released = job.fate.reserved();
        job.fate.close = Some(Close { kind, captured: 0, released, version, by: by.to_owned() });
        let wallet = job.wallet.clone();
        let wallet = self.wallet(&wallet);
        wallet.held -= released;
        wallet.available += released;
    }

    // --- the search

    /// The model after `pending` in any order that leads to what was seen; an operation that may also not
    /// happen now is tried both ways.
    ///
    /// Each operation's outcome is final for the step, so an order is given up as soon as an operation
    /// comes out otherwise than was seen. What stands after a set of operations that all came out as seen
    /// does not depend on their order: each set is visited once.
    pub fn explain(self, pending: &[Pending], seen: &dyn Seen) -> Option<Self> {
        let mut visited = BTreeSet::new();
        self.search(pending, 0, seen, &mut visited)
    }

    /// The same jobs and wallets: all that the outcome of another operation depends on.
    fn stands_like(&self, other: &Self) -> bool {
        let fates = self.jobs.values().map(|job| &job.fate);
        self.jobs.len() == other.jobs.len()
            && fates.eq(other.jobs.values().map(|job| &job.fate))
            && self.wallets == other.wallets
    }

    fn search(self, pending: &[Pending], done: u64, seen: &dyn Seen, visited: &mut BTreeSet<u64>) -> Option<Self> {
        if !visited.insert(done) {
            return None;
        }
        let open = |place: usize| done >> place & 1 == 0;
        if (0..pending.len()).all(|place| pending[place].2 || !open(place)) && seen.is(&self) {
            return Some(self);
        }
        let mut ways = Vec::new();
        for place in (0..pending.len()).filter(|place| open(*place)) {
            let (event, work, _) = &pending[place];
            let mut next = self.clone();
            next.work(event, *work);
            if !seen.allows(&next, event, *work) {
                continue;
            }
            if next.stands_like(&self) {
                // It came out as seen and moved nothing: wherever else it stood in an order, it could stand here.
                return next.search(pending, done | 1 << place, seen, visited);
            }
            ways.push((next, done | 1 << place));
        }
        ways.into_iter().find_map(|(next, done)| next.search(pending, done, seen, visited))
    }
}

/// What was seen in the stores after a step.
pub trait Seen {
    /// The model is exactly that.
    fn is(&self, model: &Model) -> bool;
    /// The model can still become that, after this operation.
    fn allows(&self, model: &Model, event: &str, work: Work) -> bool;
}

impl Fate {
    /// True when more effects could turn this into `seen`: history is only added to.
    pub fn leads_to(&self, seen: &Self) -> bool {
        fn within<K: Ord, V: PartialEq>(part: &BTreeMap<K, V>, whole: &BTreeMap<K, V>) -> bool {
            part.iter().all(|(key, value)| whole.get(key) == Some(value))
        }
        seen.transitions.starts_with(&self.transitions)
            && (self.close.is_none() || self.close == seen.close)
            && within(&self.extensions, &seen.extensions)
            && within(&self.late, &seen.late)
            && within(&self.adjusts, &seen.adjusts)
    }
}
