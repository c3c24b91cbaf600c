//! Operators and our own services: each asks the control API until it is answered, under one reference.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::run::Stage;
use crate::scenario::{Request, decimal};
use crate::world::World;

/// Creates and funds a wallet before the scenario begins.
pub async fn create_wallet(world: &World, wallet: &str, funds: i64) {
    let path = format!("/control/tenants/t1/wallets/{wallet}");
    let created = world.ask("PUT", &path, &json!({"currency": "USD"})).await;
    debug_assert!(created.is_some_and(|(status, _)| status == 201), "a wallet can be created");
    if funds > 0 {
        let body = json!({"amount": decimal(funds), "reference": "first"});
        let funded = world.ask("POST", &format!("{path}/fund"), &body).await;
        debug_assert!(funded.is_some_and(|(status, _)| status == 201), "a wallet can be funded");
    }
}

/// Asks until the answer is not "try again"; its status.
async fn persist(stage: &Stage, method: &str, path: &str, body: &Value) -> u16 {
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
                return status;
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
    let body = json!({
        "provider": "acme", "provider_job_ref": format!("p-{}", job.job), "model": job.model, "wallet": job.wallet,
        "hold": decimal(job.hold),
    });
    let status = persist(stage, "PUT", &format!("/control/tenants/t1/jobs/{}", job.job), &body).await;
    stage.oracle.submitted(job, status);
}

/// Creates a wallet.
pub async fn create(stage: &Stage, wallet: &str) {
    let status =
        persist(stage, "PUT", &format!("/control/tenants/t1/wallets/{wallet}"), &json!({"currency": "USD"})).await;
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
