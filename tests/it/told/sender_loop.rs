//! The loop closed: what one hookledger sends, signed and over HTTP, another one takes, through a network that loses,
//! repeats and reorders three in ten, both ways.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

use local::clock::{Clock, ManualClock};
use local::stack::Stack;
use local::world::{answer, completed};
use runtime::call::{Call, CallError, Called, Caller, Reply};
use runtime::gateway::GatewayEvent;
use serde_json::json;

use super::*;
use crate::harness::{accepted, items, open_reviews};

const SECRET: &str = "whsec_dGhlIGxvb3AncyBvd24gc2VjcmV0LCBvZiB0ZXN0cw==";
const DESTINATION: &str = r#"
[subscriptions.books]
to = "http:second"
types = ["job.settled", "job.completed", "job.failed", "job.canceled"]
tenants = ["*"]
ordered = true

[destinations.second]
url = "env:SECOND_URL"
path = "/webhooks/hookledger"
key_life_hours = 24
sign = { scheme = "standard-webhooks", secret = "env:SECOND_SECRET" }
"#;

/// The network between the two, as a seed has it.
#[derive(Debug)]
struct Between {
    second: OnceLock<Reader>,
    dice: Mutex<fastrand::Rng>,
    /// Requests that are still on their way.
    under_way: Mutex<Vec<GatewayEvent>>,
    /// Ids of events in the order in which the second one accepted them, and how often each request arrived.
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    accepted: Vec<String>,
    arrived: usize,
    lost: usize,
    lost_answers: usize,
}

/// The second one's receiver.
struct Reader {
    stack: Arc<Stack>,
    clock: ManualClock,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader")
    }
}

impl Between {
    fn three_in_ten(&self) -> bool {
        self.dice.lock().unwrap().u32(..10) < 3
    }

    /// A request arrives; the status and body that its reader answers.
    async fn arrive(&self, mut event: GatewayEvent) -> Reply {
        let reader = self.second.get().unwrap();
        event.request_context.time_epoch = reader.clock.now_ms();
        let response = reader.stack.webhook(&event).await;
        let mut log = self.log.lock().unwrap();
        log.arrived += 1;
        if answer(&response).0 == 202 {
            let body: Value = serde_json::from_str(event.body.as_deref().unwrap()).unwrap();
            log.accepted.push(body["id"].as_str().unwrap().to_owned());
        }
        Reply { status: response.status_code, body: Some(response.body.into_bytes()), retry_after_s: None }
    }

    /// What was held up on its way comes now, the newest first.
    async fn late_ones(&self) {
        let late = std::mem::take(&mut *self.under_way.lock().unwrap());
        for event in late.into_iter().rev() {
            self.arrive(event).await;
        }
    }
}

impl Caller for Between {
    fn call(&self, call: Call) -> Called<'_> {
        Box::pin(async move {
            let mut event = GatewayEvent {
                raw_path: call.url.strip_prefix("https://second.example").unwrap().to_owned(),
                body: Some(String::from_utf8(call.body).unwrap()),
                ..GatewayEvent::default()
            };
            event.headers = call.headers.into_iter().collect();
            event.request_context.http.method = call.method;
            if self.three_in_ten() {
                self.late_ones().await;
            }
            if self.three_in_ten() {
                self.log.lock().unwrap().lost += 1;
                // Half of them are held up: the sender gives up, and they arrive behind what comes later.
                if self.dice.lock().unwrap().bool() {
                    self.under_way.lock().unwrap().push(event);
                }
                return Err(CallError::Lost("no answer in time"));
            }
            if self.three_in_ten() {
                self.under_way.lock().unwrap().push(event.clone());
            }
            let reply = self.arrive(event).await;
            if self.three_in_ten() {
                self.log.lock().unwrap().lost_answers += 1;
                return Err(CallError::Lost("no answer in time"));
            }
            Ok(reply)
        })
    }
}

