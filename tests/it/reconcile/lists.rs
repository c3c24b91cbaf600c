//! Our jobs against acme's own list.

use local::stack::Function;
use local::world::{Hooks, World, WorldConfig, completed, event_body};
use serde_json::{Value, json};

use super::plant::{
    brief, found_applied_and_gone, later, only, reconcile_all, settle, settled, submitted_briefly, told,
};
use crate::harness::{Rule, accepted, balance, now_ms, overwrite, state, submitted, submitted_with, throttled};

/// acme knows this of a job and tells nobody.
fn knows(world: &World, id: &str, body: &str) {
    world.provider.emit("acme", id, body, now_ms(world)).unwrap();
}

async fn list_of(world: &World, reference: &str) -> Value {
    let run = world.reconcile(reference, json!({"provider": "acme"})).await.unwrap();
    assert_eq!(run["state"], "done", "{run}");
    run
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_never_delivered_is_accepted_from_the_list() {
    let world = submitted_briefly().await;
    knows(&world, "e1", &completed("j1"));
    assert_eq!(told(&list_of(&world, "early").await), [""; 0], "it may still be on its way");
    later(&world, 3).await;
    found_applied_and_gone(&world, "never-delivered/accept-from-authority/open").await;
    let job = world.job("j1").await;
    assert_eq!(job["settlements"][0]["captured"], "0.008700", "{job}");
    assert!(job["transitions"][0]["by"].as_str().unwrap().starts_with("acme/list#"), "{job}");
    assert_eq!(balance(&world, "w1").await, ("99.991300".to_owned(), "0.000000".to_owned()));
    // The webhook comes after all: it changes nothing.
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    assert_eq!(state(&world, "msg_1", domain::operation::OperationName::SettleUsage).await.0, "noop");
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
}

#[tokio::test(start_paused = true)]
async fn a_late_webhook_with_other_usage_is_a_conflict_and_no_second_effect() {
    let world = submitted_briefly().await;
    knows(&world, "e1", &completed("j1"));
    later(&world, 3).await;
    let run = list_of(&world, "first").await;
    assert_eq!(world.decide_case("first", &only(&run), "apply").await.0, 200);
    settle(&world).await;
    let other = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 9, "output_tokens": 9}}));
    accepted(&world, "msg_1", &other).await;
    world.drain().await.unwrap();
    let settled = state(&world, "msg_1", domain::operation::OperationName::SettleUsage).await;
    assert_eq!(settled, ("needs-review".to_owned(), "conflict".to_owned()));
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
}

#[tokio::test(start_paused = true)]
async fn rec_03_what_is_done_between_the_look_and_the_decision_is_not_done_again() {
    let world = submitted_briefly().await;
    knows(&world, "e1", &completed("j1"));
    later(&world, 3).await;
    let run = list_of(&world, "first").await;
    // The webhook comes after the look and before the person.
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let (status, case) = world.decide_case("first", &only(&run), "apply").await;
    assert_eq!((status, &case["resolution"]), (200, &json!("gone")), "{case}");
    settle(&world).await;
    let job = world.job("j1").await;
    assert_eq!(job["transitions"].as_array().map(Vec::len), Some(1), "{job}");
    assert_eq!(job["transitions"][0]["by"], "acme/msg_1");
    assert_eq!(balance(&world, "w1").await.0, "99.991300");
}

#[tokio::test(start_paused = true)]
async fn another_outcome_in_the_list_is_a_persons() {
    let world = settled().await;
    knows(&world, "e1", &event_body("job.failed", "j1", json!({})));
    let run = list_of(&world, "first").await;
    assert_eq!(told(&run), ["status-differs/person/open"], "{run}");
    assert_eq!(run["cases"][0]["listed"]["outcome"], "failure");
}

