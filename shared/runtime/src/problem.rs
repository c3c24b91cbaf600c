//! Errors for callers: RFC 9457 problem+json with a stable `code` and what to do.

use serde::Serialize;

use crate::gateway::GatewayResponse;

/// An error answer. The detail is for the caller; the operator's reasons go to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// Stable, for machines.
    pub code: &'static str,
    /// Short, for people.
    pub title: &'static str,
    /// What is wrong here and what to do.
    pub detail: String,
}

impl Problem {
    /// A problem of a status and code.
    pub fn new(status: u16, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, title, detail: detail.into() }
    }

    /// 400: the request is not understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(400, "bad-request", "The request is not understood", detail)
    }

    /// 404.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(404, "not-found", "Nothing has this name", detail)
    }

    /// 422: a value is refused.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(422, "invalid-value", "A value is refused", detail)
    }

    /// 409: the same key has other content.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(409, "conflict", "The same key has other content", detail)
    }

    /// 503: try again later. After a lost answer it may have been taken; its key makes a repeat safe.
    pub fn unavailable() -> Self {
        Self::new(
            503,
            "unavailable",
            "Try again later",
            "a store or queue is not available now; sending the same again is safe",
        )
    }

    /// The answer.
    pub fn response(&self) -> GatewayResponse {
        let response = GatewayResponse::json(self.status, self).with_header("content-type", "application/problem+json");
        if self.status == 503 { response.with_header("retry-after", "5") } else { response }
    }
}
