//! An HTTP destination with its address and what authorises, as whoever calls it needs them.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::profile::{AuthForm, HttpDestination, SecretPlace};

use crate::App;
use crate::call::{Call, CallError, Reply, is_allowed};
use crate::destinations::Destinations;

/// What opens a destination. It has no `Debug`: the header is a secret.
pub struct Opened<'a> {
    /// The base address, without a slash at its end.
    pub base: &'a str,
    /// The header that authorises.
    pub auth: Option<(String, String)>,
}

/// One request to an opened destination.
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query behind the base address.
    pub path: &'a str,
    /// All headers, what authorises among them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Bytes of the answer's body at most.
    pub max_bytes: usize,
}

impl Opened<'_> {
    /// One request within the table's time; its breaker is told how it ended.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call(&self, app: &App, table: &HttpDestination, request: Request<'_>) -> Result<Reply, CallError> {
        let call = Call {
            method: request.method.to_owned(),
            url: format!("{}{}", self.base, request.path),
            headers: request.headers,
            body: request.body,
            max_bytes: request.max_bytes,
            timeout: Duration::from_millis(u64::from(table.timeout_ms)),
        };
        let called = app.destinations.caller.call(call).await;
        let answered = called.as_ref().is_ok_and(|reply| reply.status < 500);
        app.destinations.gates.report(table, answered, app.clock.now_ms());
        called
    }

    /// The headers of a request that changes nothing: the table's own, and what authorises.
    pub fn reading(&self, table: &HttpDestination) -> Vec<(String, String)> {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        let named = table.headers.iter().filter(|(name, _)| *name != "accept");
        headers.extend(named.map(|(name, value)| (name.clone(), value.clone())));
        headers.extend(self.auth.clone());
        headers
    }
}

impl Destinations {
    /// What a variable of a destination holds.
    ///
    /// # Errors
    /// Which variable of `function` is to be set to what; never its value.
    pub fn needed(&self, variable: &str, function: &str) -> Result<&str, String> {
        match self.value(variable) {
            None => Err(format!("set the environment variable {variable} of the {function} function")),
            Some(value) if SecretPlace::refers(value) => Err(format!(
                "the environment variable {variable} holds a reference, which is not resolved here: put the value itself there"
            )),
            Some(value) => Ok(value),
        }
    }

    /// Reads what the table names.
    ///
    /// # Errors
    /// As [`Destinations::needed`].
    pub fn open(&self, table: &HttpDestination, function: &str) -> Result<Opened<'_>, String> {
        let base = self.needed(&table.url, function)?.trim_end_matches('/');
        if !is_allowed(base) {
            return Err(format!("the environment variable {} must hold an https address", table.url));
        }
        let auth = table.auth.as_ref().map(|auth| {
            let secret = self.needed(&auth.variable, function)?;
            Ok::<_, String>(match &auth.form {
                AuthForm::Bearer => ("authorization".to_owned(), format!("Bearer {secret}")),
                AuthForm::Basic => ("authorization".to_owned(), format!("Basic {}", STANDARD.encode(secret))),
                AuthForm::Header(name) => (name.clone(), secret.to_owned()),
            })
        });
        Ok(Opened { base, auth: auth.transpose()? })
    }
}
