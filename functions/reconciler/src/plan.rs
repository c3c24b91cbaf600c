//! Starting a run and cutting it into parts; the scheduled passes; sending again what was lost.

use domain::ids::{Provider, Reference};
use domain::limits::BUCKET_MS;
use domain::reconcile::{Kind, PartKey, PartMessage, PartState, REDISPATCH_MS, Run, SCAN_PAGE, Window};
use domain::time::rfc3339;
use futures_util::future::join_all;
use runtime::App;
use store::{Cursor, StoreError};

use crate::record::Recorder;
use crate::{Reconciler, SIDE_BY_SIDE};

const HOUR_MS: i64 = 3_600_000;
/// Receipts are compared again when they are two hours old, and when they are 26: what an index showed late, and what
/// the first comparison met in an outage.
const PASSES_H: [u32; 2] = [2, 26];
/// How far back a pass looks before it has a cursor, and how much it takes in one run, in minutes.
const PASS_MINUTES: i64 = 24 * 60;
/// What the names of scheduled runs begin with; no caller's reference does.
pub const SCHEDULED_NAMES: [&str; 2] = ["pass-", "daily-"];
/// Who asked for a scheduled run.
const SCHEDULE: &str = "schedule";

/// What became of a request for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// It is recorded; its first message is sent, or will be.
    Created,
    /// The same was asked before.
    Exists(Box<Run>),
    /// Its reference is another run's.
    Conflict,
}

/// Records a run, once, and dispatches its first part.
///
/// # Errors
/// [`StoreError`]; the same request again finds out.
pub async fn start(app: &App, run: &Run) -> Result<Started, StoreError> {
    let now_ms = app.clock.now_ms();
    let started = match app.store.put_run(run, now_ms + REDISPATCH_MS).await? {
        None => Started::Created,
        Some(stands) if stands.content_hash == run.content_hash => Started::Exists(Box::new(stands)),
        Some(_) => return Ok(Started::Conflict),
    };
    dispatch(app, &run.id, &[PartKey::Plan], 0).await?;
    Ok(started)
}

/// Puts parts that are not there and sends their messages. A message that cannot be sent is sent by a later
/// [`redispatch`], since its part is durable.
async fn dispatch(app: &App, run: &Reference, parts: &[PartKey], dispatch: i64) -> Result<(), StoreError> {
    for chunk in parts.chunks(SIDE_BY_SIDE) {
        let sends = chunk.iter().map(|key| async move {
            app.store.put_part(run, key).await?;
            if let Err(error) = app.queues.send_part(&PartMessage::new(run.clone(), key), dispatch).await {
                tracing::warn!(%run, part = %key.id(), %error, "part not sent; it is sent again later");
            }
            Ok::<(), StoreError>(())
        });
        for sent in join_all(sends).await {
            sent?;
        }
    }
    Ok(())
}

/// A page of wallets: one part for each, and one for the next page.
pub(crate) async fn scan(recorder: &mut Recorder<'_>, after: Option<&str>) -> Result<(), StoreError> {
    let (wallets, next) = recorder.app.store.scan_wallets(after, SCAN_PAGE).await?;
    let mut parts: Vec<PartKey> =
        wallets.into_iter().map(|(tenant, wallet)| PartKey::Wallet { tenant, wallet }).collect();
    parts.extend(next.map(|after| PartKey::Scan { after: Some(after) }));
    dispatch(recorder.app, &recorder.run.id, &parts, 0).await
}

/// Sends the open parts of runs that are not done and have been waiting, and takes those that are done off the list.
///
/// # Errors
/// [`StoreError`] of the first run that failed.
pub async fn redispatch(app: &App) -> Result<(), StoreError> {
    let now_ms = app.clock.now_ms();
    for id in app.store.due_runs(now_ms).await? {
        let parts = app.store.load_parts(&id).await?;
        let open: Vec<PartKey> =
            parts.iter().filter(|part| part.state == PartState::Open).map(|part| part.key.clone()).collect();
        if !parts.is_empty() && open.is_empty() {
            app.store.push_run(&id, None).await?;
            continue;
        }
        let open = if parts.is_empty() { vec![PartKey::Plan] } else { open };
        dispatch(app, &id, &open, now_ms).await?;
        app.store.push_run(&id, Some(now_ms + REDISPATCH_MS)).await?;
    }
    Ok(())
}

