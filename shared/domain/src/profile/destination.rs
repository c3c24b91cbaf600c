//! HTTP destinations: where intents go, and what the answers there mean. One table `[destinations.NAME]` each.
//!
//! As with secrets, the file names environment variables and the deployment sets them: it holds no address of an account
//! and nothing that opens one.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::destination_list::{EffectList, RawEffectList};
use crate::config::Problem;
use crate::intent::HttpCall;
use crate::json::Pointer;
use crate::outcome::{CALLERS, KeyLife, LookUp, Match, Meaning, Rules};

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;
/// What is left unused of a key's life where the file does not say.
const MARGIN_MINUTES: u32 = 60;
/// How long an answer is waited for where the file does not say, in milliseconds.
const TIMEOUT_MS: u32 = 5_000;
/// The longest such wait: a batch is serial per group, and the function has 30 seconds.
pub(super) const MAX_TIMEOUT_MS: u32 = 10_000;
/// Static headers at most.
const MAX_HEADERS: usize = 20;
/// Headers that the client or the engine writes.
const OURS: [&str; 6] = ["authorization", "connection", "content-length", "content-type", "host", "transfer-encoding"];

/// How requests are authorised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthForm {
    /// `Authorization: Bearer SECRET`.
    Bearer,
    /// `Authorization: Basic` over `user:password` (RFC 7617).
    Basic,
    /// The secret itself in a header of this name.
    Header(String),
}

/// The secret that opens a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// How it is sent.
    pub form: AuthForm,
    /// The environment variable that holds it.
    pub variable: String,
}

/// When a destination is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Tries in a row without a usable answer.
    pub failures: u32,
    /// For how long, in milliseconds.
    pub cool_ms: i64,
}

/// One HTTP destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpDestination {
    /// Its name, as in `http:NAME`.
    pub name: String,
    /// The environment variable with its base address.
    pub url: String,
    /// The method of what is sent.
    pub method: String,
    /// Path and query of what is sent; `{key}` is the key's hash.
    pub path: String,
    /// Static headers.
    pub headers: BTreeMap<String, String>,
    /// What authorises.
    pub auth: Option<Auth>,
    /// The media type of the bytes.
    pub content_type: String,
    /// The header with the key's hash.
    pub key_header: String,
    /// What answers mean.
    pub rules: Rules,
    /// Path and query of the look-up.
    pub lookup_path: Option<String>,
    /// Where it lists what it has, for the reconciler.
    pub list: Option<EffectList>,
    /// Requests per second of one process at most.
    pub rate_per_s: Option<u32>,
    /// How long an answer is waited for, in milliseconds.
    pub timeout_ms: u32,
    /// When it is left alone.
    pub breaker: Option<Breaker>,
    /// The environment variable with the secret that bodies are signed with, by Standard Webhooks.
    pub sign: Option<String>,
}

impl HttpDestination {
    /// What is frozen in an intent beside its bytes; `key` is the key's hash.
    pub fn call(&self, key: &str) -> HttpCall {
        let mut headers = self.headers.clone();
        headers.insert("content-type".to_owned(), self.content_type.clone());
        HttpCall { method: self.method.clone(), path: self.path.replace("{key}", key), headers, updates: false }
    }

