//! The queue engine: all queues of one embedded stack behind one lock, with an optional file beneath.
//!
//! Deterministic: time comes from the [`Clock`], ids from a counter and a seed. Every method is one atomic step; a
//! caller that needs to wait for a message uses [`QueueEngine::wait_for_message`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use super::attributes::{MAX_VISIBILITY_S, QueueAttributes};
use super::error::QueueError;
use super::message::{OutgoingMessage, ReceivedMessage, SendReceipt, StoredMessage, sequence_number, to_hex};
use super::persist::{Change, Changes, QueueFile};
use super::queue::{DEDUPLICATION_MS, Queue, Remembered};
use super::validate;
use crate::clock::Clock;

/// Most messages in one receive or batch.
pub const MAX_BATCH: usize = 10;

/// How many messages a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Not in flight, whether or not their group is blocked.
    pub visible: usize,
    /// Received, neither deleted nor timed out.
    pub in_flight: usize,
}

#[derive(Debug, Default)]
struct Inner {
    queues: BTreeMap<String, Queue>,
    notify: BTreeMap<String, Arc<Notify>>,
    counter: u64,
    file: Option<QueueFile>,
}

/// In-process SQS FIFO queues.
#[derive(Debug)]
pub struct QueueEngine {
    inner: Mutex<Inner>,
    clock: Arc<dyn Clock>,
    seed: u64,
}

impl QueueEngine {
    /// Queues that live in memory only. `seed` decides the message ids.
    #[must_use]
    pub fn memory(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self { inner: Mutex::default(), clock, seed }
    }

