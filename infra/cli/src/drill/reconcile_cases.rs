//! The cases of reconciliation: a fact that nobody told, found from outside the path and put right by its one action.

use domain::limits::SHARDS;
use local::dynamo_api;
use local::world::{World, WorldConfig, WorldError, completed};
use serde_json::{Value, json};
use store::Cursor;

use super::cases::Case;

const HOUR_MS: i64 = 3_600_000;

/// All of them.
pub fn all() -> Vec<Case> {
    vec![
        Case {
            name: "an event never delivered",
            expected: "before: submitted; found: never-delivered, accept-from-authority; after: billing-settled, 0.008700 captured; again: 0 cases",
            run: || Box::pin(never_delivered()),
        },
        Case {
            name: "balance drift repaired",
            expected: "drifted: 1095.000000 available; found: balance-drift, rebuild; after: 95.000000 available; again: 0 cases",
            run: || Box::pin(balance_drift()),
        },
    ]
}

/// A world with a funded wallet and job j1 under a hold of 5.00.
async fn world() -> Result<World, WorldError> {
    let world = World::new(WorldConfig::default()).await?;
    world.fund("w1", "100.00").await;
    world.submit("j1", "w1", "5.00").await;
    Ok(world)
}

/// Class and action of the one case that a run found, and the case's id.
fn only(run: &Value) -> (String, String) {
    let cases = run["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |name: &str| cases.first().and_then(|case| case[name].as_str()).unwrap_or_default().to_owned();
    let told = match cases.len() {
        1 => format!("{}, {}", text("class"), text("action")),
        n => format!("{n} cases"),
    };
    (told, text("case"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

async fn never_delivered() -> Result<String, WorldError> {
    let world = world().await?;
    let begins_ms = local::Clock::now_ms(&world.clock);
    // The job ended at the provider, whose webhook never came.
    let emitted = world.provider.emit("acme", "evt_1", &completed("j1"), begins_ms);
    emitted.map_err(WorldError::Configuration)?;
    world.clock.advance(3 * HOUR_MS);
    for shard in 0..SHARDS {
        let minute = local::Clock::now_ms(&world.clock) / 60_000 - 3;
        let moved = world.stack.app.store.advance_cursor(Cursor::Receipts, shard, minute).await;
        moved.map_err(local::stack::StackError::from)?;
    }
    let before = world.job("j1").await;
    let run = world.reconcile("drill", json!({"provider": "acme"})).await?;
    let (told, case) = only(&run);
    world.decide_case("drill", &case, "apply").await;
    world.minutes(3).await?;
    let after = world.job("j1").await;
    let again = only(&world.reconcile("again", json!({"provider": "acme"})).await?).0;
    Ok(format!(
        "before: {}; found: {told}; after: {}, {} captured; again: {again}",
        text(&before["status"]),
        text(&after["status"]),
        text(&after["settlements"][0]["captured"]),
    ))
}

async fn balance_drift() -> Result<String, WorldError> {
    let world = world().await?;
    // Somebody adds 1000.00 behind the program's back.
    let request = json!({
        "TableName": "hookledger-balances", "Key": {"pk": {"S": "W|t1|w1"}},
        "UpdateExpression": "SET av = av + :more", "ExpressionAttributeValues": {":more": {"N": "1000000000"}},
    });
    let _ = dynamo_api::call(world.aws.database(), "UpdateItem", request.to_string().as_bytes());
    let drifted = world.wallet("w1").await;
    let wallet = json!({"tenant": "t1", "wallet": "w1"});
    let (told, case) = only(&world.reconcile("drill", wallet.clone()).await?);
    world.decide_case("drill", &case, "apply").await;
    let after = world.wallet("w1").await;
    let again = only(&world.reconcile("again", wallet).await?).0;
    Ok(format!(
        "drifted: {} available; found: {told}; after: {} available; again: {again}",
        text(&drifted["available"]),
        text(&after["available"]),
    ))
}
