//! A TOML file with the place of everything in it.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Finding, Problem};

/// What a syntax error is told with; the parser's own text may quote the line, which may hold a secret.
const SYNTAX: &str = "write valid TOML: the mistake is here or just before";

/// A parsed file.
pub(crate) struct Document<'a> {
    text: &'a str,
    root: Spanned<DeValue<'a>>,
}

impl<'a> Document<'a> {
    /// Parses as far as possible; the findings are the syntax errors, a table that stands twice among them.
    pub(crate) fn parse(text: &'a str) -> (Self, Vec<Finding>) {
        let (root, errors) = DeTable::parse_recoverable(text);
        let span = root.span();
        let document = Self { text, root: Spanned::new(span, DeValue::Table(root.into_inner())) };
        let findings = errors.iter().map(|error| {
            let remedy = match error.message() {
                message if message.contains("duplicate key") => "give each name once: rename or remove one of the two",
                _ => SYNTAX,
            };
            document.at(error.span().unwrap_or(0..0), "file", error.message().to_owned(), remedy.to_owned())
        });
        let findings = findings.collect();
        (document, findings)
    }

    /// The whole file as a table.
    pub(crate) fn root(&self) -> &Spanned<DeValue<'a>> {
        &self.root
    }

    /// A problem with the place of its field, or of the nearest table around it that exists.
    pub(crate) fn finding(&self, problem: Problem) -> Finding {
        let mut value = &self.root;
        let mut span = 0..0;
        for step in &problem.path {
            let inner = match value.get_ref() {
                DeValue::Table(table) => table.get_key_value(step.as_str()).map(|(key, value)| (key.span(), value)),
                DeValue::Array(items) => {
                    step.parse().ok().and_then(|n: usize| items.get(n)).map(|item| (item.span(), item))
                }
                _ => None,
            };
            let Some((place, inner)) = inner else { break };
            (span, value) = (place, inner);
        }
        self.at(span, &problem.path.join("."), problem.cause, problem.remedy)
    }

    /// A finding at a place.
    pub(crate) fn at(&self, span: Range<usize>, field: &str, cause: String, remedy: String) -> Finding {
        let before = self.text.get(..span.start.min(self.text.len())).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Finding {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            field: field.to_owned(),
            cause,
            remedy,
        }
    }
}
