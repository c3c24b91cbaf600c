//! The audit of one wallet: recomputes its chain, its balance and its holds from what is recorded.
//!
//! Entries are handed over in the order of the statement, a page at a time, so a wallet of any length
//! is checked in bounded memory. Of everything that could be wrong the FIRST broken link is named, by
//! wallet and sequence. Nothing here reads anything: whoever calls it reads the wallet, its statement,
//! its open holds and the wallet again, and starts over when the wallet's `rev` moved meanwhile.

mod broken;
#[cfg(test)]
mod tests;

pub use broken::{Broken, Fault, Place};

use serde::Deserialize;

use crate::ids::{JobId, TenantId, WalletId};
use crate::ledger::{Account, Entry, Link, chain_hash};
use crate::money::{Currency, Micros};

/// A wallet as the control API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Wallet {
    /// Whose wallet.
    pub tenant: TenantId,
    /// Its name.
    pub wallet: WalletId,
    /// Its currency, for good.
    pub currency: Currency,
    /// What can be reserved or spent.
    pub available: Micros,
    /// The sum of the open holds, as the balance says.
    pub held: Micros,
    /// Sequence of the last entry.
    pub sequence: u64,
    /// Hash of the last entry; empty before the first.
    pub head: String,
    /// Bumped by every write of the balance.
    pub rev: u64,
    /// What a postpaid wallet carries until it comes to whole minor units.
    #[serde(default)]
    pub carried: Micros,
}

/// An open hold as the control API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hold {
    /// Whose hold.
    pub job: JobId,
    /// What is reserved, extensions included.
    pub hold: Micros,
}

/// What a wallet without fault adds up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clean {
    /// Entries of the chain.
    pub entries: u64,
    /// Open holds.
    pub open_holds: usize,
}

/// An audit under way.
#[derive(Debug, Clone)]
pub struct Audit<'a> {
    wallet: &'a Wallet,
    /// Sequence of the last entry that was checked.
    sequence: u64,
    /// Its hash.
    head: String,
    /// The sum of the wallet's lines so far, in micros; no sum of entries can overflow it.
    total: i128,
    /// The sum of the rounding account's lines so far, in micros.
    rounding: i128,
}

impl<'a> Audit<'a> {
    /// An audit of this wallet, before its first entry.
    pub fn of(wallet: &'a Wallet) -> Self {
        Self { wallet, sequence: 0, head: String::new(), total: 0, rounding: 0 }
    }

    /// How many entries were checked.
    pub fn checked(&self) -> u64 {
        self.sequence
    }

    /// The sum of the wallet's lines so far, in micros.
    pub fn total(&self) -> i128 {
        self.total
    }

    /// Checks the next entry of the statement: its place, its wallet, the hash before, its own hash,
    /// recomputed from its content, and that its lines sum to zero.
    ///
    /// # Errors
    /// [`Broken`] with the sequence that should stand here.
    pub fn entry(&mut self, entry: &Entry) -> Result<(), Broken> {
        let expected = self.sequence + 1;
        let broken = |fault| self.broken(Place::Entry(expected), fault);
        let Some(link) = &entry.link else { return Err(broken(Fault::NotLinked)) };
        in_place(link, expected).map_err(broken)?;
        if (&entry.tenant, &entry.wallet, entry.currency)
            != (&self.wallet.tenant, &self.wallet.wallet, self.wallet.currency)
        {
            return Err(broken(Fault::Foreign));
        }
        if link.previous != self.head {
            return Err(broken(Fault::Previous));
        }
        if chain_hash(link.sequence, &link.previous, &entry.content_hash()) != link.hash {
            return Err(broken(Fault::Content));
        }
        let sum: i128 = entry.lines.iter().map(|line| i128::from(line.amount.get())).sum();
        if sum != 0 {
            return Err(broken(Fault::Unbalanced { sum }));
        }
        // What a postpaid tenant owes stands in the wallet's place.
        self.total += sum_of(entry, &[Account::Wallet, Account::Receivable]);
        self.rounding += sum_of(entry, &[Account::Rounding]);
        self.sequence = link.sequence;
        self.head.clone_from(&link.hash);
        Ok(())
    }

    /// Checks what the balance says against the entries, and what it holds against the open holds.
    ///
    /// # Errors
    /// [`Broken`]: by sequence where the last entry and the balance do not meet, else at the balance.
    pub fn finish(&self, holds: &[Hold]) -> Result<Clean, Broken> {
        let wallet = self.wallet;
        let last = Place::Entry(self.sequence);
        if wallet.sequence > self.sequence {
            let fault = Fault::MissingAtEnd { last: wallet.sequence };
            return Err(self.broken(Place::Entry(self.sequence + 1), fault));
        }
        if wallet.sequence < self.sequence {
            return Err(self.broken(last, Fault::Beyond { last: wallet.sequence }));
        }
        if wallet.head != self.head {
            return Err(self.broken(last, Fault::Head));
        }
        let balance = i128::from(wallet.available.get()) + i128::from(wallet.held.get());
        if balance != self.total {
            return Err(self.broken(Place::Balance, Fault::Total { balance, entries: self.total }));
        }
        let carried = i128::from(wallet.carried.get());
        if carried != -self.rounding {
            return Err(self.broken(Place::Balance, Fault::Carried { carried, entries: -self.rounding }));
        }
        let holds_sum: i128 = holds.iter().map(|hold| i128::from(hold.hold.get())).sum();
        let held = i128::from(wallet.held.get());
        if held != holds_sum {
            return Err(self.broken(Place::Balance, Fault::Held { held, holds: holds_sum, open: holds.len() }));
        }
        Ok(Clean { entries: self.sequence, open_holds: holds.len() })
    }

    /// A fault that the caller met at the next entry, such as one that cannot be read.
    pub fn unreadable(&self, what: impl Into<String>) -> Broken {
        self.broken(Place::Entry(self.sequence + 1), Fault::Unreadable(what.into()))
    }

    fn broken(&self, place: Place, fault: Fault) -> Broken {
        Broken { tenant: self.wallet.tenant.clone(), wallet: self.wallet.wallet.clone(), place, fault }
    }
}

fn sum_of(entry: &Entry, accounts: &[Account]) -> i128 {
    let lines = entry.lines.iter().filter(|line| accounts.contains(&line.account));
    lines.map(|line| i128::from(line.amount.get())).sum()
}

/// The sequences have no gap.
fn in_place(link: &Link, expected: u64) -> Result<(), Fault> {
    match link.sequence {
        found if found == expected => Ok(()),
        found if found > expected => Err(Fault::Missing { found }),
        found => Err(Fault::Repeated { found }),
    }
}

/// A whole wallet in one call: entries in order, all open holds.
///
/// # Errors
/// The first [`Broken`] link.
pub fn audit<'e>(
    wallet: &Wallet, entries: impl IntoIterator<Item = &'e Entry>, holds: &[Hold],
) -> Result<Clean, Broken> {
    let mut audit = Audit::of(wallet);
    for entry in entries {
        audit.entry(entry)?;
    }
    audit.finish(holds)
}
