//! `status` and `explain`: numbers worked out by hand, and no payload anywhere.

use local::world::{World, completed, event_body};
use serde_json::{Value, json};

use super::scene::*;
use crate::harness::*;
use domain::operation::OperationName::SettleUsage;

async fn status(world: &World) -> Value {
    let (status, body) = ask(world, "GET", "/control/status", None).await;
    assert_eq!(status, 200, "{body}");
    body
}

fn of<'a>(body: &'a Value, name: &str) -> &'a Value {
    let states = body["states"].as_array().unwrap();
    states.iter().find(|state| state["state"] == name).unwrap_or(&Value::Null)
}

#[tokio::test(start_paused = true)]
async fn a_system_at_rest_has_nothing_to_show() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.minutes(5).await.unwrap();
    let body = status(&world).await;
    assert_eq!(body["states"], json!([]), "{body}");
    assert_eq!(body["pauses"], json!({"paused": [], "resuming": []}));
    // 12:05 now; the last run examined everything up to 12:03.
    assert_eq!(
        (&body["relay"]["examined_up_to"], &body["relay"]["lag_s"]),
        (&json!("2026-11-29T12:03:00Z"), &json!(120))
    );
}

#[tokio::test(start_paused = true)]
async fn numbers_by_state_provider_and_tenant() {
    let world = above_the_hold().await; // 12:00: settle-usage of j1, hold 5.00
    world.submit("j2", "w1", "1.25").await;
    accepted(&world, "msg_2", &event_body("job.completed", "j2", json!({}))).await; // no usage
    world.drain().await.unwrap();
    accepted(&world, "msg_3", &completed("j3")).await; // both operations wait for the job
    world.drain().await.unwrap();
    world.clock.advance(30 * MINUTE_MS);
    let body = status(&world).await;
    let overage = of(&body, "review:overage");
    assert_eq!((&overage["count"], &overage["oldest_age_s"]), (&json!(1), &json!(1_800)));
    assert_eq!(overage["at_risk"], json!([{"currency": "USD", "amount": "5.000000"}]));
    assert_eq!(
        (&overage["tenants"][0]["tenant"], &overage["providers"][0]["provider"]),
        (&json!("t1"), &json!("acme"))
    );
    assert_eq!(of(&body, "review:no-usage")["at_risk"][0]["amount"], "1.250000");
    // Due within seconds of 12:00, and no relay ran.
    let overdue = of(&body, "overdue");
    assert_eq!(
        (&overdue["count"], &overdue["at_risk"], &overdue["lower_bound"]),
        (&json!(2), &json!([]), &json!(false))
    );
    // Three receipts of which no run of the relay knows.
    assert_eq!((&of(&body, "received")["count"], &of(&body, "received")["oldest_age_s"]), (&json!(3), &json!(1_800)));
    assert_eq!(body["relay"]["lag_s"], 1_920, "the cursor stands at 11:58");
}

#[tokio::test(start_paused = true)]
async fn money_hangs_on_a_job_once() {
    let world = submitted().await;
    world.clock.advance(25 * HOUR_MS);
    relay_has_run(&world).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let body = status(&world).await;
    let expired = of(&body, "review:expired");
    assert_eq!(expired["count"], 2, "both operations");
    assert_eq!(expired["at_risk"], json!([{"currency": "USD", "amount": "5.000000"}]), "one hold");
}

#[tokio::test(start_paused = true)]
async fn paused_operations_are_shown_with_their_money() {
    let world = submitted().await;
    let body = json!({"paused": true, "reason": "maintenance"});
    ask(&world, "PUT", "/control/pauses/billing", Some(body)).await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    world.clock.advance(MINUTE_MS);
    let shown = status(&world).await;
    let paused = of(&shown, "paused:billing");
    assert_eq!((&paused["count"], &paused["at_risk"][0]["amount"]), (&json!(1), &json!("5.000000")));
    assert_eq!((&paused["oldest_age_s"], &paused["lower_bound"]), (&json!(60), &json!(false)));
    assert_eq!(shown["pauses"]["paused"][0]["actor"], ANN);
}

#[tokio::test(start_paused = true)]
async fn an_open_hold_past_its_expiry_waits_for_the_relay() {
    let world = submitted().await;
    world.submit("j2", "w1", "2.00").await;
    accepted(&world, "msg_1", &completed("j2")).await;
    world.drain().await.unwrap();
    world.clock.advance(120 * HOUR_MS + MINUTE_MS);
    sweeps_have_run(&world).await;
    let body = status(&world).await;
    let expired = of(&body, "hold-expired");
    assert_eq!((&expired["count"], &expired["oldest_age_s"]), (&json!(1), &json!(60)), "{body}");
    assert_eq!(expired["at_risk"], json!([{"currency": "USD", "amount": "5.000000"}]), "j2 is settled");
    world.clock.advance(10 * MINUTE_MS);
    sweeps_have_run(&world).await;
    world.stack.relay().await.unwrap();
    assert!(of(&status(&world).await, "hold-expired").is_null());
}

