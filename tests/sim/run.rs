//! Runs one scenario from its seed to rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use local::clock::Clock;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::faults::Fault;
use crate::net::Net;
use crate::operator;
use crate::oracle::Oracle;
use crate::oracle::told::QUEUE;
use crate::provider;
use crate::scenario::{Action, Scenario, What};
use crate::secrecy;
use crate::world::{Knobs, PREFIX, World, tune_queues};

/// The relay's schedule.
const RELAY_EVERY: Duration = Duration::from_secs(60);
/// How often it is looked whether all is at rest.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// How long after the faults stop everything must be at rest, beside the longest life of a waiting operation.
const REST_WITHIN_MS: u64 = 2 * 3_600_000;

/// What became of a scenario.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was wrong, first things first.
    pub violations: Vec<String>,
    /// AWS calls by site.
    pub sites: std::collections::BTreeMap<String, u32>,
    /// Faults that happened.
    pub injected: Vec<Fault>,
    /// The story's hash.
    pub hash: String,
    /// The story, if it was asked for.
    pub story: Vec<String>,
}

/// Runs a scenario on this thread; `planted` is the mistake to find, if any.
pub fn run(scenario: &Scenario, planted: Option<&'static str>, keep_story: bool) -> Outcome {
    domain::planted::plant(planted);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let _ = secrecy::leaked();
    let outcome = runtime.block_on(Box::pin(drive(Arc::new(scenario.clone()), keep_story)));
    drop(runtime);
    domain::planted::plant(None);
    outcome
}

/// What the tasks of a scenario share.
#[derive(Clone)]
pub struct Stage {
    /// The system.
    pub world: World,
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The judge.
    pub oracle: Oracle,
    /// Actions that are not over.
    pub open: Arc<AtomicUsize>,
}

async fn drive(scenario: Arc<Scenario>, keep_story: bool) -> Outcome {
    let net = Net::new(scenario.seed, scenario.plan.clone(), scenario.knobs.latency_ms, keep_story);
    let world = World::new(net.clone(), &scenario.knobs).await;
    let oracle = Oracle::watch(&world.aws, &net, scenario.clone(), world.there.clone());
    let watcher = oracle.clone();
    let _ = world.consumed.set(Box::new(move |body| watcher.consumed(body)));
    let open = Arc::new(AtomicUsize::new(scenario.actions.len()));
    let stage = Stage { world: world.clone(), scenario: scenario.clone(), oracle: oracle.clone(), open };
    net.lock().healed = true;
    for (wallet, funds) in &scenario.wallets {
        operator::create_wallet(&world, &scenario, wallet, *funds).await;
    }
    net.lock().healed = false;
    let mut tasks = JoinSet::new();
    let (stop, stopped) = watch::channel(false);
    for poller in world.pollers() {
        let stopped = stopped.clone();
        tasks.spawn(async move {
            let _ = poller.run(stopped).await;
        });
    }
    tasks.spawn(schedule(stage.clone()));
    for action in &scenario.actions {
        tasks.spawn(act(stage.clone(), action.clone()));
    }
    until_rest(&stage).await;
    let sites = net.lock().sites.clone(); // the last look meets no faults
    if !net.failed() {
        operator::look(&stage).await;
    }
    drop(stop);
    tasks.shutdown().await;
    world.aws.clear_hooks();
    let mut state = net.lock();
    Outcome {
        violations: std::mem::take(&mut state.violations),
        sites,
        injected: std::mem::take(&mut state.injected),
        hash: state.trace.hash(),
        story: std::mem::take(&mut state.trace.lines),
    }
}

