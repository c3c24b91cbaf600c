//! `application/x-www-form-urlencoded` as bytes: names and values are not forced into UTF-8, since two different bodies must
//! not become one signed string.

/// The decoded pairs in order, each with the offset at which it begins. A malformed percent escape stands for itself
/// (WHATWG URL, 5.1). Decoded text is never longer than the body.
pub fn form_fields(body: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>, Vec<u8>)> {
    let mut next = 0;
    body.split(|&b| b == b'&').filter_map(move |pair| {
        let offset = next;
        next += pair.len() + 1;
        let mut halves = pair.splitn(2, |&b| b == b'=');
        let mut half = || decode(halves.next().unwrap_or_default());
        (!pair.is_empty()).then(|| (offset, half(), half()))
    })
}

/// The decoded pairs in order.
pub(crate) fn pairs(body: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    form_fields(body).map(|(_, name, value)| (name, value)).collect()
}

/// The value of a field that occurs exactly once.
pub(crate) fn only<'a>(pairs: &'a [(Vec<u8>, Vec<u8>)], name: &str) -> Result<Option<&'a [u8]>, Twice> {
    let mut values = pairs.iter().filter(|(key, _)| key == name.as_bytes()).map(|(_, value)| value.as_slice());
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Twice),
        (value, None) => Ok(value),
    }
}

/// A field that occurs more than once.
#[derive(Debug)]
pub(crate) struct Twice;

fn decode(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, tail @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = tail;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(first),
        }
    }
    bytes
}

const fn digit(b: u8) -> Option<u8> {
    match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        b'A'..=b'F' => Some(b - b'A' + 10),
        _ => None,
    }
}
