//! The signed string as a template: `{id}.{timestamp}.{body}`.
//!
//! A template is rendered into parts, not into one string: the body is hashed where it lies.

use crate::recipe::RecipeError;
use crate::request::Request;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;

/// One piece of a signed string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Fixed text.
    Literal(String),
    /// `{id}`: the message id.
    Id,
    /// `{timestamp}`: the timestamp's text as received.
    Timestamp,
    /// `{body}`: the exact bytes.
    Body,
    /// `{body_sha256}`: their SHA-256, lower-case hexadecimal.
    BodySha256,
    /// `{url}`: the full public URL.
    Url,
    /// `{method}`: the method in capitals.
    Method,
    /// `{header:NAME}`: another header's value.
    Header(String),
}

/// What a template is filled with.
pub(crate) struct Fill<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) timestamp: Option<&'a str>,
    pub(crate) request: &'a Request<'a>,
}

/// A placeholder that the request cannot fill.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    Id,
    Timestamp,
    Url,
    Header(String),
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, RecipeError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, tail)) = rest.split_once('{') {
            let (name, after) = tail.split_once('}').ok_or(RecipeError::UnclosedPlaceholder)?;
            push_literal(&mut parts, literal)?;
            parts.push(placeholder(name)?);
            rest = after;
        }
        push_literal(&mut parts, rest)?;
        Ok(Self(parts))
    }

    pub(crate) fn has(&self, part: &Part) -> bool {
        self.0.contains(part)
    }

    pub(crate) fn render<'a>(&'a self, fill: &Fill<'a>) -> Result<Vec<Cow<'a, [u8]>>, Gap> {
        self.0.iter().map(|part| part.render(fill)).collect()
    }
}

impl Part {
    fn render<'a>(&'a self, fill: &Fill<'a>) -> Result<Cow<'a, [u8]>, Gap> {
        let request = fill.request;
        let text = match self {
            Self::Literal(text) => text,
            Self::Id => fill.id.ok_or(Gap::Id)?,
            Self::Timestamp => fill.timestamp.ok_or(Gap::Timestamp)?,
            Self::Url => request.url.ok_or(Gap::Url)?,
            Self::Method => request.method,
            Self::Header(name) => request.headers.get(name).ok_or_else(|| Gap::Header(name.clone()))?,
            Self::Body => return Ok(Cow::Borrowed(request.body)),
            Self::BodySha256 => {
                return Ok(Cow::Owned(hex::encode(Sha256::digest(request.body)).into_bytes()));
            }
        };
        Ok(Cow::Borrowed(text.as_bytes()))
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) -> Result<(), RecipeError> {
    if text.contains('}') {
        return Err(RecipeError::UnclosedPlaceholder);
    }
    if !text.is_empty() {
        parts.push(Part::Literal(text.to_owned()));
    }
    Ok(())
}

fn placeholder(name: &str) -> Result<Part, RecipeError> {
    Ok(match name {
        "id" => Part::Id,
        "timestamp" => Part::Timestamp,
        "body" => Part::Body,
        "body_sha256" => Part::BodySha256,
        "url" => Part::Url,
        "method" => Part::Method,
        _ => match name.strip_prefix("header:") {
            Some(header) if !header.is_empty() => Part::Header(header.to_owned()),
            _ => return Err(RecipeError::UnknownPlaceholder(name.to_owned())),
        },
    })
}
