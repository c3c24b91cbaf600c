//! Each mistake in a fetch has its line and its field, and a path leads where its values say.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::*;
use crate::profile::Profiles;

const GOOD: &str = mine!(
    r#"[providers.mine.events.done]
outcome = "success"
operations = ["complete-job", "settle-usage"]
fields = { ref = "body:/run" }
data = { region = "body:/region" }
fetch = { from = "http:api", path = "/v1/{data.region}/runs/{ref}?full=1", when = "usage-missing", fields = { usage = "body:/usage", ref = "body:/id" } }
[destinations.api]
url = "env:API_URL"
"#
);

fn rule(text: &str) -> EventRule {
    Profiles::parse(text).unwrap().get("mine").unwrap().rule("done").unwrap().clone()
}

#[test]
fn a_fetch_is_read_and_stands_in_the_worksheet() {
    assert_eq!(Profiles::check(GOOD), []);
    let fetch = rule(GOOD).fetch.unwrap();
    assert_eq!((fetch.from.as_str(), fetch.when), ("api", When::UsageMissing));
    assert_eq!(fetch.path(), "/v1/{data.region}/runs/{ref}?full=1");
    let row = "| done | usage-missing | `http:api`, `GET /v1/{data.region}/runs/{ref}?full=1` | ref = `body:/id`, usage = `body:/usage` |";
    let worksheet = Profiles::parse(GOOD).unwrap().get("mine").unwrap().worksheet();
    assert!(worksheet.contains(row), "{worksheet}");
}

#[test]
fn each_mistake_has_its_place() {
    let at = |line: usize, field: &str| (line, format!("providers.mine.events.done{field}"));
    for (from, to, expected) in [
        ("http:api", "sqs:QUEUE", at(15, ".fetch.from")),
        ("http:api", "http:other", at(15, ".fetch.from")),
        ("http:api", "https://api.example", at(15, ".fetch.from")),
        ("/v1/{data.region}/runs/{ref}?full=1", "/v1/runs", at(15, ".fetch.path")),
        ("{ref}?", "{refs}?", at(15, ".fetch.path")),
        ("{ref}?", "{ref?", at(15, ".fetch.path")),
        ("{ref}?", "{ref}#?", at(15, ".fetch.path")),
        ("{ref}?", "{key}?", at(15, ".fetch.path")),
        ("path = \"/v1", "path = \"v1", at(15, ".fetch.path")),
        ("{ref}?", "{booking}?", at(15, ".fetch.path")),
        ("{data.region}", "{data.zone}", at(15, ".fetch.path")),
        ("usage-missing", "sometimes", at(15, ".fetch.when")),
        ("when = \"usage-missing\", ", "", at(15, ".fetch.when")),
        ("outcome = \"success\"", "outcome = \"failure\"", at(15, ".fetch.when")),
        (", \"settle-usage\"]", "]\nunbilled = \"free\"", at(16, ".fetch.when")),
        ("usage = \"body:/usage\", ", "", at(15, ".fetch.fields")),
        ("ref = \"body:/id\"", "ref = \"header:x-id\"", at(15, ".fetch.fields")),
        ("usage = \"body:/usage\"", "usage = \"item:/usage\"", at(15, ".fetch.fields")),
        ("usage = \"body:/usage\"", "usage = \"/usage\"", at(15, ".fetch.fields.usage")),
        ("usage = \"body:/usage\"", "cost = \"body:/usage\"", at(15, ".fetch.fields.cost")),
        ("[\"complete-job\"", "[\"fetch\", \"complete-job\"", at(12, ".operations.0")),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let found = Profiles::parse(&text).unwrap_err().findings;
        let places: Vec<_> = found.iter().map(|one| (one.line, one.field.clone())).collect();
        assert!(places.contains(&expected), "{to}: {found:?}");
        assert!(found.iter().all(|one| !one.remedy.is_empty()), "{found:?}");
    }
}

/// A thin event may take what its operations need from the answer; from nowhere is a mistake.
#[test]
fn a_thin_event_needs_enough_of_both() {
    let thin = GOOD
        .replace("fields = { ref = \"body:/run\" }\n", "")
        .replace("runs/{ref}?full=1", "runs")
        .replace("usage-missing", "always");
    assert_eq!(Profiles::check(&thin), []);
    let found = Profiles::parse(&thin.replace(", ref = \"body:/id\"", "")).unwrap_err().findings;
    assert_eq!((found.len(), found[0].field.as_str()), (1, "providers.mine.events.done.fetch.fields"));
    assert!(found[0].cause.contains("complete-job needs `ref`, or `tenant` and `job`"), "{found:?}");
    let none = thin.replace("\"complete-job\", \"settle-usage\"", "");
    assert_eq!(Profiles::parse(&none).unwrap_err().findings[0].field, "providers.mine.events.done.fetch");
}

/// By hand, RFC 3986: unreserved characters stand, every other byte of the UTF-8 is escaped.
#[test]
fn a_value_is_one_part_of_a_path_whatever_stands_in_it() {
    let fetch = rule(GOOD).fetch.unwrap();
    let with = |reference: &str, region: &str| Envelope {
        provider_ref: Some(reference.parse().unwrap()),
        data: [("region".to_owned(), region.to_owned())].into(),
        ..Envelope::default()
    };
    assert_eq!(fetch.path_for(&with("p-1._~", "eu")).unwrap(), "/v1/eu/runs/p-1._~?full=1");
    assert_eq!(
        fetch.path_for(&with("a/../b?c#d é%", "e u")).unwrap(),
        "/v1/e%20u/runs/a%2F..%2Fb%3Fc%23d%20%C3%A9%25?full=1"
    );
    for leads_elsewhere in [".", ".."] {
        let said = fetch.path_for(&with(leads_elsewhere, "eu")).unwrap_err();
        assert!(said.contains("`ref` cannot stand in a path"), "{said}");
    }
    assert!(fetch.path_for(&with("p-1", "")).unwrap_err().contains("`data.region`"));
    assert!(fetch.path_for(&Envelope::default()).unwrap_err().contains("no `data.region`"));
    // 1,000 bytes of two-byte letters are 500 letters, each of them six characters when escaped: 3,000, and fine.
    assert!(fetch.path_for(&with("p-1", &"é".repeat(500))).is_ok());
    assert!(fetch.path_for(&with("p-1", &"é".repeat(700))).unwrap_err().contains("at most 4000"));
}
