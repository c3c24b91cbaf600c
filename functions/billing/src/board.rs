//! What a version of a booking tells a job board, read before its transaction: the end of the booking's line.

use domain::board::{self, Before, ITEM};
use domain::booking::BookingVersion;
use domain::event::EventId;
use domain::told::Told;
use runtime::App;
use runtime::consumer::Work;
use store::StoreError;

fn corrupt() -> StoreError {
    StoreError::Corrupt { what: "board event" }
}

/// The event that goes to the board with this version; nothing where the profile names no board, and nothing for what was
/// received before it named one, since no value was kept for it.
pub async fn told(app: &App, work: &Work, asked: &BookingVersion) -> Result<Told, StoreError> {
    let values = &work.receipt.envelope.board;
    let profile = app.profiles.get(work.key.event.provider.as_str());
    let rule = profile.and_then(|profile| profile.rule(&work.receipt.event_type));
    let Some(board) = rule.and_then(|rule| rule.board.as_ref()).filter(|_| !values.is_empty()) else {
        return Ok(Told::default());
    };
    let before = match app.store.line_end(ITEM, &board::subject(asked)).await? {
        None => None,
        Some(id) => Some(before(app, id).await?),
    };
    board::told(asked, values, board, before.as_ref()).map_err(|_| corrupt())
}

async fn before(app: &App, id: String) -> Result<Before, StoreError> {
    let id = EventId::try_from(id).map_err(|_| corrupt())?;
    let event = board::operation(&id).map_err(|_| corrupt())?.event;
    let records = app.store.load_event(&event).await?.ok_or_else(corrupt)?;
    let step = records.receipt.board().cloned().ok_or_else(corrupt)?;
    Ok(Before { id, step })
}
