//! Amounts at the edges, through the whole stack: each value was worked out by hand in its comment.

use local::world::{World, WorldConfig, WorldError};
use serde_json::json;

use super::bench::PROVIDERS;
use super::scene::Scene;

/// One model and its price; the model's policies are the profile's (`overage = "review"`).
fn config(price: &str) -> WorldConfig {
    let prices = format!("[[price]]\nmodel = \"m\"\nversion = \"v\"\neffective = \"2026-01-01T00:00:00Z\"\n{price}\n");
    WorldConfig { providers: PROVIDERS.to_owned(), prices, ..WorldConfig::default() }
}

/// Wallet w1 in this currency with 100.00 and job j1 with this hold.
async fn scene(price: &str, currency: &str, hold: &str) -> Scene {
    let scene = Scene::with(config(price)).await;
    let path = "/control/tenants/t1/wallets/w1";
    assert_eq!(scene.world.control("PUT", path, Some(json!({"currency": currency}))).await.0, 201);
    let fund = json!({"amount": "100.00", "reference": "first"});
    assert_eq!(scene.world.control("POST", &format!("{path}/fund"), Some(fund)).await.0, 201);
    assert_eq!(scene.submit("j1", "w1", hold, "m").await, 201);
    scene
}

/// What the first settlement of j1 is after this usage, or how the settlement ended instead.
async fn settled(price: &str, usage: &str) -> String {
    let scene = scene(price, "USD", "50.00").await;
    let usage: serde_json::Value = serde_json::from_str(usage).unwrap();
    scene.event("e1", "job.completed", "j1", json!({"usage": usage})).await;
    scene.clean();
    match scene.settlements("j1").await.pop() {
        Some(settlement) => settlement,
        None => {
            assert_eq!(scene.wallet().await, ("50.000000".to_owned(), "50.000000".to_owned()));
            scene.operations("e1").await.pop().unwrap_or_else(|| "no operation".to_owned())
        }
    }
}

const PER_UNIT: &str = "currency = \"USD\"\nrates.u = { price = \"0.125\" }";

