//! Where events are forwarded to, and under which key.
//!
//! As with secrets, the profile names an environment variable and the deployment sets it: a profile holds
//! no account's addresses.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::Source;

/// Values of an action key at most: an object's id and, where one is not enough, its part.
const MAX_ACTION_PARTS: usize = 2;

/// A destination: by the environment variable that holds its address, or by its table in the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// `sqs:VARIABLE`: the URL of an SQS queue, FIFO or standard.
    Sqs(String),
    /// `eventbridge:VARIABLE`: the name or ARN of an EventBridge bus.
    EventBridge(String),
    /// `http:NAME`: the table `[destinations.NAME]`.
    Http(String),
}

impl Destination {
    /// The environment variable of a queue or bus; an HTTP destination's table names its own.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Sqs(variable) | Self::EventBridge(variable) => Some(variable),
            Self::Http(_) => None,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqs(variable) => write!(f, "sqs:{variable}"),
            Self::EventBridge(variable) => write!(f, "eventbridge:{variable}"),
            Self::Http(name) => write!(f, "http:{name}"),
        }
    }
}

impl FromStr for Destination {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let variable = |name: &str| {
            let good = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
            (!name.is_empty() && name.bytes().all(good)).then(|| name.to_owned())
        };
        match text.split_once(':') {
            Some(("sqs", name)) => variable(name).map(Self::Sqs),
            Some(("eventbridge", name)) => variable(name).map(Self::EventBridge),
            Some(("http", name)) => is_name(name).then(|| Self::Http(name.to_owned())),
            _ => None,
        }
        .ok_or_else(|| {
            format!("{text:?} is no destination: write \"sqs:VARIABLE\" or \"eventbridge:VARIABLE\", the environment variable with its address, or \"http:NAME\" of a table [destinations.NAME]")
        })
    }
}

/// Whether a text can name a table of destinations: it becomes part of stored records and notes.
pub(super) fn is_name(text: &str) -> bool {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    !text.is_empty() && text.len() <= 64 && text.bytes().all(good)
}

/// Where events of a type are forwarded to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// The destination.
    pub to: Destination,
    /// What makes two events one action, beside their type: an object's id. None: every event is its own.
    pub action_key: Vec<Source>,
}

/// The file's form.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(super) struct RawForward {
    to: String,
    #[serde(default)]
    action_key: Vec<String>,
}

impl RawForward {
    pub(super) fn checked(self) -> Result<Forward, String> {
        if self.action_key.len() > MAX_ACTION_PARTS {
            return Err(format!("`action_key` has {} values: at most {MAX_ACTION_PARTS}", self.action_key.len()));
        }
        let action_key = self.action_key.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        Ok(Forward { to: self.to.parse()?, action_key })
    }
}
