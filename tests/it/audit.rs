//! The audit against the whole stack: sound books are clean, and an entry that was changed behind the
//! program's back is named by wallet and sequence.

use domain::audit::{Clean, Fault, Hold, Place, Wallet, audit};
use domain::ledger::Entry;
use local::dynamo_api;
use local::world::{World, WorldConfig, completed, event_body};
use serde_json::{Value, json};

/// Funded, one job captured and partly reversed, one corrected, one open: entries 1 to 5.
///
/// By hand: 100.00 - 0.0087 + 0.002 - 0.0087 - 1.00 = 98.9846 in all, of which 5.00 is held.
async fn books() -> World {
    let world = World::new(WorldConfig::default()).await.unwrap();
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    for job in ["j1", "j2", "j3"] {
        assert_eq!(world.submit(job, "w1", "5.00").await.0, 201);
    }
    assert_eq!(world.send("msg_1", &completed("j1")).await.0, 202);
    world.drain().await.unwrap();
    assert_eq!(act(&world, "j1", "reverse", "r-1", "0.002").await, 201);
    assert_eq!(world.send("msg_2", &completed("j2")).await.0, 202);
    world.drain().await.unwrap();
    assert_eq!(act(&world, "j2", "adjust", "a-1", "1.00").await, 201);
    world
}

async fn act(world: &World, job: &str, action: &str, reference: &str, amount: &str) -> u16 {
    let body = json!({"reference": reference, "amount": amount, "reason": "the customer asked"});
    world.control("POST", &format!("/control/tenants/t1/jobs/{job}/{action}"), Some(body)).await.0
}

async fn read(world: &World, path: &str, query: &str) -> Value {
    let mut event = world.event("GET", &format!("/control/tenants/t1/wallets/{path}"), [], None);
    event.raw_query_string = query.to_owned();
    let response = world.stack.control(&event).await;
    assert_eq!(response.status_code, 200, "{}", response.body);
    serde_json::from_str(&response.body).unwrap()
}

/// Every element of a paged list.
async fn pages(world: &World, path: &str, list: &str) -> Vec<Value> {
    let (mut found, mut query) = (Vec::new(), "limit=2".to_owned());
    loop {
        let page = read(world, path, &query).await;
        found.extend(page[list].as_array().unwrap().clone());
        match &page["next"] {
            Value::Null => return found,
            Value::String(job) => query = format!("limit=2&after={job}"),
            sequence => query = format!("limit=2&after={sequence}"),
        }
    }
}

/// The wallet, its entries and its open holds, as the control API shows them.
async fn shown(world: &World) -> (Wallet, Vec<Entry>, Vec<Hold>) {
    let wallet = serde_json::from_value(read(world, "w1", "").await).unwrap();
    let entries = pages(world, "w1/statement", "entries").await;
    let entries = entries.iter().map(|e| serde_json::from_value(e["record"].clone()).unwrap()).collect();
    let holds = pages(world, "w1/holds", "holds").await;
    (wallet, entries, holds.into_iter().map(|hold| serde_json::from_value(hold).unwrap()).collect())
}

/// One call of DynamoDB that nothing of the program makes.
fn behind_its_back(world: &World, operation: &str, request: &Value) -> Value {
    let answer = dynamo_api::call(world.aws.database(), operation, request.to_string().as_bytes());
    let body = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 200, "{body}");
    body
}

/// Rewrites a stored item; `change` sees its attributes.
fn tamper(world: &World, table: &str, key: &Value, change: impl FnOnce(&mut Value)) {
    let found = behind_its_back(world, "GetItem", &json!({"TableName": table, "Key": key, "ConsistentRead": true}));
    let mut item = found["Item"].clone();
    let before = item.clone();
    change(&mut item);
    assert_ne!(item, before, "nothing was tampered with");
    behind_its_back(world, "PutItem", &json!({"TableName": table, "Item": item}));
}

fn close_of_j2() -> Value {
    json!({"pk": {"S": "J|t1|j2"}, "sk": {"S": "c"}})
}

#[tokio::test(start_paused = true)]
async fn sound_books_are_clean() {
    let world = books().await;
    let (wallet, entries, holds) = shown(&world).await;
    assert_eq!(
        (wallet.available.to_string(), wallet.held.to_string()),
        ("93.984600".to_owned(), "5.000000".to_owned())
    );
    assert_eq!(holds.len(), 1);
    assert_eq!(audit(&wallet, &entries, &holds), Ok(Clean { entries: 5, open_holds: 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_tampered_entry_is_named_by_wallet_and_sequence() {
    let world = books().await;
    tamper(&world, "hookledger-ledger", &close_of_j2(), |item| item["am"] = json!({"N": "7"}));
    let (wallet, entries, holds) = shown(&world).await;
    let broken = audit(&wallet, &entries, &holds).unwrap_err();
    assert_eq!((broken.wallet.as_str(), broken.place, &broken.fault), ("w1", Place::Entry(4), &Fault::Content));
    assert!(broken.to_string().starts_with("wallet w1 of tenant t1, entry 4: "), "{broken}");
}

#[tokio::test(start_paused = true)]
async fn a_removed_entry_is_named_by_wallet_and_sequence() {
    let world = books().await;
    behind_its_back(&world, "DeleteItem", &json!({"TableName": "hookledger-ledger", "Key": close_of_j2()}));
    let (wallet, entries, holds) = shown(&world).await;
    let broken = audit(&wallet, &entries, &holds).unwrap_err();
    assert_eq!((broken.wallet.as_str(), broken.sequence()), ("w1", Some(4)));
    assert_eq!(broken.fault, Fault::Missing { found: 5 });
}

#[tokio::test(start_paused = true)]
async fn money_added_to_a_balance_is_found() {
    let world = books().await;
    let key = json!({"pk": {"S": "W|t1|w1"}});
    tamper(&world, "hookledger-balances", &key, |item| item["av"] = json!({"N": "1093984600"}));
    let (wallet, entries, holds) = shown(&world).await;
    let broken = audit(&wallet, &entries, &holds).unwrap_err();
    // 1093.9846 + 5.00 against 98.9846, in micros.
    assert_eq!(broken.fault, Fault::Total { balance: 1_098_984_600, entries: 98_984_600 });
}

#[tokio::test(start_paused = true)]
async fn a_corrected_charge_stays_clean_as_more_business_follows() {
    let world = books().await;
    let correction =
        json!({"correction_id": "c-1", "sequence": 9, "usage": {"input_tokens": 2200, "output_tokens": 340}});
    assert_eq!(world.send("msg_3", &event_body("usage.corrected", "j1", correction)).await.0, 202);
    world.drain().await.unwrap();
    let (wallet, entries, holds) = shown(&world).await;
    // 1,000 input tokens more at 3.00 per million: 0.003 down from 98.9846.
    assert_eq!(wallet.available.to_string(), "93.981600");
    assert_eq!(audit(&wallet, &entries, &holds), Ok(Clean { entries: 6, open_holds: 1 }));
}
