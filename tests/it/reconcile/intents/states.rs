//! Where an intent stands here and where it stands there.

use local::hook::Fault::ConnectionReset;
use local::hook::HookDecision;
use local::stack::Function;
use local::world::{Hooks, WorldConfig};
use serde_json::{Value, json};

use super::{
    applied_and_gone, applied_though_lost, found, later, nothing, only, resolution, settle, world, world_with,
};
use crate::harness::Rule;
use crate::postpaid::Scene;
use crate::postpaid::stripe::Fault;

async fn done_at_once(scene: &Scene, class: &str) {
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, [format!("{class}/retry/resolved")], "{run}");
    assert_eq!(run["classes"][class], json!({"found": 1, "new": 1, "applied": 1}), "{run}");
    settle(&scene.world).await;
}

/// Its payment's webhook came; nothing but the intent is compared then.
async fn paid(scene: &Scene) {
    scene.succeeded("evt_1", &scene.stripe.kept()[0]).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_done_there_and_never_answered_is_settled_by_the_engines_own_look() {
    // Within the life of the key, when the same bytes are sent again, and past it, when Stripe is asked.
    for hours in [3, 26] {
        let (scene, desk) = world().await;
        desk.stripe.meets(&[Fault::AnswerLost]);
        scene.job("j1", "usd-1", 20_000_000).await;
        paid(&scene).await;
        assert_eq!(scene.state("charge|t1|j1|c").await, "retrying transient");
        later(&scene.world, 1).await;
        nothing(&scene.world, "early").await;
        later(&scene.world, hours - 1).await; // and the relay did not send it again
        done_at_once(&scene, "settled-there").await;
        assert!(scene.state("charge|t1|j1|c").await.starts_with("done"), "{hours} h");
        assert_eq!(desk.stripe.charged().len(), 1, "{hours} h");
        nothing(&scene.world, "last").await;
        scene.clean().await;
    }
}

/// Past the life of the key the engine would take a miss of its look-up for "not done", and charge once more.
#[tokio::test(start_paused = true)]
async fn what_the_list_has_and_a_look_up_misses_is_not_sent_again() {
    let (scene, desk) = world().await;
    desk.stripe.meets(&[Fault::AnswerLost]);
    scene.job("j1", "usd-1", 20_000_000).await;
    paid(&scene).await;
    later(&scene.world, 26).await;
    desk.misses("pi_1");
    let case = applied_and_gone(&scene.world, "settled-there/accept-from-authority/open").await;
    assert!(case["decisions"][0]["note"].as_str().unwrap().contains("pi_1"), "{case}");
    scene.world.minutes(10).await.unwrap();
    assert!(scene.state("charge|t1|j1|c").await.starts_with("done"));
    assert_eq!((desk.stripe.charged().len(), desk.stripe.calls().len()), (1, 1));
    scene.clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_refund_that_cannot_be_looked_up_is_settled_from_the_list() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 10_000_000).await;
    paid(&scene).await;
    desk.stripe.meets(&[Fault::Done500]);
    assert_eq!(scene.act("j1", "reverse", "r-1", "4.00").await.0, 201);
    scene.world.minutes(10).await.unwrap();
    assert_eq!(scene.state("refund|t1|j1|v|r-1").await, "needs-review unknown-outcome");
    scene.says_refunded("evt_2", &desk.stripe.kept()[0], 400).await;
    later(&scene.world, 3).await;
    let case = applied_and_gone(&scene.world, "settled-there/accept-from-authority/open").await;
    assert_eq!(case["amount"], "4.000000", "{case}");
    assert_eq!(scene.state("refund|t1|j1|v|r-1").await, "done already-done");
    let intent = scene.own("refund|t1|j1|v|r-1").await["operations"][0]["intent"].clone();
    assert_eq!((&intent["state"], &intent["result"]["id"]), (&json!("settled"), &json!("re_2")), "{intent}");
    assert_eq!(desk.stripe.refunded().len(), 1);
    scene.clean().await;
}

