//! How many items, how much of them, and what a large delivery costs at once.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_hundred_items_are_taken_and_one_more_is_quarantined_as_a_whole() {
    let world = world_of(BATCHED).await;
    let items = |count: usize| (0..count).map(|n| completed(&format!("i{n}"), &format!("j{n}"))).collect::<Vec<_>>();
    let event = beta().event(&world, "msg_1", batch(&items(100)));
    assert_eq!(deliver(&world, &event).await, said(202, "accepted"));
    assert_eq!(states(&world, "msg_1").await.len(), 200);
    assert_eq!(beta().send(&world, "msg_2", batch(&items(101))).await, said(200, "quarantined"));
    let (_, shown) = explain(&world, "beta", "msg_2").await;
    assert_eq!((&shown["reason"], &shown["operations"]), (&json!("too-large"), &json!([])));
    assert_eq!(beta().send(&world, "msg_3", batch(&[])).await, said(200, "ignored"));
    assert_eq!(beta().send(&world, "msg_4", r#"{"events":{}}"#).await, said(200, "quarantined"));
}

#[tokio::test(start_paused = true)]
async fn items_too_large_for_one_receipt_are_quarantined_and_the_evidence_is_kept() {
    // Ten named values of at most 1,000 bytes make 100 items far more than DynamoDB's 400 KB, though the
    // body, which says each once, is small.
    let named: Vec<String> = (0..10).map(|n| format!("d{n} = \"body:/text\"")).collect();
    let world = world_of(&format!("{BATCHED}\ndata = {{ {} }}", named.join(", "))).await;
    let body = |count: usize| {
        let items: Vec<Value> = (0..count).map(|n| completed(&format!("i{n}"), "j1")).collect();
        json!({"tenant": "t1", "text": "x".repeat(1_000), "events": items}).to_string()
    };
    assert!(body(100).len() < 20_000, "{}", body(100).len());
    assert_eq!(beta().send(&world, "msg_1", body(100)).await, said(200, "quarantined"));
    assert_eq!(explain(&world, "beta", "msg_1").await.1["reason"], "too-large");
    // 25 items are 250 KB, and a receipt of that size is written.
    assert_eq!(beta().send(&world, "msg_2", body(25)).await, said(202, "accepted"));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_down_costs_a_large_delivery_one_round_of_sends() {
    let down = Rule::always("SendMessage", &[], crate::harness::unreachable());
    let world = world_of(BATCHED).await;
    world.aws.add_hook(down.clone());
    let items: Vec<Value> = (0..40).map(|n| completed(&format!("i{n}"), &format!("j{n}"))).collect();
    assert_eq!(beta().send(&world, "msg_1", batch(&items)).await, said(202, "accepted"));
    // 25 side by side, each tried three times by the SDK at most; the other 55 are the relay's.
    assert!((25..=75).contains(&down.hits()), "{}", down.hits());
    down.stop();
    world.minutes(4).await.unwrap();
    let states = states(&world, "msg_1").await;
    assert!(states.iter().all(|state| state.ends_with(" retrying")), "each waits for its job: {states:?}");
}
