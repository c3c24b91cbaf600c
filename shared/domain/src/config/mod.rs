//! The two files that a person writes (`providers.toml`, `prices.toml`), and how a mistake in them is told.
//!
//! What it promises: every mistake is a [`Finding`] with its place (line and column, counted from 1), its cause and its
//! remedy; all of them are told, not the first alone; and no finding quotes a value that may be a secret. The form of each
//! file is one table of data ([`shape`]), from which the check here and the published JSON Schema are both made.

mod document;
pub mod shape;

use std::fmt;

use serde::Serialize;

pub(crate) use document::Document;

/// One mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The line, from 1; for something that is missing, the line of the table that lacks it.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// Which field, outermost first, joined with dots: `providers.acme.secrets`.
    pub field: String,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}: {}", self.line, self.column, self.field, self.cause, self.remedy)
    }
}

/// Why a file is refused: every mistake in it, in the order of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// The file's name.
    pub file: &'static str,
    /// Never empty.
    pub findings: Vec<Finding>,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{}:{finding}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for FileError {}

/// A mistake that is known by its field only; the document gives it a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The field's path, outermost first; the element of a list by its index.
    pub path: Vec<String>,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl Problem {
    /// A mistake at a path.
    pub fn new(path: &[&str], cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.iter().map(|&step| step.to_owned()).collect(), cause: cause.into(), remedy: remedy.into() }
    }

    /// The same mistake, seen from further outside.
    #[must_use]
    pub fn below(mut self, outer: &[&str]) -> Self {
        self.path.splice(0..0, outer.iter().map(|&step| step.to_owned()));
        self
    }
}
