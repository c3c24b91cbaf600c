//! Bad input, to the control API and to the webhooks: a clear answer that names the field, no panic, and nothing
//! half-written.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use local::hook::CallLog;
use local::stack::Function;
use local::world::{World, WorldConfig, completed, event_body};
use runtime::gateway::GatewayEvent;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::sender::{applied_writes, binary, counting, deliver, explain, said};

const WALLET: &str = "/control/tenants/t1/wallets/w1";
const FUND: &str = "/control/tenants/t1/wallets/w1/fund";
const JOB: &str = "/control/tenants/t1/jobs/j9";

/// A world with the USD wallet w1 (95.00 available, 5.00 held for job j1), the EUR wallet w-eur, and a log of the
/// control function's calls.
struct Rig {
    world: World,
    calls: Arc<CallLog>,
    before: Value,
}

impl Rig {
    async fn new() -> Self {
        let config = WorldConfig::default();
        let calls = counting(&config, Function::Control);
        let world = World::new(config).await.unwrap();
        assert_eq!(world.fund("w1", "100.00").await.0, 201);
        assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
        let euro = json!({"currency": "EUR"});
        assert_eq!(world.control("PUT", "/control/tenants/t1/wallets/w-eur", Some(euro)).await.0, 201);
        let before = world.wallet("w1").await;
        Self { world, calls, before }
    }

    /// Asks with this exact text as body; status, `code` and `detail`. Whatever is refused has written nothing.
    async fn ask(&self, method: &str, path: &str, body: Option<&str>) -> (u16, String, String) {
        self.asked(&self.world.event(method, path, [], body)).await
    }

    async fn asked(&self, event: &GatewayEvent) -> (u16, String, String) {
        let _ = self.calls.take();
        let response = self.world.stack.control(event).await;
        let body: Value = serde_json::from_str(&response.body).unwrap();
        if response.status_code >= 400 {
            assert_eq!(response.headers["content-type"], "application/problem+json");
            assert_eq!(body["status"], response.status_code);
            assert_eq!(applied_writes(&self.calls.take()), Vec::<&str>::new(), "{body}");
            assert_eq!(self.world.wallet("w1").await, self.before, "{body}");
        }
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        (response.status_code, text("code"), text("detail"))
    }

    /// The request is refused with this status and code, and the detail has this text.
    async fn refuses(&self, method: &str, path: &str, body: &str, expected: (u16, &str, &str)) {
        let (status, code, detail) = self.ask(method, path, Some(body)).await;
        let shown = format!("{method} {path} {body:.200}: {status} {code}: {detail}");
        assert_eq!((status, code.as_str()), (expected.0, expected.1), "{shown}");
        assert!(detail.contains(expected.2), "{shown}\nexpected to contain {:?}", expected.2);
        assert!(!detail.contains("Id("), "no Rust in what people read: {shown}");
    }
}

