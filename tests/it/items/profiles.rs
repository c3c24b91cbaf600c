//! The shapes that vendors send: a list as the whole body, items without ids, items wrapped in an object;
//! and what a profile may not say.

use domain::profile::Profiles;

use super::*;

/// As SendGrid's event webhook: the body is the list, each item has its own id, and nothing names the batch.
const ROOT: &str = r#"
event_id = ["body:"]
items = ""
item_id = "item:/sg_event_id"
event_type = "item:/event"
first_sent = { at = "item:/timestamp", unit = "seconds" }
forward = { to = "sqs:HOOKLEDGER_FORWARD_QUEUE_URL", action_key = ["item:/sg_event_id"] }
data = { email_id = "item:/sg_message_id" }
events."delivered" = { operations = ["forward"] }
events."bounce" = { operations = ["forward"] }
"#;

async fn root_world() -> World {
    let mut config = config(&[profile("beta", "standard-webhooks", ROOT)], &[("beta", WHSEC)]);
    config.addresses =
        [(crate::forward::VARIABLE.to_owned(), "https://sqs.example/1/forwarded.fifo".to_owned())].into();
    crate::forward::world_of(config).await
}

fn mail(id: &str, kind: &str) -> Value {
    json!({"sg_event_id": id, "event": kind, "timestamp": 1_795_953_500, "sg_message_id": format!("m-{id}")})
}

#[tokio::test(start_paused = true)]
async fn a_list_as_the_whole_body_is_taken_and_an_item_of_two_batches_leaves_once() {
    let world = root_world().await;
    let first = json!([mail("a", "delivered"), mail("b", "bounce"), mail("c", "open")]).to_string();
    let second = json!([mail("b", "bounce"), mail("d", "delivered")]).to_string();
    assert_eq!(beta().send(&world, "msg_1", &first).await, said(202, "accepted"));
    assert_eq!(beta().send(&world, "msg_1b", &first).await, said(200, "duplicate"), "the body is the identity");
    assert_eq!(beta().send(&world, "msg_2", &second).await, said(202, "accepted"));
    world.drain().await.unwrap();
    let mut keys: Vec<String> = crate::forward::arrived(&world)
        .into_iter()
        .map(|(body, _)| format!("{} {}", body["key"].as_str().unwrap(), body["data"]["email_id"].as_str().unwrap()))
        .collect();
    keys.sort();
    let by_hand = ["@action|beta|bounce|b m-b", "@action|beta|delivered|a m-a", "@action|beta|delivered|d m-d"];
    assert_eq!(keys, by_hand);
}

#[tokio::test(start_paused = true)]
async fn items_without_ids_are_named_by_their_place_and_a_wrapped_item_is_read_inside() {
    let more = BATCHED
        .replace("item_id = \"item:/id\"\n", "")
        .replace("item:/type", "item:/wrapped/type")
        .replace("item:/at", "item:/wrapped/at")
        .replace("item:/job", "item:/wrapped/job")
        .replace("item:/model", "item:/wrapped/model")
        .replace("item:/usage", "item:/wrapped/usage");
    let world = world_of(&more).await;
    submit(&world, "j1").await;
    let body = batch(&[json!({"wrapped": completed("x", "j1")}), json!({"wrapped": completed("x", "j1")})]);
    assert_eq!(beta().send(&world, "msg_1", &body).await, said(202, "accepted"));
    world.drain().await.unwrap();
    let by_hand = ["0 complete-job done", "0 settle-usage done", "1 complete-job noop", "1 settle-usage noop"];
    assert_eq!(states(&world, "msg_1").await, by_hand);
    audit(&world);
}

