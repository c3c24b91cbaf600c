//! Telling others: which events of our own an effect leads to, by the subscriptions, and their dispatch.
//!
//! Before the commit an effect is given what is told of it ([`App::telling`], [`App::tell`]); after it the messages are
//! sent ([`App::send_told`]). Dying between the two loses nothing: the relay finds the receipts like any other.

use domain::charge::Outgoing;
use domain::decide::posting::Posting;
use domain::envelope::Envelope;
use domain::event::EventRef;
use domain::ids::{TenantId, WalletId};
use domain::ledger::{Balance, BalanceDelta, LowBalance};
use domain::operation::{Consumer, OperationRecord};
use domain::own::{OwnEvent, low_balance};
use domain::profile::Subscription;
use domain::receipt::{Conflict, Receipt};
use domain::told::{Step, Told};
use store::{OperationPut, StoreError};

use crate::App;
use crate::dispatch::message;
use crate::retry::Again;

impl App {
    /// What is told of these events, in their order: the receipts that somebody subscribed to, and the lines that they
    /// go on. Reads nothing unless a subscription keeps an order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tell(&self, events: impl IntoIterator<Item = OwnEvent>) -> Result<Told, StoreError> {
        let mut told = Told::default();
        for event in events {
            let to = self.profiles.wanting(&event);
            if to.is_empty() {
                continue;
            }
            let mut befores = std::collections::BTreeMap::new();
            for one in to.iter().filter(|one| one.ordered) {
                let from = self.end_of_line(&told, one, &event).await?;
                befores.insert(one.name.clone(), from.clone().unwrap_or_default());
                let (subscription, subject) = (one.name.clone(), event.subject.clone());
                told.step(Step { subscription, subject, from, to: event.id.as_str().to_owned() });
            }
            let receipt = event.receipt(&to, befores);
            told.receipts.push(receipt.map_err(|_| StoreError::Corrupt { what: "subscription" })?);
        }
        Ok(told)
    }

    async fn end_of_line(
        &self, told: &Told, to: &Subscription, event: &OwnEvent,
    ) -> Result<Option<String>, StoreError> {
        match told.end_of(&to.name, &event.subject) {
            Some(id) => Ok(Some(id.to_owned())),
            None => self.store.line_end(&to.name, &event.subject).await,
        }
    }

    /// A posting with what is told of it: the job's end, its settlement, and the balance that falls; and, where the wallet
    /// is postpaid, with its charge.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn telling(&self, posting: Posting, balance: &Balance) -> Result<Posting, StoreError> {
        let told = self.tell(OwnEvent::of_posting(&posting)).await?;
        let wallet = (&posting.entry.tenant, &posting.entry.wallet);
        let delta = self.watching(wallet, balance, posting.delta.clone()).await?;
        self.charging(Posting { told, delta, ..posting }, balance)
    }

    /// A delta with what is told of the balance that falls by it. `balance` is the one that it was decided from.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn watching(
        &self, wallet: (&TenantId, &WalletId), balance: &Balance, delta: BalanceDelta,
    ) -> Result<BalanceDelta, StoreError> {
        let thresholds = self.profiles.thresholds(wallet.0, balance.currency);
        if thresholds.is_empty() {
            return Ok(delta);
        }
        let (events, within) = low_balance(&thresholds, wallet, balance, &delta, self.clock.now_ms());
        let low = Box::new(LowBalance { within, told: self.tell(events).await? });
        Ok(BalanceDelta { low, ..delta })
    }

    /// Sends what was told, once its effect is committed.
    pub async fn send_told(&self, told: &Told) {
        for receipt in &told.receipts {
            self.send_receipt(receipt).await;
        }
    }

    /// Sends the messages of a receipt of ours.
    async fn send_receipt(&self, receipt: &Receipt) {
        if self.queues.url(Consumer::Outbound).is_empty() {
            return; // a function that seldom tells has no right to send: the relay does within minutes
        }
        let messages: Vec<_> = receipt.operations().into_iter().map(|key| message(receipt, key, 0)).collect();
        self.dispatch(&messages).await;
    }

    /// Sends what a committed posting told.
    pub async fn send_posted(&self, posting: &Posting) {
        self.send_told(&posting.told).await;
        self.send_told(&posting.delta.low.told).await;
        self.send_outgoing(&posting.outgoing).await;
    }

    /// Sends what goes out to a payment provider, once what asks for it is committed.
    pub async fn send_outgoing(&self, outgoing: &[Outgoing]) {
        for one in outgoing {
            self.send_receipt(&one.receipt).await;
        }
    }

    /// Puts an operation's record; where it opens a review, that is told. `from` is the event's envelope, if it was read.
    ///
    /// # Errors
    /// As [`store::Store::put_operation`].
    pub async fn put_operation(
        &self, record: &OperationRecord, from: Option<&Envelope>,
    ) -> Result<OperationPut, StoreError> {
        let mut again = Again::new(self);
        loop {
            let told = self.tell(OwnEvent::review(record, from)).await?;
            match self.store.put_operation_telling(record, &told).await {
                Ok(OperationPut::Written) => {
                    self.send_told(&told).await;
                    return Ok(OperationPut::Written);
                }
                Err(error) if error.is_conflict() && !told.is_empty() => again.after(error).await?,
                other => return other,
            }
        }
    }

    /// Records a conflict, once per content, which is told.
    ///
    /// # Errors
    /// As [`store::Store::put_conflict`].
    pub async fn put_conflict(&self, event: &EventRef, conflict: &Conflict) -> Result<(), StoreError> {
        let mut again = Again::new(self);
        loop {
            let told = self.tell(OwnEvent::conflict(event, conflict)).await?;
            match self.store.put_conflict_telling(event, conflict, &told).await {
                Ok(new) => {
                    if new {
                        self.send_told(&told).await;
                    }
                    return Ok(());
                }
                Err(error) if error.is_conflict() && !told.is_empty() => again.after(error).await?,
                Err(error) => return Err(error),
            }
        }
    }
}
