//! Receipts against effects, an hour of one shard at a time. Of each receipt: its partition, its job and its ledger, one
//! query each, however many receipts there are.

use domain::event::EventRef;
use domain::reconcile::{Action, CaseClass, Finding, Subject, compare_receipt};
use futures_util::future::join_all;
use runtime::App;
use runtime::consumer::review_unreadable;
use store::{Store, StoreError};

use crate::SIDE_BY_SIDE;
use crate::record::Recorder;

pub(crate) async fn compare(
    recorder: &mut Recorder<'_>, minute: i64, minutes: i64, shard: u32,
) -> Result<(), StoreError> {
    let app = recorder.app;
    let all: Vec<i64> = (minute..minute + minutes).collect();
    for chunk in all.chunks(SIDE_BY_SIDE) {
        let buckets = join_all(chunk.iter().map(|minute| app.store.receipts_in(*minute, shard))).await;
        for events in buckets {
            let events = events?;
            recorder.result.examined += events.len() as u64;
            for chunk in events.chunks(SIDE_BY_SIDE) {
                for findings in join_all(chunk.iter().map(|event| examine(app, event))).await {
                    recorder.record_all(&findings?).await?;
                }
            }
        }
    }
    Ok(())
}

/// What is wrong with one event's operations. Almost nothing is, and that shows at a glance; whatever else was seen is
/// read again, strongly consistent, before anything is said.
pub(crate) async fn examine(app: &App, event: &EventRef) -> Result<Vec<Finding>, StoreError> {
    match look(app, &app.store.at_a_glance(), event).await {
        Ok(Some(findings)) if findings.is_empty() => Ok(findings),
        _ => read(app, event).await,
    }
}

/// What is wrong as this store shows it; `None` where there is no receipt.
async fn look(app: &App, store: &Store, event: &EventRef) -> Result<Option<Vec<Finding>>, StoreError> {
    let Some(records) = store.load_event(event).await? else { return Ok(None) };
    if records.receipt.plan.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let effects = store.effects_of(&records.receipt).await?;
    Ok(Some(compare_receipt(&records.receipt, &records.operations, &effects, app.clock.now_ms())))
}

async fn read(app: &App, event: &EventRef) -> Result<Vec<Finding>, StoreError> {
    let records = match app.store.load_event(event).await {
        Ok(Some(records)) => records,
        Ok(None) => return Ok(Vec::new()), // an index entry whose item is gone
        Err(StoreError::Corrupt { what }) => {
            review_unreadable(app, event).await?;
            return Ok(vec![unreadable(Subject::Event(event.clone()), what)]);
        }
        Err(error) => return Err(error),
    };
    let receipt = &records.receipt;
    if receipt.plan.is_empty() {
        return Ok(Vec::new());
    }
    match app.store.effects_of(receipt).await {
        Ok(effects) => Ok(compare_receipt(receipt, &records.operations, &effects, app.clock.now_ms())),
        Err(StoreError::Corrupt { what }) => Ok(vec![unreadable(Subject::Event(event.clone()), what)]),
        Err(error) => Err(error),
    }
}

/// A stored record that cannot be read is a person's.
pub(crate) fn unreadable(subject: Subject, what: &str) -> Finding {
    Finding::new(CaseClass::Unreadable, Action::Person, subject, format!("a stored {what} cannot be read"))
}
