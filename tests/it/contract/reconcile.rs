//! The reconciler's expressions: runs and parts that end once, cases that open once, a rebuild under `rev`.

use domain::ids::Reference;
use domain::keys::{shard_of, wallet_pk};
use domain::money::Micros;
use domain::reconcile::{
    Action, CaseClass, CaseState, Decision, Finding, Kind, Part, PartKey, PartResult, PartState, Rebuild, Resolution,
    Run, Subject, Window,
};
use store::Commit;

use super::Contract;

fn run_of(c: &Contract) -> Run {
    Run {
        id: Reference::new(format!("run-{}", c.tenant)).unwrap(),
        kinds: vec![Kind::Wallets],
        window: Window { from_ms: c.now_ms, to_ms: c.now_ms },
        wallet: None,
        provider: None,
        actor: "local".to_owned(),
        reason: "contract".to_owned(),
        content_hash: "1".to_owned(),
        created_ms: c.now_ms,
    }
}

pub(super) async fn runs(c: &Contract) {
    let run = run_of(c);
    assert_eq!(c.store.put_run(&run, c.now_ms).await.unwrap(), None);
    assert_eq!(c.store.put_run(&run, c.now_ms).await.unwrap(), Some(run.clone()), "what stands is given back");
    assert_eq!(c.store.get_run(&run.id).await.unwrap(), Some(run.clone()));
    assert!(c.store.put_part(&run.id, &PartKey::Plan).await.unwrap());
    assert!(!c.store.put_part(&run.id, &PartKey::Plan).await.unwrap());
    let ended = |examined| Part {
        key: PartKey::Plan,
        state: PartState::Done,
        result: PartResult { examined, ..PartResult::default() },
    };
    c.store.finish_part(&run.id, &ended(1)).await.unwrap();
    c.store.finish_part(&run.id, &ended(2)).await.unwrap();
    assert_eq!(c.store.load_parts(&run.id).await.unwrap(), [ended(1)], "a part ends once");
    for case in ["a.1", "b.2", "c.3"] {
        c.store.put_found(&run.id, case, 1).await.unwrap();
    }
    let page = c.store.found(&run.id, None, 2).await.unwrap();
    assert_eq!((page.cases.len(), page.more), (2, true));
    let rest = c.store.found(&run.id, Some(&page.cases[1].0), 2).await.unwrap();
    assert_eq!(rest.cases, [("c.3".to_owned(), 1)]);
    c.store.push_run(&run.id, Some(c.now_ms + 1)).await.unwrap();
    c.store.push_run(&run.id, None).await.unwrap();
    let (mut wallets, mut after) = (Vec::new(), None);
    loop {
        let (page, next) = c.store.scan_wallets(after.as_deref(), 3).await.unwrap();
        wallets.extend(page);
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert!(wallets.contains(&(c.tenant.clone(), c.wallet())), "the scan finds every wallet");
}

pub(super) async fn cases(c: &Contract) {
    let subject = Subject::Wallet { tenant: c.tenant.clone(), wallet: c.wallet() };
    let finding = Finding::new(CaseClass::BalanceDrift, Action::Rebuild, subject, "drifted");
    let case = c.store.open_case(&finding, "r1", c.now_ms).await.unwrap();
    assert_eq!(c.store.open_case(&finding, "r2", c.now_ms).await.unwrap(), case, "the same fact is the same case");
    let newer = Finding { evidence: "drifted on".to_owned(), ..finding.clone() };
    let case = c.store.open_case(&newer, "r2", c.now_ms).await.unwrap();
    assert_eq!((case.occurrence, case.revision, case.evidence.as_str()), (1, 2, "drifted on"));
    let waiting = c.store.review_rows(shard_of(&domain::keys::case_pk(&case.id)), None, 1_000).await.unwrap();
    assert!(waiting.iter().any(|review| review.pk == domain::keys::case_pk(&case.id)));
    let decision = Decision {
        resolution: Resolution::Applied,
        actor: "local".to_owned(),
        reason: "contract".to_owned(),
        reference: Some("k1".to_owned()),
        note: String::new(),
        decided_ms: c.now_ms,
    };
    let (pk, balance) = (wallet_pk(&c.tenant, &c.wallet()), c.balance().await);
    let delta = Rebuild { available: Micros::parse("1").unwrap(), held: Micros::ZERO };
    let mut moved = balance.clone();
    moved.rev += 1;
    let refused = c.store.resolve_with_rebuild(&case, &decision, &pk, &moved, delta).await.unwrap();
    assert_eq!(refused, Commit::ConditionFailed(vec![0]), "the wallet was written meanwhile");
    assert_eq!(c.balance().await, balance);
    let done = c.store.resolve_with_rebuild(&case, &decision, &pk, &balance, delta).await.unwrap();
    assert_eq!(done, Commit::Committed);
    let after = c.balance().await;
    assert_eq!((after.available, after.rev), (balance.available.plus(delta.available).unwrap(), balance.rev + 1));
    let again = c.store.resolve_case(&case, &decision).await.unwrap();
    assert!(matches!(again, Commit::ConditionFailed(_)), "a case is decided once: {again:?}");
    let stands = c.store.get_case(&case.id).await.unwrap().unwrap();
    assert_eq!((stands.state, stands.resolution), (CaseState::Resolved, Some(Resolution::Applied)));
    assert_eq!(c.store.load_decisions(&case.id).await.unwrap(), [decision]);
    let back = c.store.open_case(&newer, "r3", c.now_ms).await.unwrap();
    assert_eq!(back.occurrence, 2, "a fact that comes back is the next occurrence");
    let (entries, more) = c.store.entry_keys(&c.tenant, &c.wallet(), 0, 100).await.unwrap();
    assert!(!more);
    for key in entries {
        assert!(c.store.get_entry(&key).await.unwrap().is_some());
    }
}
