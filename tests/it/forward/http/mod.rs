//! forward to HTTP: the states of an intent, the rules of its destination, and a destination that has every fault.

mod board;
mod crash;
mod orders;
mod real;

use std::sync::Arc;

use domain::limits::RetryPolicy;
use local::world::BEGINS_MS;
use runtime::call::Caller;
use serde_json::{Value, json};
use signature::{Headers, Recipe, Request, Secret, Verifier};

use super::*;
use board::{Board, Fault};

/// What the destination holds of our key in each of the profiles below.
const LOOKUP: &str = r#"lookup = { path = "/v1/jobs?ref={key}", found = "/data/0", reference = "/data/0/reference", id = "/data/0/id", settles_after_s = 120 }
"#;
const KEYED: &str = "key_life_hours = 2\nkey_margin_minutes = 60\n";
const WHSEC: &str = "whsec_dGVzdHMtb25seS1zZWNyZXQtb2YtYS1ib2FyZA==";

/// GitHub's events, forwarded to the board under these rules.
fn board_config(rules: &str) -> WorldConfig {
    let providers = GITHUB.replace("sqs:HOOKLEDGER_FORWARD_QUEUE_URL", "http:board");
    let table = format!(
        "{providers}\n[destinations.board]\nurl = \"env:BOARD_URL\"\npath = \"/v1/jobs\"\nid = \"/id\"\n\
         headers = {{ \"x-api-version\" = \"2026-11\" }}\nauth = {{ as = \"bearer\", secret = \"env:BOARD_TOKEN\" }}\n{rules}"
    );
    let mut config = config();
    config.providers = table;
    config.addresses =
        [("BOARD_URL", "https://board.example/"), ("BOARD_TOKEN", "token-canary"), ("BOARD_SIGN", WHSEC)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    config
}

/// A world that forwards to a board.
async fn world_with(config: WorldConfig, life_ms: i64) -> (World, Board) {
    // The world has a clock of its own; the board is given it when it is known.
    let slot = Arc::new(std::sync::OnceLock::new());
    let config = WorldConfig { caller: Arc::new(Later(slot.clone())), ..config };
    let world = World::new(config).await.unwrap();
    let board = Board::new(world.clock.clone(), life_ms);
    slot.set(board.clone()).unwrap();
    (world, board)
}

/// The board, once there is one.
#[derive(Debug)]
struct Later(Arc<std::sync::OnceLock<Board>>);

impl Caller for Later {
    fn call(&self, call: runtime::call::Call) -> runtime::call::Called<'_> {
        self.0.get().unwrap().call(call)
    }
}

