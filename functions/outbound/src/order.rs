//! The order of a line, of a subscription or of a booking's versions: an event of our own is not sent before the one that
//! comes before it.
//!
//! A destination that took the first too late would else get the second first. Waiting is no try: only the limit of age
//! applies, so a line goes on by itself when an outage ends. An event in review holds back its line until a person has
//! decided.

use domain::decide::NoEffect;
use domain::event::{EventId, EventRef};
use domain::operation::OperationKey;
use domain::status::Stage;
use runtime::App;
use runtime::consumer::Work;
use store::StoreError;

/// The wait of an event whose line's event before it is not over yet; `None` when it may be sent.
pub async fn held_back(app: &App, work: &Work) -> Result<Option<NoEffect>, StoreError> {
    let before = work.receipt.envelope.ordered.get(work.key.item.as_str()).filter(|id| !id.is_empty());
    let Some(before) = before else { return Ok(None) };
    let id = EventId::try_from(before.clone()).map_err(|_| StoreError::Corrupt { what: "line" })?;
    let event = EventRef { provider: work.key.event.provider.clone(), id };
    let key = OperationKey { event: event.clone(), ..work.key.clone() };
    if over(app, &key).await? || domain::planted::on("later-told-first") {
        // PLANTED
        return Ok(None);
    }
    Ok(Some(app.wait_within_limits(work, format!("{event} comes before it in its line, and is not over yet"))))
}

/// Whether an operation of an event of our own is over. One that is not there was never told: nothing waits for it.
pub async fn over(app: &App, key: &OperationKey) -> Result<bool, StoreError> {
    let Some(records) = app.store.load_event(&key.event).await? else { return Ok(true) };
    if !records.receipt.operations().contains(key) {
        return Ok(true);
    }
    let effects = app.store.effects_of(&records.receipt).await?;
    let record = records.operation(key);
    Ok(Stage::of(effects.effect(key, record).is_some(), record).is_final())
}
