//! The partition and sort keys of every record. `|` separates the parts, each escaped.

use crate::event::{EventId, EventRef};
use crate::ids::{BookingId, ItemId, JobId, Provider, ProviderRef, Reference, TenantId, WalletId, escape, unescape};
use crate::limits::SHARDS;
use crate::operation::{Consumer, OperationKey, OperationName, hex_sha256};

/// Sort key of a receipt.
pub const RECEIPT: &str = "r";
/// Sort key of the count of later deliveries.
pub const DELIVERIES: &str = "d";
/// Sort key of a job's immutable record.
pub const JOB: &str = "j";
/// Sort key of the provider's reference that was attached to a job after its submission.
pub const ATTACHED: &str = "f";
/// Sort key of a provider reference.
pub const REF: &str = "r";
/// Sort key of a job's progress.
pub const PROGRESS: &str = "p";
/// Sort key of the one close of a hold.
pub const CLOSE: &str = "c";

/// Partition of an event: its receipt, operations, conflicts and delivery count.
pub fn event_pk(event: &EventRef) -> String {
    format!("E|{}|{}", event.provider, escape(event.id.as_str()))
}

/// The event of a partition key, for keys read from an index.
pub fn event_of_pk(pk: &str) -> Option<EventRef> {
    let (provider, id) = pk.strip_prefix("E|")?.split_once('|')?;
    Some(EventRef { provider: Provider::new(provider).ok()?, id: EventId::try_from(unescape(id)).ok()? })
}

/// Sort key of an operation's record.
pub fn operation_sk(key: &OperationKey) -> String {
    format!("o|{}|{}|{}", escape(key.item.as_str()), key.name.consumer(), key.name)
}

/// Sort key of what was fetched for an item. It sorts between the count of deliveries and the operations, so that one
/// query reads it with them.
pub fn fetched_sk(item: &ItemId) -> String {
    format!("f|{}", escape(item.as_str()))
}

/// The item of such a sort key.
pub fn fetched_of(sk: &str) -> Option<ItemId> {
    ItemId::new(unescape(sk.strip_prefix("f|")?)).ok()
}

/// The operation of a partition and sort key.
pub fn operation_of(pk: &str, sk: &str) -> Option<OperationKey> {
    let event = event_of_pk(pk)?;
    let mut parts = sk.strip_prefix("o|")?.split('|');
    let item = ItemId::new(unescape(parts.next()?)).ok()?;
    let consumer = parts.next()?;
    let name: OperationName = parts.next()?.parse().ok()?;
    Consumer::ALL.into_iter().find(|c| c.as_str() == consumer)?;
    Some(OperationKey { event, item, name })
}

/// The content hash of a conflict's sort key.
pub fn conflict_of(sk: &str) -> Option<&str> {
    sk.strip_prefix("x|")
}

/// Sort key of a conflict: another content under the same event id.
pub fn conflict_sk(payload_hash: &str) -> String {
    format!("x|{payload_hash}")
}

/// Partition of a job: its record and transitions (jobs table), its settlements (ledger table).
pub fn job_pk(tenant: &TenantId, job: &JobId) -> String {
    format!("J|{}|{}", escape(tenant.as_str()), escape(job.as_str()))
}

/// Sort key of a transition; fixed width, so that versions sort.
pub fn transition_sk(version: u32) -> String {
    format!("t|{version:06}")
}

/// Sort key of a late capture for a transition's version.
pub fn late_capture_sk(version: u32) -> String {
    format!("l|{version:06}")
}

/// Sort key of an extension of a hold; fixed width, so that numbers sort.
pub fn extension_sk(number: u32) -> String {
    format!("h|{number:06}")
}

/// Sort key of a correction of a job's charge.
pub fn adjust_sk(reference: &Reference) -> String {
    format!("a|{}", escape(reference.as_str()))
}

/// Sort key of a reversal of a job's charge.
pub fn reverse_sk(reference: &Reference) -> String {
    format!("v|{}", escape(reference.as_str()))
}

/// Sort key of a reversal of a funding, by the payment and what was refunded of it in all.
pub fn funding_reversal_sk(reference: &Reference, refunded_in_all_micros: i64) -> String {
    format!("v|{}|{refunded_in_all_micros:020}", escape(reference.as_str()))
}

/// Sort key of the place that the next correction or reversal of a job takes.
pub fn slot_sk(number: usize) -> String {
    format!("n|{number:06}")
}

