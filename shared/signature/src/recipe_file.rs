//! A recipe as it stands in a file, and the checks that make it one.
//!
//! ```toml
//! [provider.signature]
//! scheme = "hmac"
//! signature_header = "X-Acme-Signature"   # or a list of aliases
//! timestamp_header = "X-Acme-Time"        # or timestamp_prefix = "t=" (inside the signature header), or timestamp_body
//! timestamp_unit = "s"                    # "ms", "auto"
//! tolerance_s = 300
//! signed = "v0:{timestamp}:{body}"        # id, timestamp, body, body_sha256, url, method, header:NAME
//! digest = "sha256"                       # "sha1"
//! encoding = "hex"                        # "base64", "base64url"
//! key = "utf8"                            # "base64", "hex", "whsec"; with scheme = "public-key":
//!                                         # "ed25519-hex", "ed25519-jwks", "p256-spki"
//! prefix = "v0="                          # before each signature
//! separator = ","                         # between several signatures
//! id_header = "X-Acme-Id"                 # where `{id}` comes from
//! delivery_header = "X-Acme-Delivery"     # an id that is not signed
//! ```

use crate::clock::Unit;
use crate::encoding::Encoding;
use crate::key::{KeyForm, KeyKind};
use crate::mac::Digest;
use crate::named;
use crate::recipe::{Kind, Recipe, RecipeError, Signed, StampAt};
use crate::template::{Part, Template};
use serde::Deserialize;

/// Every field a file may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RecipeFile {
    pub(crate) scheme: String,
    pub(crate) tolerance_s: Option<u32>,
    pub(crate) signature_header: Names,
    pub(crate) id_header: Names,
    pub(crate) delivery_header: Names,
    pub(crate) timestamp_header: Names,
    pub(crate) timestamp_prefix: Option<String>,
    pub(crate) timestamp_body: Option<String>,
    pub(crate) timestamp_unit: Unit,
    pub(crate) signed: Option<String>,
    pub(crate) digest: Digest,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) key: KeyForm,
    pub(crate) separator: Option<char>,
    pub(crate) prefix: String,
    /// The prefix of ed25519 signatures beside HMAC ones; only Standard Webhooks has both.
    #[serde(skip)]
    pub(crate) ed25519_prefix: Option<String>,
}

/// One header name or a list of aliases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "OneOrMany")]
pub(crate) struct Names(pub(crate) Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Names {
    fn from(names: OneOrMany) -> Self {
        match names {
            OneOrMany::One(name) => Self(vec![name]),
            OneOrMany::Many(names) => Self(names),
        }
    }
}

impl RecipeFile {
    /// The recipe that this file describes.
    pub(crate) fn recipe(self) -> Result<Recipe, RecipeError> {
        match self.scheme.as_str() {
            "" => Err(RecipeError::Missing("scheme")),
            "hmac" if !self.key.is_hmac() => Err(RecipeError::Inconsistent(
                "scheme `hmac` takes a shared secret: for a public key write `scheme = \"public-key\"`",
            )),
            "public-key" if self.key.is_hmac() => Err(RecipeError::Inconsistent(
                "scheme `public-key` needs `key`: ed25519-hex, ed25519-jwks or p256-spki",
            )),
            "hmac" | "public-key" => self.compile(),
            _ => self.of_name(),
        }
    }

    fn of_name(self) -> Result<Recipe, RecipeError> {
        let mut recipe = named::recipe(&self.scheme)
            .ok_or_else(|| RecipeError::UnknownScheme { name: self.scheme.clone(), known: named::NAMES.join(", ") })?;
        let bare = Self { scheme: self.scheme.clone(), tolerance_s: self.tolerance_s, ..Self::default() };
        if self != bare {
            return Err(RecipeError::FieldsOfNamed(self.scheme));
        }
        recipe.tolerance_s = self.tolerance_s.or(recipe.tolerance_s);
        Ok(recipe)
    }

    /// Builds the recipe from its fields.
    pub(crate) fn compile(self) -> Result<Recipe, RecipeError> {
        let all = [&self.signature_header, &self.id_header, &self.delivery_header, &self.timestamp_header];
        if all.iter().any(|names| names.0.iter().any(|name| !is_header_name(name))) {
            return Err(RecipeError::Inconsistent("a header name is empty or has characters that no header name has"));
        }
        if self.signature_header.0.is_empty() {
            return Err(RecipeError::Missing("signature_header"));
        }
        let template = Template::parse(self.signed.as_deref().ok_or(RecipeError::Missing("signed"))?)?;
        self.check_covered(&template)?;
        let timestamp = self.stamp_at(&template)?;
        if self.tolerance_s.is_some() && timestamp == StampAt::None {
            return Err(RecipeError::Inconsistent(
                "`tolerance_s` needs a timestamp: timestamp_header, _prefix or _body",
            ));
        }
        let mut prefixes = vec![(self.key.kind(), self.prefix)];
        prefixes.extend(self.ed25519_prefix.map(|prefix| (KeyKind::Ed25519, prefix)));
        let signed = Signed {
            signature_headers: self.signature_header.0,
            timestamp,
            unit: self.timestamp_unit,
            template,
            digest: self.digest,
            encoding: self.encoding.ok_or(RecipeError::Missing("encoding"))?,
            key: self.key,
            separator: self.separator,
            prefixes,
        };
        let id_headers = if self.id_header.0.is_empty() { self.delivery_header.0 } else { self.id_header.0 };
        Ok(Recipe { name: self.scheme, kind: Kind::Signed(signed), tolerance_s: self.tolerance_s, id_headers })
    }

    /// A signature that leaves the body open protects nothing, nor does one that leaves out the id it is meant to carry.
    fn check_covered(&self, template: &Template) -> Result<(), RecipeError> {
        if !template.has(&Part::Body) && !template.has(&Part::BodySha256) {
            return Err(RecipeError::Inconsistent("`signed` must contain {body} or {body_sha256}"));
        }
        match (self.id_header.0.is_empty(), template.has(&Part::Id)) {
            (true, true) => Err(RecipeError::Missing("id_header")),
            (false, false) => Err(RecipeError::Inconsistent(
                "`id_header` is for an id that `signed` contains as {id}: an unsigned id belongs in `delivery_header`",
            )),
            _ => Ok(()),
        }
    }

    fn stamp_at(&self, template: &Template) -> Result<StampAt, RecipeError> {
        let at = match (self.timestamp_header.0.is_empty(), &self.timestamp_prefix, &self.timestamp_body) {
            (true, None, None) => StampAt::None,
            (false, None, None) => StampAt::Header(self.timestamp_header.0.clone()),
            (true, Some(prefix), None) if self.separator.is_some() && !prefix.is_empty() => {
                StampAt::Element(prefix.clone())
            }
            (true, Some(_), None) => {
                return Err(RecipeError::Inconsistent("`timestamp_prefix` needs a value and a `separator`"));
            }
            (true, None, Some(member)) => StampAt::Body(member.clone()),
            _ => {
                return Err(RecipeError::Inconsistent(
                    "give one of timestamp_header, timestamp_prefix, timestamp_body",
                ));
            }
        };
        let outside = matches!(at, StampAt::Header(_) | StampAt::Element(_));
        if outside != template.has(&Part::Timestamp) {
            return Err(RecipeError::Inconsistent(
                "a timestamp outside the body must be in `signed` as {timestamp}, and {timestamp} needs a header or prefix",
            ));
        }
        Ok(at)
    }
}

/// RFC 9110 token.
fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
