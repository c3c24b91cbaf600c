//! Copies, other orders, and several at the same moment: one job, and no older version over a newer one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::operation::Consumer;
use local::hook::{Call, CallHook, HookDecision};
use tokio::join;

use super::*;
use crate::money::scene::meanwhile;

#[tokio::test(start_paused = true)]
async fn copies_and_older_versions_are_no_requests() {
    let (world, board) = world_of(KEYED, 2 * HOUR_MS).await;
    for (id, version) in [("b_2", 2), ("b_2b", 2), ("b_4", 4), ("b_3", 3), ("b_1", 1), ("b_4b", 4)] {
        book(&world, id, version).await;
        world.drain().await.unwrap();
    }
    assert_eq!((board.versions(), board.lines().len()), (vec![vec![2, 4]], 2));
    for id in ["b_3", "b_1"] {
        assert_eq!(state(&world, id, CreateJob).await, ("noop".to_owned(), "superseded".to_owned()), "{id}");
    }
    let path = "/control/events/own/board.job~7Ct1~7Cb1~7C3";
    assert_eq!(world.control("GET", path, None).await.0, 404, "what is superseded tells the board nothing");
}

#[tokio::test(start_paused = true)]
async fn versions_at_the_same_moment_are_one_job_and_its_updates_in_order() {
    let (world, board) = world_of(KEYED, 2 * HOUR_MS).await;
    for (id, version) in [("b_1", 1), ("b_1b", 1), ("b_2", 2), ("b_3", 3)] {
        taken_in(&world, id, &booked(version, &format!("as of {version}"))).await;
    }
    join!(
        work(&world, "b_3", CreateJob),
        work(&world, "b_1", CreateJob),
        work(&world, "b_2", CreateJob),
        work(&world, "b_1b", CreateJob),
        work(&world, "b_1", CreateJob)
    );
    world.minutes(15).await.unwrap();
    let versions = board.versions();
    assert_eq!(versions.len(), 1, "one job");
    assert!(versions[0].is_sorted() && versions[0].last() == Some(&3), "{versions:?}");
    assert_eq!(board.lines().iter().filter(|line| line.starts_with("POST")).count(), 1);
    assert_eq!(board.jobs(), [said(3)]);
    assert_eq!(reviews(&world).await, [""; 0]);
}

/// Holds back the transaction that puts a version.
#[derive(Debug)]
struct Late {
    version: &'static str,
    seen: AtomicUsize,
}

impl CallHook for Late {
    fn on_call(&self, call: &Call) -> HookDecision {
        let text = String::from_utf8_lossy(&call.body);
        let put = call.operation == "TransactWriteItems" && text.contains(self.version);
        if put && self.seen.fetch_add(1, Ordering::SeqCst) == 0 {
            return HookDecision::Delay(Duration::from_millis(500), Box::new(HookDecision::Pass));
        }
        HookDecision::Pass
    }
}

/// Version 2 was decided while 1 stood, and is written after 3: it is nothing then, and 3 is what the board shows.
#[tokio::test(start_paused = true)]
async fn an_older_version_that_is_committed_late_has_no_effect() {
    let (world, board) = world_of(KEYED, 2 * HOUR_MS).await;
    book(&world, "b_1", 1).await;
    world.drain().await.unwrap();
    for (id, version) in [("b_2", 2), ("b_3", 3)] {
        taken_in(&world, id, &booked(version, &format!("as of {version}"))).await;
    }
    let late = Arc::new(Late { version: "b|0000000002", seen: AtomicUsize::new(0) });
    world.aws.add_hook(late.clone());
    join!(work(&world, "b_2", CreateJob), async {
        meanwhile().await;
        assert_eq!(late.seen.load(Ordering::SeqCst), 1, "version 2 is on its way");
        work(&world, "b_3", CreateJob).await;
    });
    world.minutes(5).await.unwrap();
    assert_eq!(state(&world, "b_2", CreateJob).await, ("noop".to_owned(), "superseded".to_owned()));
    assert_eq!((board.versions(), board.jobs()), (vec![vec![1, 3]], vec![said(3)]));
}

/// The update's message comes first, and comes again: it waits for the create, and is sent once.
#[tokio::test(start_paused = true)]
async fn an_update_before_the_create_is_settled_waits_for_it() {
    let (world, board) = world_of(KEYED, 2 * HOUR_MS).await;
    board.down(true);
    for (id, version) in [("b_1", 1), ("b_2", 2)] {
        taken_in(&world, id, &booked(version, &format!("as of {version}"))).await;
        work(&world, id, CreateJob).await;
    }
    purge(&world);
    assert_eq!(depths(&world, Consumer::Outbound), (0, 0));
    board.down(false);
    let app = runtime::App::clone(&world.stack.app).calling(Arc::new(board.clone()));
    let send = async |version: u32| {
        let key = domain::board::operation(&format!("board.job|t1|b1|{version}").try_into().unwrap()).unwrap();
        let body = domain::message::Message::new(key, 0, "g".to_owned()).to_json();
        let attributes =
            runtime::sqs::SqsAttributes { message_group_id: "g".to_owned(), approximate_receive_count: "1".to_owned() };
        let records = vec![runtime::sqs::SqsRecord { message_id: "m".to_owned(), body, attributes }];
        assert_eq!(failures(outbound::handle(&app, runtime::sqs::SqsEvent { records }).await), [""; 0]);
    };
    send(2).await;
    assert_eq!((went(&world, 2).await.as_str(), board.lines().len()), ("retrying not-yet", 0));
    send(1).await;
    assert_eq!(board.lines(), ["POST /v1/jobs"]);
    send(1).await;
    world.minutes(10).await.unwrap();
    assert_eq!((board.versions(), board.lines().len()), (vec![vec![1, 2]], 2));
}

/// A version that was taken in by a rule without a board tells it nothing; the next one, by a rule that names the board, makes
/// the job there.
#[tokio::test(start_paused = true)]
async fn a_booking_from_before_the_board_was_named_is_made_there_by_its_next_version() {
    let mut config = config(KEYED);
    let line = "[providers.acme.events.\"booking.created\"]\n";
    let (before, behind) = config.providers.split_once(line).unwrap();
    let fields = behind.lines().find(|line| line.starts_with("fields = ")).unwrap();
    let plain = format!("[providers.acme.events.imported]\noperations = [\"create-job\"]\n{fields}\n\n");
    config.providers = format!("{before}{plain}{line}{behind}");
    let (world, board) = world_with(config, 2 * HOUR_MS).await;
    accepted(&world, "b_1", &booked(1, "as of 1").replace("booking.created", "imported")).await;
    world.drain().await.unwrap();
    let (_, shown) = world.control("GET", "/control/tenants/t1/bookings/b1", None).await;
    assert_eq!((shown["versions"][0].get("board"), board.lines().len()), (None, 0));
    for (id, version) in [("b_2", 2), ("b_3", 3)] {
        book(&world, id, version).await;
        world.drain().await.unwrap();
    }
    assert_eq!(board.lines(), ["POST /v1/jobs", "PUT /v1/jobs/job%2F0"]);
    assert_eq!(board.versions(), [[2, 3]]);
    assert_eq!(world.job("booking-b1").await["provider_job_ref"], "job/0");
}
