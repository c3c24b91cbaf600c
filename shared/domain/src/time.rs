//! Times for people: Unix milliseconds as RFC 3339 in UTC.

/// `2026-11-29T12:00:00Z`; out of range becomes the number itself.
pub fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |t| t.to_string())
}

/// Unix milliseconds of an RFC 3339 time.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}
