//! Replays: events by id, or of a provider, a window and states. A replay writes due times, spaced per
//! tenant; the relay sends what is due over the ordinary path. It can be tried dry.
//!
//! A long replay comes in parts, each bounded and each recorded with its answer under the replay's
//! reference: the same part again is answered from the record. A part that died half-way goes on where it
//! stopped: each event has its own audit item, written in one transaction with its due times.

use domain::event::EventRef;
use domain::ids::Reference;
use domain::job::JobRef;
use domain::limits::{REPLAY_EVENTS, REPLAY_OPERATIONS, REPLAY_SPACING_MS};
use domain::operation::{OperationKey, OperationRecord, hex_sha256};
use domain::replay::{Replayed, ReplayedOperation, Spacing, plan_anew, replay_operation};
use domain::status::{EventStatus, Stage, event_status};
use futures_util::future::join_all;
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use runtime::retry::Again;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Commit, EventRecords, ReplayPart, StoreError};

use crate::jobs::timestamp;
use crate::window::Window;
use crate::{body, check_reason, id, unavailable};

/// Events handled side by side.
pub(crate) const SIDE_BY_SIDE: usize = 25;
/// Of a reason why an event cannot be planned: it can name what the provider sent, and a part's answer is one item.
const DETAIL_CHARS: usize = 200;
/// Rounds for one event while other writers come between.
const ROUNDS: u32 = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    events: Option<Vec<String>>,
    part: Option<u32>,
    provider: Option<String>,
    from: Option<String>,
    to: Option<String>,
    states: Option<Vec<EventStatus>>,
    after: Option<String>,
    reason: String,
    reference: String,
    #[serde(default)]
    dry_run: bool,
}

/// What is to be replayed.
enum Scope {
    Events(Vec<EventRef>),
    Window(Window),
}

/// A checked request.
struct Request {
    scope: Scope,
    part: u32,
    reason: String,
    reference: Reference,
    actor: String,
    dry: bool,
}

impl Request {
    fn check(asked: Body, actor: String, now_ms: i64) -> Result<Self, Problem> {
        check_reason(&asked.reason)?;
        let reference = id(&asked.reference)?;
        let (scope, part) = match (asked.events, asked.provider) {
            (Some(names), None) => (Scope::Events(events(&names)?), asked.part.unwrap_or(0)),
            (None, Some(provider)) => {
                let window =
                    Window::check(&provider, asked.from, asked.to, asked.states, asked.after.as_deref(), now_ms)?;
                let part = window.part;
                (Scope::Window(window), part)
            }
            _ => return Err(Problem::bad_request("give either `events`, or `provider` with `from` and `to`")),
        };
        Ok(Self { scope, part, reason: asked.reason, reference, actor, dry: asked.dry_run })
    }

    /// What is asked for, for the record: the same of every part of a replay.
    fn told(&self) -> String {
        match &self.scope {
            Scope::Events(_) => "events by id".to_owned(),
            Scope::Window(window) => window.told(),
        }
    }

    fn replay_hash(&self) -> String {
        hex_sha256(&format!("{}|{}", self.told(), self.reason))
    }

    fn part_hash(&self) -> String {
        match &self.scope {
            Scope::Events(events) => hex_sha256(&events.iter().map(|e| format!("{e}\n")).collect::<String>()),
            Scope::Window(window) => hex_sha256(&window.place()),
        }
    }
}