#[tokio::test(start_paused = true)]
async fn an_eighth_is_exact_and_less_than_nothing_is_a_persons() {
    // 1 x 0.125 = 0.125; of 50.00 held, 49.875 goes back.
    assert_eq!(settled(PER_UNIT, r#"{"u": 1}"#).await, "capture 0.125000 49.875000");
    // 0.001 x 0.125 = 0.000125: the least quantity that is kept.
    assert_eq!(settled(PER_UNIT, r#"{"u": 0.001}"#).await, "capture 0.000125 49.999875");
    for usage in [r#"{"u": -0.125}"#, r#"{"u": -1}"#] {
        assert_eq!(settled(PER_UNIT, usage).await, "settle-usage needs-review invalid-usage", "{usage}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_charge_is_rounded_once_half_to_even() {
    let price = "currency = \"USD\"\nrates.a = { price = \"0.0000005\" }\nrates.b = { price = \"0.0000005\" }";
    // 0.5 micros lie between 0 and 1: 0 is even. 1.5 between 1 and 2: 2. 2.5 between 2 and 3: 2.
    assert_eq!(settled(price, r#"{"a": 1}"#).await, "capture 0.000000 50.000000");
    assert_eq!(settled(price, r#"{"a": 3}"#).await, "capture 0.000002 49.999998");
    assert_eq!(settled(price, r#"{"a": 5}"#).await, "capture 0.000002 49.999998");
    // Two halves are one micro: the sum is rounded, not its parts, which would each be 0.
    assert_eq!(settled(price, r#"{"a": 1, "b": 1}"#).await, "capture 0.000001 49.999999");
}

#[tokio::test(start_paused = true)]
async fn a_price_that_does_not_divide_loses_nothing_between_captured_and_released() {
    let price =
        "currency = \"USD\"\nrates.u = { price = \"1.00\", per = 1000000000 }\nrates.v = { price = \"0.333333333\" }";
    // 1/10^9 of a dollar is a thousandth of a micro: 1,499 are 1.499 micros, 1 of them is charged.
    assert_eq!(settled(price, r#"{"u": 1499}"#).await, "capture 0.000001 49.999999");
    // 3 x 0.333333333 = 0.999999999, rounded to 1.000000; 1 x is 0.333333333, rounded to 0.333333.
    assert_eq!(settled(price, r#"{"v": 3}"#).await, "capture 1.000000 49.000000");
    assert_eq!(settled(price, r#"{"v": 1}"#).await, "capture 0.333333 49.666667");
}

#[tokio::test(start_paused = true)]
async fn what_is_beyond_the_arithmetic_or_a_ceiling_is_a_persons() {
    let review = "settle-usage needs-review invalid-usage";
    let dear = "currency = \"USD\"\nrates.u = { price = \"9000000000.000000000\" }";
    // 9 x 10^15 units (kept as 9 x 10^18 thousandths) at 9 x 10^9 are 8.1 x 10^25: beyond the largest amount.
    assert_eq!(settled(dear, r#"{"u": 9000000000000000}"#).await, review);
    // 2 x 9 x 10^9 are 1.8 x 10^10, and the limit is 10^10.
    assert_eq!(settled(dear, r#"{"u": 2}"#).await, review);
    let bounded = "currency = \"USD\"\nceiling = \"10.00\"\nrates.u = { price = \"1.00\", max = \"20\" }";
    assert_eq!(settled(bounded, r#"{"u": 10}"#).await, "capture 10.000000 40.000000");
    assert_eq!(settled(bounded, r#"{"u": 10.001}"#).await, review); // 10.001 is above the ceiling of 10.00
    assert_eq!(settled(bounded, r#"{"u": 20.001}"#).await, review); // more units than one event may report
    assert_eq!(settled(bounded, r#"{"u": 1, "unknown": 1}"#).await, review); // a unit without a price
}

#[tokio::test(start_paused = true)]
async fn usage_that_no_quantity_can_hold_completes_the_job_and_moves_no_money() {
    // Four decimals; beyond any quantity; a text; no object: what was used is for a person to find out.
    for usage in [r#"{"u": 0.0001}"#, r#"{"u": 1e400}"#, r#"{"u": "1"}"#, "[1]"] {
        let scene = scene(PER_UNIT, "USD", "50.00").await;
        let body = scene.body("job.completed", "j1", json!({}));
        let body = body.replace("\"id\":", &format!("\"usage\":{usage},\"id\":"));
        assert_eq!(scene.world.send("e1", &body).await.0, 202, "{usage}");
        scene.world.drain().await.unwrap();
        let operations = scene.operations("e1").await;
        assert_eq!(operations, ["complete-job done", "settle-usage needs-review invalid-usage"], "{usage}");
        assert_eq!(scene.wallet().await, ("50.000000".to_owned(), "50.000000".to_owned()), "{usage}");
        scene.clean();
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_whose_partial_usage_cannot_be_read_releases_nothing_where_it_is_billed() {
    let prices = super::bench::prices();
    let scene = Scene::with(WorldConfig { providers: PROVIDERS.to_owned(), prices, ..WorldConfig::default() }).await;
    scene.open("10.00", &[("billed", "2.00")], "partial").await;
    assert_eq!(scene.submit("free", "w1", "2.00", "strict").await, 201);
    for job in ["billed", "free"] {
        scene.event(&format!("e-{job}"), "job.failed", job, json!({"usage": {"tokens": "many"}})).await;
    }
    assert_eq!(scene.operations("e-billed").await, ["complete-job done", "settle-usage needs-review invalid-usage"]);
    assert_eq!(scene.settlements("free").await, ["release 0.000000 2.000000"]);
    assert_eq!(scene.wallet().await, ("8.000000".to_owned(), "2.000000".to_owned()));
    scene.clean();
}

#[tokio::test(start_paused = true)]
async fn minimum_and_zero_prices() {
    let price = "currency = \"USD\"\nminimum = \"0.25\"\nrates.u = { price = \"0\" }\nrates.v = { price = \"0.10\" }";
    assert_eq!(settled(price, r#"{"u": 1000}"#).await, "capture 0.250000 49.750000"); // free, and at least 0.25
    assert_eq!(settled(price, r#"{"v": 3}"#).await, "capture 0.300000 49.700000"); // 0.30 is above it
}

#[tokio::test(start_paused = true)]
async fn a_price_of_minus_one_starts_nothing() {
    let refused = World::new(config("currency = \"USD\"\nrates.u = { price = \"-1\" }")).await;
    match refused {
        Err(WorldError::Configuration(text)) => assert!(text.contains("negative"), "{text}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a price of -1 was taken"),
    }
}

#[tokio::test(start_paused = true)]
async fn yen_and_dinars_are_kept_in_micros_of_their_major_unit() {
    for currency in ["JPY", "KWD"] {
        let price = format!("currency = \"{currency}\"\nrates.u = {{ price = \"0.3\" }}");
        let scene = scene(&price, currency, "1.00").await;
        // 3 x 0.3 = 0.9: less than a yen, and no whole number of yen, yet exact; 0.1 goes back.
        scene.event("e1", "job.completed", "j1", json!({"usage": {"u": 3}})).await;
        assert_eq!(scene.settlements("j1").await, ["capture 0.900000 0.100000"], "{currency}");
        assert_eq!(scene.wallet().await, ("99.100000".to_owned(), "0.000000".to_owned()), "{currency}");
        scene.clean();
    }
}

#[tokio::test(start_paused = true)]
async fn a_wallet_takes_no_more_than_the_largest_amount() {
    let scene = scene(PER_UNIT, "USD", "50.00").await;
    let path = "/control/tenants/t1/wallets/w1/fund";
    // 100.00 stand: 9,999,999,900.00 more are exactly the limit of 10,000,000,000.00.
    for (amount, reference, status) in [
        ("10000000000.000001", "a", 422),
        ("9999999900.000001", "b", 422),
        ("9999999900.00", "c", 201),
        ("0.000001", "d", 422),
        ("0", "e", 422),
        ("-1", "f", 422),
        ("0.0000001", "g", 422),
    ] {
        let fund = json!({"amount": amount, "reference": reference});
        assert_eq!(scene.world.control("POST", path, Some(fund)).await.0, status, "{amount}");
    }
    // What the job gives back still fits: available and held together stay what they were.
    scene.event("e1", "job.completed", "j1", json!({"usage": {"u": 8}})).await; // 8 x 0.125 = 1.00
    assert_eq!(scene.wallet().await, ("9999999999.000000".to_owned(), "0.000000".to_owned()));
    scene.clean();
}
