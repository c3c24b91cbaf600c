//! Resuming: what a pause switch held back is sent in order of arrival, once the switch is off.
//!
//! A run sends a bounded number of each switch's operations, so a long pause drains at a steady pace. It does so
//! last and within the run's time, and it stops when nothing can be sent.
//! Within a group it sends one after the other, groups side by side. A send that fails leaves its
//! operation and the rest of its group parked for the next run, so the order stands.

use domain::keys::event_pk;
use domain::limits::{RESUMED_PER_RUN, SHARDS};
use domain::message::Message;
use domain::operation::{Change, Class, OperationKey, OperationRecord, OperationState};
use futures_util::future::join_all;
use runtime::App;
use runtime::consumer::review_unreadable;
use runtime::dispatch::message;
use store::{Parked, StoreError};

use crate::{Report, SIDE_BY_SIDE};

/// Sends what the switches that are off held back, until `stop_ms`.
pub async fn resume(app: &App, stop_ms: i64, report: &mut Report) -> Result<(), StoreError> {
    let switches = app.store.get_switches().await?;
    let names: Vec<String> = switches.to_resume().map(str::to_owned).collect();
    let mut empty = Vec::new();
    for name in names {
        if app.clock.now_ms() > stop_ms {
            break; // the next run goes on
        }
        let parked = next_in_order(app, &name).await?;
        if parked.is_empty() {
            empty.push(name);
            continue;
        }
        report.resumed += send_in_order(app, &name, &parked, stop_ms).await?;
    }
    if let Some(next) = switches.without(&empty, app.clock.now_ms()) {
        app.store.put_switches(&next, None).await?; // losing to another writer is fine: the next run sees
    }
    Ok(())
}

/// The oldest operations that a switch holds back, over all shards, in order of arrival. Where a shard has
/// more than its page, nothing younger than the page's end is taken: it might be out of order.
async fn next_in_order(app: &App, name: &str) -> Result<Vec<Parked>, StoreError> {
    let page = RESUMED_PER_RUN / SHARDS as usize;
    let (mut all, mut horizon_ms) = (Vec::new(), i64::MAX);
    for shard in join_all((0..SHARDS).map(|shard| app.store.parked(name, shard, page))).await {
        let shard = shard?;
        if let Some(last) = shard.last().filter(|_| shard.len() == page) {
            horizon_ms = horizon_ms.min(last.arrival_ms);
        }
        all.extend(shard);
    }
    all.retain(|parked| parked.arrival_ms <= horizon_ms);
    all.sort_by_key(|parked| (parked.arrival_ms, event_pk(&parked.key.event)));
    Ok(all)
}

/// One operation with its group, if the switch still holds it.
async fn load(app: &App, name: &str, key: &OperationKey) -> Result<Option<(Message, OperationRecord)>, StoreError> {
    let records = match app.store.load_event(&key.event).await {
        Ok(Some(records)) => records,
        Ok(None) => return Ok(None),
        // Put among what is due, where the relay gives a record that it cannot read to a person.
        Err(StoreError::Corrupt { .. }) => return unreadable(app, key).await.map(|()| None),
        Err(error) => return Err(error),
    };
    let held = records.operation(key).filter(|record| record.parked.as_deref() == Some(name));
    let Some(record) = held.cloned() else { return Ok(None) };
    Ok(Some((message(&records.receipt, key.clone(), record.generation + 1), record)))
}

async fn unreadable(app: &App, key: &OperationKey) -> Result<(), StoreError> {
    let record = match app.store.get_operation(key).await {
        Ok(Some(record)) => record,
        Ok(None) => return Ok(()),
        // Nothing can be written over it. It stays parked, and is resumed once it is repaired.
        Err(StoreError::Corrupt { .. }) => return review_unreadable(app, &key.event).await,
        Err(error) => return Err(error),
    };
    let now_ms = app.clock.now_ms();
    let due = Change { due_ms: Some(now_ms), ..change(&record, record.generation, now_ms) };
    let next = OperationRecord::next(key.clone(), Some(&record), due, now_ms, app.random.token());
    app.store.put_operation(&next).await.map(|_| ())
}

fn change(record: &OperationRecord, generation: u32, due_ms: i64) -> Change {
    Change {
        state: OperationState::Wait,
        class: Class::Retried,
        note: "resumed".to_owned(),
        due_ms: Some(due_ms),
        generation,
        resend: true,
        attempts: record.attempts,
    }
}

/// Sends them: groups side by side, each group in order, until `stop_ms`. Returns how many were sent.
async fn send_in_order(app: &App, name: &str, parked: &[Parked], stop_ms: i64) -> Result<usize, StoreError> {
    let mut groups: Vec<Vec<(Message, OperationRecord)>> = Vec::new();
    for chunk in parked.chunks(SIDE_BY_SIDE) {
        if app.clock.now_ms() > stop_ms {
            return Ok(0);
        }
        for loaded in join_all(chunk.iter().map(|parked| load(app, name, &parked.key))).await {
            let Some(one) = loaded? else { continue };
            match groups.iter_mut().find(|group| group.first().is_some_and(|(m, _)| m.group == one.0.group)) {
                Some(group) => group.push(one),
                None => groups.push(vec![one]),
            }
        }
    }
    let mut sent = 0;
    for chunk in groups.chunks(SIDE_BY_SIDE) {
        let before = sent;
        for group in join_all(chunk.iter().map(|group| send_group(app, group, stop_ms))).await {
            sent += group?;
        }
        if sent == before {
            break; // the queue is down, or the time is over: the next run goes on
        }
    }
    Ok(sent)
}

async fn send_group(app: &App, group: &[(Message, OperationRecord)], stop_ms: i64) -> Result<usize, StoreError> {
    let mut sent = 0;
    for (message, record) in group {
        if app.clock.now_ms() > stop_ms || app.dispatch(std::slice::from_ref(message)).await == 0 {
            break;
        }
        let now_ms = app.clock.now_ms();
        let pushed = change(record, message.generation, now_ms + app.policy.resend_ms);
        let next = OperationRecord::next(message.key.clone(), Some(record), pushed, now_ms, app.random.token());
        app.store.put_operation(&next).await?;
        sent += 1;
    }
    Ok(sent)
}
