//! Charges and refunds over real HTTP at payment providers that others wrote; `bash tests/peers/run` starts them. Without it
//! these tests are not run, and none of them passes without its peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use local::world::WorldConfig;
use runtime::call::{Call, CallError, Called, Caller, HttpsCaller, Reply};
use serde_json::{Value, json};

use super::stripe::Stripe;
use super::{Scene, config};

const KEY: &str = "sk_test_of_the_peers";

fn told(peer: &str, case: &str) {
    println!("peer | {peer} | {case} | as it should be");
}

fn address(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run bash tests/peers/run"))
}

/// A request of the test's own.
async fn ask(base: &str, method: &str, path: &str, form: &str) -> Value {
    let headers = [("authorization", format!("Bearer {KEY}")), ("content-type", super::FORM.to_owned())];
    let call = Call {
        method: method.to_owned(),
        url: format!("{base}{path}"),
        headers: headers.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        body: form.as_bytes().to_vec(),
        max_bytes: 1_000_000,
        timeout: Duration::from_secs(10),
    };
    let reply = HttpsCaller::new().unwrap().call(call).await.unwrap();
    let body: Value = serde_json::from_slice(&reply.body.unwrap()).unwrap();
    assert_eq!(reply.status, 200, "{method} {path}: {body}");
    body
}

/// The real client. `charges` speaks to a peer that knows charges and no PaymentIntents: paths and some names of fields are
/// exchanged on the wire, and a charge that is not captured has a PaymentIntent's word for it; keys, amounts and answers are
/// as they are. The other one takes no metadata with a capture, so they are left out there. `lose` drops the next answer.
#[derive(Debug)]
struct Wire {
    client: HttpsCaller,
    charges: bool,
    lose: AtomicBool,
}

impl Caller for Wire {
    fn call(&self, mut call: Call) -> Called<'_> {
        let creates = call.url.ends_with("/v1/payment_intents");
        let body = String::from_utf8(call.body).unwrap();
        if self.charges {
            call.url = call.url.replace("/v1/payment_intents", "/v1/charges");
            let names = [
                ("&payment_method=", "&source="),
                ("&payment_intent=", "&charge="),
                ("&capture_method=manual", "&capture=false"),
                ("amount_to_capture=", "amount="),
            ];
            call.body = names.iter().fold(body, |body, (from, to)| body.replace(from, to)).into_bytes();
        } else {
            let taken = if call.url.ends_with("/capture") { body.split('&').next().unwrap_or_default() } else { &body };
            call.body = taken.as_bytes().to_vec();
        }
        Box::pin(async move {
            let mut reply = self.client.call(call).await;
            if let Ok(Reply { body: Some(body), .. }) = reply.as_mut()
                && self.charges
                && creates
                && let Ok(mut charge) = serde_json::from_slice::<Value>(body)
                && charge["captured"] == false
            {
                charge["status"] = json!("requires_capture");
                *body = charge.to_string().into_bytes();
            }
            if self.lose.swap(false, Ordering::SeqCst) {
                return Err(CallError::Lost("the answer was dropped by the test"));
            }
            reply
        })
    }
}

async fn scene(base: &str, wire: &Arc<Wire>, customer: &str, method: &str) -> Scene {
    on(base, wire, json!({"customer": customer, "payment_method": method})).await
}

async fn on(base: &str, wire: &Arc<Wire>, terms: Value) -> Scene {
    let stripe = Arc::new(Stripe::default());
    let mut config: WorldConfig = config(&stripe);
    config.addresses.insert("STRIPE_API_URL".to_owned(), base.to_owned());
    config.addresses.insert("STRIPE_API_KEY".to_owned(), KEY.to_owned());
    config.caller = wire.clone();
    Scene::on(config, stripe, "USD", terms).await
}

fn wire(charges: bool) -> Arc<Wire> {
    Arc::new(Wire { client: HttpsCaller::new().unwrap(), charges, lose: AtomicBool::new(false) })
}

