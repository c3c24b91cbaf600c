//! Promise 10: nothing sensitive is logged or answered. Marked words are planted in bodies, headers, secrets and in
//! what AWS answers; none may turn up in a log line of any run, nor in any answer to a provider or operator.

use std::io;
use std::sync::{Arc, Mutex};

use local::clock::ManualClock;
use local::hook::{Fault, Service};
use local::stack::Function;
use local::wire::WireResponse;
use local::world::{BEGINS_MS, World, WorldConfig, completed, event_body};
use runtime::gateway::GatewayEvent;
use serde_json::{Value, json};

use crate::sender::{LIKE_ACME, Sender, Trouble, config, explain, profile, relay_begins_now};

/// In every planted text; nothing else contains it.
const CANARY: &str = "canary";
/// Base64 of "canary-secret-of-beta", behind the prefix of Standard Webhooks.
const SECRET: &str = "whsec_Y2FuYXJ5LXNlY3JldC1vZi1iZXRh";

/// Longer than the queues hide a message.
const VISIBILITY_MS: i64 = 10 * 60_000;

/// Collects log lines.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps every log line's place listening. Without it, a place that another test reaches first, on a thread
/// that collects nothing, may be remembered as one that nobody listens to.
fn stay_awake() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // A global subscriber that another test set before listens as well.
    ONCE.call_once(|| drop(tracing::subscriber::set_global_default(Awake)));
}

/// Listens everywhere and keeps nothing.
struct Awake;

impl tracing::Subscriber for Awake {
    fn register_callsite(&self, _: &'static tracing::Metadata<'static>) -> tracing::subscriber::Interest {
        tracing::subscriber::Interest::sometimes()
    }
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        false
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Collects this thread's log lines at every level until the guard is dropped. The filter is the
/// functions' own at their most talkative level.
pub(crate) fn collect() -> (Lines, tracing::subscriber::DefaultGuard) {
    stay_awake();
    let lines = Lines::default();
    let writer = lines.clone();
    let clock = Arc::new(ManualClock::new(BEGINS_MS));
    let subscriber = runtime::telemetry::subscriber("trace", clock, move || writer.clone());
    (lines, tracing::subscriber::set_default(subscriber))
}

/// A run: everything that was answered in it.
struct Run {
    world: World,
    answers: String,
}

impl Run {
    async fn new(config: WorldConfig) -> Self {
        let world = World::new(config).await.unwrap();
        assert_eq!(world.fund("w1", "100.00").await.0, 201);
        let job =
            json!({"provider": "beta", "provider_job_ref": "p-j1", "model": "small-1", "wallet": "w1", "hold": "5.00"});
        assert_eq!(world.control("PUT", "/control/tenants/t1/jobs/j1", Some(job)).await.0, 201);
        Self { world, answers: String::new() }
    }

    /// beta sends it; the status. The headers hold planted words too.
    async fn send(&mut self, id: &str, body: &str) -> u16 {
        let mut event = Sender::new("beta", "standard-webhooks", SECRET).event(&self.world, id, body);
        event.headers.insert("authorization".to_owned(), "Bearer canary-token".to_owned());
        event.headers.insert("user-agent".to_owned(), "canary-agent".to_owned());
        "canary=1".clone_into(&mut event.raw_query_string);
        self.deliver(&event).await
    }

    async fn deliver(&mut self, event: &GatewayEvent) -> u16 {
        let response = self.world.stack.webhook(event).await;
        self.answers += &format!("{response:?}\n");
        response.status_code
    }

    async fn control(&mut self, method: &str, path: &str, body: Value) -> u16 {
        let (status, body) = self.world.control(method, path, Some(body)).await;
        self.answers += &format!("{body}\n");
        status
    }

