//! Where a profile's secrets are. A profile never holds one: it names an environment variable, a secret of AWS Secrets
//! Manager, or the address of a public key set.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::config::Problem;

/// Where a secret is found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretPlace {
    /// In an environment variable. Its value may itself be a reference in one of the other two forms.
    Env(String),
    /// In AWS Secrets Manager: `secretsmanager:NAME`, or `secretsmanager:NAME#MEMBER` for a member of a JSON object.
    SecretsManager {
        /// The secret's name or ARN.
        name: String,
        /// The member that holds the value.
        member: Option<String>,
    },
    /// A JSON Web Key Set at this https address: `jwks:https://...`.
    Jwks(String),
}

/// The forms, for messages.
const FORMS: &str = "the name of an environment variable (A-Z, 0-9, _), secretsmanager:NAME, secretsmanager:NAME#MEMBER \
                     or jwks:https://...";

impl SecretPlace {
    /// A value that is a reference: what an environment variable may hold in place of the secret.
    pub fn reference(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("secretsmanager:") {
            let (name, member) = match rest.split_once('#') {
                Some((name, member)) => (name, Some(member)),
                None => (rest, None),
            };
            // The characters of a secret's name, and of an ARN.
            let named = |text: &str| {
                !text.is_empty()
                    && text.len() <= 512
                    && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_+=.@:-".contains(&b))
            };
            let valid = named(name) && member.is_none_or(|member| !member.is_empty() && member.len() <= 128);
            return valid.then(|| Self::SecretsManager { name: name.to_owned(), member: member.map(str::to_owned) });
        }
        let url = text.strip_prefix("jwks:")?;
        let valid = url.starts_with("https://") && url.len() <= 512 && !url.contains(|c: char| c.is_whitespace());
        valid.then(|| Self::Jwks(url.to_owned()))
    }

    /// Whether a value is meant as a reference, well-formed or not. It is never a secret.
    pub fn refers(text: &str) -> bool {
        text.starts_with("secretsmanager:") || text.starts_with("jwks:")
    }

    /// The environment variable that it names.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Env(name) => Some(name),
            Self::SecretsManager { .. } | Self::Jwks(_) => None,
        }
    }

    /// Whether it is fetched while the receiver runs.
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::Env(_))
    }
}

impl FromStr for SecretPlace {
    /// Fixed words: the text may be a secret.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let variable = text.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && text.len() <= 128
            && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        match Self::reference(text) {
            Some(place) => Ok(place),
            None if variable => Ok(Self::Env(text.to_owned())),
            None => Err("this is no name of a secret; it is not shown, since it may be the secret itself"),
        }
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => f.write_str(name),
            Self::SecretsManager { name, member: None } => write!(f, "secretsmanager:{name}"),
            Self::SecretsManager { name, member: Some(member) } => write!(f, "secretsmanager:{name}#{member}"),
            Self::Jwks(url) => write!(f, "jwks:{url}"),
        }
    }
}

/// One of a profile's secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRef {
    /// Its public name: logged when it matches.
    pub id: String,
    /// Where it is.
    pub place: SecretPlace,
    /// The last Unix second in which it is tried.
    pub not_after_s: Option<i64>,
    /// The public key that names it in the request (Braintree).
    pub public_key: Option<String>,
}

/// As it stands in the file: the place alone, or a table.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawSecret {
    Place(String),
    Table(RawSecretTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSecretTable {
    at: String,
    id: Option<String>,
    not_after: Option<jiff::Timestamp>,
    public_key: Option<String>,
}

impl TryFrom<RawSecret> for SecretRef {
    type Error = Problem;

    fn try_from(raw: RawSecret) -> Result<Self, Problem> {
        let (raw, path): (_, &[&str]) = match raw {
            RawSecret::Place(at) => (RawSecretTable { at, id: None, not_after: None, public_key: None }, &[]),
            RawSecret::Table(table) => (table, &["at"]),
        };
        let place: SecretPlace = raw.at.parse().map_err(|cause| Problem::new(path, cause, remedy()))?;
        Ok(Self {
            id: raw.id.unwrap_or_else(|| place.to_string()),
            place,
            not_after_s: raw.not_after.map(jiff::Timestamp::as_second),
            public_key: raw.public_key,
        })
    }
}

/// What to do about a text that is no place.
pub(super) fn remedy() -> String {
    format!("write {FORMS}; if a secret stood here, roll it: it has been in a file")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;

    #[test]
    fn places_are_read_and_shown_alike() {
        for text in ["ACME_WEBHOOK_SECRET", "secretsmanager:hookledger/acme", "secretsmanager:a#B", "jwks:https://x/y"]
        {
            assert_eq!(text.parse::<SecretPlace>().unwrap().to_string(), text);
        }
        let arn = "secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:secret:hooks-AbCdEf#K";
        let SecretPlace::SecretsManager { name, member } = arn.parse().unwrap() else { unreachable!() };
        assert!(name.ends_with("hooks-AbCdEf") && member.as_deref() == Some("K"));
    }

    #[test]
    fn a_secret_in_the_file_is_refused_and_not_shown() {
        for secret in ["whsec_c2VjcmV0", "It's a Secret", "8f742231b10e8888", "jwks:http://x", "secretsmanager:", ""] {
            let error = secret.parse::<SecretPlace>().unwrap_err();
            assert!(secret.is_empty() || !error.contains(secret), "{error}");
        }
    }
}