    /// Queues that are kept in the SQLite file `path`, which is made if it is absent.
    ///
    /// # Errors
    /// [`QueueError::Storage`] if the file cannot be opened or read.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, seed: u64) -> Result<Self, QueueError> {
        let file = QueueFile::open(path)?;
        let (counter, queues) = file.load()?;
        let notify = queues.iter().map(|(name, _)| (name.clone(), Arc::default())).collect();
        let inner = Inner { queues: queues.into_iter().collect(), notify, counter, file: Some(file) };
        Ok(Self { inner: Mutex::new(inner), clock, seed })
    }

    /// Makes every message in flight visible. For a stack whose consumers live in the same process: after a
    /// restart nobody works on those messages any more, and a developer need not wait for their timeout.
    pub fn release_in_flight(&self) {
        let mut inner = self.lock();
        for queue in inner.queues.values_mut() {
            queue.release_all();
        }
    }

    /// The engine's clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// A thread that panicked while holding the lock left at worst one call half done; the queue stays usable.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one step on a settled queue and writes its changes through.
    fn step<T>(&self, name: &str, step: impl FnOnce(&mut Step<'_>) -> Result<T, QueueError>) -> Result<T, QueueError> {
        let now_ms = self.clock.now_ms();
        let mut inner = self.lock();
        let kept = inner.file.is_some();
        let mut changes = Changes { kept, ..Changes::default() };
        let Some(mut queue) = inner.queues.remove(name) else {
            return Err(QueueError::QueueDoesNotExist);
        };
        queue.settle(now_ms, &mut changes);
        let mut context = Step {
            queue: &mut queue,
            inner: &mut inner,
            changes: &mut changes,
            elsewhere: Vec::new(),
            now_ms,
            seed: self.seed,
        };
        let result = step(&mut context);
        let mut all = context.elsewhere;
        inner.queues.insert(name.to_owned(), queue);
        all.push((name.to_owned(), changes.list));
        let counter = inner.counter;
        if let Some(file) = inner.file.as_mut()
            && all.iter().any(|(_, list)| !list.is_empty())
        {
            file.write(counter, &all)?;
        }
        for (changed, _) in &all {
            if let Some(notify) = inner.notify.get(changed) {
                notify.notify_waiters();
            }
        }
        result
    }

    /// Makes a queue, or returns quietly if it exists with the same attributes.
    ///
    /// # Errors
    /// [`QueueError::InvalidParameterValue`] for a name that is not a FIFO queue's,
    /// [`QueueError::QueueNameExists`] if one of that name has other attributes.
    pub fn create_queue(&self, name: &str, attributes: QueueAttributes) -> Result<(), QueueError> {
        validate::queue_name(name)?;
        let mut inner = self.lock();
        if let Some(existing) = inner.queues.get(name) {
            let (old, new) = (existing.attributes.to_map(), attributes.to_map());
            return match new.iter().find(|(key, value)| old.get(*key) != Some(value)) {
                None => Ok(()),
                Some((key, _)) => Err(QueueError::QueueNameExists(key.clone())),
            };
        }
        let counter = inner.counter;
        if let Some(file) = inner.file.as_mut() {
            let change = Change::Attributes(attributes.clone());
            file.write(counter, &[(name.to_owned(), vec![change])])?;
        }
        inner.queues.insert(name.to_owned(), Queue::new(attributes));
        inner.notify.insert(name.to_owned(), Arc::default());
        Ok(())
    }

    /// The names of all queues, sorted.
    #[must_use]
    pub fn queue_names(&self) -> Vec<String> {
        self.lock().queues.keys().cloned().collect()
    }

    /// A queue's settings.
    ///
    /// # Errors
    /// [`QueueError::QueueDoesNotExist`].
    pub fn attributes(&self, queue: &str) -> Result<QueueAttributes, QueueError> {
        let inner = self.lock();
        let queue = inner.queues.get(queue);
        queue.map(|queue| queue.attributes.clone()).ok_or(QueueError::QueueDoesNotExist)
    }

    /// Replaces a queue's settings.
    ///
    /// # Errors
    /// [`QueueError::QueueDoesNotExist`], [`QueueError::Storage`].
    pub fn set_attributes(&self, queue: &str, attributes: QueueAttributes) -> Result<(), QueueError> {
        self.step(queue, |step| {
            step.changes.push(Change::Attributes(attributes.clone()));
            step.queue.attributes = attributes;
            Ok(())
        })
    }

    /// Adds a message, unless one with its deduplication id was sent within the last five minutes.
    ///
    /// # Errors
    /// What SQS refuses: an empty or too long body, characters outside of XML's, a bad group or deduplication id, more
    /// than ten attributes.
    pub fn send(&self, queue: &str, message: OutgoingMessage) -> Result<SendReceipt, QueueError> {
        self.step(queue, |step| {
            validate::message(&message, &step.queue.attributes)?;
            step.send(message)
        })
    }

    /// Hands out up to `max` (1 to 10) messages and hides them for `visibility_s` seconds, or the queue's default.
    ///
    /// # Errors
    /// [`QueueError::QueueDoesNotExist`], [`QueueError::InvalidParameterValue`] for values out of range.
    pub fn receive(
        &self, queue: &str, max: usize, visibility_s: Option<i64>,
    ) -> Result<Vec<ReceivedMessage>, QueueError> {
        if !(1..=MAX_BATCH).contains(&max) {
            return Err(QueueError::InvalidParameterValue(format!(
                "Value {max} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."
            )));
        }
        let name = queue;
        self.step(name, |step| {
            let seconds = visibility_s.unwrap_or(step.queue.attributes.visibility_timeout_s);
            let visible_at_ms = step.visible_at_ms(seconds)?;
            let redrive = step.redrive_target(name);
            let (received, dead) = step.queue.receive(
                name,
                max,
                visible_at_ms,
                step.now_ms,
                redrive.as_ref().map(|(_, limit)| *limit),
                step.changes,
            );
            if let Some((target, _)) = redrive {
                step.bury(name, &target, dead);
            }
            Ok(received)
        })
    }

    /// Deletes the message that the handle names; one that is gone already is no error.
    ///
    /// # Errors
    /// [`QueueError::ReceiptHandleExpired`] once the visibility timeout is over, [`QueueError::ReceiptHandleIsInvalid`]
    /// for text that was never a handle of this queue.
    pub fn delete(&self, queue: &str, receipt_handle: &str) -> Result<(), QueueError> {
        self.step(queue, |step| step.queue.delete(queue, receipt_handle, step.changes))
    }

    /// Hides a message in flight for `visibility_s` more seconds from now; 0 makes it visible at once.
    ///
    /// # Errors
    /// [`QueueError::NotAvailableForVisibilityChange`], [`QueueError::ReceiptHandleIsInvalid`],
    /// [`QueueError::InvalidParameterValue`] beyond 12 hours.
    pub fn change_visibility(&self, queue: &str, receipt_handle: &str, visibility_s: i64) -> Result<(), QueueError> {
        self.step(queue, |step| {
            let at_ms = step.visible_at_ms(visibility_s)?;
            step.queue.change_visibility(queue, receipt_handle, at_ms, step.now_ms, step.changes)
        })
    }

    /// Removes every message.
    ///
    /// # Errors
    /// [`QueueError::QueueDoesNotExist`], [`QueueError::Storage`].
    pub fn purge(&self, queue: &str) -> Result<(), QueueError> {
        self.step(queue, |step| {
            step.queue.purge();
            step.changes.push(Change::Purge);
            Ok(())
        })
    }

    /// How many messages the queue holds now.
    ///
    /// # Errors
    /// [`QueueError::QueueDoesNotExist`].
    pub fn depth(&self, queue: &str) -> Result<Depth, QueueError> {
        self.step(queue, |step| {
            let in_flight = step.queue.in_flight();
            Ok(Depth { visible: step.queue.len() - in_flight, in_flight })
        })
    }

    /// Every message in the queue, oldest first, without receiving any: for tests and for people looking.
    ///
    /// # Errors
    /// [`QueueError::QueueDoesNotExist`].
    pub fn peek(&self, queue: &str) -> Result<Vec<StoredMessage>, QueueError> {
        self.step(queue, |step| Ok(step.queue.messages().cloned().collect()))
    }

    /// Returns once a message can be received. Wakes for a send, a delete, a change, and for the next deadline.
    ///
    /// # Errors
    /// [`QueueError::QueueDoesNotExist`].
    pub async fn wait_for_message(&self, queue: &str) -> Result<(), QueueError> {
        let notify = self.lock().notify.get(queue).cloned();
        let notify = notify.ok_or(QueueError::QueueDoesNotExist)?;
        loop {
            let notified = notify.notified();
            let mut notified = std::pin::pin!(notified);
            // Registered before the look, so that a send between the look and the wait is not missed.
            notified.as_mut().enable();
            let (ready, deadline_ms) = self.look(queue)?;
            if ready {
                return Ok(());
            }
            match deadline_ms {
                None => notified.await,
                Some(deadline_ms) => {
                    let wait_ms = deadline_ms.saturating_sub(self.clock.now_ms()).max(1);
                    let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(1));
                    // Either outcome leads to another look.
                    let _ = tokio::time::timeout(wait, notified).await;
                }
            }
        }
    }

    /// Whether a message can be received, and when the next one in flight becomes visible. Wakes nobody.
    fn look(&self, name: &str) -> Result<(bool, Option<i64>), QueueError> {
        let now_ms = self.clock.now_ms();
        let inner = self.lock();
        let queue = inner.queues.get(name).ok_or(QueueError::QueueDoesNotExist)?;
        let deadline_ms = queue.next_deadline_ms();
        let due = deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms);
        Ok((queue.has_ready() || due, deadline_ms))
    }
}

