//! The provider: sends an event until it gets a 2xx, with growing waits, always the same bytes under the same id.

use std::collections::BTreeMap;
use std::time::Duration;

use local::world::answer;
use tokio::time::sleep;

use crate::run::Stage;
use crate::scenario::{EventSpec, PaymentSpec, What};

/// The longest wait before another try.
const LONGEST_WAIT_MS: u64 = 120_000;

/// When an event was first sent: every delivery of one event carries the same time.
fn first_sent_ms(stage: &Stage, event: &EventSpec) -> i64 {
    let at_ms = stage.scenario.actions.iter().filter_map(|action| match &action.what {
        What::Deliver(other) if other.id == event.id => Some(action.at_ms),
        _ => None,
    });
    local::world::BEGINS_MS + i64::try_from(at_ms.min().unwrap_or(0)).unwrap_or(0)
}

/// Waits longer from try to try.
async fn back_off(stage: &Stage, id: &str, attempt: u32) {
    let ceiling_ms = (2_000_u64 << attempt.min(10)).min(LONGEST_WAIT_MS);
    sleep(Duration::from_millis(500 + stage.world.net.dice(id, attempt, 20) % ceiling_ms)).await;
}

/// Delivers a payment's event until it is acknowledged.
pub async fn pay(stage: &Stage, payment: &PaymentSpec) {
    let (net, id, kind) = (&stage.world.net, &payment.id, payment.kind);
    let body = payment.body(local::world::BEGINS_MS); // every delivery of one event says the same
    let mut attempt = 0_u32;
    loop {
        attempt += 1;
        net.tell(|| format!("stripe sends {id} ({kind} of {}), try {attempt}", payment.payment));
        match stage.world.deliver("stripe", id, &body).await.as_ref().map(answer) {
            Some((status, name)) => {
                net.tell(|| format!("stripe is told {status} {name} about {id}"));
                if (200..300).contains(&status) {
                    return stage.oracle.payment_acknowledged(payment, status, &name);
                }
                if status < 500 {
                    return net.violation(format!("1: {id} was refused with {status} {name}"));
                }
            }
            None => net.tell(|| format!("stripe gets no answer about {id}")),
        }
        back_off(stage, id, attempt).await;
    }
}

/// Tells of every payment and refund that exists at the payment provider by now, however often it did before.
pub async fn news(stage: &Stage) {
    let Some(there) = &stage.world.there else { return };
    let mut refunded: BTreeMap<String, i64> = BTreeMap::new();
    for made in there.made() {
        let (id, kind, payment, minor) = match made.of {
            None => (format!("evt_{}", made.id), "payment_intent.succeeded", made.id, made.minor),
            Some(payment) => {
                let in_all = refunded.entry(payment.clone()).or_default();
                *in_all += made.minor;
                (format!("evt_{}", made.id), "charge.refunded", payment, *in_all)
            }
        };
        let spec = PaymentSpec { id, kind, payment, wallet: made.wallet, minor };
        stage.oracle.news(&spec);
        pay(stage, &spec).await;
    }
}

/// Delivers an event until it is acknowledged.
pub async fn deliver(stage: &Stage, event: &EventSpec) {
    let (world, net) = (&stage.world, &stage.world.net);
    let job = &stage.scenario.jobs[event.job];
    let other_content = stage.scenario.event(&event.id) != Some(event);
    while other_content && !stage.oracle.is_acknowledged(&event.id) {
        sleep(Duration::from_secs(20)).await; // which of two contents came first would be anyone's guess
    }
    let body = event.body(job, first_sent_ms(stage, event));
    let mut attempt = 0_u32;
    loop {
        attempt += 1;
        let (id, kind) = (&event.id, event.kind);
        let other = if other_content { ", other content" } else { "" };
        net.tell(|| format!("acme sends {id} ({kind} of {}{other}), try {attempt}", job.job));
        let delivery = stage.oracle.begins(event, job);
        let response = world.deliver("acme", id, &body).await;
        match response.as_ref().map(answer) {
            Some((status, name)) => {
                net.tell(|| format!("acme is told {status} {name} about {id}"));
                if (200..300).contains(&status) {
                    return stage.oracle.acknowledged(event, delivery, status, &name);
                }
                if status < 500 {
                    return net.violation(format!("1: {id} was refused with {status} {name}"));
                }
            }
            None => net.tell(|| format!("acme gets no answer about {id}")),
        }
        back_off(stage, id, attempt).await;
    }
}
