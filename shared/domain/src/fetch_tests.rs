//! Who waits for what, and how an event is completed.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::*;
use crate::price::Quantity;

fn usage(tokens: &str) -> Usage {
    [("input_tokens".to_owned(), Quantity::parse(tokens).unwrap())].into()
}

fn told() -> Envelope {
    Envelope { provider_ref: Some("p-1".parse().unwrap()), outcome: Some(Outcome::Success), ..Envelope::default() }
}

fn fetched(envelope: Envelope) -> Fetched {
    Fetched { from: "http:api".to_owned(), at_ms: 5, gave: Vec::new(), envelope }
}

#[test]
fn a_missing_usage_stays_beside_what_the_event_told_and_a_thin_event_becomes_whole() {
    let found = Envelope { usage: Some(usage("7")), sequence: Some(3), ..Envelope::default() };
    let missing = Envelope { fetch: Some(When::UsageMissing), ..told() }.completed_by(fetched(found.clone()));
    assert_eq!((missing.usage.as_ref(), missing.sequence), (None, None));
    assert_eq!(missing.billed_usage(), Some(&usage("7")));
    let thin = Envelope { fetch: Some(When::Always), ..told() }.completed_by(fetched(found));
    assert_eq!((thin.usage.as_ref(), thin.sequence), (Some(&usage("7")), Some(3)));
}

/// What the event told stands: its usage, and a usage that cannot be read as well.
#[test]
fn nothing_that_was_told_is_overwritten() {
    let found = Envelope {
        usage: Some(usage("9")),
        amount: Some(1),
        provider_ref: Some("p-1".parse().unwrap()),
        ..Envelope::default()
    };
    let whole = Envelope { usage: Some(usage("7")), amount: Some(2), ..told() };
    let completed = whole.clone().filled_by(&found);
    assert_eq!((completed.usage, completed.amount), (Some(usage("7")), Some(2)));
    assert_eq!(found.clone().beyond(&whole), Envelope::default());
    let unreadable = Envelope { usage_problem: "negative".to_owned(), ..told() };
    assert_eq!(unreadable.clone().filled_by(&found).usage, None);
    assert_eq!(found.beyond(&unreadable).usage, None);
}

#[test]
fn another_identity_is_named_and_its_value_is_not() {
    let other = |change: fn(&mut Envelope)| {
        let mut found = told();
        change(&mut found);
        differs(&told(), &found)
    };
    assert_eq!(other(|_| {}), None);
    assert_eq!(other(|found| found.provider_ref = Some("p-2".parse().unwrap())), Some("ref"));
    assert_eq!(other(|found| found.provider_ref = None), None, "an answer need not repeat it");
    assert_eq!(other(|found| found.tenant = Some("t2".parse().unwrap())), None, "the event does not say whose");
}

#[test]
fn only_what_needs_it_waits_and_only_until_it_is_there_or_given_up() {
    use OperationName::{CompleteJob, Fetch, Forward, SettleUsage};
    assert!(When::UsageMissing.holds(SettleUsage));
    assert!([CompleteJob, Forward, Fetch].iter().all(|name| !When::UsageMissing.holds(*name)));
    assert!([CompleteJob, SettleUsage, Forward].iter().all(|name| When::Always.holds(*name)));
    assert!(!When::Always.holds(Fetch));
}

fn record(state: OperationState, class: Class) -> OperationRecord {
    let change = crate::operation::Change {
        state,
        class,
        note: "no JSON".to_owned(),
        due_ms: Some(9),
        generation: 1,
        resend: false,
        attempts: 3,
    };
    let key = key(&"acme/e".parse().unwrap(), &ItemId::only());
    OperationRecord::next(key, None, change, 5, "token".to_owned())
}

#[test]
fn the_note_of_what_waits_says_how_its_fetch_stands() {
    use OperationState::{Review, Wait};
    let event: EventRef = "acme/e".parse().unwrap();
    let envelope = Envelope { fetch: Some(When::UsageMissing), ..told() };
    let receipt = crate::own::receipt(event, "job.completed", envelope, Vec::new(), 5);
    let settle = OperationName::SettleUsage;
    let said = |state| awaits(&receipt, settle, Some(&record(state, Class::Unreadable)));
    let waits = |why: &str| Some(Awaited::Fetch(why.to_owned()));
    assert_eq!(awaits(&receipt, OperationName::CompleteJob, None), None);
    assert_eq!(awaits(&receipt, settle, None), waits("what the event lacks is fetched first"));
    assert_eq!(said(Wait), waits("what the event lacks is not fetched yet; unreadable: no JSON"));
    let review = "what the event lacks was not fetched, a person decides on `fetch`; unreadable: no JSON";
    assert_eq!(said(Review), waits(review));
    let found = fetched(Envelope { usage: Some(usage("7")), ..Envelope::default() });
    let whole = receipt.clone().with_fetched(vec![(ItemId::only(), found)]);
    assert_eq!(awaits(&whole, settle, Some(&record(Wait, Class::NotYet))), None);
}

/// A record that was closed because the answer is there is no person's decision, though that answer was not read yet.
#[test]
fn only_a_person_gives_a_fetch_up_and_then_what_the_event_says_decides() {
    use OperationState::Closed;
    let receipt = |envelope| crate::own::receipt("acme/e".parse().unwrap(), "job.completed", envelope, Vec::new(), 5);
    let (settle, given_up) = (OperationName::SettleUsage, record(Closed, Class::Dismissed));
    let missing = receipt(Envelope { fetch: Some(When::UsageMissing), ..told() });
    let done = awaits(&missing, settle, Some(&record(Closed, Class::AlreadyDone)));
    assert_eq!(done, Some(Awaited::Fetch("what the event lacked was just fetched".to_owned())));
    assert_eq!(awaits(&missing, settle, Some(&given_up)), None, "a success without usage is decided as ever");
    // Of a thin one too little is known to do anything, unless it names its job itself.
    let thin = receipt(Envelope { fetch: Some(When::Always), provider_ref: None, ..told() });
    let note = "the event has no `ref (or tenant and job)`, and its fetch was closed: close this too";
    for name in [OperationName::CompleteJob, settle] {
        assert_eq!(awaits(&thin, name, Some(&given_up)), Some(Awaited::GivenUp(note.to_owned())));
    }
    assert_eq!(awaits(&thin, OperationName::Forward, Some(&given_up)), None);
    let named = receipt(Envelope { fetch: Some(When::Always), ..told() });
    assert_eq!(awaits(&named, OperationName::CompleteJob, Some(&given_up)), None);
}
