//! `[destinations.NAME]` as data: every field, what it may hold, and what it says.

use super::destination::{MAX_TIMEOUT_MS, header_name, path, statuses, variable};
use super::destination_list::{LIST, list_path};
use super::shape::POINTER;
use crate::config::shape::{Field, Form, Kind};

/// Longest life of a key that a destination may state, in hours: a year.
const MAX_LIFE_HOURS: i64 = 8_760;

fn query_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(plain)
}

pub(super) static DESTINATION_TABLE: Kind = Kind::Table(&[
    Field::must("url", Kind::Form(&VARIABLE), "\"env:NAME\" of the variable with its base address, https"),
    Field::may("method", Kind::Choice(|| vec!["POST", "PUT", "PATCH"]), "POST without it"),
    Field::may("path", Kind::Form(&PATH), "behind the base address; {key} is the key's hash; \"/\" without it"),
    Field::may("headers", Kind::Names(&Kind::Text), "headers that never change, such as the API's version"),
    Field::may("auth", Kind::Table(AUTH), "the secret that authorises"),
    Field::may("content_type", Kind::Text, "the media type of what is sent; application/json without it"),
    Field::may("key_header", Kind::Form(&HEADER), "the header with the key; idempotency-key without it"),
    Field::may("key_life_hours", Kind::Integer(1, MAX_LIFE_HOURS), "how long a key is known; without it: not at all"),
    Field::may("key_margin_minutes", Kind::Integer(1, 60 * MAX_LIFE_HOURS), "what is left unused of it; 60 without it"),
    Field::may("replays_errors", Kind::Boolean, "true where a stored 5xx comes back under the key"),
    Field::may("final", Kind::List(&MATCH, 1), "the effect exists; [\"2xx\"] without it"),
    Field::may("failed", Kind::List(&MATCH, 0), "the effect never will exist; none without it"),
    Field::may("retryable", Kind::List(&MATCH, 0), "nothing was done; [\"401\", \"403\", \"429\"] without it"),
    Field::may("in_progress", Kind::List(&MATCH, 0), "the key is being worked on; [\"409\"] where keys are known"),
    Field::may("key_reused", Kind::List(&MATCH, 0), "the key has other parameters; [\"422\"] where keys are known"),
    Field::may("id", Kind::Form(&POINTER), "in a final answer: the destination's id, without which it is not final"),
    Field::may("lookup", Kind::Table(LOOKUP), "how an effect is looked up by our key"),
    Field::may("list", Kind::Table(LIST), "where it lists what it has, for the reconciler"),
    Field::may("rate_per_s", Kind::Integer(1, 1_000), "requests per second of one process at most"),
    Field::may(
        "timeout_ms",
        Kind::Integer(100, MAX_TIMEOUT_MS as i64),
        "how long an answer is waited for; 5000 without it",
    ),
    Field::may("breaker", Kind::Table(BREAKER), "when it is left alone"),
    Field::may("sign", Kind::Table(SIGN), "how bodies are signed for its reader"),
]);

pub(super) static AUTH: &[Field] = &[
    Field::must("as", Kind::Choice(|| vec!["bearer", "basic", "header"]), "bearer, basic (user:password), or header"),
    Field::must("secret", Kind::Form(&VARIABLE), "\"env:NAME\" of the variable that holds the secret itself"),
    Field::may("header", Kind::Form(&HEADER), "the header's name, for `as = \"header\"`"),
];

pub(super) static MATCH_TABLE: &[Field] = &[
    Field::must("status", Kind::Form(&STATUS), "\"409\" or \"4xx\""),
    Field::must("at", Kind::Form(&POINTER), "a place in the answer's JSON"),
    Field::must("is", Kind::Text, "the text that stands there"),
];

pub(super) static LOOKUP: &[Field] = &[
    Field::must("path", Kind::Form(&PATH), "a GET behind the base address; {key} is the key's hash"),
    Field::may("found", Kind::Form(&POINTER), "what stands in the answer where the effect exists"),
    Field::may(
        "reference",
        Kind::Form(&POINTER),
        "where the answer repeats our key, so that no other effect is taken for it",
    ),
    Field::may("id", Kind::Form(&POINTER), "the destination's id"),
    Field::may("status", Kind::Form(&POINTER), "the effect's status; without it what is found is settled"),
    Field::may("settled", Kind::List(&Kind::Text, 1), "statuses of an effect that exists"),
    Field::may("failed", Kind::List(&Kind::Text, 1), "statuses of one that never will"),
    Field::must("settles_after_s", Kind::Integer(1, 86_400), "how long after the last sending a miss proves something"),
];

pub(super) static BREAKER: &[Field] = &[
    Field::must("failures", Kind::Integer(1, 1_000), "tries in a row without a usable answer"),
    Field::must("cool_s", Kind::Integer(1, 3_600), "how long nothing is sent then"),
];

pub(super) static SIGN: &[Field] = &[
    Field::must("scheme", Kind::Choice(|| vec!["standard-webhooks"]), "standard-webhooks"),
    Field::must("secret", Kind::Form(&VARIABLE), "\"env:NAME\" of the variable with the whsec_ secret"),
];

static MATCH: Kind = Kind::OneOf(&[Kind::Form(&STATUS), Kind::Table(MATCH_TABLE)]);

static VARIABLE: Form = Form {
    is: "an environment variable as env:NAME",
    pattern: "^env:[A-Z0-9_]{1,128}$",
    check: |text| {
        let remedy = "write \"env:NAME\"; if a secret stood here, roll it: it has been in a file";
        variable(text).map(|_| ()).map_err(|cause| (cause, remedy.to_owned()))
    },
};
static STATUS: Form = Form {
    is: "a status as 409 or 4xx",
    pattern: "^([2-5][0-9][0-9]|[2-5]xx)$",
    check: |text| statuses(text).map(|_| ()).map_err(|cause| (cause, "write \"409\" or \"4xx\"".to_owned())),
};
static PATH: Form = Form {
    is: "a path",
    pattern: r"^/([!$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]|\{key\})*$",
    check: |text| path(text).map_err(|cause| (cause, "write \"/v1/jobs\"".to_owned())),
};
pub(super) static LIST_PATH: Form = Form {
    is: "a path",
    pattern: r"^/([!$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]|\{since\})*$",
    check: |text| list_path(text).map_err(|cause| (cause, "write \"/v1/jobs?since={since}\"".to_owned())),
};
pub(super) static PARAM: Form = Form {
    is: "a query parameter's name",
    pattern: "^[A-Za-z0-9_.-]{1,64}$",
    check: |text| match query_name(text) {
        true => Ok(()),
        false => Err(("this is no query parameter's name".to_owned(), "write \"starting_after\"".to_owned())),
    },
};
static HEADER: Form = Form {
    is: "a header's name in lower case",
    pattern: "^[a-z0-9_-]{1,64}$",
    check: |text| header_name(text).map_err(|cause| (cause, "write \"idempotency-key\"".to_owned())),
};
