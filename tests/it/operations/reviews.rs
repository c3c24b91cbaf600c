//! The list of reviews: evidence, age, money, filters, pages; and no payload.

use std::collections::BTreeSet;

use domain::keys::review_shard;
use local::world::{World, completed, event_body};
use serde_json::{Value, json};

use super::scene::*;
use crate::harness::*;

#[tokio::test(start_paused = true)]
async fn a_review_shows_who_since_when_how_much_and_what_may_be_done() {
    let world = above_the_hold().await;
    world.clock.advance(90_000);
    let list = reviews(&world, "").await;
    let review = &list[0];
    assert_eq!(review["reason"], "overage");
    assert_eq!(review["age_s"], 90);
    assert_eq!((&review["tenant"], &review["job"], &review["wallet"]), (&json!("t1"), &json!("j1"), &json!("w1")));
    assert_eq!(review["at_risk"], json!({"amount": "5.000000", "currency": "USD", "of": "hold"}));
    assert_eq!(review["actions"], json!(["retry", "approve", "close"]));
    assert_eq!(review["close_needs_release"], true);
    assert_eq!(review["evidence"]["note"], "the charge 6.000000 is above the hold 5.000000");
    assert_eq!(review["path"], "/control/reviews/settle-usage~3Aacme~2Fmsg_1");
    let shown = world.explain("msg_1").await;
    assert_eq!(shown["operations"][1]["review"], "settle-usage:acme/msg_1");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_listed_with_what_differs_and_can_only_be_closed() {
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let other = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 7}, "secret": "canary-71"}));
    assert_eq!(world.send("msg_1", &other).await.1, "quarantined");
    let list = reviews(&world, "reason=conflict").await;
    assert_eq!(list.len(), 1);
    let (review, text) = (&list[0], list[0].to_string());
    assert_eq!((&review["kind"], &review["actions"]), (&json!("conflict"), &json!(["close"])));
    assert_eq!(review["evidence"]["differs_in"], json!(["usage"]));
    assert!(!text.contains("canary-71") && !text.contains("input_tokens"), "{text}");

    let id = review["id"].as_str().unwrap();
    assert!(id.starts_with("conflict:1:") && id.ends_with("@acme/msg_1"), "{id}");
    let (status, refused) = decide(&world, id, retry()).await;
    assert_eq!((status, refused["code"].as_str()), (409, Some("not-possible")));
    assert_eq!(decide(&world, id, close()).await.0, 200);
    assert_eq!(ids(&world, "").await, [""; 0]);
    // The same content again opens no second review, and the conflict stays as evidence.
    assert_eq!(world.send("msg_1", &other).await.1, "quarantined");
    assert_eq!(ids(&world, "").await, [""; 0]);
    assert_eq!(world.explain("msg_1").await["conflicts"][0]["closed_at"], "2026-11-29T12:00:00Z");
    let (status, again) = decide(&world, id, close()).await;
    assert_eq!((status, &again["again"]), (200, &json!(true)));
    assert_settled(&world, "j1", "msg_1").await;
}

#[tokio::test(start_paused = true)]
async fn filters_take_what_they_name() {
    let world = above_the_hold().await;
    world.submit("j2", "w1", "1.00").await;
    accepted(&world, "msg_2", &event_body("job.completed", "j2", json!({}))).await;
    world.clock.advance(60_000);
    world.drain().await.unwrap();
    let (first, second) = ("settle-usage:acme/msg_1", "settle-usage:acme/msg_2");
    assert_eq!(ids(&world, "").await, [first, second]);
    assert_eq!(ids(&world, "class=no-usage").await, [second]);
    assert_eq!(ids(&world, "reason=overage&provider=acme&tenant=t1").await, [first]);
    assert_eq!(ids(&world, "tenant=t2").await, [""; 0]);
    assert_eq!(ids(&world, "provider=stripe").await, [""; 0]);
    assert_eq!(ids(&world, "older_than=1m").await, [first], "the second came this minute");
    assert_eq!(ids(&world, "older_than=61s").await, [""; 0]);
    for wrong in ["older_than=soon", "limit=0", "limit=101", "after=x", "after=[]"] {
        assert_eq!(ask(&world, "GET", &format!("/control/reviews?{wrong}"), None).await.0, 422, "{wrong}");
    }
}