async fn intent(world: &World, id: &str) -> Value {
    operation(world, id).await["intent"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_event_leaves_once_as_a_post_with_its_key() {
    let (world, board) = world_with(board_config(KEYED), HOUR_MS).await;
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.drain().await.unwrap();
    let sent = board.sent("github/d-1");
    assert_eq!((sent.len(), board.effects("github/d-1")), (1, 1));
    assert_eq!((sent[0].method.as_str(), sent[0].url.as_str()), ("POST", "https://board.example/v1/jobs"));
    let header = |name: &str| sent[0].headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    assert_eq!(header("idempotency-key"), Some(HASH_OF_D1));
    assert_eq!(header("authorization"), Some("Bearer token-canary"));
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("x-api-version"), Some("2026-11"));
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(body["key"], "github|d-1|-|outbound|forward");
    let shown = operation(&world, "d-1").await;
    assert_eq!((&shown["state"], &shown["effect"]), (&json!("done"), &json!("forwarded to http:board")));
    let by_hand = json!({
        "key": "github|d-1|-|outbound|forward", "to": "http:board", "state": "settled", "attempts": 1,
        "first_sent_at": "2026-11-29T12:00:00Z", "last_sent_at": "2026-11-29T12:00:00Z", "late_answers": 0,
        "result": {"status": 200, "id": "job-0", "note": "status 200", "at": "2026-11-29T12:00:00Z"},
    });
    assert_eq!(shown["intent"], by_hand);
    assert!(!format!("{:?}", items(&world, "events")).contains("token-canary"));
    // Hours later, and delivered again: still once.
    world.clock.advance(HOUR_MS);
    let again = github(&world, "d-1", "issues", &json!({"action": "opened"}).to_string());
    assert_eq!(deliver(&world, &again).await, said(200, "duplicate"));
    world.minutes(3).await.unwrap();
    assert_eq!((board.sent("github/d-1").len(), board.effects("github/d-1")), (1, 1));
}

/// Two events of one action go to the board once.
#[tokio::test(start_paused = true)]
async fn two_events_of_one_action_are_one_request() {
    let (world, board) = world_with(board_config(KEYED), HOUR_MS).await;
    let body = json!({"action": "opened", "number": 7});
    send(&world, "d-1", "pull_request", &body).await;
    send(&world, "d-2", "pull_request", &body).await;
    world.drain().await.unwrap();
    assert_eq!(board.sent("github/d-1").len() + board.sent("github/d-2").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_set_up_is_said_and_waits() {
    let set = |name: &str, value: &str| {
        let mut config =
            board_config(&format!("{KEYED}sign = {{ scheme = \"standard-webhooks\", secret = \"env:BOARD_SIGN\" }}\n"));
        config.addresses.insert(name.to_owned(), value.to_owned());
        config
    };
    for (name, value) in [
        ("BOARD_URL", ""),
        ("BOARD_URL", "http://board.example"),
        ("BOARD_TOKEN", ""),
        ("BOARD_TOKEN", "secretsmanager:hooks/board"),
        ("BOARD_SIGN", "not a secret of that scheme"),
    ] {
        let (world, board) = world_with(set(name, value), HOUR_MS).await;
        send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
        world.drain().await.unwrap();
        let shown = operation(&world, "d-1").await;
        assert_eq!((&shown["state"], &shown["class"]), (&json!("retrying"), &json!("refused")), "{name} {value}");
        let note = shown["note"].as_str().unwrap();
        assert!(note.contains(name) && (value.is_empty() || !note.contains(value)), "{note}");
        assert_eq!((board.sent("github/d-1").len(), shown["intent"]["state"].as_str()), (0, Some("pending")));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_never_set_up_is_a_persons_in_the_end() {
    let policy = RetryPolicy { max_attempts: 3, cap_ms: 60_000, ..RetryPolicy::default() };
    let mut config = WorldConfig { policy, ..board_config(KEYED) };
    config.addresses.remove("BOARD_TOKEN");
    let (world, board) = world_with(config, HOUR_MS).await;
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(10).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "needs-review attempts-exhausted");
    assert_eq!(board.sent("github/d-1").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_signed_forward_is_one_that_our_own_verifier_takes() {
    let (lines, _guard) = crate::privacy::collect();
    let rules = format!("{KEYED}sign = {{ scheme = \"standard-webhooks\", secret = \"env:BOARD_SIGN\" }}\n");
    let (world, board) = world_with(board_config(&rules), HOUR_MS).await;
    board.script("github/d-1", &[Fault::GarbageBefore, Fault::LostBefore]);
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(5).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "done already-done");
    let sent = board.sent("github/d-1");
    assert_eq!((sent.len(), board.same("github/d-1")), (3, 3));
    let secrets = vec![Secret::new("test", WHSEC)];
    let mut verifier = Verifier::new(Recipe::named("standard-webhooks").unwrap(), secrets).unwrap();
    verifier.set_tolerance(Some(5));
    let mut times = Vec::new();
    for (index, call) in sent.iter().enumerate() {
        let header = |name: &str| call.headers.iter().find(|(n, _)| n == name).unwrap().1.clone();
        let headers = Headers::new(call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let request = Request { method: "POST", url: None, headers: &headers, body: &call.body };
        let at: i64 = header("webhook-timestamp").parse().unwrap();
        verifier.verify(&request, at * 1_000).unwrap();
        assert_eq!(header("webhook-id"), HASH_OF_D1, "one id for every try");
        assert_eq!(header("hookledger-attempt"), (index + 1).to_string());
        assert_eq!(header("hookledger-first-sent"), (BEGINS_MS / 1_000).to_string());
        times.push(at);
    }
    assert!(
        times[0] == BEGINS_MS / 1_000 && times[0] < times[1] && times[1] < times[2],
        "the attempt's own: {times:?}"
    );
    // Neither the token, nor the secret, nor what the board answers is in a log line.
    let text = lines.text();
    assert!(!text.is_empty() && !text.contains("canary") && !text.contains(&WHSEC[6..]), "{text}");
}

/// A destination that refuses for good is a person's, and no redelivery sends it again.
#[tokio::test(start_paused = true)]
async fn what_is_declined_or_has_a_reused_key_is_a_persons() {
    let (world, board) = world_with(board_config(&format!("{KEYED}failed = [\"502\"]\n")), HOUR_MS).await;
    board.script("github/d-1", &[Fault::GarbageBefore]);
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(2).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "needs-review declined");
    assert_eq!(intent(&world, "d-1").await["state"], "failed");
    let again = github(&world, "d-1", "issues", &json!({"action": "opened"}).to_string());
    assert_eq!(deliver(&world, &again).await, said(200, "duplicate"));
    world.minutes(2).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "needs-review declined");
    assert_eq!((board.sent("github/d-1").len(), board.effects("github/d-1")), (1, 0));

    let (world, board) = world_with(board_config(&format!("{KEYED}key_reused = [\"502\"]\n")), HOUR_MS).await;
    board.script("github/d-1", &[Fault::GarbageBefore]);
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(10).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "needs-review conflict");
    assert_eq!((board.sent("github/d-1").len(), board.effects("github/d-1")), (1, 0));
}

/// An outage of hours, with tries that are few because the breaker holds them back.
#[tokio::test(start_paused = true)]
async fn a_breaker_spares_the_tries_of_a_long_outage() {
    let rules = format!("{KEYED}breaker = {{ failures = 2, cool_s = 3600 }}\n");
    let (world, board) = world_with(board_config(&rules), HOUR_MS).await;
    board.script("github/d-1", &[Fault::Down, Fault::Down]);
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(5).await.unwrap();
    let shown = operation(&world, "d-1").await;
    assert!(shown["note"].as_str().unwrap().contains("left alone"), "{shown}");
    assert_eq!(shown["attempts"], 2, "what the breaker holds back is no try: {shown}");
    for _ in 0..27 {
        world.clock.advance(20 * 60_000);
        world.minutes(1).await.unwrap();
    }
    assert_eq!(state(&world, "d-1").await, "done already-done");
    assert_eq!(board.effects("github/d-1"), 1);
}

/// Down for more than a day, where the limits of age and tries, and the event's expiry, allow as much.
#[tokio::test(start_paused = true)]
async fn a_destination_that_is_down_for_a_day_gets_it_afterwards() {
    let rules = format!("{KEYED}breaker = {{ failures = 2, cool_s = 3600 }}\n");
    let policy = RetryPolicy { max_age_ms: 48 * HOUR_MS, max_attempts: 50, ..RetryPolicy::default() };
    let mut config = WorldConfig { policy, ..board_config(&rules) };
    let expiry = "retry_window_hours = 72\n";
    config.providers = config.providers.replacen(expiry, &format!("{expiry}expire_after_hours = 48\n"), 1);
    let (world, board) = world_with(config, HOUR_MS).await;
    board.script("github/d-1", &[Fault::Down; 7]); // four hours each
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(5).await.unwrap();
    for _ in 0..72 {
        world.clock.advance(20 * 60_000);
        world.minutes(1).await.unwrap();
    }
    assert_eq!(board.effects("github/d-1"), 0, "25 hours later");
    for _ in 0..40 {
        world.clock.advance(20 * 60_000);
        world.minutes(1).await.unwrap();
    }
    assert_eq!((state(&world, "d-1").await.as_str(), board.effects("github/d-1")), ("done already-done", 1));
}

#[tokio::test(start_paused = true)]
async fn a_person_who_has_looked_sends_it_once_more() {
    let (world, board) = world_with(board_config(""), 0).await;
    board.script("github/d-1", &[Fault::LostBefore, Fault::LostBefore]);
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.minutes(3).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "needs-review unknown-outcome");
    let path = "/control/reviews/forward~3Agithub~2Fd-1";
    let decide = async |body: Value| world.control("POST", path, Some(body)).await.0;
    // Trying it again by itself sends nothing, and neither does a redelivery.
    assert_eq!(decide(json!({"action": "retry", "reason": "again"})).await, 200);
    world.minutes(2).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "needs-review unknown-outcome");
    assert_eq!(board.sent("github/d-1").len(), 1);
    assert_eq!(decide(json!({"action": "approve", "alternative": "cap", "reason": "wrong"})).await, 409);
    // An approval is one sending: its answer is lost too, so it is a person's again.
    let resend = json!({"action": "approve", "alternative": "resend", "reason": "it is not there"});
    assert_eq!(decide(resend.clone()).await, 200);
    world.minutes(2).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "needs-review unknown-outcome");
    assert_eq!(board.sent("github/d-1").len(), 2);
    let again = json!({"action": "approve", "alternative": "resend", "reason": "still not there"});
    assert_eq!(decide(again).await, 200);
    world.minutes(2).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "done already-done");
    assert_eq!((board.same("github/d-1"), board.effects("github/d-1")), (3, 1));
}

/// Within two seconds a turn is waited for; a later one is a deferral that counts no try.
#[tokio::test(start_paused = true)]
async fn a_rate_limit_spaces_requests_and_costs_no_tries() {
    let (world, board) = world_with(board_config(&format!("{KEYED}rate_per_s = 2\n")), HOUR_MS).await;
    for n in 0..8 {
        send(&world, &format!("d-{n}"), "issues", &json!({"action": "opened"})).await;
    }
    world.drain().await.unwrap();
    // By hand: turns at 0, 0.5, 1, 1.5 and 2 s; the sixth would be at 2.5 s.
    let mut left = Vec::new();
    for n in 0..8 {
        if board.effects(&format!("github/d-{n}")) == 0 {
            left.push(operation(&world, &format!("d-{n}")).await);
        }
    }
    assert_eq!(left.len(), 3);
    for shown in left {
        assert_eq!((&shown["state"], &shown["attempts"]), (&json!("retrying"), &json!(0)), "{shown}");
        assert_eq!(shown["intent"]["state"], "pending");
    }
    world.minutes(3).await.unwrap();
    for n in 0..8 {
        assert_eq!(board.effects(&format!("github/d-{n}")), 1);
    }
}
