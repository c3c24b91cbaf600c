//! A world for tests whose numbers were worked out by hand: short ways to ask, send and look, and the
//! books, which must be clean at the end.

use local::hook::{Call, FnHook, HookDecision};
use local::stack::Function;
use local::world::{Hooks, World, WorldConfig};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::limits::SHARDS;
use domain::time::rfc3339;
use store::Cursor;

use super::bench::{PROVIDERS, prices};
use super::books::Books;

/// A world, and short ways to it. Prices as in [`super::bench`]: the first half hour a token costs half a
/// micro, so 2 tokens are 0.000001 and 2,000,000 tokens are 1.00.
pub struct Scene {
    pub world: World,
}

impl Scene {
    /// Lets the event sources work, and 1.00 come into w1 while a call of theirs is held back.
    pub async fn drain_while_funded(&self) {
        let fund = async {
            meanwhile().await;
            let body = json!({"amount": "1.00", "reference": "second"});
            assert_eq!(self.world.control("POST", "/control/tenants/t1/wallets/w1/fund", Some(body)).await.0, 201);
        };
        let (drained, ()) = tokio::join!(self.world.drain(), fund);
        drained.unwrap();
    }

    /// A world of the profiles and prices of [`super::bench`].
    pub async fn new() -> Self {
        Self::with(WorldConfig { providers: PROVIDERS.to_owned(), prices: prices(), ..WorldConfig::default() }).await
    }

    /// The same with hooks.
    pub async fn hooked(hooks: &Hooks) -> Self {
        let (providers, prices) = (PROVIDERS.to_owned(), prices());
        Self::with(WorldConfig { providers, prices, hooks: hooks.clone(), ..WorldConfig::default() }).await
    }

    pub async fn with(config: WorldConfig) -> Self {
        let scene = Self { world: World::new(config).await.unwrap() };
        scene.relay_begins_now().await;
        scene
    }

    /// The relay's first run looks a day back, and nothing was there.
    async fn relay_begins_now(&self) {
        let now_ms = self.world.stack.app.clock.now_ms();
        for shard in 0..SHARDS {
            let store = &self.world.stack.app.store;
            store.advance_cursor(Cursor::Receipts, shard, now_ms / 60_000 - 3).await.unwrap();
            store.advance_cursor(Cursor::Expiry, shard, now_ms / 600_000 - 1).await.unwrap();
        }
    }

    /// Wallet w1 in USD with this much, and the jobs with their holds of one model.
    pub async fn open(&self, amount: &str, jobs: &[(&str, &str)], model: &str) {
        assert_eq!(self.world.fund("w1", amount).await.0, 201);
        for (job, hold) in jobs {
            assert_eq!(self.submit(job, "w1", hold, model).await, 201, "{job}");
        }
    }

    pub async fn submit(&self, job: &str, wallet: &str, hold: &str, model: &str) -> u16 {
        let body = json!({
            "provider": "acme", "provider_job_ref": format!("p-{job}"), "model": model, "wallet": wallet, "hold": hold,
        });
        self.world.control("PUT", &format!("/control/tenants/t1/jobs/{job}"), Some(body)).await.0
    }

    /// An action on a job; the status.
    pub async fn act(&self, job: &str, action: &str, reference: &str, amount: &str) -> u16 {
        let mut body = json!({"reference": reference, "reason": "a test"});
        if !amount.is_empty() {
            body["amount"] = json!(amount);
        }
        self.world.control("POST", &format!("/control/tenants/t1/jobs/{job}/{action}"), Some(body)).await.0
    }

    /// The body of an event of a job, written now.
    pub fn body(&self, kind: &str, job: &str, more: Value) -> String {
        let now_ms = self.world.stack.app.clock.now_ms();
        let mut data = json!({"tenant": "t1", "job_id": job, "id": format!("p-{job}")});
        if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
            data.extend(more);
        }
        json!({"type": kind, "timestamp": rfc3339(now_ms), "data": data}).to_string()
    }

    /// Sends an event and leaves its messages on their way.
    pub async fn send(&self, id: &str, kind: &str, job: &str, more: Value) {
        let body = self.body(kind, job, more);
        let (status, _) = self.world.send(id, &body).await;
        assert!(status == 202 || status == 200, "{id}: {status}");
    }

    /// Sends an event and lets the event sources work.
    pub async fn event(&self, id: &str, kind: &str, job: &str, more: Value) {
        self.send(id, kind, job, more).await;
        self.world.drain().await.unwrap();
    }

    /// A success with this many tokens.
    pub async fn completed(&self, id: &str, job: &str, tokens: i64) {
        self.event(id, "job.completed", job, json!({"usage": {"tokens": tokens}})).await;
    }

    /// A correction.
    pub async fn corrected(&self, id: &str, job: &str, reference: &str, order: i64, tokens: i64) {
        let more = json!({"correction_id": reference, "sequence": order, "usage": {"tokens": tokens}});
        self.event(id, "usage.corrected", job, more).await;
    }

    /// Beyond the life of every hold: 72 minutes, then the relay runs.
    pub async fn outlive(&self) {
        self.world.clock.advance(72 * 60_000);
        self.relay_once().await;
    }

    /// The relay runs once and the event sources work.
    pub async fn relay_once(&self) {
        let now_ms = self.world.stack.app.clock.now_ms();
        for shard in 0..SHARDS {
            let store = &self.world.stack.app.store;
            store.advance_cursor(Cursor::Receipts, shard, now_ms / 60_000 - 3).await.unwrap();
        }
        self.world.stack.relay().await.unwrap();
        self.world.drain().await.unwrap();
    }

    /// available and held of w1.
    pub async fn wallet(&self) -> (String, String) {
        let wallet = self.world.wallet("w1").await;
        let text = |name: &str| wallet[name].as_str().unwrap_or_default().to_owned();
        (text("available"), text("held"))
    }

    /// Kind, amount and release of each settlement of a job, in the order of the ledger.
    pub async fn settlements(&self, job: &str) -> Vec<String> {
        let job = self.world.job(job).await;
        let one = |s: &Value| {
            let text = |name: &str| s[name].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("kind"), text("amount"), text("released"))
        };
        job["settlements"].as_array().unwrap().iter().map(one).collect()
    }

    /// State and class of each operation of an event: `settle-usage review funds-short`.
    pub async fn operations(&self, id: &str) -> Vec<String> {
        let event = self.world.explain(id).await;
        let one = |o: &Value| {
            let text = |name: &str| o[name].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("operation"), text("state"), text("class")).trim_end().to_owned()
        };
        event["operations"].as_array().unwrap().iter().map(one).collect()
    }

    /// Every promise about money holds over all tables.
    pub fn clean(&self) {
        assert_eq!(Books::default().audit(&self.world), Vec::<String>::new());
    }
}

/// Holds back the first `times` calls of this operation for half a second, so that another writer comes
/// between what was read and what is written.
pub fn slow(hooks: &Hooks, function: Function, operation: &'static str, times: usize) {
    let left = AtomicUsize::new(times);
    hooks.add(
        function,
        Arc::new(FnHook(move |call: &Call| {
            let mine = call.operation == operation
                && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            if mine {
                HookDecision::Delay(Duration::from_millis(500), Box::new(HookDecision::Pass))
            } else {
                HookDecision::Pass
            }
        })),
    );
}

/// Lets the work of another function get as far as its held-back call.
pub async fn meanwhile() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