impl Reconciler {
    /// The first part: makes the others.
    pub(crate) async fn plan(&self, run: &Run) -> Result<(), StoreError> {
        let listed: Vec<Provider> = self.lists.keys().filter_map(|slug| Provider::new(slug.as_str()).ok()).collect();
        let listing = self.app.profiles.destinations().filter(|destination| destination.list.is_some());
        let destinations: Vec<String> = listing.map(|destination| destination.name.clone()).collect();
        dispatch(&self.app, &run.id, &run.parts(&listed, &destinations), 0).await
    }

    /// The passes over receipts: each minute once per pass, under a durable cursor that moves on when the run that will
    /// compare it is recorded. Runs that are not done are sent again.
    ///
    /// # Errors
    /// [`StoreError`]; the next call goes on.
    pub async fn passes(&self) -> Result<(), StoreError> {
        let app = &self.app;
        for hours in PASSES_H {
            let end = (app.clock.now_ms() - i64::from(hours) * HOUR_MS).div_euclid(BUCKET_MS);
            let cursor = app.store.cursor(Cursor::Pass(hours), 0).await?;
            let from = cursor.unwrap_or(end - PASS_MINUTES);
            let to = end.min(from + PASS_MINUTES);
            if to <= from {
                continue;
            }
            let window = Window { from_ms: from * BUCKET_MS, to_ms: to * BUCKET_MS };
            let id = format!("pass-{hours}h-{}", rfc3339(window.from_ms));
            let reason = format!("receipts that are {hours} h old");
            let run = scheduled(app, &id, vec![Kind::Receipts], window, reason)?;
            // A run of this name that a stopped call left has its own end.
            let run = match start(app, &run).await? {
                Started::Exists(stands) => *stands,
                Started::Created => run,
                Started::Conflict => {
                    not_ours(&run.id);
                    continue;
                }
            };
            app.store.advance_cursor(Cursor::Pass(hours), 0, run.window.to_ms.div_euclid(BUCKET_MS)).await?;
        }
        redispatch(app).await
    }

    /// Everything else, once a day: wallets, reviews, the providers' lists and the destinations'.
    ///
    /// # Errors
    /// [`StoreError`]; the same day's next call goes on.
    pub async fn daily(&self) -> Result<(), StoreError> {
        let now_ms = self.app.clock.now_ms();
        let day: String = rfc3339(now_ms).chars().take(10).collect();
        let window = Window { from_ms: now_ms, to_ms: now_ms };
        let kinds = vec![Kind::Wallets, Kind::Reviews, Kind::ProviderList, Kind::Intents];
        let run = scheduled(&self.app, &format!("daily-{day}"), kinds, window, "every day".to_owned())?;
        if start(&self.app, &run).await? == Started::Conflict {
            not_ours(&run.id);
        }
        Ok(())
    }
}

/// Somebody else's run has the name of a scheduled one: its minutes are not compared, and the cursor says so by standing
/// still.
fn not_ours(id: &Reference) {
    tracing::error!(run = %id, "another run has the name of a scheduled one; that one is not started");
}

/// A run that nobody asked for. Its content is its name: overlapping schedules start it once.
fn scheduled(app: &App, id: &str, kinds: Vec<Kind>, window: Window, reason: String) -> Result<Run, StoreError> {
    let unnamed = |_| StoreError::Corrupt { what: "run name" };
    Ok(Run {
        id: Reference::new(id).map_err(unnamed)?,
        kinds,
        window,
        wallet: None,
        provider: None,
        actor: SCHEDULE.to_owned(),
        reason,
        content_hash: SCHEDULE.to_owned(),
        created_ms: app.clock.now_ms(),
    })
}