async fn pair(seed: u64) -> (World, World, Arc<Between>) {
    let between = Arc::new(Between {
        second: OnceLock::new(),
        dice: Mutex::new(fastrand::Rng::with_seed(seed)),
        under_way: Mutex::default(),
        log: Mutex::default(),
    });
    let mut config = subscribed(DESTINATION);
    config.caller = between.clone();
    config.addresses = [("SECOND_URL", "https://second.example"), ("SECOND_SECRET", SECRET)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let first = world_of(config).await;
    let profile = include_str!("../../../infra/profiles/hookledger.toml");
    let mut config = WorldConfig { providers: format!("{PROVIDERS_TOML}{profile}"), ..WorldConfig::default() };
    config.secrets.insert("HOOKLEDGER_WEBHOOK_SECRET".to_owned(), SECRET.to_owned());
    let second = World::new(config).await.unwrap();
    relay_has_run(&second).await;
    assert_eq!(second.fund("w9", "100.00").await.0, 201);
    between.second.set(Reader { stack: second.stack.clone(), clock: second.clock.clone() }).unwrap();
    (first, second, between)
}

/// How much of what the first one tells is known there to have arrived.
fn settled(first: &World) -> usize {
    let intents = items(first, "events");
    intents
        .iter()
        .filter(|item| item["pk"]["S"].as_str().unwrap().starts_with("I|") && item["st"]["S"] == "settled")
        .count()
}

#[tokio::test(start_paused = true)]
async fn through_losses_repetitions_and_reordering_each_event_is_settled_once_and_in_order() {
    let jobs: Vec<String> = (0..5).map(|n| format!("j{n}")).collect();
    let (mut lost, mut lost_answers, mut repeated) = (0, 0, 0);
    for seed in [1, 2] {
        let (first, second, between) = pair(seed).await;
        for job in &jobs {
            assert_eq!(first.submit(job, "w1", "5.00").await.0, 201);
            let there = json!({"provider": "hookledger", "model": "small-1", "wallet": "w9", "hold": "1.00"});
            assert_eq!(second.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(there)).await.0, 201);
            accepted(&first, &format!("e-{job}"), &completed(job)).await;
        }
        first.minutes(1).await.unwrap();
        for (kind, amount) in [("adjust", "0.001"), ("reverse", "0.002")] {
            for job in &jobs {
                let body = json!({"reference": "r-1", "amount": amount, "reason": "asked for"});
                let path = format!("/control/tenants/t1/jobs/{job}/{kind}");
                assert_eq!(first.control("POST", &path, Some(body)).await.0, 201);
            }
        }
        second.minutes(1).await.unwrap();
        for _ in 0..240 {
            first.minutes(1).await.unwrap();
            second.minutes(1).await.unwrap();
            if settled(&first) == 20 {
                break;
            }
        }
        assert_eq!(settled(&first), 20, "seed {seed}");
        between.late_ones().await;
        second.minutes(3).await.unwrap();
        assert_eq!(open_reviews(&first).await, [""; 0], "seed {seed}");
        assert_eq!(open_reviews(&second).await, [""; 0], "seed {seed}");
        let log = std::mem::take(&mut *between.log.lock().unwrap());
        assert_eq!(log.accepted.len(), 20, "seed {seed}: {:?}", log.accepted);
        assert_eq!(log.accepted.iter().collect::<BTreeSet<_>>().len(), 20, "seed {seed}: each once");
        for job in &jobs {
            let own: Vec<&String> = log.accepted.iter().filter(|id| id.contains(&format!("|{job}|"))).collect();
            let by_hand = [
                format!("job.completed|t1|{job}|1"),
                format!("job.settled|t1|{job}|c"),
                format!("job.settled|t1|{job}|a|r-1"),
                format!("job.settled|t1|{job}|v|r-1"),
            ];
            assert_eq!(own, by_hand.iter().collect::<Vec<_>>(), "seed {seed}");
            let shown = second.job(job).await;
            assert_eq!(shown["transitions"].as_array().unwrap().len(), 1, "seed {seed}: {shown}");
            assert_eq!(shown["settlements"].as_array().unwrap().len(), 1, "seed {seed}: {shown}");
            assert_eq!(shown["settlements"][0]["captured"], "0.008700", "seed {seed}");
        }
        // 100.00 less five times 0.0087.
        assert_eq!(second.wallet("w9").await["available"], "99.956500", "seed {seed}");
        lost += log.lost;
        lost_answers += log.lost_answers;
        repeated += log.arrived - log.accepted.len();
    }
    assert!(lost >= 10 && lost_answers >= 10 && repeated >= 10, "{lost} {lost_answers} {repeated}");
}
