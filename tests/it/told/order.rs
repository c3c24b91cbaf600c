//! An ordered subscription: within a job nothing passes what comes before it, whatever fails and waits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use local::hook::{Call, CallHook, HookDecision};
use local::stack::Function;
use local::world::completed;
use serde_json::json;

use super::*;
use crate::harness::{Rule, accepted, items, open_reviews, unreachable};

const ENDED: &str = "job.completed|t1|j1|1";
const SETTLED: &str = "job.settled|t1|j1|c";

/// The end of a job cannot leave at first; its settlement can.
async fn the_first_is_held_up(more: &str) -> (World, Arc<Rule>) {
    let config = config(more);
    let rule = Rule::always("SendMessage", &[QUEUE, ENDED], unreachable());
    config.hooks.add(Function::Outbound, rule.clone());
    let world = world_of(config).await;
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    accepted(&world, "e-1", &completed("j1")).await;
    world.drain().await.unwrap();
    (world, rule)
}

#[tokio::test(start_paused = true)]
async fn a_later_one_waits_for_the_earlier_and_only_where_an_order_was_asked_for() {
    let (world, rule) = the_first_is_held_up("ordered = true").await;
    assert_eq!(ids(&world), [""; 0]);
    world.minutes(5).await.unwrap();
    assert_eq!(ids(&world), [""; 0]);
    // Another job is another line.
    assert_eq!(world.submit("j2", "w1", "5.00").await.0, 201);
    accepted(&world, "e-2", &completed("j2")).await;
    world.drain().await.unwrap();
    assert_eq!(ids(&world), ["job.completed|t1|j2|1", "job.settled|t1|j2|c"]);
    rule.stop();
    world.minutes(20).await.unwrap();
    assert_eq!(ids(&world)[2..], [ENDED, SETTLED]);
    assert_eq!(open_reviews(&world).await, [""; 0]);

    let (world, rule) = the_first_is_held_up("").await;
    assert_eq!(ids(&world), [SETTLED]);
    rule.stop();
    world.minutes(5).await.unwrap();
    assert_eq!(ids(&world), [SETTLED, ENDED]);
    let lines = items(&world, "events").iter().filter(|i| i["pk"]["S"].as_str().unwrap().starts_with("O|")).count();
    assert_eq!(lines, 0, "no order, no line");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_one_in_review_goes_when_a_person_has_decided() {
    let (world, rule) = the_first_is_held_up("ordered = true").await;
    // Until the first is given up; waiting for it was no try of the second.
    world.minutes(600).await.unwrap();
    assert_eq!(open_reviews(&world).await, [format!("own/{ENDED} forward")]);
    rule.stop();
    let decide = async |event: &str, action: &str| {
        let id = format!("forward:books:own/{event}").replace('|', "~7C").replace(':', "~3A").replace('/', "~2F");
        let (status, told) = world.control("GET", "/control/reviews", None).await;
        assert_eq!(status, 200);
        let listed = told["reviews"].as_array().unwrap().iter().map(|review| review["id"].as_str().unwrap().to_owned());
        let own: Vec<String> = listed.filter(|id| id.contains(event)).collect();
        let path = own.first().map_or(id, |id| path_part(id));
        let body = json!({"action": action, "reason": "decided"});
        assert_eq!(world.control("POST", &format!("/control/reviews/{path}"), Some(body)).await.0, 200, "{own:?}");
    };
    decide(ENDED, "close").await;
    world.minutes(20).await.unwrap();
    assert_eq!(ids(&world), [SETTLED]);
    assert_eq!(open_reviews(&world).await, [""; 0]);
}

fn path_part(id: &str) -> String {
    runtime::gateway::path_part(id)
}

/// Of twelve calls three lose their answer and five are not taken.
#[derive(Debug, Default)]
struct Flaky(AtomicUsize);

impl CallHook for Flaky {
    fn on_call(&self, call: &Call) -> HookDecision {
        if !call.is("SendMessage", QUEUE) {
            return HookDecision::Pass;
        }
        match self.0.fetch_add(1, Ordering::SeqCst) % 12 {
            0 | 4 | 8 => HookDecision::lost_answer(),
            1..4 | 9 | 10 => unreachable(),
            _ => HookDecision::Pass,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn under_losses_and_delays_each_job_is_told_in_the_order_in_which_it_happened() {
    let config = config("ordered = true");
    let flaky = Arc::new(Flaky::default());
    config.hooks.add(Function::Outbound, flaky.clone());
    let world = world_of(config).await;
    let jobs: Vec<String> = (0..6).map(|n| format!("j{n}")).collect();
    for job in &jobs {
        assert_eq!(world.submit(job, "w1", "5.00").await.0, 201);
        accepted(&world, &format!("e-{job}"), &completed(job)).await;
    }
    world.minutes(1).await.unwrap();
    for (kind, amount) in [("adjust", "0.001"), ("reverse", "0.002")] {
        for job in &jobs {
            let body = json!({"reference": "r-1", "amount": amount, "reason": "asked for"});
            let path = format!("/control/tenants/t1/jobs/{job}/{kind}");
            assert_eq!(world.control("POST", &path, Some(body)).await.0, 201);
        }
    }
    // Whoever loses often waits long; until then all behind it wait as well.
    for _ in 0..8 {
        world.minutes(60).await.unwrap();
        if ids(&world).into_iter().collect::<BTreeSet<_>>().len() == 24 {
            break;
        }
    }
    let told = ids(&world);
    for job in &jobs {
        let mut own: Vec<&str> =
            told.iter().filter(|id| id.contains(&format!("|{job}|"))).map(String::as_str).collect();
        own.dedup(); // one that was sent twice, its answer being lost
        let by_hand = [
            format!("job.completed|t1|{job}|1"),
            format!("job.settled|t1|{job}|c"),
            format!("job.settled|t1|{job}|a|r-1"),
            format!("job.settled|t1|{job}|v|r-1"),
        ];
        assert_eq!(own, by_hand, "{told:?}");
    }
    // Six jobs with four events each, and more calls than those: what is lost is sent again, and the queue may know it again.
    assert!(flaky.0.load(Ordering::SeqCst) > 24, "losses happened");
}
