//! One job: its records first, then its ledger, then (where its hold is open, or a charge is lacking) the
//! event that decided it.

use domain::event::CONTROL_PROVIDER;
use domain::ids::{JobId, TenantId};
use domain::money::Micros;
use domain::reconcile::{Finding, GRACE_MS, JobView, Subject, compare_job, lacks_charge};
use runtime::App;
use store::StoreError;

use crate::receipts::unreadable;

/// What one look at a job shows.
#[derive(Debug, Default)]
pub(crate) struct JobLook {
    pub(crate) findings: Vec<Finding>,
    /// The whole hold, while it is open.
    pub(crate) open_hold: Option<Micros>,
}

pub(crate) async fn examine(app: &App, tenant: &TenantId, job: &JobId) -> Result<JobLook, StoreError> {
    match look(app, tenant, job).await {
        Err(StoreError::Corrupt { what }) => {
            let subject = Subject::Job { tenant: tenant.clone(), job: job.clone() };
            Ok(JobLook { findings: vec![unreadable(subject, what)], open_hold: None })
        }
        other => other,
    }
}

async fn look(app: &App, tenant: &TenantId, job: &JobId) -> Result<JobLook, StoreError> {
    let Some(records) = app.store.load_job(tenant, job).await? else { return Ok(JobLook::default()) };
    let ledger = app.store.load_ledger(tenant, job).await?;
    let now_ms = app.clock.now_ms();
    let decided = records.transitions.last().filter(|last| {
        let ours = last.by.event.provider.as_str() == CONTROL_PROVIDER;
        (ledger.close.is_none() || lacks_charge(last, &ledger)) && !ours && now_ms - last.created_ms >= GRACE_MS
    });
    let decider = match decided {
        Some(last) => app.store.load_event(&last.by.event).await?,
        None => None,
    };
    let profile = app.profiles.get(records.job.provider.as_str());
    let view = JobView {
        records: &records,
        ledger: &ledger,
        decider: decider.as_ref().map(|event| (&event.receipt, event.operations.as_slice())),
        has_list: profile.is_some_and(|profile| profile.list.is_some()),
        now_ms,
    };
    let findings = compare_job(&view);
    let hold = records.hold().map_err(|_| StoreError::Corrupt { what: "hold" })?;
    Ok(JobLook { findings, open_hold: ledger.close.is_none().then_some(hold) })
}