fn events(names: &[String]) -> Result<Vec<EventRef>, Problem> {
    if names.is_empty() || names.len() > REPLAY_EVENTS {
        let detail = format!("events: give 1 to {REPLAY_EVENTS} in one part, and the rest as part 1, 2, ...");
        return Err(Problem::invalid(detail));
    }
    let mut events: Vec<EventRef> = Vec::new();
    for name in names {
        let event: EventRef = id(name)?;
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Ok(events)
}

/// `POST /control/replays`.
pub(crate) async fn replay(app: &App, event: &GatewayEvent) -> Result<GatewayResponse, Problem> {
    let now_ms = app.clock.now_ms();
    let request = Request::check(body(event)?, event.actor(), now_ms)?;
    if request.dry {
        let (answer, _) = carry_out(app, &request, now_ms).await?;
        return Ok(GatewayResponse::json(200, &answer));
    }
    if let Some(stands) = app.store.get_replay_part(&request.reference, request.part).await.map_err(unavailable)? {
        return recorded(app, &stands, &request).await;
    }
    let begins_ms = begins_ms(app, &request, now_ms).await?;
    let (mut answer, end_ms) = carry_out(app, &request, begins_ms).await?;
    let part = ReplayPart {
        reference: request.reference.clone(),
        part: request.part,
        actor: request.actor.clone(),
        reason: request.reason.clone(),
        scope: request.told(),
        spacing_ms: REPLAY_SPACING_MS,
        replay_hash: request.replay_hash(),
        part_hash: request.part_hash(),
        end_ms,
        answer: recordable(&answer),
        created_ms: now_ms,
    };
    match app.store.put_replay_part(&part).await.map_err(unavailable)? {
        Some(stands) => recorded(app, &stands, &request).await, // the same request at the same time
        None => {
            answer["again"] = json!(false);
            Ok(GatewayResponse::json(200, &answer))
        }
    }
}

/// The answer as it is recorded. What became of an event's operations stands in its own audit item: said here
/// as well, it could outgrow an item.
fn recordable(answer: &Value) -> String {
    let mut short = answer.clone();
    for event in short["events"].as_array_mut().into_iter().flatten() {
        if event["result"] == "replayed" {
            *event = json!({ "event": event["event"], "result": "replayed" });
        }
    }
    short.to_string()
}

/// Says again what a recorded answer leaves to the events' audit items.
async fn complete(app: &App, answer: &mut Value, reference: &Reference) -> Result<(), StoreError> {
    let Some(events) = answer["events"].as_array_mut() else { return Ok(()) };
    for chunk in events.chunks_mut(SIDE_BY_SIDE) {
        let reads = chunk.iter().map(async |event| {
            let name = event["event"].as_str().and_then(|name| name.parse::<EventRef>().ok());
            let Some(name) = name.filter(|_| event["operations"].is_null()) else { return Ok(None) };
            match app.store.get_replayed(&name, reference).await {
                Ok(Some(replayed)) => Ok(Some(shown(&name, &replayed))),
                Ok(None) | Err(StoreError::Corrupt { .. }) => Ok(Some(without(&name, "unreadable"))),
                Err(error) => Err(error),
            }
        });
        let reads = join_all(reads).await;
        for (event, read) in chunk.iter_mut().zip(reads) {
            if let Some(whole) = read? {
                *event = whole;
            }
        }
    }
    Ok(())
}

/// The recorded answer of this part, if it was asked for the same.
async fn recorded(app: &App, stands: &ReplayPart, request: &Request) -> Result<GatewayResponse, Problem> {
    if (&stands.replay_hash, &stands.part_hash) != (&request.replay_hash(), &request.part_hash()) {
        let detail =
            format!("this reference replayed something else at {}: use another one", timestamp(stands.created_ms));
        return Err(Problem::conflict(detail));
    }
    let mut answer: Value = serde_json::from_str(&stands.answer).unwrap_or_default(); // we wrote it
    complete(app, &mut answer, &request.reference).await.map_err(unavailable)?;
    answer["again"] = json!(true);
    Ok(GatewayResponse::json(200, &answer))
}

/// When the first event of this part may be due: now, or behind the part before.
async fn begins_ms(app: &App, request: &Request, now_ms: i64) -> Result<i64, Problem> {
    let Some(before) = request.part.checked_sub(1) else { return Ok(now_ms) };
    match app.store.get_replay_part(&request.reference, before).await.map_err(unavailable)? {
        Some(stands) if stands.replay_hash == request.replay_hash() => Ok(now_ms.max(stands.end_ms)),
        Some(_) => Err(Problem::conflict("this reference replays something else: use another one")),
        None => Err(Problem::invalid(format!("part {before} of this replay was not carried out: begin with it"))),
    }
}

/// One event to be replayed, as it was read.
enum Found {
    Event(EventRef, Box<EventRecords>),
    Missing(EventRef, &'static str),
}

impl Found {
    fn operations(&self) -> usize {
        match self {
            Self::Event(_, records) => records.receipt.plan.len().max(1),
            Self::Missing(..) => 1,
        }
    }
}

/// Reads the events in their order until they have [`REPLAY_OPERATIONS`], the first one in any case. What is
/// not read is the next part's.
async fn look_through(app: &App, names: &[(i64, EventRef)]) -> Result<Vec<Found>, StoreError> {
    let (mut found, mut operations) = (Vec::new(), 0);
    for chunk in names.chunks(SIDE_BY_SIDE) {
        for one in join_all(chunk.iter().map(|(_, event)| look(app, event))).await {
            let one = one?;
            operations += one.operations();
            if operations > REPLAY_OPERATIONS && !found.is_empty() {
                return Ok(found);
            }
            found.push(one);
        }
    }
    Ok(found)
}

/// Carries one part out; its answer, and when the next part's due times begin.
async fn carry_out(app: &App, request: &Request, begins_ms: i64) -> Result<(Value, i64), Problem> {
    let (names, mut next) = match &request.scope {
        Scope::Events(events) => (events.iter().map(|event| (0, event.clone())).collect(), None),
        Scope::Window(window) => window.events(app).await.map_err(unavailable)?,
    };
    let mut found = look_through(app, &names).await.map_err(unavailable)?;
    let (taken, left) = names.split_at(found.len());
    let (mut shown, mut missing, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    match (&request.scope, taken.last().filter(|_| !left.is_empty())) {
        (Scope::Window(window), Some(last)) => next = Some(window.behind(last)),
        (Scope::Events(_), _) => missing.extend(left.iter().map(|(_, event)| without(event, "next-part"))),
        (Scope::Window(_), None) => {}
    }
    // Stable: events of one arrival, and those that are missing, keep the order in which they were named.
    found.sort_by_key(|found| match found {
        Found::Event(_, records) => records.receipt.arrival_ms,
        Found::Missing(..) => i64::MAX,
    });
    let mut spacing = Spacing::new(begins_ms);
    for found in found {
        match found {
            Found::Missing(event, result) => {
                if matches!(request.scope, Scope::Events(_)) {
                    missing.push(without(&event, result));
                }
            }
            Found::Event(event, records) => {
                if let Scope::Window(window) = &request.scope {
                    match status(app, &records).await {
                        Ok(status) if window.takes(&records.receipt, status) => {}
                        // Its state is not known, so no filter by state passes it over.
                        Err(StoreError::Corrupt { .. }) if window.spans(&records.receipt) => {
                            missing.push(without(&event, "unreadable"));
                            continue;
                        }
                        Ok(_) | Err(StoreError::Corrupt { .. }) => continue,
                        Err(error) => return Err(unavailable(error)),
                    }
                }
                let due_ms = spacing.next(records.receipt.envelope.tenant.as_ref().map(domain::ids::TenantId::as_str));
                turns.push((event, due_ms));
            }
        }
    }
    for chunk in turns.chunks(SIDE_BY_SIDE) {
        let ones = join_all(chunk.iter().map(|(event, due_ms)| one(app, request, event, *due_ms))).await;
        for ((event, _), one) in chunk.iter().zip(ones) {
            shown.push(match one {
                // One damaged record must not keep the others of its part.
                Err(StoreError::Corrupt { .. }) => without(event, "unreadable"),
                one => one.map_err(unavailable)?,
            });
        }
    }
    shown.extend(missing);
    let answer = json!({
        "reference": request.reference, "part": request.part, "dry_run": request.dry, "scope": request.told(),
        "spacing_ms": REPLAY_SPACING_MS, "counts": counts(&shown), "events": shown, "next": next,
    });
    Ok((answer, spacing.end_ms()))
}

async fn look(app: &App, event: &EventRef) -> Result<Found, StoreError> {
    match app.store.load_event(event).await {
        Ok(Some(records)) => Ok(Found::Event(event.clone(), Box::new(records))),
        Ok(None) => Ok(Found::Missing(event.clone(), "not-received")),
        Err(StoreError::Corrupt { .. }) => Ok(Found::Missing(event.clone(), "unreadable")),
        Err(error) => Err(error),
    }
}

/// The event's derived status.
async fn status(app: &App, records: &EventRecords) -> Result<EventStatus, StoreError> {
    let receipt = &records.receipt;
    let effects = app.store.effects_of(receipt).await?;
    let stage = |key: OperationKey| {
        let record = records.operation(&key);
        let effect = effects.effect(&key, record);
        (key.name, Stage::of(effect.is_some(), record))
    };
    let stages: Vec<_> = receipt.operations().into_iter().map(stage).collect();
    Ok(event_status(receipt, &stages))
}

/// Replays one event, or says what would happen to it.
async fn one(app: &App, request: &Request, event: &EventRef, due_ms: i64) -> Result<Value, StoreError> {
    let mut again = Again::new(app);
    for _ in 0..ROUNDS {
        let Some(records) = app.store.load_event(event).await? else {
            return Ok(without(event, "not-received"));
        };
        let before = records.replays.iter().find(|r| r.reference == request.reference.as_str());
        if let Some(before) = before.filter(|_| !request.dry) {
            return Ok(shown(event, before));
        }
        let (replayed, writes) = match prepare(app, request, event, &records, due_ms).await? {
            Ok(prepared) => prepared,
            Err(why) => {
                let why: String = why.chars().take(DETAIL_CHARS).collect();
                return Ok(json!({ "event": event, "result": "cannot-plan", "detail": why, "operations": [] }));
            }
        };
        if request.dry {
            return Ok(shown(event, &replayed));
        }
        match app.store.commit_replayed(event, &request.reference, &replayed, &writes).await {
            Ok(Commit::Committed) => return Ok(shown(event, &replayed)),
            Ok(Commit::ConditionFailed(_) | Commit::Conflict) => app.pause().await,
            Err(error) => again.after(error).await?,
        }
    }
    Err(StoreError::Busy { operation: "replay", code: "other writers won every time".to_owned() })
}

type Prepared = (Replayed, Vec<OperationRecord>);

/// What a replay of the event writes: its audit item and its operations' records; or why it cannot be planned.
async fn prepare(
    app: &App, request: &Request, event: &EventRef, records: &EventRecords, due_ms: i64,
) -> Result<Result<Prepared, String>, StoreError> {
    let mut receipt = records.receipt.clone();
    let mut replayed = Replayed {
        reference: String::new(),
        actor: String::new(),
        reason: String::new(),
        created_ms: 0,
        plan: Vec::new(),
        outcome: None,
        wallet: None,
        fetch: None,
        operations: Vec::new(),
    };
    if receipt.plan.is_empty() {
        let Some(profile) = app.profiles.get(event.provider.as_str()) else {
            return Ok(Err("its provider is not configured any more".to_owned()));
        };
        let job = match app.store.find_job(&event.provider, &receipt.envelope).await? {
            Some((tenant, job)) => app.store.get_job(&tenant, &job).await?.as_ref().map(JobRef::from),
            None => None,
        };
        replayed = match plan_anew(profile, &receipt, job.as_ref()) {
            Ok(planned) => planned,
            Err(why) => return Ok(Err(why)),
        };
        receipt = receipt.with_added_plans(std::slice::from_ref(&replayed));
    }
    let effects = app.store.effects_of(&receipt).await?;
    let now_ms = app.clock.now_ms();
    let (mut operations, mut writes): (Vec<ReplayedOperation>, Vec<OperationRecord>) = (Vec::new(), Vec::new());
    for key in receipt.operations() {
        let record = records.operation(&key);
        let effect = effects.effect(&key, record);
        let (told, write) = replay_operation(&key, effect, record, due_ms, now_ms, app.random.token());
        operations.push(told);
        writes.extend(write);
    }
    let (reference, actor, reason) = (request.reference.to_string(), request.actor.clone(), request.reason.clone());
    Ok(Ok((Replayed { reference, actor, reason, created_ms: now_ms, operations, ..replayed }, writes)))
}

/// An event of which no operation was looked at, and why.
fn without(event: &EventRef, result: &str) -> Value {
    json!({ "event": event, "result": result, "operations": [] })
}

fn shown(event: &EventRef, replayed: &Replayed) -> Value {
    let operation = |o: &ReplayedOperation| {
        json!({
            "operation": o.operation, "item": o.item, "became": o.became, "result": o.result,
            "due_at": o.due_ms.map(timestamp),
        })
    };
    let planned: Vec<String> = replayed.plan.iter().map(|planned| planned.clone().into()).collect();
    let operations: Vec<Value> = replayed.operations.iter().map(operation).collect();
    json!({ "event": event, "result": "replayed", "planned_anew": planned, "operations": operations })
}

/// How many operations became what, and how many events had no operation at all, by their result.
fn counts(events: &[Value]) -> Value {
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    for event in events {
        let operations = event["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names = operations.iter().map(|operation| &operation["became"]);
        let none = operations.is_empty().then_some(&event["result"]);
        for name in names.chain(none).filter_map(Value::as_str) {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    json!(counts)
}
