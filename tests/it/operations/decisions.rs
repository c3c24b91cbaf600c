//! retry and close: what they do, what they refuse, what is recorded; twice, and two operators at once.

use futures_util::future::join;
use local::world::completed;
use serde_json::{Value, json};

use super::scene::*;
use crate::books::audit;
use crate::harness::*;
use domain::operation::OperationName::{CompleteJob, SettleUsage};

const SETTLE: &str = "settle-usage:acme/msg_1";

/// The stored decisions, by review and revision.
fn recorded(world: &local::world::World) -> Vec<Value> {
    let mut all = items(world, "events");
    all.retain(|item| item["pk"]["S"].as_str().unwrap().starts_with("Q|review|"));
    all
}

#[tokio::test(start_paused = true)]
async fn exhausted_tries_a_retry_begins_anew_and_completes() {
    let world = exhausted().await;
    world.submit("j1", "w1", "5.00").await;
    let before = operation(&world, "msg_1", SettleUsage).await.unwrap();
    let (status, decided) = decide(&world, SETTLE, retry()).await;
    assert_eq!(status, 200, "{decided}");
    assert_eq!(decided["waived"], json!(["attempts-exhausted"]));
    assert_eq!((&decided["actor"], &decided["class"]), (&json!(ANN), &json!("attempts-exhausted")));
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    assert_eq!((record.attempts, record.generation, record.due_ms), (0, before.generation + 1, Some(now_ms(&world))));
    assert_eq!(decide(&world, "complete-job:acme/msg_1", retry()).await.0, 200);
    world.drain().await.unwrap(); // the message was sent, the relay is not needed
    assert_settled(&world, "j1", "msg_1").await;
    assert_eq!(world.explain("msg_1").await["status"], "completed");
    let decisions = &shown(&world, "msg_1", SettleUsage).await["decisions"];
    assert_eq!((&decisions[0]["actor"], &decisions[0]["reason"]), (&json!(ANN), &json!("the cause is gone")));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_retry_whose_message_is_lost_is_sent_by_the_relay() {
    let world = exhausted().await;
    world.submit("j1", "w1", "5.00").await;
    for name in ["complete-job", "settle-usage"] {
        assert_eq!(decide(&world, &format!("{name}:acme/msg_1"), retry()).await.0, 200);
    }
    purge(&world);
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_acts_only_after_a_person_waived_the_expiry() {
    let world = submitted().await;
    world.clock.advance(25 * HOUR_MS);
    relay_has_run(&world).await;
    accepted(&world, "msg_1", &completed("j1")).await; // first sent 25 hours ago
    world.drain().await.unwrap();
    assert_eq!(state(&world, "msg_1", SettleUsage).await.1, "expired");
    assert_untouched(&world, "j1").await;
    let (status, decided) = decide(&world, SETTLE, retry()).await;
    assert_eq!((status, &decided["waived"]), (200, &json!(["expired"])));
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    // Waived was one operation, not the event.
    assert_eq!(state(&world, "msg_1", CompleteJob).await, ("done".to_owned(), "expired".to_owned()));
    assert_eq!(ids(&world, "").await, [""; 0], "done by the other one: nothing is left to decide");
    let record = recorded(&world);
    assert_eq!(record.len(), 1);
    assert_eq!(record[0]["wv"], json!({"L": [{"S": "expired"}]}));
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_waiver_outlives_the_deferrals_after_it() {
    let world = funded().await;
    world.clock.advance(25 * HOUR_MS);
    relay_has_run(&world).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    assert_eq!(decide(&world, SETTLE, retry()).await.0, 200);
    world.drain().await.unwrap();
    assert_eq!(state(&world, "msg_1", SettleUsage).await, ("retrying".to_owned(), "job-unknown".to_owned()));
    world.submit("j1", "w1", "5.00").await;
    settle_down(&world).await;
    assert_settled(&world, "j1", "msg_1").await;
}

#[tokio::test(start_paused = true)]
async fn closing_a_settlement_with_an_open_hold_needs_the_release() {
    let world = above_the_hold().await;
    let (status, refused) = decide(&world, SETTLE, close()).await;
    assert_eq!((status, refused["code"].as_str()), (409, Some("release-needed")));
    assert!(refused["detail"].as_str().unwrap().contains("5.000000 USD"), "{refused}");
    assert_eq!(balance(&world, "w1").await, ("95.000000".to_owned(), "5.000000".to_owned()));

    let (status, decided) =
        decide(&world, SETTLE, json!({"action": "close", "reason": "a gift", "release": true})).await;
    assert_eq!((status, &decided["released"]), (200, &json!(true)));
    assert_eq!(balance(&world, "w1").await, ("100.000000".to_owned(), "0.000000".to_owned()));
    let job = world.job("j1").await;
    let settlements = job["settlements"].as_array().unwrap();
    assert_eq!(settlements.len(), 1);
    assert_eq!((&settlements[0]["kind"], &settlements[0]["released"]), (&json!("release"), &json!("5.000000")));
    assert_eq!(settlements[0]["reason"], "a gift");
    assert!(settlements[0]["by"].as_str().unwrap().starts_with("control/review."), "{job}");
    assert_eq!(job["status"], "billing-settled", "a person decided that nothing is charged");
    assert_eq!(state(&world, "msg_1", SettleUsage).await, ("closed".to_owned(), "dismissed".to_owned()));
    // Nothing comes of it any more, whoever asks.
    assert_eq!(world.send("msg_1", &used("j1", 2_000_000)).await.1, "duplicate");
    settle_down(&world).await;
    assert_eq!(world.job("j1").await["settlements"].as_array().unwrap().len(), 1);
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_another_event_settles_is_not_released_with_a_contested_one() {
    let world = submitted().await;
    taken_in(&world, "msg_1", &completed("j1")).await;
    work(&world, "msg_1", CompleteJob).await; // decided by msg_1, not settled yet
    taken_in(&world, "msg_2", &used("j1", 7)).await;
    work(&world, "msg_2", SettleUsage).await;
    let contested = "settle-usage:acme/msg_2";
    assert_eq!(reviews(&world, "").await[0]["close_needs_release"], false);
    let (status, refused) = decide(&world, contested, json!({"action": "close", "reason": "x", "release": true})).await;
    assert_eq!((status, refused["code"].as_str()), (409, Some("not-possible")));
    assert_eq!(decide(&world, contested, close()).await.1["released"], false);
    work(&world, "msg_1", SettleUsage).await;
    assert_settled(&world, "j1", "msg_1").await;
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn closing_what_holds_no_money_needs_no_release() {
    let world = exhausted().await;
    let (status, decided) = decide(&world, SETTLE, close()).await;
    assert_eq!((status, &decided["released"]), (200, &json!(false)), "the job was never submitted");
    assert_eq!(decide(&world, "complete-job:acme/msg_1", close()).await.0, 200);
    assert_eq!(ids(&world, "").await, [""; 0]);
    assert_eq!(world.explain("msg_1").await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn the_same_request_is_the_same_decision_and_another_one_is_told() {
    let world = exhausted().await;
    let body = json!({"action": "retry", "reason": "once", "reference": "tick-1"});
    assert_eq!(decide(&world, SETTLE, body.clone()).await.1["again"], false);
    let record = operation(&world, "msg_1", SettleUsage).await.unwrap();
    let (status, again) = decide(&world, SETTLE, body.clone()).await;
    assert_eq!((status, &again["again"]), (200, &json!(true)));
    assert_eq!(operation(&world, "msg_1", SettleUsage).await.unwrap(), record, "nothing was written");
    for other in [json!({"action": "retry", "reason": "twice", "reference": "tick-1"}), close()] {
        let (status, told) = decide(&world, SETTLE, other).await;
        assert_eq!((status, told["code"].as_str()), (409, Some("conflict")), "{told}");
        assert!(told["detail"].as_str().unwrap().contains(ANN), "{told}");
    }
    // In review again: under its reference the old decision is not made a second time.
    world.minutes(15).await.unwrap();
    assert!(ids(&world, "").await.contains(&SETTLE.to_owned()));
    assert_eq!(decide(&world, SETTLE, body).await.1["again"], true);
    assert!(ids(&world, "").await.contains(&SETTLE.to_owned()));
    assert_eq!(decide(&world, SETTLE, retry()).await.1["again"], false);
    assert_eq!(recorded(&world).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn of_two_operators_one_decides_and_the_other_is_told() {
    let world = above_the_hold().await;
    let release = json!({"action": "close", "reason": "a gift", "release": true});
    let (ann, bob) =
        join(decide_as(&world, ANN, SETTLE, release.clone()), decide_as(&world, BOB, SETTLE, retry())).await;
    let mut statuses = [ann.0, bob.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{ann:?} {bob:?}");
    let (loser, winner) = if ann.0 == 409 { (&ann.1, BOB) } else { (&bob.1, ANN) };
    assert!(loser["detail"].as_str().unwrap().contains(winner), "{loser}");
    assert_eq!(recorded(&world).len(), 1);
    settle_down(&world).await;
    audit(&world);
}

/// What somebody else wrote between two reads of one request.
#[derive(Debug)]
struct Meanwhile {
    world: std::sync::Weak<local::world::World>,
    items: std::sync::Mutex<Vec<Value>>,
}

impl local::hook::CallHook for Meanwhile {
    fn on_call(&self, call: &local::hook::Call) -> local::hook::HookDecision {
        let reads = call.operation == "Query" && String::from_utf8_lossy(&call.body).contains("E|acme|msg_1");
        if let Some(world) = self.world.upgrade().filter(|_| reads) {
            for item in self.items.lock().unwrap().drain(..) {
                overwrite(&world, "events", &item);
            }
        }
        local::hook::HookDecision::Pass
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_between_the_two_reads_of_another_is_told() {
    let world = exhausted().await;
    let record = |world: &local::world::World| {
        let all = items(world, "events");
        all.into_iter().find(|item| item["sk"]["S"] == "o|-|billing|settle-usage").unwrap()
    };
    let before = record(&world);
    assert_eq!(decide_as(&world, ANN, SETTLE, close()).await.0, 200);
    let written = [record(&world), recorded(&world).remove(0)];
    // Back to before Ann's decision, which then comes after Bob's look at the decisions.
    overwrite(&world, "events", &before);
    let gone = json!({"TableName": format!("{}-events", local::stack::PREFIX),
        "Key": {"pk": written[1]["pk"], "sk": written[1]["sk"]}});
    let answer = local::dynamo_api::call(world.aws.database(), "DeleteItem", gone.to_string().as_bytes());
    assert_eq!(answer.status, 200);
    assert_eq!(recorded(&world).len(), 0);
    let meanwhile = Meanwhile { world: std::sync::Arc::downgrade(&world), items: written.to_vec().into() };
    world.aws.add_hook(std::sync::Arc::new(meanwhile));
    let (status, told) = decide_as(&world, BOB, SETTLE, retry()).await;
    assert_eq!((status, &told["code"]), (409, &json!("conflict")), "{told}");
    assert!(told["detail"].as_str().unwrap().contains(ANN), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_a_decision_is_found_as_made() {
    let world = above_the_hold().await;
    let lost = Rule::times(1, "TransactWriteItems", &["Q|review|"], local::hook::HookDecision::lost_answer());
    world.aws.add_hook(lost.clone());
    let release = json!({"action": "close", "reason": "a gift", "release": true});
    let (status, decided) = decide(&world, SETTLE, release).await;
    assert_eq!((status, &decided["released"], lost.hits()), (200, &json!(true), 1));
    assert_eq!(balance(&world, "w1").await.0, "100.000000");
    audit(&world);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decided_is_refused_with_the_reason() {
    let world = exhausted().await;
    let refused = [
        (SETTLE, json!({"action": "retry"}), 400),
        (SETTLE, json!({"action": "retry", "reason": " "}), 422),
        (SETTLE, json!({"action": "drop", "reason": "x"}), 400),
        (SETTLE, json!({"action": "approve", "reason": "x"}), 422),
        (SETTLE, json!({"action": "approve", "alternative": "cap", "reason": "x"}), 409),
        (SETTLE, json!({"action": "retry", "alternative": "cap", "reason": "x"}), 422),
        (SETTLE, json!({"action": "retry", "release": true, "reason": "x"}), 422),
        ("nonsense", retry(), 422),
        ("settle-usage:acme/nobody", retry(), 404),
        ("fund-wallet:acme/msg_1", retry(), 409),
        ("conflict:1:00@acme/msg_1", close(), 404),
        ("case:drift.1", close(), 404),
    ];
    for (id, body, expected) in refused {
        let (status, told) = decide(&world, id, body.clone()).await;
        assert_eq!(status, expected, "{id} {body}: {told}");
    }
    assert_eq!(recorded(&world).len(), 0);
    assert_eq!(ids(&world, "").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_over_many_changes_nothing_and_the_real_one_decides_each() {
    let world = exhausted().await;
    let mut body = json!({
        "filter": {"provider": "acme", "reason": "attempts-exhausted"}, "action": "retry", "reason": "repaired",
        "dry_run": true,
    });
    let before = items(&world, "events");
    let (status, dry) = ask(&world, "POST", "/control/reviews", Some(body.clone())).await;
    assert_eq!((status, &dry["decided"], &dry["refused"]), (200, &json!(2), &json!(0)), "{dry}");
    assert_eq!(dry["results"][0]["result"], "would-decide");
    assert_eq!(items(&world, "events"), before);

    world.submit("j1", "w1", "5.00").await;
    body["dry_run"] = json!(false);
    let (_, done) = ask(&world, "POST", "/control/reviews", Some(body.clone())).await;
    assert_eq!((&done["decided"], &done["results"][0]["result"]), (&json!(2), &json!("decided")));
    world.drain().await.unwrap();
    assert_settled(&world, "j1", "msg_1").await;
    let (_, nothing) = ask(&world, "POST", "/control/reviews", Some(body)).await;
    assert_eq!(nothing["results"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn of_many_what_one_refuses_stops_no_other_and_the_bound_is_kept() {
    let world = above_the_hold().await;
    world.submit("j2", "w1", "1.00").await;
    accepted(&world, "msg_2", &used("j9", 1)).await; // a job of another id under its own reference: unknown
    let other = used("j1", 1);
    assert_eq!(world.send("msg_1", &other).await.1, "quarantined");
    let body = json!({"action": "close", "reason": "cleared up", "limit": 50});
    let (_, done) = ask(&world, "POST", "/control/reviews", Some(body)).await;
    assert_eq!((&done["decided"], &done["refused"]), (&json!(1), &json!(1)), "{done}");
    let refused = done["results"].as_array().unwrap().iter().find(|row| row["result"] == "refused").unwrap();
    assert_eq!((&refused["id"], &refused["code"]), (&json!(SETTLE), &json!("release-needed")));
    let too_many = json!({"action": "close", "reason": "x", "limit": 51});
    assert_eq!(ask(&world, "POST", "/control/reviews", Some(too_many)).await.0, 422);
}
