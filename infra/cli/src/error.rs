//! What can end a verb, and with which exit code: 1 for something found wrong or refused, 2 for misuse.
//!
//! Messages say what is wrong and what to do. They never hold a secret, a body or a signature.

use std::fmt;
use std::process::ExitCode;

use serde_json::Value;

use crate::output::plain;

/// Why a verb did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line, or a file it names, cannot be used.
    #[error("{0}")]
    Misuse(String),
    /// The work was done or tried, and something is wrong.
    #[error("{0}")]
    Failed(String),
    /// The server's own error.
    #[error("{0}")]
    Refused(Problem),
    /// Nobody answered.
    #[error(
        "no answer from {url}: {reason}\nStart a server with `hookledger dev` in another terminal, or name another one with --url or HOOKLEDGER_URL."
    )]
    Unreachable {
        /// Who was asked.
        url: String,
        /// What the network said.
        reason: String,
    },
}

impl CliError {
    /// 2 for misuse, 1 for everything else.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Misuse(_) => ExitCode::from(2),
            Self::Failed(_) | Self::Refused(_) | Self::Unreachable { .. } => ExitCode::from(1),
        }
    }
}

/// A server's error: RFC 9457 `application/problem+json`, or the nearest to it that the answer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: String,
    /// Short, for people.
    pub title: String,
    /// What is wrong here and what to do; may be empty.
    pub detail: String,
}

impl Problem {
    /// Reads an error answer. A gateway in front answers `{"message":"Forbidden"}` instead of a problem.
    pub fn of(status: u16, body: &Value) -> Self {
        let text = |name: &str| body[name].as_str().map(plain);
        let detail = text("detail").or_else(|| text("message")).unwrap_or_default();
        Self {
            status,
            code: text("code").unwrap_or_else(|| format!("http-{status}")),
            title: text("title").unwrap_or_else(|| format!("The server answered {status}")),
            detail,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        write!(f, " ({}, {})", self.status, self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_is_shown_with_title_detail_and_code() {
        let body =
            json!({"status": 402, "code": "funds-short", "title": "The wallet has too little", "detail": "fund it"});
        let shown = Problem::of(402, &body).to_string();
        assert_eq!(shown, "The wallet has too little: fund it (402, funds-short)");
    }

    #[test]
    fn an_answer_that_is_no_problem_still_says_something() {
        assert_eq!(
            Problem::of(403, &json!({"message": "Forbidden"})).to_string(),
            "The server answered 403: Forbidden (403, http-403)"
        );
        assert_eq!(Problem::of(502, &Value::Null).to_string(), "The server answered 502 (502, http-502)");
    }
}
