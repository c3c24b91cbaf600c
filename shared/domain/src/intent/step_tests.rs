#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]
use super::*;
use crate::event::By;
use crate::ids::ItemId;
use crate::outcome::{Match, Meaning};

const HOUR: i64 = 3_600_000;
const T0: i64 = 1_000 * HOUR;

fn fresh() -> Intent {
    let by = By { event: "acme/e1".parse().unwrap(), item: ItemId::only() };
    let json = serde_json::json!({
        "k": "acme|e1|-|outbound|forward", "by": by, "to": "http:d", "rq": "{}", "gr": "g", "hs": "h", "st": "pending",
        "cr": T0, "rv": 1,
    });
    serde_json::from_value(json).unwrap()
}

fn keyed() -> Rules {
    Rules { key: KeyLife::For { life_ms: 24 * HOUR, margin_ms: HOUR }, ..Rules::of_queue() }
}

fn keyless() -> Rules {
    Rules { key: KeyLife::None, ..keyed() }
}

fn looking(rules: Rules) -> Rules {
    Rules { lookup: Some(LookUp { settles_after_ms: 60_000, ..LookUp::default() }), ..rules }
}

fn lost() -> Answer {
    Answer::Lost("no answer in time".to_owned())
}

fn sent(intent: &Intent, at: i64) -> Intent {
    intent.submitted(at, format!("token-{at}"))
}

fn step(intent: &Intent, rules: &Rules, at: i64) -> &'static str {
    match next(intent, rules, at, None) {
        Step::Done => "done",
        Step::Send => "send",
        Step::LookUp => "look-up",
        Step::Wait(..) => "wait",
        Step::Review(class, _) => match class {
            Class::UnknownOutcome => "review",
            Class::Conflict => "review key",
            Class::Declined => "review declined",
            _ => panic!("{class:?}"),
        },
    }
}

/// What follows each answer to a first try, a minute after it: keys known, and what else the rules say.
#[test]
fn what_follows_each_answer() {
    let stored = Rules { replays_errors: true, ..keyed() };
    let status = |status| Answer::Status { status, body: Some(Vec::new()) };
    let rules = |base: Rules| Rules {
        answers: vec![
            (Meaning::Final, Match::statuses(200, 299)),
            (Meaning::Failed, Match::statuses(402, 402)),
            (Meaning::InProgress, Match::statuses(409, 409)),
            (Meaning::KeyReused, Match::statuses(422, 422)),
        ],
        ..base
    };
    // answer, keyed, keyed with look-up, keyless, keyless with look-up, stored errors, stored errors with look-up
    let table: [(Answer, [&str; 6]); 7] = [
        (Answer::NotSent(String::new()), ["send"; 6]),
        (status(200), ["done"; 6]),
        (status(402), ["review declined"; 6]),
        (status(422), ["review key"; 6]),
        (status(409), ["send", "send", "review", "look-up", "send", "send"]),
        (lost(), ["send", "send", "review", "look-up", "send", "send"]),
        (status(500), ["send", "send", "review", "look-up", "review", "look-up"]),
    ];
    for (answer, expected) in table {
        let all = [keyed(), looking(keyed()), keyless(), looking(keyless()), stored.clone(), looking(stored.clone())];
        let seen = all.map(|base| {
            let rules = rules(base);
            let after = observed(&sent(&fresh(), T0), &rules, 1, &answer, T0 + 1);
            step(&after, &rules, T0 + 60_000)
        });
        assert_eq!(seen, expected, "{answer:?}");
    }
}

#[test]
fn the_life_of_a_key_counts_from_the_first_sending() {
    let first = observed(&sent(&fresh(), T0), &keyed(), 1, &lost(), T0);
    let second = observed(&sent(&first, T0 + 20 * HOUR), &keyed(), 2, &lost(), T0 + 20 * HOUR);
    assert_eq!((second.first_sent_ms, second.last_sent_ms), (Some(T0), Some(T0 + 20 * HOUR)));
    for (rules, past) in [(keyed(), "review"), (looking(keyed()), "look-up")] {
        assert_eq!(step(&second, &rules, T0 + 23 * HOUR - 1), "send");
        assert_eq!(step(&second, &rules, T0 + 23 * HOUR), past);
    }
    // What surely did nothing is sent whatever became of the key.
    let refused = observed(&sent(&fresh(), T0), &keyed(), 1, &Answer::NotSent(String::new()), T0);
    assert_eq!(step(&refused, &keyed(), T0 + 100 * HOUR), "send");
}

#[test]
fn a_try_without_an_end_is_somebodys_at_work_and_then_unknown() {
    let under_way = sent(&fresh(), T0);
    assert_eq!(
        next(&under_way, &keyed(), T0 + 1, None),
        Step::Wait(T0 + IN_FLIGHT_MS, "a try is under way, or ended without a word".to_owned())
    );
    assert_eq!(step(&under_way, &keyed(), T0 + IN_FLIGHT_MS), "send");
    assert_eq!(step(&under_way, &keyless(), T0 + IN_FLIGHT_MS), "review");
    assert_eq!(step(&under_way, &looking(keyless()), T0 + IN_FLIGHT_MS), "look-up");
    // A later try that surely did nothing says nothing of the one before.
    let again = sent(&under_way, T0 + HOUR);
    assert_eq!(again.state, IntentState::Uncertain);
    let down = observed(&again, &keyless(), 2, &Answer::NotSent(String::new()), T0 + HOUR);
    assert_eq!((down.state, step(&down, &keyless(), T0 + 2 * HOUR)), (IntentState::Uncertain, "review"));
}

