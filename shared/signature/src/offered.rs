//! What a signature header offers: signatures, and for some schemes the timestamp.
//!
//! The header is a list, never a map: while a secret is rolled the same version stands in it twice, and keeping only the
//! last would refuse good events (SIG-05). Unknown versions and undecodable values are passed over.

use crate::key::KeyKind;
use crate::recipe::{Signed, StampAt};
use crate::rejection::Rejection;

/// So many signatures of one request are tried; what follows is ignored.
pub(crate) const MAX_OFFERED: usize = 16;

/// One decoded signature.
pub(crate) struct Offer {
    pub(crate) kind: KeyKind,
    pub(crate) bytes: Vec<u8>,
}

/// A signature header, taken apart.
pub(crate) struct Offered<'a> {
    pub(crate) timestamp: Option<&'a str>,
    pub(crate) signatures: Vec<Offer>,
}

/// Takes the header apart. Two different timestamps are malformed: it would not be clear which one is signed.
pub(crate) fn read<'a>(recipe: &Signed, header: &'a str) -> Result<Offered<'a>, Rejection> {
    let mut offered = Offered { timestamp: None, signatures: Vec::new() };
    for element in elements(recipe.separator, header) {
        if let StampAt::Element(prefix) = &recipe.timestamp
            && let Some(text) = element.strip_prefix(prefix.as_str())
        {
            if offered.timestamp.is_some_and(|known| known != text) {
                return Err(Rejection::MalformedSignature);
            }
            offered.timestamp = Some(text);
        } else if offered.signatures.len() < MAX_OFFERED {
            offered.signatures.extend(signature(recipe, element));
        }
    }
    Ok(offered)
}

fn signature(recipe: &Signed, element: &str) -> Option<Offer> {
    recipe.prefixes.iter().find_map(|(kind, prefix)| {
        let bytes = recipe.encoding.decode(element.strip_prefix(prefix.as_str())?)?;
        kind.takes_len(recipe.digest, bytes.len()).then_some(Offer { kind: *kind, bytes })
    })
}

/// The list's elements, less the blanks that HTTP allows around them (RFC 9110, 5.6.1).
fn elements(separator: Option<char>, header: &str) -> impl Iterator<Item = &str> {
    let (whole, list) = match separator {
        Some(separator) => (None, Some(header.split(separator).map(|element| element.trim_matches([' ', '\t'])))),
        None => (Some(header), None),
    };
    whole.into_iter().chain(list.into_iter().flatten())
}
