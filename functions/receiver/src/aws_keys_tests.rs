//! What the network answers, and what is made of it; the connections alone are fakes.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use runtime::clients::local_config;

use super::*;

type Answer = fn(&str, &str) -> (u16, String);

/// Answers each request by its address and body, and remembers the bodies.
#[derive(Clone)]
struct Wire {
    answer: Answer,
    seen: Arc<Mutex<Vec<String>>>,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = String::from_utf8(request.body().bytes().unwrap_or_default().to_vec()).unwrap();
        let (status, answer) = (self.answer)(request.uri(), &body);
        self.seen.lock().unwrap().push(body);
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(answer))))
    }
}

impl HttpClient for Wire {
    fn http_connector(
        &self, _settings: &HttpConnectorSettings, _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

async fn keys(answer: Answer) -> (AwsKeys, Wire) {
    let wire = Wire { answer, seen: Arc::default() };
    let config = local_config(SharedHttpClient::new(wire.clone()), "https://secrets.invalid").await;
    let keys = AwsKeys::from_config(config);
    keys.https.set(SharedHttpConnector::new(wire.clone())).unwrap();
    (keys, wire)
}

async fn fetched(answer: Answer, place: &str) -> Result<Vec<(&'static str, String)>, FetchError> {
    let (keys, _) = keys(answer).await;
    let values = keys.fetch(&place.parse().unwrap()).await?;
    Ok(values.into_iter().map(|value| (value.version, value.value)).collect())
}

fn error(name: &str) -> (u16, String) {
    (400, format!(r#"{{"__type":"{name}","message":"x"}}"#))
}

#[tokio::test(start_paused = true)]
async fn both_versions_are_fetched_and_the_member_is_picked() {
    let answer: Answer = |_, body| {
        let value = if body.contains("AWSCURRENT") { "new" } else { "old" };
        (200, format!(r#"{{"Name":"hooks/acme","SecretString":"{{\"KEY\":\"{value}\",\"N\":1}}"}}"#))
    };
    let found = fetched(answer, "secretsmanager:hooks/acme#KEY").await.unwrap();
    assert_eq!(found, [("AWSCURRENT", "new".to_owned()), (PREVIOUS, "old".to_owned())]);
    let whole = fetched(answer, "secretsmanager:hooks/acme").await.unwrap();
    assert_eq!(whole[0].1, r#"{"KEY":"new","N":1}"#);
    for member in ["N", "OTHER"] {
        let refused = fetched(answer, &format!("secretsmanager:hooks/acme#{member}")).await;
        assert!(matches!(refused, Err(FetchError::Refused(_))), "{member}");
    }
    let (keys, wire) = keys(answer).await;
    keys.fetch(&"secretsmanager:hooks/acme#KEY".parse().unwrap()).await.unwrap();
    let mut seen = wire.seen.lock().unwrap().clone();
    seen.sort();
    let asked = |stage: &str| format!(r#"{{"SecretId":"hooks/acme","VersionStage":"{stage}"}}"#);
    assert_eq!(seen, [asked("AWSCURRENT"), asked("AWSPREVIOUS")]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_never_rotated_has_one_version() {
    let answer: Answer = |_, body| match body.contains("AWSCURRENT") {
        true => (200, r#"{"SecretString":"plain"}"#.to_owned()),
        false => error("ResourceNotFoundException"),
    };
    assert_eq!(fetched(answer, "secretsmanager:a").await.unwrap(), [("AWSCURRENT", "plain".to_owned())]);
}

/// The version that a rotation replaced spoils nothing where it cannot be used; where it cannot be reached it is unknown.
#[tokio::test(start_paused = true)]
async fn a_previous_version_that_is_refused_is_left_out_and_one_that_does_not_answer_is_not() {
    let refused: [Answer; 2] = [
        |_, body| match body.contains("AWSCURRENT") {
            true => (200, r#"{"SecretString":"plain"}"#.to_owned()),
            false => (200, r#"{"SecretBinary":"AAAA"}"#.to_owned()),
        },
        |_, body| match body.contains("AWSCURRENT") {
            true => (200, r#"{"SecretString":"plain"}"#.to_owned()),
            false => error("AccessDeniedException"),
        },
    ];
    for answer in refused {
        assert_eq!(fetched(answer, "secretsmanager:a").await.unwrap(), [("AWSCURRENT", "plain".to_owned())]);
    }
    let busy: Answer = |_, body| match body.contains("AWSCURRENT") {
        true => (200, r#"{"SecretString":"plain"}"#.to_owned()),
        false => error("ThrottlingException"),
    };
    assert!(matches!(fetched(busy, "secretsmanager:a").await, Err(FetchError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_must_repair_is_told_from_what_passes() {
    let refused: [Answer; 4] = [
        |_, _| error("ResourceNotFoundException"),
        |_, _| error("AccessDeniedException"),
        |_, _| error("InvalidRequestException"),
        |_, _| (200, r#"{"SecretBinary":"AAAA"}"#.to_owned()),
    ];
    for answer in refused {
        assert!(matches!(fetched(answer, "secretsmanager:a").await, Err(FetchError::Refused(_))));
    }
    let passing: [Answer; 2] = [|_, _| error("ThrottlingException"), |_, _| (500, String::new())];
    for answer in passing {
        assert!(matches!(fetched(answer, "secretsmanager:a").await, Err(FetchError::Unavailable(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_set_is_bounded_and_no_redirect_is_followed() {
    let set: Answer = |uri, _| match uri {
        "https://keys.invalid/jwks.json" => (200, r#"{"keys":[]}"#.to_owned()),
        _ => (404, String::new()),
    };
    assert_eq!(fetched(set, "jwks:https://keys.invalid/jwks.json").await.unwrap(), [("", r#"{"keys":[]}"#.to_owned())]);
    assert!(matches!(fetched(set, "jwks:https://keys.invalid/other").await, Err(FetchError::Unavailable(_))));
    let huge: Answer = |_, _| (200, " ".repeat(MAX_JWKS_BYTES + 1));
    assert!(matches!(fetched(huge, "jwks:https://keys.invalid/x").await, Err(FetchError::Refused(_))));
    let moved: Answer = |_, _| (302, String::new());
    assert!(matches!(fetched(moved, "jwks:https://keys.invalid/x").await, Err(FetchError::Unavailable(_))));
}
