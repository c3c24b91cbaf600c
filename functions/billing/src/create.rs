//! One round of create-job: reads in order, decides, submits the job as a caller's request would be.

use std::collections::BTreeMap;

use domain::booking::BookingVersion;
use domain::decide::NoEffect;
use domain::decide::create::{self, Decision};
use domain::envelope::Envelope;
use domain::ids::{ProviderRef, TenantId};
use domain::job::Job;
use domain::ledger::Balance;
use domain::operation::Class;
use domain::submit::{MAX_METADATA_BYTES, RequestError, SubmitJob};
use runtime::App;
use runtime::consumer::Work;
use store::{Attached, Recorded, StoreError, Submitted};

use crate::board;
use crate::round::Round;

/// One round. The balance's own condition covers the hold, so nothing depends on the order of reads but the job and the
/// booking's versions. The job comes first: one without a version was then submitted otherwise, since its first version is
/// written with it. A version without the job was made between the two reads, and the job is read again.
pub async fn job(app: &App, work: &Work) -> Result<Round, StoreError> {
    let (envelope, now_ms) = (&work.receipt.envelope, app.clock.now_ms());
    let (Some(asked), Some(wallet)) = (BookingVersion::of(envelope, &work.by, now_ms), &envelope.wallet) else {
        let note = "the receipt has no tenant, booking, version or wallet".to_owned();
        return Ok(Round::Verdict(NoEffect::Review(Class::Unreadable, note)));
    };
    let mut stands = app.store.load_job(&asked.tenant, &asked.job).await?.map(|records| records.job);
    let versions = app.store.load_booking(&asked.tenant, &asked.booking).await?;
    if stands.is_none() && !versions.is_empty() {
        stands = app.store.load_job(&asked.tenant, &asked.job).await?.map(|records| records.job);
    }
    let balance = app.store.get_balance(&asked.tenant, wallet).await?;
    let ref_taken = match &envelope.provider_ref {
        Some(reference) => leads_elsewhere(app, work, reference, &asked).await?,
        None => false,
    };
    let job = submission(app, work, &asked, balance.as_ref());
    let view = create::View {
        asked: &asked,
        job: &job,
        versions: &versions,
        stands: stands.as_ref(),
        balance: balance.as_ref(),
        ref_taken,
    };
    match (create::decide(&work.ask(app), &view), &stands) {
        (Decision::None(verdict), _) => Ok(Round::Verdict(verdict)),
        (Decision::Create(job, delta), _) => {
            let mut delta = match &balance {
                Some(balance) => app.watching((&job.tenant, &job.wallet), balance, delta).await?,
                None => delta, // decide creates nothing without a balance
            };
            let told = board::told(app, work, &asked).await?;
            let asked = BookingVersion { board: !told.is_empty(), ..asked };
            delta.low.told.receipts.extend(told.receipts);
            delta.low.told.steps.extend(told.steps);
            let outgoing = match &balance {
                Some(balance) => app.authorising(&job, balance)?,
                None => None,
            };
            let submitted = app.store.submit_booked_job(&job, &delta, outgoing.as_slice(), &asked).await?;
            if submitted == Submitted::Created {
                app.send_told(&delta.low.told).await;
                app.send_outgoing(outgoing.as_slice()).await;
            }
            Ok(match submitted {
                Submitted::Created => Round::Verdict(NoEffect::Done),
                Submitted::ConditionFailed { .. } => Round::DecideAgain,
                Submitted::Conflict => Round::Conflict,
            })
        }
        (Decision::Record(Some(reference)), Some(job)) => match app.store.attach_ref(job, &reference).await? {
            Attached::Ours => record(app, work, asked).await,
            Attached::Taken | Attached::Other => Ok(Round::DecideAgain), // what stands now is judged anew
        },
        (Decision::Record(_), _) => record(app, work, asked).await,
    }
}

/// Another version that was committed meanwhile has moved the booking's line: what stands now is judged anew.
async fn record(app: &App, work: &Work, asked: BookingVersion) -> Result<Round, StoreError> {
    let told = board::told(app, work, &asked).await?;
    let asked = BookingVersion { board: !told.is_empty(), ..asked };
    Ok(match app.store.put_booking_version_telling(&asked, &told).await? {
        Recorded::Ours => {
            app.send_told(&told).await;
            Round::Verdict(NoEffect::Done)
        }
        Recorded::Passed => Round::DecideAgain,
        Recorded::Conflict => Round::Conflict,
    })
}

async fn leads_elsewhere(
    app: &App, work: &Work, reference: &ProviderRef, asked: &BookingVersion,
) -> Result<bool, StoreError> {
    let found = app.store.get_ref(&work.key.event.provider, reference).await?;
    Ok(found.is_some_and(|found| (&found.tenant, &found.job) != (&asked.tenant, &asked.job)))
}

/// The job as a caller would submit it: the same checks, the same pinned price and policies.
fn submission(app: &App, work: &Work, asked: &BookingVersion, balance: Option<&Balance>) -> Result<Job, RequestError> {
    let envelope: &Envelope = &work.receipt.envelope;
    let text = |id: Option<String>| id.unwrap_or_default();
    let hold = envelope.amount.and_then(|micros| domain::money::Micros::new(micros).ok());
    let booking = asked.booking.as_str();
    let labelled = (booking.len() <= MAX_METADATA_BYTES).then(|| ("booking".to_owned(), booking.to_owned()));
    let request = SubmitJob {
        provider: work.key.event.provider.to_string(),
        provider_job_ref: envelope.provider_ref.clone().map(String::from),
        model: text(envelope.model.clone().map(String::from)),
        wallet: text(envelope.wallet.clone().map(String::from)),
        hold: hold.map(|hold| hold.to_string()),
        request_id: None,
        metadata: BTreeMap::from_iter(labelled),
    };
    let tenant: TenantId = asked.tenant.clone();
    let job = request.job(tenant, asked.job.clone(), &app.profiles, &app.prices, app.clock.now_ms())?;
    match balance {
        Some(balance) => request.on(balance, job),
        None => Ok(job),
    }
}
