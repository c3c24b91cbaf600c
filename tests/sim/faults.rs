//! The faults that a call can meet, and the plans that say which call meets which.

use std::fmt;

use crate::net::dice;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// No connection.
    Refused,
    /// The connection breaks before the service applies anything.
    Reset,
    /// The service is asked too much.
    Throttled,
    /// Another transaction holds the item.
    Conflict,
    /// A fault inside the service; nothing is applied.
    Internal,
    /// A fault inside the service; it is applied all the same.
    InternalApplied,
    /// Applied; the answer never arrives.
    LostReply,
    /// Never applied, never answered.
    Silence,
    /// Applied long after the caller gave up.
    AppliedLate,
    /// Arrives twice, the second time later.
    Twice,
    /// The sandbox dies before it sends.
    KilledBefore,
    /// The sandbox dies while the call is on its way.
    KilledInFlight,
    /// The sandbox dies before it reads the answer.
    KilledAfter,
    /// An index that does not show the latest writes.
    StaleIndex,
    /// A destination works on it, and says so: 409.
    InProgress,
    /// A destination fails, before or after the effect, and repeats that under the key.
    StoredError,
    /// A destination does it, and answers with what nobody can read.
    Garbage,
    /// A destination takes no connections for a day.
    Down,
    /// A payment provider declines, and stays with that.
    Declined,
}

impl Kind {
    /// Every kind that a call of AWS meets.
    pub const ALL: [Self; 14] = [
        Self::Refused,
        Self::Reset,
        Self::Throttled,
        Self::Conflict,
        Self::Internal,
        Self::InternalApplied,
        Self::LostReply,
        Self::Silence,
        Self::AppliedLate,
        Self::Twice,
        Self::KilledBefore,
        Self::KilledInFlight,
        Self::KilledAfter,
        Self::StaleIndex,
    ];

    /// Those of destinations outside, beside most of the others.
    pub const THERE: [Self; 5] = [Self::InProgress, Self::StoredError, Self::Garbage, Self::Down, Self::Declined];

    /// The name in commands and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Throttled => "throttled",
            Self::Conflict => "conflict",
            Self::Internal => "internal",
            Self::InternalApplied => "internal-applied",
            Self::LostReply => "lost-reply",
            Self::Silence => "silence",
            Self::AppliedLate => "applied-late",
            Self::Twice => "twice",
            Self::KilledBefore => "killed-before",
            Self::KilledInFlight => "killed-in-flight",
            Self::KilledAfter => "killed-after",
            Self::StaleIndex => "stale-index",
            Self::InProgress => "in-progress",
            Self::StoredError => "stored-error",
            Self::Garbage => "garbage",
            Self::Down => "down",
            Self::Declined => "declined",
        }
    }

    /// True when this kind can happen at a call site such as `billing TransactWriteItems balances+ledger`.
    pub fn fits(self, site: &str) -> bool {
        if let Some((method, name)) = outside(site) {
            return self.fits_outside(method, name);
        }
        let is = |operation: &str| site.contains(operation);
        let writes = is("PutItem") || is("UpdateItem") || is("TransactWriteItems");
        match self {
            Self::Conflict => writes,
            Self::AppliedLate | Self::Twice | Self::InternalApplied => writes || is("SendMessage"),
            Self::StaleIndex => is("/by-bucket") || is("/by-due") || is("/by-expiry"),
            Self::InProgress | Self::StoredError | Self::Garbage | Self::Down | Self::Declined => false,
            _ => true,
        }
    }

    /// The same of a request to a destination. One that keeps no keys cannot be told twice by the network itself: no sender
    /// could help that.
    fn fits_outside(self, method: &str, name: &str) -> bool {
        match self {
            Self::Conflict | Self::StaleIndex => false,
            Self::AppliedLate | Self::InternalApplied | Self::InProgress | Self::StoredError => method != "GET",
            Self::Twice => method != "GET" && name != "desk",
            Self::Declined => method != "GET" && name == "till",
            _ => true,
        }
    }
}

/// Method and name of a destination's call site, such as `outbound POST board`.
pub fn outside(site: &str) -> Option<(&str, &str)> {
    let (method, name) = site.strip_prefix("outbound ")?.split_once(' ')?;
    crate::there::NAMES.contains(&name).then_some((method, name))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A fault at a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The call site.
    pub site: String,
    /// The number of the call at its site, from 1.
    pub number: u32,
    /// What happens.
    pub kind: Kind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}@{}", self.site, self.number, self.kind)
    }
}

impl std::str::FromStr for Fault {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('@').collect();
        let [site, number, kind] = parts[..] else { return Err("a fault is SITE@NUMBER@KIND".to_owned()) };
        let known = Kind::ALL.into_iter().chain(Kind::THERE).find(|k| k.name() == kind);
        let kind = known.ok_or_else(|| format!("{kind:?} is no kind of fault"))?;
        let number = number.parse().map_err(|_| format!("{number:?} is no number"))?;
        Ok(Self { site: site.to_owned(), number, kind })
    }
}

/// A time in which every call to a service fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// From, in ms of the scenario.
    pub from_ms: u64,
    /// To.
    pub to_ms: u64,
    /// Whose calls: a part of the site's name.
    pub part: &'static str,
    /// How they fail.
    pub kind: Kind,
}

/// Which calls meet which faults.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Chance of a fault per 1,000 calls.
    pub rate: u64,
    /// The kinds that may happen by chance.
    pub kinds: Vec<Kind>,
    /// Only sites that contain this.
    pub only: &'static str,
    /// These, and with a rate of 0 no others.
    pub fixed: Vec<Fault>,
    /// Outages.
    pub outages: Vec<Outage>,
    /// Chance of a fault per 1,000 requests to a destination outside.
    pub outside: u64,
}

impl Plan {
    /// Exactly these faults.
    pub fn fixed(fixed: Vec<Fault>) -> Self {
        Self { fixed, ..Self::default() }
    }

    /// The fault that a call meets.
    pub fn fault(&self, seed: u64, site: &str, number: u32, at_ms: u64) -> Option<Kind> {
        let fixed = self.fixed.iter().find(|f| f.number == number && f.site == site);
        if let Some(fault) = fixed {
            return Some(fault.kind);
        }
        let outage = self.outages.iter().find(|o| (o.from_ms..o.to_ms).contains(&at_ms) && site.contains(o.part));
        if let Some(outage) = outage {
            return Some(outage.kind);
        }
        if outside(site).is_some() {
            let fitting: Vec<Kind> = Kind::ALL.into_iter().chain(Kind::THERE).filter(|kind| kind.fits(site)).collect();
            let choice = usize::try_from(dice(seed, site, number, 2)).unwrap_or(0);
            let hit = self.outside > 0 && dice(seed, site, number, 1) % 1_000 < self.outside;
            return hit.then(|| fitting[choice % fitting.len()]);
        }
        let hit = self.rate > 0 && site.contains(self.only) && dice(seed, site, number, 1) % 1_000 < self.rate;
        if !hit {
            return None;
        }
        let fitting: Vec<Kind> = self.kinds.iter().copied().filter(|kind| kind.fits(site)).collect();
        let choice = usize::try_from(dice(seed, site, number, 2)).unwrap_or(0);
        (!fitting.is_empty()).then(|| fitting[choice % fitting.len()])
    }
}
