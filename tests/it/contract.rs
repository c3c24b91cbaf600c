//! The contract suite: the store's and the queue's expressions against a real endpoint, so that the
//! embedded stores' fidelity is itself tested.
//!
//! It runs against the embedded stack always, and against any endpoint (ministack, LocalStack, AWS) with
//! `HOOKLEDGER_CONTRACT_ENDPOINT=http://localhost:4566 cargo test -p tests --test it contract`.
//! Every run uses a tenant of its own, so that it can be repeated on a kept endpoint.

mod reconcile;

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_sqs::types::MessageSystemAttributeName;
use domain::decide::fund::Funding;
use domain::envelope::Envelope;
use domain::event::{By, EventRef};
use domain::ids::{ItemId, JobId, ModelId, Provider, Reference, TenantId, WalletId};
use domain::job::{Job, Outcome, Policies, Progress, Transition};
use domain::keys;
use domain::ledger::{Balance, EntryKind};
use domain::limits::BUCKET_MS;
use domain::message::Message;
use domain::money::{Currency, Micros};
use domain::operation::{Change, Class, OperationKey, OperationName, OperationRecord, OperationState};
use domain::price::Snapshot;
use domain::receipt::{Planned, Receipt};
use domain::submit::hold_delta;
use local::{EmbeddedAws, SystemClock};
use queue::{QueueUrls, Queues, create_queues};
use runtime::clients;
use runtime::clock::Clock;
use store::{
    Attached, Commit, OperationPut, ProgressPut, ReceiptPut, Store, Submitted, TableNames, TransitionPut, WalletCreated,
};

const PREFIX: &str = "hookledger-contract";

struct Contract {
    store: Store,
    queues: Queues,
    urls: QueueUrls,
    sqs: aws_sdk_sqs::Client,
    tenant: TenantId,
    now_ms: i64,
}

impl Contract {
    async fn new(config: &aws_config::SdkConfig) -> Self {
        let store = Store::new(aws_sdk_dynamodb::Client::new(config), TableNames::with_prefix(PREFIX));
        store.create_tables().await.unwrap();
        let sqs = aws_sdk_sqs::Client::new(config);
        let urls = create_queues(&sqs, PREFIX).await.unwrap();
        let queues = Queues::new(sqs.clone(), urls.clone());
        let tenant = TenantId::new(format!("t-{:016x}", fastrand::u64(..))).unwrap();
        Self { store, queues, urls, sqs, tenant, now_ms: SystemClock.now_ms() }
    }

    fn event(&self, id: &str) -> EventRef {
        format!("acme/{}.{id}", self.tenant).parse().unwrap()
    }

    fn wallet(&self) -> WalletId {
        WalletId::new("w1").unwrap()
    }

    async fn balance(&self) -> Balance {
        self.store.get_balance(&self.tenant, &self.wallet()).await.unwrap().unwrap()
    }

    fn job(&self, id: &str, hold: &str) -> Job {
        let rates = BTreeMap::new();
        let (model, currency) = (ModelId::new("small-1").unwrap(), Currency::parse("USD").unwrap());
        let price =
            Snapshot { model, version: "1".to_owned(), currency, rates, ignore: vec![], minimum: None, ceiling: None };
        Job {
            tenant: self.tenant.clone(),
            job: JobId::new(id).unwrap(),
            provider: Provider::new("acme").unwrap(),
            provider_ref: None,
            wallet: self.wallet(),
            hold: Micros::parse(hold).unwrap(),
            authorised: Micros::ZERO,
            price,
            policies: Policies::default(),
            created_ms: self.now_ms,
            expires_ms: self.now_ms + 3_600_000,
            request_hash: id.to_owned(),
            request_id: None,
            metadata: BTreeMap::new(),
        }
    }
}

