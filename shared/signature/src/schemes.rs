//! The schemes. `signed` serves every recipe that is data; each other file is one provider that truly differs.

pub(crate) mod adyen;
pub(crate) mod braintree;
pub(crate) mod form;
pub(crate) mod gitlab_token;
pub(crate) mod mailgun;
pub(crate) mod signed;
pub(crate) mod twilio;

use crate::key::NamedKey;
use crate::rejection::{Rejection, Verified};

/// One verification: the keys that are live, the clock and the tolerance.
#[derive(Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub(crate) keys: &'a [&'a NamedKey],
    pub(crate) now_ms: i64,
    pub(crate) tolerance_s: Option<u32>,
}

impl Bench<'_> {
    /// The answer where a scheme signs neither id nor time: the key that matched, or a refusal.
    pub(crate) fn plain(&self, matched: Option<usize>) -> Result<Verified, Rejection> {
        let key = matched.and_then(|index| self.keys.get(index)).ok_or(Rejection::WrongSecretOrBody)?;
        Ok(Verified { key_id: key.id.clone(), signed_id: None, timestamp_ms: None })
    }
}
