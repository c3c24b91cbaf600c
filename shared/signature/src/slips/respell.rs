//! The same JSON as other programs write it: with other blanks, with characters outside ASCII or slashes escaped or not.
//! The order of members, numbers and everything else stay as they are.

use serde::de::IgnoredAny;

/// What is around a member and between the parts of it.
#[derive(Clone, Copy)]
struct Style {
    after_comma: &'static str,
    after_colon: &'static str,
    /// Blanks per level, each member on a line of its own.
    indent: Option<usize>,
}

/// `JSON.stringify`, Python's `json.dumps`, and both indented.
const STYLES: [Style; 4] = [
    Style { after_comma: "", after_colon: "", indent: None },
    Style { after_comma: " ", after_colon: " ", indent: None },
    Style { after_comma: "", after_colon: " ", indent: Some(2) },
    Style { after_comma: "", after_colon: " ", indent: Some(4) },
];

/// The texts of strings.
const TEXTS: [fn(&str) -> String; 4] = [str::to_owned, to_ascii, from_ascii, with_slashes];

/// Every other spelling of a body that is JSON.
pub(super) fn spellings(body: &[u8]) -> Vec<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(body) else { return Vec::new() };
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Vec::new();
    }
    let styled = STYLES.iter().flat_map(|style| TEXTS.iter().map(|spell| respaced(text, *style, *spell)));
    styled.map(String::into_bytes).filter(|other| other != body).collect()
}

/// Valid JSON with other blanks.
fn respaced(text: &str, style: Style, spell: fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if first == '"' { string_len(rest) } else { first.len_utf8() };
        let (token, after) = rest.split_at(len);
        rest = after;
        let closes = rest.trim_start().starts_with(['}', ']']);
        match first {
            ' ' | '\n' | '\r' | '\t' => {}
            '"' => out.push_str(&spell(token)),
            '{' | '[' => {
                out.push(first);
                depth += 1;
                if !closes {
                    line(&mut out, style, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !out.ends_with(['{', '[']) {
                    line(&mut out, style, depth);
                }
                out.push(first);
            }
            ',' => {
                out.push(first);
                out.push_str(style.after_comma);
                line(&mut out, style, depth);
            }
            ':' => {
                out.push(first);
                out.push_str(style.after_colon);
            }
            _ => out.push(first),
        }
    }
    out
}

fn line(out: &mut String, style: Style, depth: usize) {
    if let Some(indent) = style.indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent * depth));
    }
}

/// The length of the string that begins here, both quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Characters outside ASCII as `\uXXXX`.
fn to_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Everything literally that JSON lets stand so.
fn from_ascii(text: &str) -> String {
    let plain: Result<String, _> = serde_json::from_str(text);
    plain.ok().and_then(|plain| serde_json::to_string(&plain).ok()).unwrap_or_else(|| text.to_owned())
}

/// Slashes as `\/`, and characters outside ASCII escaped: what PHP writes.
fn with_slashes(text: &str) -> String {
    to_ascii(&from_ascii(text)).replace('/', "\\/")
}