#[tokio::test(start_paused = true)]
async fn other_usage_in_the_list_is_made_up_for_by_the_difference() {
    let world = settled().await;
    // 200 input tokens instead of 1200: 0.003 less.
    let less = json!({"usage": {"input_tokens": 200, "output_tokens": 340}});
    knows(&world, "e1", &event_body("job.completed", "j1", less));
    found_applied_and_gone(&world, "usage-differs/compensate/open").await;
    assert_eq!(balance(&world, "w1").await, ("99.994300".to_owned(), "0.000000".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_success_without_usage_is_settled_with_the_usage_of_the_list() {
    let world = submitted_briefly().await;
    accepted(&world, "msg_1", &event_body("job.completed", "j1", json!({}))).await;
    world.drain().await.unwrap();
    later(&world, 3).await;
    let run = reconcile_all(&world, "zero").await;
    assert_eq!(
        told(&run),
        ["missing-at-provider/person/open", "no-usage/ask-authority/open"][1..],
        "the list has nothing of an ended job: {run}"
    );
    let (status, problem) = world.decide_case("zero", &only(&run), "apply").await;
    assert_eq!((status, &problem["code"]), (409, &json!("not-possible")), "the list has not told it yet");
    knows(&world, "e1", &completed("j1"));
    found_applied_and_gone(&world, "no-usage/ask-authority/open").await;
    let job = world.job("j1").await;
    assert_eq!(job["settlements"][0]["by"], "acme/msg_1", "the deciding event is the settled event: {job}");
    assert_eq!(job["settlements"][0]["captured"], "0.008700");
    assert_eq!(state(&world, "msg_1", domain::operation::OperationName::SettleUsage).await.0, "done");
    // Another event that says as little as the first did has nothing that could contradict it.
    accepted(&world, "msg_2", &event_body("job.completed", "j1", json!({}))).await;
    world.drain().await.unwrap();
    let second = state(&world, "msg_2", domain::operation::OperationName::SettleUsage).await;
    assert_eq!(second, ("noop".to_owned(), "already-done".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_running_job_that_the_list_does_not_have_is_a_persons() {
    let world = submitted_briefly().await;
    assert_eq!(told(&list_of(&world, "early").await), [""; 0], "it may not be listed yet");
    later(&world, 3).await;
    let run = list_of(&world, "first").await;
    assert_eq!(told(&run), ["missing-at-provider/person/open"], "{run}");
    knows(&world, "e1", &event_body("job.progress", "j1", json!({})));
    assert_eq!(told(&list_of(&world, "second").await), [""; 0], "it is listed again: the case is resolved");
    let id = only(&run);
    let (_, case) = world.control("GET", &format!("/control/reconciliations/first/cases/{id}"), None).await;
    assert_eq!(case["resolution"], "gone", "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_several_pages_is_read_to_its_end() {
    let world = submitted_briefly().await;
    for n in 0..250 {
        knows(&world, &format!("e{n}"), &completed(&format!("x{n:03}")));
    }
    knows(&world, "last", &completed("j1")); // p-j1 sorts before p-x...
    later(&world, 3).await;
    let run = list_of(&world, "first").await;
    assert_eq!(run["examined"], 251, "{run}");
    assert_eq!(told(&run), ["never-delivered/accept-from-authority/open"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_opened_is_said_and_a_provider_without_one_is_passed() {
    let mut config = brief();
    config.providers = config.providers.replace(
        "url = \"env:ACME_LIST_URL\"",
        "url = \"env:ACME_LIST_URL\"\nheader = { name = \"authorization\", secret = \"ACME_TOKEN\" }",
    );
    let with_header = config.clone();
    let world = submitted_with(config).await;
    later(&world, 3).await;
    let run = list_of(&world, "first").await;
    assert_eq!(run["skipped"], json!(["list of acme: the environment variable ACME_TOKEN is not set"]));
    // A reference would go to the provider as it stands.
    for reference in ["secretsmanager:hooks/acme#TOKEN", "jwks:https://x/y"] {
        let mut config = with_header.clone();
        config.secrets.insert("ACME_TOKEN".to_owned(), reference.to_owned());
        let world = submitted_with(config).await;
        later(&world, 3).await;
        let run = list_of(&world, "first").await;
        let said = run["skipped"][0].as_str().unwrap();
        assert!(said.contains("ACME_TOKEN holds a reference") && !said.contains(reference), "{run}");
    }
    let mut config = brief();
    config.secrets.remove("ACME_LIST_URL");
    let world = submitted_with(config).await;
    later(&world, 3).await;
    let run = list_of(&world, "first").await;
    assert_eq!((&run["parts"]["total"], &run["cases"]), (&json!(1), &json!([])), "nothing to compare with: {run}");
}

fn used(input: u32) -> String {
    event_body("job.completed", "j1", json!({"usage": {"input_tokens": input, "output_tokens": 340}}))
}

#[tokio::test(start_paused = true)]
async fn usage_that_is_amended_is_the_same_case_and_its_newest_is_applied() {
    let world = settled().await;
    knows(&world, "e1", &used(200)); // 1000 input tokens less: 0.003 less
    let first = list_of(&world, "first").await;
    assert_eq!(first["cases"][0]["amount"], "-0.003000", "{first}");
    knows(&world, "e2", &used(2_200)); // 1000 more than was charged
    let second = list_of(&world, "second").await;
    assert_eq!((told(&second), only(&second)), (vec!["usage-differs/compensate/open".to_owned()], only(&first)));
    assert_eq!(second["cases"][0]["amount"], "0.003000", "{second}");
    assert_eq!(second["cases"][0]["listed"]["usage"]["input_tokens"], "2200", "{second}");
    let open = world.control("GET", "/control/reviews", None).await.1;
    assert_eq!(open["reviews"].as_array().map(Vec::len), Some(1), "{open}");
    assert_eq!(world.decide_case("first", &only(&first), "apply").await.0, 200);
    // 100 - 0.0087 - 0.003
    assert_eq!(balance(&world, "w1").await, ("99.988300".to_owned(), "0.000000".to_owned()));
    assert_eq!(told(&list_of(&world, "last").await), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_is_amended_before_it_is_accepted_is_accepted_as_it_is_by_then() {
    let world = submitted().await;
    knows(&world, "e1", &used(1_200));
    later(&world, 3).await;
    let first = list_of(&world, "first").await;
    knows(&world, "e2", &used(200));
    later(&world, 3).await;
    let second = list_of(&world, "second").await;
    let (expected, id) = (vec!["never-delivered/accept-from-authority/open".to_owned()], only(&first));
    assert_eq!((told(&second), only(&second)), (expected, id.clone()));
    assert_eq!(world.decide_case("first", &id, "apply").await.0, 200);
    settle(&world).await;
    // 200 x 3.00 and 340 x 15.00 per million: 0.0057.
    assert_eq!(balance(&world, "w1").await, ("99.994300".to_owned(), "0.000000".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_the_provider_corrects_is_gone() {
    let world = settled().await;
    knows(&world, "e1", &event_body("job.failed", "j1", json!({})));
    let id = only(&list_of(&world, "first").await);
    knows(&world, "e2", &completed("j1"));
    assert_eq!(told(&list_of(&world, "second").await), [""; 0]);
    let (_, case) = world.control("GET", &format!("/control/reconciliations/first/cases/{id}"), None).await;
    assert_eq!((&case["state"], &case["resolution"]), (&json!("resolved"), &json!("gone")), "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_read_was_throttled_is_compared_when_the_part_comes_again() {
    let (hooks, outage) = (Hooks::default(), Rule::always("Query", &["hookledger-jobs", "\"J|t1|j1\""], throttled()));
    hooks.add(Function::Reconciler, outage.clone());
    let world = submitted_with(WorldConfig { hooks, ..brief() }).await;
    later(&world, 3).await;
    let run = world.reconcile("first", json!({"provider": "acme"})).await.unwrap();
    assert_eq!(run["state"], "running", "{run}");
    assert!(outage.hits() > 0);
    outage.stop();
    world.clock.advance(13 * 60_000); // its message is visible again after twelve minutes
    world.drain().await.unwrap();
    let run = world.control("GET", "/control/reconciliations/first", None).await.1;
    assert_eq!(told(&run), ["missing-at-provider/person/open"], "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_ledger_cannot_be_read_is_said_and_the_others_are_compared() {
    let world = submitted_briefly().await;
    assert_eq!(world.submit("j2", "w1", "1.00").await.0, 201);
    later(&world, 3).await;
    overwrite(
        &world,
        "ledger",
        &json!({"pk": {"S": "J|t1|j1"}, "sk": {"S": "c"}, "kd": {"S": "canary"}, "sv": {"N": "1"}}),
    );
    let run = list_of(&world, "first").await;
    assert_eq!(told(&run), ["missing-at-provider/person/open"], "{run}");
    assert_eq!(run["cases"][0]["subject"]["job"]["job"], "j2", "{run}");
    let skipped = run["skipped"][0].as_str().unwrap();
    assert!(skipped.starts_with("J|t1|j1: a stored ") && skipped.ends_with(" cannot be read"), "{run}");
    assert_eq!((run["skipped"].as_array().map(Vec::len), &run["parts"]["failed"]), (Some(1), &json!(0)), "{run}");
}
