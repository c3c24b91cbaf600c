//! Why does it not match? Tries the known slips on a refused request and names the one that would have matched.
//!
//! For `hookledger verify` only, offline. A receiver never calls this: accepting "the other form" would widen what is
//! accepted, and telling which one was close would help a forger.

use crate::encoding::Encoding;
use crate::key::{Key, KeyKind, NamedKey};
use crate::mac::{Digest, HmacKey};
use crate::recipe::{Kind, Recipe, Signed};
use crate::request::Request;
use crate::secret::Secret;
use crate::verifier::Verifier;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

mod respell;

/// One slip that explains a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slip {
    /// The signed body ended in a newline.
    BodyNewlineRemoved,
    /// The signed body did not end in a newline.
    BodyNewlineAdded,
    /// The signed body had LF.
    BodyLfToCrlf,
    /// The signed body had CRLF.
    BodyCrlfToLf,
    /// The signed body was the same JSON, spaced or escaped in another way.
    BodyReserialised,
    /// The sender used the secret's text verbatim.
    SecretIsVerbatim,
    /// The sender used the text behind the secret's prefix, verbatim.
    SecretIsVerbatimWithoutPrefix,
    /// The sender decoded the secret from base64.
    SecretIsBase64,
    /// The sender decoded the secret from hexadecimal.
    SecretIsHex,
    /// The sender's secret ends in a newline.
    SecretHasNewline,
    /// The sender used the other digest (SHA-1 for SHA-256 or the reverse).
    OtherDigest,
    /// The signature is written in another encoding (hexadecimal, base64, base64url).
    OtherEncoding,
    /// The signature lacks its version prefix.
    PrefixMissing,
    /// Only the older SHA-1 header is there, and it is genuine.
    Sha1Header,
}

impl Slip {
    /// The stable code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BodyNewlineRemoved => "body-newline-removed",
            Self::BodyNewlineAdded => "body-newline-added",
            Self::BodyLfToCrlf => "body-lf-to-crlf",
            Self::BodyCrlfToLf => "body-crlf-to-lf",
            Self::BodyReserialised => "body-reserialised",
            Self::SecretIsVerbatim => "secret-is-verbatim",
            Self::SecretIsVerbatimWithoutPrefix => "secret-is-verbatim-without-prefix",
            Self::SecretIsBase64 => "secret-is-base64",
            Self::SecretIsHex => "secret-is-hex",
            Self::SecretHasNewline => "secret-has-newline",
            Self::OtherDigest => "other-digest",
            Self::OtherEncoding => "other-encoding",
            Self::PrefixMissing => "prefix-missing",
            Self::Sha1Header => "sha1-header",
        }
    }
}

impl fmt::Display for Slip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BodyNewlineRemoved => {
                "it matches with a newline at the end of the body: something on the way trimmed it"
            }
            Self::BodyNewlineAdded => "it matches without the newline at the end of the body: something added it",
            Self::BodyLfToCrlf => "it matches with LF line ends: something turned them into CRLF",
            Self::BodyCrlfToLf => "it matches with CRLF line ends: something turned them into LF",
            Self::BodyReserialised => {
                "it matches with the same JSON in another spelling: something parsed the body and wrote it anew; keep the bytes"
            }
            Self::SecretIsVerbatim => "it matches with the secret's text verbatim: the sender does not decode it",
            Self::SecretIsVerbatimWithoutPrefix => {
                "it matches with the text behind the secret's prefix, verbatim: the sender does not decode it"
            }
            Self::SecretIsBase64 => "it matches with the secret decoded from base64: the sender decodes it",
            Self::SecretIsHex => "it matches with the secret decoded from hexadecimal: the sender decodes it",
            Self::SecretHasNewline => "it matches with a newline behind the secret: the sender stored it with one",
            Self::OtherDigest => "it matches with the other digest: the sender uses SHA-1 for SHA-256 or the reverse",
            Self::OtherEncoding => "it matches in another encoding: the sender mixes hexadecimal and base64",
            Self::PrefixMissing => "it matches without a version prefix: the sender or a proxy dropped it",
            Self::Sha1Header => "the older header with SHA-1 matches: take the SHA-256 header of the same delivery",
        })
    }
}

/// The first known slip that explains why `req` is refused; `None` if none does, or if it is not refused for its
/// signature. Worth calling after `wrong-secret-or-body` and `malformed-signature`. The timestamp's age is left aside.
#[must_use]
pub fn diagnose(recipe: &Recipe, secrets: &[Secret], req: &Request<'_>, now_ms: i64) -> Option<Slip> {
    let recipe = Recipe { tolerance_s: None, ..recipe.clone() };
    let accepts = |verifier: &Verifier, body: &[u8]| verifier.verify(&Request { body, ..*req }, now_ms).is_ok();
    let as_configured = Verifier::new(recipe.clone(), secrets.to_vec()).ok();
    if as_configured.as_ref().is_some_and(|verifier| accepts(verifier, req.body)) {
        return None;
    }
    let bodies = bodies(req.body).into_iter();
    let by_body = bodies.filter(|(_, body)| as_configured.as_ref().is_some_and(|verifier| accepts(verifier, body)));
    let by_key = KEYS.iter().filter(|(_, form)| {
        recipe.key_form().is_hmac() && with_keys(&recipe, secrets, *form).is_some_and(|it| accepts(&it, req.body))
    });
    let by_recipe = recipes(&recipe).into_iter().filter(|(_, other)| {
        Verifier::new(other.clone(), secrets.to_vec()).is_ok_and(|verifier| accepts(&verifier, req.body))
    });
    by_body.map(|(slip, _)| slip).chain(by_key.map(|(slip, _)| *slip)).chain(by_recipe.map(|(slip, _)| slip)).next()
}