/// An answer is lost at each write of the acceptance: the intent is settled once, and its operation is over.
#[tokio::test(start_paused = true)]
async fn whatever_is_lost_while_an_intent_is_settled_from_the_list_it_is_settled() {
    for (operation, part) in [("UpdateItem", "I|own"), ("PutItem", "o|stripe"), ("TransactWriteItems", "Q|case")] {
        let (hooks, lost) = (Hooks::default(), HookDecision::FailAfter(ConnectionReset));
        let rule = Rule::times(0, operation, &[part], lost);
        hooks.add(Function::Control, rule.clone());
        let (scene, desk) = world_with(|config| WorldConfig { hooks, ..config }).await;
        desk.stripe.meets(&[Fault::AnswerLost]);
        scene.job("j1", "usd-1", 20_000_000).await;
        paid(&scene).await;
        later(&scene.world, 26).await;
        desk.misses("pi_1");
        applied_though_lost(&scene.world, &rule, &format!("{operation} {part}")).await;
        scene.world.minutes(10).await.unwrap();
        assert_eq!(scene.state("charge|t1|j1|c").await, "done already-done", "{operation} {part}");
        assert_eq!(desk.stripe.calls().len(), 1, "{operation} {part}");
        nothing(&scene.world, "last").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_the_list_contradicts_stays_one_and_says_so() {
    let (scene, desk) = world().await;
    desk.stripe.meets(&[Fault::Declined]);
    scene.job("j1", "usd-1", 10_000_000).await;
    let key = hash("own|charge%7Ct1%7Cj1%7Cc|stripe|outbound|forward");
    let metadata = json!({"key": key, "charge": "charge|t1|j1|c"});
    desk.adds(json!({
        "id": "pi_9", "status": "succeeded", "amount": 1000, "amount_received": 1000, "currency": "usd", "metadata": metadata,
    }));
    later(&scene.world, 3).await;
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["payment-untold/accept-from-authority/open", "settled-there/accept-from-authority/open"]);
    for case in run["cases"].as_array().unwrap() {
        let (status, case) = scene.world.decide_case("first", case["case"].as_str().unwrap(), "apply").await;
        assert_eq!((status, &case["resolution"]), (200, &json!("applied")), "{case}");
    }
    settle(&scene.world).await;
    nothing(&scene.world, "last").await;
    assert_eq!(scene.state("charge|t1|j1|c").await, "needs-review declined");
    let intent = scene.own("charge|t1|j1|c").await["operations"][0]["intent"].clone();
    assert_eq!(intent["state"], "failed", "{intent}");
    scene.assert_owed("0.000000", "0.000000").await; // the payment is posted all the same
    crate::books::audit(&scene.world);
}

/// Lower-case hex SHA-256.
fn hash(text: &str) -> String {
    domain::operation::hex_sha256(text)
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_here_and_unknown_there_is_a_persons_until_it_is_there() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 10_000_000).await;
    paid(&scene).await;
    later(&scene.world, 1).await;
    desk.hides("pi_1", true);
    nothing(&scene.world, "early").await;
    later(&scene.world, 2).await;
    desk.shows_again();
    desk.hides("pi_1", false); // a search has it
    nothing(&scene.world, "found").await;
    desk.hides("pi_1", true);
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["unknown-there/person/open"], "{run}");
    let (status, problem) = scene.world.decide_case("first", &only(&run), "apply").await;
    assert_eq!((status, &problem["code"]), (409, &json!("not-possible")));
    desk.shows_again();
    nothing(&scene.world, "last").await;
    assert_eq!(resolution(&scene.world, &only(&run)).await, "gone");
}

#[tokio::test(start_paused = true)]
async fn another_amount_or_currency_there_is_a_persons_with_the_difference() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 12_340_000).await;
    paid(&scene).await;
    later(&scene.world, 3).await;
    desk.says("pi_1", json!({"amount": 1200}));
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["amount-differs/person/open"], "{run}");
    assert_eq!(run["cases"][0]["amount"], "-0.340000", "{run}");
    assert_eq!(
        run["cases"][0]["evidence"],
        "asked for 1234 minor units of USD, and the destination lists pi_1 with 1200 of USD"
    );
    desk.says("pi_1", json!({"currency": "eur"}));
    let (cases, other) = found(&scene.world, "second").await;
    assert_eq!((cases, only(&other)), (vec!["amount-differs/person/open".to_owned()], only(&run)));
    assert_eq!(other["cases"][0]["amount"], "12.340000", "{other}");
    desk.says("pi_1", json!({}));
    nothing(&scene.world, "last").await;
    assert_eq!(resolution(&scene.world, &only(&run)).await, "gone");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_is_on_and_is_not_there_is_sent_again_once() {
    let (scene, desk) = world().await;
    desk.stripe.meets(&[Fault::NotSent]);
    scene.job("j1", "usd-1", 10_000_000).await;
    later(&scene.world, 5).await;
    nothing(&scene.world, "early").await;
    later(&scene.world, 2).await;
    done_at_once(&scene, "stuck").await;
    assert!(scene.state("charge|t1|j1|c").await.starts_with("done"));
    assert_eq!(desk.stripe.charged(), [("1000".to_owned(), "usd".to_owned())]);
    let (cases, run) = found(&scene.world, "last").await;
    assert_eq!(cases, [""; 0], "{run}");
}