#[test]
fn what_a_profile_may_not_say_of_items_forwards_and_bookings_is_refused_with_the_remedy() {
    let refused = |more: &str| Profiles::parse(&profile("beta", "standard-webhooks", more)).unwrap_err().to_string();
    let like_acme = |more: &str| format!("event_id = \"signed-id\"\n{LIKE_ACME}\n{more}");
    for (more, says) in [
        ("event_id = \"signed-id\"\nevent_type = \"item:/type\"".to_owned(), "needs `items`"),
        (like_acme("item_id = \"item:/id\""), "`item_id` needs `items`"),
        (like_acme("items = \"/events\"\nitem_id = \"body:/id\""), "write \"item:/...\""),
        (like_acme("items = \"events\""), "begins with '/'"),
        ("event_id = \"item:/id\"\nitems = \"/events\"\nevent_type = \"body:/type\"".to_owned(), "are the delivery's"),
        (like_acme("events.\"x\" = { operations = [\"forward\"] }"), "forward needs `forward ="),
        (
            like_acme("forward = { to = \"https://sqs.example/q\" }\nevents.\"x\" = { operations = [\"forward\"] }"),
            "sqs:VARIABLE",
        ),
        (
            like_acme(
                "forward = { to = \"sqs:Q\", action_key = [\"body:/a\", \"body:/b\", \"body:/c\"] }\nevents.\"x\" = { operations = [\"forward\"] }",
            ),
            "at most 2",
        ),
        (like_acme("events.\"x\" = { operations = [\"create-job\"] }"), "create-job needs the field `booking`"),
        (like_acme("data = { \"\" = \"body:/a\" }"), "1 to 64 bytes"),
    ] {
        let error = refused(&more);
        assert!(error.contains(says) && error.contains("beta"), "{says}: {error}");
    }
}

/// Adyen's published notification (the vector adyen-1), whose item is wrapped and signed by itself.
const ADYEN: &str = r#"{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="},"amount":{"value":1130,"currency":"EUR"},"pspReference":"7914073381342284","eventCode":"AUTHORISATION","merchantAccountCode":"TestMerchant","merchantReference":"TestPayment-1407325143704","paymentMethod":"visa","success":"true"}}]}"#;

#[tokio::test(start_paused = true)]
async fn adyens_items_leave_each_under_its_own_key_and_one_unsigned_item_refuses_them_all() {
    let more = r#"
event_id = ["body:/notificationItems"]
items = "/notificationItems"
event_type = "item:/NotificationRequestItem/eventCode"
fields = { reference = "item:/NotificationRequestItem/pspReference", currency = "item:/NotificationRequestItem/amount/currency", minor_amount = "item:/NotificationRequestItem/amount/value" }
forward = { to = "sqs:HOOKLEDGER_FORWARD_QUEUE_URL", action_key = ["item:/NotificationRequestItem/pspReference"] }
events."AUTHORISATION" = { operations = ["forward"] }
"#;
    let secret = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";
    let mut config = config(&[profile("beta", "adyen", more)], &[("beta", secret)]);
    config.addresses =
        [(crate::forward::VARIABLE.to_owned(), "https://sqs.example/1/forwarded.fifo".to_owned())].into();
    let world = crate::forward::world_of(config).await;
    let post = |body: &str| crate::sender::binary(&world, "beta", Vec::new(), body.as_bytes());
    // A second item that nobody signed.
    let unsigned = ADYEN.replace("}}]}", "}},{\"NotificationRequestItem\":{\"eventCode\":\"AUTHORISATION\"}}]}");
    assert_ne!(unsigned, ADYEN);
    assert_eq!(deliver(&world, &post(&unsigned)).await, said(401, "invalid-signature"));
    assert_eq!(deliver(&world, &post(ADYEN)).await, said(202, "accepted"));
    assert_eq!(deliver(&world, &post(ADYEN)).await, said(200, "duplicate"));
    world.drain().await.unwrap();
    let sent = crate::forward::arrived(&world);
    assert_eq!(sent.len(), 1);
    let body = &sent[0].0;
    assert_eq!(body["key"], "@action|beta|AUTHORISATION|7914073381342284");
    assert_eq!((&body["item"], &body["amount"], &body["currency"]), (&json!("0"), &json!("11.300000"), &json!("EUR")));
}
