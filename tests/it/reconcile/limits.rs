//! What a run cannot compare is said, and stops nothing else; what it is asked for is judged by what it says.

use domain::reconcile::{MAX_PART_RECEIVES, PartKey, PartMessage, PartState};
use local::world::World;
use reconciler::Reconciler;
use runtime::fetch::{Fetch, FetchError, Fetched, Get};
use runtime::sqs::{SqsAttributes, SqsEvent, SqsRecord};
use serde_json::{Value, json};
use std::sync::Arc;

use super::plant::{later, reconcile, settled, tamper, told};
use crate::harness::submitted;

#[derive(Debug)]
struct NoList;

impl Fetch for NoList {
    fn get(&self, _: Get) -> Fetched<'_> {
        Box::pin(async { Err(FetchError::Unreachable) })
    }
}

async fn ask(world: &World, body: Value) -> (u16, Value) {
    world.control("POST", "/control/reconciliations", Some(body)).await
}

#[tokio::test(start_paused = true)]
async fn a_part_that_never_comes_to_an_end_is_given_up_and_the_run_ends() {
    let world = submitted().await;
    assert_eq!(ask(&world, json!({"reference": "r", "reason": "why", "tenant": "t1", "wallet": "w1"})).await.0, 201);
    world.aws.queues().purge(&queue::reconcile_queue_name("hookledger")).unwrap();
    let reconciler = Reconciler::new(world.stack.app.clone(), Arc::new(NoList), |_| None);
    let run: domain::ids::Reference = "r".parse().unwrap();
    let receive = |part: &PartKey, count: u32| {
        let attributes = SqsAttributes { approximate_receive_count: count.to_string(), ..SqsAttributes::default() };
        let body = PartMessage::new(run.clone(), part).to_json();
        SqsEvent { records: vec![SqsRecord { message_id: "m".to_owned(), body, attributes }] }
    };
    let wallet = PartKey::Wallet { tenant: "t1".parse().unwrap(), wallet: "w1".parse().unwrap() };
    let first = reconciler.handle(&receive(&PartKey::Plan, MAX_PART_RECEIVES)).await;
    assert_eq!(first.batch_item_failures, [], "the last try may come to an end");
    let sixth = reconciler.handle(&receive(&wallet, MAX_PART_RECEIVES + 1)).await;
    assert_eq!(sixth.batch_item_failures, [], "its message is done with");
    let parts = world.stack.app.store.load_parts(&run).await.unwrap();
    let state = |key: &PartKey| parts.iter().find(|part| part.key == *key).map(|part| part.state);
    assert_eq!((state(&PartKey::Plan), state(&wallet)), (Some(PartState::Done), Some(PartState::Failed)));
    let shown = world.control("GET", "/control/reconciliations/r", None).await.1;
    assert_eq!((&shown["state"], &shown["parts"]["failed"]), (&json!("done"), &json!(1)), "{shown}");
    let skipped = shown["skipped"][0].as_str().unwrap();
    assert!(skipped.ends_with(": none of 5 tries came to an end"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_case_that_cannot_be_read_is_said_and_the_others_are_looked_at() {
    let world = settled().await;
    assert_eq!(world.fund("w2", "1.00").await.0, 201);
    for wallet in ["W|t1|w1", "W|t1|w2"] {
        tamper(&world, "balances", wallet, "", |item| item["av"] = json!({"N": "5000000"}));
    }
    let run = reconcile(&world, "first").await;
    assert_eq!(told(&run), ["balance-drift/rebuild/open", "balance-drift/rebuild/open"], "{run}");
    let of = |wallet: &str| {
        let cases = run["cases"].as_array().unwrap();
        let case = cases.iter().find(|case| case["subject"]["wallet"]["wallet"] == wallet).unwrap();
        case["case"].as_str().unwrap().to_owned()
    };
    let (broken, other) = (of("w1"), of("w2"));
    tamper(&world, "events", &format!("Q|case|{broken}"), "c|000001", |item| item["st"] = json!({"S": "canary"}));
    tamper(&world, "balances", "W|t1|w2", "", |item| item["av"] = json!({"N": "1000000"}));
    let second = world.reconcile("second", json!({"kinds": ["reviews"]})).await.unwrap();
    assert_eq!((&second["state"], &second["parts"]["failed"]), (&json!("done"), &json!(0)), "{second}");
    assert_eq!(second["skipped"], json!([format!("Q|case|{broken}: a stored case cannot be read")]));
    let (_, case) = world.control("GET", &format!("/control/reconciliations/first/cases/{other}"), None).await;
    assert_eq!(case["resolution"], "gone", "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_range_that_is_too_young_is_refused_for_what_it_is() {
    let world = submitted().await;
    later(&world, 3).await; // 15:00
    let detail = |body: Value| {
        let world = world.clone();
        async move {
            let (status, problem) = ask(&world, body).await;
            (status, problem["detail"].as_str().unwrap_or_default().to_owned())
        }
    };
    let young = detail(json!({"reference": "r", "reason": "x", "from": "2026-11-29T14:50:00Z"})).await;
    assert!(young.0 == 422 && young.1.contains("last 15 minutes"), "{young:?}");
    let to = "2026-11-29T15:00:00Z";
    let young = detail(json!({"reference": "r", "reason": "x", "from": "2026-11-29T14:50:00Z", "to": to})).await;
    assert!(young.0 == 422 && young.1.contains("last 15 minutes"), "{young:?}");
    let turned = detail(json!({"reference": "r", "reason": "x", "from": to, "to": "2026-11-29T14:00:00Z"})).await;
    assert!(turned.0 == 422 && turned.1.contains("begins before it ends"), "{turned:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_request_is_the_same_run_a_month_later() {
    let world = submitted().await;
    later(&world, 3).await;
    let body = json!({"reference": "r", "reason": "why", "from": "2026-11-29T12:00:00Z"});
    let (status, run) = ask(&world, body.clone()).await;
    assert_eq!(status, 201, "{run}");
    later(&world, 32 * 24).await; // its range would be too long by now
    let (status, again) = ask(&world, body).await;
    assert_eq!((status, &again["to"]), (200, &json!("2026-11-29T14:45:00Z")), "{again}");
    let other = json!({"reference": "r", "reason": "other", "from": "2026-11-29T12:00:00Z"});
    assert_eq!(ask(&world, other).await.0, 409);
}
