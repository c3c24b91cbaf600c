//! An EventBridge bus as destination: the same bytes as the detail of one event, and each entry's own result.

use local::hook::{Fault, HookDecision, Service};
use local::wire::WireResponse;
use serde_json::json;

use super::*;

fn bus_config() -> WorldConfig {
    let mut config = config();
    config.providers = GITHUB.replace("sqs:HOOKLEDGER_FORWARD_QUEUE_URL", "eventbridge:HOOKLEDGER_FORWARD_BUS");
    config.addresses = [("HOOKLEDGER_FORWARD_BUS".to_owned(), BUS.to_owned())].into();
    config
}

const BUS: &str = "arn:aws:events:us-east-1:1:event-bus/orders";

#[tokio::test(start_paused = true)]
async fn an_event_is_put_on_the_bus_once_with_its_key_in_the_detail() {
    let world = World::new(bus_config()).await.unwrap();
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(5).await.unwrap();
    let put = world.aws.buses().events(BUS);
    assert_eq!(put.len(), 1, "{put:?}");
    assert_eq!((&put[0]["Source"], &put[0]["DetailType"]), (&json!("hookledger"), &json!("hookledger event")));
    let detail: Value = serde_json::from_str(put[0]["Detail"].as_str().unwrap()).unwrap();
    let by_hand = json!({
        "form": 1, "key": "github|d-1|-|outbound|forward", "event": "github/d-1", "item": "-", "type": "issues",
        "received_at": "2026-11-29T12:00:00Z", "data": {"action": "opened"},
    });
    assert_eq!(detail, by_hand);
    assert_eq!(operation(&world, "d-1").await["effect"], "forwarded to eventbridge:HOOKLEDGER_FORWARD_BUS");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_succeeds_and_took_no_entry_is_no_success() {
    let entry = |code: &str| {
        let entry = json!({"ErrorCode": code, "ErrorMessage": "canary"});
        let body = json!({"FailedEntryCount": 1, "Entries": [entry]});
        HookDecision::FailBefore(Fault::Status(WireResponse::ok(body.to_string())))
    };
    for (what, class) in [
        (entry("ThrottlingException"), "transient"),
        (entry("InternalFailure"), "transient"),
        (entry("NotAuthorizedForSourceException"), "refused"),
        (HookDecision::FailBefore(Fault::Status(WireResponse::ok("{}"))), "transient"),
        (HookDecision::FailBefore(Fault::internal_server_error(Service::EventBridge)), "transient"),
        (HookDecision::FailBefore(Fault::throttled(Service::EventBridge)), "transient"),
        (HookDecision::lost_answer(), "transient"),
    ] {
        let rule = Rule::times(3, "PutEvents", &["d-1"], what.clone());
        let world = World::new(WorldConfig { hooks: hooked(Function::Outbound, rule.clone()).hooks, ..bus_config() });
        let world = world.await.unwrap();
        send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
        world.drain().await.unwrap();
        assert_eq!(state(&world, "d-1").await, format!("retrying {class}"), "{what:?}");
        assert!(!operation(&world, "d-1").await.to_string().contains("canary"));
        world.minutes(10).await.unwrap();
        assert_eq!(state(&world, "d-1").await, "done already-done", "{what:?}");
        let put = world.aws.buses().events(BUS);
        assert!(!put.is_empty() && put.iter().all(|one| *one == put[0]), "{put:?}");
    }
}
