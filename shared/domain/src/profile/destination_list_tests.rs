//! A destination's list: what a good table says, and each mistake with its line.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::super::Profiles;
use super::*;
use crate::config::shape::Kind;
use crate::config::shape::fields::{of_loader, of_shape};

const GOOD: &str = r#"[destinations.board]
url = "env:BOARD_URL"
[destinations.board.list]
path = "/v1/jobs?since={since}"
page = { param = "after", next = "/next" }
items = "/jobs"
key = "/reference"
event = "/origin"
id = "/id"
status = "/state"
settled = ["open", "done"]
failed = ["refused"]
amount = "/amount"
currency = "/currency"
paid = ["done"]
paid_amount = "/received"
refunded = "/back"
refunded_at = "/back_at"
created = { at = "/at", unit = "seconds" }
"#;

fn list(text: &str) -> EffectList {
    Profiles::parse(text).unwrap().destination("board").unwrap().list.clone().unwrap()
}

#[test]
fn a_good_table_says_what_it_says() {
    let read = list(GOOD);
    assert_eq!((read.window_ms, read.max_pages), (48 * 3_600_000, 100));
    assert_eq!(read.first_page(1_795_953_600_999), "/v1/jobs?since=1795953600");
    assert_eq!(read.page_behind(0, "a/b&c"), "/v1/jobs?since=0&after=a%2Fb%26c");
    let text = GOOD.replace("?since={since}", "").replace("seconds", "rfc3339");
    assert_eq!(list(&text).page_behind(0, "2"), "/v1/jobs?after=2");
    let text = GOOD.replace("seconds", "rfc3339").replace("next = \"/next\"", "last = \"/id\", more = \"/more\"");
    assert_eq!(list(&text).first_page(1_795_953_600_000), "/v1/jobs?since=2026-11-29T12%3A00%3A00Z");
    let last = list(&text).paging.unwrap();
    assert_eq!(
        last,
        Paging::BehindLast { param: "after".to_owned(), last: "/id".parse().unwrap(), more: "/more".parse().unwrap() }
    );
}

#[test]
fn every_mistake_has_its_line_and_its_cause() {
    for (from, to, line, field, cause) in [
        ("/v1/jobs?since={since}", "v1/jobs", 4, "path", "no path"),
        ("/v1/jobs?since={since}", "/v1/jobs?ref={key}", 4, "path", "`lookup`"),
        ("param = \"after\"", "param = \"a&b\"", 5, "page.param", "query parameter"),
        ("next = \"/next\"", "last = \"/id\"", 5, "page", "both `last` and `more`"),
        ("next = \"/next\"", "next = \"/next\", more = \"/more\"", 5, "page", "both `last` and `more`"),
        ("key = \"/reference\"", "key = \"reference\"", 7, "key", "pointer"),
        ("status = \"/state\"\n", "", 10, "settled", "belong together"),
        ("[\"refused\"]", "[\"done\"]", 12, "failed", "settled too"),
        ("currency = \"/currency\"\n", "", 3, "currency", "belong together"),
        ("paid = [\"done\"]", "paid = [\"refused\"]", 15, "paid", "not among `settled`"),
        ("paid_amount = \"/received\"\n", "", 3, "paid_amount", "belong together"),
        ("event = \"/origin\"\n", "", 14, "paid", "add `currency` and `event`"),
        ("refunded_at = \"/back_at\"\n", "", 3, "refunded_at", "belong together"),
        ("unit = \"seconds\"", "unit = \"days\"", 19, "created.unit", "days"),
        ("key = \"/reference\"", "key = \"/reference\"\nwindow_hours = 169", 8, "window_hours", "168"),
        ("key = \"/reference\"", "key = \"/reference\"\nurl = \"env:X\"", 8, "url", "no field"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let found = Profiles::parse(&text).map(|_| ()).unwrap_err().findings;
        let places: Vec<(usize, String)> = found.iter().map(|f| (f.line, f.field.clone())).collect();
        assert_eq!(places, [(line, format!("destinations.board.list.{field}"))], "{to}: {found:?}");
        assert!(format!("{found:?}").contains(cause), "{to}: {found:?}");
    }
    let paid = GOOD.replace("paid = [\"done\"]\npaid_amount = \"/received\"\n", "");
    let found = Profiles::parse(&paid).map(|_| ()).unwrap_err().to_string();
    assert!(found.contains("add `paid`"), "{found}");
}

/// The names that serde's own message lists are those of the shape.
#[test]
fn the_shape_has_the_fields_of_the_loader() {
    assert_eq!(of_loader::<RawEffectList>(), of_shape(&Kind::Table(LIST)));
    assert_eq!(of_loader::<RawPage>(), of_shape(&Kind::Table(PAGE)));
    assert_eq!(of_loader::<RawCreated>(), of_shape(&Kind::Table(CREATED)));
}
