//! Verifies the signature of a webhook over the exact bytes received.
//!
//! What it promises:
//!
//! - **Pure.** No I/O, no clock, no randomness. The time is an argument, keys are parsed once.
//! - **Bytes, not text.** Nothing is trimmed, re-encoded or repaired between the request and the digest.
//! - **Recipes as data.** A [`Recipe`] says which headers, which signed string, which digest, which encoding and which
//!   form of key. A provider that signs with plain HMAC needs data only; what truly differs is one small file in `schemes`.
//! - **Fails closed.** A key is never empty, a missing or unusable secret is a [`ConfigError`] when the [`Verifier`] is
//!   built, and every pair of (secret, offered signature) is tried in constant time, so that neither the answer nor its
//!   timing tells a caller which one came close.
//! - **Bounded.** At most 16 offered signatures and 32 keys of a set are tried. Beside the request itself a verification
//!   holds a few copies of the body at most (ed25519 and ECDSA join the signed parts, forms and Adyen's items are decoded
//!   once), whatever the input; nothing panics on any.
//! - **One reason for the operator, none for the caller.** A [`Rejection`] names what was wrong; the caller sees 401 and no
//!   more. Only [`Rejection::is_configuration`] is ours to repair, and is a 500.
//!
//! The order of reasons: no signature, no id, a timestamp that cannot be read, its age, then the signature itself. Age comes
//! before the signature as in the reference libraries (vector `openai-old-1` has both wrong and is "400 s old"); the
//! signature is computed in either case. Where the timestamp lives in the signed body (Linear), the signature comes first.
//!
//! ```
//! use hookledger_signature::{Headers, Recipe, Request, Secret, Verifier};
//!
//! // GitHub's own published example.
//! let recipe = Recipe::named("github").ok_or("no such scheme")?;
//! let verifier = Verifier::new(recipe, vec![Secret::new("2026-11", "It's a Secret to Everybody")])?;
//! let headers = Headers::new([(
//!     "X-Hub-Signature-256",
//!     "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
//! )]);
//! let request = Request { method: "POST", url: None, headers: &headers, body: b"Hello, World!" };
//! assert_eq!(verifier.verify(&request, 0)?.key_id, "2026-11");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod challenge;
mod clock;
mod encoding;
mod headers;
mod key;
mod mac;
mod named;
mod offered;
mod pick;
mod primitive;
mod recipe;
mod recipe_file;
mod rejection;
mod request;
mod schemes;
mod secret;
pub mod slips;
mod template;
mod verifier;

pub use challenge::{ChallengeReply, braintree_challenge, zoom_encrypted_token};
pub use headers::Headers;
pub use primitive::{PrimitiveError, digest};
pub use recipe::{Recipe, RecipeError};
pub use rejection::{Rejection, SignError, Verified};
pub use request::Request;
pub use schemes::form::form_fields;
pub use secret::{ConfigError, Secret};
pub use verifier::Verifier;
