//! `send`: signs a body and delivers it as the provider would, once or many times at the same time.
//!
//! Every delivery is signed anew, as providers sign each attempt; the event id stays the same. The body is sent byte for
//! byte.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use domain::profile::{IdSource, Profile, Profiles, SecretPlace, Source};
use signature::{Headers, Request, Secret, SignError, Verifier};

use crate::api::Api;
use crate::args::SendArgs;
use crate::error::CliError;
use crate::files;
use crate::output;
use crate::secrets::configured;
use crate::volley::fire;

const CONTENT_TYPE: &str = "content-type";

/// Signs and sends.
pub fn run(args: SendArgs) -> Result<ExitCode, CliError> {
    let profiles = files::profiles(args.profiles.providers.as_deref())?;
    let profile = profiles.get(&args.provider).ok_or_else(|| unknown(&args.provider, &profiles))?;
    let api = Api::new(&args.server.url)?;
    let delivery = Delivery {
        verifier: verifier(profile, args.secret)?,
        event_id: event_id(profile, args.id, &mut fastrand::Rng::new())?,
        event_type: event_type(profile, args.event_type)?,
        url: api.url(&["webhooks", profile.slug.as_str()]),
        body: read(&args.file)?,
        profile,
    };
    let at_ms = args.at.map(|at_s| at_s * 1000); // bounded by the parser
    if args.print {
        let headers: serde_json::Map<_, _> = delivery
            .headers(1, at_ms.unwrap_or_else(now_ms))?
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect();
        output::print(&serde_json::Value::Object(headers).to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let tally = fire(args.times, args.concurrency, |attempt| {
        let headers = delivery.headers(attempt, at_ms.unwrap_or_else(now_ms))?;
        api.deliver(&delivery.url, &headers, &delivery.body)
    })?;
    output::print(&if args.format.json { tally.json().to_string() } else { tally.table() })?;
    if tally.refused_signatures() && !args.format.json {
        let places: Vec<String> = profile.secrets.iter().map(|secret| secret.place.to_string()).collect();
        let names = places.join(" or ");
        let _ = writeln!(
            io::stderr(),
            "401: the server's {names} must hold the secret that this was signed with, and its clock the time."
        );
    }
    Ok(if tally.all_taken() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn unknown(provider: &str, profiles: &Profiles) -> CliError {
    let known: Vec<_> = profiles.iter().map(|profile| profile.slug.as_str()).collect();
    CliError::Misuse(format!("provider {provider:?} has no profile in providers.toml; there are {}", known.join(", ")))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The bytes of a file; `-` is stdin.
pub fn read(file: &Path) -> Result<Vec<u8>, CliError> {
    let bytes = if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    bytes.map_err(|error| CliError::Misuse(format!("{} cannot be read: {error}", file.display())))
}

fn verifier(profile: &Profile, given: Option<String>) -> Result<Verifier, CliError> {
    let (name, value) = secret(profile, given, |name| std::env::var(name).ok())?;
    let secret = Secret::new(name, value);
    Verifier::new(profile.recipe.clone(), vec![secret]).map_err(|error| CliError::Misuse(error.to_string()))
}

/// The secret to sign with, and where it was found. A reference is refused: only the receiver fetches what it names.
fn secret(
    profile: &Profile, given: Option<String>, variable: impl Fn(&str) -> Option<String>,
) -> Result<(String, String), CliError> {
    let names = profile.secret_variables();
    let given = given.map(|value| ("--secret".to_owned(), value));
    let found = given.or_else(|| configured(profile.slug.as_str(), &names, variable));
    match found {
        Some((name, value)) if SecretPlace::refers(&value) => Err(CliError::Misuse(format!(
            "{name} holds a reference, which is not fetched here: give the secret itself with --secret"
        ))),
        Some(found) => Ok(found),
        None if names.is_empty() => {
            Err(CliError::Misuse("no secret to sign with: the profile names no variable, so give --secret".to_owned()))
        }
        None => {
            let names = names.join(" or ");
            Err(CliError::Misuse(format!("no secret to sign with: set {names}, or give --secret")))
        }
    }
}

/// The delivery's id: as asked, else a fresh one. Where the id stands in the body, asking for one is a mistake.
fn event_id(profile: &Profile, asked: Option<String>, random: &mut fastrand::Rng) -> Result<String, CliError> {
    let place = match &profile.event_id {
        IdSource::SignedId | IdSource::At(Source::Header(_)) => None,
        IdSource::At(source @ (Source::Body(_) | Source::Item(_))) => {
            Some(format!("carries its event id in the body, at {source}"))
        }
        IdSource::Derived(_) => Some("has no event id: it is derived from fields of the body".to_owned()),
    };
    match (asked, place) {
        (Some(_), Some(place)) => {
            Err(CliError::Misuse(format!("--id cannot be used: {} {place}; change the file instead", profile.slug)))
        }
        (Some(id), None) => Ok(id),
        (None, _) => Ok((0..24).fold("msg_".to_owned(), |id, _| id + &random.alphanumeric().to_string())),
    }
}

/// The header's name and value where the event type stands in one.
fn event_type(profile: &Profile, asked: Option<String>) -> Result<Option<(String, String)>, CliError> {
    let misuse = |what: String| Err(CliError::Misuse(what));
    match (&profile.event_type, asked) {
        (Source::Header(name), None) if name.eq_ignore_ascii_case(CONTENT_TYPE) => Ok(None), // it is sent anyhow
        (Source::Header(name), Some(_)) if name.eq_ignore_ascii_case(CONTENT_TYPE) => {
            misuse(format!("--type cannot be used: {} takes the content type for it", profile.slug))
        }
        (Source::Header(name), Some(value)) => Ok(Some((name.clone(), value))),
        (Source::Header(name), None) => {
            misuse(format!("{} names the event type in header {name}: give it with --type", profile.slug))
        }
        (Source::Body(_) | Source::Item(_), None) => Ok(None),
        (source @ (Source::Body(_) | Source::Item(_)), Some(_)) => {
            misuse(format!("--type cannot be used: {} carries it at {source}; change the file instead", profile.slug))
        }
    }
}

/// One event, ready to be signed as often as it is sent.
struct Delivery<'a> {
    profile: &'a Profile,
    verifier: Verifier,
    event_id: String,
    event_type: Option<(String, String)>,
    url: String,
    body: Vec<u8>,
}

impl Delivery<'_> {
    /// The headers of one attempt, counted from 1.
    fn headers(&self, attempt: u32, now_ms: i64) -> Result<Vec<(String, String)>, CliError> {
        let mut headers = vec![(CONTENT_TYPE.to_owned(), self.content_type().to_owned())];
        headers.extend(self.event_type.clone());
        if let Some(Source::Header(name)) = &self.profile.attempt {
            headers.push((name.clone(), attempt.to_string()));
        }
        let known = Headers::new(headers.iter().map(|(name, value)| (name, value)));
        let request = Request { method: "POST", url: Some(&self.url), headers: &known, body: &self.body };
        match self.verifier.sign(&self.event_id, now_ms, &request) {
            Ok(signed) => headers.extend(signed),
            Err(SignError::InBody(_)) => {} // the file carries its signature
            Err(error) => return Err(CliError::Misuse(error.to_string())),
        }
        if let IdSource::At(Source::Header(name)) = &self.profile.event_id
            && !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            headers.push((name.clone(), self.event_id.clone()));
        }
        Ok(headers)
    }

    fn content_type(&self) -> &'static str {
        let first = self.body.iter().find(|byte| !byte.is_ascii_whitespace());
        if matches!(first, Some(b'{' | b'[')) { "application/json" } else { "application/x-www-form-urlencoded" }
    }
}

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
