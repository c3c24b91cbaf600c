//! The board saves and times out, loses requests, refuses, is down: one job there at most, and here the truth or a review.

use super::*;

async fn after(rules: &str, life_ms: i64, faults: &[Fault]) -> (Arc<World>, JobBoard) {
    let (world, board) = world_of(rules, life_ms).await;
    board.script(faults);
    book(&world, "b_1", 1).await;
    world.minutes(10).await.unwrap();
    (world, board)
}

#[tokio::test(start_paused = true)]
async fn a_create_that_was_saved_and_then_timed_out_is_found_again() {
    for faults in [&[Fault::SavesThenTimesOut][..], &[Fault::SavesThenTimesOut, Fault::SavesThenTimesOut]] {
        // By the key, with the same bytes.
        let (world, board) = after(KEYED, 2 * HOUR_MS, faults).await;
        assert_eq!((went(&world, 1).await.as_str(), board.versions()), ("done already-done", vec![vec![1]]));
        let sent = board.sent();
        assert_eq!(sent.len(), faults.len() + 1);
        assert!(sent.iter().all(|call| call.body == sent[0].body && call.headers == sent[0].headers));
        // By a look-up, at once and with nothing sent again; the id that it finds is the job's.
        let (world, board) = after(LOOKUP, 0, &faults[..1]).await;
        assert_eq!((went(&world, 1).await.as_str(), board.lines().len()), ("done -", 1));
        assert_eq!(world.job("booking-b1").await["provider_job_ref"], "job/0");
        book(&world, "b_2", 2).await;
        world.minutes(2).await.unwrap();
        assert_eq!(board.versions(), [[1, 2]]);
    }
}

/// With neither keys nor look-up it is a person's, and no update goes before the person has decided.
#[tokio::test(start_paused = true)]
async fn an_unknown_create_is_a_persons_and_its_updates_wait() {
    for (fault, jobs) in [(Fault::SavesThenTimesOut, 1), (Fault::LostBefore, 0)] {
        let (world, board) = after("", 0, &[fault]).await;
        assert_eq!(went(&world, 1).await, "needs-review unknown-outcome");
        book(&world, "b_2", 2).await;
        world.minutes(5).await.unwrap();
        assert_eq!(went(&world, 2).await, "retrying not-yet");
        assert_eq!((board.lines().len(), board.jobs().len()), (1, jobs));
        // Closed: nobody here knows the board's id, so there is nothing to update, and that is said.
        decide(&world, 1, json!({"action": "close", "reason": "looked"})).await;
        world.minutes(15).await.unwrap();
        assert_eq!(went(&world, 2).await, "needs-review not-possible");
        assert_eq!((board.lines().len(), board.jobs().len()), (1, jobs));
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_declined_is_a_persons_and_never_a_second_job() {
    let (world, board) = after(KEYED, 2 * HOUR_MS, &[Fault::Declines]).await;
    assert_eq!((went(&world, 1).await.as_str(), board.jobs().len()), ("needs-review declined", 0));
    book(&world, "b_2", 2).await;
    world.minutes(5).await.unwrap();
    assert_eq!((went(&world, 2).await.as_str(), board.lines().len()), ("retrying not-yet", 1));
}

#[tokio::test(start_paused = true)]
async fn while_the_board_is_down_everything_waits_and_then_goes_in_order() {
    let (world, board) = world_of(KEYED, 2 * HOUR_MS).await;
    board.down(true);
    for (id, version) in [("b_1", 1), ("b_2", 2), ("b_3", 3)] {
        book(&world, id, version).await;
        world.minutes(3).await.unwrap();
    }
    assert_eq!(board.lines(), [""; 0]);
    // The booking itself is taken in: the board holds up no money.
    assert_eq!(balance(&world, "w1").await, ("95.000000".to_owned(), "5.000000".to_owned()));
    assert_eq!(state(&world, "b_3", CreateJob).await.0, "done");
    board.down(false);
    world.minutes(60).await.unwrap();
    assert_eq!(board.lines(), ["POST /v1/jobs", "PUT /v1/jobs/job%2F0", "PUT /v1/jobs/job%2F0"]);
    assert_eq!((board.versions(), board.jobs()), (vec![vec![1, 2, 3]], vec![said(3)]));
    assert_eq!(reviews(&world).await, [""; 0]);
}

/// A PUT does the same however often it arrives: it is sent again whether keys are known or not, and the next version
/// waits for it.
#[tokio::test(start_paused = true)]
async fn an_update_whose_answer_is_lost_is_sent_again_before_the_next_version() {
    for (rules, life_ms) in [(KEYED, 2 * HOUR_MS), (LOOKUP, 0), ("", 0)] {
        let (world, board) = world_of(rules, life_ms).await;
        board.script(&[Fault::None, Fault::SavesThenTimesOut, Fault::LostBefore]);
        for (id, version) in [("b_1", 1), ("b_2", 2), ("b_3", 3)] {
            book(&world, id, version).await;
            world.drain().await.unwrap();
        }
        world.minutes(30).await.unwrap();
        assert_eq!((board.versions(), board.jobs()), (vec![vec![1, 2, 2, 3]], vec![said(3)]), "{rules}");
        assert_eq!(board.lines().len(), 5);
        assert_eq!(reviews(&world).await, [""; 0]);
    }
}

/// A PATCH may do more each time: without a key that is known, its unknown outcome is a person's.
#[tokio::test(start_paused = true)]
async fn an_update_that_may_not_be_repeated_is_a_persons() {
    let mut config = config("");
    config.providers = config.providers.replace("update = { path", "update = { method = \"PATCH\", path");
    let (world, board) = world_with(config, 0).await;
    board.script(&[Fault::None, Fault::LostBefore]);
    book(&world, "b_1", 1).await;
    world.drain().await.unwrap();
    book(&world, "b_2", 2).await;
    world.minutes(10).await.unwrap();
    assert_eq!(board.lines(), ["POST /v1/jobs", "PATCH /v1/jobs/job%2F0"]);
    assert_eq!(went(&world, 2).await, "needs-review unknown-outcome");
}

/// A replay sends nothing: no second job past the life of the key, and no old version over a new one.
#[tokio::test(start_paused = true)]
async fn a_replay_makes_no_second_job_and_brings_no_old_version_back() {
    let (world, board) = world_of(KEYED, HOUR_MS).await;
    book(&world, "b_1", 1).await;
    world.drain().await.unwrap();
    book(&world, "b_2", 2).await;
    world.drain().await.unwrap();
    world.clock.advance(3 * HOUR_MS);
    let replay = json!({
        "events": ["own/board.job|t1|b1|1", "own/board.job|t1|b1|2", "acme/b_1"], "reference": "r-1", "reason": "drill",
    });
    let (status, told) = world.control("POST", "/control/replays", Some(replay)).await;
    assert_eq!(status, 200, "{told}");
    let became: Vec<&str> = told["events"].as_array().unwrap()[..2]
        .iter()
        .flat_map(|event| event["operations"].as_array().unwrap())
        .map(|operation| operation["became"].as_str().unwrap())
        .collect();
    assert_eq!(became, ["finished", "finished"], "what is said is what happens: {told}");
    world.minutes(5).await.unwrap();
    assert_eq!((board.versions(), board.lines().len()), (vec![vec![1, 2]], 2));
    assert_eq!((went(&world, 1).await.as_str(), went(&world, 2).await.as_str()), ("done -", "done -"));
}
