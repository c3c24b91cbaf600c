//! The list itself: its pages, what cannot be read of it, and whose variables are missing.

use serde_json::json;

use super::desk::Mood;
use super::{found, later, look, told, world, world_with};

#[tokio::test(start_paused = true)]
async fn every_page_of_the_list_is_read() {
    let (scene, desk) = world().await;
    for job in ["j1", "j2", "j3", "j4", "j5"] {
        scene.job(job, "usd-1", 1_000_000).await;
    }
    later(&scene.world, 3).await;
    desk.pages_of(2);
    desk.asked();
    let (cases, run) = found(&scene.world, "first").await;
    assert_eq!(cases, ["payment-untold/accept-from-authority/open"; 5], "{run}");
    assert_eq!(run["examined"], 15, "five entries in two tables' lists, and five intents: {run}");
    // 2026-11-29T10:58:00Z, an hour before the range.
    let first = "/v1/payment_intents?limit=100&expand%5B%5D=data.latest_charge.refunds&created%5Bgte%5D=1795949880";
    let pages = [first.to_owned(), format!("{first}&starting_after=pi_4"), format!("{first}&starting_after=pi_2")];
    let mut asked = desk.asked();
    asked.retain(|path| path.starts_with("/v1/payment_intents") && path.contains("expand"));
    assert_eq!(asked, pages);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_is_said_and_nothing_is_missing_by_it() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 1_000_000).await;
    scene.succeeded("evt_1", &desk.stripe.kept()[0]).await;
    later(&scene.world, 3).await;
    desk.hides("pi_1", true);
    let refused = "the provider answered with status 403";
    let unreadable = "1 entries could not be read";
    let key = domain::operation::hex_sha256("x");
    let odd = json!({"data": [{"metadata": {"key": key}, "status": "succeeded"}], "has_more": false}).to_string();
    let more = json!({"data": [], "has_more": true}).to_string();
    for (name, status, body, why) in [
        ("a", 200, "<html>canary</html>".to_owned(), "the list is not acceptable JSON"),
        ("b", 200, json!({"object": "canary"}).to_string(), "the list has no array at /data"),
        ("c", 200, json!({"data": []}).to_string(), "the list does not say at /has_more whether there are more"),
        ("d", 200, more, "the list says that there are more, and its last entry has nothing at /id"),
        ("e", 403, "canary".to_owned(), refused),
        ("f", 200, odd, unreadable),
    ] {
        desk.is(Mood::Says(status, body));
        let run = look(&scene.world, name).await;
        assert_eq!(told(&run), [""; 0], "{run}");
        for (line, table) in ["stripe", "stripe-authorise", "stripe-refunds"].iter().enumerate() {
            let said = run["skipped"][line].as_str().unwrap();
            assert!(said.starts_with(&format!("list of destination {table}: {why}")), "{said}");
            assert!(!said.contains("canary"), "{said}");
        }
    }
    desk.is(Mood::Well);
    let (cases, run) = found(&scene.world, "last").await;
    assert_eq!(cases, ["unknown-there/person/open"], "a whole list says so: {run}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_reached_is_tried_five_times_and_then_said() {
    let (scene, desk) = world().await;
    scene.job("j1", "usd-1", 1_000_000).await;
    later(&scene.world, 3).await;
    desk.is(Mood::Down);
    let body = json!({"kinds": ["intents"], "from": "2026-11-29T11:58:00Z", "to": "2026-11-29T12:20:00Z"});
    let run = scene.world.reconcile("first", body).await.unwrap();
    assert_eq!(run["state"], "running", "{run}");
    for _ in 0..5 {
        scene.world.clock.advance(13 * 60_000); // its message is visible again after twelve minutes
        scene.world.drain().await.unwrap();
    }
    let run = scene.world.control("GET", "/control/reconciliations/first", None).await.1;
    assert_eq!((&run["state"], &run["parts"]["failed"]), (&json!("done"), &json!(3)), "{run}");
    assert_eq!(run["skipped"][0], "intents|stripe: the list: the provider cannot be reached", "{run}");
}

#[tokio::test(start_paused = true)]
async fn a_variable_that_is_not_set_or_holds_a_reference_is_said_by_its_name() {
    let skipped = "list of destination stripe: ";
    for (value, why) in [
        (None, "set the environment variable STRIPE_API_KEY of the reconciler function"),
        (
            Some("secretsmanager:hooks/stripe#KEY"),
            "the environment variable STRIPE_API_KEY holds a reference, which is not resolved here: put the value itself there",
        ),
    ] {
        let (scene, _) = world_with(|mut config| {
            config.addresses.remove("STRIPE_API_KEY");
            config.addresses.extend(value.map(|value| ("STRIPE_API_KEY".to_owned(), value.to_owned())));
            config
        })
        .await;
        later(&scene.world, 3).await;
        let run = look(&scene.world, "first").await;
        assert_eq!(run["skipped"][0], format!("{skipped}{why}"), "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_daily_run_looks_as_far_back_as_the_table_says() {
    let (scene, _) = world_with(|mut config| {
        let from = "created = { at = \"/created\", unit = \"seconds\" }\n";
        assert_eq!(config.providers.matches(from).count(), 3);
        config.providers = config.providers.replace("window_hours = 96\n", "");
        config.providers = config.providers.replace(from, &format!("{from}window_hours = 4\n"));
        config
    })
    .await;
    scene.job("j1", "usd-1", 1_000_000).await;
    later(&scene.world, 3).await;
    scene.world.stack.daily().await.unwrap();
    scene.world.drain().await.unwrap();
    let run = scene.world.control("GET", "/control/reconciliations/daily-2026-11-29", None).await.1;
    assert_eq!(told(&run), ["payment-untold/accept-from-authority/open"], "{run}");
    assert_eq!(run["kinds"], json!(["wallets", "reviews", "provider-list", "intents"]));
}
