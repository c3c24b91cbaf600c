//! The list of reviews: what waits for a person, oldest first, with its evidence, its age, the money that
//! hangs on it, and what may be done. No payload.
//!
//! The index gives keys only. Each row is read from the table: one that is no review any more is passed, and
//! so is an operation whose effect exists; one of a kind that this program does not know is shown, and so is
//! one that cannot be read.

use domain::event::EventRef;
use domain::limits::{REVIEWS_EXAMINED, REVIEWS_PER_PAGE, SHARDS};
use domain::operation::{OperationKey, OperationRecord, OperationState};
use domain::receipt::{Conflict, Receipt};
use domain::review::{Action, ReviewId, allowed, parse_span_ms};
use futures_util::future::join_all;
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse, path_part};
use runtime::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{ReviewRow, StoreError};

use crate::jobs::timestamp;
use crate::risk::{Subject, subject};
use crate::unavailable;

/// Rows read side by side.
const SIDE_BY_SIDE: usize = 25;

/// Which reviews are meant.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filter {
    pub(crate) provider: Option<String>,
    pub(crate) tenant: Option<String>,
    /// The class, such as `overage`; `conflict` for other content under a known id.
    pub(crate) reason: Option<String>,
    /// The same as `reason`.
    pub(crate) class: Option<String>,
    /// A span: `90`, `30m`, `2h`, `1d`.
    pub(crate) older_than: Option<String>,
}

/// A filter whose span was read.
pub(crate) struct Asked {
    filter: Filter,
    before_ms: i64,
}

impl Filter {
    pub(crate) fn check(self, now_ms: i64) -> Result<Asked, Problem> {
        let before_ms = match self.older_than.as_deref() {
            None => i64::MAX,
            Some(text) => {
                let refused = || Problem::invalid("older_than: give whole seconds, or a number with s, m, h or d");
                now_ms.saturating_sub(parse_span_ms(text).ok_or_else(refused)?)
            }
        };
        Ok(Asked { filter: self, before_ms })
    }
}

impl Asked {
    fn takes(&self, review: &Review) -> bool {
        let same = |asked: &Option<String>, found: &str| asked.as_deref().is_none_or(|asked| asked == found);
        let provider = review.id.as_ref().and_then(ReviewId::event).map(|event| event.provider.as_str());
        let tenant = review.subject.tenant.as_ref().map(domain::ids::TenantId::as_str);
        same(&self.filter.provider, provider.unwrap_or_default())
            && same(&self.filter.tenant, tenant.unwrap_or_default())
            && same(&self.filter.reason, &review.reason)
            && same(&self.filter.class, &review.reason)
    }
}

/// One open review.
pub(crate) struct Review {
    /// `None` for a kind that this program does not know.
    pub(crate) id: Option<ReviewId>,
    pub(crate) row: ReviewRow,
    pub(crate) reason: String,
    pub(crate) subject: Subject,
    pub(crate) actions: Vec<Action>,
    evidence: Value,
}

impl Review {
    fn json(&self, now_ms: i64) -> Value {
        let id = self.id.as_ref().map(ToString::to_string);
        let kind = match &self.id {
            Some(ReviewId::Operation(_)) => "operation",
            Some(ReviewId::Conflict(..)) => "conflict",
            Some(ReviewId::Case(_)) => "case",
            None => "unknown",
        };
        let (event, subject) = (self.id.as_ref().and_then(ReviewId::event), &self.subject);
        json!({
            "id": id, "path": id.as_deref().map(|id| format!("/control/reviews/{}", path_part(id))), "kind": kind,
            "reason": self.reason, "since": timestamp(self.row.since_ms),
            "age_s": (now_ms - self.row.since_ms).max(0) / 1_000, "event": event,
            "provider": event.map(|event| &event.provider), "tenant": subject.tenant, "job": subject.job,
            "wallet": subject.wallet, "at_risk": subject.risk.map(|risk| risk.json()), "actions": self.actions,
            "close_needs_release": self.closes_a_hold(), "evidence": self.evidence,
        })
    }

    /// True when closing it would leave an open hold behind that nobody settles.
    fn closes_a_hold(&self) -> bool {
        use domain::operation::OperationName::SettleUsage;
        let settles = matches!(&self.id, Some(ReviewId::Operation(key)) if key.name == SettleUsage);
        settles && self.subject.holds
    }
}

/// A page of reviews, and where the next one begins.
pub(crate) struct Page {
    pub(crate) reviews: Vec<Review>,
    pub(crate) next: Option<String>,
}

/// The place of each shard behind which a page begins, as its cursor.
type Places = Vec<Option<(i64, String, String)>>;

fn read_cursor(text: Option<&str>) -> Result<Places, Problem> {
    let refused = || Problem::invalid("after: give the `next` of the page before, as it is");
    let Some(text) = text else { return Ok(vec![None; SHARDS as usize]) };
    let places: Places = serde_json::from_str(text).map_err(|_| refused())?;
    if places.len() == SHARDS as usize { Ok(places) } else { Err(refused()) }
}

