//! What is sent is what the receiver's verifier accepts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use super::*;
use crate::secrets::DEV_ACME_SECRET;

const NOW_MS: i64 = 1_764_417_600_000;

fn profiles() -> Profiles {
    files::profiles(None).unwrap()
}

fn delivery<'a>(profile: &'a Profile, secret: &str, event_type: Option<&str>) -> Delivery<'a> {
    Delivery {
        verifier: verifier(profile, Some(secret.to_owned())).unwrap(),
        event_id: "msg_1".to_owned(),
        event_type: super::event_type(profile, event_type.map(str::to_owned)).unwrap(),
        url: format!("http://127.0.0.1:9000/webhooks/{}", profile.slug),
        body: b"{\"a\":1}".to_vec(),
        profile,
    }
}

fn value(headers: &[(String, String)], name: &str) -> Vec<String> {
    headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone()).collect()
}

#[test]
fn acme_is_signed_with_the_id_the_time_and_the_attempt() {
    let profiles = profiles();
    let sent = delivery(profiles.get("acme").unwrap(), DEV_ACME_SECRET, None);
    let headers = sent.headers(2, NOW_MS).unwrap();
    assert_eq!(value(&headers, "webhook-id"), ["msg_1"]);
    assert_eq!(value(&headers, "webhook-timestamp"), ["1764417600"]);
    assert_eq!(value(&headers, "webhook-attempt"), ["2"]);
    assert_eq!(value(&headers, "content-type"), ["application/json"]);
    let arrived = Headers::new(headers.iter().map(|(name, value)| (name, value)));
    let request = Request { method: "POST", url: None, headers: &arrived, body: b"{\"a\":1}" };
    assert_eq!(sent.verifier.verify(&request, NOW_MS).unwrap().signed_id.unwrap(), "msg_1");
}

#[test]
fn github_gets_its_id_once_and_its_type() {
    let profiles = profiles();
    let sent = delivery(profiles.get("github").unwrap(), "s3cret", Some("push"));
    let headers = sent.headers(1, NOW_MS).unwrap();
    assert_eq!(value(&headers, "x-github-delivery"), ["msg_1"]);
    assert_eq!(value(&headers, "x-github-event"), ["push"]);
    // Computed with another implementation: python3 -c 'import hmac; hmac.new(b"s3cret", b"{\"a\":1}", "sha256")'.
    assert_eq!(
        value(&headers, "x-hub-signature-256"),
        ["sha256=5910e62016ef5034272c926c27071992a465c2335cecf41851bda071577f4f6d"]
    );
}

#[test]
fn an_id_that_stands_in_the_body_cannot_be_given() {
    let (profiles, mut random) = (profiles(), fastrand::Rng::with_seed(1));
    let stripe = profiles.get("stripe").unwrap();
    let Err(CliError::Misuse(text)) = event_id(stripe, Some("evt_1".to_owned()), &mut random) else { panic!("taken") };
    assert!(text.contains("body:/id"), "{text}");
    assert!(event_id(stripe, None, &mut random).is_ok());
    let acme = profiles.get("acme").unwrap();
    assert_eq!(event_id(acme, Some(" x".to_owned()), &mut random).unwrap(), " x");
}

#[test]
fn fresh_ids_are_long_and_differ() {
    let (profiles, mut random) = (profiles(), fastrand::Rng::with_seed(1));
    let acme = profiles.get("acme").unwrap();
    let [one, two] = [(); 2].map(|()| event_id(acme, None, &mut random).unwrap());
    assert!(one.starts_with("msg_") && one.len() == 28 && one != two, "{one} {two}");
}

#[test]
fn a_type_is_asked_for_where_it_is_needed_and_refused_elsewhere() {
    let profiles = profiles();
    assert!(
        matches!(event_type(profiles.get("github").unwrap(), None), Err(CliError::Misuse(text)) if text.contains("--type"))
    );
    assert!(event_type(profiles.get("acme").unwrap(), Some("x".to_owned())).is_err());
}

#[test]
fn an_unusable_secret_is_refused_without_showing_it() {
    let profiles = profiles();
    let refused = verifier(profiles.get("acme").unwrap(), Some("whsec_!!private!!".to_owned()));
    assert!(matches!(refused, Err(CliError::Misuse(text)) if !text.contains("private")));
}

/// A secret's public name is not its variable.
#[test]
fn the_secret_is_read_from_its_variable_and_a_reference_is_no_secret() {
    let rolled = r#"[{ at = "OLD_SECRET", id = "2026-11" }]"#;
    let text = runtime::lambda::PROVIDERS_TOML.replacen(r#"["GITHUB_WEBHOOK_SECRET"]"#, rolled, 1);
    let profiles = Profiles::parse(&text).unwrap();
    let github = profiles.get("github").unwrap();
    let set = |value: &'static str| move |name: &str| (name == "OLD_SECRET").then(|| value.to_owned());
    assert_eq!(secret(github, None, set("s3cret")).unwrap(), ("OLD_SECRET".to_owned(), "s3cret".to_owned()));
    let told = |found| match found {
        Err(CliError::Misuse(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(told(secret(github, None, |_| None)).contains("set OLD_SECRET,"));
    for reference in ["secretsmanager:hooks/github#KEY", "secretsmanager:", "jwks:https://x/y"] {
        let text = told(secret(github, None, set(reference)));
        assert!(text.contains("OLD_SECRET holds a reference") && text.contains("--secret"), "{text}");
        assert!(told(secret(github, Some(reference.to_owned()), |_| None)).contains("--secret holds"));
    }
}

#[test]
fn a_type_that_is_the_content_type_is_not_asked_for() {
    let file = include_str!("../../profiles/braintree.toml");
    let profiles = Profiles::parse(file).unwrap();
    let braintree = profiles.get("braintree").unwrap();
    assert_eq!(event_type(braintree, None).unwrap(), None);
    assert!(event_type(braintree, Some("x".to_owned())).is_err());
}