#[tokio::test(start_paused = true)]
async fn a_bound_that_was_hit_is_said() {
    let world = funded().await;
    for n in 0..450 {
        accepted(&world, &format!("msg_{n}"), &event_body("job.progress", "j9", json!({"sequence": n}))).await;
    }
    world.drain().await.unwrap();
    let body = status(&world).await;
    let shown: u64 = ["waiting", "due", "overdue"].iter().filter_map(|state| of(&body, state)["count"].as_u64()).sum();
    assert!((300..=400).contains(&shown), "{shown}: at most 100 of each of the four shards");
    assert_eq!(of(&body, "waiting")["lower_bound"], true);
    // All receipts are of one minute.
    let received = of(&body, "received");
    let count = received["count"].as_u64().unwrap();
    assert!((300..=400).contains(&count), "{count}: at most 100 of each of the four shards");
    assert_eq!(received["lower_bound"], true);
}

#[tokio::test(start_paused = true)]
async fn a_look_at_expiring_holds_reads_no_more_than_it_shows() {
    let world = funded().await;
    for n in 0..450 {
        world.submit(&format!("j{n}"), "w1", "0.10").await;
    }
    world.clock.advance(120 * HOUR_MS + MINUTE_MS);
    sweeps_have_run(&world).await;
    let (all, bounded) = (Rule::count("Query", &["by-expiry"]), Rule::count("Query", &["by-expiry", "\"Limit\""]));
    world.aws.add_hook(all.clone());
    world.aws.add_hook(bounded.clone());
    let body = status(&world).await;
    let expired = of(&body, "hold-expired");
    let count = expired["count"].as_u64().unwrap();
    assert!((300..=400).contains(&count), "{count}: at most 100 of each of the four shards");
    assert_eq!(expired["lower_bound"], true);
    assert!(all.hits() > 0 && all.hits() == bounded.hits(), "{} of {}", bounded.hits(), all.hits());
}

#[tokio::test(start_paused = true)]
async fn a_hold_whose_entries_cannot_be_read_takes_no_number_down() {
    let world = submitted().await;
    world.submit("j2", "w1", "2.00").await;
    let damaged = json!({"pk": {"S": "J|t1|j1"}, "sk": {"S": "c"}, "am": {"BOOL": true}});
    overwrite(&world, "ledger", &damaged);
    world.clock.advance(120 * HOUR_MS + MINUTE_MS);
    sweeps_have_run(&world).await;
    let body = status(&world).await;
    assert_eq!(of(&body, "hold-expired")["at_risk"], json!([{"currency": "USD", "amount": "2.000000"}]), "{body}");
}

#[tokio::test(start_paused = true)]
async fn explain_says_when_and_who_and_a_funding_names_its_event() {
    let world = funded().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let waits = shown(&world, "msg_1", SettleUsage).await;
    assert_eq!((&waits["who"], &waits["attempts_left"]), (&json!("the relay"), &json!(19)));
    let due = operation(&world, "msg_1", SettleUsage).await.unwrap().due_ms.unwrap();
    assert_eq!(waits["due_at"], domain::time::rfc3339(due));
    let (status, funding) = ask(&world, "GET", "/control/tenants/t1/wallets/w1/fundings/first", None).await;
    assert_eq!((status, &funding["amount"], &funding["by"]), (200, &json!("100.000000"), &json!("local")));
    assert_eq!(ask(&world, "GET", "/control/tenants/t1/wallets/w1/fundings/other", None).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn no_answer_holds_anything_of_a_body() {
    let world = above_the_hold().await;
    let canary = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 5}, "prompt": "canary-93"}));
    assert_eq!(world.send("msg_2", &canary.replace("job.completed", "job.unknown")).await.1, "ignored");
    world.send("msg_1", &canary).await;
    world.drain().await.unwrap();
    let asks = [
        ("GET", "/control/status".to_owned(), None),
        ("GET", "/control/reviews".to_owned(), None),
        ("GET", "/control/events/acme/msg_1".to_owned(), None),
        (
            "POST",
            "/control/replays".to_owned(),
            Some(json!({"events": ["acme/msg_1", "acme/msg_2"], "reason": "x", "reference": "r"})),
        ),
        ("POST", "/control/reviews".to_owned(), Some(json!({"action": "close", "reason": "x", "dry_run": true}))),
    ];
    for (method, path, body) in asks {
        let (status, answer) = ask(&world, method, &path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert!(!answer.to_string().contains("canary-93"), "{path}: {answer}");
    }
}