fn write_cursor(rows: &[Option<ReviewRow>]) -> String {
    let place = |row: &Option<ReviewRow>| row.as_ref().map(|row| (row.since_ms, row.pk.clone(), row.sk.clone()));
    let places: Places = rows.iter().map(place).collect();
    serde_json::to_string(&places).unwrap_or_default() // numbers and texts: cannot fail
}

/// Reads one page: at most `limit` reviews that the filter takes, at most [`REVIEWS_EXAMINED`] rows looked at.
pub(crate) async fn page(app: &App, asked: &Asked, after: Option<&str>, limit: usize) -> Result<Page, Problem> {
    let places = read_cursor(after)?;
    let row = |(since_ms, pk, sk)| ReviewRow { since_ms, pk, sk };
    let mut behind: Vec<Option<ReviewRow>> = places.into_iter().map(|place| place.map(row)).collect();
    let reads =
        (0_u32..).zip(&behind).map(|(shard, after)| app.store.review_rows(shard, after.as_ref(), REVIEWS_EXAMINED));
    let (mut rows, mut full) = (Vec::new(), false);
    for (shard, read) in join_all(reads).await.into_iter().enumerate() {
        let read = read.map_err(unavailable)?;
        full |= read.len() == REVIEWS_EXAMINED;
        rows.extend(read.into_iter().map(|row| (row, shard)));
    }
    // Stable: within a shard the rows stay in the order that its cursor goes by.
    rows.sort_by_key(|(row, _)| row.since_ms);
    let more = full || rows.len() > REVIEWS_EXAMINED;
    rows.truncate(REVIEWS_EXAMINED);
    let mut reviews = Vec::new();
    let all = rows.len();
    for (taken, chunk) in rows.chunks(SIDE_BY_SIDE).enumerate() {
        let read = join_all(chunk.iter().map(|(row, _)| look(app, row))).await;
        for (place, ((row, shard), review)) in chunk.iter().zip(read).enumerate() {
            if row.since_ms > asked.before_ms {
                return Ok(Page { reviews, next: None }); // the rest is younger still
            }
            behind[*shard] = Some(row.clone());
            reviews.extend(review.map_err(unavailable)?.filter(|review| asked.takes(review)));
            if reviews.len() == limit {
                let last = taken * SIDE_BY_SIDE + place + 1 == all && !more;
                return Ok(Page { reviews, next: (!last).then(|| write_cursor(&behind)) });
            }
        }
    }
    Ok(Page { reviews, next: more.then(|| write_cursor(&behind)) })
}

/// Reads one row's review from the table; `None` when it is none any more. One whose own record cannot be read
/// is shown as that, so that it hides no other: nothing can be decided on it before it is repaired.
pub(crate) async fn look(app: &App, row: &ReviewRow) -> Result<Option<Review>, StoreError> {
    match read(app, row).await {
        Err(StoreError::Corrupt { what }) => {
            let evidence = json!({ "note": format!("a stored {what} cannot be read"), "row": [row.pk, row.sk] });
            let (id, reason, actions) = (row.id(), "unreadable".to_owned(), Vec::new());
            Ok(Some(Review { id, row: row.clone(), reason, subject: Subject::default(), actions, evidence }))
        }
        other => other,
    }
}

async fn read(app: &App, row: &ReviewRow) -> Result<Option<Review>, StoreError> {
    match row.id() {
        Some(ReviewId::Operation(key)) => operation(app, row, key).await,
        Some(ReviewId::Conflict(event, hash)) => conflict(app, row, event, hash).await,
        Some(ReviewId::Case(case)) => Ok(crate::cases::look(app, &case).await?.map(|shown| {
            let crate::cases::Shown { reason, subject, actions, evidence } = shown;
            Review { id: Some(ReviewId::Case(case)), row: row.clone(), reason, subject, actions, evidence }
        })),
        None => {
            let Some(open) = app.store.open_row(row).await? else { return Ok(None) };
            let known = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
            let evidence = json!({ "note": open.note, "row": [row.pk, row.sk] });
            let (reason, subject) = (known(open.class, "unknown"), Subject::default());
            Ok(Some(Review { id: None, row: row.clone(), reason, subject, actions: Vec::new(), evidence }))
        }
    }
}

