//! What an audit finds wrong, and where. The texts say what was compared; they hold amounts and
//! sequences, and of an entry's content nothing.

use std::fmt;

use crate::ids::{TenantId, WalletId};

/// Where a wallet is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the entry of this sequence.
    Entry(u64),
    /// At the balance, all entries being sound.
    Balance,
}

/// What is wrong there. Sums are in micros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An entry without sequence and hash stands in the statement.
    NotLinked,
    /// The statement goes on with a later entry.
    Missing {
        /// The sequence that stands in its place.
        found: u64,
    },
    /// The statement shows an earlier sequence again.
    Repeated {
        /// Which.
        found: u64,
    },
    /// The balance counts more entries than there are.
    MissingAtEnd {
        /// The balance's sequence.
        last: u64,
    },
    /// The entry is not counted by the balance.
    Beyond {
        /// The balance's sequence.
        last: u64,
    },
    /// The entry says another tenant, wallet or currency.
    Foreign,
    /// The previous hash is not the hash of the entry before.
    Previous,
    /// The content does not give the recorded hash.
    Content,
    /// The lines do not sum to zero.
    Unbalanced {
        /// Their sum.
        sum: i128,
    },
    /// The balance's head is not the last entry's hash.
    Head,
    /// available + held is not the sum of the wallet's lines.
    Total {
        /// available + held.
        balance: i128,
        /// The sum of the wallet's lines.
        entries: i128,
    },
    /// What a postpaid wallet carries is not what the rounding account's lines say.
    Carried {
        /// What the balance says.
        carried: i128,
        /// What the lines say.
        entries: i128,
    },
    /// held is not the sum of the open holds.
    Held {
        /// What the balance says.
        held: i128,
        /// The sum of the open holds.
        holds: i128,
        /// How many there are.
        open: usize,
    },
    /// The entry cannot be read at all.
    Unreadable(String),
}

impl Fault {
    /// True when the chain itself is broken: that stands whatever was written to the wallet meanwhile.
    pub fn is_of_chain(&self) -> bool {
        match self {
            Self::MissingAtEnd { .. }
            | Self::Beyond { .. }
            | Self::Head
            | Self::Total { .. }
            | Self::Carried { .. }
            | Self::Held { .. } => false,
            Self::NotLinked
            | Self::Missing { .. }
            | Self::Repeated { .. }
            | Self::Foreign
            | Self::Previous
            | Self::Content
            | Self::Unbalanced { .. }
            | Self::Unreadable(_) => true,
        }
    }

    /// The stable name, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotLinked => "not-linked",
            Self::Missing { .. } | Self::MissingAtEnd { .. } => "missing",
            Self::Repeated { .. } => "repeated",
            Self::Beyond { .. } => "beyond-balance",
            Self::Foreign => "foreign",
            Self::Previous => "previous-hash",
            Self::Content => "content-hash",
            Self::Unbalanced { .. } => "unbalanced",
            Self::Head => "head",
            Self::Total { .. } => "total",
            Self::Carried { .. } => "carried",
            Self::Held { .. } => "held",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLinked => f.write_str("it has no sequence and no hash"),
            Self::Missing { found } => write!(f, "it is missing: the statement goes on with entry {found}"),
            Self::Repeated { found } => write!(f, "entry {found} stands here a second time"),
            Self::MissingAtEnd { last } => write!(f, "it is missing: the balance counts {last} entries"),
            Self::Beyond { last } => write!(f, "the balance counts only {last} entries"),
            Self::Foreign => f.write_str("it says another tenant, wallet or currency than the balance"),
            Self::Previous => {
                f.write_str("its previous hash is not the hash of the entry before: one of the two was changed")
            }
            Self::Content => f.write_str("its content does not give its hash: it was changed after it was written"),
            Self::Unbalanced { sum } => write!(f, "its lines sum to {} and not to zero", Decimal(*sum)),
            Self::Head => f.write_str("its hash is not the head that the balance keeps"),
            Self::Total { balance, entries } => {
                let (balance, entries) = (Decimal(*balance), Decimal(*entries));
                write!(f, "available + held is {balance} and the entries say {entries}")
            }
            Self::Carried { carried, entries } => {
                let (carried, entries) = (Decimal(*carried), Decimal(*entries));
                write!(f, "it carries {carried} and the entries say {entries}")
            }
            Self::Held { held, holds, open } => {
                let (held, holds) = (Decimal(*held), Decimal(*holds));
                write!(f, "held is {held} and the open holds ({open}) sum to {holds}")
            }
            Self::Unreadable(what) => write!(f, "it cannot be read: {what}"),
        }
    }
}

/// The first broken link of a wallet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("wallet {wallet} of tenant {tenant}, {place}: {fault}")]
pub struct Broken {
    /// Whose wallet.
    pub tenant: TenantId,
    /// Which wallet.
    pub wallet: WalletId,
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub fault: Fault,
}

impl Broken {
    /// The sequence of the broken entry; none when the balance is what is wrong.
    pub fn sequence(&self) -> Option<u64> {
        match self.place {
            Place::Entry(sequence) => Some(sequence),
            Place::Balance => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(sequence) => write!(f, "entry {sequence}"),
            Self::Balance => f.write_str("balance"),
        }
    }
}

/// Micros as a decimal of the major unit; wider than an amount, since a sum of tampered lines may be.
struct Decimal(i128);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let absolute = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:06}", absolute / 1_000_000, absolute % 1_000_000)
    }
}
