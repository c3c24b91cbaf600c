//! A subscription over HTTP, read by somebody who takes Standard Webhooks as its specification says: five minutes of
//! tolerance, and one id for one event.

use std::sync::{Arc, Mutex, OnceLock};

use local::clock::ManualClock;
use local::world::completed;
use runtime::call::{Call, Called, Caller, Reply};
use runtime::clock::Clock;
use serde_json::json;
use signature::{Headers, Recipe, Request, Secret, Verifier};

use super::*;
use crate::harness::{HOUR_MS, accepted, open_reviews};

const WHSEC: &str = "whsec_dGVzdHMtb25seS1zZWNyZXQtb2YtYS1yZWFkZXI=";

/// Verifies and remembers; answers 503 as often as it was told to.
#[derive(Debug, Default)]
struct Reader {
    clock: OnceLock<ManualClock>,
    busy: Mutex<u32>,
    taken: Mutex<Vec<(String, String)>>,
}

impl Reader {
    fn answer(&self, call: &Call) -> u16 {
        let headers = Headers::new(call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let request = Request { method: "POST", url: None, headers: &headers, body: &call.body };
        let secrets = vec![Secret::new("reader", WHSEC)];
        let verifier = Verifier::new(Recipe::named("standard-webhooks").unwrap(), secrets).unwrap();
        if verifier.verify(&request, self.clock.get().unwrap().now_ms()).is_err() {
            return 401;
        }
        let mut busy = self.busy.lock().unwrap();
        if *busy > 0 {
            *busy -= 1;
            return 503;
        }
        let header = |name: &str| call.headers.iter().find(|(n, _)| n == name).unwrap().1.clone();
        self.taken.lock().unwrap().push((header("webhook-id"), String::from_utf8(call.body.clone()).unwrap()));
        200
    }
}

#[derive(Debug)]
struct Door(Arc<Reader>);

impl Caller for Door {
    fn call(&self, call: Call) -> Called<'_> {
        let status = self.0.answer(&call);
        Box::pin(async move { Ok(Reply { status, body: Some(Vec::new()), retry_after_s: None }) })
    }
}

async fn subscribed_over_http(busy: u32) -> (World, Arc<Reader>) {
    let reader = Arc::new(Reader { busy: Mutex::new(busy), ..Reader::default() });
    let table = "\n[destinations.reader]\nurl = \"env:READER_URL\"\nsign = { scheme = \"standard-webhooks\", secret = \"env:READER_SIGN\" }\n\
                 [subscriptions.books]\nto = \"http:reader\"\ntypes = [\"job.settled\"]\ntenants = [\"*\"]\nordered = true\n";
    let addresses = [("READER_URL", "https://reader.example/hooks"), ("READER_SIGN", WHSEC)];
    let config = WorldConfig { caller: Arc::new(Door(reader.clone())), ..subscribed(table) };
    let addresses = addresses.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let world = World::new(WorldConfig { addresses, ..config }).await.unwrap();
    reader.clock.set(world.clock.clone()).unwrap();
    relay_has_run(&world).await;
    assert_eq!(world.fund("w1", "100.00").await.0, 201);
    assert_eq!(world.submit("j1", "w1", "5.00").await.0, 201);
    accepted(&world, "e-1", &completed("j1")).await;
    world.drain().await.unwrap();
    (world, reader)
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_was_busy_gets_it_again_without_a_person() {
    let (world, reader) = subscribed_over_http(2).await;
    world.minutes(5).await.unwrap();
    assert_eq!(reader.taken.lock().unwrap().len(), 1);
    assert_eq!(open_reviews(&world).await, [""; 0]);
}

/// The signature bears the time of its own try: hours later the first one's would be refused.
#[tokio::test(start_paused = true)]
async fn a_replay_hours_later_is_taken_by_a_reader_with_five_minutes_of_tolerance() {
    let (world, reader) = subscribed_over_http(0).await;
    assert_eq!(reader.taken.lock().unwrap().len(), 1);
    world.clock.advance(6 * HOUR_MS);
    let body = json!({"events": ["own/job.settled|t1|j1|c"], "reference": "r-1", "reason": "the reader lost it"});
    assert_eq!(world.control("POST", "/control/replays", Some(body)).await.0, 200);
    world.minutes(3).await.unwrap();
    let taken = reader.taken.lock().unwrap().clone();
    assert_eq!((taken.len(), &taken[1]), (2, &taken[0]), "the same bytes under the same id");
    assert_eq!(open_reviews(&world).await, [""; 0]);
}
