//! `verify`: one request judged offline, by the code that the receiver uses.
//!
//! The answer is one JSON object on stdout. On a person's terminal a line of help follows on stderr, naming the slip that
//! explains the refusal where one does. Neither shows a secret or, for a request, a computed signature.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use signature::slips::{Slip, diagnose};
use signature::{Headers, PrimitiveError, Recipe, Request, Secret, Verifier, digest};

use crate::args::VerifyArgs;
use crate::error::CliError;
use crate::send::read;
use crate::{files, output};

/// One request to judge: a row of `tests/fixtures/signatures.json`. Members that are not named here are ignored.
#[derive(Deserialize)]
struct Row {
    scheme: String,
    #[serde(default = "request")]
    kind: String,
    secret: String,
    #[serde(default = "post")]
    method: String,
    url: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    /// The exact bytes; goes before `body`.
    body_b64: Option<String>,
    body: Option<String>,
    /// Unix seconds.
    now: Option<i64>,
    tolerance_s: Option<u32>,
    /// What a bare digest should be.
    expected_digest: Option<String>,
    #[serde(default)]
    aux: Aux,
    /// The file of profiles that `scheme` may name one of.
    #[serde(skip)]
    providers: Option<PathBuf>,
}

#[derive(Deserialize, Default)]
struct Aux {
    public_key: Option<String>,
}

fn request() -> String {
    "request".to_owned()
}

fn post() -> String {
    "POST".to_owned()
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    /// `None` when valid.
    reason: Option<&'static str>,
    /// The slip that explains it.
    slip: Option<&'static str>,
    /// For people.
    help: Option<String>,
    /// Computed and expected, for a bare digest.
    digest: Option<(String, String)>,
}

impl Verdict {
    fn valid() -> Self {
        Self { reason: None, slip: None, help: None, digest: None }
    }

    fn invalid(reason: &'static str, help: String) -> Self {
        Self { reason: Some(reason), slip: None, help: Some(help), digest: None }
    }

    fn json(&self) -> Value {
        let result = if self.reason.is_none() { "valid" } else { "invalid" };
        let mut shown = json!({"result": result, "reason": self.reason});
        if let Some(slip) = self.slip {
            shown["slip"] = json!(slip);
        }
        if let Some((computed, expected)) = &self.digest {
            shown["computed"] = json!(computed);
            shown["expected"] = json!(expected);
        }
        shown
    }
}