    /// Every environment variable that it names: the address first, then what is secret.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let auth = self.auth.as_ref().map(|auth| auth.variable.as_str());
        std::iter::once(self.url.as_str()).chain(auth).chain(self.sign.as_deref())
    }
}

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDestination {
    url: String,
    method: Option<String>,
    path: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    auth: Option<RawAuth>,
    content_type: Option<String>,
    key_header: Option<String>,
    key_life_hours: Option<u32>,
    key_margin_minutes: Option<u32>,
    #[serde(default)]
    replays_errors: bool,
    #[serde(rename = "final")]
    settled: Option<Vec<RawMatch>>,
    failed: Option<Vec<RawMatch>>,
    retryable: Option<Vec<RawMatch>>,
    in_progress: Option<Vec<RawMatch>>,
    key_reused: Option<Vec<RawMatch>>,
    id: Option<String>,
    lookup: Option<RawLookUp>,
    list: Option<RawEffectList>,
    rate_per_s: Option<u32>,
    timeout_ms: Option<u32>,
    breaker: Option<RawBreaker>,
    sign: Option<RawSign>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAuth {
    #[serde(rename = "as")]
    form: String,
    secret: String,
    header: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawMatch {
    Status(String),
    Body(RawBodyMatch),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBodyMatch {
    status: String,
    at: String,
    is: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLookUp {
    path: String,
    found: Option<String>,
    reference: Option<String>,
    id: Option<String>,
    status: Option<String>,
    #[serde(default)]
    settled: Vec<String>,
    #[serde(default)]
    failed: Vec<String>,
    settles_after_s: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBreaker {
    failures: u32,
    cool_s: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSign {
    scheme: String,
    secret: String,
}

/// One list of the file: its field, what it means, what is given, and what holds without it.
type ListRow<'a> = (&'static str, Meaning, &'a Option<Vec<RawMatch>>, &'static [&'static str]);

/// A status, `409`, or a range, `2xx`.
pub(super) fn statuses(text: &str) -> Result<(u16, u16), String> {
    let wrong = || format!("{text:?} is no status: write \"409\" or \"2xx\"");
    if let Some(hundred) = text.strip_suffix("xx") {
        let hundred: u16 = hundred.parse().ok().filter(|h| (2..=5).contains(h)).ok_or_else(wrong)?;
        return Ok((hundred * 100, hundred * 100 + 99));
    }
    let status: u16 = text.parse().ok().filter(|s| (200..=599).contains(s) && text.len() == 3).ok_or_else(wrong)?;
    Ok((status, status))
}

/// The variable of `env:NAME`.
pub(super) fn variable(text: &str) -> Result<String, String> {
    let good = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    match text.strip_prefix("env:") {
        Some(name) if !name.is_empty() && name.len() <= 128 && name.bytes().all(good) => Ok(name.to_owned()),
        _ => Err("this is no environment variable; it is not shown, since it may be a secret".to_owned()),
    }
}

/// A path behind a base address.
pub(super) fn path(text: &str) -> Result<(), String> {
    let rest = text.replace("{key}", "");
    let plain = |b: u8| b.is_ascii_graphic() && !b"{}#\"<>\\^`|".contains(&b);
    match text.starts_with('/') && text.len() <= 512 && rest.bytes().all(plain) {
        true => Ok(()),
        false => {
            Err("this is no path: begin with \"/\", escape what is not plain, and name nothing but {key}".to_owned())
        }
    }
}

/// A header's name, in lower case.
pub(super) fn header_name(text: &str) -> Result<(), String> {
    let token = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    match !text.is_empty() && text.len() <= 64 && text.bytes().all(token) {
        true => Ok(()),
        false => Err("this is no header's name: lower-case letters, digits, - and _".to_owned()),
    }
}

fn pointer(text: &str) -> Result<Pointer, String> {
    text.parse().map_err(|error| format!("{text:?}: {error}"))
}

fn optional(text: &Option<String>) -> Result<Option<Pointer>, String> {
    text.as_deref().map(pointer).transpose()
}

impl RawMatch {
    fn checked(&self) -> Result<Match, String> {
        let (text, body) = match self {
            Self::Status(text) => (text, None),
            Self::Body(raw) => (&raw.status, Some((pointer(&raw.at)?, raw.is.clone()))),
        };
        let (from, to) = statuses(text)?;
        Ok(Match { from, to, body })
    }
}

impl RawDestination {
    /// Checks what the fields say; the form was checked before.
    pub(super) fn build(self, name: &str) -> Result<HttpDestination, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut told = |path: &[&str], cause: String| problems.push(Problem::new(path, cause, "correct the value"));
        let timeout_ms = self.timeout_ms.unwrap_or(TIMEOUT_MS);
        let key = key_life(&self, timeout_ms).unwrap_or_else(|(field, cause)| {
            told(&[field], cause);
            KeyLife::None
        });
        let answers = self.answers(key).unwrap_or_else(|(field, cause)| {
            told(&[field], cause);
            Vec::new()
        });
        let key_header = self.key_header.unwrap_or_else(|| "idempotency-key".to_owned());
        let headers = static_headers(&self.headers, &key_header);
        if let Err((header, cause)) = &headers {
            told(&["headers", header], cause.clone());
        }
        let lookup = self.lookup.as_ref().map(|raw| raw.checked(timeout_ms)).transpose();
        let list = self.list.as_ref().map(RawEffectList::checked).transpose();
        let auth = self.auth.as_ref().map(RawAuth::checked).transpose();
        let tables = [("lookup", lookup.as_ref().err()), ("list", list.as_ref().err()), ("auth", auth.as_ref().err())];
        for (table, (field, cause)) in tables.into_iter().filter_map(|(table, error)| Some((table, error?))) {
            told(&[table, field], cause.clone());
        }
        let id = optional(&self.id).unwrap_or_else(|cause| {
            told(&["id"], cause);
            None
        });
        let path_text = self.path.unwrap_or_else(|| "/".to_owned());
        if let Err(cause) = path(&path_text) {
            told(&["path"], cause);
        }
        let url = variable(&self.url);
        if let Err(cause) = &url {
            told(&["url"], cause.clone());
        }
        if self.sign.as_ref().is_some_and(|sign| sign.scheme != "standard-webhooks") {
            told(&["sign", "scheme"], "there is one scheme, standard-webhooks".to_owned());
        }
        let sign = self.sign.as_ref().map(|sign| variable(&sign.secret)).transpose();
        if let Err(cause) = &sign {
            told(&["sign", "secret"], cause.clone());
        }
        let (Ok(url), Ok(sign), Ok(auth), Ok(lookup), Ok(list), Ok(headers)) = (url, sign, auth, lookup, list, headers)
        else {
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let lookup_path = self.lookup.map(|raw| raw.path);
        let breaker = self.breaker.map(|b| Breaker { failures: b.failures, cool_ms: i64::from(b.cool_s) * 1_000 });
        Ok(HttpDestination {
            name: name.to_owned(),
            url,
            method: self.method.unwrap_or_else(|| "POST".to_owned()),
            path: path_text,
            headers,
            auth,
            content_type: self.content_type.unwrap_or_else(|| "application/json".to_owned()),
            key_header,
            rules: Rules { key, replays_errors: self.replays_errors, answers, id, lookup },
            lookup_path,
            list,
            rate_per_s: self.rate_per_s,
            timeout_ms,
            breaker,
            sign,
        })
    }

    /// What the statuses mean: as the file says, else any 2xx is final, what refuses the caller is retryable, and where
    /// keys are kept 409 and 422 mean what draft-ietf-httpapi-idempotency-key-header-07, section 2.7, gives them.
    fn answers(&self, key: KeyLife) -> Result<Vec<(Meaning, Match)>, (&'static str, String)> {
        let keyed = |status: &'static [&'static str]| if matches!(key, KeyLife::For { .. }) { status } else { &[][..] };
        let lists: [ListRow<'_>; 5] = [
            ("final", Meaning::Final, &self.settled, &["2xx"]),
            ("failed", Meaning::Failed, &self.failed, &[]),
            ("retryable", Meaning::Retryable, &self.retryable, &["401", "403", "429"]),
            ("in_progress", Meaning::InProgress, &self.in_progress, keyed(&["409"])),
            ("key_reused", Meaning::KeyReused, &self.key_reused, keyed(&["422"])),
        ];
        let mut answers: Vec<(Meaning, Match)> = Vec::new();
        for (field, meaning, given, _) in &lists {
            for raw in given.iter().flatten() {
                let rule = raw.checked().map_err(|cause| (*field, cause))?;
                let exact = rule.from == rule.to && rule.body.is_none();
                if *meaning == Meaning::Failed && exact && CALLERS.contains(&rule.from) {
                    let cause = format!("status {} refuses the caller and says nothing of the effect", rule.from);
                    return Err((field, cause));
                }
                if answers.iter().any(|(_, other)| *other == rule) {
                    return Err((field, "the same answer is listed twice".to_owned()));
                }
                answers.push((*meaning, rule));
            }
        }
        for (field, meaning, given, default) in lists {
            for text in default.iter().filter(|_| given.is_none()) {
                let (from, to) = statuses(text).map_err(|cause| (field, cause))?;
                let rule = Match::statuses(from, to);
                // A status that the file gives another meaning has that one.
                if !answers.iter().any(|(_, other)| *other == rule) {
                    answers.push((meaning, rule));
                }
            }
        }
        Ok(answers)
    }
}

fn key_life(raw: &RawDestination, timeout_ms: u32) -> Result<KeyLife, (&'static str, String)> {
    let Some(hours) = raw.key_life_hours else {
        return match raw.key_margin_minutes {
            Some(_) => Err(("key_margin_minutes", "there is no `key_life_hours` that it belongs to".to_owned())),
            // Readers of Standard Webhooks know a repetition by its `webhook-id`.
            None if raw.sign.is_some() => Ok(KeyLife::ForGood),
            None => Ok(KeyLife::None),
        };
    };
    let life_ms = i64::from(hours) * HOUR_MS;
    let margin_ms = match raw.key_margin_minutes {
        Some(minutes) => i64::from(minutes) * MINUTE_MS,
        None => (i64::from(MARGIN_MINUTES) * MINUTE_MS).min(life_ms / 2),
    };
    if margin_ms >= life_ms {
        return Err(("key_margin_minutes", "the margin is all of the key's life".to_owned()));
    }
    if margin_ms <= i64::from(timeout_ms) {
        return Err(("key_margin_minutes", "the margin must be longer than `timeout_ms`".to_owned()));
    }
    Ok(KeyLife::For { life_ms, margin_ms })
}

fn static_headers(
    headers: &BTreeMap<String, String>, key_header: &str,
) -> Result<BTreeMap<String, String>, (String, String)> {
    if headers.len() > MAX_HEADERS {
        let first = headers.keys().next().cloned().unwrap_or_default();
        return Err((first, format!("there are more than {MAX_HEADERS} headers")));
    }
    for (name, value) in headers {
        header_name(name).map_err(|cause| (name.clone(), cause))?;
        if name == key_header || OURS.contains(&name.as_str()) || name.starts_with("webhook-") {
            return Err((
                name.clone(),
                "this header is written by the sender; see `auth`, `content_type`, `sign`".to_owned(),
            ));
        }
        let visible = |b: u8| b == b' ' || b.is_ascii_graphic();
        if value.len() > 512 || !value.bytes().all(visible) {
            return Err((name.clone(), "the value is too long or not plain ASCII".to_owned()));
        }
    }
    Ok(headers.clone())
}

impl RawAuth {
    fn checked(&self) -> Result<Auth, (&'static str, String)> {
        let form = match (self.form.as_str(), &self.header) {
            ("bearer", None) => AuthForm::Bearer,
            ("basic", None) => AuthForm::Basic,
            ("header", Some(name)) => {
                header_name(name).map_err(|cause| ("header", cause))?;
                AuthForm::Header(name.clone())
            }
            ("header", None) => return Err(("header", "`as = \"header\"` needs the header's name".to_owned())),
            _ => return Err(("header", "a header is named with `as = \"header\"` only".to_owned())),
        };
        Ok(Auth { form, variable: variable(&self.secret).map_err(|cause| ("secret", cause))? })
    }
}

impl RawLookUp {
    fn checked(&self, timeout_ms: u32) -> Result<LookUp, (&'static str, String)> {
        path(&self.path).map_err(|cause| ("path", cause))?;
        if !self.path.contains("{key}") {
            return Err(("path", "it must hold {key}, the reference by which the effect is found".to_owned()));
        }
        let settles_after_ms = i64::from(self.settles_after_s) * 1_000;
        if settles_after_ms <= i64::from(timeout_ms) {
            let cause = "a request may be on its way for `timeout_ms`: a miss proves nothing before that";
            return Err(("settles_after_s", cause.to_owned()));
        }
        if self.status.is_some() == self.settled.is_empty() {
            return Err(("settled", "`status` and `settled` belong together".to_owned()));
        }
        let named = |field: &'static str, text: &Option<String>| optional(text).map_err(|cause| (field, cause));
        Ok(LookUp {
            found: named("found", &self.found)?,
            reference: named("reference", &self.reference)?,
            id: named("id", &self.id)?,
            status: named("status", &self.status)?,
            settled: self.settled.clone(),
            failed: self.failed.clone(),
            settles_after_ms,
        })
    }
}

#[cfg(test)]
#[path = "destination_tests.rs"]
mod tests;