/// A job request with some members replaced; `null` removes one.
fn job_with(change: Value) -> String {
    let mut body =
        json!({"provider": "acme", "provider_job_ref": "p-9", "model": "small-1", "wallet": "w1", "hold": "5.00"});
    let members = body.as_object_mut().unwrap();
    for (name, value) in change.as_object().unwrap() {
        match value {
            Value::Null => members.remove(name),
            value => members.insert(name.clone(), value.clone()),
        };
    }
    body.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_control_body_that_is_no_json_object_is_400() {
    let rig = Rig::new().await;
    let deep = "[".repeat(30_000) + &"]".repeat(30_000);
    let deep_member = format!(r#"{{"currency":"USD","credit_limit":{deep}}}"#);
    let arrays = "[".repeat(100_000) + &"]".repeat(100_000);
    let huge = format!("{}{}", r#"{"currency":"USD"}"#, " ".repeat(69_982));
    for (method, path) in [("PUT", WALLET), ("POST", FUND), ("PUT", JOB)] {
        assert_eq!(rig.ask(method, path, None).await.0, 400, "absent");
        for body in ["", " ", "{", "not json", "null", "5", "\"USD\"", "[]", "[\"USD\"]", "[\"1.00\",\"r\"]", "{}{}"] {
            rig.refuses(method, path, body, (400, "bad-request", "")).await;
        }
        rig.refuses(method, path, "", (400, "bad-request", "empty")).await;
        rig.refuses(method, path, &deep, (400, "bad-request", "")).await;
        rig.refuses(method, path, &deep_member, (400, "bad-request", "")).await;
        rig.refuses(method, path, &arrays, (413, "too-large", "200000 bytes")).await;
        rig.refuses(method, path, &huge, (413, "too-large", "70000 bytes")).await;
        let flagged =
            |body: &str| GatewayEvent { is_base64_encoded: true, ..rig.world.event(method, path, [], Some(body)) };
        let (status, code, detail) = rig.asked(&flagged("%%%")).await;
        assert_eq!((status, code.as_str()), (400, "bad-request"));
        assert!(detail.contains("base64"), "{detail}");
        let broken = STANDARD.encode(b"{\"currency\":\"US\xff\"}");
        let (status, code, _) = rig.asked(&flagged(&broken)).await;
        assert_eq!((status, code.as_str()), (400, "bad-request"));
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_types_unknown_and_missing_members_are_400_and_named_without_their_content() {
    let rig = Rig::new().await;
    for (method, path, body, named) in [
        ("PUT", WALLET, r#"{"currency":840}"#.to_owned(), "currency"),
        ("PUT", WALLET, r#"{"currency":"USD","credit_limit":0}"#.to_owned(), "credit_limit"),
        ("PUT", WALLET, r#"{"currency":"USD","colour":"red"}"#.to_owned(), "colour"),
        ("PUT", WALLET, r#"{"currency":"USD","currency":"EUR"}"#.to_owned(), "currency"),
        ("PUT", WALLET, "{}".to_owned(), "currency"),
        ("POST", FUND, r#"{"amount":1.00,"reference":"r"}"#.to_owned(), "amount"),
        ("POST", FUND, r#"{"amount":"1.00","reference":7}"#.to_owned(), "reference"),
        ("POST", FUND, r#"{"amount":"1.00","reference":null}"#.to_owned(), "reference"),
        ("POST", FUND, r#"{"amount":"1.00"}"#.to_owned(), "reference"),
        ("PUT", JOB, job_with(json!({"hold": 5})), "hold"),
        ("PUT", JOB, job_with(json!({"wallet": ["w1"]})), "wallet"),
        ("PUT", JOB, job_with(json!({"provider": {"slug": "acme"}})), "provider"),
        ("PUT", JOB, job_with(json!({"model": true})), "model"),
        ("PUT", JOB, job_with(json!({"metadata": {"team": 5}})), "metadata"),
        ("PUT", JOB, job_with(json!({"metadata": "team"})), "metadata"),
        ("PUT", JOB, job_with(json!({"priority": 1})), "priority"),
        ("PUT", JOB, job_with(json!({"hold": null})), "hold"),
    ] {
        rig.refuses(method, path, &body, (400, "bad-request", named)).await;
    }
    let (_, _, detail) = rig.ask("PUT", JOB, Some(&job_with(json!({"metadata": "canary-7f3a"})))).await;
    assert!(!detail.contains("canary-7f3a"), "content is not repeated: {detail}");
}

#[tokio::test(start_paused = true)]
async fn amounts_and_currencies_that_make_no_sense_are_422_and_named() {
    let rig = Rig::new().await;
    let amounts =
        ["-1.00", "0.0000001", "1.0000000", "1e3", "", " 1", "1,00", ".5", "1.", "+1", "NaN", "10000000000.01"];
    for amount in amounts.into_iter().chain(["0", "0.00", "-0.000001"]) {
        let body = json!({"amount": amount, "reference": "r"}).to_string();
        rig.refuses("POST", FUND, &body, (422, "invalid-value", "amount: ")).await;
    }
    for amount in amounts {
        let body = json!({"currency": "USD", "credit_limit": amount}).to_string();
        rig.refuses("PUT", "/control/tenants/t1/wallets/w9", &body, (422, "invalid-value", "credit_limit: ")).await;
        rig.refuses("PUT", JOB, &job_with(json!({"hold": amount})), (422, "invalid-value", "hold: ")).await;
    }
    for currency in ["ZZZ", "usd", "US", "", "USDX", "U\u{0}D", "\u{20ac}"] {
        let body = json!({"currency": currency}).to_string();
        rig.refuses("PUT", "/control/tenants/t1/wallets/w9", &body, (422, "invalid-value", "currency: ")).await;
    }
    assert_eq!(rig.ask("GET", "/control/tenants/t1/wallets/w9", None).await.0, 404);
    assert_eq!(rig.ask("GET", JOB, None).await.0, 404);
    // The limit is of the whole wallet: 100.00 and this are above ten thousand million.
    let body = json!({"amount": "10000000000.00", "reference": "r"}).to_string();
    rig.refuses("POST", FUND, &body, (422, "invalid-value", "amount: ")).await;
}

#[tokio::test(start_paused = true)]
async fn ids_of_0_and_5000_bytes_are_refused_and_named() {
    let rig = Rig::new().await;
    let long = "x".repeat(5_000);
    for (field, named) in [
        ("provider_job_ref", "provider job ref"),
        ("model", "model"),
        ("wallet", "wallet"),
        ("provider", "provider"),
        ("request_id", "request_id"),
    ] {
        for id in ["", &long] {
            let body = job_with(json!({field: id}));
            rig.refuses("PUT", JOB, &body, (422, "invalid-value", named)).await;
        }
        let (_, _, detail) = rig.ask("PUT", JOB, Some(&job_with(json!({field: &long})))).await;
        assert!(detail.len() < 1_000, "a long value is not repeated whole: {} bytes", detail.len());
    }
    for id in ["", &long] {
        let body = json!({"amount": "1.00", "reference": id}).to_string();
        rig.refuses("POST", FUND, &body, (422, "invalid-value", "reference")).await;
    }
    let good = r#"{"currency":"USD"}"#;
    let path = |tenant: &str, wallet: &str| format!("/control/tenants/{tenant}/wallets/{wallet}");
    rig.refuses("PUT", &path("t1", &long), good, (422, "invalid-value", "wallet has 5000 bytes")).await;
    rig.refuses("PUT", &path(&long, "w1"), good, (422, "invalid-value", "tenant has 5000 bytes")).await;
    rig.refuses(
        "PUT",
        &format!("/control/tenants/t1/jobs/{long}"),
        &job_with(json!({})),
        (422, "invalid-value", "job id has 5000 bytes"),
    )
    .await;
    rig.refuses("GET", &format!("/control/events/acme/{long}"), "", (422, "invalid-value", "event id has 5000 bytes"))
        .await;
    for path in
        [path("t1", ""), path("", "w1"), "/control/tenants/t1/jobs/".to_owned(), "/control/events/acme/".to_owned()]
    {
        rig.refuses("PUT", &path, good, (404, "not-found", "no such call")).await;
    }
    // 200 bytes are the longest id; its bytes are kept as they are.
    let longest = "é".repeat(100);
    let escaped = "~C3~A9".repeat(100);
    assert_eq!(rig.ask("PUT", &path("t1", &escaped), Some(good)).await.0, 201);
    assert_eq!(rig.world.wallet(&escaped).await["wallet"], longest);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_exist_is_named() {
    let rig = Rig::new().await;
    rig.refuses("PUT", JOB, &job_with(json!({"wallet": "w9"})), (404, "unknown-wallet", "wallet \"w9\"")).await;
    rig.refuses("PUT", JOB, &job_with(json!({"model": "big-9"})), (422, "invalid-value", "model \"big-9\"")).await;
    rig.refuses("PUT", JOB, &job_with(json!({"provider": "nobody"})), (422, "invalid-value", "provider \"nobody\""))
        .await;
    rig.refuses("GET", JOB, "", (404, "not-found", "\"j9\"")).await;
    let nowhere = "/control/tenants/t1/wallets/w9";
    rig.refuses("GET", nowhere, "", (404, "not-found", "\"w9\"")).await;
    let funding = r#"{"amount":"1.00","reference":"r"}"#;
    rig.refuses("POST", &format!("{nowhere}/fund"), funding, (404, "not-found", "\"w9\"")).await;
    // A wallet is its tenant's: the same name under another tenant does not exist.
    rig.refuses("POST", "/control/tenants/t2/wallets/w1/fund", funding, (404, "not-found", "\"w1\"")).await;
    rig.refuses("GET", "/control/events/acme/msg_9", "", (404, "not-found", "acme/msg_9")).await;
    rig.refuses("GET", "/control/events/Acme!/msg_9", "", (422, "invalid-value", "provider")).await;
    rig.refuses("DELETE", WALLET, "", (404, "not-found", "DELETE")).await;
    rig.refuses("GET", "/control/nothing", "", (404, "not-found", "/control/nothing")).await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_in_another_currency_or_above_the_funds_reserves_nothing() {
    let rig = Rig::new().await;
    rig.refuses("PUT", JOB, &job_with(json!({"wallet": "w-eur"})), (422, "invalid-value", "EUR")).await;
    rig.refuses("PUT", JOB, &job_with(json!({"hold": "95.000001"})), (402, "funds-short", "95.000000")).await;
    rig.refuses("GET", JOB, "", (404, "not-found", "j9")).await;
    let euro = rig.world.wallet("w-eur").await;
    assert_eq!((&euro["available"], &euro["held"]), (&json!("0.000000"), &json!("0.000000")));
    // The reference was not taken by the refused job, and a hold of all that is there is no overdraft.
    assert_eq!(rig.ask("PUT", JOB, Some(&job_with(json!({"hold": "95.00"})))).await.0, 201);
    assert_eq!(rig.world.wallet("w1").await["available"], "0.000000");
}

#[tokio::test(start_paused = true)]
async fn the_same_request_again_is_200_and_other_content_409_and_neither_moves_money() {
    let rig = Rig::new().await;
    let request = |change: Value| {
        let mut same = json!({"provider_job_ref": "p-j1"});
        same.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        job_with(same)
    };
    let job = "/control/tenants/t1/jobs/j1";
    for same in [json!({}), json!({"hold": "5"}), json!({"hold": "5.000000"})] {
        assert_eq!(rig.ask("PUT", job, Some(&request(same))).await.0, 200);
        assert_eq!(rig.world.wallet("w1").await, rig.before);
    }
    for other in [
        json!({"hold": "5.000001"}),
        json!({"hold": "500.00"}), // classified before the funds
        json!({"wallet": "w-eur"}),
        json!({"provider_job_ref": "p-other"}),
        json!({"request_id": "q"}),
        json!({"metadata": {"team": "blue"}}),
    ] {
        rig.refuses("PUT", job, &request(other), (409, "conflict", "other content")).await;
    }
    rig.refuses("PUT", JOB, &request(json!({})), (409, "conflict", "provider_job_ref")).await;
    rig.refuses("GET", JOB, "", (404, "not-found", "j9")).await;

    let funding = |amount: &str| json!({"amount": amount, "reference": "first"}).to_string();
    for same in ["100.00", "100", "100.000000"] {
        assert_eq!(rig.ask("POST", FUND, Some(&funding(same))).await.0, 200);
        assert_eq!(rig.world.wallet("w1").await, rig.before);
    }
    rig.refuses("POST", FUND, &funding("100.01"), (409, "conflict", "100.000000 USD")).await;

    assert_eq!(rig.ask("PUT", WALLET, Some(r#"{"currency":"USD","credit_limit":"0"}"#)).await.0, 200);
    rig.refuses("PUT", WALLET, r#"{"currency":"EUR"}"#, (409, "conflict", "currency USD")).await;
    rig.refuses("PUT", WALLET, r#"{"currency":"USD","credit_limit":"1.00"}"#, (409, "conflict", "credit limit")).await;
}

#[tokio::test(start_paused = true)]
async fn two_path_ids_that_are_not_utf_8_never_become_one_wallet() {
    let rig = Rig::new().await;
    for escaped in ["~FF", "~FE", "~C3"] {
        let path = format!("/control/tenants/t1/wallets/{escaped}");
        rig.refuses("PUT", &path, r#"{"currency":"USD"}"#, (400, "bad-request", "UTF-8")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_body_that_is_empty_absent_too_deep_or_not_utf_8_is_quarantined() {
    let rig = Rig::new().await;
    let world = &rig.world;
    assert_eq!(world.send("e1", "").await, said(200, "quarantined"));
    let absent = GatewayEvent { body: None, ..world.acme("e2", "") };
    assert_eq!(deliver(world, &absent).await, said(200, "duplicate"), "absent and empty are the same bytes");
    let arrays = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(world.send("e3", &arrays).await, said(200, "quarantined"));
    let objects = "{\"a\":".repeat(40_000) + "1" + &"}".repeat(40_000);
    assert_eq!(world.send("e4", &objects).await, said(200, "quarantined"));
    let never_closed = "[".repeat(200_000);
    assert_eq!(world.send("e5", &never_closed).await, said(200, "quarantined"));
    for id in ["e1", "e2", "e3", "e4", "e5"] {
        assert_eq!(explain(world, "acme", id).await.0, 404, "what is not understood is kept under its hash alone");
    }
    assert_eq!(world.drain().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn webhook_ids_of_0_and_5000_bytes_are_quarantined_and_named() {
    let rig = Rig::new().await;
    let world = &rig.world;
    let long = "x".repeat(5_000);
    for (change, named) in [
        (json!({"job_id": ""}), "job id is empty"),
        (json!({"job_id": long}), "job id has 5000 bytes"),
        (json!({"tenant": ""}), "tenant is empty"),
        (json!({"tenant": long}), "tenant has 5000 bytes"),
        (json!({"id": ""}), "provider job ref is empty"),
        (json!({"id": long}), "provider job ref has 5000 bytes"),
        (json!({"model": long}), "model has 5000 bytes"),
    ] {
        let id = format!("e-{named}");
        assert_eq!(world.send(&id, &event_body("job.completed", "j1", change)).await, said(200, "quarantined"));
        let (_, shown) = explain(world, "acme", &id).await;
        assert_eq!(shown["reason"], "missing-field", "{shown}");
        assert!(shown["note"].as_str().unwrap().contains(named), "{shown}");
    }
    // An event id that no key can hold: kept under the hash of the body.
    let response = world.stack.webhook(&world.acme(&long, &completed("j1"))).await;
    assert_eq!(response.status_code, 200);
    let body: Value = serde_json::from_str(&response.body).unwrap();
    assert!(body["event"].as_str().unwrap().starts_with("acme/raw#"), "{body}");
    let none = binary(world, "acme", vec![], completed("j1").as_bytes());
    assert_eq!(deliver(world, &none).await, said(401, "invalid-signature"));
    assert_eq!(world.drain().await.unwrap(), 0);
    assert_eq!(world.wallet("w1").await, rig.before);
}

#[tokio::test(start_paused = true)]
async fn webhook_fields_of_a_wrong_type_are_never_taken_for_absent() {
    let rig = Rig::new().await;
    let world = &rig.world;
    for field in ["tenant", "job_id", "id", "model"] {
        for (index, wrong) in
            [json!(5), json!(true), json!({"id": "j1"}), json!(["j1"]), json!(1.5)].into_iter().enumerate()
        {
            let id = format!("e-{field}-{index}");
            let body = event_body("job.completed", "j1", json!({field: wrong}));
            assert_eq!(world.send(&id, &body).await, said(200, "quarantined"), "{field} {wrong}");
            let (_, shown) = explain(world, "acme", &id).await;
            let note = shown["note"].as_str().unwrap();
            assert!(note.contains(&format!("body:/data/{field}")), "{note}");
        }
    }
    for (index, wrong) in
        [json!(5), json!("1200"), json!([1200]), json!({"input_tokens": "1200"})].into_iter().enumerate()
    {
        // The usage is the settlement's to judge: the job completes, and a person looks at the money.
        let (id, job) = (format!("e-usage-{index}"), format!("u{index}"));
        assert_eq!(world.submit(&job, "w1", "0.00").await.0, 201);
        let body = event_body("job.completed", &job, json!({"usage": wrong}));
        assert_eq!(world.send(&id, &body).await, said(202, "accepted"), "{wrong}");
        world.drain().await.unwrap();
        assert_eq!(world.job(&job).await["transitions"].as_array().unwrap().len(), 1, "{wrong}");
        assert_eq!(world.explain(&id).await["operations"][1]["class"], "invalid-usage", "{wrong}");
    }
    for member in ["available", "held", "sequence"] {
        assert_eq!(world.wallet("w1").await[member], rig.before[member]);
    }
}

#[tokio::test(start_paused = true)]
async fn usage_that_makes_no_sense_moves_no_money() {
    let rig = Rig::new().await;
    let world = &rig.world;
    // Finer than 0.001 unit, or an exponent that no number holds: not usage at all.
    for (index, text) in ["0.0000001", "1e400", "1e-400"].into_iter().enumerate() {
        let (id, job) = (format!("q{index}"), format!("u{index}"));
        assert_eq!(world.submit(&job, "w1", "0.00").await.0, 201);
        let body = completed(&job).replace("1200", text);
        assert_eq!(world.send(&id, &body).await, said(202, "accepted"), "{text}");
        world.drain().await.unwrap();
        assert_eq!(world.explain(&id).await["operations"][1]["class"], "invalid-usage", "{text}");
    }
    // Usage, but not chargeable: a person decides.
    let usages = [("-1200", "partially-failed"), ("9000000000000000", "needs-review")]; // the first one ended the job
    for (index, (text, status)) in usages.into_iter().enumerate() {
        let body = completed("j1").replace("1200", text);
        assert_eq!(world.send(&format!("r{index}"), &body).await, said(202, "accepted"), "{text}");
        world.drain().await.unwrap();
        assert_eq!(world.explain(&format!("r{index}")).await["status"], status, "{text}");
    }
    for member in ["available", "held", "sequence"] {
        assert_eq!(world.wallet("w1").await[member], rig.before[member]);
    }
}
