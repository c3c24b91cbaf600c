//! Everything known of one event: receipt, deliveries, each operation, what it led to, what happens
//! next. No payload.

use domain::event::EventRef;
use domain::ids::ItemId;
use domain::intent::Intent;
use domain::limits::{BUCKET_MS, RetryPolicy};
use domain::operation::{OperationKey, OperationRecord};
use domain::receipt::{Conflict, Item, Receipt};
use domain::replay::Replayed;
use domain::review::{Decision, ReviewId};
use domain::status::{EventEffects, Stage, event_status};
use runtime::App;
use runtime::gateway::GatewayResponse;
use runtime::problem::Problem;
use serde_json::{Value, json};

use crate::jobs::timestamp;
use crate::resolve::decision_json;
use crate::unavailable;

pub(crate) async fn show(app: &App, provider: &str, id: &str) -> Result<GatewayResponse, Problem> {
    let event: EventRef = format!("{provider}/{id}")
        .parse()
        .map_err(|error: domain::ids::IdError| Problem::invalid(error.to_string()))?;
    let records = app.store.load_event(&event).await.map_err(unavailable)?;
    let records = records.ok_or_else(|| Problem::not_found(format!("event {event} was never received")))?;
    let receipt = &records.receipt;
    let effects = app.store.effects_of(receipt).await.map_err(unavailable)?;
    let (deliveries, conflicts) = app.store.load_deliveries(&event).await.map_err(unavailable)?;
    let mut operations = Vec::new();
    for key in receipt.operations() {
        let record = records.operation(&key);
        // A straight operation was never in review; one more small read for each of the others.
        let decisions = match record {
            Some(_) => app.store.decisions(&ReviewId::Operation(key.clone())).await.map_err(unavailable)?,
            None => Vec::new(),
        };
        operations.push(Operation { decisions, policy: app.policy, ..Operation::of(&effects, receipt, record, key) });
    }
    let stages: Vec<_> = operations.iter().map(|o| (o.key.name, o.stage)).collect();
    let mut shown = receipt_json(&event, receipt);
    shown["status"] = json!(event_status(receipt, &stages));
    shown["deliveries"] = json!(deliveries.count + 1);
    shown["last_delivery_at"] = json!(timestamp(deliveries.last_ms.max(receipt.arrival_ms)));
    shown["operations"] = operations.iter().map(Operation::json).collect();
    shown["conflicts"] = conflicts.iter().map(|conflict| conflict_json(&event, conflict)).collect();
    shown["replays"] = records.replays.iter().map(replay_json).collect();
    shown["items"] = receipt.items.iter().map(item_json).collect();
    shown["fetched"] = fetched_json(receipt);
    Ok(GatewayResponse::json(200, &shown))
}

fn receipt_json(event: &EventRef, receipt: &Receipt) -> Value {
    let envelope = &receipt.envelope;
    json!({
        "event": event, "type": receipt.event_type, "received_at": timestamp(receipt.arrival_ms),
        "first_sent_at": receipt.first_sent_ms.map(timestamp), "attempt": receipt.attempt,
        "payload_hash": receipt.payload_hash, "key_id": receipt.key_id, "id_signed": receipt.id_signed,
        "reason": receipt.empty, "note": receipt.note,
        "tenant": envelope.tenant, "job": envelope.job, "provider_job_ref": envelope.provider_ref,
        "wallet": envelope.wallet, "outcome": envelope.outcome, "sequence": envelope.sequence,
        "booking": envelope.booking, "version": envelope.version,
    })
}

/// One item of a delivery that carries several, with the reason why it leads to nothing, if it does.
fn item_json(item: &Item) -> Value {
    let envelope = &item.envelope;
    json!({
        "item": item.id, "type": item.event_type, "first_sent_at": item.first_sent_ms.map(timestamp),
        "reason": item.empty, "note": item.note,
        "tenant": envelope.tenant, "job": envelope.job, "provider_job_ref": envelope.provider_ref,
        "wallet": envelope.wallet, "outcome": envelope.outcome, "sequence": envelope.sequence,
        "booking": envelope.booking, "version": envelope.version,
    })
}

/// What was fetched for the event or its items: where from, when, and which fields; no values.
fn fetched_json(receipt: &Receipt) -> Value {
    let only = ItemId::only();
    let items = receipt.items.iter().map(|item| (&item.id, &item.envelope));
    let all = std::iter::once((&only, &receipt.envelope)).chain(items);
    let found = all.filter_map(|(item, envelope)| Some((item, envelope.fetched.as_deref()?)));
    found
        .map(|(item, found)| {
            json!({
                "item": item, "from": found.from, "at": timestamp(found.at_ms), "gave": found.gave,
            })
        })
        .collect()
}

