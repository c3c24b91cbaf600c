//! Our jobs against a provider's own list: what was never delivered, what was told otherwise, and what is missing there.
//!
//! The list is read by the profile's pointers, bounded in pages, bytes and time. Only a list that was read to its end
//! says that a job is missing.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::ids::Provider;
use domain::keys;
use domain::limits::{EXPIRY_BUCKET_MS, SHARDS};
use domain::profile::{ListProfile, Profile};
use domain::reconcile::{CaseClass, ListPage, Listed, Subject, compare_listed, missing_at_provider, read_page};
use futures_util::future::join_all;
use runtime::fetch::{FetchError, Get};
use runtime::gateway::path_part;
use store::StoreError;

use crate::record::Recorder;
use crate::{ListAccess, MAX_ENTRIES, MAX_PAGE_BYTES, PartError, Reconciler, SIDE_BY_SIDE, TIME_BUDGET_MS, reviews};

/// Time for one page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// The classes of case that compare a job with its entry in the list.
const BY_ENTRY: [CaseClass; 3] = [CaseClass::NeverDelivered, CaseClass::StatusDiffers, CaseClass::UsageDiffers];

/// What one reading of a list showed.
#[derive(Debug, Default)]
struct Seen {
    /// The references that it has.
    listed: BTreeSet<String>,
    /// The cases whose fact it shows.
    found: BTreeSet<String>,
    /// References whose own records could not be read: of these nothing is known.
    unread: BTreeSet<String>,
}

