//! Each mistake in a board has its line and its field.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use crate::profile::Profiles;

const GOOD: &str = mine!(
    r#"[providers.mine.events.booked]
operations = ["create-job"]
fields = { tenant = "body:/t", wallet = "body:/w", booking = "body:/b", version = "body:/v", model = "body:/m", amount = "body:/a" }
board = { to = "http:board", body = { "/title" = "body:/title", "/at/day" = "header:x-day" }, update = { path = "/v1/jobs/{id}" }, attach_ref = true }
[destinations.board]
url = "env:BOARD_URL"
id = "/id"
"#
);

fn refused(from: &str, to: &str) -> (usize, String) {
    let text = GOOD.replace(from, to);
    assert_ne!(text, GOOD, "{from}");
    let found = Profiles::parse(&text).unwrap_err().findings;
    assert_eq!(found.len(), 1, "{found:?}");
    (found[0].line, found[0].field.clone())
}

#[test]
fn a_board_is_read() {
    assert_eq!(Profiles::check(GOOD), []);
    let profiles = Profiles::parse(GOOD).unwrap();
    let board = profiles.get("mine").unwrap().rule("booked").unwrap().board.clone().unwrap();
    assert_eq!((board.to.as_str(), board.update_method.as_str(), board.body.len()), ("board", "PUT", 2));
    assert!(board.attach_ref);
    let row = "| booked | `http:board` | `/at/day` = `header:x-day`, `/title` = `body:/title` | `PUT /v1/jobs/{id}` |";
    assert!(profiles.get("mine").unwrap().worksheet().contains(row));
}

#[test]
fn each_mistake_has_its_place() {
    let at = |field: &str| (13, format!("providers.mine.events.booked.{field}"));
    for (from, to, expected) in [
        ("http:board", "sqs:QUEUE", at("board")),
        ("http:board", "http:other", at("board.to")),
        ("id = \"/id\"\n", "", at("board.to")),
        ("id = \"/id\"", "id = \"/id\"\nlookup = { path = \"/x?r={key}\", settles_after_s = 60 }", at("board.to")),
        ("\"/title\" =", "\"title\" =", at("board")),
        ("\"/title\" =", "\"/at\" =", at("board")),
        ("{ \"/title\" = \"body:/title\", \"/at/day\" = \"header:x-day\" }", "{}", at("board")),
        ("jobs/{id}", "jobs", at("board.update.path")),
        ("jobs/{id}", "jobs/{id}/{other}", at("board.update.path")),
        ("body:/title", "title", at("board.body./title")),
        ("tenant = \"body:/t\"", "tenant = \"body:/t\", ref = \"body:/r\"", at("board")),
        ("update = {", "update = { method = \"DELETE\",", at("board.update.method")),
    ] {
        assert_eq!(refused(from, to), expected, "{to}");
    }
    let other = GOOD.replace("[\"create-job\"]", "[]");
    assert_eq!(Profiles::parse(&other).unwrap_err().findings[0].field, "providers.mine.events.booked.board");
}
