//! What a verification or a signing can end in.

use thiserror::Error;

/// What is known of a request whose signature is genuine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Id of the [`crate::Secret`] that matched; public, and worth logging while a secret is rolled (SIG-17).
    pub key_id: String,
    /// The message id that the signature covers (`webhook-id`, fal's request id, Mailgun's token). `None` where the
    /// signature covers no id outside the body.
    pub signed_id: Option<String>,
    /// The time that the signature covers, in Unix milliseconds.
    pub timestamp_ms: Option<i64>,
}

/// Why a request was refused. For the operator: the caller is told 401 and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The signature is absent or empty.
    #[error("the request carries no signature: is the sender this provider, and does a proxy drop its headers?")]
    NoSignature,
    /// Nothing in the signature header, or the timestamp beside it, can be read.
    #[error(
        "the signature or its timestamp cannot be read: no known version, not decodable, wrong length, or not plain digits"
    )]
    MalformedSignature,
    /// A readable signature, by none of the configured secrets over these bytes.
    #[error(
        "no configured secret gives this signature over these bytes: wrong secret, or the body (or URL) was changed on the way"
    )]
    WrongSecretOrBody,
    /// Older than the tolerance.
    #[error(
        "the signed timestamp is older than the tolerance: a replay, a delayed delivery, or a clock that runs ahead"
    )]
    TimestampTooOld,
    /// Further in the future than the tolerance.
    #[error("the signed timestamp is in the future by more than the tolerance: check the clocks")]
    TimestampInFuture,
    /// The scheme signs a message id and the request has none.
    #[error("the request carries no message id, which this scheme signs")]
    MissingId,
    /// Signed by a key, or a kind of key, that is not configured.
    #[error("the request is signed by a key, or a kind of key, that is not configured for this provider")]
    UnknownKey,
    /// Our own configuration cannot verify anything: every secret has expired, or the scheme signs the URL and none is
    /// configured.
    #[error(
        "this endpoint cannot verify: every secret is past its not-after, or the scheme signs the public URL and none is configured"
    )]
    BadSecret,
}

impl Rejection {
    /// The stable code, as `hookledger verify` prints it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSignature => "no-signature",
            Self::MalformedSignature => "malformed-signature",
            Self::WrongSecretOrBody => "wrong-secret-or-body",
            Self::TimestampTooOld => "timestamp-too-old",
            Self::TimestampInFuture => "timestamp-in-future",
            Self::MissingId => "missing-id",
            Self::UnknownKey => "unknown-key",
            Self::BadSecret => "bad-secret",
        }
    }

    /// Whether our configuration is at fault, not the request: answer 500 and raise the alarm, so that the provider
    /// tries again, instead of 401.
    #[must_use]
    pub const fn is_configuration(self) -> bool {
        matches!(self, Self::BadSecret)
    }
}

/// Why a request could not be signed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignError {
    /// The scheme puts its signature into the body (Adyen, Mailgun, Braintree).
    #[error(
        "scheme `{0}` signs inside the body, so no header can be added: send a body that already carries its signature"
    )]
    InBody(String),
    /// Only public keys are configured.
    #[error(
        "scheme `{0}` verifies with a public key, which cannot sign: give a private key (`whsk_...`) where the scheme has one"
    )]
    PublicKeyOnly(String),
    /// No secret is valid at that time.
    #[error("every secret is past its not-after at the given time")]
    Expired,
    /// The scheme signs something that the request lacks.
    #[error("scheme `{scheme}` signs the {what}, which the request lacks")]
    Missing {
        /// The scheme's name.
        scheme: String,
        /// `public URL` or the name of a header.
        what: String,
    },
    /// The time is before 1970.
    #[error("the time to sign for is before 1970")]
    Time,
}
