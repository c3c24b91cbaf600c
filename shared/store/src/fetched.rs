//! What was fetched for an event: put once per item, read with the receipt.

use domain::event::EventRef;
use domain::fetch::Fetched;
use domain::ids::ItemId;
use domain::keys;

use crate::error::classify;
use crate::item::{Item, decode, encode, text};
use crate::{Store, StoreError};

pub(crate) fn decode_fetched(item: Item) -> Result<(ItemId, Fetched), StoreError> {
    let id = text(&item, "sk").and_then(keys::fetched_of).ok_or(StoreError::Corrupt { what: "fetched record" })?;
    Ok((id, decode("fetched record", item)?))
}

impl Store {
    /// Freezes what was fetched for an item, if nothing was before: the first one stands, whatever a later one says.
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::Unknown`] it may or may not stand, and whoever reads the event sees.
    pub async fn put_fetched(&self, event: &EventRef, item: &ItemId, fetched: &Fetched) -> Result<(), StoreError> {
        let record = encode("fetched record", fetched, &keys::event_pk(event), &keys::fetched_sk(item))?;
        let put = self.put_if_absent(&self.names.events, record).await;
        put.map(|_| ()).map_err(|error| classify("put fetched record", &error))
    }
}
