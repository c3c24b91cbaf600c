//! One FIFO queue in memory: messages, groups, deadlines and the deduplication window.
//!
//! The rules live here and nowhere else; [`super::engine`] adds the lock, the dead-letter move between two queues and
//! the file. A group is *ready* when none of its messages is in flight, and is listed under its oldest message, so
//! that a receive costs the messages it returns and not the length of the queue.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::attributes::QueueAttributes;
use super::error::QueueError;
use super::message::{ReceiptHandle, ReceivedMessage, StoredMessage};
use super::persist::{Change, Changes};

/// SQS remembers a deduplication id for five minutes after the send, whatever became of the message.
pub(crate) const DEDUPLICATION_MS: i64 = 300_000;

/// What an id within its five minutes stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) message_id: String,
    pub(crate) seq: u64,
    pub(crate) expires_ms: i64,
}

#[derive(Debug, Default)]
struct Group {
    seqs: BTreeSet<u64>,
    in_flight: usize,
    /// The number under which the group stands in `ready`, if it does.
    listed: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) attributes: QueueAttributes,
    messages: BTreeMap<u64, StoredMessage>,
    groups: HashMap<String, Group>,
    ready: BTreeSet<(u64, String)>,
    deadlines: BTreeSet<(i64, u64)>,
    remembered: HashMap<String, Remembered>,
    remembered_order: VecDeque<(i64, String)>,
}

impl Queue {
    pub(crate) fn new(attributes: QueueAttributes) -> Self {
        Self { attributes, ..Self::default() }
    }

    /// Brings the queue to `now_ms`: deadlines that passed, messages past their retention, forgotten ids.
    pub(crate) fn settle(&mut self, now_ms: i64, changes: &mut Changes) {
        while let Some(&(deadline_ms, seq)) = self.deadlines.first() {
            if deadline_ms > now_ms {
                break;
            }
            self.release(seq);
        }
        while let Some((&seq, oldest)) = self.messages.first_key_value() {
            if now_ms - oldest.sent_ms < self.attributes.retention_s * 1_000 {
                break;
            }
            self.remove(seq);
            changes.push(Change::Remove(seq));
        }
        let mut forgotten = false;
        while let Some((expires_ms, key)) = self.remembered_order.front() {
            if *expires_ms > now_ms {
                break;
            }
            self.remembered.remove(key);
            self.remembered_order.pop_front();
            forgotten = true;
        }
        if forgotten {
            changes.push(Change::Forget { now_ms });
        }
    }

    /// The key of the deduplication window: per queue, or per group if the queue says so.
    pub(crate) fn deduplication_key(&self, group_id: &str, deduplication_id: &str) -> String {
        if self.attributes.deduplicate_per_group {
            format!("{group_id}\n{deduplication_id}")
        } else {
            deduplication_id.to_owned()
        }
    }

    pub(crate) fn remembered(&self, key: &str) -> Option<&Remembered> {
        self.remembered.get(key)
    }

    pub(crate) fn remember(&mut self, key: String, entry: Remembered) {
        self.remembered_order.push_back((entry.expires_ms, key.clone()));
        self.remembered.insert(key, entry);
    }

    pub(crate) fn insert(&mut self, message: StoredMessage) {
        let group_id = message.group_id.clone();
        let group = self.groups.entry(group_id.clone()).or_default();
        group.seqs.insert(message.seq);
        if let Some(deadline_ms) = message.invisible_until_ms {
            group.in_flight += 1;
            self.deadlines.insert((deadline_ms, message.seq));
        }
        self.messages.insert(message.seq, message);
        self.list(&group_id);
    }

    /// Puts the group into `ready` under its oldest message, or takes it out while it is blocked or empty.
    fn list(&mut self, group_id: &str) {
        let Some(group) = self.groups.get_mut(group_id) else {
            return;
        };
        let wanted = match group.in_flight {
            0 => group.seqs.first().copied(),
            _ => None,
        };
        if group.listed != wanted {
            if let Some(seq) = group.listed {
                self.ready.remove(&(seq, group_id.to_owned()));
            }
            if let Some(seq) = wanted {
                self.ready.insert((seq, group_id.to_owned()));
            }
            group.listed = wanted;
        }
        if group.seqs.is_empty() {
            self.groups.remove(group_id);
        }
    }

    /// Makes a message visible again.
    fn release(&mut self, seq: u64) {
        let Some(message) = self.messages.get_mut(&seq) else {
            return;
        };
        if let Some(deadline_ms) = message.invisible_until_ms.take() {
            self.deadlines.remove(&(deadline_ms, seq));
            let group_id = message.group_id.clone();
            if let Some(group) = self.groups.get_mut(&group_id) {
                group.in_flight = group.in_flight.saturating_sub(1);
            }
            self.list(&group_id);
        }
    }

    fn remove(&mut self, seq: u64) -> Option<StoredMessage> {
        self.release(seq);
        let message = self.messages.remove(&seq)?;
        if let Some(group) = self.groups.get_mut(&message.group_id) {
            group.seqs.remove(&seq);
        }
        self.list(&message.group_id);
        Some(message)
    }