async fn operation(app: &App, row: &ReviewRow, key: OperationKey) -> Result<Option<Review>, StoreError> {
    let (record, receipt) = match app.store.load_event(&key.event).await {
        Ok(Some(records)) => (records.operation(&key).cloned(), Some(records.receipt)),
        Ok(None) => (None, None),
        Err(StoreError::Corrupt { .. }) => (app.store.get_operation(&key).await?, None),
        Err(error) => return Err(error),
    };
    let Some(record) = record.filter(|record| record.state == OperationState::Review) else { return Ok(None) };
    let subject = match &receipt {
        Some(receipt) if has_effect(app, &key, &record, receipt).await? => return Ok(None),
        Some(receipt) => subject(app, &key, receipt).await?,
        None => Subject::default(),
    };
    let (reason, actions) = (record.class.name(), allowed(&record));
    let evidence = operation_evidence(&key, &record, receipt.as_ref());
    let id = Some(ReviewId::Operation(key));
    Ok(Some(Review { id, row: row.clone(), reason, subject, actions, evidence }))
}

/// True when the operation's own effect exists, whatever its record says: another of the event's operations
/// may have brought it about.
async fn has_effect(
    app: &App, key: &OperationKey, record: &OperationRecord, receipt: &Receipt,
) -> Result<bool, StoreError> {
    match app.store.effects_of(&receipt.of_item(&key.item)).await {
        Ok(effects) => Ok(effects.effect(key, Some(record)).is_some()),
        Err(StoreError::Corrupt { .. }) => Ok(false), // a damaged job's review is shown
        Err(error) => Err(error),
    }
}

fn operation_evidence(key: &OperationKey, record: &OperationRecord, receipt: Option<&Receipt>) -> Value {
    json!({
        "operation": key.name, "consumer": key.name.consumer(), "item": key.item, "note": record.note,
        "attempts": record.attempts, "generation": record.generation, "revision": record.revision,
        "type": receipt.map(|r| r.event_type.as_str()), "received_at": receipt.map(|r| timestamp(r.arrival_ms)),
        "first_sent_at": receipt.and_then(|r| r.first_sent_ms).map(timestamp),
        "outcome": receipt.and_then(|r| r.envelope.outcome), "sequence": receipt.and_then(|r| r.envelope.sequence),
    })
}

async fn conflict(app: &App, row: &ReviewRow, event: EventRef, hash: String) -> Result<Option<Review>, StoreError> {
    let Some(conflict) = app.store.get_conflict(&event, &hash).await? else { return Ok(None) };
    if conflict.review_since_ms.is_none() {
        return Ok(None);
    }
    let receipt = match app.store.load_event(&event).await {
        Ok(records) => records.map(|records| records.receipt),
        Err(StoreError::Corrupt { .. }) => None,
        Err(error) => return Err(error),
    };
    let envelope = receipt.as_ref().map(|receipt| &receipt.envelope);
    let subject = Subject {
        tenant: envelope.and_then(|e| e.tenant.clone()),
        job: envelope.and_then(|e| e.job.clone()),
        wallet: envelope.and_then(|e| e.wallet.clone()),
        ..Subject::default()
    };
    let reason = if hash == "unreadable" { "unreadable" } else { "conflict" }.to_owned();
    let evidence = json!({
        "payload_hash": conflict.payload_hash, "stored_hash": receipt.as_ref().map(|r| &r.payload_hash),
        "received_at": timestamp(conflict.arrival_ms), "differs_in": receipt.as_ref().map(|r| differing(r, &conflict)),
        "note": if reason == "unreadable" { "stored records of this event cannot be read" } else { "the same event id with other content had no effect" },
    });
    let id = Some(ReviewId::Conflict(event, hash));
    Ok(Some(Review { id, row: row.clone(), reason, subject, actions: vec![Action::Close], evidence }))
}

/// The business fields that differ, by name.
fn differing(receipt: &Receipt, conflict: &Conflict) -> Vec<&'static str> {
    let (a, b) = (&receipt.envelope, &conflict.envelope);
    let fields = [
        ("outcome", a.outcome != b.outcome),
        ("usage", a.usage != b.usage),
        ("amount", a.amount != b.amount),
        ("currency", a.currency != b.currency),
        ("sequence", a.sequence != b.sequence),
        ("reference", a.reference != b.reference),
        ("ref", a.provider_ref != b.provider_ref),
        ("model", a.model != b.model),
    ];
    fields.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}

/// `GET /control/reviews?provider=&tenant=&reason=&class=&older_than=&limit=&after=`.
pub(crate) async fn list(app: &App, event: &GatewayEvent) -> Result<GatewayResponse, Problem> {
    let now_ms = app.clock.now_ms();
    let filter = Filter {
        provider: event.query("provider"),
        tenant: event.query("tenant"),
        reason: event.query("reason"),
        class: event.query("class"),
        older_than: event.query("older_than"),
    };
    let limit = crate::statements::limit(event, REVIEWS_PER_PAGE)?;
    let found = page(app, &filter.check(now_ms)?, event.query("after").as_deref(), limit).await?;
    let reviews: Vec<Value> = found.reviews.iter().map(|review| review.json(now_ms)).collect();
    Ok(GatewayResponse::json(200, &json!({ "reviews": reviews, "next": found.next })))
}
