//! A request as API Gateway's payload format 2.0.
//!
//! The query string is passed on verbatim, and so is the path. Header names are lower-cased and repeated ones joined
//! by commas; cookies have their own list. Which bodies are base64 is not in AWS's documentation; it was measured there
//! (ministackorg/ministack#766): text for `text/*`, `application/json`, `application/xml` and `application/javascript`,
//! base64 for all else, a missing content type and forms among them. A text type whose bytes are not UTF-8 is base64
//! here; what AWS does with it is not known (CASES SIG, body bytes).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, COOKIE, USER_AGENT};
use http::request::Parts;
use serde_json::{Map, Value, json};

/// What the event says beside the request itself.
#[derive(Debug, Clone)]
pub struct RequestFacts {
    /// The caller's address.
    pub source_ip: String,
    /// The gateway's own name.
    pub domain_name: String,
    /// The request's id.
    pub request_id: String,
    /// Arrival, in ms since the epoch.
    pub time_ms: i64,
    /// ARN of the IAM user that the caller is taken for.
    pub local_actor: Option<String>,
}

/// The path as HTTP APIs hand it on: percent-decoded, and cut at a decoded `?` (seen on AWS and reported in
/// middleapi/standard-server#93).
fn decoded_path(path: &str) -> String {
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    decoded.split('?').next().unwrap_or_default().to_owned()
}

/// The event of payload format 2.0.
#[must_use]
pub fn payload_v2(head: &Parts, body: &[u8], facts: &RequestFacts) -> Value {
    let (headers, cookies) = headers(&head.headers, facts);
    let query = head.uri.query().unwrap_or_default();
    let mut event = Map::new();
    let mut set = |name: &str, value: Value| event.insert(name.to_owned(), value);
    set("version", json!("2.0"));
    set("routeKey", json!("$default"));
    set("rawPath", json!(decoded_path(head.uri.path())));
    set("rawQueryString", json!(query));
    set("headers", json!(headers));
    if !cookies.is_empty() {
        set("cookies", json!(cookies));
    }
    if !query.is_empty() {
        set("queryStringParameters", json!(query_parameters(query)));
    }
    set("requestContext", context(head, facts));
    let text = is_text(&head.headers).then(|| std::str::from_utf8(body).ok()).flatten();
    match text {
        _ if body.is_empty() => set("isBase64Encoded", json!(false)),
        Some(text) => {
            set("body", json!(text));
            set("isBase64Encoded", json!(false))
        }
        None => {
            set("body", json!(STANDARD.encode(body)));
            set("isBase64Encoded", json!(true))
        }
    };
    Value::Object(event)
}

fn context(head: &Parts, facts: &RequestFacts) -> Value {
    let user_agent = head.headers.get(USER_AGENT).map(text_of);
    let mut context = json!({
        "accountId": crate::ACCOUNT_ID,
        "apiId": "embedded",
        "domainName": facts.domain_name,
        "domainPrefix": "embedded",
        "http": {
            "method": head.method.as_str(),
            "path": head.uri.path(),
            "protocol": format!("{:?}", head.version),
            "sourceIp": facts.source_ip,
            "userAgent": user_agent.unwrap_or_default(),
        },
        "requestId": facts.request_id,
        "routeKey": "$default",
        "stage": "$default",
        "time": access_log_time(facts.time_ms),
        "timeEpoch": facts.time_ms,
    });
    if let Some(actor) = &facts.local_actor {
        context["authorizer"] = json!({ "iam": {
            "accountId": crate::ACCOUNT_ID,
            "userArn": actor,
            "userId": actor,
            "callerId": actor,
        }});
    }
    context
}

/// Header bytes as text. Bytes outside of UTF-8 are replaced: no signature of a known provider has them.
fn text_of(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn headers(all: &HeaderMap, facts: &RequestFacts) -> (BTreeMap<String, String>, Vec<String>) {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    let mut cookies = Vec::new();
    let mut add = |name: &str, value: &str| {
        joined
            .entry(name.to_owned())
            .and_modify(|known| {
                known.push(',');
                known.push_str(value);
            })
            .or_insert_with(|| value.to_owned());
    };
    // `HeaderName` is lower case by construction.
    for (name, value) in all {
        let value = text_of(value);
        if name == COOKIE {
            cookies.extend(value.split(';').map(|one| one.trim().to_owned()));
        } else {
            add(name.as_str(), &value);
        }
    }
    add("x-forwarded-for", &facts.source_ip);
    joined.entry("x-forwarded-proto".to_owned()).or_insert_with(|| "http".to_owned());
    (joined, cookies)
}

fn is_text(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(text_of).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    essence.starts_with("text/")
        || matches!(essence.as_str(), "application/json" | "application/xml" | "application/javascript")
}

/// Decoded parameters, repeated ones joined by commas.
fn query_parameters(query: &str) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value);
        all.entry(decode(name))
            .and_modify(|known| {
                known.push(',');
                known.push_str(&value);
            })
            .or_insert(value);
    }
    all
}

/// Percent and plus decoding; what is no valid escape stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = tail
            .get(..2)
            .filter(|_| first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(if first == b'+' { b' ' } else { first });
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `12/Mar/2020:19:03:58 +0000`, in UTC.
fn access_log_time(time_ms: i64) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time_ms.div_euclid(1_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 1970 to a date, counted in years that begin in March, so that the leap day comes last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + i64::from(month < 2);
    let name = usize::try_from(month).ok().and_then(|m| MONTHS.get(m));
    format!(
        "{day:02}/{}/{year}:{:02}:{:02}:{:02} +0000",
        name.copied().unwrap_or_default(),
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_has_the_form_of_awss_example() {
        // Worked out with `date -u -d @1583348638`; AWS's own example shows another day beside this epoch.
        assert_eq!(access_log_time(1_583_348_638_390), "04/Mar/2020:19:03:58 +0000");
        // Worked out with `date -u -d @951827696`: a leap day of a century year.
        assert_eq!(access_log_time(951_827_696_000), "29/Feb/2000:12:34:56 +0000");
        assert_eq!(access_log_time(0), "01/Jan/1970:00:00:00 +0000");
    }

    #[test]
    fn query_parameters_are_decoded_and_joined() {
        let found = query_parameters("a=1&b=x%2Fy+z&a=2&c&d=%zz");
        let pairs: Vec<_> = found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("a", "1,2"), ("b", "x/y z"), ("c", ""), ("d", "%zz")]);
    }
}
