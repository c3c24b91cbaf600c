//! What goes over the wire that is not there: one answer of the embedded AWS, before it becomes the SDK's.

use bytes::Bytes;

/// An HTTP answer in the AWS JSON protocols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireResponse {
    /// HTTP status.
    pub status: u16,
    /// `x-amzn-query-error`, from which the SQS SDK takes the error code.
    pub query_error: Option<String>,
    /// The JSON text.
    pub body: Bytes,
}

impl WireResponse {
    /// A 200 with this JSON text.
    #[must_use]
    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::json(200, body)
    }

    /// Any status with this JSON text.
    #[must_use]
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, query_error: None, body: body.into() }
    }
}
