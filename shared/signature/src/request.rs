//! What a verifier looks at: one request as it arrived.

use crate::headers::Headers;
use std::fmt;

/// One request, borrowed. `Debug` shows neither body nor header values nor the URL's query.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method in capitals, `POST`.
    pub method: &'a str,
    /// The full public URL with its raw query, verbatim: the configured base URL and the raw query string. Never rebuilt
    /// from parsed parameters (SIG-15). `None` where no public URL is configured.
    pub url: Option<&'a str>,
    /// The headers.
    pub headers: &'a Headers,
    /// The exact bytes of the body.
    pub body: &'a [u8],
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("headers", self.headers)
            .field("body_len", &self.body.len())
            .finish_non_exhaustive()
    }
}
