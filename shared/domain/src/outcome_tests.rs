#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
use super::*;
use crate::profile::Profiles;

fn rules(more: &str) -> Rules {
    let text = format!("[destinations.d]\nurl = \"env:D_URL\"\n{more}");
    Profiles::parse(&text).unwrap().destination("d").unwrap().rules.clone()
}

fn status(status: u16, body: &str) -> Answer {
    Answer::Status { status, body: Some(body.as_bytes().to_vec()) }
}

const UNKNOWN: Verdict = Verdict::Unknown { stored: false };

#[test]
fn without_a_word_of_the_file_little_is_certain() {
    let plain = rules("");
    for (code, verdict) in [
        (200, Verdict::Settled(None)),
        (204, Verdict::Settled(None)),
        (302, UNKNOWN),
        (400, UNKNOWN),
        (401, Verdict::NotDone { refused: true }),
        (403, Verdict::NotDone { refused: true }),
        (404, UNKNOWN),
        (409, UNKNOWN),
        (422, UNKNOWN),
        (429, Verdict::NotDone { refused: false }),
        (500, UNKNOWN),
        (503, UNKNOWN),
    ] {
        assert_eq!(read(&plain, &status(code, "")), verdict, "{code}");
    }
    // Where keys are known, 409 and 422 mean what the draft for idempotency keys gives them.
    let keyed = rules("key_life_hours = 24\n");
    assert_eq!(read(&keyed, &status(409, "")), Verdict::InProgress);
    assert_eq!(read(&keyed, &status(422, "")), Verdict::KeyReused);
}

#[test]
fn no_answer_is_not_done_only_where_nothing_left() {
    let why = || "x".to_owned();
    for (answer, verdict) in [
        (Answer::NotSent(why()), Verdict::NotDone { refused: false }),
        (Answer::Refused(why()), Verdict::NotDone { refused: true }),
        (Answer::Lost(why()), UNKNOWN),
        (Answer::Taken, Verdict::Settled(None)),
    ] {
        assert_eq!(read(&Rules::of_queue(), &answer), verdict, "{answer:?}");
    }
}

#[test]
fn what_says_more_goes_before_what_says_less() {
    let stripe = rules(
        r#"key_life_hours = 24
failed = ["4xx"]
in_progress = [{ status = "409", at = "/error/code", is = "idempotency_key_in_use" }]
key_reused = [{ status = "400", at = "/error/type", is = "idempotency_error" }]
id = "/id"
"#,
    );
    for (answer, verdict) in [
        (status(400, r#"{"error":{"type":"idempotency_error"}}"#), Verdict::KeyReused),
        (status(400, r#"{"error":{"type":"card_error"}}"#), Verdict::Failed),
        (status(400, "<html>"), Verdict::Failed),
        (status(402, "{}"), Verdict::Failed),
        (status(409, r#"{"error":{"code":"idempotency_key_in_use"}}"#), Verdict::InProgress),
        (status(409, r#"{"error":{"code":"lock_timeout"}}"#), Verdict::Failed),
        // Whatever the range: these refuse the caller.
        (status(401, "{}"), Verdict::NotDone { refused: true }),
        (status(407, "{}"), Verdict::NotDone { refused: true }),
        (status(429, "{}"), Verdict::NotDone { refused: false }),
        (status(200, r#"{"id":"pi_1"}"#), Verdict::Settled(Some("pi_1".to_owned()))),
        (status(200, r#"{"id":7}"#), Verdict::Settled(Some("7".to_owned()))),
        // A final answer without the id, or one that cannot be read, is none.
        (status(200, "{}"), UNKNOWN),
        (status(200, "<html>"), UNKNOWN),
        (status(200, r#"{"id":"a","id":"b"}"#), UNKNOWN),
        (status(200, r#"{"id":"a\u0007"}"#), UNKNOWN),
        (Answer::Status { status: 200, body: None }, UNKNOWN),
    ] {
        assert_eq!(read(&stripe, &answer), verdict, "{answer:?}");
    }
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(MAX_ID_BYTES + 1));
    assert_eq!(read(&stripe, &status(200, &long)), UNKNOWN);
}

#[test]
fn of_two_that_fit_alike_the_more_careful_one_holds() {
    let both = rules(
        "final = [{ status = \"200\", at = \"/a\", is = \"1\" }]\nfailed = [{ status = \"200\", at = \"/b\", is = \"true\" }]\n",
    );
    assert_eq!(read(&both, &status(200, r#"{"a":"1","b":true}"#)), Verdict::Failed);
    assert_eq!(read(&both, &status(200, r#"{"a":1}"#)), Verdict::Settled(None), "a number by its text");
    assert_eq!(read(&both, &status(200, "{}")), UNKNOWN);
}

#[test]
fn a_stored_error_is_told_from_one_that_may_pass() {
    let replaying = rules("key_life_hours = 24\nreplays_errors = true\nretryable = [\"503\"]\n");
    assert_eq!(read(&replaying, &status(500, "")), Verdict::Unknown { stored: true });
    assert_eq!(read(&replaying, &status(418, "")), UNKNOWN);
    assert_eq!(read(&replaying, &status(503, "")), Verdict::NotDone { refused: false });
    assert_eq!(read(&replaying, &Answer::Lost("x".to_owned())), UNKNOWN);
}

#[test]
fn a_key_holds_for_its_life_without_the_margin() {
    let life = KeyLife::For { life_ms: 1_000, margin_ms: 100 };
    let held: Vec<bool> = [-5, 0, 899, 900, 1_000].map(|age| life.holds(5_000, 5_000 + age)).to_vec();
    assert_eq!(held, [true, true, true, false, false]);
    assert!(!KeyLife::None.holds(0, 0) && KeyLife::ForGood.holds(0, i64::MAX));
}

#[test]
fn a_look_up_finds_ours_or_says_why_not() {
    let lookup = rules(
        r#"lookup = { path = "/jobs?key={key}", found = "/data/0", reference = "/data/0/ref", id = "/data/0/id", status = "/data/0/st", settled = ["done", "running"], failed = ["void"], settles_after_s = 60 }
"#,
    )
    .lookup
    .unwrap();
    let entry = |st: &str| format!(r#"{{"data":[{{"ref":"k","id":"j1","st":"{st}"}}]}}"#);
    let saw = |code: u16, body: &str| look(&lookup, "k", &status(code, body));
    assert_eq!(saw(200, &entry("running")), Seen::Settled(Some("j1".to_owned())));
    assert_eq!(saw(200, &entry("void")), Seen::Failed);
    assert_eq!(saw(200, &entry("queued")), Seen::Pending);
    assert_eq!(saw(404, "whatever"), Seen::Absent);
    assert_eq!(saw(200, r#"{"data":[]}"#), Seen::Absent);
    assert_eq!(saw(200, r#"{"data":[null]}"#), Seen::Absent);
    let unclear = [
        (200, r#"{"data":[{"ref":"another","id":"j1","st":"done"}]}"#),
        (200, r#"{"data":[{"id":"j1","st":"done"}]}"#),
        (200, r#"{"data":[{"ref":"k","st":"done"}]}"#),
        (200, r#"{"data":[{"ref":"k","id":"j1"}]}"#),
        (200, "<html>"),
        (500, "{}"),
        (204, ""),
        (401, "{}"),
    ];
    for (code, body) in unclear {
        assert!(matches!(saw(code, body), Seen::Unclear(_)), "{code} {body}");
    }
    assert!(matches!(look(&lookup, "k", &Answer::Lost("x".to_owned())), Seen::Unclear(_)));
}
