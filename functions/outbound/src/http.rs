//! One HTTP destination: builds the request of a try from the intent's frozen parts, the deployment's address and secrets,
//! and the headers that differ between tries. Body, method, path and static headers are the same for every try.

use domain::intent::Intent;
use domain::limits::MAX_ANSWER_BYTES;
use domain::outcome::Answer;
use domain::profile::HttpDestination;
use runtime::App;
use runtime::call::{Reply, answer};
use runtime::opened::{Opened, Request as Wanted};
use signature::{Headers, Recipe, Request, Secret, Verifier};

/// Whose variables are to be set.
const FUNCTION: &str = "outbound";
/// The header with the number of the try, from 1.
pub const ATTEMPT_HEADER: &str = "hookledger-attempt";
/// The header with the time of the first try, Unix seconds.
pub const FIRST_SENT_HEADER: &str = "hookledger-first-sent";

/// A destination with its address and what opens it.
pub(crate) struct Http<'a> {
    pub(crate) table: &'a HttpDestination,
    opened: Opened<'a>,
    signer: Option<Verifier>,
}

impl<'a> Http<'a> {
    /// Reads what the table names; else which variable is to be set to what, never its value.
    pub(crate) fn open(app: &'a App, table: &'a HttpDestination) -> Result<Self, String> {
        let opened = app.destinations.open(table, FUNCTION)?;
        let signer = table.sign.as_ref().map(|variable| {
            let recipe = Recipe::named("standard-webhooks").ok_or("there is no recipe standard-webhooks")?;
            let secret = Secret::new(variable, app.destinations.needed(variable, FUNCTION)?);
            Verifier::new(recipe, vec![secret]).map_err(|error| format!("environment variable {variable}: {error}"))
        });
        Ok(Self { table, opened, signer: signer.transpose()? })
    }

    /// One try.
    pub(crate) async fn send(&self, app: &App, intent: &Intent) -> Answer {
        let key = intent.deduplication_id();
        let Some(frozen) = &intent.call else {
            return Answer::NotSent("the stored intent is no HTTP request".to_owned());
        };
        let mut headers: Vec<(String, String)> =
            frozen.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        headers.push((self.table.key_header.clone(), key.clone()));
        headers.extend(self.opened.auth.clone());
        if let Some(signer) = &self.signer {
            let none = Headers::default();
            let request =
                Request { method: &frozen.method, url: None, headers: &none, body: intent.request.as_bytes() };
            match signer.sign(&key, intent.last_sent_ms.unwrap_or(intent.created_ms), &request) {
                Ok(signed) => headers.extend(signed),
                Err(error) => return Answer::NotSent(format!("the body cannot be signed: {error}")),
            }
            let first_s = intent.first_sent_ms.unwrap_or(intent.created_ms).div_euclid(1_000);
            headers.push((ATTEMPT_HEADER.to_owned(), intent.attempts.to_string()));
            headers.push((FIRST_SENT_HEADER.to_owned(), first_s.to_string()));
        }
        self.call(app, &frozen.method, &frozen.path, headers, intent.request.as_bytes().to_vec()).await
    }

    /// Asks by our key.
    pub(crate) async fn look_up(&self, app: &App, intent: &Intent) -> Answer {
        let Some(path) = &self.table.lookup_path else { return Answer::NotSent("there is no look-up".to_owned()) };
        self.get(app, &path.replace("{key}", &intent.deduplication_id())).await
    }

    /// Asks for what stands at a path.
    pub(crate) async fn get(&self, app: &App, path: &str) -> Answer {
        self.call(app, "GET", path, self.opened.reading(self.table), Vec::new()).await
    }

    async fn call(&self, app: &App, method: &str, path: &str, headers: Vec<(String, String)>, body: Vec<u8>) -> Answer {
        let request = Wanted { method, path, headers, body, max_bytes: MAX_ANSWER_BYTES };
        let called = self.opened.call(app, self.table, request).await;
        // What is refused for now says for how long (RFC 6585, 4; RFC 9110, 15.6.4).
        if let Ok(Reply { status: 429 | 503, retry_after_s: Some(seconds), .. }) = &called {
            app.destinations.gates.hold(self.table, *seconds, app.clock.now_ms());
        }
        answer(called)
    }
}
