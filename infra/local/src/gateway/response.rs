//! A function's answer as an HTTP response, by payload format 2.0.
//!
//! With a `statusCode` it is a proxy response. JSON without one is a 200 whose body is that JSON: AWS infers it so. An
//! answer that cannot be turned into a response is a 500 that says nothing more than AWS says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, SET_COOKIE, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Map, Value, json};

/// `{"message": ...}`, as API Gateway's own errors are.
#[must_use]
pub fn message(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let body = json!({ "message": text }).to_string();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// What the caller sees of a function that failed.
#[must_use]
pub fn internal_server_error() -> Response<Full<Bytes>> {
    message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
}

/// The HTTP response of a function's answer.
#[must_use]
pub fn from_proxy(answer: &Value) -> Response<Full<Bytes>> {
    let proxy = match answer {
        Value::Object(fields) if fields.contains_key("statusCode") => proxy(fields),
        inferred => Some(inferred_json(inferred)),
    };
    proxy.unwrap_or_else(|| {
        tracing::warn!("the function's answer is not a valid proxy response");
        internal_server_error()
    })
}

fn inferred_json(answer: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn proxy(fields: &Map<String, Value>) -> Option<Response<Full<Bytes>>> {
    let status = u16::try_from(fields.get("statusCode")?.as_u64()?).ok()?;
    let status = StatusCode::from_u16(status).ok().filter(|s| s.as_u16() <= 599)?;
    let text = match fields.get("body") {
        None | Some(Value::Null) => "",
        Some(body) => body.as_str()?,
    };
    let encoded = fields.get("isBase64Encoded").and_then(Value::as_bool);
    let body = match encoded {
        Some(true) => Bytes::from(STANDARD.decode(text).ok()?),
        _ => Bytes::copy_from_slice(text.as_bytes()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let given = match fields.get("headers") {
        None | Some(Value::Null) => None,
        Some(given) => Some(given.as_object()?),
    };
    for (name, value) in given.into_iter().flatten() {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let value = match value {
            Value::String(text) => HeaderValue::from_str(text).ok()?,
            Value::Number(_) | Value::Bool(_) => HeaderValue::from_str(&value.to_string()).ok()?,
            _ => return None,
        };
        // How the body is framed is between this server and its caller.
        if ![CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(&name) {
            headers.insert(name, value);
        }
    }
    for cookie in fields.get("cookies").and_then(Value::as_array).into_iter().flatten() {
        headers.append(SET_COOKIE, HeaderValue::from_str(cookie.as_str()?).ok()?);
    }
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("text/plain;charset=UTF-8"));
    Some(response)
}