impl Reconciler {
    pub(crate) async fn compare_list(&self, recorder: &mut Recorder<'_>, provider: &Provider) -> Result<(), PartError> {
        let profile = self.app.profiles.get(provider.as_str());
        let (Some(profile), Some(access)) = (profile, self.lists.get(provider.as_str())) else { return Ok(()) };
        let Some(list) = &profile.list else { return Ok(()) };
        let access = match access {
            Ok(access) => access,
            Err(missing) => {
                recorder.result.skipped.push(format!("list of {provider}: {missing}"));
                return Ok(());
            }
        };
        match self.read_list(recorder, profile, list, access).await {
            Ok(Some(seen)) => {
                self.gone_from_list(recorder, profile, &seen).await?;
                Ok(self.missing(recorder, profile, &seen.listed).await?)
            }
            Ok(None) => Ok(()),
            Err(PartError::Fetch(error)) if !error.is_transient() => {
                recorder.result.skipped.push(format!("list of {provider}: {error}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Compares page by page; what it showed, if it was read to its end.
    async fn read_list(
        &self, recorder: &mut Recorder<'_>, profile: &Profile, list: &ListProfile, access: &ListAccess,
    ) -> Result<Option<Seen>, PartError> {
        let stop_ms = self.app.clock.now_ms() + TIME_BUDGET_MS;
        let (mut seen, mut cursor, mut unreadable) = (Seen::default(), None::<String>, 0);
        for _ in 0..list.max_pages {
            let body = self.page(list, access, cursor.as_deref()).await?;
            let page = match read_page(list, &body) {
                Ok(page) => page,
                Err(why) => {
                    recorder.result.skipped.push(format!("list of {}: {why}", profile.slug));
                    return Ok(None);
                }
            };
            unreadable += page.unreadable;
            self.compare_page(recorder, profile, &page, &mut seen).await?;
            seen.listed.extend(page.entries.into_iter().map(|entry| entry.reference.to_string()));
            let circle = page.next.is_some() && page.next == cursor;
            cursor = page.next;
            if cursor.is_none() {
                let skipped = format!("list of {}: {unreadable} entries could not be read", profile.slug);
                recorder.result.skipped.extend((unreadable > 0).then_some(skipped));
                // An entry that could not be read may be any of our jobs.
                return Ok((unreadable == 0).then_some(seen));
            }
            if circle || seen.listed.len() >= MAX_ENTRIES || self.app.clock.now_ms() > stop_ms {
                break;
            }
        }
        recorder.result.skipped.push(format!("list of {}: not read to its end", profile.slug));
        Ok(None)
    }

    async fn page(&self, list: &ListProfile, access: &ListAccess, cursor: Option<&str>) -> Result<Vec<u8>, FetchError> {
        let mut url = access.url.clone();
        if let (Some(param), Some(cursor)) = (&list.page_param, cursor) {
            let separator = if url.contains('?') { '&' } else { '?' };
            // The same bytes as in a path, in the percent form of a query.
            url.push_str(&format!("{separator}{param}={}", path_part(cursor).replace('~', "%")));
        }
        let (max_bytes, timeout) = (MAX_PAGE_BYTES, PAGE_TIMEOUT);
        self.fetch.get(Get { url, headers: access.headers.clone(), max_bytes, timeout }).await
    }

    async fn compare_page(
        &self, recorder: &mut Recorder<'_>, profile: &Profile, page: &ListPage, seen: &mut Seen,
    ) -> Result<(), StoreError> {
        recorder.result.examined += page.entries.len() as u64;
        let ended: Vec<&Listed> = page.entries.iter().filter_map(|entry| entry.ended.as_ref()).collect();
        for chunk in ended.chunks(SIDE_BY_SIDE) {
            let compared = chunk.iter().map(|listed| async move {
                let store = &self.app.store;
                // A job that is not ours is none of our business: an account may serve several systems.
                let Some(found) = store.get_ref(&profile.slug, &listed.reference).await? else { return Ok(None) };
                let Some(records) = store.load_job(&found.tenant, &found.job).await? else { return Ok(None) };
                let ledger = store.load_ledger(&found.tenant, &found.job).await?;
                Ok(compare_listed(listed, &records, &ledger, self.app.clock.now_ms()))
            });
            for (listed, finding) in chunk.iter().zip(join_all(compared).await) {
                match finding {
                    Ok(Some(finding)) => {
                        seen.found.insert(finding.case_id());
                        recorder.record(&finding).await?;
                    }
                    Ok(None) => {}
                    // The wallet's own part tells a person of a job that cannot be read.
                    Err(StoreError::Corrupt { .. }) => {
                        seen.unread.insert(listed.reference.to_string());
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Resolves the cases whose fact the list does not show any more: jobs that were missing and are listed now, and jobs
    /// whose entry says by now what is recorded here.
    async fn gone_from_list(
        &self, recorder: &mut Recorder<'_>, profile: &Profile, seen: &Seen,
    ) -> Result<(), StoreError> {
        let mut classes = vec![CaseClass::MissingAtProvider];
        classes.extend(BY_ENTRY);
        for case in reviews::open_cases(recorder, &classes).await? {
            let Subject::Job { tenant, job } = &case.subject else { continue };
            let records = match self.app.store.load_job(tenant, job).await {
                Ok(Some(records)) if records.job.provider == profile.slug => records,
                Ok(_) => continue,
                Err(StoreError::Corrupt { what }) => {
                    recorder.unreadable(&case.subject.to_string(), what);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let listed = case.listed.as_ref().map(|listed| &listed.reference);
            let reference = listed.or(records.job.provider_ref.as_ref()).map(|reference| reference.as_str());
            let told = reference.is_some_and(|r| seen.listed.contains(r) && !seen.unread.contains(r));
            if told && !seen.found.contains(&case.id) {
                reviews::gone(recorder, &case).await?;
            }
        }
        Ok(())
    }

    /// Running jobs that the list does not have, by the buckets in which their holds will expire.
    async fn missing(
        &self, recorder: &mut Recorder<'_>, profile: &Profile, listed: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let (store, now_ms) = (&self.app.store, self.app.clock.now_ms());
        let first = now_ms.div_euclid(EXPIRY_BUCKET_MS);
        let last = now_ms.saturating_add(profile.hold_life_ms).div_euclid(EXPIRY_BUCKET_MS);
        let buckets: Vec<(i64, u32)> = (first..=last).flat_map(|b| (0..SHARDS).map(move |shard| (b, shard))).collect();
        let mut seen = BTreeSet::new();
        for chunk in buckets.chunks(SIDE_BY_SIDE) {
            for jobs in join_all(chunk.iter().map(|(bucket, shard)| store.jobs_expiring(*bucket, *shard))).await {
                for (tenant, job) in jobs? {
                    if !seen.insert((tenant.clone(), job.clone())) {
                        continue; // an extended hold is in several buckets
                    }
                    let records = match store.load_job(&tenant, &job).await {
                        Ok(Some(records)) => records,
                        // The wallet's own part tells a person of a job that cannot be read.
                        Ok(None) | Err(StoreError::Corrupt { .. }) => continue,
                        Err(error) => return Err(error),
                    };
                    let reference = records.job.provider_ref.as_ref();
                    if records.job.provider != profile.slug || reference.is_none_or(|r| listed.contains(r.as_str())) {
                        continue;
                    }
                    let ledger = match store.load_ledger(&tenant, &job).await {
                        Ok(ledger) => ledger,
                        Err(StoreError::Corrupt { what }) => {
                            recorder.unreadable(&keys::job_pk(&tenant, &job), what);
                            continue;
                        }
                        Err(error) => return Err(error),
                    };
                    if let Some(finding) = missing_at_provider(&records, &ledger, now_ms) {
                        recorder.record(&finding).await?;
                    }
                }
            }
        }
        Ok(())
    }
}
