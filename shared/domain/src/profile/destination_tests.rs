//! Each mistake in a destination has its line, its cause and its remedy, and no secret is repeated.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::super::Profiles;
use super::super::destination_shape::{AUTH, BREAKER, DESTINATION_TABLE, LOOKUP, MATCH_TABLE, SIGN};
use super::*;
use crate::config::shape::Kind;
use crate::config::shape::fields::{of_loader, of_shape};

const GOOD: &str = r#"[destinations.board]
url = "env:BOARD_URL"
path = "/v1/jobs"
auth = { as = "bearer", secret = "env:BOARD_TOKEN" }
key_life_hours = 24
lookup = { path = "/v1/jobs?ref={key}", found = "/0", settles_after_s = 60 }
breaker = { failures = 5, cool_s = 60 }
sign = { scheme = "standard-webhooks", secret = "env:BOARD_SIGN" }
"#;

const PROVIDER: &str = r#"[providers.mine]
owner = "team"
signature = { scheme = "stripe" }
secrets = ["MINE_SECRET"]
retry_window_hours = 72
retention_days = 0
tenants = ["*"]
event_id = "body:/id"
event_type = "body:/type"
forward = { to = "http:board" }
[providers.mine.events]
"*" = { operations = ["forward"] }
"paid" = { operations = ["forward"], forward = { to = "http:board", action_key = ["body:/id"] } }
"#;

fn refused(text: &str) -> Vec<(usize, String)> {
    Profiles::parse(text).unwrap_err().findings.into_iter().map(|f| (f.line, f.field)).collect()
}

fn at(line: usize, field: &str) -> (usize, String) {
    (line, format!("destinations.board.{field}"))
}

#[test]
fn a_good_table_says_what_it_says() {
    let profiles = Profiles::parse(&format!("{GOOD}{PROVIDER}")).unwrap();
    assert_eq!(Profiles::check(&format!("{GOOD}{PROVIDER}")), []);
    let board = profiles.destination("board").unwrap();
    assert_eq!(board.variables().collect::<Vec<_>>(), ["BOARD_URL", "BOARD_TOKEN", "BOARD_SIGN"]);
    assert_eq!(board.rules.key, KeyLife::For { life_ms: 86_400_000, margin_ms: 3_600_000 });
    let call = board.call("k");
    assert_eq!((call.method.as_str(), call.path.as_str()), ("POST", "/v1/jobs"));
    assert_eq!(call.headers, [("content-type".to_owned(), "application/json".to_owned())].into());
}

#[test]
fn every_mistake_has_its_line() {
    for (from, to, expected) in [
        ("url = \"env:BOARD_URL\"", "url = \"https://board.example\"", at(2, "url")),
        ("/v1/jobs\"\nauth", "v1/jobs\"\nauth", at(3, "path")),
        ("/v1/jobs\"\nauth", "/v1/{job}\"\nauth", at(3, "path")),
        ("\"bearer\"", "\"digest\"", at(4, "auth.as")),
        ("\"bearer\"", "\"header\"", at(4, "auth.header")),
        ("\"env:BOARD_TOKEN\"", "\"sk_live_canary\"", at(4, "auth.secret")),
        ("= 24", "= 24\nkey_margin_minutes = 1440", at(6, "key_margin_minutes")),
        ("key_life_hours = 24", "key_margin_minutes = 5", at(5, "key_margin_minutes")),
        ("?ref={key}", "", at(6, "lookup.path")),
        ("settles_after_s = 60", "settles_after_s = 5", at(6, "lookup.settles_after_s")),
        ("settles_after_s", "status = \"/0/s\", settles_after_s", at(6, "lookup.settled")),
        ("cool_s = 60", "cool_s = 0", at(7, "breaker.cool_s")),
        ("standard-webhooks", "stripe", at(8, "sign.scheme")),
        ("path = \"/v1/jobs\"\n", "path = \"/v1/jobs\"\nfailed = [\"401\"]\n", at(4, "failed")),
        ("path = \"/v1/jobs\"\n", "path = \"/v1/jobs\"\nfailed = [\"2xx\"]\nfinal = [\"2xx\"]\n", at(4, "failed")),
        ("path = \"/v1/jobs\"\n", "path = \"/v1/jobs\"\nfinal = [\"99\"]\n", at(4, "final.0")),
        ("path = \"/v1/jobs\"\n", "path = \"/v1/jobs\"\ntimeout_ms = 60000\n", at(4, "timeout_ms")),
        ("path = \"/v1/jobs\"\n", "path = \"/v1/jobs\"\nheaders = { host = \"x\" }\n", at(4, "headers.host")),
        (
            "path = \"/v1/jobs\"\n",
            "path = \"/v1/jobs\"\nheaders = { idempotency-key = \"x\" }\n",
            at(4, "headers.idempotency-key"),
        ),
        ("path = \"/v1/jobs\"\n", "path = \"/v1/jobs\"\nretries = 3\n", at(4, "retries")),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        assert_eq!(refused(&text), [expected], "{to}");
        assert!(!Profiles::parse(&text).unwrap_err().to_string().contains("canary"));
    }
}

#[test]
fn a_forward_to_a_table_that_is_not_there_is_told_where_it_stands() {
    let text = PROVIDER.replacen("http:board", "http:bord", 1);
    assert_eq!(refused(&format!("{text}{GOOD}")), [(10, "providers.mine.forward.to".to_owned())]);
    let text = PROVIDER.replacen("\"http:board\", action_key", "\"http:bord\", action_key", 1);
    assert_eq!(refused(&format!("{text}{GOOD}")), [(13, "providers.mine.events.paid.forward.to".to_owned())]);
    // A table with a mistake is a table.
    assert_eq!(refused(&format!("{PROVIDER}{}", GOOD.replace("= 24", "= 0"))), [at(18, "key_life_hours")]);
}

#[test]
fn a_status_that_the_file_gives_another_meaning_has_that_one() {
    let text = GOOD.replace("key_life_hours", "retryable = [\"409\"]\nkey_life_hours");
    let rules = Profiles::parse(&text).unwrap().destination("board").unwrap().rules.clone();
    let of = |from: u16| rules.answers.iter().filter(|(_, rule)| rule.from == from).collect::<Vec<_>>();
    assert_eq!(of(409), [&(Meaning::Retryable, Match::statuses(409, 409))]);
    assert_eq!(of(401), Vec::<&(Meaning, Match)>::new(), "a list that is given stands alone");
}

/// The names that serde's own message lists are those of the shape.
#[test]
fn the_shape_has_the_fields_of_the_loader() {
    assert_eq!(of_loader::<RawDestination>(), of_shape(&DESTINATION_TABLE));
    assert_eq!(of_loader::<RawAuth>(), of_shape(&Kind::Table(AUTH)));
    assert_eq!(of_loader::<RawBodyMatch>(), of_shape(&Kind::Table(MATCH_TABLE)));
    assert_eq!(of_loader::<RawLookUp>(), of_shape(&Kind::Table(LOOKUP)));
    assert_eq!(of_loader::<RawBreaker>(), of_shape(&Kind::Table(BREAKER)));
    assert_eq!(of_loader::<RawSign>(), of_shape(&Kind::Table(SIGN)));
}