#[tokio::test(start_paused = true)]
async fn what_is_stuck_behind_a_stored_error_without_a_look_up_is_a_persons() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 10_000_000).await;
    paid(&scene).await;
    desk.stripe.meets(&[Fault::Stored500]);
    assert_eq!(scene.act("j1", "reverse", "r-1", "4.00").await.0, 201);
    scene.world.minutes(10).await.unwrap();
    later(&scene.world, 7).await;
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["stuck/person/open"], "{run}");
    // A person refunded it by hand, and closes it.
    let decided = json!({"action": "close", "reason": "refunded by hand"});
    let (status, answer) = scene.decide("forward:stripe@own/refund|t1|j1|v|r-1", decided).await;
    assert_eq!(status, 200, "{answer}");
    nothing(&scene.world, "last").await;
    assert_eq!(resolution(&scene.world, &only(&run)).await, "gone");
}

#[tokio::test(start_paused = true)]
async fn what_is_paused_makes_no_case() {
    let (scene, desk) = world().await;
    let (status, _) =
        scene.world.control("PUT", "/control/pauses/outbound", Some(json!({"paused": true, "reason": "a test"}))).await;
    assert!(status < 300, "{status}");
    scene.job("j1", "usd-1", 10_000_000).await;
    later(&scene.world, 7).await;
    assert_eq!(desk.stripe.calls().len(), 0);
    nothing(&scene.world, "paused").await;
}

#[tokio::test(start_paused = true)]
async fn what_failed_there_later_is_a_persons() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 10_000_000).await;
    later(&scene.world, 3).await;
    desk.says("pi_1", json!({"status": "requires_payment_method", "amount_received": 0}));
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["failed-there/person/open"], "{run}");
    assert_eq!(run["cases"][0]["amount"], "10.000000", "{run}");
}

#[tokio::test(start_paused = true)]
async fn two_payments_under_one_key_are_a_persons() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 10_000_000).await;
    let payment = desk.stripe.kept()[0].clone();
    paid(&scene).await;
    desk.adds(json!({
        "id": "pi_2", "status": "processing", "amount": 1000, "currency": "usd", "metadata": payment.metadata(),
    }));
    later(&scene.world, 3).await;
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["done-twice/person/open"], "{run}");
}

fn stranger(id: &str, metadata: Value) -> Value {
    json!({"id": id, "status": "succeeded", "amount": 1, "amount_received": 1, "currency": "usd", "metadata": metadata})
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_names_an_event_which_is_not_here_is_a_persons_and_others_are_nobodys() {
    let (scene, desk) = world().await;
    let key = hash("of another");
    desk.adds(stranger("pi_7", json!({"key": key, "charge": "charge|t1|j9|c", "tenant": "t1"})));
    desk.adds(stranger("pi_8", json!({"key": hash("nothing more")})));
    desk.adds(stranger("pi_9", json!({"charge": "charge|t1|j9|c"})));
    desk.adds(stranger("pi_10", json!({"key": "a key of theirs", "charge": "charge|t1|j9|c"})));
    later(&scene.world, 1).await;
    nothing(&scene.world, "early").await;
    later(&scene.world, 2).await;
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["unknown-here/person/open"], "{run}");
    assert_eq!(run["cases"][0]["subject"], json!({"effect": {"destination": "stripe", "id": "pi_7"}}));
    desk.hides("pi_7", true);
    nothing(&scene.world, "last").await;
    assert_eq!(resolution(&scene.world, &only(&run)).await, "gone");
}

/// Another deployment's account would be no end of cases: a hundred of them, and the run says that there are more.
#[tokio::test(start_paused = true)]
async fn entries_that_nobody_here_knows_are_told_up_to_a_limit_and_none_of_them_flaps() {
    let (scene, desk) = world().await;
    for n in 0..102 {
        let metadata = json!({"key": hash(&n.to_string()), "charge": format!("charge|t1|j{n}|c")});
        desk.adds(stranger(&format!("pi_{n}"), metadata));
    }
    later(&scene.world, 3).await;
    let first = super::look(&scene.world, "first").await;
    assert_eq!(first["classes"]["unknown-here"], json!({"found": 100, "new": 100, "applied": 0}), "{first}");
    let said = first["skipped"][0].as_str().unwrap();
    assert!(said.starts_with("list of destination stripe: more than 100 entries"), "{said}");
    let again = super::look(&scene.world, "second").await;
    assert_eq!(again["classes"]["unknown-here"], json!({"found": 100, "new": 0, "applied": 0}), "{again}");
}

/// One that was charged before the window is found by the event that its entry names.
#[tokio::test(start_paused = true)]
async fn an_entry_of_an_older_event_is_compared_too() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 10_000_000).await;
    later(&scene.world, 3).await;
    let body = json!({"kinds": ["intents"], "from": "2026-11-29T12:30:00Z", "to": "2026-11-29T13:00:00Z"});
    let run = scene.world.reconcile("first", body).await.unwrap();
    assert_eq!(super::told(&run), ["payment-untold/accept-from-authority/open"], "{run}");
    assert!(desk.asked()[0].contains("created%5Bgte%5D=1795951800"), "an hour before the window");
}