/// Sort key of the place that the next reversal of a funding takes.
pub fn funding_slot_sk(reference: &Reference, number: usize) -> String {
    format!("n|{}|{number:06}", escape(reference.as_str()))
}

/// Partition of a control request: what was asked, by whom and why; append-only.
pub fn request_pk(kind: &str, tenant: &TenantId, subject: &str, reference: &Reference) -> String {
    format!("Q|{kind}|{}|{}|{}", escape(tenant.as_str()), escape(subject), escape(reference.as_str()))
}

/// Partition of the decisions on one review, by its id's text; append-only.
pub fn decision_pk(review: &str) -> String {
    format!("Q|review|{}", escape(review))
}

/// Sort key of the decision on one revision of what was in review: one decision each.
pub fn decision_sk(revision: u64) -> String {
    format!("q|{revision:012}")
}

/// What the partition of a reconciliation case begins with.
pub const CASE_PREFIX: &str = "Q|case|";

/// Partition of a replay request, by its reference; append-only.
pub fn replay_pk(reference: &Reference) -> String {
    format!("Q|replay|{}", escape(reference.as_str()))
}

/// Sort key of one part of a replay.
pub fn replay_sk(part: u32) -> String {
    format!("q|{part:06}")
}

/// Sort key of a replay's audit item beside the receipt. It sorts between the operations and the receipt,
/// so that one query reads them together.
pub fn replayed_sk(reference: &Reference) -> String {
    format!("p|{}", escape(reference.as_str()))
}

/// Partition of the pause switches.
pub const SWITCHES_PK: &str = "S|pauses";
/// Sort key of the pause switches.
pub const SWITCHES: &str = "s";

/// Partition of the history of one switch; append-only.
pub fn switched_pk(name: &str) -> String {
    format!("Q|pause|{}", escape(name))
}

/// Index key of the operations that one switch holds back, in one shard.
pub fn parked_shard(switch: &str, shard: u32) -> String {
    format!("paused.{switch}.{shard}")
}
/// Partition of a booking: the versions of it that were taken in (jobs table).
pub fn booking_pk(tenant: &TenantId, booking: &BookingId) -> String {
    format!("B|{}|{}", escape(tenant.as_str()), escape(booking.as_str()))
}

/// Sort key of a booking's version; fixed width, so that versions sort.
pub fn booking_sk(version: u32) -> String {
    format!("b|{version:010}")
}

/// Partition of an intent: what is to leave the system under a key, and whether it did. The key's parts
/// are escaped already.
pub fn intent_pk(key: &str) -> String {
    format!("I|{key}")
}

/// Sort key of an intent.
pub const INTENT: &str = "i";

/// Partition of the end of a line: the last event about `subject` that an ordered subscription is told. The subject is
/// a partition key itself, and a subscription's name has no `|`.
pub fn line_pk(subscription: &str, subject: &str) -> String {
    format!("O|{subscription}|{subject}")
}

/// Sort key of the end of a line.
pub const LINE: &str = "l";

/// Partition of a provider's last refused deliveries.
pub fn rejected_pk(provider: &Provider) -> String {
    format!("N|{provider}")
}

/// Sort key of a slot of that ring; fixed width, so that slots are one range.
pub fn rejected_sk(slot: u64) -> String {
    format!("s|{slot:03}")
}

/// Sort key of the count by which the ring's next slot is chosen.
pub const REJECTED_COUNT: &str = "c";

/// Sort key of a control request.
pub const REQUEST: &str = "q";

/// Partition of a reconciliation run: its record, its parts and what it found.
pub fn run_pk(id: &Reference) -> String {
    format!("Q|recon|{}", escape(id.as_str()))
}

/// The run of a partition key, for keys read from an index.
pub fn run_of_pk(pk: &str) -> Option<Reference> {
    Reference::new(unescape(pk.strip_prefix("Q|recon|")?)).ok()
}

/// Sort key of a part of a run.
pub fn part_sk(part: &str) -> String {
    format!("p|{part}")
}

/// Sort key of a case that a run found.
pub fn found_sk(case: &str, occurrence: u32) -> String {
    format!("f|{case}|{occurrence:06}")
}

/// Partition of a reconciliation case: its occurrences and decisions.
pub fn case_pk(id: &str) -> String {
    format!("{CASE_PREFIX}{id}")
}

/// The case and occurrence of an item's keys, for keys read from an index.
pub fn case_of(pk: &str, sk: &str) -> Option<(String, u32)> {
    Some((pk.strip_prefix(CASE_PREFIX)?.to_owned(), sk.strip_prefix("c|")?.parse().ok()?))
}

