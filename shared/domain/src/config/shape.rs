//! The form of a file as data: which fields there are, which must be there, and what each may hold.
//!
//! `check` finds every departure from a shape, where serde would stop at the first; [`json_schema`] writes the same
//! shape as a JSON Schema (draft 2020-12), which editors understand. Tests hold both against the loader's own structs.

use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::Problem;

/// What a value may be.
pub enum Kind {
    /// A text that is not empty.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number within these bounds.
    Integer(i64, i64),
    /// One of some numbers.
    Number(&'static [i64]),
    /// One of some words.
    Choice(fn() -> Vec<&'static str>),
    /// A text in a form of its own.
    Form(&'static Form),
    /// A list of at least so many.
    List(&'static Kind, usize),
    /// Any of these.
    OneOf(&'static [Kind]),
    /// A table with these fields.
    Table(&'static [Field]),
    /// A table of names that the writer chooses.
    Names(&'static Kind),
}

/// A text's form.
pub struct Form {
    /// What it is, after "is": `a source`.
    pub is: &'static str,
    /// The same as a regular expression (ECMA 262), for the JSON Schema.
    pub pattern: &'static str,
    /// Why a text is refused: cause and remedy, neither of which may quote it where it can be a secret.
    pub check: fn(&str) -> Result<(), (String, String)>,
}

/// A moment, in either file.
pub(crate) static TIME_TEXT: Form = Form {
    is: "a time as 2026-01-01T00:00:00Z",
    pattern: r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$",
    check: |text| {
        let told = |_| ("this is no time".to_owned(), "write it as 2026-01-01T00:00:00Z, in quotes".to_owned());
        text.parse::<jiff::Timestamp>().map(|_| ()).map_err(told)
    },
};

/// One field of a table.
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
    /// What it says, which is also the remedy where it is missing.
    pub says: &'static str,
}

impl Field {
    /// A field that must be there.
    pub const fn must(name: &'static str, kind: Kind, says: &'static str) -> Self {
        Self { name, kind, required: true, says }
    }

    /// A field that may be there.
    pub const fn may(name: &'static str, kind: Kind, says: &'static str) -> Self {
        Self { name, kind, required: false, says }
    }
}

/// Every departure of a value from its kind.
pub(crate) fn check(kind: &Kind, value: &Spanned<DeValue<'_>>, path: &mut Vec<String>, found: &mut Vec<Problem>) {
    let problem = |path: &[String], cause: String, remedy: String| Problem { path: path.to_vec(), cause, remedy };
    match (kind, value.get_ref()) {
        (Kind::Table(fields), DeValue::Table(_)) => check_table(fields, value, path, found),
        (Kind::Names(inner), DeValue::Table(table)) => {
            for (name, value) in table {
                path.push(name.get_ref().to_string());
                check(inner, value, path, found);
                path.pop();
            }
        }
        (Kind::List(inner, least), DeValue::Array(items)) => {
            if items.len() < *least {
                found.push(problem(path, "the list is too short".to_owned(), format!("give at least {least}")));
            }
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                check(inner, item, path, found);
                path.pop();
            }
        }
        (Kind::OneOf(kinds), inner) => match kinds.iter().find(|kind| kind.takes(inner)) {
            Some(fitting) => check(fitting, value, path, found),
            None => found.push(wrong_type(kind, value, path)),
        },
        (Kind::Text, DeValue::String(text)) if text.trim().is_empty() => {
            found.push(problem(path, "the text is empty".to_owned(), "fill it in, or remove the field".to_owned()));
        }
        (Kind::Form(form), DeValue::String(text)) => {
            if let Err((cause, remedy)) = (form.check)(text) {
                found.push(problem(path, cause, remedy));
            }
        }
        (Kind::Choice(words), DeValue::String(text)) => {
            let words = words();
            if !words.contains(&text.as_ref()) {
                let near = nearest(text, &words).map_or(String::new(), |word| format!("did you mean {word:?}? "));
                let cause = format!("{:?} is not known here", shortened(text));
                found.push(problem(path, cause, format!("{near}there are {}", words.join(", "))));
            }
        }
        (Kind::Number(numbers), DeValue::Integer(number)) => {
            if whole(number).is_none_or(|number| !numbers.contains(&number)) {
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                found.push(problem(
                    path,
                    "the number is none of those".to_owned(),
                    format!("give {}", numbers.join(" or ")),
                ));
            }
        }
        (Kind::Integer(least, most), DeValue::Integer(number)) => {
            let number = whole(number);
            if number.is_none_or(|number| number < *least || number > *most) {
                let remedy = format!("give a whole number from {least} to {most}");
                found.push(problem(path, "the number is out of its range".to_owned(), remedy));
            }
        }
        (kind, inner) if kind.takes(inner) => {}
        _ => found.push(wrong_type(kind, value, path)),
    }
}

fn check_table(fields: &[Field], value: &Spanned<DeValue<'_>>, path: &mut Vec<String>, found: &mut Vec<Problem>) {
    let Some(table) = value.get_ref().as_table() else { return };
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let mut mistyped = Vec::new();
    for (name, value) in table {
        path.push(name.get_ref().to_string());
        match fields.iter().find(|field| field.name == name.get_ref().as_ref()) {
            Some(field) => check(&field.kind, value, path, found),
            None => {
                let near = nearest(name.get_ref(), &names).filter(|near| !table.contains_key(*near));
                mistyped.extend(near);
                let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
                let cause = format!("`{}` is no field of this table", shortened(name.get_ref()));
                let remedy = format!("{near}there are {}", names.join(", "));
                found.push(Problem { path: path.clone(), cause, remedy });
            }
        }
        path.pop();
    }
    // A field that was only mistyped is told once.
    let missing = |field: &&Field| field.required && !table.contains_key(field.name) && !mistyped.contains(&field.name);
    for field in fields.iter().filter(missing) {
        path.push(field.name.to_owned());
        let cause = format!("`{}` is missing", field.name);
        found.push(Problem { path: path.clone(), cause, remedy: format!("add it: {}", field.says) });
        path.pop();
    }
}

fn whole(number: &toml::de::DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn wrong_type(kind: &Kind, value: &Spanned<DeValue<'_>>, path: &[String]) -> Problem {
    let cause = format!("the value is of type {}", value.get_ref().type_str());
    Problem { path: path.to_vec(), cause, remedy: format!("write {}", kind.wanted()) }
}

/// A writer's own word, cut so that a message stays a line.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

impl Kind {
    /// Whether a value is of this kind's TOML type.
    fn takes(&self, value: &DeValue<'_>) -> bool {
        match self {
            Self::Text | Self::Choice(_) | Self::Form(_) => value.is_str(),
            Self::Boolean => value.is_bool(),
            Self::Integer(..) | Self::Number(_) => value.is_integer(),
            Self::List(..) => value.is_array(),
            Self::Table(_) | Self::Names(_) => value.is_table(),
            Self::OneOf(kinds) => kinds.iter().any(|kind| kind.takes(value)),
        }
    }

    fn wanted(&self) -> String {
        match self {
            Self::Text => "a text in quotes".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(..) | Self::Number(_) => "a whole number".to_owned(),
            Self::Choice(words) => format!("one of {}", words().join(", ")),
            Self::Form(form) => format!("{} in quotes", form.is),
            Self::List(..) => "a list in [ ]".to_owned(),
            Self::Table(_) | Self::Names(_) => "a table".to_owned(),
            Self::OneOf(kinds) => kinds.iter().map(Self::wanted).collect::<Vec<_>>().join(", or "),
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string", "minLength": 1}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Integer(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            Self::Number(numbers) => json!({"enum": numbers}),
            Self::Choice(words) => json!({"enum": words()}),
            Self::Form(form) => json!({"type": "string", "pattern": form.pattern, "description": form.is}),
            Self::List(inner, least) => json!({"type": "array", "items": inner.schema(), "minItems": least}),
            Self::OneOf(kinds) => json!({"anyOf": kinds.iter().map(Self::schema).collect::<Vec<_>>()}),
            Self::Names(inner) => json!({"type": "object", "additionalProperties": inner.schema()}),
            Self::Table(fields) => {
                let properties: Map<String, Value> = fields.iter().map(Field::schema).collect();
                let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.name).collect();
                json!({
                    "type": "object", "additionalProperties": false, "properties": properties, "required": required
                })
            }
        }
    }
}

impl Field {
    fn schema(&self) -> (String, Value) {
        let mut schema = self.kind.schema();
        schema["description"] = json!(self.says);
        (self.name.to_owned(), schema)
    }
}

/// A shape as a JSON Schema.
pub fn json_schema(title: &str, kind: &Kind) -> Value {
    let mut schema = kind.schema();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema
}

/// The word that is one or two slips of the finger away.
fn nearest<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    let text = shortened(text);
    words.iter().map(|&word| (distance(&text, word), word)).filter(|(slips, _)| *slips <= 2).min().map(|(_, word)| word)
}

/// Levenshtein's distance; both texts are short.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// What a test needs that holds a loader and its shape together.
#[cfg(test)]
pub(crate) mod fields {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use std::collections::BTreeSet;

    use super::{Kind, json_schema};

    /// The fields of a loader: serde's own message lists them.
    pub(crate) fn of_loader<T: for<'de> serde::Deserialize<'de>>() -> BTreeSet<String> {
        let error = toml::from_str::<T>("zzz = 1").err().unwrap();
        error.message().split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    /// The fields of a shape.
    pub(crate) fn of_shape(kind: &Kind) -> BTreeSet<String> {
        json_schema("", kind)["properties"].as_object().unwrap().keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn a_slip_is_told_from_another_word() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("owners", &["owner", "tenants"]), Some("owner"));
        assert_eq!(nearest("colour", &["owner", "tenants"]), None);
    }
}