/// Judges one request from the command line or stdin.
pub fn run(args: VerifyArgs) -> Result<ExitCode, CliError> {
    let providers = args.profiles.providers.clone();
    let row = if args.scheme.is_some() { from_args(args)? } else { Row { providers, ..from_stdin()? } };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
    let verdict = judge(&row, i64::try_from(since).unwrap_or(i64::MAX))?;
    output::print(&verdict.json().to_string())?;
    if let Some(help) = verdict.help.filter(|_| io::stderr().is_terminal()) {
        // Help that nobody can read is not worth an error.
        let _ = writeln!(io::stderr(), "{help}");
    }
    Ok(if verdict.reason.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn from_args(args: VerifyArgs) -> Result<Row, CliError> {
    let (Some(scheme), Some(secret), Some(file)) = (args.scheme, args.secret, args.body) else {
        return Err(CliError::Misuse("give --scheme, --secret and --body together".to_owned()));
    };
    let mut headers = Map::new();
    for header in &args.headers {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| CliError::Misuse("--header takes 'Name: value'; one of them has no colon".to_owned()))?;
        let values = headers.entry(name.trim()).or_insert_with(|| json!([]));
        // HTTP strips blanks around a value before anybody sees it.
        values.as_array_mut().into_iter().for_each(|values| values.push(json!(value.trim_matches([' ', '\t']))));
    }
    Ok(Row {
        scheme,
        kind: request(),
        secret,
        method: args.method,
        url: args.url,
        headers,
        body_b64: Some(STANDARD.encode(read(&file)?)),
        body: None,
        now: args.now,
        tolerance_s: None,
        expected_digest: None,
        aux: Aux::default(),
        providers: args.profiles.providers,
    })
}

fn from_stdin() -> Result<Row, CliError> {
    if io::stdin().is_terminal() {
        let what = "give a request as JSON on stdin, or --scheme, --secret, --header and --body: see `hookledger verify --help`";
        return Err(CliError::Misuse(what.to_owned()));
    }
    let text = io::read_to_string(io::stdin());
    let text = text.map_err(|error| CliError::Misuse(format!("stdin cannot be read as text: {error}")))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Row, CliError> {
    // The place is enough to find it, and serde's own text could quote a value, such as the secret.
    serde_json::from_str(text).map_err(|error| {
        let what = "is no request: one JSON object with scheme, secret, headers and body or body_b64 is expected";
        CliError::Misuse(format!("stdin, line {}, column {}: {what}", error.line(), error.column()))
    })
}

/// Judges one row; a row without `now` is judged at `now_s`.
fn judge(row: &Row, now_s: i64) -> Result<Verdict, CliError> {
    let body = body(row)?;
    let secret = Secret::new("secret", &row.secret);
    let secret = match &row.aux.public_key {
        Some(public_key) => secret.with_public_key(public_key),
        None => secret,
    };
    match row.kind.as_str() {
        "request" => judge_request(row, secret, &body, row.now.unwrap_or(now_s).saturating_mul(1000)),
        "digest" | "challenge" => judge_digest(row, &secret, &body),
        other => Err(CliError::Misuse(format!("kind {other:?} is not known: request, digest or challenge"))),
    }
}

fn body(row: &Row) -> Result<Vec<u8>, CliError> {
    match (&row.body_b64, &row.body) {
        (Some(text), _) => {
            STANDARD.decode(text).map_err(|_| CliError::Misuse("body_b64 is not base64 with padding".to_owned()))
        }
        (None, Some(text)) => Ok(text.as_bytes().to_vec()),
        (None, None) => Err(CliError::Misuse(
            "the request has neither body_b64 nor body; give \"body\":\"\" for an empty one".to_owned(),
        )),
    }
}

fn judge_request(row: &Row, secret: Secret, body: &[u8], now_ms: i64) -> Result<Verdict, CliError> {
    let recipe = recipe(&row.scheme, row.providers.as_deref())?;
    let headers = headers(&row.headers)?;
    let mut verifier = match Verifier::new(recipe, vec![secret.clone()]) {
        Ok(verifier) => verifier,
        Err(error) => return Ok(Verdict::invalid(error.as_str(), error.to_string())),
    };
    if row.tolerance_s.is_some() {
        verifier.set_tolerance(row.tolerance_s);
    }
    let request = Request { method: &row.method, url: row.url.as_deref(), headers: &headers, body };
    let Err(rejection) = verifier.verify(&request, now_ms) else { return Ok(Verdict::valid()) };
    let slip = diagnose(verifier.recipe(), &[secret], &request, now_ms);
    let help = slip.map_or_else(|| rejection.to_string(), |slip| format!("{rejection}\n{}: {slip}", slip.as_str()));
    Ok(Verdict { slip: slip.map(Slip::as_str), ..Verdict::invalid(rejection.as_str(), help) })
}

/// The recipe of a scheme known by name, or of a profile: a recipe of one's own has no other name.
fn recipe(name: &str, providers: Option<&Path>) -> Result<Recipe, CliError> {
    if let Some(recipe) = Recipe::named(name) {
        return Ok(recipe);
    }
    let profiles = files::profiles(providers)?;
    profiles.get(name).map(|profile| profile.recipe.clone()).ok_or_else(|| {
        let known: Vec<_> = Recipe::names().collect();
        let own: Vec<_> = profiles.iter().map(|profile| profile.slug.as_str()).collect();
        CliError::Misuse(format!(
            "scheme {name:?} is not known; known are {}, and the profiles {} (another file: --providers)",
            known.join(", "),
            own.join(", ")
        ))
    })
}

/// A value is a text, or a list of texts for a header that came several times.
fn headers(map: &Map<String, Value>) -> Result<Headers, CliError> {
    let mut pairs = Vec::new();
    for (name, value) in map {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            let what = || CliError::Misuse(format!("header {name:?} is neither a text nor a list of texts"));
            pairs.push((name, value.as_str().ok_or_else(what)?));
        }
    }
    Ok(Headers::new(pairs))
}

fn judge_digest(row: &Row, secret: &Secret, body: &[u8]) -> Result<Verdict, CliError> {
    let missing = || CliError::Misuse(format!("a {} needs expected_digest", row.kind));
    let expected = row.expected_digest.clone().ok_or_else(missing)?;
    match digest(&row.scheme, secret, body) {
        Ok(computed) => {
            let reason = (computed != expected).then_some("wrong-secret-or-body");
            let help = reason.map(|_| "the digest of these bytes with this secret is another".to_owned());
            Ok(Verdict { reason, slip: None, help, digest: Some((computed, expected)) })
        }
        Err(PrimitiveError::Secret(error)) => Ok(Verdict::invalid(error.as_str(), error.to_string())),
        Err(error) => Err(CliError::Misuse(error.to_string())),
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