/// The relay, every minute, whether or not its last run is over.
async fn schedule(stage: Stage) {
    sleep(Duration::from_millis(stage.scenario.relay_from_ms)).await;
    if stage.scenario.relay_from_ms > 0 {
        stage.world.skip_relay().await;
    }
    let mut runs = JoinSet::new();
    let reconciles = stage.scenario.actions.iter().any(|action| matches!(action.what, What::Reconcile(_)));
    loop {
        sleep(RELAY_EVERY).await;
        if reconciles {
            let world = stage.world.clone();
            runs.spawn(async move { world.redispatch().await });
        }
        while runs.try_join_next().is_some() {}
        // Once healed, runs that would find nothing are left out, as if the schedule had missed them.
        let healed = stage.world.net.lock().healed;
        if healed && !stage.oracle.relay_is_needed(stage.world.clock.now_ms()) {
            continue;
        }
        let world = stage.world.clone();
        runs.spawn(async move { world.relay().await });
    }
}

async fn act(stage: Stage, action: Action) {
    sleep(Duration::from_millis(action.at_ms)).await;
    match &action.what {
        What::Deliver(event) => provider::deliver(&stage, event).await,
        What::Pay(payment) => provider::pay(&stage, payment).await,
        What::News => provider::news(&stage).await,
        What::Submit(job) => operator::submit(&stage, *job).await,
        What::Wallet(wallet) => operator::create(&stage, wallet).await,
        What::Fund(wallet, amount, reference) => operator::fund(&stage, wallet, *amount, reference).await,
        What::Ask(request) => operator::ask(&stage, request).await,
        What::Reviews(reference) => operator::try_reviews_again(&stage, reference).await,
        What::Replay(reference) => operator::replay(&stage, reference).await,
        What::Pause(name, for_ms) => operator::pause(&stage, name, *for_ms).await,
        What::Reconcile(reference) => operator::reconcile(&stage, reference).await,
        What::Purge(consumer) => {
            stage.world.net.tell(|| format!("the {consumer} queue loses its messages"));
            let _ = stage.world.aws.queues().purge(&format!("{PREFIX}-{consumer}.fifo"));
        }
        What::ExtraRelay => stage.world.relay().await,
    }
    stage.open.fetch_sub(1, Ordering::SeqCst);
}

/// Lets the scenario run, heals, and waits until nothing is left to do.
async fn until_rest(stage: &Stage) {
    let net = &stage.world.net;
    while net.elapsed_ms() < stage.scenario.heal_ms && !net.failed() {
        let left_ms = stage.scenario.heal_ms - net.elapsed_ms();
        sleep(LOOK_EVERY.min(Duration::from_millis(left_ms))).await;
    }
    net.heal();
    // A message that is seen again under its running handler is a fault as well.
    tune_queues(&stage.world.aws, &Knobs { visibility_s: 180, ..stage.scenario.knobs.clone() });
    let healed_ms = net.elapsed_ms();
    let within_ms = REST_WITHIN_MS + u64::try_from(stage.scenario.knobs.policy.max_age_ms).unwrap_or(0);
    loop {
        sleep(LOOK_EVERY).await;
        if net.failed() {
            return;
        }
        let passed_ms = net.elapsed_ms() - healed_ms;
        let now_ms = stage.world.clock.now_ms();
        if passed_ms > 660_000 || stage.scenario.is_quiet() {
            stage.oracle.prompt(now_ms);
        }
        let unrest = unrest(stage, now_ms);
        match unrest {
            None => break,
            Some(left) if passed_ms > within_ms => {
                return net.violation(format!("1: not at rest {} min after the faults: {left}", passed_ms / 60_000));
            }
            Some(_) => {}
        }
    }
    stage.oracle.at_rest();
    stage.oracle.all_told();
    net.tell(|| "---- at rest ----".to_owned());
}

fn unrest(stage: &Stage, now_ms: i64) -> Option<String> {
    let open = stage.open.load(Ordering::SeqCst);
    if open > 0 {
        return Some(format!("{open} actions are not answered"));
    }
    let queues = stage.world.aws.queues();
    for name in queues.queue_names().into_iter().filter(|name| name != QUEUE) {
        let depth = queues.depth(&name).ok()?;
        if depth.visible + depth.in_flight > 0 {
            return Some(format!("{name} has messages"));
        }
    }
    stage.oracle.unrest(now_ms)
}
