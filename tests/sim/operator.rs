//! Operators and our own services: each asks the control API until it is answered, under one reference.

use std::time::Duration;

use runtime::gateway::path_part;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::run::Stage;
use crate::scenario::{Request, Scenario, decimal};
use crate::world::World;

/// Creates and funds a wallet before the scenario begins.
pub async fn create_wallet(world: &World, scenario: &Scenario, wallet: &str, funds: i64) {
    let path = format!("/control/tenants/t1/wallets/{wallet}");
    let created = world.ask("PUT", &path, &wallet_of(scenario, wallet)).await;
    assert!(created.is_some_and(|(status, _)| status == 201), "a wallet can be created");
    if funds > 0 {
        let body = json!({"amount": decimal(funds), "reference": "first"});
        let funded = world.ask("POST", &format!("{path}/fund"), &body).await;
        assert!(funded.is_some_and(|(status, _)| status == 201), "a wallet can be funded");
    }
}

fn wallet_of(scenario: &Scenario, wallet: &str) -> Value {
    match scenario.is_postpaid() {
        true => {
            let terms = json!({
                "to": "till", "customer": format!("cus_{wallet}"), "payment_method": format!("pm_{wallet}"),
                "minimum_charge": decimal(scenario.minimum()), "authorise": scenario.authorises(),
            });
            json!({"currency": "USD", "postpaid": terms})
        }
        false => json!({"currency": "USD"}),
    }
}

/// Asks until the answer is not "try again"; its status.
async fn persist(stage: &Stage, method: &str, path: &str, body: &Value) -> u16 {
    answered(stage, method, path, body).await.0
}

/// Asks until the answer is not "try again".
async fn answered(stage: &Stage, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let net = &stage.world.net;
    let mut attempt = 0_u32;
    loop {
        attempt += 1;
        net.tell(|| format!("an operator asks {method} {path} {body}, try {attempt}"));
        let answer = stage.world.ask(method, path, body).await;
        match answer {
            Some((status, body)) if status < 500 => {
                let code = body["code"].as_str().unwrap_or("done").to_owned();
                net.tell(|| format!("the operator is told {status} {code}"));
                return (status, body);
            }
            Some((status, _)) => net.tell(|| format!("the operator is told {status}")),
            None => net.tell(|| "the operator gets no answer".to_owned()),
        }
        sleep(Duration::from_millis(2_000 + net.dice(path, attempt, 21) % 20_000)).await;
    }
}

/// Submits a job.
pub async fn submit(stage: &Stage, place: usize) {
    let job = &stage.scenario.jobs[place];
    let mut body = json!({
        "provider": "acme", "provider_job_ref": format!("p-{}", job.job), "model": job.model, "wallet": job.wallet,
    });
    if !stage.scenario.is_postpaid() || stage.scenario.authorises() {
        body["hold"] = json!(decimal(job.hold));
    }
    let status = persist(stage, "PUT", &format!("/control/tenants/t1/jobs/{}", job.job), &body).await;
    stage.oracle.submitted(job, status);
}

/// Looks at every job of postpaid wallets, in the end, when no call fails any more.
pub async fn look(stage: &Stage) {
    if !stage.scenario.is_postpaid() {
        return;
    }
    for job in &stage.scenario.jobs {
        let path = format!("/control/tenants/t1/jobs/{}", job.job);
        stage.oracle.shown(job, stage.world.ask("GET", &path, &json!({})).await);
    }
}

/// Creates a wallet.
pub async fn create(stage: &Stage, wallet: &str) {
    let path = format!("/control/tenants/t1/wallets/{wallet}");
    let status = persist(stage, "PUT", &path, &wallet_of(&stage.scenario, wallet)).await;
    stage.oracle.created(wallet, status);
}

/// Funds a wallet.
pub async fn fund(stage: &Stage, wallet: &str, amount: i64, reference: &str) {
    let body = json!({"amount": decimal(amount), "reference": reference});
    while !stage.oracle.has_wallet(wallet) {
        sleep(Duration::from_secs(5)).await;
    }
    let status = persist(stage, "POST", &format!("/control/tenants/t1/wallets/{wallet}/fund"), &body).await;
    stage.oracle.funded(wallet, reference, status);
}

/// Asks something of a job.
pub async fn ask(stage: &Stage, request: &Request) {
    let job = &stage.scenario.jobs[request.job];
    let (path, body) = request.http(job);
    let status = persist(stage, "POST", &path, &body).await;
    stage.oracle.asked(request, job, status);
}

/// Lists what is in review, and tries every operation of it again.
pub async fn try_reviews_again(stage: &Stage, reference: &str) {
    let (status, list) = answered(stage, "GET", "/control/reviews", &json!({})).await;
    if status != 200 {
        return stage.world.net.violation(format!("9: the list of reviews was answered {status}"));
    }
    let ids = list["reviews"].as_array().into_iter().flatten().filter_map(|review| review["id"].as_str());
    for id in ids.filter(|id| !id.starts_with("conflict:") && !id.starts_with("case:")) {
        let path = format!("/control/reviews/{}", path_part(id));
        let body = json!({"action": "retry", "reason": "simulated", "reference": reference});
        let status = persist(stage, "POST", &path, &body).await;
        stage.oracle.decided(id, status);
    }
}

/// Replays what was acknowledged so far.
pub async fn replay(stage: &Stage, reference: &str) {
    let events = stage.oracle.acknowledged_events();
    if events.is_empty() {
        return;
    }
    let body = json!({"events": events, "reason": "simulated", "reference": reference});
    let (status, answer) = answered(stage, "POST", "/control/replays", &body).await;
    stage.oracle.replayed(reference, status, &answer);
}

/// Pauses something, and resumes it.
pub async fn pause(stage: &Stage, name: &str, for_ms: u64) {
    let path = format!("/control/pauses/{name}");
    for paused in [true, false] {
        let status = persist(stage, "PUT", &path, &json!({"paused": paused, "reason": "simulated"})).await;
        if !matches!(status, 200 | 201) {
            stage.world.net.violation(format!("9: pausing {name} was answered {status}"));
        }
        sleep(Duration::from_millis(if paused { for_ms } else { 0 })).await;
    }
}

/// Has the last hours compared, waits for the run's end, and applies what the cases propose.
pub async fn reconcile(stage: &Stage, reference: &str) {
    let from = domain::time::rfc3339(local::world::BEGINS_MS);
    let kinds = json!(["receipts", "wallets", "reviews"]);
    let body = json!({"reference": reference, "reason": "simulated", "kinds": kinds, "from": from});
    let (mut status, mut run) = answered(stage, "POST", "/control/reconciliations", &body).await;
    let path = format!("/control/reconciliations/{reference}");
    while matches!(status, 200 | 201) && run["state"] == "running" {
        sleep(Duration::from_secs(20)).await;
        (status, run) = answered(stage, "GET", &path, &json!({})).await;
    }
    if !matches!(status, 200 | 201 | 422) {
        return stage.world.net.violation(format!("9: the reconciliation {reference} was answered {status}"));
    }
    for case in run["cases"].as_array().into_iter().flatten().filter(|case| case["state"] == "open") {
        stage.oracle.case(case);
        let path = format!("{path}/cases/{}", case["case"].as_str().unwrap_or_default());
        let status = persist(stage, "POST", &path, &json!({"action": "apply", "reason": "simulated"})).await;
        if !matches!(status, 200 | 201 | 409) {
            stage.world.net.violation(format!("9: applying {} was answered {status}", case["case"]));
        }
    }
}