#[test]
fn states_go_forward_only_and_what_is_late_is_counted() {
    let rules = Rules {
        answers: vec![(Meaning::Final, Match::statuses(200, 200)), (Meaning::Failed, Match::statuses(402, 402))],
        ..keyed()
    };
    let (ok, no) = (Answer::Status { status: 200, body: None }, Answer::Status { status: 402, body: None });
    let first = observed(&sent(&fresh(), T0), &rules, 1, &lost(), T0);
    let second = sent(&first, T0 + HOUR);
    // The first try's loss is told only now: an older status.
    let late = observed(&second, &rules, 1, &no, T0 + HOUR);
    assert_eq!((late.state, late.late, late.last_told()), (IntentState::Uncertain, 1, None));
    // The first try's success is the truth, whichever try is under way.
    let truth = observed(&second, &rules, 1, &ok, T0 + HOUR);
    assert_eq!((truth.state, truth.sent_ms), (IntentState::Settled, Some(T0 + HOUR)));
    for answer in [&ok, &no, &lost()] {
        let after = observed(&truth, &rules, 2, answer, T0 + 2 * HOUR);
        assert_eq!((after.state, after.late, &after.result), (IntentState::Settled, 1, &truth.result), "{answer:?}");
        assert_eq!(after.revision, truth.revision + 1, "recorded");
    }
    let failed = observed(&sent(&fresh(), T0), &rules, 1, &no, T0);
    let told = observed(&failed, &rules, 1, &ok, T0 + 1);
    assert_eq!((told.state, told.late_settled), (IntentState::Failed, true));
    let Step::Review(Class::Declined, note) = next(&told, &rules, T0, None) else { panic!("{told:?}") };
    assert!(note.contains("a later answer said that it was done"), "{note}");
}

#[test]
fn a_miss_proves_nothing_until_the_last_sending_has_settled() {
    let rules = looking(keyless());
    let lookup = rules.lookup.clone().unwrap();
    let unsure = observed(&sent(&fresh(), T0), &rules, 1, &lost(), T0 + 5_000);
    let at = |seen: Seen, now: i64| looked(&unsure, &rules, &lookup, seen, now);
    assert!(matches!(at(Seen::Absent, T0 + 59_999), Found::Wait(until, _) if until == T0 + 60_000));
    assert_eq!(at(Seen::Absent, T0 + 60_000), Found::Send);
    assert!(matches!(at(Seen::Pending, T0 + HOUR), Found::Unclear(_)));
    assert!(matches!(at(Seen::Unclear("x".to_owned()), T0 + HOUR), Found::Unclear(_)));
    let Found::Change(found) = at(Seen::Settled(Some("j1".to_owned())), T0 + 6_000) else { panic!() };
    assert_eq!((found.state, found.result.unwrap().id.as_deref()), (IntentState::Settled, Some("j1")));
    let Found::Change(void) = at(Seen::Failed, T0 + 6_000) else { panic!() };
    assert_eq!(void.state, IntentState::Failed);
}

#[test]
fn a_stored_error_that_nothing_stands_behind_is_a_persons_while_the_key_lives() {
    let rules = Rules { replays_errors: true, ..looking(keyed()) };
    let lookup = rules.lookup.clone().unwrap();
    let error = observed(&sent(&fresh(), T0), &rules, 1, &Answer::Status { status: 500, body: None }, T0);
    assert!(matches!(
        looked(&error, &rules, &lookup, Seen::Absent, T0 + HOUR),
        Found::Review(Class::UnknownOutcome, _)
    ));
    assert_eq!(looked(&error, &rules, &lookup, Seen::Absent, T0 + 24 * HOUR), Found::Send);
}

#[test]
fn an_approval_is_one_sending() {
    let rules = keyless();
    let unsure = observed(&sent(&fresh(), T0), &rules, 1, &lost(), T0);
    assert_eq!(next(&unsure, &rules, T0 + HOUR, Some(T0 + HOUR)), Step::Send);
    let again = observed(&sent(&unsure, T0 + 2 * HOUR), &rules, 2, &lost(), T0 + 2 * HOUR);
    assert!(matches!(next(&again, &rules, T0 + 3 * HOUR, Some(T0 + HOUR)), Step::Review(Class::UnknownOutcome, _)));
}

#[test]
fn what_was_stored_before_there_were_tries_is_read() {
    for (old, state) in [("prepared", IntentState::Pending), ("sent", IntentState::Settled)] {
        let mut json = serde_json::to_value(fresh()).unwrap();
        json["st"] = old.into();
        for member in ["at", "rv", "lt"] {
            json.as_object_mut().unwrap().remove(member);
        }
        let read: Intent = serde_json::from_value(json).unwrap();
        assert_eq!((read.state, read.attempts, read.revision), (state, 0, 0));
    }
}
