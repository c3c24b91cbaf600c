//! The gateway over a real socket: what is sent, what the function sees, what comes back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Mutex;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use super::*;
use crate::clock::ManualClock;
use crate::lambda::handler;

/// What the function saw, and what it answers.
struct Exchange {
    event: Value,
    response: String,
}

/// Sends raw bytes to a gateway whose function gives `answer`; an answer of null is a failing function.
async fn exchange(request: &[u8], answer: Value, local_actor: Option<&str>) -> Exchange {
    let seen = Arc::new(Mutex::new(Value::Null));
    let seen_by_function = Arc::clone(&seen);
    let function = handler(move |event| {
        *seen_by_function.lock().unwrap() = event;
        let answer = answer.clone();
        async move {
            match answer {
                Value::Null => Err("no"),
                answer => Ok(answer),
            }
        }
    });
    let config = GatewayConfig {
        port: 0,
        function_timeout: Duration::from_secs(5),
        local_actor: local_actor.map(str::to_owned),
    };
    let clock = Arc::new(ManualClock::new(1_583_348_638_390));
    let gateway = Gateway::bind(config, clock, function).await.unwrap();
    let address = gateway.local_addr();
    assert!(address.ip().is_loopback());
    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(gateway.run(stopped));
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request).await.unwrap();
    let mut response = Vec::new();
    socket.read_to_end(&mut response).await.unwrap();
    stop.send(true).unwrap();
    server.await.unwrap();
    let event = seen.lock().unwrap().clone();
    Exchange { event, response: String::from_utf8(response).unwrap() }
}

fn post(content_type: Option<&str>, body: &[u8]) -> Vec<u8> {
    let content_type = content_type.map(|t| format!("content-type: {t}\r\n"));
    let mut request = format!(
        "POST /webhooks/acme HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n",
        content_type.unwrap_or_default(),
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

fn ok() -> Value {
    json!({ "statusCode": 202, "body": "" })
}

#[tokio::test]
async fn the_event_is_of_payload_format_2_0() {
    let request = b"GET /control/events/acme/a%2Fb?x=1&x=2&y=%20 HTTP/1.1\r\nHost: x\r\nUser-Agent: test/1\r\n\
        X-Signature: v1\r\nx-signature: v2\r\nCookie: a=1; b=2\r\nConnection: close\r\n\r\n";
    let event = exchange(request, ok(), None).await.event;
    assert_eq!(event["version"], "2.0");
    assert_eq!(event["routeKey"], "$default");
    // HTTP APIs hand the path on decoded.
    assert_eq!(event["rawPath"], "/control/events/acme/a/b");
    assert_eq!(event["rawQueryString"], "x=1&x=2&y=%20");
    let expected = json!({ "x": "1,2", "y": " " });
    assert_eq!(event["queryStringParameters"], expected);
    assert_eq!(event["headers"]["x-signature"], "v1,v2");
    assert_eq!(event["headers"]["x-forwarded-for"], "127.0.0.1");
    assert_eq!(event["headers"].get("cookie"), None);
    assert_eq!(event["cookies"], json!(["a=1", "b=2"]));
    let context = &event["requestContext"];
    let expected = json!({
        "method": "GET", "path": "/control/events/acme/a%2Fb", "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1", "userAgent": "test/1",
    });
    assert_eq!(context["http"], expected);
    assert_eq!(context["stage"], "$default");
    assert_eq!(context["timeEpoch"], 1_583_348_638_390_i64);
    assert_eq!(context["time"], "04/Mar/2020:19:03:58 +0000");
    assert_eq!(context["accountId"], "000000000000");
    assert_eq!(context.get("authorizer"), None);
    assert_eq!(event.get("body"), None);
    assert_eq!(event["isBase64Encoded"], false);
}

#[tokio::test]
async fn a_local_actor_is_the_iam_caller() {
    let arn = "arn:aws:iam::000000000000:user/local";
    let event = exchange(&post(None, b""), ok(), Some(arn)).await.event;
    assert_eq!(event["requestContext"]["authorizer"]["iam"]["userArn"], arn);
}

#[tokio::test]
async fn which_bodies_are_base64() {
    // ministackorg/ministack#766 measured the content types on AWS. "YWJj" is the base64 of "abc".
    for (content_type, body, expected, encoded) in [
        (Some("application/json"), &b"abc"[..], "abc", false),
        (Some("Application/JSON; charset=utf-8"), b"abc", "abc", false),
        (Some("text/plain"), b" abc\r\n", " abc\r\n", false),
        (Some("application/xml"), b"abc", "abc", false),
        (Some("application/x-www-form-urlencoded"), b"abc", "YWJj", true),
        (Some("application/cloudevents+json"), b"abc", "YWJj", true),
        (None, b"abc", "YWJj", true),
        (Some("application/json"), b"\xff", "/w==", true),
    ] {
        let event = exchange(&post(content_type, body), ok(), None).await.event;
        assert_eq!(event["body"], expected, "{content_type:?}");
        assert_eq!(event["isBase64Encoded"], encoded, "{content_type:?}");
    }
}

#[tokio::test]
async fn a_proxy_response_becomes_http() {
    let answer = json!({
        "statusCode": 503,
        "headers": { "Retry-After": 5, "content-type": "application/problem+json", "content-length": "9" },
        "cookies": ["a=1", "b=2"],
        "body": "YWJj",
        "isBase64Encoded": true,
    });
    let response = exchange(&post(None, b""), answer, None).await.response;
    assert!(response.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    for line in [
        "retry-after: 5",
        "content-type: application/problem+json",
        "content-length: 3",
        "set-cookie: a=1",
        "set-cookie: b=2",
    ] {
        assert!(response.contains(&format!("{line}\r\n")), "{line} in {response}");
    }
    assert!(response.ends_with("\r\n\r\nabc"));
}

#[tokio::test]
async fn json_without_a_status_is_a_200_of_that_json() {
    let answer = json!({ "status": "accepted" });
    let response = exchange(&post(None, b""), answer, None).await.response;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(response.contains("content-type: application/json\r\n"));
    assert!(response.ends_with("\r\n\r\n{\"status\":\"accepted\"}"));
}

#[tokio::test]
async fn a_failure_or_an_invalid_answer_is_a_plain_500() {
    for answer in [
        Value::Null,
        json!({ "statusCode": "many" }),
        json!({ "statusCode": 99 }),
        json!({ "statusCode": 200, "body": { "a": 1 } }),
        json!({ "statusCode": 200, "body": "%", "isBase64Encoded": true }),
        json!({ "statusCode": 200, "headers": { "bad name": "x" } }),
        json!({ "statusCode": 200, "headers": ["x"] }),
    ] {
        let response = exchange(&post(None, b""), answer.clone(), None).await.response;
        assert!(response.starts_with("HTTP/1.1 500 "), "{answer}");
        let body = "\r\n\r\n{\"message\":\"Internal Server Error\"}";
        assert!(response.ends_with(body), "{answer}");
    }
}

#[tokio::test]
async fn a_body_over_ten_megabytes_is_refused() {
    // Ten bytes are sent; the announced length alone decides.
    let mut request = post(Some("text/plain"), b"");
    let text = String::from_utf8(request).unwrap();
    let length = format!("Content-Length: {}", MAX_BODY_BYTES + 1);
    request = text.replace("Content-Length: 0", &length).into_bytes();
    request.extend_from_slice(b"0123456789");
    let exchanged = exchange(&request, ok(), None).await;
    assert!(exchanged.response.starts_with("HTTP/1.1 413 "));
    assert_eq!(exchanged.event, Value::Null);
}