#[tokio::test]
#[ignore = "needs its peer: bash tests/peers/run"]
async fn keys_charges_and_refunds_at_the_stateful_mock() {
    const PEER: &str = "stripe-stateful-mock";
    let base = address("HOOKLEDGER_PEER_STATEFUL");
    let customer = ask(&base, "POST", "/v1/customers", "source=tok_visa").await;
    let (customer, card) = (customer["id"].as_str().unwrap(), customer["default_source"].as_str().unwrap());
    let wire = wire(true);
    let own = scene(&base, &wire, customer, card).await;
    let charges = async || ask(&base, "GET", "/v1/charges?limit=100", "").await["data"].clone();

    own.job("j1", "usd-1", 10_005_000).await;
    assert_eq!(own.state("charge|t1|j1|c").await, "done");
    let first = charges().await[0].clone();
    assert_eq!((&first["amount"], &first["metadata"]["charge"]), (&json!(1000), &json!("charge|t1|j1|c")));
    told(PEER, "a completed job is charged in whole cents");

    wire.lose.store(true, Ordering::SeqCst);
    own.job("j2", "usd-1", 20_000_000).await;
    own.world.minutes(10).await.unwrap();
    assert!(own.state("charge|t1|j2|c").await.starts_with("done"));
    assert_eq!(charges().await.as_array().unwrap().len(), 2);
    told(PEER, "its answer lost, the same key again: one charge");

    let other = scene(&base, &wire, customer, card).await;
    other.job("j1", "usd-1", 11_000_000).await;
    assert_eq!(other.state("charge|t1|j1|c").await, "needs-review conflict");
    assert_eq!(charges().await.as_array().unwrap().len(), 2);
    told(PEER, "other parameters under the same key: review");

    // This peer sends no webhooks: the payment is told in its place.
    let told_of = json!({
        "id": first["id"], "object": "payment_intent", "currency": "usd", "amount_received": 1000,
        "metadata": first["metadata"],
    });
    own.webhook("evt_1", "payment_intent.succeeded", told_of).await;
    assert_eq!(own.act("j1", "reverse", "r-1", "4.005").await.0, 201); // 0.005 was never charged
    assert_eq!(own.state("refund|t1|j1|v|r-1").await, "done");
    let path = format!("/v1/charges/{}", first["id"].as_str().unwrap());
    assert_eq!(ask(&base, "GET", &path, "").await["amount_refunded"], 400);
    told(PEER, "a reversal is refunded");

    wire.lose.store(true, Ordering::SeqCst);
    assert_eq!(own.act("j1", "reverse", "r-2", "1.00").await.0, 201);
    own.world.minutes(10).await.unwrap();
    assert!(own.state("refund|t1|j1|v|r-2").await.starts_with("done"));
    assert_eq!(ask(&base, "GET", &path, "").await["amount_refunded"], 500);
    told(PEER, "its answer lost, the same key again: one refund");
    crate::books::audit(&own.world);

    let held = on(&base, &wire, json!({"customer": customer, "payment_method": card, "authorise": true})).await;
    held.authorise("j1", "20.00").await;
    assert_eq!(held.state("authorise|t1|j1").await, "done");
    let all = charges().await;
    let is = |charge: &&Value| charge["metadata"]["charge"] == "authorise|t1|j1";
    let charge = all.as_array().unwrap().iter().find(is).unwrap().clone();
    assert_eq!((&charge["amount"], &charge["captured"]), (&json!(2000), &json!(false)));
    told(PEER, "a submitted job is authorised and not captured");

    wire.lose.store(true, Ordering::SeqCst);
    held.completes("j1", 12_345_678).await;
    held.world.minutes(10).await.unwrap();
    assert!(held.state("capture|t1|j1|c").await.starts_with("done"));
    let path = format!("/v1/charges/{}", charge["id"].as_str().unwrap());
    let charge = ask(&base, "GET", &path, "").await;
    // Its rest of 7.66 is counted as refunded, as Stripe does.
    let amounts = ["amount", "amount_captured", "amount_refunded"].map(|name| charge[name].as_i64().unwrap());
    assert_eq!((amounts, charge["refunds"]["data"].as_array().unwrap().len()), ([2000, 1234, 766], 1));
    told(PEER, "part captured, its answer lost, the same key again: one");

    let told_of = json!({
        "id": charge["id"], "object": "payment_intent", "currency": "usd", "amount_received": 1234,
        "metadata": charge["metadata"],
    });
    held.webhook("evt_1", "payment_intent.succeeded", told_of).await;
    let mut refunded = charge.clone();
    refunded["payment_intent"] = charge["id"].clone();
    held.webhook("evt_2", "charge.refunded", refunded).await;
    held.assert_owed("0.000000", "0.005678").await;
    told(PEER, "its own object as a refund of the rest takes nothing back");
    crate::books::audit(&held.world);
}