    async fn look(&mut self, id: &str) -> Value {
        let shown = explain(&self.world, "beta", id).await.1;
        self.answers += &format!("{shown}\n{}\n{}\n", self.world.job("j1").await, self.world.wallet("w1").await);
        shown
    }
}

fn beta() -> WorldConfig {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    config(&[profile("beta", "standard-webhooks", &more)], &[("beta", SECRET)])
}

/// The sample event with planted members.
fn planted(kind: &str) -> String {
    event_body(
        kind,
        "j1",
        json!({"usage": {"input_tokens": 1200, "output_tokens": 340}, "prompt": "canary-prompt", "canary-name": 1}),
    )
}

/// No planted word in the log, in a form that the log would show it in; and the log is not empty.
fn clean(lines: &Lines, run: &Run) {
    let log = lines.text();
    assert!(log.contains("\"delivery\""), "the run was logged: {log}");
    let telling: Vec<&str> = log.lines().filter(|line| betrays(line)).collect();
    assert!(telling.is_empty(), "logged:\n{}", telling.join("\n"));
    let telling: Vec<&str> = run.answers.lines().filter(|line| betrays(line)).collect();
    assert!(telling.is_empty(), "answered:\n{}", telling.join("\n"));
}

/// The word itself, its base64 (as in the secret and in an encoded body) or its list of bytes.
fn betrays(line: &str) -> bool {
    let lower = line.to_lowercase();
    let bytes = "99, 97, 110, 97, 114, 121";
    let base64 = ["Y2FuYXJ5", "NhbmFye", "jYW5hcn"]; // "canary" at each of the three offsets
    lower.contains(CANARY) || lower.contains(bytes) || base64.iter().any(|part| line.contains(part))
}

#[test]
fn the_search_finds_every_form_of_a_planted_word() {
    for line in [r#"{"a":"Canary-1"}"#, SECRET, "[99, 97, 110, 97, 114, 121]", "eGNhbmFyeQ==", "eHhjYW5hcnk="] {
        assert!(betrays(line), "{line}");
    }
    assert!(!betrays(&completed("j1")));
}

#[tokio::test(start_paused = true)]
async fn receiving_settling_duplicates_and_conflicts_tell_nothing() {
    let (lines, _guard) = collect();
    let mut run = Run::new(beta()).await;
    assert_eq!(run.send("e1", &planted("job.progress")).await, 202);
    assert_eq!(run.send("e2", &planted("job.completed")).await, 202);
    run.world.drain().await.unwrap();
    assert_eq!(run.look("e2").await["status"], "completed");
    assert_eq!(run.send("e2", &planted("job.completed")).await, 200, "a duplicate");
    assert_eq!(run.send("e2", &planted("job.progress")).await, 200, "a conflict");
    assert_eq!(run.look("e2").await["conflicts"].as_array().unwrap().len(), 1);
    clean(&lines, &run);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_or_quarantined_tells_nothing() {
    let (lines, _guard) = collect();
    let mut run = Run::new(beta()).await;
    for body in [
        "canary".to_owned(),
        r#"{"canary":"canary"#.to_owned(),
        r#"{"canary":1,"canary":2}"#.to_owned(),
        r#"{"type":{"canary":1}}"#.to_owned(),
        r#"{"type":"canary.happened"}"#.to_owned(),
        event_body("job.completed", "j1", json!({"model": "canary-model"})),
        event_body("job.completed", "j1", json!({"currency": "canary"})),
        event_body("job.completed", "j1", json!({"tenant": ["canary"]})),
    ] {
        assert_eq!(run.send(&format!("e-{}", body.len()), &body).await, 200, "{body}");
    }
    let usage = event_body("job.completed", "j1", json!({"usage": "canary"}));
    assert_eq!(run.send("e-usage", &usage).await, 202);
    // Unauthentic: another secret, another body, no signature that can be read.
    let mut event =
        Sender::new("beta", "standard-webhooks", "whsec_b3RoZXI=").event(&run.world, "e1", planted("job.completed"));
    assert_eq!(run.deliver(&event).await, 401);
    event.headers.insert("webhook-signature".to_owned(), "v1,canary".to_owned());
    assert_eq!(run.deliver(&event).await, 401);
    let not_base64 = GatewayEvent { body: Some("canary %".to_owned()), ..event };
    assert_eq!(run.deliver(&not_base64).await, 400);
    // The control API repeats the values that a caller must repair, never the rest.
    let job = "/control/tenants/t1/jobs/j2";
    assert_eq!(run.control("PUT", job, json!({"metadata": "canary"})).await, 400);
    assert_eq!(run.control("PUT", job, json!("canary")).await, 400);
    run.world.drain().await.unwrap();
    clean(&lines, &run);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_secret_tells_nothing() {
    for secret in ["whsec_canary!", "canary\n", "sk_canary", "whsec_Y2FuYXJ5\n"] {
        let (lines, _guard) = collect();
        let mut config = beta();
        config.secrets.insert("BETA_SECRET".to_owned(), secret.to_owned());
        let mut run = Run::new(config).await;
        assert_eq!(run.send("e1", &completed("j1")).await, 500, "{secret:?}");
        clean(&lines, &run);
    }
}

/// What DynamoDB and SQS may put into an error: the old item, the request's values.
fn telling_faults(service: Service) -> Vec<Fault> {
    let (prefix, item) = ("com.amazonaws.dynamodb.v20120810#", json!({"pk": {"S": "canary-item"}}));
    let answer = |body: Value| Fault::Status(WireResponse::json(400, body.to_string()));
    let message = "canary-message: the value canary-value is wrong";
    match service {
        Service::DynamoDb => vec![
            answer(json!({"__type": format!("{prefix}ValidationException"), "message": message})),
            answer(
                json!({"__type": format!("{prefix}ConditionalCheckFailedException"), "message": message, "Item": item}),
            ),
            answer(json!({"__type": format!("{prefix}TransactionCanceledException"), "Message": message,
                "CancellationReasons": [{"Code": "ConditionalCheckFailed", "Message": message, "Item": item}]})),
            Fault::Status(WireResponse::json(500, message)),
            Fault::Status(WireResponse::json(200, message)),
        ],
        Service::EventBridge => vec![answer(json!({"__type": "ValidationException", "message": message}))],
        Service::Sqs => vec![
            Fault::Status(WireResponse {
                status: 400,
                query_error: Some("InvalidParameterValue;Sender".to_owned()),
                body: json!({"__type": "com.amazonaws.sqs#InvalidParameterValue", "message": message})
                    .to_string()
                    .into(),
            }),
            Fault::Status(WireResponse::json(500, message)),
        ],
    }
}

#[tokio::test(start_paused = true)]
async fn failures_of_aws_tell_nothing_of_what_aws_says() {
    let places = [
        (Function::Receiver, Service::DynamoDb, Some("GetItem")),
        (Function::Receiver, Service::DynamoDb, Some("PutItem")),
        (Function::Receiver, Service::Sqs, None),
        (Function::Job, Service::DynamoDb, None),
        (Function::Job, Service::DynamoDb, Some("PutItem")),
        (Function::Billing, Service::DynamoDb, None),
        (Function::Billing, Service::DynamoDb, Some("TransactWriteItems")),
        (Function::Relay, Service::DynamoDb, None),
    ];
    for (function, service, operation) in places {
        for fault in telling_faults(service) {
            let (lines, _guard) = collect();
            let config = beta();
            let trouble = Trouble::failing(&config.hooks, function, service, operation, fault);
            let mut run = Run::new(config).await;
            for round in 0..2 {
                run.send("e1", &planted("job.completed")).await;
                run.world.drain().await.unwrap();
                if function == Function::Relay {
                    relay_begins_now(&run.world).await;
                    run.world.minutes(1).await.unwrap();
                }
                let status = run.look("e1").await["status"].clone();
                // Billing commits the transition too, and nothing here needs the relay.
                let untroubled = round == 1 || matches!(function, Function::Job | Function::Relay);
                assert_eq!(status == "completed", untroubled, "{function:?} {operation:?}: {status}");
                trouble.end();
                run.world.clock.advance(VISIBILITY_MS); // what was reported failed comes back
            }
            run.world.drain().await.unwrap();
            assert_eq!(run.look("e1").await["status"], "completed", "{function:?} {operation:?}");
            clean(&lines, &run);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failures_of_aws_tell_the_operator_nothing_either() {
    for operation in [None, Some("GetItem"), Some("TransactWriteItems")] {
        for fault in telling_faults(Service::DynamoDb) {
            let (lines, _guard) = collect();
            let config = beta();
            let trouble = Trouble::failing(&config.hooks, Function::Control, Service::DynamoDb, operation, fault);
            trouble.end();
            let mut run = Run::new(config).await;
            run.send("e1", &planted("job.completed")).await;
            trouble.begin();
            let fund = json!({"amount": "1.00", "reference": "r"});
            assert!(run.control("POST", "/control/tenants/t1/wallets/w1/fund", fund).await >= 500);
            let job = json!({"provider": "beta", "model": "small-1", "wallet": "w1", "hold": "1.00"});
            assert!(run.control("PUT", "/control/tenants/t1/jobs/j2", job).await >= 500);
            run.look("e1").await;
            clean(&lines, &run);
        }
    }
}