/// One step on one queue, taken out of the map so that the others stay reachable.
struct Step<'a> {
    queue: &'a mut Queue,
    inner: &'a mut Inner,
    changes: &'a mut Changes,
    elsewhere: Vec<(String, Vec<Change>)>,
    now_ms: i64,
    seed: u64,
}

impl Step<'_> {
    fn next_seq(&mut self) -> u64 {
        self.inner.counter += 1;
        self.inner.counter
    }

    fn visible_at_ms(&self, visibility_s: i64) -> Result<i64, QueueError> {
        if !(0..=MAX_VISIBILITY_S).contains(&visibility_s) {
            return Err(QueueError::InvalidParameterValue(format!(
                "Value {visibility_s} for parameter VisibilityTimeout is invalid. Reason: VisibilityTimeout must be an integer between 0 and {MAX_VISIBILITY_S}."
            )));
        }
        Ok(self.now_ms + visibility_s * 1_000)
    }

    fn send(&mut self, message: OutgoingMessage) -> Result<SendReceipt, QueueError> {
        let content_based = self.queue.attributes.content_based_deduplication;
        let deduplication_id = match message.deduplication_id {
            Some(id) => id,
            None if content_based => to_hex(&Sha256::digest(message.body.as_bytes())),
            None => {
                return Err(QueueError::InvalidParameterValue(
                    "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly".to_owned(),
                ));
            }
        };
        let key = self.queue.deduplication_key(&message.group_id, &deduplication_id);
        if let Some(first) = self.queue.remembered(&key) {
            return Ok(SendReceipt {
                message_id: first.message_id.clone(),
                sequence_number: sequence_number(first.seq),
                deduplicated: true,
            });
        }
        let seq = self.next_seq();
        let stored = StoredMessage {
            seq,
            message_id: message_id(self.seed, seq),
            body: message.body.into(),
            group_id: message.group_id,
            deduplication_id,
            attributes: message.attributes,
            trace_header: message.trace_header,
            sent_ms: self.now_ms,
            first_received_ms: None,
            receive_count: 0,
            invisible_until_ms: None,
            dead_letter_source: None,
        };
        let entry =
            Remembered { message_id: stored.message_id.clone(), seq, expires_ms: self.now_ms + DEDUPLICATION_MS };
        let receipt = SendReceipt {
            message_id: stored.message_id.clone(),
            sequence_number: stored.sequence_number(),
            deduplicated: false,
        };
        self.changes.push(Change::Put(stored.clone()));
        self.changes.push(Change::Remember(key.clone(), entry.clone()));
        self.queue.remember(key, entry);
        self.queue.insert(stored);
        Ok(receipt)
    }

    /// The dead-letter queue and the limit, if there is such a queue. Without one SQS keeps the message.
    fn redrive_target(&self, source: &str) -> Option<(String, u32)> {
        let redrive = self.queue.attributes.redrive.as_ref()?;
        let name = redrive.queue_name();
        let exists = name != source && self.inner.queues.contains_key(name);
        exists.then(|| (name.to_owned(), redrive.max_receive_count))
    }

    /// Moves messages to the dead-letter queue as AWS documents it for FIFO: group, body, attributes and message id
    /// stay, the deduplication id becomes the message id, and the enqueue time (so the retention) starts anew. Counts
    /// start anew too, so that the dead-letter queue's own consumer sees its own receives.
    fn bury(&mut self, source: &str, target: &str, dead: Vec<StoredMessage>) {
        if dead.is_empty() {
            return;
        }
        let mut list = Vec::new();
        for message in dead {
            let moved = StoredMessage {
                seq: self.next_seq(),
                deduplication_id: message.message_id.clone(),
                sent_ms: self.now_ms,
                first_received_ms: None,
                receive_count: 0,
                invisible_until_ms: None,
                dead_letter_source: Some(crate::queue_arn(source)),
                ..message
            };
            if self.changes.kept {
                list.push(Change::Put(moved.clone()));
            }
            if let Some(queue) = self.inner.queues.get_mut(target) {
                queue.insert(moved);
            }
        }
        self.elsewhere.push((target.to_owned(), list));
    }
}

/// A message id in the form of a UUID, from the seed and the message's number; distinct numbers give distinct ids.
fn message_id(seed: u64, seq: u64) -> String {
    // SplitMix64's finaliser: a bijection on 64 bits.
    let mut mixed = seed ^ seq.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let hex = format!("{mixed:016x}");
    // The number itself stays readable at the end: 48 bits of it.
    format!("{}-{}-4{}-8{}-{:012x}", &hex[0..8], &hex[8..12], &hex[12..15], &hex[13..16], seq & 0xffff_ffff_ffff)
}