#[tokio::test]
#[ignore = "needs its peer: bash tests/peers/run"]
async fn payment_intents_and_refunds_at_localstripe() {
    const PEER: &str = "localstripe";
    let base = address("HOOKLEDGER_PEER_LOCALSTRIPE");
    let customer = ask(&base, "POST", "/v1/customers", "name=peer").await;
    let customer = customer["id"].as_str().unwrap();
    let card = async |number: &str| {
        let form = format!("type=card&card[number]={number}&card[exp_month]=12&card[exp_year]=2030&card[cvc]=123");
        let card = ask(&base, "POST", "/v1/payment_methods", &form).await["id"].as_str().unwrap().to_owned();
        ask(&base, "POST", &format!("/v1/payment_methods/{card}/attach"), &format!("customer={customer}")).await;
        card
    };
    let wire = wire(false);
    let good = card("4242424242424242").await;
    let own = scene(&base, &wire, customer, &good).await;

    own.job("j1", "usd-1", 10_000_000).await;
    assert_eq!(own.state("charge|t1|j1|c").await, "done");
    let all = ask(&base, "GET", "/v1/payment_intents", "").await["data"].clone();
    let payment = all[0].clone();
    assert_eq!((all.as_array().unwrap().len(), &payment["amount"]), (1, &json!(1000)));
    assert_eq!(payment["status"], "succeeded");
    told(PEER, "a completed job is one confirmed PaymentIntent");

    let mut object = payment.clone();
    object["amount_received"] = object["amount"].clone(); // localstripe leaves it out
    for id in ["evt_1", "evt_2"] {
        own.webhook(id, "payment_intent.succeeded", object.clone()).await;
        own.assert_owed("0.000000", "0.000000").await;
    }
    told(PEER, "its own object as a webhook clears the receivable once");

    assert_eq!(own.act("j1", "reverse", "r-1", "4.00").await.0, 201);
    assert_eq!(own.state("refund|t1|j1|v|r-1").await, "done");
    let path = format!("/v1/refunds?payment_intent={}", payment["id"].as_str().unwrap());
    let refunds = ask(&base, "GET", &path, "").await["data"].clone();
    assert_eq!((refunds.as_array().unwrap().len(), &refunds[0]["amount"]), (1, &json!(400)));
    told(PEER, "a reversal is refunded");

    let declined = card("4000000000000341").await; // attaches, and is declined when it is charged
    let other = scene(&base, &wire, customer, &declined).await;
    other.job("j9", "usd-1", 10_000_000).await;
    assert_eq!(other.state("charge|t1|j9|c").await, "needs-review declined");
    other.assert_owed("-10.000000", "0.000000").await;
    told(PEER, "a declined card: review, and it stays owed");
    crate::books::audit(&own.world);

    let held = on(&base, &wire, json!({"customer": customer, "payment_method": good, "authorise": true})).await;
    for (job, hold) in [("j1", "15.00"), ("j2", "5.00")] {
        held.authorise(job, hold).await;
    }
    let payment = async |job: &str| {
        let all = ask(&base, "GET", "/v1/payment_intents", "").await["data"].clone();
        let is = |one: &&Value| one["metadata"]["charge"] == format!("authorise|t1|{job}");
        all.as_array().unwrap().iter().find(is).unwrap().clone()
    };
    assert_eq!(payment("j1").await["status"], "requires_capture");
    held.completes("j1", 12_345_678).await;
    assert_eq!(held.state("capture|t1|j1|c").await, "done");
    let captured = payment("j1").await;
    assert_eq!((&captured["status"], &captured["amount"]), (&json!("succeeded"), &json!(1500)));
    assert_eq!(captured["charges"]["data"][0]["amount_refunded"], 266, "{captured}");
    told(PEER, "a part of a PaymentIntent is captured, the rest freed");

    held.ended("e2", "job.failed", "j2", "usd-1", 1_000_000).await;
    held.world.drain().await.unwrap();
    assert_eq!(held.state("void|t1|j2|c").await, "done");
    assert_eq!(payment("j2").await["status"], "canceled");
    told(PEER, "a failed job's PaymentIntent is canceled");

    let mut object = captured.clone();
    object["amount_received"] = json!(1234);
    held.webhook("evt_1", "payment_intent.succeeded", object).await;
    assert_eq!(held.act("j1", "reverse", "r-1", "4.00").await.0, 201); // 4.00 less the 0.005678 that was never charged
    assert_eq!(held.state("refund|t1|j1|v|r-1").await, "done");
    assert_eq!(payment("j1").await["charges"]["data"][0]["amount_refunded"], 266 + 399);
    told(PEER, "a part of what was captured is refunded");
    crate::books::audit(&held.world);
}