/// Every review, a few at a time; how many pages it took.
async fn by_pages(world: &World, limit: usize) -> (Vec<Value>, usize) {
    let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let (status, body) = ask(world, "GET", &format!("/control/reviews?limit={limit}{after}"), None).await;
        assert_eq!(status, 200, "{body}");
        seen.extend(body["reviews"].as_array().unwrap().clone());
        pages += 1;
        let Some(next) = body["next"].as_str() else { return (seen, pages) };
        let next = next.replace('%', "%25").replace('"', "%22").replace('|', "%7C").replace('+', "%2B");
        after = format!("&after={next}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_show_every_review_once_oldest_first() {
    let world = submitted().await;
    for n in 0..23 {
        world.clock.advance(1);
        accepted(&world, &format!("msg_{n}"), &used("j1", 2_000_000 + n)).await;
        world.drain().await.unwrap();
    }
    let (seen, pages) = by_pages(&world, 5).await;
    let mut since = 0;
    for review in &seen {
        let at = domain::time::parse_rfc3339(review["since"].as_str().unwrap()).unwrap();
        assert!(at >= since, "{at} after {since}");
        since = at;
    }
    let ids: BTreeSet<String> = seen.iter().map(|review| review["id"].to_string()).collect();
    assert_eq!((ids.len(), seen.len(), pages), (23, 23, 5));
}

#[tokio::test(start_paused = true)]
async fn pages_show_reviews_of_one_millisecond_once_too() {
    let world = submitted().await;
    for n in 0..40 {
        accepted(&world, &format!("msg_{n}"), &used("j1", 2_000_000 + n)).await;
    }
    world.drain().await.unwrap();
    let (seen, pages) = by_pages(&world, 3).await;
    let ids: BTreeSet<String> = seen.iter().map(|review| review["id"].to_string()).collect();
    assert_eq!((ids.len(), seen.len(), pages), (40, 40, 14));
}

/// Members of stored items lose their type, as no handler would ever write them.
fn damage(world: &World, table: &str, pk: &str, sk: &str, member: &str) {
    let all = items(world, table);
    let mut item = all.into_iter().find(|item| item["pk"]["S"] == pk && item["sk"]["S"] == sk).unwrap();
    assert!(!item[member].is_null(), "{item}");
    item[member] = json!({"BOOL": true});
    overwrite(world, table, &item);
}

/// Id, reason and actions of every review.
async fn told(world: &World) -> Vec<Value> {
    let all = reviews(world, "").await;
    let mut told: Vec<Value> = all.iter().map(|r| json!([r["id"], r["reason"], r["actions"]])).collect();
    told.sort_by_key(Value::to_string);
    told
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_shown_as_that_and_hides_no_other() {
    let world = above_the_hold().await;
    accepted(&world, "msg_2", &used("j1", 2_000_001)).await;
    world.drain().await.unwrap();
    let other = event_body("job.completed", "j1", json!({"usage": {"input_tokens": 7}}));
    assert_eq!(world.send("msg_1", &other).await.1, "quarantined");
    let conflict = ids(&world, "reason=conflict").await.remove(0);
    let hash = conflict.trim_start_matches("conflict:").trim_end_matches("@acme/msg_1");
    damage(&world, "events", "E|acme|msg_1", &format!("x|{hash}"), "ar");
    damage(&world, "events", "E|acme|msg_1", "o|-|billing|settle-usage", "st");
    assert_eq!(
        told(&world).await,
        [
            json!([conflict, "unreadable", []]),
            json!(["settle-usage:acme/msg_1", "unreadable", []]),
            json!(["settle-usage:acme/msg_2", "conflict", ["retry", "close"]]),
        ]
    );
    let (status, body) = ask(&world, "GET", "/control/status", None).await;
    let counted = body["states"].as_array().unwrap().iter().find(|state| state["state"] == "review:unreadable");
    assert_eq!((status, &counted.unwrap()["count"]), (200, &json!(2)), "{body}");
    // A store that is busy is no damage: the page is not shown without the row.
    let busy = Rule::always("GetItem", &["o|-|billing|settle-usage"], throttled());
    world.aws.add_hook(busy.clone());
    assert_eq!(ask(&world, "GET", "/control/reviews", None).await.0, 503);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_no_review_is_passed_and_an_unknown_one_is_shown() {
    let world = above_the_hold().await;
    // What the index says and the table does not: the record was closed, the row is still there.
    let mut record =
        items(&world, "events").into_iter().find(|item| item["sk"]["S"] == "o|-|billing|settle-usage").unwrap();
    record["st"] = json!({"S": "closed"});
    overwrite(&world, "events", &record);
    assert_eq!(ids(&world, "").await, [""; 0]);
    let (rs, rt) = (json!({"S": review_shard(0)}), json!({"N": "1795953600000"}));
    let later = json!({"pk": {"S": "Z|later"}, "sk": {"S": "z"}, "rs": rs, "rt": rt, "nt": {"S": "a later kind"}});
    overwrite(&world, "events", &later);
    // A case's row of which nothing stands is none either.
    let case = json!({"pk": {"S": "Q|case|drift.1"}, "sk": {"S": "q"}, "rs": rs, "rt": rt});
    overwrite(&world, "events", &case);
    let list = reviews(&world, "").await;
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!((&list[0]["id"], &list[0]["evidence"]["row"]), (&json!(null), &json!(["Z|later", "z"])));
}
