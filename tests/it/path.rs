//! The straight path: a signed webhook becomes a completed job and settled money, once.

use local::world::{World, WorldConfig, completed};
use serde_json::json;

async fn world() -> World {
    World::new(WorldConfig::default()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_sample_event_completes_the_job_and_captures_0_008700() {
    let world = world().await;
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    assert_eq!(world.wallet("w1").await["available"], "95.000000");
    assert_eq!(world.wallet("w1").await["held"], "5.000000");

    assert_eq!(world.send("msg_1", &completed("j1")).await, (202, "accepted".to_owned()));
    world.drain().await.unwrap();

    let wallet = world.wallet("w1").await;
    assert_eq!((&wallet["available"], &wallet["held"]), (&json!("99.991300"), &json!("0.000000")));
    let job = world.job("j1").await;
    assert_eq!(job["transitions"].as_array().unwrap().len(), 1, "{job}");
    assert_eq!(job["settlements"].as_array().unwrap().len(), 1, "{job}");
    assert_eq!(job["settlements"][0]["captured"], "0.008700");
    assert_eq!(job["settlements"][0]["released"], "4.991300");
    assert_eq!(world.explain("msg_1").await["status"], "completed");
}
