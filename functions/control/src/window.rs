//! A replay's window: a provider's receipts by their minute of arrival, a bounded part at a time.
//!
//! A part looks through at most [`REPLAY_MINUTES`] and ends with a place: the minute, and the key behind
//! which the next part begins. The index gives keys only; arrival and status are read from the table.

use domain::event::EventRef;
use domain::ids::Provider;
use domain::keys::event_pk;
use domain::limits::{BUCKET_MS, REPLAY_EVENTS, REPLAY_MINUTES, SHARDS};
use domain::receipt::Receipt;
use domain::status::EventStatus;
use domain::time::parse_rfc3339;
use futures_util::future::join_all;
use runtime::App;
use runtime::problem::Problem;
use store::StoreError;

use crate::jobs::timestamp;

/// Minutes asked for side by side, each in every shard.
const MINUTES_AT_ONCE: i64 = 10;

/// A checked window, and where in it this part begins.
pub(crate) struct Window {
    provider: Provider,
    from_ms: i64,
    to_ms: i64,
    states: Option<Vec<EventStatus>>,
    pub(crate) part: u32,
    minute: i64,
    /// The partition key behind which it begins; empty for the whole minute.
    after: String,
}

impl Window {
    /// Checks the request. Without `states` it takes what is neither completed nor ignored.
    pub(crate) fn check(
        provider: &str, from: Option<String>, to: Option<String>, states: Option<Vec<EventStatus>>,
        after: Option<&str>, now_ms: i64,
    ) -> Result<Self, Problem> {
        let time = |name: &str, text: &str| {
            parse_rfc3339(text)
                .ok_or_else(|| Problem::invalid(format!("{name}: give a time such as 2026-11-29T12:00:00Z")))
        };
        let from = from.ok_or_else(|| Problem::bad_request("missing field `from`"))?;
        let from_ms = time("from", &from)?;
        // Asked for, not assumed: an end that is "now" would move from part to part.
        let to = to.ok_or_else(|| Problem::bad_request("missing field `to`"))?;
        let to_ms = time("to", &to)?;
        if from_ms >= to_ms || from_ms > now_ms {
            return Err(Problem::invalid(
                "from: the window is empty: `from` must be before `to`, and not in the future",
            ));
        }
        let first = from_ms.div_euclid(BUCKET_MS);
        let (part, minute, after) = match after {
            None => (0, first, String::new()),
            Some(place) => read_place(place)
                .filter(|(_, minute, _)| *minute >= first)
                .ok_or_else(|| Problem::invalid("after: give the `next` of the part before, as it is"))?,
        };
        Ok(Self {
            provider: Provider::new(provider).map_err(|error| Problem::invalid(error.to_string()))?,
            from_ms,
            to_ms,
            states,
            part,
            minute,
            after,
        })
    }

    /// What is asked for, for people: the same of every part.
    pub(crate) fn told(&self) -> String {
        let states = self.states.as_ref().map_or_else(
            || "neither completed nor ignored".to_owned(),
            |states| states.iter().map(|state| state.name()).collect::<Vec<_>>().join(", "),
        );
        format!("{} from {} to {}: {states}", self.provider, timestamp(self.from_ms), timestamp(self.to_ms))
    }

    /// Where this part begins.
    pub(crate) fn place(&self) -> String {
        write_place(self.part, self.minute, &self.after)
    }

    /// True when the event is within the window and in one of the states.
    pub(crate) fn takes(&self, receipt: &Receipt, status: EventStatus) -> bool {
        let state = match &self.states {
            Some(states) => states.contains(&status),
            None => !matches!(status, EventStatus::Completed | EventStatus::Ignored),
        };
        state && self.spans(receipt)
    }

    /// True when the event arrived within the window.
    pub(crate) fn spans(&self, receipt: &Receipt) -> bool {
        (self.from_ms..self.to_ms).contains(&receipt.arrival_ms)
    }

    /// The place of a next part that begins behind this event of this minute.
    pub(crate) fn behind(&self, (minute, event): &(i64, EventRef)) -> String {
        write_place(self.part + 1, *minute, &event_pk(event))
    }

    /// The events of this part, each with its minute, in order, and the place of the next part.
    pub(crate) async fn events(&self, app: &App) -> Result<(Vec<(i64, EventRef)>, Option<String>), StoreError> {
        let end = (self.to_ms - 1).min(app.clock.now_ms()).div_euclid(BUCKET_MS) + 1;
        let stop = end.min(self.minute + REPLAY_MINUTES);
        let mut found = Vec::new();
        let mut minute = self.minute;
        while minute < stop {
            let until = stop.min(minute + MINUTES_AT_ONCE);
            let minutes = (minute..until).map(|minute| self.minute(app, minute));
            for (minute, events) in (minute..).zip(join_all(minutes).await) {
                let room = REPLAY_EVENTS - found.len();
                let events = events?;
                let more = events.len() > room;
                found.extend(events.into_iter().take(room).map(|event| (minute, event)));
                if more {
                    let last = found.last().filter(|(at, _)| *at == minute).map(|(_, event)| event_pk(event));
                    return Ok((found, Some(write_place(self.part + 1, minute, &last.unwrap_or_default()))));
                }
            }
            minute = until;
        }
        let next = (stop < end).then(|| write_place(self.part + 1, stop, ""));
        Ok((found, next))
    }

    /// One minute's events over all shards, in order of their keys, one more than a part has room for.
    async fn minute(&self, app: &App, minute: i64) -> Result<Vec<EventRef>, StoreError> {
        let after = Some(self.after.as_str()).filter(|after| minute == self.minute && !after.is_empty());
        let reads =
            (0..SHARDS).map(|shard| app.store.receipts_of(&self.provider, minute, shard, after, REPLAY_EVENTS + 1));
        let mut events = Vec::new();
        for shard in join_all(reads).await {
            events.extend(shard?);
        }
        events.sort_by_cached_key(event_pk);
        Ok(events)
    }
}

fn write_place(part: u32, minute: i64, after: &str) -> String {
    format!("{part}.{minute}.{after}")
}

fn read_place(text: &str) -> Option<(u32, i64, String)> {
    let mut parts = text.splitn(3, '.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.to_owned()))
}
