//! Recipes: how one provider signs, as data.
//!
//! In a file a recipe is a table of its own: `scheme = "stripe"` alone (with `tolerance_s` where another is wanted), or
//! `scheme = "hmac"` (or `"public-key"`) with every field spelled out. See `recipe_file` for the fields.

use crate::clock::Unit;
use crate::encoding::Encoding;
use crate::key::{KeyForm, KeyKind};
use crate::mac::Digest;
use crate::named;
use crate::recipe_file::RecipeFile;
use crate::template::{Part, Template};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

/// How a provider signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) tolerance_s: Option<u32>,
    /// The headers that carry the delivery's id, documented spelling first.
    pub(crate) id_headers: Vec<String>,
}

/// What a recipe is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A signature in a header over a template: most providers.
    Signed(Signed),
    /// The URL and sorted form parameters.
    Twilio,
    /// One signature per item inside the body.
    Adyen,
    /// A signature object inside the body.
    Mailgun,
    /// Two form fields.
    Braintree,
    /// A shared token that is simply repeated.
    GitlabToken,
}

/// A signature in a header over a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signed {
    /// Aliases of the signature's header.
    pub(crate) signature_headers: Vec<String>,
    /// Where the timestamp is.
    pub(crate) timestamp: StampAt,
    pub(crate) unit: Unit,
    pub(crate) template: Template,
    pub(crate) digest: Digest,
    pub(crate) encoding: Encoding,
    pub(crate) key: KeyForm,
    /// Between several elements of the signature header; `None` means that the whole value is one signature.
    pub(crate) separator: Option<char>,
    /// What precedes a signature, by kind: `v1,` for HMAC and `v1a,` for ed25519.
    pub(crate) prefixes: Vec<(KeyKind, String)>,
}

/// Where a timestamp is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StampAt {
    /// Nowhere.
    None,
    /// In a header (aliases).
    Header(Vec<String>),
    /// In the signature header, behind this prefix: `t=`.
    Element(String),
    /// In the signed body: a member of its top object.
    Body(String),
}

impl Recipe {
    /// A known scheme by name; `None` if there is none of that name (`hmac` and `public-key` need fields).
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        named::recipe(name)
    }

    /// The names that [`Recipe::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        named::NAMES.iter().copied()
    }

    /// The scheme's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The accepted age of a signed timestamp in seconds, past and future; `None` where none is checked.
    #[must_use]
    pub fn tolerance_s(&self) -> Option<u32> {
        self.tolerance_s
    }

    /// Whether the public URL is signed, so that an endpoint needs one configured.
    #[must_use]
    pub fn needs_url(&self) -> bool {
        match &self.kind {
            Kind::Signed(signed) => signed.template.has(&Part::Url),
            Kind::Twilio => true,
            Kind::Adyen | Kind::Mailgun | Kind::Braintree | Kind::GitlabToken => false,
        }
    }

    /// The header that carries the delivery's id, in its documented spelling.
    #[must_use]
    pub fn id_header(&self) -> Option<&str> {
        self.id_headers.first().map(String::as_str)
    }

    /// Whether the signature covers that id. Where it does, use [`crate::Verified::signed_id`] and not the header.
    #[must_use]
    pub fn signs_id(&self) -> bool {
        match &self.kind {
            Kind::Signed(signed) => signed.template.has(&Part::Id),
            Kind::Mailgun => true,
            Kind::Twilio | Kind::Adyen | Kind::Braintree | Kind::GitlabToken => false,
        }
    }

    /// Whether the signature covers the whole body. It does not for Mailgun (time and token only), Adyen (eight fields of
    /// an item) and GitLab's plain token (nothing).
    #[must_use]
    pub fn signs_body(&self) -> bool {
        match self.kind {
            Kind::Signed(_) | Kind::Twilio | Kind::Braintree => true,
            Kind::Adyen | Kind::Mailgun | Kind::GitlabToken => false,
        }
    }

    pub(crate) fn key_form(&self) -> KeyForm {
        match &self.kind {
            Kind::Signed(signed) => signed.key,
            Kind::Adyen => KeyForm::Hex,
            Kind::Braintree => KeyForm::Sha1,
            Kind::Twilio | Kind::Mailgun | Kind::GitlabToken => KeyForm::Utf8,
        }
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RecipeFile::deserialize(deserializer)?.recipe().map_err(serde::de::Error::custom)
    }
}

/// What is wrong with a recipe in a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// No such scheme.
    #[error("scheme `{name}` is not known; known are {known}, or `hmac` and `public-key` with their fields")]
    UnknownScheme {
        /// What the file says.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A field that a named scheme fixes.
    #[error("scheme `{0}` takes `tolerance_s` only: spell a recipe of your own with `scheme = \"hmac\"`")]
    FieldsOfNamed(String),
    /// A field is missing.
    #[error("field `{0}` is missing")]
    Missing(&'static str),
    /// Two fields that exclude each other, or a value that makes no sense.
    #[error("{0}")]
    Inconsistent(&'static str),
    /// A `{` without `}` or the reverse.
    #[error("field `signed` has a brace that is not closed or not opened")]
    UnclosedPlaceholder,
    /// A placeholder that does not exist.
    #[error(
        "field `signed` has the unknown placeholder `{{{0}}}`; there are id, timestamp, body, body_sha256, url, method, header:NAME"
    )]
    UnknownPlaceholder(String),
}