async fn receipts(c: &Contract) {
    let event = c.event("receipt");
    let receipt = |token: &str| Receipt {
        event: Some(event.clone()),
        event_type: "job.completed".to_owned(),
        payload_hash: "1:00".to_owned(),
        envelope: Envelope { tenant: Some(c.tenant.clone()), ..Envelope::default() },
        items: Vec::new(),
        plan: vec![Planned { item: ItemId::only(), name: OperationName::CompleteJob }],
        empty: None,
        note: String::new(),
        arrival_ms: c.now_ms,
        first_sent_ms: None,
        attempt: None,
        id_signed: true,
        key_id: "K".to_owned(),
        claim_token: token.to_owned(),
        trace: None,
    };
    assert_eq!(c.store.put_receipt(&event, &receipt("a")).await.unwrap(), ReceiptPut::Stored);
    assert_eq!(c.store.put_receipt(&event, &receipt("a")).await.unwrap(), ReceiptPut::Stored, "our own token");
    let Ok(ReceiptPut::Exists(stands)) = c.store.put_receipt(&event, &receipt("b")).await else {
        panic!("taken twice")
    };
    assert_eq!(*stands, receipt("a"), "the old item comes back whole");
    c.store.count_delivery(&event, c.now_ms).await.unwrap();
    c.store.count_delivery(&event, c.now_ms).await.unwrap();
    assert_eq!(c.store.load_deliveries(&event).await.unwrap().0.count, 2);
    let shard = keys::shard_of(&keys::event_pk(&event));
    let found = c.store.receipts_in(c.now_ms.div_euclid(BUCKET_MS), shard).await.unwrap();
    assert!(found.contains(&event), "the bucket index");
}

async fn operations(c: &Contract) {
    let key = OperationKey { event: c.event("operation"), item: ItemId::only(), name: OperationName::CompleteJob };
    let change = |state, due_ms| Change {
        state,
        class: Class::Transient,
        note: String::new(),
        due_ms,
        generation: 1,
        resend: false,
        attempts: 0,
    };
    let record = |old: Option<&OperationRecord>, change: Change, token: &str| {
        OperationRecord::next(key.clone(), old, change, c.now_ms, token.to_owned())
    };
    let first = record(None, change(OperationState::Wait, Some(c.now_ms)), "a");
    assert_eq!(c.store.put_operation(&first).await.unwrap(), OperationPut::Written);
    assert_eq!(c.store.put_operation(&first).await.unwrap(), OperationPut::Written, "our own token");
    let rival = record(None, change(OperationState::Review, None), "b");
    assert_eq!(c.store.put_operation(&rival).await.unwrap(), OperationPut::Lost(Box::new(first.clone())));
    let shard = keys::shard_of(&keys::event_pk(&key.event));
    assert!(c.store.due_operations(shard, c.now_ms, 500).await.unwrap().contains(&key), "the due index");
    let next = record(Some(&first), change(OperationState::Review, None), "c");
    assert_eq!(c.store.put_operation(&next).await.unwrap(), OperationPut::Written);
    let late = record(Some(&first), change(OperationState::Noop, None), "d");
    assert_eq!(c.store.put_operation(&late).await.unwrap(), OperationPut::Lost(Box::new(next.clone())), "revision");
    assert!(!c.store.due_operations(shard, c.now_ms, 500).await.unwrap().contains(&key), "the index is sparse");
}

async fn wallets_and_holds(c: &Contract) {
    let (usd, wallet) = (Currency::parse("USD").unwrap(), c.wallet());
    let new = Balance::new(usd, Micros::ZERO, c.now_ms);
    assert_eq!(c.store.create_wallet(&c.tenant, &wallet, &new).await.unwrap(), WalletCreated::Created);
    let again = c.store.create_wallet(&c.tenant, &wallet, &new).await.unwrap();
    assert_eq!(again, WalletCreated::Exists(Box::new(new.clone())));
    let reference = Reference::new("r1").unwrap();
    let funding = Funding { kind: EntryKind::Fund, amount: Micros::parse("10.00").unwrap(), reference: &reference };
    let posting = funding.post(&c.tenant, &wallet, "me".to_owned(), &new, c.now_ms).unwrap();
    assert_eq!(c.store.commit(&posting).await.unwrap(), Commit::Committed);
    // The balance moved on and the key is taken: both conditions are named, by place.
    assert_eq!(c.store.commit(&posting).await.unwrap(), Commit::ConditionFailed(vec![0, 1]));
    let page = c.store.statement(&c.tenant, &wallet, 0, 10).await.unwrap();
    assert_eq!(page.entries, vec![posting.entry.clone()], "the statement index holds the whole entry");

    let job = c.job("j1", "6.00");
    let balance = c.balance().await;
    assert_eq!(c.store.submit_job(&job, &hold_delta(&job, &balance), &[]).await.unwrap(), Submitted::Created);
    let short = c.job("j2", "6.00");
    let refused = c.store.submit_job(&short, &hold_delta(&short, &balance), &[]).await.unwrap();
    assert_eq!(refused, Submitted::ConditionFailed { job: false, reference: false, balance: true });
    let twice = c.store.submit_job(&job, &hold_delta(&c.job("j1", "1.00"), &balance), &[]).await.unwrap();
    assert_eq!(twice, Submitted::ConditionFailed { job: true, reference: false, balance: false });
    let after = c.balance().await;
    assert_eq!((after.available.to_string(), after.held.to_string()), ("4.000000".to_owned(), "6.000000".to_owned()));
    let jobs = c.store.jobs_of_wallet(&c.tenant, &wallet, None, 10).await.unwrap();
    assert_eq!(jobs, vec![job.job.clone()], "the wallet index");
}