/// Sort key of one occurrence of a case.
pub fn occurrence_sk(occurrence: u32) -> String {
    format!("c|{occurrence:06}")
}

/// Sort key of the decision on one occurrence of a case.
pub fn case_decision_sk(occurrence: u32) -> String {
    format!("d|{occurrence:06}")
}

/// Index key of runs that are not done: beside the due operations, and never among them.
pub const OPEN_RUNS: &str = "recon";

/// Partition of a reconciliation pass's cursor over receipts.
pub fn pass_cursor_pk(hours: u32) -> String {
    format!("C|pass|{hours}")
}

/// The job of a partition key, for keys read from an index.
pub fn job_of_pk(pk: &str) -> Option<(TenantId, JobId)> {
    let (tenant, job) = pk.strip_prefix("J|")?.split_once('|')?;
    Some((TenantId::new(unescape(tenant)).ok()?, JobId::new(unescape(job)).ok()?))
}

/// What every job key of a tenant begins with.
pub fn tenant_jobs_prefix(tenant: &TenantId) -> String {
    format!("J|{}|", escape(tenant.as_str()))
}

/// Partition of the sweep's cursor over one shard of expiry buckets.
pub fn expiry_cursor_pk(shard: u32) -> String {
    format!("C|expiry|{shard}")
}

/// Partition of a job's progress, apart from the immutable records.
pub fn progress_pk(tenant: &TenantId, job: &JobId) -> String {
    format!("P|{}|{}", escape(tenant.as_str()), escape(job.as_str()))
}

/// Partition of a provider's reference to a job.
pub fn ref_pk(provider: &Provider, reference: &ProviderRef) -> String {
    format!("R|{provider}|{}", escape(reference.as_str()))
}

/// Partition of a wallet: its balance (balances table), its fundings (ledger table).
pub fn wallet_pk(tenant: &TenantId, wallet: &WalletId) -> String {
    format!("W|{}|{}", escape(tenant.as_str()), escape(wallet.as_str()))
}

/// The wallet of a partition key.
pub fn wallet_of_pk(pk: &str) -> Option<(TenantId, WalletId)> {
    let (tenant, wallet) = pk.strip_prefix("W|")?.split_once('|')?;
    Some((TenantId::new(unescape(tenant)).ok()?, WalletId::new(unescape(wallet)).ok()?))
}

/// Sort key of a funding.
pub fn fund_sk(reference: &Reference) -> String {
    format!("f|{}", escape(reference.as_str()))
}

/// Which shard of the sharded indexes a partition belongs to: stable, spread by hash.
pub fn shard_of(pk: &str) -> u32 {
    let digest = hex_sha256(pk);
    u32::from_str_radix(&digest[..4], 16).unwrap_or(0) % SHARDS // four hex digits always parse
}

/// Index key of a receipt bucket: minutes since 1970 and the shard.
pub fn bucket(minute: i64, shard: u32) -> String {
    format!("{minute:012}.{shard}")
}

/// Index key of the jobs of one request of a caller.
pub fn request_key(tenant: &TenantId, request_id: &str) -> String {
    format!("{}|{}", escape(tenant.as_str()), escape(request_id))
}

/// Index key of due operations.
pub fn due_shard(shard: u32) -> String {
    format!("due.{shard}")
}

/// Index key of open reviews.
pub fn review_shard(shard: u32) -> String {
    format!("review.{shard}")
}

/// Partition of the relay's cursor over one shard of receipt buckets.
pub fn relay_cursor_pk(shard: u32) -> String {
    format!("C|relay|{shard}")
}

/// Sort key of a cursor.
pub const CURSOR: &str = "c";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn keys_lead_back_to_what_they_name() {
        let event: EventRef = "acme/a|b%7C/c".parse().unwrap();
        assert_eq!(event_of_pk(&event_pk(&event)), Some(event.clone()));
        let key = OperationKey { event, item: ItemId::new("i|1").unwrap(), name: OperationName::SettleUsage };
        assert_eq!(operation_of(&event_pk(&key.event), &operation_sk(&key)), Some(key));
        assert_eq!(operation_of("E|acme|x", "r"), None);
    }

    #[test]
    fn ded_09_a_key_does_not_depend_on_time_and_versions_sort() {
        assert!(transition_sk(9) < transition_sk(10));
        let event: EventRef = "acme/abc-123".parse().unwrap();
        assert_eq!(event_pk(&event), "E|acme|abc-123");
    }
}