/// Who replayed the event, why and when, and the plan that it added.
fn replay_json(replayed: &Replayed) -> Value {
    let planned: Vec<String> = replayed.plan.iter().map(|planned| planned.clone().into()).collect();
    json!({
        "reference": replayed.reference, "actor": replayed.actor, "reason": replayed.reason,
        "at": timestamp(replayed.created_ms), "planned_anew": planned,
    })
}

fn conflict_json(event: &EventRef, conflict: &Conflict) -> Value {
    let open = conflict.review_since_ms.map(|_| ReviewId::Conflict(event.clone(), conflict.payload_hash.clone()));
    json!({
        "review": open.map(|id| id.to_string()), "closed_at": conflict.closed_ms.map(timestamp),
        "payload_hash": conflict.payload_hash, "received_at": timestamp(conflict.arrival_ms),
        "effect": "none", "in_review_since": conflict.review_since_ms.map(timestamp),
    })
}

struct Operation<'a> {
    key: OperationKey,
    stage: Stage,
    effect: Option<String>,
    intent: Option<&'a Intent>,
    record: Option<&'a OperationRecord>,
    received_ms: i64,
    decisions: Vec<Decision>,
    policy: RetryPolicy,
}

impl<'a> Operation<'a> {
    fn of(
        effects: &'a EventEffects, receipt: &Receipt, record: Option<&'a OperationRecord>, key: OperationKey,
    ) -> Self {
        let effect = effects.effect(&key, record);
        let stage = Stage::of(effect.is_some(), record);
        let (decisions, policy) = (Vec::new(), RetryPolicy::default());
        let intent = effects.intent(&key);
        Self { key, stage, effect, intent, record, received_ms: receipt.arrival_ms, decisions, policy }
    }

    /// What happens next, and when; empty when nothing will.
    fn next(&self) -> String {
        let due = self.record.and_then(|r| r.due_ms);
        match self.stage {
            Stage::Done | Stage::Noop | Stage::Closed => String::new(),
            Stage::NeedsReview => "a person decides; the provider's redelivery also tries it again".to_owned(),
            Stage::Retrying if self.parked().is_some() => {
                format!("held back: {} is paused; resumed in order of arrival", self.parked().unwrap_or_default())
            }
            Stage::Retrying => due.map_or_else(String::new, |ms| format!("tried again at {}", timestamp(ms))),
            Stage::Processing => {
                let checked = self.received_ms + 4 * BUCKET_MS; // grace, bucket and one run of the relay
                format!("with its consumer; without an effect the relay sends it again by {}", timestamp(checked))
            }
        }
    }

    /// The switch that holds it back.
    fn parked(&self) -> Option<&str> {
        self.record.and_then(|record| record.parked.as_deref())
    }

    /// Whose turn it is.
    fn who(&self) -> Option<&'static str> {
        match self.stage {
            Stage::Done | Stage::Noop | Stage::Closed => None,
            Stage::NeedsReview => Some("a person"),
            Stage::Retrying if self.parked().is_some() => Some("whoever paused it"),
            Stage::Retrying => Some("the relay"),
            Stage::Processing => Some("its consumer"),
        }
    }

    fn json(&self) -> Value {
        let waits = self.record.filter(|_| self.stage == Stage::Retrying);
        let due_ms = waits.filter(|record| record.parked.is_none()).and_then(|record| record.due_ms);
        let review = (self.stage == Stage::NeedsReview).then(|| ReviewId::Operation(self.key.clone()).to_string());
        json!({
            "review": review, "due_at": due_ms.map(timestamp), "who": self.who(), "paused_by": self.parked(),
            "attempts_left": waits.map(|record| self.policy.max_attempts.saturating_sub(record.attempts)),
            "decisions": self.decisions.iter().map(decision_json).collect::<Vec<_>>(),
            "operation": self.key.name, "consumer": self.key.name.consumer(), "item": self.key.item,
            "state": self.stage, "effect": self.effect, "next": self.next(),
            "class": self.record.map(|r| r.class), "note": self.record.map(|r| r.note.as_str()),
            "attempts": self.record.map(|r| r.attempts), "generation": self.record.map(|r| r.generation),
            "in_review_since": self.record.and_then(|r| r.review_since_ms).map(timestamp),
            "intent": self.intent.map(intent_json),
        })
    }
}

/// What is to leave the system, and how far it is; neither what is sent nor what was answered.
fn intent_json(intent: &Intent) -> Value {
    let result = intent.result.as_ref().map(|result| {
        json!({
            "status": result.status, "id": result.id, "note": result.note, "at": timestamp(result.at_ms),
        })
    });
    json!({
        "key": intent.key, "to": intent.to, "state": intent.state, "attempts": intent.attempts,
        "first_sent_at": intent.first_sent_ms.map(timestamp), "last_sent_at": intent.last_sent_ms.map(timestamp),
        "late_answers": intent.late, "result": result,
    })
}