async fn transitions_and_progress(c: &Contract) {
    let job = c.job("j1", "6.00");
    let by = |id: &str| By::event(c.event(id));
    let transition =
        |id: &str| Transition { version: 1, outcome: Outcome::Success, usage: None, by: by(id), created_ms: c.now_ms };
    let put = async |id: &str| c.store.put_transition(&c.tenant, &job.job, &transition(id)).await.unwrap();
    assert_eq!(put("e1").await, TransitionPut::Written);
    assert_eq!(put("e1").await, TransitionPut::Written, "ours");
    assert_eq!(put("e2").await, TransitionPut::Exists);
    let progress = |sequence: i64| Progress { sequence, event_type: "p".to_owned(), by: by("p"), changed_ms: c.now_ms };
    let put = async |sequence| c.store.put_progress(&c.tenant, &job.job, &progress(sequence)).await.unwrap();
    assert_eq!(
        [put(5).await, put(5).await, put(4).await],
        [ProgressPut::Written, ProgressPut::Passed, ProgressPut::Passed]
    );
    assert_eq!(put(6).await, ProgressPut::Written);
    let reference = domain::ids::ProviderRef::new(format!("{}-p", c.tenant)).unwrap();
    let other = domain::ids::ProviderRef::new(format!("{}-q", c.tenant)).unwrap();
    assert_eq!(c.store.attach_ref(&job, &reference).await.unwrap(), Attached::Ours);
    assert_eq!(c.store.attach_ref(&job, &reference).await.unwrap(), Attached::Ours);
    assert_eq!(c.store.attach_ref(&job, &other).await.unwrap(), Attached::Other);
    assert_eq!(c.store.load_job(&c.tenant, &job.job).await.unwrap().unwrap().job.provider_ref, Some(reference));
}

async fn queues(c: &Contract) {
    let key = |id: &str| OperationKey { event: c.event(id), item: ItemId::only(), name: OperationName::CompleteJob };
    let message = |id: &str| Message::new(key(id), 0, format!("group-{}", c.tenant));
    for id in ["first", "second", "first"] {
        c.queues.send(&message(id)).await.unwrap(); // the third is the first again, within five minutes
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let receive = c.sqs.receive_message().queue_url(&c.urls.job).max_number_of_messages(10);
        let receive = receive.message_system_attribute_names(MessageSystemAttributeName::All);
        for received in receive.send().await.unwrap().messages.unwrap_or_default() {
            let attributes = received.attributes.clone().unwrap_or_default();
            assert_eq!(attributes[&MessageSystemAttributeName::ApproximateReceiveCount], "1");
            seen.push(Message::from_json(received.body().unwrap()).unwrap());
            let handle = received.receipt_handle().unwrap();
            c.sqs.delete_message().queue_url(&c.urls.job).receipt_handle(handle).send().await.unwrap();
        }
    }
    let ours: Vec<_> = seen.into_iter().filter(|m| m.group == format!("group-{}", c.tenant)).collect();
    assert_eq!(ours, vec![message("first"), message("second")], "in order, and the repeated one once");
}

async fn run(config: &aws_config::SdkConfig) {
    let contract = Contract::new(config).await;
    receipts(&contract).await;
    operations(&contract).await;
    wallets_and_holds(&contract).await;
    transitions_and_progress(&contract).await;
    queues(&contract).await;
    reconcile::runs(&contract).await;
    reconcile::cases(&contract).await;
}

#[tokio::test]
async fn the_embedded_stack_keeps_the_contract() {
    let aws = EmbeddedAws::memory(Arc::new(SystemClock)).unwrap();
    run(&clients::local_config(aws.http_client(), "https://embedded.invalid").await).await;
}

#[tokio::test]
async fn the_endpoint_keeps_the_contract() {
    // Only where one is named: `.ci/contract` starts an emulator and names it.
    if let Ok(endpoint) = std::env::var("HOOKLEDGER_CONTRACT_ENDPOINT") {
        run(&clients::endpoint_config(clients::https_client(), &endpoint).await).await;
    }
}