    /// Hands out up to `max` messages: as many as possible of the oldest ready group, then of the next (SQS developer
    /// guide, FIFO delivery logic). The second list is what was received too often and has to move.
    pub(crate) fn receive(
        &mut self, name: &str, max: usize, visible_at_ms: i64, now_ms: i64, max_receive_count: Option<u32>,
        changes: &mut Changes,
    ) -> (Vec<ReceivedMessage>, Vec<StoredMessage>) {
        let (mut received, mut dead) = (Vec::new(), Vec::new());
        while received.len() < max {
            let Some((_, group_id)) = self.ready.first().cloned() else {
                break;
            };
            let seqs: Vec<u64> = match self.groups.get(&group_id) {
                Some(group) => group.seqs.iter().copied().collect(),
                None => break,
            };
            for seq in seqs {
                if received.len() == max {
                    break;
                }
                let worn_out = self
                    .messages
                    .get(&seq)
                    .is_some_and(|message| max_receive_count.is_some_and(|limit| message.receive_count >= limit));
                if worn_out {
                    dead.extend(self.remove(seq));
                    changes.push(Change::Remove(seq));
                } else if let Some(message) = self.take(seq, visible_at_ms, now_ms, changes) {
                    let handle = ReceiptHandle { seq, receive_count: message.receive_count };
                    received.push(ReceivedMessage { receipt_handle: handle.encode(name), message });
                }
            }
        }
        (received, dead)
    }

    /// Puts a visible message in flight.
    fn take(&mut self, seq: u64, visible_at_ms: i64, now_ms: i64, changes: &mut Changes) -> Option<StoredMessage> {
        let message = self.messages.get_mut(&seq)?;
        message.receive_count += 1;
        message.first_received_ms.get_or_insert(now_ms);
        message.invisible_until_ms = Some(visible_at_ms);
        changes.push(Change::flight(message));
        let taken = message.clone();
        self.deadlines.insert((visible_at_ms, seq));
        if let Some(group) = self.groups.get_mut(&taken.group_id) {
            group.in_flight += 1;
        }
        self.list(&taken.group_id);
        Some(taken)
    }

    /// Deletes what the handle names. A message that is gone already is no error; an expired handle is.
    pub(crate) fn delete(&mut self, name: &str, handle_text: &str, changes: &mut Changes) -> Result<(), QueueError> {
        let handle = ReceiptHandle::decode(name, handle_text).ok_or(QueueError::ReceiptHandleIsInvalid)?;
        match self.messages.get(&handle.seq) {
            None => Ok(()),
            Some(message) if holds(message, handle) => {
                self.remove(handle.seq);
                changes.push(Change::Remove(handle.seq));
                Ok(())
            }
            Some(_) => Err(QueueError::ReceiptHandleExpired(handle_text.to_owned())),
        }
    }

    /// Moves the deadline of a message in flight; a deadline of now makes it visible at once.
    pub(crate) fn change_visibility(
        &mut self, name: &str, handle_text: &str, visible_at_ms: i64, now_ms: i64, changes: &mut Changes,
    ) -> Result<(), QueueError> {
        let handle = ReceiptHandle::decode(name, handle_text).ok_or(QueueError::ReceiptHandleIsInvalid)?;
        let refused = || QueueError::NotAvailableForVisibilityChange(handle_text.to_owned());
        let message = self.messages.get_mut(&handle.seq).ok_or_else(refused)?;
        if !holds(message, handle) {
            return Err(refused());
        }
        if let Some(old_ms) = message.invisible_until_ms.replace(visible_at_ms) {
            self.deadlines.remove(&(old_ms, handle.seq));
        }
        self.deadlines.insert((visible_at_ms, handle.seq));
        changes.push(Change::flight(message));
        if visible_at_ms <= now_ms {
            self.release(handle.seq);
        }
        Ok(())
    }

    /// Makes every message in flight visible, as if its consumer had given it back.
    pub(crate) fn release_all(&mut self) {
        let in_flight: Vec<u64> = self.deadlines.iter().map(|&(_, seq)| seq).collect();
        in_flight.into_iter().for_each(|seq| self.release(seq));
    }

    /// Removes every message; the deduplication window stays.
    pub(crate) fn purge(&mut self) {
        self.messages.clear();
        self.groups.clear();
        self.ready.clear();
        self.deadlines.clear();
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next message in flight becomes visible by itself.
    pub(crate) fn next_deadline_ms(&self) -> Option<i64> {
        self.deadlines.first().map(|&(deadline_ms, _)| deadline_ms)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.deadlines.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = &StoredMessage> {
        self.messages.values()
    }
}

/// Whether this handle is the message's latest one and still in flight.
fn holds(message: &StoredMessage, handle: ReceiptHandle) -> bool {
    message.receive_count == handle.receive_count && message.invisible_until_ms.is_some()
}
