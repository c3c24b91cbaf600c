//! Reads a CloudFormation template into JSON values, so that the checks can walk it and the tests can
//! change it. Short tags become their long form, as CloudFormation itself does: `!Ref A` is
//! `{"Ref": "A"}`, `!GetAtt A.Arn` is `{"Fn::GetAtt": "A.Arn"}`.
//!
//! Nothing is resolved: a parameter stays a reference, and both branches of an `!If` stay in sight.

use saphyr::{LoadableYamlNode, ScalarOwned, YamlOwned};
use serde_json::{Map, Value, json};

/// One broken rule of the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The rule's short name, which the tests compare.
    pub(super) rule: &'static str,
    /// Logical id of the resource, with the part of it where that matters.
    pub(super) place: String,
    /// What is wrong and what the rule wants.
    pub(super) says: String,
}

impl Finding {
    pub(super) fn new(rule: &'static str, place: impl Into<String>, says: impl Into<String>) -> Self {
        Self { rule, place: place.into(), says: says.into() }
    }
}

/// Parses one YAML document; the error names what cannot be represented.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let documents = YamlOwned::load_from_str(text).map_err(|error| format!("not YAML: {error}"))?;
    match documents.as_slice() {
        [one] => to_json(one),
        more => Err(format!("one document expected, {} found", more.len())),
    }
}

fn to_json(node: &YamlOwned) -> Result<Value, String> {
    match node {
        YamlOwned::Value(ScalarOwned::Null) => Ok(Value::Null),
        YamlOwned::Value(ScalarOwned::Boolean(value)) => Ok(json!(value)),
        YamlOwned::Value(ScalarOwned::Integer(value)) => Ok(json!(value)),
        YamlOwned::Value(ScalarOwned::String(value)) => Ok(json!(value)),
        YamlOwned::Sequence(items) => items.iter().map(to_json).collect(),
        YamlOwned::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let key = key.as_str().ok_or_else(|| format!("a key is not a string: {key:?}"))?;
                map.insert(key.to_owned(), to_json(value)?);
            }
            Ok(Value::Object(map))
        }
        YamlOwned::Tagged(tag, node) => {
            let name = match tag.suffix.as_str() {
                "Ref" => "Ref".to_owned(),
                "Condition" => "Condition".to_owned(),
                other => format!("Fn::{other}"),
            };
            Ok(json!({ name: to_json(node)? }))
        }
        other => Err(format!("not expected in a template: {other:?}")),
    }
}

/// One resource of a template.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resource<'a> {
    pub(super) id: &'a str,
    pub(super) kind: &'a str,
    /// The whole resource: `Properties` with `DeletionPolicy` and the like beside it.
    pub(super) whole: &'a Value,
}

impl<'a> Resource<'a> {
    /// A property, or `Null` where it is not set.
    pub(super) fn property(&self, name: &str) -> &'a Value {
        &self.whole["Properties"][name]
    }
}

/// All resources, by logical id.
pub(super) fn resources(template: &Value) -> Vec<Resource<'_>> {
    let found = template["Resources"].as_object().into_iter().flatten();
    found.map(|(id, whole)| Resource { id, kind: whole["Type"].as_str().unwrap_or(""), whole }).collect()
}

/// All resources of one type, by logical id.
pub(super) fn of_kind<'a>(template: &'a Value, kind: &str) -> Vec<Resource<'a>> {
    resources(template).into_iter().filter(|resource| resource.kind == kind).collect()
}

/// The logical id that a reference names: `Ref`, `Fn::GetAtt`, or a `Fn::Sub` that starts with one.
pub(super) fn target(value: &Value) -> Option<&str> {
    let before_dot = |text: &'_ str| text.split('.').next().map(str::len);
    if let Some(id) = value["Ref"].as_str() {
        return Some(id);
    }
    if let Some(text) = value["Fn::GetAtt"].as_str() {
        return before_dot(text).map(|end| &text[..end]);
    }
    if let Some(id) = value["Fn::GetAtt"][0].as_str() {
        return Some(id);
    }
    let inside = value["Fn::Sub"].as_str()?.strip_prefix("${")?.split('}').next()?;
    before_dot(inside).map(|end| &inside[..end])
}

/// A value that may be one or a list, as a list.
pub(super) fn listed(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    }
}
