//! Holds past their expiry are given back: by their own buckets and their own durable cursor, in a
//! transaction that also checks that the job has not ended meanwhile.

use domain::decide::expire;
use domain::ids::{JobId, TenantId};
use domain::limits::{DECIDE_AGAIN_LIMIT, EXPIRY_BUCKET_MS};
use runtime::App;
use runtime::retry::Again;
use store::{Commit, Cursor, StoreError};

use crate::Report;

/// How far back the first run looks, before a cursor exists: no hold is older than the system.
const FIRST_LOOK_BACK_MS: i64 = 24 * 3_600_000;
/// Empty buckets after which the cursor is saved all the same.
const SAVE_EVERY: i64 = 60;

/// Closes the expired holds of one shard.
pub async fn sweep(app: &App, shard: u32, stop_ms: i64, report: &mut Report) -> Result<(), StoreError> {
    let now_ms = app.clock.now_ms();
    let first = (now_ms - FIRST_LOOK_BACK_MS).div_euclid(EXPIRY_BUCKET_MS);
    let end = now_ms.div_euclid(EXPIRY_BUCKET_MS); // the first bucket that is not over
    let saved = app.store.cursor(Cursor::Expiry, shard).await?;
    let mut unsaved = 0;
    for bucket in saved.unwrap_or(first)..end {
        if app.clock.now_ms() > stop_ms {
            return Ok(()); // the next run goes on from the cursor
        }
        let jobs = app.store.jobs_expiring(bucket, shard).await?;
        for (tenant, job) in &jobs {
            match close(app, tenant, job).await {
                Ok(closed) => report.expired += usize::from(closed),
                // One damaged job must not keep the holds of all others: `audit` names it.
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(%tenant, %job, %error, "expired hold not closed; passed");
                }
                Err(error) => return Err(error),
            }
        }
        unsaved += 1;
        if bucket + 1 == end || !jobs.is_empty() || unsaved >= SAVE_EVERY {
            app.store.advance_cursor(Cursor::Expiry, shard, bucket + 1).await?;
            unsaved = 0;
        }
    }
    Ok(())
}

/// Closes one hold if it is expired, open and its job has not ended; true when this call closed it. The reconciler
/// asks for holds that the sweep missed.
///
/// # Errors
/// [`StoreError`].
pub async fn close(app: &App, tenant: &TenantId, job: &JobId) -> Result<bool, StoreError> {
    let mut again = Again::new(app);
    for _ in 0..DECIDE_AGAIN_LIMIT {
        match close_once(app, tenant, job).await {
            Ok(Some(Commit::Committed)) => return Ok(true),
            Ok(None) => return Ok(false),
            Ok(Some(Commit::ConditionFailed(_))) => {}
            Ok(Some(Commit::Conflict)) => again.conflict("expire").await?,
            Err(error) => again.after(error).await?,
        }
    }
    Err(StoreError::Busy { operation: "expire", code: "other writers won every time".to_owned() })
}

async fn close_once(app: &App, tenant: &TenantId, job: &JobId) -> Result<Option<Commit>, StoreError> {
    let ledger = app.store.load_ledger(tenant, job).await?;
    let Some(records) = app.store.load_job(tenant, job).await? else { return Ok(None) };
    let Some(balance) = app.store.get_balance(tenant, &records.job.wallet).await? else { return Ok(None) };
    match expire::decide(&records, &ledger, &balance, app.clock.now_ms()) {
        Some(posting) => {
            let posting = app.telling(posting, &balance).await?;
            let committed = app.store.commit(&posting).await?;
            if committed == Commit::Committed {
                app.send_posted(&posting).await;
            }
            Ok(Some(committed))
        }
        None => Ok(None),
    }
}