/// The body as it may have been before something changed it.
fn bodies(body: &[u8]) -> Vec<(Slip, Vec<u8>)> {
    let lf = replace_crlf(body);
    let crlf: Vec<u8> = lf.iter().flat_map(|&b| if b == b'\n' { vec![b'\r', b'\n'] } else { vec![b] }).collect();
    let mut all =
        vec![(Slip::BodyNewlineRemoved, [body, b"\n"].concat()), (Slip::BodyNewlineRemoved, [body, b"\r\n"].concat())];
    if let Some(shorter) = body.strip_suffix(b"\n") {
        all.push((Slip::BodyNewlineAdded, shorter.to_vec()));
        all.extend(shorter.strip_suffix(b"\r").map(|shorter| (Slip::BodyNewlineAdded, shorter.to_vec())));
    }
    all.push((Slip::BodyLfToCrlf, lf));
    all.push((Slip::BodyCrlfToLf, crlf));
    all.extend(respell::spellings(body).into_iter().map(|body| (Slip::BodyReserialised, body)));
    all
}

fn replace_crlf(body: &[u8]) -> Vec<u8> {
    let next = body.iter().skip(1).map(Some).chain([None]);
    body.iter().zip(next).filter(|&(&b, next)| !(b == b'\r' && next == Some(&b'\n'))).map(|(&b, _)| b).collect()
}

/// How else a secret's text can become a key.
type Form = fn(&str) -> Option<Vec<u8>>;

const KEYS: [(Slip, Form); 5] = [
    (Slip::SecretIsVerbatim, |text| Some(text.as_bytes().to_vec())),
    (Slip::SecretIsVerbatimWithoutPrefix, |text| Some(without_prefix(text)?.as_bytes().to_vec())),
    (Slip::SecretIsBase64, |text| STANDARD.decode(without_prefix(text).unwrap_or(text)).ok()),
    (Slip::SecretIsHex, |text| hex::decode(without_prefix(text).unwrap_or(text)).ok()),
    (Slip::SecretHasNewline, |text| Some([text.as_bytes(), b"\n"].concat())),
];

fn without_prefix(text: &str) -> Option<&str> {
    let text = text.strip_prefix("v1,").unwrap_or(text);
    text.rsplit_once('_').map(|(_, rest)| rest)
}

fn with_keys(recipe: &Recipe, secrets: &[Secret], form: Form) -> Option<Verifier> {
    let keys: Vec<NamedKey> = secrets
        .iter()
        .filter_map(|secret| Some(NamedKey::new(secret, Key::Hmac(HmacKey::new(form(&secret.value)?)?))))
        .collect();
    (!keys.is_empty()).then(|| Verifier { recipe: recipe.clone(), keys })
}

/// The recipe with one thing changed.
fn recipes(recipe: &Recipe) -> Vec<(Slip, Recipe)> {
    let Kind::Signed(signed) = &recipe.kind else {
        return Vec::new();
    };
    let with = |slip, signed| (slip, Recipe { kind: Kind::Signed(signed), ..recipe.clone() });
    let other_digest = match signed.digest {
        Digest::Sha256 => Digest::Sha1,
        Digest::Sha1 => Digest::Sha256,
    };
    let mut all = vec![with(Slip::OtherDigest, Signed { digest: other_digest, ..signed.clone() })];
    for encoding in Encoding::ALL.into_iter().filter(|&encoding| encoding != signed.encoding) {
        all.push(with(Slip::OtherEncoding, Signed { encoding, ..signed.clone() }));
    }
    let prefixes = signed.prefixes.iter().map(|(kind, _)| (*kind, String::new())).collect();
    all.push(with(Slip::PrefixMissing, Signed { prefixes, ..signed.clone() }));
    // GitHub sends `X-Hub-Signature: sha1=...` beside the header that counts.
    let older: Vec<String> =
        signed.signature_headers.iter().filter_map(|name| Some(name.strip_suffix("-256")?.to_owned())).collect();
    if !older.is_empty() {
        let prefixes = vec![(KeyKind::Hmac, "sha1=".to_owned())];
        let sha1 = Signed { signature_headers: older, digest: Digest::Sha1, prefixes, ..signed.clone() };
        all.push(with(Slip::Sha1Header, sha1));
    }
    all
}
